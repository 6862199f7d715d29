"""Advice from past runs: takes them one by one, keeps counts, and says in the end what they teach."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tenlines.advise.breaks import Breaks
from tenlines.advise.caps import CapLine, Caps
from tenlines.advise.facts import By, Run
from tenlines.advise.failures import EndingLine, Failures, OutcomeLine
from tenlines.advise.findings import Finding, ordered
from tenlines.advise.floods import Floods, ToolLine
from tenlines.advise.paths import Paths
from tenlines.advise.repeated import Repeated
from tenlines.advise.workflow import Workflow, finding, workflow_of
from tenlines.trace.redaction import Redaction


class GroupAdvice(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What is known of the runs of one group."""

    group: str
    runs: int
    answered: int
    cap: CapLine
    tools: tuple[ToolLine, ...]
    endings: tuple[EndingLine, ...]
    outcomes: tuple[OutcomeLine, ...]
    """Calls that failed."""
    workflow: Workflow | None
    waiting: tuple[str, ...]
    """Questions on which there is nothing to say yet, and what they need."""


class Advice(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What past runs teach."""

    by: By
    runs: int
    findings: tuple[Finding, ...]
    """What is worth most first."""
    groups: tuple[GroupAdvice, ...]
    """The largest first."""


class Advisor:
    """Takes runs, the oldest first, and keeps none of them.

    Args:
        by: What they are grouped by.
        redaction: For what is quoted of instructions and arguments.
    """

    def __init__(self, by: By = "agent", redaction: Redaction | None = None) -> None:
        self.by, self._redaction = by, Redaction() if redaction is None else redaction
        self._groups: dict[str, _Group] = {}

    def take(self, run: Run) -> None:
        """Learn from a run."""
        group = run.group(self.by)
        if group not in self._groups:
            self._groups[group] = _Group(group, self._redaction)
        self._groups[group].take(run)

    def advice(self) -> Advice:
        """What they teach."""
        groups = sorted(self._groups.values(), key=lambda one: (-one.runs, one.name))
        told = [group.advice() for group in groups]
        found: Iterable[Finding] = (one for group in groups for one in group.findings())
        flows = (finding(one.workflow) for one in told if one.workflow is not None)
        return Advice(
            by=self.by,
            runs=sum(group.runs for group in groups),
            findings=tuple(ordered([*found, *flows])),
            groups=tuple(told),
        )


class _Group:
    def __init__(self, name: str, redaction: Redaction) -> None:
        self.name, self._redaction = name, redaction
        self.runs = self.answered = 0
        self.caps, self.floods, self.repeated = Caps(), Floods(), Repeated()
        self.breaks, self.failures, self.paths = Breaks(redaction), Failures(), Paths()

    def take(self, run: Run) -> None:
        self.runs += 1
        self.answered += run.is_answered
        for one in (self.caps, self.floods, self.repeated, self.breaks, self.failures, self.paths):
            one.take(run)

    def findings(self) -> Iterable[Finding]:
        for one in (self.caps, self.floods, self.repeated, self.breaks, self.failures):
            yield from one.findings(self.name)

    def advice(self) -> GroupAdvice:
        cap = self.caps.line()
        waiting = (("the step cap", cap.waiting), ("a workflow", self.paths.waiting))
        return GroupAdvice(
            group=self.name,
            runs=self.runs,
            answered=self.answered,
            cap=cap,
            tools=tuple(self.floods.lines()),
            endings=tuple(self.failures.endings()),
            outcomes=tuple(self.failures.outcomes()),
            workflow=workflow_of(self.name, self.paths, self._redaction),
            waiting=tuple(f"{what}: {why}" for what, why in waiting if why),
        )
