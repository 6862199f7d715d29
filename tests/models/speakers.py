"""The provider's side of Chat Completions, Responses and Anthropic Messages, for `scenarios`."""

from __future__ import annotations

import json
from typing import Any

from scenarios import Call, Said, sse

from tenlines.models.anthropic import Anthropic
from tenlines.models.openai_compatible import OpenAICompatible
from tenlines.ports import Model
from tenlines.wire.anthropic.format import FORMAT as ANTHROPIC
from tenlines.wire.openai_chat.format import FORMAT as CHAT
from tenlines.wire.openai_responses.format import FORMAT as RESPONSES


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
    artefact = ""
    can_hang_up = True

    def model(self, url: str) -> Model:
        return OpenAICompatible("m-1", f"{url}/v1", profile=self.profile)

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


class ResponsesSpeaker:
    """OpenAI Responses."""

    format = RESPONSES
    profile = RESPONSES.profile({"model": "gpt-5.6"})
    content_type = "text/event-stream; charset=utf-8"
    busy = 503
    refusal = ("No tool output found for function call call_2.", "OAI-R-4")
    overflow = "Your input exceeds the context window of this model. Please adjust your input and try again."
    artefact = "gAAAAABthought"
    can_hang_up = True

    def model(self, url: str) -> Model:
        return OpenAICompatible("gpt-5.6", f"{url}/v1", api="responses", profile=self.profile)

    def wants_stream(self, path: str, body: Any) -> bool:
        assert path == "/v1/responses"
        return bool(body.get("stream"))

    def whole(self, said: Said) -> Any:
        return _response(said, "completed", _items(said))

    def events(self, said: Said) -> list[bytes]:
        events: list[Any] = [{"type": "response.created", "response": _response(said, "in_progress", [])}]
        for index, item in enumerate(_items(said)):
            events += _item_events(item, index)
        events.append({"type": "response.completed", "response": self.whole(said)})
        numbered = [{"sequence_number": number, **event} for number, event in enumerate(events)]
        return [sse(event, event["type"]) for event in numbered]

    def error(self, status: int, message: str) -> Any:
        return {"error": {"message": message, "type": "invalid_request_error" if status == 400 else "e", "code": None}}

    def error_event(self) -> bytes:
        return sse({"type": "error", "code": "server_error", "message": "Overloaded", "param": None}, "error")


def _items(said: Said) -> list[Any]:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABthought"}
    part = {"type": "output_text", "text": said.text, "annotations": []}
    items: list[Any] = [thought]
    items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for number, call in enumerate(said.calls):
        arguments = json.dumps(call.arguments)
        named = {"call_id": call.id, "name": call.name, "arguments": arguments}
        items.append({"type": "function_call", "id": f"fc_{number}", "status": "completed", **named})
    return items


def _response(said: Said, status: str, items: list[Any]) -> Any:
    usage = {
        "input_tokens": said.input_tokens,
        "input_tokens_details": {"cached_tokens": said.cached_tokens},
        "output_tokens": said.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": said.input_tokens + said.output_tokens,
    }
    response = {"id": "resp_1", "object": "response", "model": "gpt-5.6", "status": status, "output": items}
    return {**response, "error": None, "incomplete_details": None, "usage": usage if status == "completed" else None}


def _item_events(item: Any, index: int) -> list[Any]:
    at = {"output_index": index, "item_id": item["id"]}
    begun, inner = {**item, "status": "in_progress"}, list[Any]()
    if item["type"] == "message":
        begun["content"] = []
        text, here = item["content"][0]["text"], {**at, "content_index": 0}
        empty = {"type": "output_text", "text": "", "annotations": []}
        inner.append({"type": "response.content_part.added", **here, "part": empty})
        inner += [{"type": "response.output_text.delta", **here, "delta": word} for word in _words(text)]
        inner.append({"type": "response.output_text.done", **here, "text": text})
        inner.append({"type": "response.content_part.done", **here, "part": item["content"][0]})
    elif item["type"] == "function_call":
        begun["arguments"] = ""
        kind = "response.function_call_arguments"
        inner += [{"type": f"{kind}.delta", **at, "delta": part} for part in _halves(item["arguments"])]
        inner.append({"type": f"{kind}.done", **at, "arguments": item["arguments"]})
    first = {"type": "response.output_item.added", "output_index": index, "item": begun}
    last = {"type": "response.output_item.done", "output_index": index, "item": item}
    return [first, *inner, last]


class AnthropicSpeaker:
    """Anthropic Messages, of a model that thinks."""

    format = ANTHROPIC
    profile = ANTHROPIC.profile({"model": "claude-opus-5"})
    content_type = "text/event-stream; charset=utf-8"
    busy = 529
    refusal = (
        "messages.63: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_x. Each "
        "`tool_use` block must have a corresponding `tool_result` block in the next message.",
        "ANT-13",
    )
    overflow = "prompt is too long: 210000 tokens > 200000 maximum"
    artefact = "EqQBCkYIBxgCKkDsigned"
    can_hang_up = True

    def model(self, url: str) -> Model:
        return Anthropic("claude-opus-5", base_url=url, profile=self.profile)

    def wants_stream(self, path: str, body: Any) -> bool:
        assert path == "/v1/messages"
        return bool(body.get("stream"))

    def whole(self, said: Said) -> Any:
        return {**_message(said), "content": _blocks(said), "stop_reason": _anthropic_reason(said)}

    def events(self, said: Said) -> list[bytes]:
        events: list[Any] = [{"type": "message_start", "message": _message(said)}, {"type": "ping"}]
        for index, block in enumerate(_blocks(said)):
            events += _block_events(block, index)
        ending = {"stop_reason": _anthropic_reason(said), "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": said.output_tokens}})
        events.append({"type": "message_stop"})
        return [sse(event, event["type"]) for event in events]

    def error(self, status: int, message: str) -> Any:
        kinds = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error"}
        kinds |= {429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}

    def error_event(self) -> bytes:
        return sse({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")


def _message(said: Said) -> Any:
    usage = {
        "input_tokens": said.input_tokens - said.cached_tokens,
        "cache_read_input_tokens": said.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": said.output_tokens,
    }
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}


def _blocks(said: Said) -> list[Any]:
    blocks: list[Any] = [{"type": "thinking", "thinking": "Hm.", "signature": "EqQBCkYIBxgCKkDsigned"}]
    blocks.append({"type": "text", "text": said.text})
    return blocks + [
        {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": call.arguments}
        for call in said.calls
    ]


def _block_events(block: Any, index: int) -> list[Any]:
    kind, deltas = block["type"], list[Any]()
    begun = {**block, **{"text": {"text": ""}, "tool_use": {"input": {}}}.get(kind, {"thinking": "", "signature": ""})}
    if kind == "text":
        deltas = [{"type": "text_delta", "text": word} for word in _words(block["text"])]
    elif kind == "tool_use":
        halves = _halves(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", *halves)]
    else:
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    first = {"type": "content_block_start", "index": index, "content_block": begun}
    middle = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [first, *middle, {"type": "content_block_stop", "index": index}]


def _anthropic_reason(said: Said) -> str:
    return "tool_use" if said.calls else "end_turn"
