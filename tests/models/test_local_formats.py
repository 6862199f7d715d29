"""The official SDKs against a real server, in the three formats that it speaks: calls, results, streams, the cache."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenlines import Agent, Limits
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Assistant, Message, Result, System, Text, ToolCall, User
from tenlines.errors import ContextTooLong
from tenlines.models import weights
from tenlines.models.anthropic import Anthropic
from tenlines.models.openai_compatible import OpenAICompatible
from tenlines.ports import Model
from tenlines.testing import RecordingObserver
from tenlines.wire.anthropic.format import FORMAT as ANTHROPIC
from tenlines.wire.openai_chat.format import FORMAT as CHAT
from tenlines.wire.openai_responses.format import FORMAT as RESPONSES

pytestmark = [pytest.mark.slow, pytest.mark.local_model]

Request = Callable[..., CallModel]
FORMATS = ["chat", "responses", "anthropic"]
SERVER = {"server": "llama.cpp"}
WEATHER = ToolSpec(
    "get_weather",
    "The weather of a city, now.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
)


def model_of(format: str, address: str, max_tokens: int = 60) -> Model:
    if format == "chat":
        profile = CHAT.profile(SERVER)
        return OpenAICompatible("m", address, profile=profile, temperature=0.0, max_tokens=max_tokens)
    if format == "responses":
        profile = RESPONSES.profile(SERVER)
        return OpenAICompatible("m", address, api="responses", profile=profile, temperature=0.0, max_tokens=max_tokens)
    return Anthropic("m", base_url=address, profile=ANTHROPIC.profile(SERVER), temperature=0.0, max_tokens=max_tokens)


@pytest.fixture(scope="module")
def calling_server(local_model: Model) -> Iterator[str]:
    """The 1.5B model behind a template with which it makes calls. (`local_model`: only that the weights are there.)"""
    path = weights.fetch(weights.KNOWN["local"])
    script = Path(__file__).parent / "templated_server.py"
    command = [sys.executable, str(script), str(path), "--context", "4096", "--threads", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"{process.stdout.readline().strip()}/v1"
        process.stdin.close()
        process.wait(20)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_run_with_a_call_that_the_server_parsed(calling_server: str, format: str, streamed: bool) -> None:
    asked: list[str] = []

    def get_weather(city: str) -> str:
        """The weather of a city, now."""
        asked.append(city)
        return "7 degrees and fog"

    seen = RecordingObserver()
    model = model_of(format, calling_server)
    agent = Agent(model, [get_weather], journal="memory", observers=[seen] if streamed else [], limits=Limits(steps=4))
    result = agent.run_sync("What is the weather in Bergen?")
    assert asked == ["Bergen"]
    assert "7" in (result.answer or "")
    replies = [one.reply for one in agent.journal.read(result.run_id) if isinstance(one, ev.ModelReplied)]
    assert [reply.stop for reply in replies] == ["tool_calls", "end"]
    first, second = (reply.usage for reply in replies)
    assert first is not None
    assert second is not None
    assert first.input is not None
    assert second.cache_read is not None
    assert second.cache_read >= first.input - 16  # the prefix was kept: what was sent begins as the last request did
    if streamed:
        shown = "".join(delta.text for delta in seen.deltas if delta.step == 2)
        assert shown == result.answer


def history() -> list[Message]:
    call = ToolCall("callAAAA1", "get_weather", '{"city": "Oslo"}')
    asked = User((Text("And now? One word."),))
    told = Result("callAAAA1", "get_weather", "ok", (Text("3 degrees, rain"),))
    return [
        System("You are brief. " * 12),
        User((Text("What is the weather in Oslo?"),)),
        Assistant("", (call,)),
        told,
        Assistant("It rains."),
        asked,
    ]


@pytest.mark.timeout(600)
def test_the_three_formats_count_tokens_alike(calling_server: str, request_for: Request) -> None:
    inputs: dict[str, Any] = {}
    for format in FORMATS:
        for on_delta in (None, lambda _: None):
            request = request_for(*history(), tools=(WEATHER,))
            usage = model_of(format, calling_server, 4).session().complete(request, on_delta).usage
            assert usage is not None
            inputs[f"{format} {'streamed' if on_delta else 'whole'}"] = (usage.input, usage.output)
            if len(inputs) > 1:
                assert usage.cache_read is not None
                assert usage.input is not None
                assert 0 < usage.cache_read <= usage.input
    assert len(set(inputs.values())) == 1, inputs


@pytest.mark.parametrize("format", FORMATS)
def test_a_real_overflow_is_known_for_what_it_is(small_server: str, request_for: Request, format: str) -> None:
    with pytest.raises(ContextTooLong) as caught:
        model_of(format, small_server).session().complete(request_for(User((Text("word " * 9000),))), None)
    assert caught.value.limit_tokens == 8192
    assert (caught.value.sent_tokens or 0) > 9000
