"""The last lines of a run: what it came to, and what can be done next."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tenlines.cli import words
from tenlines.cli.lines import put
from tenlines.cli.screen import clean, one_line, signs
from tenlines.core.limits import Limits
from tenlines.core.result import RunResult


def answered(console: Console, result: RunResult, seconds: float) -> None:
    """`✓ answered · 3 steps · 2 calls · ...`."""
    sign = signs(console)
    line = Text().append(f"{sign.ok} answered", "bold green")
    line.append(f" {sign.dot} {words.totals(result, seconds).replace('·', sign.dot)}", "dim")
    put(console, line, wrap=True)


def stopped(console: Console, result: RunResult, limits: Limits, journal: str | None) -> None:
    """How it stopped, what it had so far, and the command that goes on."""
    line = Text().append(f"{signs(console).stopped} {result.status}", "bold red")
    if result.reason:
        line.append(f": {one_line(result.reason, 500)}", "")
    put(console, line, wrap=True)
    if result.partial_answer and result.status != "cancelled":  # whoever cancels has seen it
        put(console, Text("what it had so far, which is not an answer:", "yellow"))
        put(console, Text(clean(result.partial_answer.strip())), 2, wrap=True)
    advice, command = words.next_move(result, limits, journal)
    put(console, Text(f"{advice}{':' if command else ''}", "dim"), wrap=True)
    if command:
        # never broken by us: it is there to be copied
        console.print(Text("  ").append(clean(command), "bold"), soft_wrap=True)
