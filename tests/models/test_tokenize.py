"""What we count of a local model's text and requests, against what its server counts."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Assistant, JsonObject, Message, Result, System, Text, ToolCall, User
from tenlines.counting import count_request, first_count, tokenizer_for

pytestmark = [pytest.mark.slow, pytest.mark.local_model]

SEARCH = ToolSpec(
    "search_orders",
    "Find the orders of a customer.",
    {
        "type": "object",
        "properties": {
            "customer": {"type": "string", "description": "Full name."},
            "state": {"type": "string", "enum": ["open", "sent", "lost"]},
        },
        "required": ["customer"],
    },
)
TEXTS = {
    "code": Path(__file__).read_text(),
    "numbers": "104.27,-3.00,9.5\n" * 50,
    "scripts": "人人生而自由 すべての人間は 모든 인간은 Люди सभी मनुष्यों كل الناس ég Å\n" * 5,
    "emoji": "😀👍🏽👩‍👩‍👧 ✅🚀 " * 20,
    "hex": bytes(range(256)).hex(),
    "spaces": "a  b   c\t\t\n\n\n   d" * 20,
}


def post(root: str, path: str, body: JsonObject) -> Any:
    request = urllib.request.Request(root + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def length(root: str, text: str, *, special: bool = False) -> int:
    body: JsonObject = {"content": text, "add_special": False, "parse_special": special}
    return len(post(root, "/tokenize", body)["tokens"])


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_is_as_many_tokens_as_the_server_says(small_server: str, kind: str) -> None:
    tokenizer = tokenizer_for("local:small")
    assert tokenizer is not None
    assert tokenizer.count(TEXTS[kind]) == length(small_server.removesuffix("/v1"), TEXTS[kind])


def asked(exchanges: int) -> list[Message]:
    messages: list[Message] = [System("You help in a shop."), User((Text("Where is the parcel of Ada Moss?"),))]
    for number in range(exchanges):
        messages.append(Assistant("", (ToolCall(f"{number}", SEARCH.name, '{"customer": "Ada Moss"}'),)))
        messages.append(Result(f"{number}", SEARCH.name, "ok", (Text('[{"order": 1042, "state": "lost"}]'),)))
    return messages


def as_chat(message: Message) -> JsonObject:
    match message:
        case Assistant(text, calls):
            listed: list[Any] = [
                {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
                for one in calls
            ]
            return {"role": "assistant", "content": text, "tool_calls": listed}
        case Result(call_id=call_id):
            return {"role": "tool", "tool_call_id": call_id, "content": message.text}
        case _:
            return {"role": "system" if isinstance(message, System) else "user", "content": message.text}


@pytest.mark.parametrize("exchanges", [0, 1, 10])
def test_a_request_is_about_as_many_tokens_as_the_servers_template_makes_of_it(
    small_server: str, exchanges: int, say: Callable[[str], None]
) -> None:
    root, messages = small_server.removesuffix("/v1"), asked(exchanges)
    about = {"name": SEARCH.name, "description": SEARCH.description, "parameters": SEARCH.parameters}
    body: Any = {"messages": [as_chat(one) for one in messages], "tools": [{"type": "function", "function": about}]}
    true = length(root, post(root, "/apply-template", body)["prompt"], special=True)
    tokenizer, first = tokenizer_for("local:small"), first_count("local:small", messages, [SEARCH])
    assert tokenizer is not None
    counted = count_request(tokenizer, messages, [SEARCH])
    assert first == (counted, "qwen3")
    say(f"counted {counted} tokens of a request that is {true} to the server")
    assert 0.95 < counted / true < 1.05
