"""Cohere bodies, unfolded into turns and folded again.

They are Chat Completions bodies but for two things: what the model says beside its calls stands in `tool_plan`, and
results may hold documents.
"""

from __future__ import annotations

from msgspec.structs import replace

from tenlines.core.transcript import Json, JsonObject, JsonValue, Part, Text, text_of
from tenlines.wire.folding import is_as_it_came
from tenlines.wire.json_values import string
from tenlines.wire.openai_chat import turns as chat
from tenlines.wire.turns import Block, Turn

PLAN = ".tool_plan"


def unfold(message: JsonValue, path: str) -> Turn:
    """One message as a turn; total."""
    turn = chat.unfold(message, path)
    if not isinstance(message, dict):
        return turn
    if turn.role == "tool":
        return replace(turn, blocks=tuple(_with_documents(block, message) for block in turn.blocks))
    blocks = tuple(_thinking(block) for block in turn.blocks)
    plan = message.get("tool_plan")
    if turn.role in ("assistant", "unknown") and isinstance(plan, str) and plan:
        blocks = (Block("text", f"{path}{PLAN}", plan, text=plan), *blocks)
    return replace(turn, blocks=blocks)


def _thinking(block: Block) -> Block:
    raw = block.raw
    if block.kind != "other" or not isinstance(raw, dict) or raw.get("type") != "thinking":
        return block
    return replace(block, kind="reasoning", text=string(raw.get("thinking")))


def _with_documents(block: Block, message: JsonObject) -> Block:
    content = message.get("content")
    if block.kind != "result" or not isinstance(content, list):
        return block
    parts = tuple(part for entry in content for part in _part(entry))
    return replace(block, parts=parts, text=text_of(parts))


def _part(entry: JsonValue) -> tuple[Part, ...]:
    if not isinstance(entry, dict):
        return ()
    if isinstance(entry.get("text"), str):
        return (Text(str(entry["text"])),)
    document = entry.get("document")
    data = document.get("data") if isinstance(document, dict) else document
    if isinstance(data, str):
        return (Text(data),)
    return (Json(data),) if isinstance(data, dict) else ()


def fold(turn: Turn) -> JsonValue:
    """A turn as a message; one that nobody touched goes back as it came."""
    raw = turn.raw
    if is_as_it_came(turn, unfold):
        return raw
    plans = [block for block in turn.blocks if _is_plan(block, turn)]
    kept = tuple(_thought(block) for block in turn.blocks if block not in plans)
    bare = {key: value for key, value in raw.items() if key != "tool_plan"} if isinstance(raw, dict) else raw
    body = chat.fold(replace(turn, blocks=kept, raw=bare))
    if not isinstance(body, dict) or turn.role == "tool":
        return body
    if body.get("content") is None and turn.of("call"):
        body = {key: value for key, value in body.items() if key != "content"}
    plan = "\n\n".join(block.text for block in plans)
    return {**body, "tool_plan": plan} if plan else body


def _is_plan(block: Block, turn: Turn) -> bool:
    """Whether a text stands in the plan: where it stood, or the text beside calls in a message that is made."""
    if block.kind != "text":
        return False
    return block.path.endswith(PLAN) or (turn.raw is None and turn.role == "assistant" and bool(turn.of("call")))


def _thought(block: Block) -> Block:
    """Reasoning is a part of the content here."""
    return replace(block, kind="other") if block.kind == "reasoning" and ".content[" in block.path else block
