"""A body of this format unfolded into turns, and folded again."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from tenlines.core.outcomes import parse_arguments
from tenlines.core.transcript import File, Image, Json, JsonObject, JsonValue, Part, Text
from tenlines.wire.format import Frame
from tenlines.wire.gemini.encoding import blob_of
from tenlines.wire.gemini.fields import BESIDE, field, key_of, kinds_of, media
from tenlines.wire.gemini.schema import from_openapi
from tenlines.wire.json_values import items, string
from tenlines.wire.parts import plain_text
from tenlines.wire.turns import Block, BlockKind, Role, Tool, Turn

_ROLES: dict[str, Role] = {"user": "user", "model": "assistant", "system": "system", "": "user"}
_WIRE_ROLES: dict[Role, str] = {"user": "user", "assistant": "model", "tool": "user", "system": "user"}


# --- unfolding --------------------------------------------------------------------------------------


def unfold(message: JsonValue, path: str) -> Turn:
    """One content as a turn. Without a role it is the user's."""
    if not isinstance(message, dict):
        return Turn("unknown", (), path, message)
    given = message.get("role")
    role = string(given)
    blocks = [unfold_part(part, f"{path}.parts[{index}]") for index, part in enumerate(items(message.get("parts")))]
    is_known = given is None or isinstance(given, str)
    return Turn(_ROLES.get(role, "unknown") if is_known else "unknown", tuple(blocks), path, message, role)


def unfold_part(part: JsonValue, path: str) -> Block:
    """One part as a block. A part that holds nothing is an empty text, so that it is found as one."""
    if not isinstance(part, dict):
        return Block("other", path, part)
    signature = string(field(part, "thoughtSignature"))
    kinds = kinds_of(part)
    match kinds[0] if kinds else "":
        case "functionCall" if isinstance(call := field(part, "functionCall"), dict):
            name, arguments = string(call.get("name")), call.get("args")
            return Block("call", path, part, _id(call), name, arguments, signature=signature)
        case "functionResponse" if isinstance(response := field(part, "functionResponse"), dict):
            return _result(part, response, path)
        case "text" if isinstance(text := part["text"], str):
            # an empty text that carries a signature says nothing and must go back: to a reader it is reasoning
            kind: BlockKind = "reasoning" if part.get("thought") or (signature and not text) else "text"
            return Block(kind, path, part, text=text, signature=signature)
        case "inlineData" | "fileData" if (shown := media(part)) is not None:
            return Block("media", path, part, parts=(shown,), signature=signature)
        case "" if part.keys() <= BESIDE | {"thought_signature", "text"}:
            return Block("text", path, part, signature=signature)
        case _:
            return Block("other", path, part, signature=signature)


def _id(body: JsonObject) -> str:
    given = body.get("id")
    return str(given) if type(given) is int else string(given)


def _result(part: JsonObject, response: JsonObject, path: str) -> Block:
    said = response.get("response")
    parts: list[Part] = []
    is_error = isinstance(said, dict) and said.get("error") is not None
    if isinstance(said, dict):
        key = "error" if is_error else "output"
        parts += _said(said[key]) if said.keys() == {key} else _said(said or None)  # {} says nothing
    else:
        parts += _said(said)
    for one in items(response.get("parts")):
        if isinstance(one, dict) and (seen := media(one)) is not None:
            parts.append(seen)
    text = plain_text(tuple(one for one in parts if isinstance(one, Text | Json)))
    name = string(response.get("name"))
    return Block("result", path, part, _id(response), name, text=text, parts=tuple(parts), is_error=is_error)


def _said(value: JsonValue) -> list[Part]:
    if isinstance(value, str):
        return [Text(value)] if value else []
    return [] if value is None else [Json(value)]


def frame(body: JsonObject) -> Frame:
    """System instruction and declared functions. Tools of the service itself are none of ours."""
    given = field(body, "systemInstruction")
    path = key_of(body, "systemInstruction")
    system: tuple[Turn, ...] = ()
    if isinstance(given, str):
        system = (Turn("system", (Block("text", path, given, text=given),), path, given),)
    elif isinstance(given, dict):
        turn = unfold(given, path)
        system = (Turn("system", turn.blocks, path, given, turn.wire_role),)
    return Frame(system, tuple(_tools(body)))


def declarations(body: JsonObject) -> list[tuple[str, JsonObject]]:
    """All declared functions, with their paths."""
    found = []
    for index, entry in enumerate(items(body.get("tools"))):
        declared = field(entry, "functionDeclarations") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and isinstance(declared, list):
            path = f"tools[{index}].{key_of(entry, 'functionDeclarations')}"
            found += [(f"{path}[{at}]", one) for at, one in enumerate(declared) if isinstance(one, dict)]
    return found


def _tools(body: JsonObject) -> list[Tool]:
    tools = []
    for path, one in declarations(body):
        schema = field(one, "parametersJsonSchema")
        if not isinstance(schema, dict):
            given = one.get("parameters")
            schema = from_openapi(given) if isinstance(given, dict) else {}
        tools.append(Tool(string(one.get("name")), path, string(one.get("description")), schema, one))
    return tools


# --- folding ----------------------------------------------------------------------------------------


def fold(turn: Turn) -> JsonValue:
    """A turn as a content."""
    if not isinstance(turn.raw, dict):
        if turn.raw is not None or (turn.role == "unknown" and not turn.blocks):
            return turn.raw
        return {"role": _WIRE_ROLES.get(turn.role, turn.wire_role or "user"), "parts": _parts(turn.blocks)}
    message = dict(turn.raw)
    before = unfold(turn.raw, "")
    if before.role != turn.role:
        message["role"] = _WIRE_ROLES.get(turn.role, turn.wire_role)
    parts = _parts(turn.blocks)
    if parts or isinstance(message.get("parts"), list):
        message["parts"] = parts
    return message


def _parts(blocks: Sequence[Block]) -> list[JsonValue]:
    return [part for block in blocks for part in _part(block)]


def _part(block: Block) -> list[JsonValue]:
    if block.raw is not None or block.kind == "other":
        return [block.raw]
    parts = _written(block)
    if block.signature:
        parts = [{**part, "thoughtSignature": block.signature} for part in parts]
    return list[JsonValue](parts)


def _written(block: Block) -> list[JsonObject]:
    """A block from its fields."""
    match block.kind:
        case "call":
            call: JsonObject = {"id": block.id} if block.id else {}
            call.update(name=block.name, args=_arguments(block.arguments))
            return [{"functionCall": call}]
        case "result":
            return [{"functionResponse": _response(block)}]
        case "media":
            return [_shown(part) for part in block.parts if isinstance(part, Image | File)]
        case "reasoning" if block.text:
            return [{"text": block.text, "thought": True}]
        case _:
            return [{"text": block.text}]


def _arguments(arguments: JsonValue) -> JsonValue:
    if isinstance(arguments, str):
        return parse_arguments(arguments).value or {}
    return {} if arguments is None else arguments


def _response(block: Block) -> JsonObject:
    told = [part for part in block.parts if isinstance(part, Text | Json)]
    first = told[0] if len(told) == 1 else None
    said = first.value if isinstance(first, Json) else plain_text(tuple(told)) if told else block.text
    body: JsonObject = {"id": block.id} if block.id else {}
    body |= {"name": block.name, "response": {"error" if block.is_error else "output": said}}
    shown: list[JsonValue] = [_shown(part) for part in block.parts if isinstance(part, Image | File)]
    return body | {"parts": shown} if shown else body


def _shown(part: Image | File) -> JsonObject:
    if isinstance(part, Image) and part.url:
        kind: JsonObject = {} if part.media_type.endswith("*") else {"mimeType": part.media_type}
        return {"fileData": kind | {"fileUri": part.url}}
    return blob_of(part)


def fold_frame(body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
    """The body with these system prompts and functions."""
    return _with_tools(_with_system(body, system), tools)


def _with_system(body: JsonObject, system: Sequence[Turn]) -> JsonObject:
    if tuple(system) == frame(body).system:
        return body
    key = key_of(body, "systemInstruction")
    if not system:
        return {name: value for name, value in body.items() if name != key}
    first = system[0].raw
    beside = (
        {name: one for name, one in first.items() if name not in ("parts", "role")} if isinstance(first, dict) else {}
    )
    folded: JsonObject = beside | {"parts": _parts([_plain(block) for turn in system for block in turn.blocks])}
    return {**body, key: folded} if key in body else {key: folded, **body}


def _plain(block: Block) -> Block:
    """A block of a system prompt that was one text: written as a part."""
    return structs.replace(block, raw=None) if isinstance(block.raw, str) else block


def _with_tools(body: JsonObject, tools: Sequence[Tool]) -> JsonObject:
    if tuple(tools) == frame(body).tools:
        return body
    declared: list[JsonValue] = [tool.raw if tool.raw is not None else _declaration(tool) for tool in tools]
    entries = body.get("tools")
    own = [entry for entry in items(entries) if not _declares(entry)]
    ours: list[JsonValue] = [{"functionDeclarations": declared}] if declared else []
    listed = ours + own
    if not listed:
        return {name: value for name, value in body.items() if name != "tools"}
    return {**body, "tools": listed}


def _declares(entry: JsonValue) -> bool:
    return isinstance(entry, dict) and field(entry, "functionDeclarations") is not None


def _declaration(tool: Tool) -> JsonObject:
    body: JsonObject = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    return body | {"parametersJsonSchema": tool.parameters or {"type": "object", "properties": {}}}
