"""The last lines of a run: what it came to, and what can be done next."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tenlines.cli import moves
from tenlines.cli.lines import put
from tenlines.cli.screen import signs
from tenlines.cli.waiting import commands, put_call, put_paused
from tenlines.core.limits import Limits
from tenlines.core.result import RunResult
from tenlines.ports import SystemClock
from tenlines.trace import words
from tenlines.trace.story import CallView
from tenlines.trace.text import clean, one_line


def answered(console: Console, result: RunResult, seconds: float) -> None:
    """`✓ answered · 3 steps · 2 calls · ...`."""
    sign = signs(console)
    line = Text().append(f"{sign.ok} answered", "bold green")
    line.append(f" {sign.dot} {words.totals(result, seconds).replace('·', sign.dot)}", "dim")
    put(console, line, wrap=True)


def stopped(
    console: Console, result: RunResult, limits: Limits, journal: str | None, *, is_of_fleet: bool = False
) -> None:
    """How it stopped, what it had so far, and the command that goes on.

    Args:
        is_of_fleet: The workers of a fleet go on with it.
    """
    if result.status == "awaiting_approval":
        waiting(console, result, journal, is_of_fleet=is_of_fleet)
        return
    line = Text().append(f"{signs(console).stopped} {result.status}", "bold red")
    if result.reason:
        line.append(f": {one_line(result.reason, 500)}", "")
    put(console, line, wrap=True)
    if result.partial_answer and result.status != "cancelled":  # whoever cancels has seen it
        put(console, Text("what it had so far, which is not an answer:", "yellow"))
        put(console, Text(clean(result.partial_answer.strip())), 2, wrap=True)
    undone(console, result)
    advice, command = moves.next_move(result, limits, journal, is_of_fleet=is_of_fleet)
    put(console, Text(f"{advice}{':' if command else ''}", "dim"), wrap=True)
    if command:
        to_copy(console, command)


def waiting(console: Console, result: RunResult, journal: str | None, *, is_of_fleet: bool = False) -> None:
    """What waits for somebody's decision, and the commands that give it."""
    go_on = moves.command("wait" if is_of_fleet else "resume", [result.run_id], journal)
    what = one_line(result.reason, 500) if result.pending or result.paused else "nothing waits any more"
    put(console, Text(f"{signs(console).stopped} {result.status}: {what}", "bold yellow"))
    now = SystemClock().now()
    for one in result.pending:
        put_call(console, one, now)
    for paused in result.paused:
        put_paused(console, paused)
    if journal == "memory":
        put(console, Text("the run was kept in memory only; leave out --journal memory next time", "dim"), wrap=True)
    elif result.pending:
        put(console, Text("decide, and its workers go on:" if is_of_fleet else "decide and go on:", "dim"))
        for command in commands(result.run_id, journal, result.pending, is_of_fleet=is_of_fleet):
            to_copy(console, command)
    elif result.paused:
        put(console, Text("look at what waits, decide, and go on:", "dim"))
        to_copy(console, moves.command("pending", [], journal))
        to_copy(console, go_on)
    else:
        decided = "everything is decided; its workers go on" if is_of_fleet else "everything is decided; go on"
        put(console, Text(f"{decided}:", "dim"))
        to_copy(console, go_on)


def undone(console: Console, result: RunResult) -> None:
    """What came of taking back what the run did, where that was tried."""
    if not result.undone:
        return
    failed = [one for one in result.undone if one.outcome != "ok"]
    line = f"{words.count(len(result.undone) - len(failed), 'call')} undone"
    line += f", {words.count(len(failed), 'call')} could not be undone" if failed else ""
    if result.standing:
        line += f"; what still stands: {', '.join(one_line(one.name, 60) for one in result.standing)}"
    put(console, Text(line, "yellow" if result.standing else ""), wrap=True)


def in_doubt(console: Console, calls: Sequence[CallView], run_id: str) -> None:
    """Calls of which nobody knows whether they took effect, with the key that the other side may have seen."""
    what = "1 call is in doubt: it" if len(calls) == 1 else f"{len(calls)} calls are in doubt: each"
    put(console, Text(f"{what} may have taken effect before it was cut off", "bold red"), wrap=True)
    for view in calls:
        key = f"{run_id}:{view.step}:{view.position}"
        put(console, Text(f"{words.call(view.name, view.arguments)}  key {key}"), 2, wrap=True)


def to_copy(console: Console, command: str) -> None:
    """A command on a line of its own, never broken by us."""
    console.print(Text("  ").append(clean(command), "bold"), soft_wrap=True)
