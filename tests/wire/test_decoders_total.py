"""Any JSON that a server may send is a reply or an error of ours, and what becomes of it can be stored."""

from __future__ import annotations

from typing import Any

import msgspec
from hostile import JSON, mostly, objects
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import Reply
from tenlines.errors import RemoteError
from tenlines.wire import constrained
from tenlines.wire.errors import error_from
from tenlines.wire.openai_chat.decoding import decode_response
from tenlines.wire.openai_chat.stream import StreamDecoder

CALL = objects(
    id=mostly(st.text(max_size=3)),
    index=JSON,
    extra_content=JSON,
    function=objects(name=mostly(st.text(max_size=3)), arguments=JSON),
)
MESSAGE = objects(
    content=JSON, refusal=JSON, tool_calls=mostly(st.lists(CALL, max_size=3)), function_call=JSON, reasoning=JSON
)
USAGE = objects(prompt_tokens=JSON, completion_tokens=JSON, prompt_tokens_details=JSON, completion_tokens_details=JSON)
RESPONSE = objects(
    choices=mostly(st.lists(objects(message=MESSAGE, delta=MESSAGE, finish_reason=JSON), max_size=2)),
    usage=USAGE,
    model=JSON,
    error=JSON,
)


def is_sound(reply: Reply) -> None:
    assert msgspec.json.decode(msgspec.json.encode(reply), type=dict)


@given(RESPONSE)
def test_a_whole_response(data: Any) -> None:
    try:
        is_sound(decode_response(data))
    except RemoteError as error:
        assert str(error)  # noqa: PT017


@given(st.lists(RESPONSE, max_size=4))
def test_a_stream(chunks: list[Any]) -> None:
    decoder = StreamDecoder()
    try:
        for data in chunks:
            decoder.feed(data)
        is_sound(decoder.finish())
    except RemoteError as error:
        assert str(error)  # noqa: PT017


CONTENT = st.one_of(
    st.text(max_size=8),
    JSON.map(lambda value: msgspec.json.encode(str(value)).decode()),
    st.sampled_from(
        [
            '{"tool": "f", "arguments": {"x": 1}}',
            '{"tool": 1}',
            '{"final_answer": 3}',
            '{"final_answer": "a\\ud83d"}',
            '{"final_answer": "a \\x"',
            '```json\n{"final_answer": "b"}\n```',
            '{"tool": "f", "arguments": {"x": "\\ud83d"}}',
        ]
    ),
)
ENDINGS = st.sampled_from(["stop", "length", "content_filter", None, "odd"])


@given(CONTENT, ENDINGS)
def test_a_constrained_response(content: str, ending: Any) -> None:
    chat = decode_response({"choices": [{"message": {"content": content}, "finish_reason": ending}]})
    is_sound(constrained.read_reply(chat))


@given(st.lists(CONTENT, max_size=3), ENDINGS)
def test_a_constrained_stream(contents: list[str], ending: Any) -> None:
    decoder = constrained.StreamDecoder("p", "m")
    for content in contents:
        decoder.feed({"choices": [{"delta": {"content": content}}]}).text.encode()
    decoder.feed({"choices": [{"finish_reason": ending or "stop"}]})
    is_sound(decoder.finish())


ERROR_BODY = objects(
    error=objects(
        message=mostly(st.text(max_size=9)),
        code=JSON,
        type=JSON,
        metadata=objects(raw=mostly(st.sampled_from(["{", '{"error": {"message": "inner"}}']))),
    ),
    message=JSON,
)


@given(
    st.none() | st.integers(200, 599),
    ERROR_BODY,
    st.dictionaries(
        st.sampled_from(["Retry-After", "retry-after-ms", "date", "x-should-retry"]),
        st.sampled_from(["", "1", "-1", "nan", "1e999", "true", "false", "Wed, 21 Oct 2026 07:28:00 GMT", "soon"]),
    ),
)
def test_an_error_answer(status: int | None, body: Any, headers: dict[str, str]) -> None:
    error = error_from(status, body, headers)
    assert isinstance(error, RemoteError)
    assert str(error)
    assert getattr(error, "retry_after_s", None) is None or 0 <= error.retry_after_s < 1e12  # type: ignore[attr-defined]
