"""Tools whose results flood the window: each later request holds them again."""

from __future__ import annotations

import msgspec

from tenlines.advise.facts import NOTHING, Run
from tenlines.advise.findings import Examples, Finding, Sizes, percent, worth_words

SHARE = 0.25
"""Part of all input tokens that a tool's results have to be."""
LARGE = 2_000
"""Tokens that a tool's p95 has to have: what is smaller is a result as it should be."""
LEAST_CALLS, LEAST_RUNS = 20, 10
BOUND = 1_000
"""Tokens of a result in the reckoning of what a bound saves."""


class ToolLine(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """All calls of one tool in a group."""

    tool: str
    calls: int
    runs: int
    p50: int
    p95: int
    """Tokens of its results; estimates."""
    carried: int
    """Input tokens that its results were in all requests; an estimate."""
    share: float
    """Part of all input tokens, 0 to 1."""


class _Tool:
    def __init__(self) -> None:
        self.sizes, self.examples = Sizes(), Examples()
        self.calls = self.runs = self.carried = 0
        self.over = NOTHING
        """What a bound would have saved."""


class Floods:
    """Takes runs of a group."""

    def __init__(self) -> None:
        self._tools: dict[str, _Tool] = {}
        self._input = 0

    def take(self, run: Run) -> None:
        """Count the calls of a run."""
        self._input += run.input_tokens
        for name in {call.tool for call in run.calls}:
            self._tools.setdefault(name, _Tool()).runs += 1
        for call in run.calls:
            tool, line = self._tools[call.tool], call.line
            tool.calls, tool.carried = tool.calls + 1, tool.carried + line.carried
            tool.sizes.add(line.tokens)
            if line.tokens > BOUND:
                tool.over = tool.over.plus(run.worth(line.carried * (1 - BOUND / line.tokens)))
                tool.examples.add(run.run_id)

    def lines(self) -> list[ToolLine]:
        """The tools, what weighed most first."""
        lines = [self._line(name, tool) for name, tool in self._tools.items()]
        return sorted(lines, key=lambda line: (-line.carried, line.tool))

    def _line(self, name: str, tool: _Tool) -> ToolLine:
        return ToolLine(
            tool=name,
            calls=tool.calls,
            runs=tool.runs,
            p50=tool.sizes.quantile(0.5),
            p95=tool.sizes.quantile(0.95),
            carried=tool.carried,
            share=tool.carried / self._input if self._input else 0.0,
        )

    def findings(self, group: str) -> list[Finding]:
        """The tools that flood."""
        return [self._finding(group, line) for line in self.lines() if _floods(line)]

    def _finding(self, group: str, line: ToolLine) -> Finding:
        tool = self._tools[line.tool]
        return Finding(
            kind="flood",
            group=group,
            subject=line.tool,
            seen=f"its results are {percent(line.share, 1)} of all input tokens: half of them have {line.p50:,} tokens "
            f"or more, one in twenty {line.p95:,} or more ({line.calls:,} calls in {line.runs:,} runs)",
            do=f"bound them with @tool(max_result={BOUND}) and give the model read_result for the rest; or let its "
            "arguments ask for less (fields, a page, a filter)",
            saves=f"with at most {BOUND:,} tokens each: {worth_words(tool.over)}",
            tokens=tool.over.tokens,
            dollars=tool.over.dollars,
            sure="sizes are estimates from what the provider reported for each request; whether the model can do with "
            "less is not known: try it",
            runs=tuple(tool.examples.runs),
        )


def _floods(line: ToolLine) -> bool:
    is_often = line.calls >= LEAST_CALLS and line.runs >= LEAST_RUNS
    return is_often and line.share >= SHARE and line.p95 >= LARGE
