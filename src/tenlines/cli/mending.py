"""Transcripts repaired piece by piece: what is to be written, and what was changed in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tenlines.cli.diffs import Hunk, body_hunks, line_hunks
from tenlines.cli.inputs import Lines, Whole, placed
from tenlines.cli.outputs import encoded
from tenlines.core.transcript import JsonValue
from tenlines.wire.checking import Checker
from tenlines.wire.converting import as_body
from tenlines.wire.documents import Notice, Record
from tenlines.wire.repairing import Repairer, curable, repair
from tenlines.wire.rules import Change
from tenlines.wire.targets import Goal
from tenlines.wire.turns import Turn


class Piece(NamedTuple):
    """A part of a transcript that is finished."""

    out: bytes
    line: int
    changes: tuple[Change, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    left: int = 0
    """Errors that are still in it."""


def mended(item: Whole | Lines, goal: Goal, *, warnings: bool) -> Iterator[Piece | Notice]:
    """A transcript, repaired: in one piece, or with one message a line as it is read."""
    if isinstance(item, Lines):
        return _LinesMender(item, goal, warnings=warnings).run()
    return _whole(item, goal, warnings=warnings)


def _whole(item: Whole, goal: Goal, *, warnings: bool) -> Iterator[Piece]:
    field = goal.format.list_field
    body = as_body(item.value, goal.format)
    done = repair(body, goal.format, goal.profile, warnings=warnings)
    # messages alone stay messages alone, unless something has to stand beside them now
    value = done.body[field] if body is not item.value and done.body.keys() == {field} else done.body
    hunks = tuple(body_hunks(body, done.body, field)) if done.changes else ()
    left = sum(one.severity == "error" for one in done.left)
    yield Piece(encoded(value, item.style, one_line=bool(item.path)), item.line, done.changes, hunks, left)


class _LinesMender:
    """Repairs one message a line: no more of them in memory than what may still change."""

    def __init__(self, item: Lines, goal: Goal, *, warnings: bool) -> None:
        self._item, self._format = item, goal.format
        self._repairer = Repairer(goal.format, curable(goal.format, goal.profile, warnings=warnings))
        self._checker = Checker(goal.format, goal.profile)
        self._waiting: deque[tuple[Turn, Record]] = deque()
        self._line = 1

    def run(self) -> Iterator[Piece | Notice]:
        """All of them; what could not be read goes through."""
        for record in self._item.records:
            self._line = record.line
            if isinstance(record, Notice):
                yield record
                continue
            turn = self._format.unfold(record.value, f"line {record.line}")
            self._waiting.append((turn, record))
            finished = list(self._repairer.take(turn))
            if finished:
                yield self._piece(finished)
        last = self._piece(list(self._repairer.close()), is_last=True)
        yield last._replace(left=last.left + sum(one.severity == "error" for one in self._checker.close()))

    def _piece(self, turns: list[Turn], *, is_last: bool = False) -> Piece:
        records = {id(turn): record for turn, record in self._waiting}
        values = [self._value(turn, records.get(id(turn))) for turn in turns]
        out = b"".join(self._written(turn, value, records) for turn, value in zip(turns, values, strict=True))
        left = sum(one.severity == "error" for turn in turns for one in self._checker.take(turn))
        old = self._read_up_to(self._line if is_last else max(placed(turn.path, 0)[0] for turn in turns))
        hunks: tuple[Hunk, ...] = ()
        if [id(turn) for turn in turns] != [id(turn) for turn, _ in old]:
            numbers = [record.line for _, record in old]
            hunks = tuple(line_hunks([record.value for _, record in old], values, numbers))
        changes = tuple(self._repairer.changes)
        self._repairer.changes.clear()
        return Piece(out, self._line, changes, hunks, left)

    def _value(self, turn: Turn, record: Record | None) -> JsonValue:
        return self._format.fold(turn) if record is None else record.value

    def _written(self, turn: Turn, value: JsonValue, records: dict[int, Record]) -> bytes:
        """What nobody touched goes as it came, to the byte."""
        record = records.get(id(turn))
        return record.data + b"\n" if record and record.data else encoded(value, self._item.style, one_line=True)

    def _read_up_to(self, line: int) -> list[tuple[Turn, Record]]:
        """What was read up to a line and is not waiting any more: it was written, or left out."""
        found: list[tuple[Turn, Record]] = []
        while self._waiting and self._waiting[0][1].line <= line:
            found.append(self._waiting.popleft())
        return found
