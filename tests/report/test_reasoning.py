"""What can be read of reasoning, as each provider keeps it."""

from __future__ import annotations

import pytest

from tenlines.core.transcript import JsonValue, Opaque, Reply
from tenlines.report.reasoning import reasoning_of


@pytest.mark.parametrize(
    "payload",
    [
        {"thinking": "because"},
        {"blocks": [{"type": "thinking", "thinking": "because", "signature": "c2ln"}, {"text": 0}]},
        {"blocks": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "because"}], "id": "rs_1"}]},
        {"blocks": [{"thought": True, "text": "because"}, {"text": "the answer"}]},
        {"content": [{"reasoningContent": {"reasoningText": {"text": "because", "signature": "c2ln"}}}]},
        {"reasoning_content": "because"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "because"}]}]},
    ],
)
def test_the_words_are_found_and_nothing_else(payload: JsonValue) -> None:
    assert reasoning_of(Reply("x", opaque=(Opaque("p", "m", payload),))) == "because"


def test_what_is_encrypted_is_no_reasoning() -> None:
    payload: JsonValue = {"blocks": [{"type": "reasoning", "encrypted_content": "gAAAA", "summary": []}]}
    assert reasoning_of(Reply("x", opaque=(Opaque("openai", "m", payload),))) == ""
    assert reasoning_of(Reply("x")) == ""
