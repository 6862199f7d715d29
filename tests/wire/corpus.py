"""Replies of every provider as they come: whole and streamed, to be mutated and split."""

from __future__ import annotations

from typing import Any

Json = Any


def _chat(message: Json, reason: str) -> Json:
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    return {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage,
    }


def _chunk(delta: Json, reason: Json = None) -> Json:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _call(arguments: Json = '{"city":"Paris"}') -> Json:
    return {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": arguments}}


_CHAT_CALL = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [_call()]}
_CHAT_STREAM = [
    _chunk({"role": "assistant", "content": "Hé"}),
    _chunk({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "weather", "arguments": '{"city"'}}]}),
    _chunk({"tool_calls": [{"index": 0, "function": {"arguments": ':"Paris"}'}}]}),
    _chunk({}, "tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
]

_REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAAB"}
_SAID = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hé"}]}
_CALLED = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "weather",
    "arguments": '{"city":"Paris"}',
}
_RESPONSE = {
    "id": "resp_1",
    "model": "m",
    "status": "completed",
    "output": [_REASONING, _SAID, _CALLED],
    "usage": {"input_tokens": 9, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 4}},
}

_ANT_USAGE = {"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 4}
_ANT_BLOCKS = [
    {"type": "thinking", "thinking": "hm", "signature": "EqQBCkYIBxgC"},
    {"type": "text", "text": "Hé"},
    {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}},
]

_GEM_PARTS = [
    {"text": "Hé"},
    {"functionCall": {"name": "weather", "args": {"city": "Paris"}}, "thoughtSignature": "c2ln"},
]
_GEM_USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 2, "cachedContentTokenCount": 4}

_BED_BLOCKS = [
    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "EqQB"}}},
    {"text": "Hé"},
    {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Paris"}}},
]
_BED_USAGE = {"inputTokens": 5, "outputTokens": 3, "totalTokens": 8, "cacheReadInputTokens": 4}

WHOLE: dict[str, list[Json]] = {
    "openai_chat": [_chat(_CHAT_CALL, "tool_calls"), _chat({"role": "assistant", "content": "Hé"}, "stop")],
    "openai_responses": [_RESPONSE, {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}],
    "anthropic": [{"type": "message", "content": _ANT_BLOCKS, "stop_reason": "tool_use", "usage": _ANT_USAGE}],
    "gemini": [
        {
            "candidates": [{"content": {"role": "model", "parts": _GEM_PARTS}, "finishReason": "STOP"}],
            "usageMetadata": _GEM_USAGE,
        },
        {"promptFeedback": {"blockReason": "SAFETY"}},
    ],
    "bedrock": [
        {
            "output": {"message": {"role": "assistant", "content": _BED_BLOCKS}},
            "stopReason": "tool_use",
            "usage": _BED_USAGE,
        }
    ],
    "mistral": [
        _chat(
            {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
            "stop",
        ),
        _chat({"role": "assistant", "content": "", "tool_calls": [_call()]}, "tool_calls"),
    ],
    "cohere": [
        {
            "id": "c",
            "finish_reason": "TOOL_CALL",
            "message": {"role": "assistant", "tool_plan": "hm", "tool_calls": [_call()]},
            "usage": {"tokens": {"input_tokens": 9, "output_tokens": 3}},
        }
    ],
    "ollama": [
        {
            "model": "m",
            "message": {
                "role": "assistant",
                "content": "Hé",
                "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
            },
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 9,
            "eval_count": 3,
        }
    ],
}
"""Format -> whole responses."""

STREAMS: dict[str, list[list[Json]]] = {
    "openai_chat": [_CHAT_STREAM],
    "openai_responses": [
        [
            {"type": "response.created", "response": {"id": "resp_1", "model": "m", "output": []}},
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "message", "id": "msg_1", "content": []},
            },
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "item_id": "msg_1",
                "content_index": 0,
                "delta": "Hé",
            },
            {"type": "response.output_item.done", "output_index": 0, "item": _SAID},
            {"type": "response.output_item.added", "output_index": 1, "item": {**_CALLED, "arguments": ""}},
            {
                "type": "response.function_call_arguments.delta",
                "output_index": 1,
                "item_id": "fc_1",
                "delta": '{"city":"Paris"}',
            },
            {"type": "response.output_item.done", "output_index": 1, "item": _CALLED},
            {"type": "response.completed", "response": _RESPONSE},
        ]
    ],
    "anthropic": [
        [
            {"type": "message_start", "message": {"model": "m", "usage": _ANT_USAGE}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "EqQB"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "ping"},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
            },
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":'}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        ]
    ],
    "gemini": [
        [
            {"candidates": [{"content": {"role": "model", "parts": [part]}}], "usageMetadata": _GEM_USAGE}
            for part in _GEM_PARTS
        ]
        + [{"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "c2ln"}]}, "finishReason": "STOP"}]}]
    ],
    "bedrock": [
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hé"}}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}}},
            {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": '{"a":1}'}}}},
            {"contentBlockStop": {"contentBlockIndex": 1}},
            {"messageStop": {"stopReason": "tool_use"}},
            {"metadata": {"usage": _BED_USAGE}},
        ]
    ],
    "mistral": [_CHAT_STREAM],
    "cohere": [
        [
            {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant"}}},
            {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "hm"}}},
            {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": _call("")}}},
            {
                "type": "tool-call-delta",
                "index": 0,
                "delta": {"message": {"tool_calls": {"function": {"arguments": "{}"}}}},
            },
            {"type": "tool-call-end", "index": 0},
            {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {"tokens": {"input_tokens": 9}}}},
        ]
    ],
    "ollama": [
        [
            {"model": "m", "message": {"role": "assistant", "content": "Hé"}, "done": False},
            {
                "model": "m",
                "message": {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
                },
            },
            {
                "model": "m",
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": "stop",
                "eval_count": 3,
            },
        ]
    ],
}
"""Format -> streams, each a list of chunks."""
