"""Wasted repeats: the same call with the same result, made again in the same run."""

from __future__ import annotations

from tenlines.advise.facts import NOTHING, Call, Run, of_step
from tenlines.advise.findings import Examples, Finding, percent, worth_words
from tenlines.core.outcomes import canonical
from tenlines.core.repeats import signature
from tenlines.trace.words import count

LEAST_REPEATS, LEAST_RUNS, SHARE = 5, 3, 0.05
"""Repeats of a tool, in so many runs, that are so much of its calls."""


class _Tool:
    def __init__(self) -> None:
        self.calls = self.repeats = self.runs = self.changing = 0
        """`changing`: the same call, and another result than before."""
        self.worth, self.examples = NOTHING, Examples()


class Repeated:
    """Takes runs of a group."""

    def __init__(self) -> None:
        self._tools: dict[str, _Tool] = {}

    def take(self, run: Run) -> None:
        """Count the repeats of a run. What a `repeatable` tool does is its job."""
        exempt = {spec.name for spec in run.start.tools if spec.repeatable}
        seen, asked, found = set[int](), set[tuple[str, str]](), list[Call]()
        for call in run.calls:
            if call.outcome is None or call.tool in exempt:
                continue
            tool = self._tools.setdefault(call.tool, _Tool())
            tool.calls += 1
            arguments = call.raw if call.arguments is None else canonical(call.arguments)
            key = signature(call.tool, arguments, call.outcome, call.text).digest
            if key in seen:
                found.append(call)
            elif (call.tool, arguments) in asked:
                tool.changing += 1
            seen.add(key)
            asked.add((call.tool, arguments))
        self._enter(run, found)

    def _enter(self, run: Run, found: list[Call]) -> None:
        made: dict[int, int] = {}
        for call in run.calls:
            made[call.line.step] = made.get(call.line.step, 0) + 1
        asked = {line.step: line for line in run.ledger.steps}
        for call in found:
            tool, step = self._tools[call.tool], asked[call.line.step]
            tool.repeats += 1
            request = of_step(step).times(1 / made[step.step])
            tool.worth = tool.worth.plus(request).plus(run.worth(call.line.carried))
            tool.examples.add(run.run_id)
        for name in {call.tool for call in found}:
            self._tools[name].runs += 1

    def findings(self, group: str) -> list[Finding]:
        """The tools that are called again for nothing."""
        return [self._finding(group, name, tool) for name, tool in sorted(self._tools.items()) if _is_waste(tool)]

    def _finding(self, group: str, name: str, tool: _Tool) -> Finding:
        if tool.changing:
            do = (
                "it is polled: its result changes in the end. Let the tool wait until something changed, or mark it "
                "@tool(repeatable=True), so that polling does not count as a loop"
            )
        else:
            do = (
                "its result never changed within a run: say so in its description (`the same arguments give the same "
                "result`), and let its result say what to do next"
            )
        return Finding(
            kind="repeats",
            group=group,
            subject=name,
            seen=f"{tool.repeats:,} of its {tool.calls:,} calls ({percent(tool.repeats, tool.calls)}), in "
            f"{count(tool.runs, 'run')}, were made before in the same run and gave the same result",
            do=do,
            saves=worth_words(tool.worth),
            tokens=tool.worth.tokens,
            dollars=tool.worth.dollars,
            sure="that they repeat is exact; their cost is their part of the request that asked for them, and an "
            "estimate of what their results were in later ones",
            runs=tuple(tool.examples.runs),
        )


def _is_waste(tool: _Tool) -> bool:
    return tool.repeats >= LEAST_REPEATS and tool.runs >= LEAST_RUNS and tool.repeats >= SHARE * tool.calls
