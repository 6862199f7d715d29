"""What past runs teach, as a page of text: what `tenlines advise` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tenlines.advise import Advice, Finding, GroupAdvice
from tenlines.advise.caps import SHARE, CapLine
from tenlines.advise.chart import ASCII, UNICODE, chart_of, text_of
from tenlines.advise.findings import percent
from tenlines.advise.skeleton import skeleton_of
from tenlines.advise.workflow import Workflow
from tenlines.cli.lines import put
from tenlines.cli.screen import signs
from tenlines.cli.tables import columns
from tenlines.trace import words
from tenlines.trace.text import clean, one_line

if TYPE_CHECKING:
    from tenlines.cli.advise import Skipped

ROWS = 8
"""Lines of a table of a group."""
WHAT = {
    "cap": "the step cap",
    "flood": "results that flood the window",
    "repeats": "wasted repeats",
    "cache": "cache broken",
    "failures": "failures",
    "workflow": "a workflow",
}


class AdvicePage:
    """Prints advice.

    Args:
        code: Print the skeletons of workflows too.
    """

    def __init__(self, console: Console, advice: Advice, skipped: Sequence[Skipped], *, code: bool) -> None:
        self.console, self.advice, self.skipped, self.code = console, advice, skipped, code
        self.dot = signs(console).dot

    def whole(self) -> None:
        """What was looked at, the advice, the groups."""
        self._head()
        for number, found in enumerate(self.advice.findings, 1):
            self._finding(number, found)
        for group in self.advice.groups:
            self._group(group)

    # --- parts of the page ---

    def _head(self) -> None:
        advice, found = self.advice, len(self.advice.findings)
        said = f"{words.count(found, 'piece')} of advice" if found else "nothing to advise"
        groups = words.count(len(advice.groups), advice.by)
        self._put(Text(f"{said}, from {words.count(advice.runs, 'run')} of {groups}", "bold"), wrap=True)
        if found > 1:
            self._put(Text("what one saves another may save too: the sums cannot be added up", "dim"), wrap=True)
        if self.skipped:
            named = ", ".join(one.run_id for one in self.skipped[:3])
            self._put(
                Text(
                    f"{words.count(len(self.skipped), 'run')} could not be read ({named}): `tenlines doctor`", "yellow"
                ),
                wrap=True,
            )

    def _finding(self, number: int, found: Finding) -> None:
        self.console.print()
        subject = f": {one_line(found.subject, 80)}" if found.subject else ""
        heading = Text(f"{number}. {WHAT[found.kind]}{subject}", "bold")
        self._put(heading.append(f" {self.dot} {one_line(found.group, 60)}", "dim"), wrap=True)
        lines = (("seen", found.seen), ("do", found.do), ("saves", found.saves), ("sure", found.sure))
        for name, sentence in lines:
            self._fact(name, sentence, "cyan" if name == "do" else "")
        if found.runs:
            self._fact("runs", f"{', '.join(found.runs)} (tenlines show RUN)", "dim")
        if found.kind == "workflow":
            self._workflow(found.group)

    def _fact(self, name: str, sentence: str, style: str) -> None:
        line = Text().append(f"{name:<6}", "dim").append(clean(sentence), style)
        put(self.console, line, 3, wrap=True)

    def _workflow(self, group: str) -> None:
        flow = next(one.workflow for one in self.advice.groups if one.group == group)
        assert flow is not None
        drawing = text_of(chart_of(flow), ASCII if self.console.options.ascii_only else UNICODE)
        self.console.print()
        for line in drawing.splitlines():
            self._put(Text(clean(line)), 3)
        self.console.print()
        for line in cost_cells(flow):
            self._put(Text(line), 3)
        if self.code:
            self.console.print()
            for line in skeleton_of(flow).splitlines():
                self.console.print(Text(clean(line)), soft_wrap=True)

    # --- what is known of a group ---

    def _group(self, group: GroupAdvice) -> None:
        self.console.print()
        facts = (words.count(group.runs, "run"), f"{group.answered:,} answered")
        line = Text().append(one_line(group.group, 60), "bold")
        self._put(line.append("".join(f" {self.dot} {fact}" for fact in facts)))
        self._put(Text(f"steps: {cap_words(group.cap)}"), 2, wrap=True)
        for one in group.waiting:
            self._put(Text(f"nothing to say yet on {one}", "yellow"), 2, wrap=True)
        self._table(_tool_cells(group), 1)
        self._table(_ending_cells(group), 1)
        self._table(_outcome_cells(group), 2)

    def _table(self, rows: Sequence[Sequence[str]], texts: int) -> None:
        if len(rows) < 2:
            return
        heading, *shown = columns(rows[: ROWS + 1], texts)
        self._put(Text(heading, "dim"), 2)
        for line in shown:
            self._put(Text(clean(line)), 2)
        if len(rows) > ROWS + 1:
            self._put(Text(f"… {len(rows) - ROWS - 1:,} more (--json)", "dim italic"), 2)

    def _put(self, text: Text, indent: int = 0, *, wrap: bool = False) -> None:
        put(self.console, text, indent, wrap=wrap)


# --- in words -------------------------------------------------------------------------------------------


def cap_words(cap: CapLine) -> str:
    """What is known of the steps that answers need."""
    limit = "there is no cap" if cap.cap is None else f"the cap is {cap.cap}"
    if cap.waiting:
        return limit
    lost = f", {cap.lost:,} lost" if cap.lost else ""
    counted = f"{cap.answered:,} answered, {cap.censored:,} stopped before{lost}"
    if cap.p95 is None:
        return f"{SHARE:.0%} are answered after more than {cap.more_than} ({counted}); {limit}"
    low, high = ("?" if one is None else str(one) for one in (cap.low, cap.high))
    return f"{SHARE:.0%} are answered by step {cap.p95} ({low} to {high}; {counted}); {limit}"


def cost_cells(flow: Workflow) -> list[str]:
    """What an average run costs, each way."""
    rows: list[Sequence[str]] = [("a run, on average", "tokens", "dollars")]
    for name, tokens, dollars in (
        _agent_cells(flow),
        ("as a workflow (estimate)", f"~{flow.flow_tokens:,}", flow.flow_dollars),
    ):
        rows.append((name, tokens, "?" if dollars is None else f"${dollars:.6f}"))
    return columns(rows)


def _agent_cells(flow: Workflow) -> tuple[str, str, float | None]:
    if flow.is_measured:
        return "as an agent (measured)", f"{flow.agent_tokens:,}", flow.agent_dollars
    return "as an agent (estimate: the provider did not say)", f"~{flow.agent_tokens:,}", flow.agent_dollars


def _tool_cells(group: GroupAdvice) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("tool", "calls", "p50", "p95", "carried", "of all in")]
    for line in group.tools:
        sizes = (f"~{line.p50:,}", f"~{line.p95:,}", f"~{line.carried:,}")
        rows.append((one_line(line.tool, 40), f"{line.calls:,}", *sizes, f"~{percent(line.share, 1)}"))
    return rows


def _ending_cells(group: GroupAdvice) -> list[Sequence[str]]:
    """How runs ended without an answer."""
    rows: list[Sequence[str]] = [("ended as", "after step", "runs", "for example")]
    bad = (line for line in group.endings if line.status != "answered")
    return rows + [(line.status, str(line.step), f"{line.runs:,}", line.example) for line in bad]


def _outcome_cells(group: GroupAdvice) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("failed calls of", "outcome", "calls", "of", "for example")]
    for line in group.outcomes:
        rows.append((one_line(line.tool, 40), line.outcome, f"{line.calls:,}", f"{line.of:,}", line.example))
    return rows
