"""Where the arguments of calls come from: compared over the runs of one path, as far as that is plain.

An argument is a constant where it was the same in nearly all runs; it is from the task, or from the result of an
earlier stage, where its value stands in that text in nearly all runs. Everything else the model wrote.
"""

from __future__ import annotations

import re
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
    def __init__(self, value: JsonValue) -> None:
        self.value, self.written = value, _written(value)
        self.runs = self.same = self.task = 0
        self.results = Counter[int]()


class Origins:
    """Takes the runs of a path."""

    def __init__(self, path: Sequence[object]) -> None:
        self._stages: list[dict[tuple[str, str], _Seen]] = [{} for _ in path]

    def take(self, task: str, stages: Sequence[Sequence[Call]]) -> None:
        """Look at the arguments of one run."""
        texts = [[call.text[:LOOKED_AT] for call in calls] for calls in stages]
        task = task[:LOOKED_AT]
        for place, calls in enumerate(stages):
            given: dict[tuple[str, str], list[JsonValue]] = {}
            for call in calls:
                for name, value in (call.arguments or {}).items():
                    given.setdefault((call.tool, name), []).append(value)
            for key, values in given.items():
                seen = self._stages[place].setdefault(key, _Seen(values[0]))
                self._enter(seen, values, task, texts[:place])

    @staticmethod
    def _enter(seen: _Seen, values: list[JsonValue], task: str, before: list[list[str]]) -> None:
        seen.runs += 1
        seen.same += all(_written(value) == seen.written for value in values)
        patterns = [_pattern(value) for value in values]
        seen.task += all(one is not None and one.search(task) for one in patterns)
        for place, texts in enumerate(before):
            stands = all(one is not None and any(one.search(text) for text in texts) for one in patterns)
            seen.results[place] += stands

    def of(self, stage: int) -> list[Origin]:
        """The arguments of a stage, by tool and name."""
        return [_origin(tool, name, seen) for (tool, name), seen in sorted(self._stages[stage].items())]


def _origin(tool: str, name: str, seen: _Seen) -> Origin:
    enough = NEARLY_ALL * seen.runs
    if seen.same >= enough and seen.runs > 1:
        return Origin(tool, name, "constant", None, seen.value)
    if seen.task >= enough:
        return Origin(tool, name, "task", None, None)
    for place in sorted(seen.results, reverse=True):  # the newest that has it
        if seen.results[place] >= enough:
            return Origin(tool, name, "result", place, None)
    return Origin(tool, name, "model", None, None)


def _written(value: JsonValue) -> str:
    """A value as text that is the same for the same value."""
    return canonical({"": value})[:LONGEST]


def _pattern(value: JsonValue) -> re.Pattern[str] | None:
    """What is looked for; None for a value that would be found by chance, or not as it stands."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    if not SHORTEST <= len(text) <= LONGEST:
        return None
    return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
