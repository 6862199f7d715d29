"""A workflow in place of an agent: its stages, and what it would cost. All costs are estimates.

An agent sends everything at each step, so its input grows with the square of the steps. A workflow has one model call a
stage, and each sees only what it needs: the task, and the results that its arguments come from. A stage whose arguments
are constants, or stand in earlier results, needs no model call at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenlines.advise.facts import Worth
from tenlines.advise.findings import Finding, percent, worth_words
from tenlines.advise.origins import Origin, Source
from tenlines.advise.paths import COVERED, Path, Paths, PathSeen
from tenlines.advise.survival import wilson
from tenlines.core.transcript import JsonValue, Usage
from tenlines.trace.redaction import Redaction
from tenlines.trace.words import count

FRAME = 200
"""Tokens that a stage's own instructions are taken to have."""


class Argument(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An argument of a stage, and where it comes from."""

    tool: str
    name: str
    type: str
    """In the words of JSON Schema; "" where the tool does not say."""
    source: Source
    stage: int | None
    """The stage whose result it is taken from, from 0."""
    value: JsonValue
    """Of a constant; else None."""
    words: str


class Stage(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A stage of a workflow."""

    tools: tuple[str, ...]
    fewest: int
    most: int
    """Calls that the runs made in it."""
    arguments: tuple[Argument, ...]
    asks: bool
    """Whether a model call is needed for its arguments."""
    input_tokens: int
    """Of that call; 0 without one."""
    output_tokens: int
    result_tokens: int
    """Of what its tools return."""

    @property
    def is_loop(self) -> bool:
        """Whether a tool of it is called more than once."""
        return self.most > len(self.tools)


class Way(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One path through a workflow."""

    runs: int
    stages: tuple[Stage, ...]
    loops: tuple[tuple[int, int], ...]
    """Stretches of several stages that came again: the first and the last, from 0."""
    input_tokens: int
    output_tokens: int
    """Of all model calls, the answer's included."""


class Workflow(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What would replace the agent, beside what the agent costs."""

    group: str
    answered: int
    covered: int
    """Of them: runs that took one of its ways."""
    entropy: float
    """How much the paths of all answered runs differ, in bits."""
    ways: tuple[Way, ...]
    """The most frequent first."""
    agent_tokens: int
    flow_tokens: int
    """Of an average run."""
    is_measured: bool
    """Whether the provider counted the agent's tokens; else they are an estimate too."""
    agent_dollars: float | None
    flow_dollars: float | None
    runs: tuple[str, ...]
    """Examples."""


def workflow_of(group: str, paths: Paths, redaction: Redaction) -> Workflow | None:
    """The workflow that the runs of a group took; None where there is none."""
    seen = paths.covering()
    if not seen:
        return None
    ways = tuple(_way(one, paths, redaction) for one in seen)
    covered = sum(one.runs for one in seen)
    spent = seen[0].spent
    for one in seen[1:]:
        spent = spent.plus(one.spent)
    agent, flow = spent.times(1 / covered), _cost(ways, covered, paths)
    return Workflow(
        group=group,
        answered=paths.answered,
        covered=covered,
        entropy=round(paths.entropy(), 3),
        ways=ways,
        agent_tokens=agent.tokens,
        flow_tokens=flow.tokens,
        is_measured=all(one.is_measured for one in seen),
        agent_dollars=agent.dollars,
        flow_dollars=flow.dollars,
        runs=tuple(seen[0].examples.runs),
    )


def _cost(ways: Sequence[Way], covered: int, paths: Paths) -> Worth:
    """Of an average run, with no cache."""
    total = Worth()
    for way in ways:
        calls = [(stage.input_tokens, stage.output_tokens) for stage in way.stages if stage.asks]
        calls.append(
            (way.input_tokens - sum(one for one, _ in calls), way.output_tokens - sum(one for _, one in calls))
        )
        for taken, written in calls:
            dollars = None if paths.price is None else paths.price.of(Usage(input=taken, output=written))
            total = total.plus(Worth(taken + written, dollars).times(way.runs / covered))
    return total


def _way(seen: PathSeen, paths: Paths, redaction: Redaction) -> Way:
    results = [round(one.result_tokens / seen.runs) for one in seen.stages]
    stages = tuple(_stage(place, seen, paths, redaction) for place in range(len(seen.path)))
    asked = [stage for stage in stages if stage.asks]
    answer = FRAME + round(seen.task_tokens / seen.runs) + sum(results)
    return Way(
        runs=seen.runs,
        stages=stages,
        loops=tuple(sorted(seen.loops)),
        input_tokens=sum(stage.input_tokens for stage in asked) + answer,
        output_tokens=sum(stage.output_tokens for stage in asked) + round(seen.answer_tokens / seen.runs),
    )


def _stage(place: int, seen: PathSeen, paths: Paths, redaction: Redaction) -> Stage:
    stage, tools = seen.stages[place], seen.path[place]
    origins = seen.origins.of(place)
    is_loop = stage.most > len(tools)
    asks = is_loop or any(one.source in ("task", "model") for one in origins)
    needs = {one.stage for one in origins if one.stage is not None}
    if place and any(one.source == "model" for one in origins):
        needs.add(place - 1)  # what it wrote it wrote after that
    results = sum(round(seen.stages[one].result_tokens / seen.runs) for one in needs)
    return Stage(
        tools=tools,
        fewest=stage.fewest,
        most=stage.most,
        arguments=tuple(_argument(one, paths, redaction) for one in origins),
        asks=asks,
        input_tokens=FRAME + round(seen.task_tokens / seen.runs) + results if asks else 0,
        output_tokens=round(stage.output_tokens / seen.runs) if asks else 0,
        result_tokens=round(stage.result_tokens / seen.runs),
    )


def _argument(origin: Origin, paths: Paths, redaction: Redaction) -> Argument:
    shown = redaction.of({origin.argument: origin.value})
    return Argument(
        tool=origin.tool,
        name=origin.argument,
        type=paths.types.get(origin.tool, {}).get(origin.argument, ""),
        source=origin.source,
        stage=origin.stage,
        value=next(iter(shown.values())) if isinstance(shown, dict) else None,
        words=origin.words,
    )


def path_words(path: Path) -> str:
    """`search, get + track`."""
    return ", ".join(" + ".join(stage) for stage in path) or "no tool"


def finding(flow: Workflow) -> Finding:
    """What it says to whoever reads the advice."""
    low, _ = wilson(flow.covered, flow.answered)
    worth = _saved(flow)
    ways = "one path" if len(flow.ways) == 1 else f"{len(flow.ways)} paths"
    main = path_words(tuple(stage.tools for stage in flow.ways[0].stages))
    return Finding(
        kind="workflow",
        group=flow.group,
        subject=main,
        seen=f"{flow.covered:,} of {count(flow.answered, 'answered run')} took {ways}: {main}"
        + (", ..." if len(flow.ways) > 1 else ""),
        do="write the flowchart as a program: plain functions, one model call a stage; the skeleton is here (--code)",
        saves=_saves(flow, worth),
        tokens=max(0, worth.tokens),
        dollars=None if worth.dollars is None else max(0.0, worth.dollars),
        sure=f"at least {low:.0%} of such runs take these paths, with 95% confidence ({COVERED:.0%} had to be seen); "
        f"the cost as a workflow is an estimate, with {FRAME} tokens of instructions a stage and no cache",
        runs=flow.runs,
    )


def _saved(flow: Workflow) -> Worth:
    """What all the runs would have saved; less than nothing where a cache makes the agent cheaper."""
    tokens = flow.agent_tokens - flow.flow_tokens
    if flow.agent_dollars is None or flow.flow_dollars is None:
        return Worth(tokens, None).times(flow.covered)
    return Worth(tokens, flow.agent_dollars - flow.flow_dollars).times(flow.covered)


def _saves(flow: Workflow, worth: Worth) -> str:
    each = f"a run takes about {flow.agent_tokens:,} tokens now and {flow.flow_tokens:,} as a workflow"
    if worth.dollars is not None and worth.dollars <= 0:
        return f"{each}; no dollars, because a cache makes most of the agent's tokens cheap; but it cannot go astray"
    if worth.tokens <= 0:
        return f"{each}: no tokens, but it cannot go astray"
    less = percent(flow.agent_tokens - flow.flow_tokens, flow.agent_tokens)
    return f"{each} ({less} less); for all of them {worth_words(worth)}"


def description(flow: Workflow) -> str:
    """What its flowchart shows, in sentences."""
    told = []
    for way in flow.ways:
        path = path_words(tuple(stage.tools for stage in way.stages))
        told.append(f"{way.runs:,} of {flow.answered:,} answered runs: the task, then {path}, then the answer.")
    return " ".join(told)
