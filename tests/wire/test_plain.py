"""A history that is handed in: plain dicts, or whatever a provider or a framework writes."""

from __future__ import annotations

from typing import Any

import pytest

from tenlines import Agent
from tenlines.core.history import first_fault
from tenlines.core.transcript import Assistant, Result, System, Text, User
from tenlines.errors import ConfigError
from tenlines.wire.plain import read_history

ANTHROPIC = [
    {"role": "user", "content": "Weather in Paris?"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "18C", "is_error": False}],
    },
]
GEMINI = [
    {"role": "user", "parts": [{"text": "Weather in Paris?"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Paris"}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"output": "18C"}}}]},
]
ITEMS = [
    {"role": "user", "content": "Weather in Paris?"},
    {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Paris"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "18C"},
]
LANGCHAIN = [
    {"type": "human", "content": "Weather in Paris?"},
    {"type": "ai", "content": "", "tool_calls": [{"name": "weather", "args": {"city": "Paris"}, "id": "c1"}]},
    {"type": "tool", "content": "18C", "tool_call_id": "c1", "name": "weather"},
]


@pytest.mark.parametrize(
    "history", [ANTHROPIC, GEMINI, ITEMS, LANGCHAIN], ids=["anthropic", "gemini", "items", "langchain"]
)
def test_a_history_of_any_form_is_taken_with_its_calls(history: list[Any]) -> None:
    found = read_history(history)
    asked = found.messages[1]
    assert isinstance(asked, Assistant)
    assert [(call.name, call.arguments.replace(" ", "")) for call in asked.calls] == [("weather", '{"city":"Paris"}')]
    assert isinstance(found.messages[2], Result)
    assert found.messages[2].text == "18C"
    assert first_fault(found.messages) == ""
    assert "taken as" in found.remarks[0]


def test_plain_dicts_and_messages_of_ours_are_taken_as_they_are() -> None:
    plain = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert read_history(plain) == ((System("s"), User((Text("hi"),))), ())
    assert read_history([User((Text("hi"),)), {"role": "assistant", "content": "x"}]).remarks == ()


@pytest.mark.parametrize("history", ["hi", {"role": "user"}, [{"kind": "nonsense"}], [7]])
def test_what_is_no_history_is_said(history: Any) -> None:
    with pytest.raises(ConfigError):
        read_history(history)


def test_what_was_decided_stands_in_the_first_event() -> None:
    result = Agent(["It is 18C."], journal=None).run_sync("So?", messages=ANTHROPIC)
    assert result.answer == "It is 18C."
    assert "anthropic" in result.repairs[0]
