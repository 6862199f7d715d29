"""The paths of runs: which tools were called, in which order; loops drawn together, so that one path is one shape."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple, TypeAlias

from tenlines.advise.facts import NOTHING, Call, Run
from tenlines.advise.findings import Examples
from tenlines.advise.origins import Origins
from tenlines.core.limits import Price
from tenlines.core.transcript import estimate_text

Stage: TypeAlias = tuple[str, ...]
"""The tools that one reply called, sorted: `("search", "search")` are two calls."""
Path: TypeAlias = tuple[Stage, ...]

LEAST_ANSWERED = 30
"""Answered runs without which no path is called a workflow: where 30 of 30 took it, one that takes another is rarer
than 1 in 10, with 95 % confidence (the rule of three)."""
COVERED = 0.9
"""Part of the answered runs that the paths of a workflow have to cover."""
MOST_WAYS = 3
"""Paths that it may have."""
LEAST_STAGES = 2
"""Stages with tools on its most frequent path: one tool in a loop is what an agent is for."""
LONGEST_LOOP = 3
"""Stages that a loop may have."""
LONGEST_RUN = 60
"""Steps with calls of a run whose path is looked at."""
MOST_PATHS = 1_000
"""Paths that are told apart; where there are more, none is a workflow."""


class Walk(NamedTuple):
    """How one run went."""

    path: Path
    calls: tuple[tuple[Call, ...], ...]
    """The calls of each stage, all rounds of a loop together."""
    loops: frozenset[tuple[int, int]]
    """Stretches of more than one stage that came again at once: the first and the last stage."""


class _Part:
    """A stage of a path that is being drawn together."""

    def __init__(self, calls: list[Call]) -> None:
        self.stage = tuple(sorted(call.tool for call in calls))
        self.calls = list(calls)


def walk(run: Run) -> Walk:
    """The path of a run. Where stages come again at once, alone or several together, they are one loop."""
    final = {spec.name for spec in run.start.tools if spec.final}
    steps = ([call for call in calls if call.tool not in final] for calls in run.by_step())
    parts = [_Part(calls) for calls in steps if calls]
    loops = list[tuple[_Part, _Part]]()
    for length in range(1, LONGEST_LOOP + 1):
        _draw_together(parts, length, loops)
    places = {id(part): place for place, part in enumerate(parts)}
    stretches = {
        (places[id(first)], places[id(last)]) for first, last in loops if id(first) in places and id(last) in places
    }
    return Walk(
        tuple(_one_of_each(part.stage) for part in parts),
        tuple(tuple(part.calls) for part in parts),
        frozenset(one for one in stretches if one[0] != one[1]),
    )


def _one_of_each(stage: Stage) -> Stage:
    return tuple(sorted(set(stage)))


def _draw_together(parts: list[_Part], length: int, loops: list[tuple[_Part, _Part]]) -> None:
    """Make one of stretches of this length that are equal and follow one another."""
    place = 0
    while place + 2 * length <= len(parts):
        first, second = parts[place : place + length], parts[place + length : place + 2 * length]
        if [_one_of_each(one.stage) for one in first] != [_one_of_each(one.stage) for one in second]:
            place += 1
            continue
        for one, other in zip(first, second, strict=True):
            one.calls += other.calls
        del parts[place + length : place + 2 * length]
        if length > 1:
            loops.append((first[0], first[-1]))


class StageSeen:
    """A stage of a path, over the runs that took it."""

    def __init__(self) -> None:
        self.fewest, self.most = 1 << 30, 0
        self.result_tokens = self.output_tokens = 0

    def take(self, calls: tuple[Call, ...], outputs: dict[int, int]) -> None:
        """Count one run."""
        self.fewest, self.most = min(self.fewest, len(calls)), max(self.most, len(calls))
        self.result_tokens += sum(call.line.tokens for call in calls)
        self.output_tokens += sum(outputs.get(step, 0) for step in {call.line.step for call in calls})


class PathSeen:
    """A path, over the runs that took it."""

    def __init__(self, path: Path) -> None:
        self.path, self.runs, self.examples = path, 0, Examples()
        self.stages = [StageSeen() for _ in path]
        self.origins = Origins(path)
        self.loops = Counter[tuple[int, int]]()
        self.is_measured = True
        self.spent, self.task_tokens, self.answer_tokens = NOTHING, 0, 0

    def take(self, run: Run, way: Walk) -> None:
        """Count one run."""
        self.runs += 1
        self.examples.add(run.run_id)
        self.spent = self.spent.plus(run.spent)
        self.is_measured = self.is_measured and run.is_measured
        self.task_tokens += round(run.rate * estimate_text(run.task))
        outputs = {line.step: (line.usage.output or 0) if line.usage else 0 for line in run.ledger.steps}
        self.answer_tokens += outputs[max(outputs)] if outputs else 0
        for stage, calls in zip(self.stages, way.calls, strict=True):
            stage.take(calls, outputs)
        self.loops.update(way.loops)
        self.origins.take(run.task, way.calls)


class Paths:
    """Takes runs of a group."""

    def __init__(self) -> None:
        self.answered = 0
        self.seen: dict[Path, PathSeen] = {}
        self.price: Price | None = None
        """Of the newest run that has one."""
        self.types: dict[str, dict[str, str]] = {}
        """Tool -> argument -> type, in the words of JSON Schema; those of the newest run."""

    def take(self, run: Run) -> None:
        """Count a run that was answered."""
        if not run.is_answered:
            return
        self.answered += 1
        self.price = run.ledger.price or self.price
        way = walk(run) if len({call.line.step for call in run.calls}) <= LONGEST_RUN else None
        if way is None or (way.path not in self.seen and len(self.seen) >= MOST_PATHS):
            return
        self.seen.setdefault(way.path, PathSeen(way.path)).take(run, way)
        for spec in run.start.tools:
            self.types[spec.name] = _types(spec.parameters)

    def covering(self) -> list[PathSeen]:
        """The few paths that nearly all answered runs took, the most frequent first; none where there are no such."""
        ranked = sorted(self.seen.values(), key=lambda one: (-one.runs, one.path))
        taken, covered = list[PathSeen](), 0
        for one in ranked[:MOST_WAYS]:
            if covered >= COVERED * self.answered:
                break
            taken.append(one)
            covered += one.runs
        if covered < COVERED * self.answered or self.answered < LEAST_ANSWERED:
            return []
        return taken if len(taken[0].path) >= LEAST_STAGES else []

    def entropy(self) -> float:
        """How much the paths differ, in bits: 0 where there is one. Runs whose path was not looked at count as one."""
        counts = [one.runs for one in self.seen.values()]
        counts.append(self.answered - sum(counts))
        return sum(-one / self.answered * math.log2(one / self.answered) for one in counts if one)

    @property
    def waiting(self) -> str:
        """Why there is nothing to say yet, or ""."""
        if self.answered >= LEAST_ANSWERED:
            return ""
        return f"{self.answered:,} answered run{'' if self.answered == 1 else 's'}, {LEAST_ANSWERED} are needed"


def _types(parameters: object) -> dict[str, str]:
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict):
        return {}
    kinds = {name: one.get("type") if isinstance(one, dict) else None for name, one in properties.items()}
    return {name: kind if isinstance(kind, str) else "" for name, kind in kinds.items()}
