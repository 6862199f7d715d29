"""Where the arguments of calls come from: compared over the runs of one path, as far as that is plain.

An argument is a constant where it was the same in nearly all runs; it is from the task, or from the result of an
earlier stage, where its value stands in that text in nearly all runs. Everything else the model wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from tenlines.advise.facts import Call
from tenlines.core.outcomes import canonical
from tenlines.core.transcript import JsonValue

NEARLY_ALL = 0.95
LOOKED_AT = 200_000
"""Characters of a text in which a value is looked for."""
SHORTEST = 2
"""Characters of a value that is looked for: a shorter one stands everywhere."""
TOLD_APART = 20
"""Values of an argument that are told apart: one with more is no constant."""
LONGEST = 200
"""Characters of a value that is looked for, or shown."""

Source: TypeAlias = Literal["constant", "task", "result", "model"]


class Origin(NamedTuple):
    """Where an argument comes from."""

    tool: str
    argument: str
    source: Source
    stage: int | None
    """The stage whose result it is taken from, from 0; None where it is from elsewhere."""
    value: JsonValue
    """Of a constant; else None."""

    @property
    def words(self) -> str:
        """In words: `from the result of stage 1`."""
        match self.source:
            case "constant":
                return "always the same"
            case "task":
                return "from the task"
            case "result":
                return f"from the result of stage {(self.stage or 0) + 1}"
            case "model":
                return "written by the model"


class _Seen:
    def __init__(self) -> None:
        self.values: dict[str, JsonValue] = {}
        self.same = Counter[str]()
        """Runs in which all calls were given that value."""
        self.runs = self.task = 0
        self.results = Counter[int]()

    def enter_value(self, values: list[JsonValue]) -> None:
        written = {_written(value) for value in values}
        if len(written) == 1 and len({*self.values, *written}) <= TOLD_APART:
            (one,) = written
            self.values[one] = values[0]
            self.same[one] += 1


class Origins:
    """Takes the runs of a path."""

    def __init__(self, path: Sequence[object]) -> None:
        self._stages: list[dict[tuple[str, str], _Seen]] = [{} for _ in path]

    def take(self, task: str, stages: Sequence[Sequence[Call]]) -> None:
        """Look at the arguments of one run."""
        texts = [[call.text[:LOOKED_AT].casefold() for call in calls] for calls in stages]
        task = task[:LOOKED_AT].casefold()
        for place, calls in enumerate(stages):
            given: dict[tuple[str, str], list[JsonValue]] = {}
            for call in calls:
                for name, value in (call.arguments or {}).items():
                    given.setdefault((call.tool, name), []).append(value)
            for key, values in given.items():
                seen = self._stages[place].setdefault(key, _Seen())
                self._enter(seen, values, task, texts[:place])

    @staticmethod
    def _enter(seen: _Seen, values: list[JsonValue], task: str, before: list[list[str]]) -> None:
        seen.runs += 1
        seen.enter_value(values)
        wanted = [_wanted(value) for value in values]
        if not all(wanted):
            return
        seen.task += all(_stands(one, task) for one in wanted)
        for place, texts in enumerate(before):
            seen.results[place] += all(any(_stands(one, text) for text in texts) for one in wanted)

    def of(self, stage: int) -> list[Origin]:
        """The arguments of a stage, by tool and name."""
        return [_origin(tool, name, seen) for (tool, name), seen in sorted(self._stages[stage].items())]


def _origin(tool: str, name: str, seen: _Seen) -> Origin:
    enough = NEARLY_ALL * seen.runs
    constant = max(seen.same, key=lambda one: seen.same[one], default="")
    if seen.same[constant] >= enough and seen.runs > 1:
        return Origin(tool, name, "constant", None, seen.values[constant])
    if seen.task >= enough:
        return Origin(tool, name, "task", None, None)
    for place in sorted(seen.results, reverse=True):  # the newest that has it
        if seen.results[place] >= enough:
            return Origin(tool, name, "result", place, None)
    return Origin(tool, name, "model", None, None)


def _written(value: JsonValue) -> str:
    """A value as text that is the same for the same value."""
    return canonical({"": value})[:LONGEST]


def _wanted(value: JsonValue) -> str:
    """What is looked for; "" for a value that would be found by chance, or not as it stands."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = str(value).strip().casefold()
    return text if SHORTEST <= len(text) <= LONGEST else ""


def _stands(wanted: str, text: str) -> bool:
    """Whether it stands there as a word, or as several."""
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not (_goes_on(text[at - 1 : at], wanted[0]) or _goes_on(text[end : end + 1], wanted[-1])):
            return True
        at = text.find(wanted, at + 1)
    return False


def _goes_on(beside: str, edge: str) -> bool:
    """Whether the sign beside the edge of a word belongs to it."""
    return (beside.isalnum() or beside == "_") and (edge.isalnum() or edge == "_")
