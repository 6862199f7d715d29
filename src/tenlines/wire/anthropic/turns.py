"""A body of this format as turns and blocks, and back. What nobody touched goes back exactly as it was."""

from __future__ import annotations

from collections.abc import Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.anthropic.blocks import REASONING, content_blocks, parts_of, text_block
from tenlines.wire.format import Frame
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.parts import plain_text
from tenlines.wire.turns import Block, Role, Tool, Turn

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}

# --- one message ------------------------------------------------------------------------------------


def unfold(message: JsonValue, path: str) -> Turn:
    """One message as a turn. Total: what is not understood becomes an `other` block or an `unknown` role."""
    if not isinstance(message, dict):
        return Turn("unknown", (), path, message)
    wire_role = message.get("role")
    role: Role = _ROLES.get(wire_role, "unknown") if isinstance(wire_role, str) else "unknown"
    if role == "unknown" and isinstance(message.get("tool_call_id"), str):
        blocks: tuple[Block, ...] = (_foreign_result(message, path),)
    else:
        blocks = _blocks(message.get("content"), f"{path}.content")
    return Turn(role, blocks, path, message, string(wire_role))


def _foreign_result(message: JsonObject, path: str) -> Block:
    """A message with a result, as Chat Completions has it."""
    parts = parts_of(message.get("content"))
    return Block("result", path, message, id=str(message["tool_call_id"]), text=plain_text(parts), parts=parts)


def _blocks(content: JsonValue, path: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Block("text", path, content, text=content),)
    if not isinstance(content, list):
        return ()
    return tuple(_block(block, f"{path}[{index}]") for index, block in enumerate(content))


def _block(raw: JsonValue, path: str) -> Block:
    if not isinstance(raw, dict):
        return Block("other", path, raw)
    kind = raw.get("type")
    if kind == "text" and (isinstance(raw.get("text"), str) or not raw.get("text")):
        return Block("text", path, raw, text=string(raw.get("text")))
    if kind == "tool_use":
        return Block(
            "call", path, raw, id=string(raw.get("id")), name=string(raw.get("name")), arguments=raw.get("input")
        )
    if kind == "tool_result":
        return _result(raw, path)
    if kind in REASONING:
        signature = string(raw.get("signature")) if kind == "thinking" else string(raw.get("data"))
        return Block("reasoning", path, raw, text=string(raw.get("thinking")), signature=signature)
    if kind in ("image", "document"):
        return Block("media", path, raw, parts=parts_of([raw]))
    return Block("other", path, raw)


def _result(raw: JsonObject, path: str) -> Block:
    parts = parts_of(raw.get("content"))
    return Block(
        "result",
        path,
        raw,
        id=string(raw.get("tool_use_id")),
        text=plain_text(parts),
        parts=parts,
        is_error=raw.get("is_error") is True,
    )


def fold(turn: Turn) -> JsonValue:
    """A turn as a message. Untouched, it equals what it came from; what was changed is written from its fields."""
    if turn.raw is not None:
        original = unfold(turn.raw, turn.path)
        if original.role == turn.role and original.blocks == turn.blocks:
            return turn.raw
    if turn.role == "unknown" and not turn.blocks and turn.raw is None:
        return None
    rest = obj(turn.raw)
    foreign = ("role", "content", "tool_call_id", "tool_calls", "name")
    role = turn.role if turn.role in _ROLES else turn.wire_role or "user"
    content = [written for block in turn.blocks for written in write(block)]
    return {"role": role, "content": content, **{key: value for key, value in rest.items() if key not in foreign}}


def write(block: Block) -> list[JsonValue]:
    """A block as JSON: as it came, or from its fields."""
    raw = block.raw
    if isinstance(raw, str):
        return [text_block(raw)]
    if isinstance(raw, dict) and (block.kind != "result" or "type" in raw):
        return [raw]
    if block.kind == "text":
        return [text_block(block.text)]
    if block.kind == "media":
        return content_blocks(block.parts)
    if block.kind == "reasoning":
        return [{"type": "thinking", "thinking": block.text, "signature": block.signature}]
    if block.kind == "call":
        arguments = {} if block.arguments is None else block.arguments
        return [{"type": "tool_use", "id": block.id, "name": block.name, "input": arguments}]
    return [write_result(block)] if block.kind == "result" else []


def write_result(block: Block) -> JsonObject:
    """A result from its fields. An empty one has no content."""
    result: JsonObject = {"type": "tool_result", "tool_use_id": block.id}
    content = content_blocks(block.parts)
    if not block.parts and block.text.strip():
        content = [text_block(block.text)]
    if content:
        result["content"] = content
    if block.is_error:
        result["is_error"] = True
    return result


# --- what stands beside the messages ----------------------------------------------------------------


def frame(body: JsonObject) -> Frame:
    """System prompts and tools. Total: what is no tool and no system prompt is left out."""
    return Frame(_system(body), tuple(tool for _, tool in _tools(body)))


def _system(body: JsonObject) -> tuple[Turn, ...]:
    raw = body.get("system")
    if not raw or not isinstance(raw, str | list):
        return ()
    return (Turn("system", _blocks(raw, "system"), "system", raw, "system"),)


def _tools(body: JsonObject) -> list[tuple[int, Tool]]:
    """The tools and their places in the list. A list of the provider's own tools has no name and is none."""
    tools = body.get("tools")
    found = []
    for index, raw in enumerate(items(tools)):
        if isinstance(raw, dict) and isinstance(raw.get("name"), str):
            parameters = obj(raw.get("input_schema"))
            tool = Tool(string(raw.get("name")), f"tools[{index}]", string(raw.get("description")), parameters, raw)
            found.append((index, tool))
    return found


def fold_frame(body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
    """The body with these system prompts and tools; the rest of it stays as it is."""
    result = dict(body)
    before = frame(body)
    if tuple(system) != before.system:
        blocks = [written for turn in system for block in turn.blocks for written in write(block)]
        result = _with(result, "system", blocks)
    if tuple(tools) != before.tools:
        named = {index for index, _ in _tools(body)}
        held = body.get("tools")
        others = [one for index, one in enumerate(held) if index not in named] if isinstance(held, list) else []
        result = _with(result, "tools", [*(write_tool(tool) for tool in tools), *others])
    return result


def _with(body: JsonObject, field: str, values: list[JsonValue]) -> JsonObject:
    """The body with a list, or without the field when the list is empty. The messages stay last where they are."""
    if values:
        return {**body, field: values} if field in body else {field: values, **body}
    return {key: value for key, value in body.items() if key != field}


def write_tool(tool: Tool) -> JsonValue:
    """A tool as JSON: as it came, or from its fields."""
    if tool.raw is not None:
        return tool.raw
    result: JsonObject = {"name": tool.name}
    if tool.description:
        result["description"] = tool.description
    result["input_schema"] = tool.parameters or {"type": "object", "properties": {}}
    return result
