"""Message histories of Pydantic AI: requests and responses, each a list of parts with a `part_kind`."""

from __future__ import annotations

from tenlines.core.transcript import Json, JsonObject, JsonValue, Part, Text
from tenlines.wire.dumps.dump import (
    Dump,
    attachment,
    entries,
    media_block,
    result_block,
    text_block,
    turn,
    value_parts,
)
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.turns import Block, Turn


def read(value: JsonValue) -> Dump:
    """The messages of a list.

    Instructions are written with every request, though only the last ones hold: these become the system prompt.
    """
    turns: list[Turn] = []
    instructions: Turn | None = None
    remarks: list[str] = []
    for message, path in entries(value):
        held = obj(message)
        if held.get("kind") == "response":
            turns.append(_response(held, path))
        elif held.get("kind") == "request":
            turns += _request(held, path)
            text = string(held.get("instructions"))
            if text:
                if instructions is not None and text != instructions.blocks[0].text:
                    remarks.append(f"{path}.instructions replace earlier ones, which are left out.")
                place = f"{path}.instructions"
                instructions = turn("system", [text_block(text, place, text)], place, text)
        else:
            turns.append(Turn("unknown", (Block("other", path, message),), path, message))
    return Dump((instructions, *turns) if instructions is not None else tuple(turns), (), tuple(remarks))


def _request(message: JsonObject, path: str) -> list[Turn]:
    """A request is as many turns as it has parts: prompts and results stand side by side in it."""
    turns: list[Turn] = []
    for index, part in enumerate(items(message.get("parts"))):
        held, place = obj(part), f"{path}.parts[{index}]"
        match held.get("part_kind"):
            case "system-prompt":
                text = string(held.get("content"))
                turns.append(turn("system", [text_block(text, place, part)], place, part))
            case "user-prompt":
                turns.append(turn("user", _prompt(held.get("content"), f"{place}.content"), place, part))
            case "tool-return" | "retry-prompt" if held.get("tool_name"):
                turns.append(turn("tool", [_result(held, place)], place, part))
            case "retry-prompt" | "retry-feedback":
                text = _feedback(held.get("content"))
                turns.append(turn("user", [text_block(text, place, part)], place, part))
            case _:
                turns.append(Turn("unknown", (Block("other", place, part),), place, part))
    return turns


def _response(message: JsonObject, path: str) -> Turn:
    blocks = [_said(part, f"{path}.parts[{index}]") for index, part in enumerate(items(message.get("parts")))]
    return turn("assistant", blocks, path, message)


def _said(part: JsonValue, path: str) -> Block:
    held = obj(part)
    match held.get("part_kind"):
        case "text":
            return text_block(string(held.get("content")), path, part)
        case "thinking":
            text, signature = string(held.get("content")), string(held.get("signature"))
            return Block("reasoning", path, part, text=text, signature=signature)
        case "tool-call":
            ids = string(held.get("tool_call_id")), string(held.get("tool_name"))
            return Block("call", path, part, id=ids[0], name=ids[1], arguments=held.get("args"))
        case "file":
            return media_block(path, part, _media(obj(held.get("content"))))
        case _:
            return Block("other", path, part)


def _prompt(content: JsonValue, path: str) -> list[Block]:
    if isinstance(content, str):
        return [text_block(content, path, content)]
    return [_piece(piece, f"{path}[{index}]") for index, piece in enumerate(items(content))]


def _piece(piece: JsonValue, path: str) -> Block:
    held = obj(piece)
    if isinstance(piece, str):
        return text_block(piece, path, piece)
    if held.get("kind") == "text-content":
        return text_block(string(held.get("content")), path, piece)
    if held.get("kind") == "binary" or string(held.get("kind")).endswith("-url"):
        return media_block(path, piece, _media(held))
    return Block("other", path, piece)


_URL_TYPES = {"image-url": "image/*", "audio-url": "audio/*", "video-url": "video/*", "document-url": "application/*"}


def _media(held: JsonObject) -> tuple[Part, ...]:
    source = string(held.get("data") or held.get("url"))
    media_type = string(held.get("media_type")) or _URL_TYPES.get(string(held.get("kind")), "")
    return attachment(source, media_type)


def _result(held: JsonObject, path: str) -> Block:
    content = held.get("content")
    is_retry = held.get("part_kind") == "retry-prompt"
    is_error = is_retry or held.get("outcome", "success") != "success"
    ids = string(held.get("tool_call_id")), string(held.get("tool_name"))
    parts = (Text(_feedback(content)),) if is_error and isinstance(content, list) else _returned(content)
    return result_block(path, held, ids, parts, is_error)


def _returned(content: JsonValue) -> tuple[Part, ...]:
    """What a tool returned: any value; images and files may stand in it, alone or in a list."""
    pieces = content if isinstance(content, list) else [content]
    if not any(obj(piece).get("kind") == "binary" for piece in pieces):
        return value_parts(content)
    parts: list[Part] = []
    for piece in pieces:
        parts += _media(obj(piece)) or (Text(piece) if isinstance(piece, str) else Json(piece),)
    return tuple(parts)


def _feedback(content: JsonValue) -> str:
    """What was wrong with arguments or an answer: text, or a list of errors that name a place each."""
    if isinstance(content, str):
        return content
    lines = []
    for error in items(content):
        place = ".".join(str(step) for step in items(obj(error).get("loc")))
        text = string(obj(error).get("msg"))
        lines.append(f"{place}: {text}" if place else text)
    return "\n".join(line for line in lines if line)
