"""The provider's side of Chat Completions, Responses and Anthropic Messages, for `scenarios`."""

from __future__ import annotations

import json
from typing import Any

from scenarios import Call, Said, sse

from tenlines.models.openai_compatible import OpenAICompatible
from tenlines.ports import Model
from tenlines.wire.openai_chat.format import FORMAT as CHAT


class ChatSpeaker:
    """OpenAI Chat Completions."""

    format = CHAT
    profile = CHAT.profile()
    content_type = "text/event-stream; charset=utf-8"
    busy = 503
    refusal = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: call_2",
        "OAI-C-8",
    )
    overflow = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9009 tokens."
    can_hang_up = True

    def model(self, url: str) -> Model:
        return OpenAICompatible("m-1", f"{url}/v1")

    def wants_stream(self, path: str, body: Any) -> bool:
        assert path == "/v1/chat/completions"
        return bool(body.get("stream"))

    def whole(self, said: Said) -> Any:
        message: dict[str, Any] = {"role": "assistant", "content": said.text}
        if said.calls:
            message["tool_calls"] = [_chat_call(call) for call in said.calls]
        choice = {"index": 0, "message": message, "finish_reason": _chat_reason(said)}
        return {"id": "x", "object": "chat.completion", "model": "m-1", "choices": [choice], "usage": _chat_usage(said)}

    def events(self, said: Said) -> list[bytes]:
        deltas: list[Any] = [{"role": "assistant", "content": ""}, *({"content": word} for word in _words(said.text))]
        for index, call in enumerate(said.calls):
            arguments = json.dumps(call.arguments)
            head = {"name": call.name, "arguments": ""}
            deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": head}]})
            for part in _halves(arguments):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": _chat_reason(said)}]})
        chunks.append({"choices": [], "usage": _chat_usage(said)})
        return [*(sse({"id": "x", "model": "m-1", **chunk}) for chunk in chunks), sse("[DONE]")]

    def error(self, status: int, message: str) -> Any:
        return {"error": {"message": message, "type": "invalid_request_error" if status == 400 else "e", "code": None}}

    def error_event(self) -> bytes:
        return sse({"error": {"message": "Overloaded", "type": "server_error", "code": 503}})


def _chat_call(call: Call) -> Any:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _chat_reason(said: Said) -> str:
    return "tool_calls" if said.calls else "stop"


def _chat_usage(said: Said) -> Any:
    return {
        "prompt_tokens": said.input_tokens,
        "completion_tokens": said.output_tokens,
        "prompt_tokens_details": {"cached_tokens": said.cached_tokens},
    }


def _words(text: str) -> list[str]:
    return text.replace(" ", "\0 ").split("\0")


def _halves(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]
