"""Bedrock over `boto3`, against a server on loopback that speaks, checks and breaks the format."""

from __future__ import annotations

import asyncio
import functools
import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import boto3
import botocore.session
import pytest
from botocore.config import Config
from botocore.loaders import create_loader
from botocore.stub import Stubber
from scenarios import SCRIPT, FormatServer, Raw, Said, Scenarios, Speaker

from tenlines.core.transcript import Image, Text, User
from tenlines.errors import (
    AuthRejected,
    ConfigError,
    ConnectionFailed,
    ContextTooLong,
    MalformedReply,
    ProtocolRejected,
    RateLimited,
)
from tenlines.models.bedrock import Bedrock
from tenlines.ports import Delta, Model
from tenlines.testing import FakeClock
from tenlines.wire.bedrock.format import FORMAT

pytestmark = pytest.mark.slow
"""Making a client of the package takes a tenth of a second."""

MODEL = "us.anthropic.claude-opus-5-20260301-v1:0"
CODES = {
    400: "ValidationException",
    401: "UnrecognizedClientException",
    404: "ResourceNotFoundException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}
THOUGHT: Any = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "EqQBsigned"}}}


def frame(kind: str, data: Any, message_type: str = "event") -> bytes:
    """One message of the binary encoding of event streams: lengths, headers, payload, checksums."""
    payload = json.dumps(data, ensure_ascii=False).encode()
    names = {f":{message_type}-type": kind, ":content-type": "application/json", ":message-type": message_type}
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in names.items()
    )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return head + struct.pack(">I", zlib.crc32(head))


class BedrockSpeaker:
    """The service's side of Converse, for a model that thinks."""

    format = FORMAT
    profile = FORMAT.profile({"model": MODEL})
    content_type = "application/vnd.amazon.eventstream"
    busy = 503
    refusal = ("Expected toolResult blocks at messages.2.content for the following Ids: tooluse_x", "BED-7")
    overflow = "Input is too long for requested model."
    artefact = "EqQBsigned"
    can_hang_up = False

    def model(self, url: str) -> Model:
        return Bedrock(MODEL, base_url=url, region="us-east-1")

    def wants_stream(self, path: str, body: Any) -> bool:
        assert path.startswith("/model/us.anthropic.claude-opus-5")
        return path.endswith("/converse-stream")

    def whole(self, said: Said) -> Any:
        calls = [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}} for call in said.calls]
        content = [THOUGHT, {"text": said.text}, *calls]
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": _reason(said),
            "usage": _usage(said),
            "metrics": {"latencyMs": 1},
        }

    def events(self, said: Said) -> list[bytes]:
        events: list[tuple[str, Any]] = [("messageStart", {"role": "assistant"})]
        deltas = [(0, {"reasoningContent": {"text": "Hm."}}), (0, {"reasoningContent": {"signature": "EqQBsigned"}})]
        deltas += [(1, {"text": word}) for word in said.text.replace(" ", "\0 ").split("\0")]
        events += [_delta(index, delta) for index, delta in deltas]
        for index, call in enumerate(said.calls, 2):
            start = {"toolUse": {"toolUseId": call.id, "name": call.name}}
            events.append(("contentBlockStart", {"contentBlockIndex": index, "start": start}))
            text = json.dumps(call.arguments)
            middle = len(text) // 2
            events += [_delta(index, {"toolUse": {"input": half}}) for half in (text[:middle], text[middle:])]
            events.append(("contentBlockStop", {"contentBlockIndex": index}))
        events.append(("messageStop", {"stopReason": _reason(said)}))
        events.append(("metadata", {"usage": _usage(said), "metrics": {"latencyMs": 1}}))
        return [frame(kind, data) for kind, data in events]

    def error(self, status: int, message: str) -> Any:
        return {"__type": CODES[status], "message": message}

    def error_event(self) -> bytes:
        return frame("serviceUnavailableException", {"message": "Too much to do."}, "exception")


def _delta(index: int, delta: Any) -> tuple[str, Any]:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": delta}


def _reason(said: Said) -> str:
    return "tool_use" if said.calls else "end_turn"


def _usage(said: Said) -> Any:
    new = said.input_tokens - said.cached_tokens
    counts = {"inputTokens": new, "outputTokens": said.output_tokens, "cacheReadInputTokens": said.cached_tokens}
    return {**counts, "cacheWriteInputTokens": 0, "totalTokens": said.input_tokens + said.output_tokens}


def user_client(url: str, **config: Any) -> Any:
    """A client as a user makes it, with all its retries."""
    return boto3.client("bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=Config(**config))


class UserClientSpeaker(BedrockSpeaker):
    """The same, for a client that the user made."""

    def model(self, url: str) -> Model:
        return Bedrock(MODEL, client=user_client(url))


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/credentials")


@pytest.fixture(scope="module", autouse=True)
def _one_loader() -> Iterator[None]:
    """The descriptions of the service (a megabyte) are read once, and not for each client."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", functools.cache(create_loader))
        yield


class TestBedrock(Scenarios):
    """With a client of ours."""

    speaker = BedrockSpeaker()


class TestUserClient(Scenarios):
    """With a client of the user's."""

    speaker = UserClientSpeaker()


# --- what is this client's own ------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[FormatServer]:
    """Follows the script."""
    made = FormatServer(BedrockSpeaker(), SCRIPT)
    yield made
    made.close()


NO_TOOLS = "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def answers(status: int, body: Any, **more: Any) -> Any:
    def fault(speaker: Speaker, said: Said, is_stream: bool) -> Raw:
        return Raw([body if isinstance(body, bytes) else json.dumps(body).encode()], status, **more)

    return fault


def test_a_request_as_it_goes_out(server: FormatServer, ask: Any, request_for: Any) -> None:
    model = Bedrock(MODEL, base_url=server.url, region="us-east-1", max_tokens=9, temperature=0.5, effort="low")
    ask(model, request_for(User((Text("look"), Image("image/png", b"\x89PNG")))))
    body = server.bodies[0]
    assert body["messages"][0]["content"][1] == {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}}
    assert body["inferenceConfig"] == {"maxTokens": 9, "temperature": 0.5}
    assert body["outputConfig"] == {"effort": "low"}


def test_the_thoughts_of_a_stream_are_shown(server: FormatServer, ask: Any) -> None:
    seen: list[Delta] = []
    reply = ask(Bedrock(MODEL, base_url=server.url, region="us-east-1"), None, seen.append)
    assert "".join(delta.reasoning for delta in seen) == "Hm."
    assert reply.opaque[0].payload == {"blocks": [THOUGHT, {"text": "Let me see, é."}, {"call": 0}]}


def test_redacted_thoughts_are_text_here_and_bytes_there(server: FormatServer, ask: Any, request_for: Any) -> None:
    redacted = {"reasoningContent": {"redactedContent": "AAEC"}}
    body = {**BedrockSpeaker().whole(SCRIPT[1]), "output": {"message": {"role": "assistant", "content": [redacted]}}}
    server.faults = {1: answers(200, body)}
    model = Bedrock(MODEL, base_url=server.url, region="us-east-1")
    reply = ask(model)
    assert reply.opaque[0].payload == {"blocks": [redacted]}


def test_a_block_that_the_sdk_does_not_know_is_left_out_and_it_is_said(server: FormatServer, ask: Any) -> None:
    content = [{"novel": {"x": 1}}, {"text": "hi"}]
    body = {**BedrockSpeaker().whole(SCRIPT[1]), "output": {"message": {"role": "assistant", "content": content}}}
    server.faults = {1: answers(200, body)}
    reply = ask(Bedrock(MODEL, base_url=server.url, region="us-east-1"))
    assert (reply.text, reply.opaque) == ("hi", ())
    assert "novel" in reply.remarks[0]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, {"__type": "ThrottlingException", "message": "slow down"}, RateLimited),
        (403, {"__type": "AccessDeniedException", "message": "no"}, AuthRejected),
        (400, {"__type": "ValidationException", "message": "Input is too long for requested model."}, ContextTooLong),
        (400, {"__type": "ValidationException", "message": NO_TOOLS}, ProtocolRejected),
        (200, b"<html>", MalformedReply),
    ],
)
def test_errors_have_names(server: FormatServer, ask: Any, status: int, body: Any, kind: type[Exception]) -> None:
    server.always = answers(status, body)
    with pytest.raises(kind):
        ask(Bedrock(MODEL, base_url=server.url, region="us-east-1"))
    assert len(server.bodies) == 1


def test_a_body_that_the_sdk_refuses_is_no_bug(server: FormatServer, ask: Any) -> None:
    with pytest.raises(Exception, match="maxTokens") as caught:
        ask(Bedrock(MODEL, base_url=server.url, region="us-east-1", max_tokens=0))
    assert getattr(caught.value, "status", None) == 400
    assert server.bodies == []


def test_silence_is_not_waited_for_longer_than_told(server: FormatServer, ask: Any, request_for: Any) -> None:
    server.holds.set()
    clock = FakeClock()
    model = Bedrock(MODEL, base_url=server.url, region="us-east-1", clock=clock)
    with pytest.raises(ConnectionFailed, match="in time"):
        ask(model, request_for(deadline_at=clock.now() + 0.3))


def test_without_a_region_or_credentials(monkeypatch: pytest.MonkeyPatch, server: FormatServer, ask: Any) -> None:
    with pytest.raises(ConfigError, match="needs a region"):
        Bedrock(MODEL)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AuthRejected, match="credentials"):
        ask(Bedrock(MODEL, base_url=server.url, region="us-east-1"))


def test_the_retries_of_a_users_client_are_off_here_and_on_elsewhere(server: FormatServer, ask: Any) -> None:
    client = user_client(server.url, retries={"total_max_attempts": 2, "mode": "standard"})
    server.always = answers(503, {"__type": "ServiceUnavailableException", "message": "no"})
    with pytest.raises(Exception, match="503"):
        ask(Bedrock(MODEL, client=client))
    assert len(server.bodies) == 1
    with pytest.raises(client.exceptions.ServiceUnavailableException):
        client.converse(modelId=MODEL, messages=[{"role": "user", "content": [{"text": "hi"}]}])
    assert len(server.bodies) == 3


def test_a_stubbed_client_and_one_that_only_looks_like_one(ask: Any) -> None:
    whole = BedrockSpeaker().whole(SCRIPT[1])
    client = user_client("http://127.0.0.1:9")
    with Stubber(client) as stub:
        stub.add_response("converse", whole)
        assert ask(Bedrock(MODEL, client=client)).text == "It is 5, é."

    class Fake:
        def converse(self, **body: Any) -> Any:
            return whole

    assert ask(Bedrock(MODEL, client=Fake())).text == "It is 5, é."


def test_names() -> None:
    assert Bedrock(MODEL, region="us-east-1").name == f"bedrock:{MODEL}"
    assert Bedrock(MODEL, region="us-east-1", base_url="http://127.0.0.1:9").name == f"http://127.0.0.1:9#{MODEL}"


def test_a_cancelled_run_is_left_at_once(server: FormatServer, request_for: Any) -> None:
    server.holds.set()

    async def main() -> None:
        model = Bedrock(MODEL, base_url=server.url, region="us-east-1", timeout_s=1)
        task = asyncio.create_task(model.session().acomplete(request_for(), None))
        assert await asyncio.to_thread(server.asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
