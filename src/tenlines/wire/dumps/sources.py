"""All readers of dumps, by name."""

from __future__ import annotations

from collections.abc import Callable

from tenlines.core.transcript import JsonValue
from tenlines.wire.dumps import agents, ai_sdk, langchain, otel, pydantic_ai
from tenlines.wire.dumps.dump import Dump

SOURCES: dict[str, Callable[[JsonValue], Dump]] = {
    "agents": agents.read,
    "langchain": langchain.read,
    "ai_sdk": ai_sdk.read,
    "pydantic_ai": pydantic_ai.read,
    "otel": otel.read,
}
"""Name -> reader."""

TITLES = {
    "agents": "OpenAI Agents SDK",
    "langchain": "LangChain messages",
    "ai_sdk": "Vercel AI SDK messages",
    "pydantic_ai": "Pydantic AI messages",
    "otel": "OpenTelemetry GenAI messages",
}
