"""Messages of the Vercel AI SDK: those of its user interface (versions 4 and later) and those for models."""

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
from tenlines.wire.turns import Block, Role, Turn

ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
TOOL_PART = "tool-"
"""How the type of a call begins in a message of the user interface; the name of the tool follows."""
NO_TOOLS = ("tool-call", "tool-result", "tool-error", "tool-invocation", "tool-approval-request")
"""Types of parts that begin like that and name no tool."""


def read(value: JsonValue) -> Dump:
    """The messages of a list, or of a chat (`{"messages": [...]}`)."""
    turns: list[Turn] = []
    for message, path in entries(value):
        turns += _turns(message, path)
    return Dump(tuple(turns))


def _turns(message: JsonValue, path: str) -> list[Turn]:
    if not isinstance(message, dict):
        return [Turn("unknown", (Block("other", path, message),), path, message)]
    wire_role = string(message.get("role"))
    role = ROLES.get(wire_role, "unknown")
    if isinstance(message.get("parts"), list):
        field, pieces = "parts", items(message["parts"])
    else:
        content = message.get("content")
        field, pieces = "content", [content] if isinstance(content, str) and content else items(content)
    if role == "assistant":
        steps = _Steps(message, path, by_marks=any(obj(piece).get("type") == "step-start" for piece in pieces))
        for block in _old_reasoning(message, path) if field == "content" else ():
            steps.take(block)
        for index, piece in enumerate(pieces):
            steps.take_piece(piece, f"{path}.{field}[{index}]")
        if field == "content" or not any(_invocation(piece) for piece in pieces):
            for index, piece in enumerate(items(message.get("toolInvocations"))):
                steps.take_piece(
                    {"type": "tool-invocation", "toolInvocation": piece}, f"{path}.toolInvocations[{index}]"
                )
        return steps.close()
    blocks = [_block(piece, f"{path}.{field}[{index}]") for index, piece in enumerate(pieces)]
    attached = items(message.get("experimental_attachments"))
    blocks += [_attached(one, f"{path}.experimental_attachments[{index}]") for index, one in enumerate(attached)]
    return [turn(role, [block for block in blocks if block is not None], path, message, wire_role)]


class _Steps:
    """The steps of one assistant message: what the model said and called, then the results."""

    def __init__(self, message: JsonObject, path: str, *, by_marks: bool) -> None:
        self._message, self._path, self._by_marks = message, path, by_marks
        self._said: list[Block] = []
        self._results: list[Block] = []
        self._turns: list[Turn] = []

    def take_piece(self, piece: JsonValue, path: str) -> None:
        """The next part."""
        if obj(piece).get("type") == "step-start":
            self._end_step()
            return
        invocation = _invocation(piece)
        if invocation is None:
            block = _block(piece, path)
            if block is not None:
                self.take(block)
            return
        call, result = _call_and_result(invocation, path, piece)
        self.take(call)
        if result is not None:
            self._results.append(result)

    def take(self, block: Block) -> None:
        """The next thing that was said. Without marks between steps, words after a result begin a new one."""
        if self._results and not self._by_marks and block.kind in ("text", "reasoning"):
            self._end_step()
        self._said.append(block)

    def _end_step(self) -> None:
        if self._said:
            self._turns.append(turn("assistant", self._said, self._path, self._message, "assistant"))
        self._turns += [Turn("tool", (result,), result.path, result.raw) for result in self._results]
        self._said, self._results = [], []

    def close(self) -> list[Turn]:
        """All turns of the message."""
        self._end_step()
        return self._turns or [turn("assistant", [], self._path, self._message, "assistant")]


def _invocation(piece: JsonValue) -> JsonObject | None:
    """A call of a message of the user interface, as one object with its name; None when it is something else."""
    held = obj(piece)
    kind = string(held.get("type"))
    if held.get("providerExecuted") is True:
        return None
    if kind == "tool-invocation" and isinstance(held.get("toolInvocation"), dict):
        return obj(held["toolInvocation"])
    if kind == "dynamic-tool":
        return held
    if kind.startswith(TOOL_PART) and kind not in NO_TOOLS and "toolCallId" in held:
        return {**held, "toolName": kind[len(TOOL_PART) :]}
    return None


def _call_and_result(held: JsonObject, path: str, raw: JsonValue) -> tuple[Block, Block | None]:
    ids = string(held.get("toolCallId")), string(held.get("toolName"))
    given = next((held[key] for key in ("input", "args", "rawInput") if held.get(key) is not None), None)
    signature = _signature(held.get("callProviderMetadata"))
    call = Block("call", path, raw, id=ids[0], name=ids[1], arguments=given, signature=signature)
    state = held.get("state")
    if state in ("output-available", "result") and held.get("preliminary") is not True:
        parts = value_parts(held.get("output", held.get("result")))
        return call, result_block(path, raw, ids, parts, is_error=False)
    if state == "output-error":
        return call, result_block(path, raw, ids, value_parts(held.get("errorText")), is_error=True)
    if state == "output-denied":
        reason = string(obj(held.get("approval")).get("reason"))
        text = f"The call was denied: {reason}" if reason else "The call was denied."
        return call, result_block(path, raw, ids, (Text(text),), is_error=True)
    return call, None


def _block(piece: JsonValue, path: str) -> Block | None:
    if isinstance(piece, str):
        return text_block(piece, path, piece)
    held = obj(piece)
    kind = string(held.get("type"))
    if kind == "text":
        return text_block(string(held.get("text")), path, piece)
    if kind in ("reasoning", "redacted-reasoning"):
        return _reasoning(held, path, piece)
    if kind in ("file", "image", "reasoning-file"):
        return media_block(path, piece, _media(held))
    if kind == "tool-call" and held.get("providerExecuted") is not True:
        arguments = held.get("input", held.get("args"))
        ids = string(held.get("toolCallId")), string(held.get("toolName"))
        signature = _signature(held.get("providerOptions"))
        return Block("call", path, piece, id=ids[0], name=ids[1], arguments=arguments, signature=signature)
    if kind in ("tool-result", "tool-error"):
        return _result(held, path, piece)
    return None if kind == "step-start" else Block("other", path, piece)


def _reasoning(held: JsonObject, path: str, raw: JsonValue) -> Block:
    details = [obj(one) for one in items(held.get("details"))]
    text = string(held.get("text") or held.get("reasoning")) or "".join(string(one.get("text")) for one in details)
    signature = _signature(held.get("providerMetadata", held.get("providerOptions"))) or string(held.get("signature"))
    signature = signature or next((string(one.get("signature")) for one in details if one.get("signature")), "")
    return Block("reasoning", path, raw, text=text, signature=signature or string(held.get("data")))


def _old_reasoning(message: JsonObject, path: str) -> list[Block]:
    """Reasoning as version 4 kept it: beside the content."""
    text = message.get("reasoning")
    return [Block("reasoning", f"{path}.reasoning", text, text=text)] if isinstance(text, str) and text else []


def _signature(metadata: JsonValue) -> str:
    """What the provider signed, under whatever name it has there."""
    for held in obj(metadata).values():
        for key in ("signature", "thoughtSignature", "reasoningEncryptedContent", "redactedData"):
            found = obj(held).get(key)
            if isinstance(found, str) and found:
                return found
    return ""


def _media(held: JsonObject) -> tuple[Part, ...]:
    source = held.get("data")
    if isinstance(source, dict):  # {"type": "url", "url": ...} or {"type": "data", "data": ...}
        source = source.get("url", source.get("data"))
    candidates = (source, held.get("url"), held.get("image"))
    address = next((one for one in candidates if isinstance(one, str) and one), "")
    default = "image/*" if held.get("type") == "image" else ""
    media_type = string(held.get("mediaType") or held.get("mimeType") or held.get("contentType")) or default
    return attachment(address, media_type, string(held.get("filename") or held.get("name")))


def _attached(piece: JsonValue, path: str) -> Block:
    return media_block(path, piece, _media(obj(piece)))


def _result(held: JsonObject, path: str, raw: JsonValue) -> Block:
    """A result of a message for models: a tagged output, or (version 4) any value beside `isError`."""
    ids = string(held.get("toolCallId")), string(held.get("toolName"))
    output = held.get("output")
    kind = string(obj(output).get("type"))
    if held.get("type") == "tool-error":
        return result_block(path, raw, ids, value_parts(held.get("error")), is_error=True)
    if "output" not in held or kind not in _OUTPUTS:
        parts = value_parts(held.get("output", held.get("result")))
        return result_block(path, raw, ids, parts, held.get("isError") is True)
    value = obj(output).get("value")
    if kind == "content":
        return result_block(path, raw, ids, _content_parts(value), is_error=False)
    if kind == "execution-denied":
        reason = string(obj(output).get("reason"))
        value = f"The call was denied: {reason}" if reason else "The call was denied."
    return result_block(path, raw, ids, value_parts(value), kind.startswith("error") or kind == "execution-denied")


_OUTPUTS = ("text", "json", "error-text", "error-json", "execution-denied", "content")


def _content_parts(value: JsonValue) -> tuple[Part, ...]:
    parts: list[Part] = []
    for piece in items(value):
        held = obj(piece)
        if held.get("type") == "text":
            parts.append(Text(string(held.get("text"))))
        else:
            parts += _media(held) or (Json(piece),)
    return tuple(parts)
