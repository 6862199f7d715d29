"""The real llama.cpp with real weights: speech, streams, the prefix cache, and tools."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tenlines import Agent, Limits
from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Assistant, JsonObject, Message, Result, System, Text, ToolCall, User
from tenlines.errors import ConfigError, ContextTooLong
from tenlines.models.local import LocalModel
from tenlines.models.openai_compatible import OpenAICompatible
from tenlines.ports import Delta, Model
from tenlines.tools.finish import partial

Request = Callable[..., CallModel]


@dataclass
class _Order:
    item: str
    cents: int


def params(**properties: str) -> JsonObject:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }


def user(text: str) -> User:
    return User((Text(text),))


# --- without a model --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_file_that_is_no_model_is_refused_with_llama_cpps_own_words(tmp_path: Path, request_for: Request) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    session = LocalModel(path, threads=1).session()
    with pytest.raises(ConfigError) as caught:
        session.complete(request_for(), None)
    assert f"could not serve {path}" in str(caught.value)
    assert f"failed to load model from {path}" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert "ollama:NAME" in str(caught.value)


# --- the small one ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.local_model
def test_the_real_server_answers_plain_and_streamed_alike(small_server: str, request_for: Request) -> None:
    model = OpenAICompatible("m", small_server, temperature=0.0, max_tokens=16)
    request = request_for(user("Say: hello"))
    plain = model.session().complete(request, None)
    shown: list[Delta] = []
    streamed = model.session().complete(request, shown.append)
    assert plain.text == streamed.text == "".join(delta.text for delta in shown)
    assert len(shown) > 1
    assert plain.usage is not None
    assert streamed.usage is not None
    assert (plain.usage.input, plain.usage.output) == (streamed.usage.input, streamed.usage.output)


@pytest.mark.slow
@pytest.mark.local_model
def test_the_prefix_cache_holds_over_steps(small_server: str, request_for: Request) -> None:
    tools = (ToolSpec("get_order", "Look up an order.", params(order_id="string")),)
    model = OpenAICompatible("m", small_server, temperature=0.0, max_tokens=32)
    session = model.session()
    messages: list[Message] = [System("You are a help desk. " * 10), user("What is in order 1042?")]
    first = session.complete(request_for(*messages, tools=tools, tool_choice="none"), None)
    call = ToolCall("c1", "get_order", '{"order_id": "1042"}')
    messages += [Assistant("", (call,)), Result("c1", "get_order", "ok", (Text("a lamp"),))]
    second = session.complete(request_for(*messages, tools=tools, tool_choice="none", new_from=3), None)
    assert first.usage is not None
    assert second.usage is not None
    assert first.usage.input is not None
    assert second.usage.cache_read is not None
    assert second.usage.cache_read >= first.usage.input - 16


@pytest.mark.slow
@pytest.mark.local_model
def test_a_real_overflow_of_the_context_is_known_for_what_it_is(small_server: str, request_for: Request) -> None:
    with pytest.raises(ContextTooLong):
        OpenAICompatible("m", small_server).session().complete(request_for(user("word " * 9000)), None)


@pytest.mark.slow
@pytest.mark.local_model
def test_hostile_schemas_are_taken_by_the_real_converter(small_server: str, request_for: Request) -> None:
    schema: JsonObject = {
        "$defs": {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}, "n": {"type": "integer"}}}},
        "type": "object",
        "properties": {
            "tree": {"$ref": "#/$defs/T"},
            "when": {"type": "string", "format": "date-time", "pattern": "(?i)x+"},
            "kind": {"enum": ["a", 1, None]},
            "free": {"type": "object", "additionalProperties": {"type": "number"}},
            "any": {},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "list": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        },
        "required": ["kind"],
    }
    model = OpenAICompatible("m", small_server, protocol="constrained", temperature=0.0, max_tokens=60)
    reply = model.session().complete(request_for(tools=(ToolSpec("f", "", schema),), tool_choice="required"), None)
    assert reply.stop in ("tool_calls", "length")
    for call in reply.calls:
        assert set(json.loads(call.arguments)) <= set(schema["properties"])  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.local_model
def test_replies_are_held_to_the_choice(small_server: str, request_for: Request) -> None:
    model = OpenAICompatible("m", small_server, protocol="constrained", temperature=0.0, max_tokens=40)
    tools = (ToolSpec("now", "What time it is."), ToolSpec("get_order", "Look up an order.", params(order_id="string")))
    ask = model.session().complete
    forced = ask(request_for(user("Say hello."), tools=tools, tool_choice="now"), None)
    assert [(call.name, call.arguments) for call in forced.calls] == [("now", "{}")]
    assert not ask(request_for(user("Look up order 7."), tools=tools, tool_choice="none"), None).calls


@pytest.mark.slow
@pytest.mark.local_model
def test_the_server_ends_with_the_process_that_started_it(small_server: str) -> None:
    code = (
        "from tenlines.models.local import LocalModel\n"
        "import sys, threading\n"
        "out = []\n"
        "t = threading.Thread(target=lambda: out.append(LocalModel('small', threads=1).address()))\n"
        "t.start(); t.join()\n"  # the thread that asked is gone; the server must not go with it
        "print(out[0], flush=True)\n"
        "sys.stdin.read()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdout is not None
        address = parent.stdout.readline().strip()
        (child,) = _children(parent.pid)
        assert OpenAICompatible("m", address, name="x").name == "x"
        assert _is_alive(child)
        parent.send_signal(signal.SIGKILL)
    for _ in range(200):
        if not _is_alive(child):
            return
        time.sleep(0.05)  # the kernel's doing, which no event tells us
    pytest.fail("the server outlived its parent")


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


# --- the order story, with the model that users get -------------------------------------------------

ORDERS = {
    "1042": {"items": ["blue kettle"], "state": "shipped", "tracking_id": "TRK77"},
    "1055": {"items": ["desk"], "state": "delivered", "tracking_id": "TRK12"},
}


def search_orders(customer: str) -> str:
    return json.dumps(["1042", "1055"] if customer.startswith("Alice") else [])


def get_order(order_id: str) -> str:
    return json.dumps(ORDERS[order_id]) if order_id in ORDERS else f"There is no order {order_id!r}."


def get_tracking(tracking_id: str) -> str:
    if tracking_id in ORDERS:
        return f"{tracking_id} is an order number. First get_order tells the tracking id, then get_tracking takes it."
    return "TRK77: in Hamburg, out for delivery" if tracking_id == "TRK77" else f"There is no parcel {tracking_id!r}."


def refund_order(order_id: str) -> str:
    return f"Order {order_id} was refunded."


FUNCTIONS: dict[str, Callable[..., str]] = {
    "search_orders": search_orders,
    "get_order": get_order,
    "get_tracking": get_tracking,
    "refund_order": refund_order,
}
TOOLS = (
    ToolSpec("search_orders", "Find the orders of a customer.", params(customer="string"), read_only=True),
    ToolSpec("get_order", "Look up an order: items, state, tracking id.", params(order_id="string"), read_only=True),
    ToolSpec(
        "get_tracking", "Where a parcel is now. Needs a tracking id.", params(tracking_id="string"), read_only=True
    ),
    ToolSpec("refund_order", "Refund an order.", params(order_id="string")),
)


def story(model: Model, request_for: Request, question: str) -> tuple[str, list[str]]:
    """The ten lines: ask, run, tell."""
    session, called, new_from = model.session(), list[str](), 0
    transcript: list[Message] = [user(question)]
    for step in range(1, 9):
        reply = session.complete(request_for(*transcript, tools=TOOLS, step=step, new_from=new_from), None)
        if not reply.calls:
            return reply.text, called
        (call,) = reply.calls
        called.append(call.name)
        transcript.append(Assistant("", (ToolCall(f"c{step}", call.name, call.arguments),)))
        new_from = len(transcript)
        text = FUNCTIONS[call.name](**json.loads(call.arguments))
        transcript.append(Result(f"c{step}", call.name, "ok", (Text(text),)))
    return "", called


@pytest.mark.slow
@pytest.mark.local_model
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("question", "needed", "words"),
    [
        ("Where is order 1042?", ["get_order", "get_tracking"], ["Hamburg"]),
        ("Where is the parcel of order 1042 now?", ["get_order", "get_tracking"], ["Hamburg"]),
        ("Which orders does Alice have?", ["search_orders"], ["1042", "1055"]),
    ],
)
def test_the_order_story(
    local_model: Model, request_for: Request, question: str, needed: list[str], words: list[str]
) -> None:
    answer, called = story(local_model, request_for, question)
    assert all(word in answer for word in words), (answer, called)
    assert set(needed) <= set(called)
    assert "refund_order" not in called  # nobody asked for it


@pytest.mark.slow
@pytest.mark.local_model
def test_the_local_model_streams_its_answer(local_model: Any, request_for: Request) -> None:
    shown: list[Delta] = []
    request = request_for(user("Say hello."), tools=TOOLS, tool_choice="none")
    reply = local_model.session().complete(request, shown.append)
    assert reply.text == "".join(delta.text for delta in shown)
    assert len(shown) > 1
    assert reply.usage is not None


@pytest.mark.slow
@pytest.mark.local_model
def test_an_answer_with_a_type_from_the_real_model(local_model: Model) -> None:
    seen: list[str] = []
    watching = SimpleNamespace(on_event=lambda event: None, on_delta=lambda delta: seen.append(delta.answer))
    agent = Agent(local_model, output=_Order, journal="memory", observers=[watching], limits=Limits(steps=3))
    result = agent.run_sync("Order 1042: one tea pot, 1250 cents.")
    assert (result.output.cents, "pot" in result.output.item.lower()) == (1250, True)
    assert [one.name for one in result.calls] == ["finish"]
    grown = [partial("".join(seen[:end])) for end in range(1, len(seen) + 1)]
    assert len([one for one in grown if one]) > 1, "it is seen while it is written"
    assert grown[-1] == {"item": result.output.item, "cents": 1250}
