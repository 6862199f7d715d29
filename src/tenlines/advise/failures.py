"""The steps and tools where runs fail."""

from __future__ import annotations

from collections import Counter

import msgspec

from tenlines.advise.facts import NOTHING, Run, of_step
from tenlines.advise.findings import Examples, Finding, percent, worth_words
from tenlines.trace.words import count

LEAST, LEAST_RUNS, SHARE = 5, 3, 0.1
"""Failures without which there is nothing to say: so many, in so many runs, and so much of all."""

BAD_ENDINGS = {
    "stuck": "look at its last steps: what the model repeats is what a tool does not tell it",
    "refused": "read the refusals; the instructions, or the task, ask for what the model will not do",
    "empty_reply": "try another model or tool choice: this one says nothing",
    "truncated_reply": "raise Settings.max_output_tokens, or ask for less in one reply",
    "context_overflow": "bound results (max_result), or let the transcript be made smaller (compaction)",
    "model_error": "read the errors: `tenlines show`; a request that is refused is refused again",
    "tool_limit": "raise Limits.tool_calls, or find out what is called so often",
    "budget": "raise Limits.dollars or Limits.tokens, or make the runs cheaper: see what else is advised",
    "deadline": "raise Limits.seconds, or find out what takes so long: `tenlines cost`",
    "journal_error": "look at the journal: `tenlines doctor`",
}
"""Endings that are failures -> what to do. A cap is another matter; a cancel, or a question to a person, is none."""

BAD_OUTCOMES = {
    "tool_error": "mend the tool, or let its error say what to do instead",
    "timeout": "make it faster, or give it more time (timeout_s)",
    "invalid_arguments": "say in its description and its types what it takes; an example helps most",
    "unknown_tool": "there is no such tool: name it so in none of the instructions, or add it under this name",
    "in_doubt": "make it idempotent, or give it a reconcile function: nobody knows what became of these calls",
}
"""Outcomes that are failures -> what to do."""


class EndingLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Runs of a group that ended in one way after as many steps."""

    status: str
    step: int
    runs: int
    example: str


class OutcomeLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Calls of a tool that failed in one way."""

    tool: str
    outcome: str
    calls: int
    of: int
    """All calls of the tool."""
    example: str


class _Failure:
    def __init__(self) -> None:
        self.times, self.runs, self.examples, self.worth = 0, 0, Examples(), NOTHING


class Failures:
    """Takes runs of a group."""

    def __init__(self) -> None:
        self._runs = 0
        self._ended: dict[tuple[str, int], Examples] = {}
        self._at, self._calls = Counter[tuple[str, int]](), Counter[str]()
        self._endings, self._outcomes = dict[str, _Failure](), dict[tuple[str, str], _Failure]()

    def take(self, run: Run) -> None:
        """Count how a run and its calls ended."""
        self._runs += 1
        place = (run.ledger.status or "open", run.steps)
        self._at[place] += 1
        self._ended.setdefault(place, Examples()).add(run.run_id)
        if place[0] in BAD_ENDINGS:
            failure = self._endings.setdefault(place[0], _Failure())
            failure.times, failure.worth = failure.times + 1, failure.worth.plus(run.spent)
            failure.examples.add(run.run_id)
        self._take_calls(run)

    def _take_calls(self, run: Run) -> None:
        made = Counter(call.line.step for call in run.calls)
        steps = {line.step: line for line in run.ledger.steps}
        failed = set[tuple[str, str]]()
        for call in run.calls:
            self._calls[call.tool] += 1
            outcome, step = str(call.outcome), call.line.step
            if outcome not in BAD_OUTCOMES:
                continue
            key = (call.tool, outcome)
            failure = self._outcomes.setdefault(key, _Failure())
            request = of_step(steps[step]).times(1 / made[step])
            failure.worth = failure.worth.plus(request).plus(run.worth(call.line.carried))
            failure.times += 1
            failure.examples.add(run.run_id)
            failed.add(key)
        for key in failed:
            self._outcomes[key].runs += 1

    # --- the view -------------------------------------------------------------------------------------

    def endings(self) -> list[EndingLine]:
        """How runs ended and after how many steps, the most frequent first."""
        lines = [
            EndingLine(status=status, step=step, runs=runs, example=self._ended[status, step].runs[0])
            for (status, step), runs in self._at.items()
        ]
        return sorted(lines, key=lambda line: (-line.runs, line.status, line.step))

    def outcomes(self) -> list[OutcomeLine]:
        """How calls failed, by tool, the most frequent first."""
        lines = [
            OutcomeLine(
                tool=tool,
                outcome=outcome,
                calls=failure.times,
                of=self._calls[tool],
                example=failure.examples.runs[0],
            )
            for (tool, outcome), failure in self._outcomes.items()
        ]
        return sorted(lines, key=lambda line: (-line.calls, line.tool, line.outcome))

    def findings(self, group: str) -> list[Finding]:
        """Where so much fails that it is worth a look."""
        found = [
            self._of_ending(group, status, failure)
            for status, failure in self._endings.items()
            if failure.times >= max(LEAST, SHARE * self._runs)
        ]
        return found + [
            self._of_tool(group, tool, outcome, failure)
            for (tool, outcome), failure in self._outcomes.items()
            if failure.runs >= LEAST_RUNS and failure.times >= max(LEAST, SHARE * self._calls[tool])
        ]

    def _of_ending(self, group: str, status: str, failure: _Failure) -> Finding:
        steps = Counter({step: runs for (said, step), runs in self._at.items() if said == status})
        step, often = min(steps.items(), key=lambda item: (-item[1], item[0]))
        return _finding(
            group,
            status,
            failure,
            f"{count(failure.times, 'run')} of {self._runs:,} ({percent(failure.times, self._runs)}) ended as "
            f"`{status}`, {often:,} of them after step {step}",
            BAD_ENDINGS[status],
        )

    def _of_tool(self, group: str, tool: str, outcome: str, failure: _Failure) -> Finding:
        all_calls = self._calls[tool]
        return _finding(
            group,
            f"{tool}: {outcome}",
            failure,
            f"{failure.times:,} of {count(all_calls, 'call')} ({percent(failure.times, all_calls)}), in "
            f"{count(failure.runs, 'run')}, ended as `{outcome}`",
            BAD_OUTCOMES[outcome],
        )


def _finding(group: str, subject: str, failure: _Failure, seen: str, do: str) -> Finding:
    return Finding(
        kind="failures",
        group=group,
        subject=subject,
        seen=seen,
        do=do,
        saves=f"{worth_words(failure.worth)} were used for it",
        tokens=failure.worth.tokens,
        dollars=failure.worth.dollars,
        sure="the counts are exact; what a better tool or limit would change is not known",
        runs=tuple(failure.examples.runs),
    )
