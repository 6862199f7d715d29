"""One message a line is repaired as a whole request is: the same verdicts, the same bytes where all is well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenlines.cli.inputs import Lines
from tenlines.cli.mending import Piece, mended
from tenlines.cli.outputs import Style
from tenlines.wire.documents import Notice, Record
from tenlines.wire.formats import FORMATS
from tenlines.wire.recognising import Recognised
from tenlines.wire.targets import Goal, as_history

VECTORS = Path(__file__).parent.parent / "vectors" / "protocol.jsonl"
NAMES = {"bedrock_converse": "bedrock", "openai_compat": "openai_chat"}


def cases() -> Iterator[Any]:
    for line in VECTORS.read_text().splitlines():
        row = json.loads(line)
        format = FORMATS.get(NAMES.get(row["format"], row["format"]))
        messages = row["request_fragment"].get(format.list_field) if format else None
        is_stored = "previous_response_id" in row["request_fragment"]  # the beginning is at the other side
        if isinstance(messages, list) and messages and not is_stored and "origin" not in (row.get("context") or {}):
            yield pytest.param(row, format, messages, id=row["id"])


def run(messages: list[Any], goal: Goal, *, warnings: bool = False) -> list[Piece]:
    records: list[Record | Notice] = [
        Record(one, line, json.dumps(one).encode()) for line, one in enumerate(messages, 1)
    ]
    item = Lines(Recognised(goal.format.name, (), ""), messages, iter(records), Style())
    return [one for one in mended(item, goal, warnings=warnings) if isinstance(one, Piece)]


@pytest.mark.parametrize(("row", "format", "messages"), [*cases()])
def test_lines_of_every_vector(row: Any, format: Any, messages: list[Any]) -> None:
    context = {key: value for key, value in (row.get("context") or {}).items() if key != "origin"}
    goal = as_history(Goal(format, format.profile(context), ""))
    pieces = run(messages, goal)
    out = b"".join(piece.out for piece in pieces)
    if row["valid"]:
        assert [change for piece in pieces for change in piece.changes] == []
        assert out == b"".join(json.dumps(one).encode() + b"\n" for one in messages)
        assert not any(piece.hunks for piece in pieces)
        return
    left = sum(piece.left for piece in pieces)
    if left:  # an error that comes of what only does harm
        again = run([json.loads(line) for line in out.splitlines()], goal, warnings=True)
        assert sum(piece.left for piece in again) == 0
    changed = out != b"".join(json.dumps(one).encode() + b"\n" for one in messages)
    assert bool(changed) == any(piece.changes for piece in pieces) == any(piece.hunks for piece in pieces)
