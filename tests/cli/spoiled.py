"""One transcript with a fault in each form that the commands read: a call whose result is missing, or broken text."""

from __future__ import annotations

import json
from typing import Any

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
CHAT = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "user", "content": "two"},
    ],
}
RESPONSES = {
    "input": [
        {"role": "user", "content": "one"},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"role": "user", "content": "two"},
    ]
}
ANTHROPIC = {
    "max_tokens": 9,
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]},
        {"role": "user", "content": "two"},
    ],
}
GEMINI = {
    "contents": [
        {"role": "user", "parts": [{"text": "one"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"text": "two"}]},
    ]
}
BEDROCK = {
    "toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]},
    "messages": [
        {"role": "user", "content": [{"text": "one"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}}]},
        {"role": "user", "content": [{"text": "two"}]},
    ],
}
MISTRAL = {
    "model": "mistral-large-latest",
    "messages": [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "", "tool_calls": [{**CALL, "id": "abcdefgh1"}]},
        {"role": "user", "content": "two"},
    ],
}
LANGCHAIN = [
    {"type": "human", "data": {"content": "one", "type": "human"}},
    {
        "type": "ai",
        "data": {"content": "", "type": "ai", "tool_calls": [{"name": "look", "args": {}, "id": "c1"}]},
    },
    {"type": "human", "data": {"content": "two", "type": "human"}},
]
AI_SDK = [
    {"role": "user", "content": [{"type": "text", "text": "one"}]},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {}}],
    },
    {"role": "user", "content": [{"type": "text", "text": "two"}]},
]
PYDANTIC_AI = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "one"}]},
    {
        "kind": "response",
        "parts": [{"part_kind": "tool-call", "tool_name": "look", "args": {}, "tool_call_id": "c1"}],
    },
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "two"}]},
]
OTEL = {
    "attributes": {
        "gen_ai.input.messages": [
            {"role": "user", "parts": [{"type": "text", "content": "one"}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}]},
            {"role": "user", "parts": [{"type": "text", "content": "two"}]},
        ]
    }
}

BODIES: dict[str, Any] = {
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
    "mistral": MISTRAL,
}
DUMPS: dict[str, Any] = {"langchain": LANGCHAIN, "ai_sdk": AI_SDK, "pydantic_ai": PYDANTIC_AI, "otel": OTEL}


def lines(messages: list[Any], **style: Any) -> bytes:
    """Messages, one a line."""
    return b"".join(json.dumps(one, **style).encode() + b"\n" for one in messages)


CUT = lines(CHAT["messages"][:1]) + b'{"role": "user", "cont'
ZEROS = lines(CHAT["messages"][:1]) + b"\0" * 64 + lines([{"role": "assistant", "content": "three"}])
