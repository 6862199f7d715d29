"""The text protocol: awkward replies decided as written down, round trips, hostile text, and what a model is sent."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    Image,
    JsonObject,
    Message,
    Note,
    Opaque,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire.text_protocol.reading import MAX_CALLS, NO_ACTION, TOO_MANY, Style, parse
from tenlines.wire.text_protocol.rendering import Encoder, harmless, render, told, write_calls
from tenlines.wire.text_protocol.showing import Shown

SAMPLES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "samples" / "text_replies.jsonl").read_text(encoding="utf-8").splitlines()
]
STYLES: list[Style] = ["react", "json"]


# --- written replies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=[f"{one['id']}" for one in SAMPLES])
def test_each_written_reply_is_decided_as_written(sample: dict[str, Any]) -> None:
    found = parse(sample["reply"], sample["style"])
    assert [[call.name, call.arguments] for call in found.calls] == sample.get("calls", [])
    assert found.text == sample["text"]
    assert (sample.get("problem") or "") in found.problem
    assert bool(found.problem) == ("problem" in sample)
    assert any(sample["remark"] in one for one in found.remarks) if "remark" in sample else found.remarks == ()


def test_the_written_replies_are_counted(say: Any) -> None:
    kinds = {
        "calls": sum(bool(one.get("calls")) for one in SAMPLES),
        "malformed": sum("problem" in one for one in SAMPLES),
    }
    say(f"written replies of the text protocol: {len(SAMPLES)}, of which {kinds}")
    assert len(SAMPLES) >= 60
