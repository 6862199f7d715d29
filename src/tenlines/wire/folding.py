"""Steps of unfolding a body into turns, and of folding turns again, that several formats share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue, Part, Text
from tenlines.wire.json_values import obj, string
from tenlines.wire.turns import Block, Role, Tool, Turn

# --- from JSON to turns -----------------------------------------------------------------------------


def content_blocks(content: JsonValue, path: str, block_of: Callable[[JsonValue, str], Block]) -> list[Block]:
    """Content as blocks: one for a text, one for each entry of a list."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Block("text", path, content, text=content)]
    if not isinstance(content, list):
        return [Block("other", path, content)]
    return [block_of(entry, f"{path}[{index}]") for index, entry in enumerate(content)]


def parts_in(blocks: Sequence[Block]) -> tuple[Part, ...]:
    """What blocks of text and media hold."""
    return tuple(part for block in blocks for part in ((Text(block.text),) if block.kind == "text" else block.parts))


def tool_of(held: JsonValue, path: str, entry: JsonValue, parameters: JsonValue = None) -> Tool | None:
    """The tool that an entry of a list of tools holds; None when what it holds is no object."""
    if not isinstance(held, dict):
        return None
    given = held.get("parameters") if parameters is None else parameters
    return Tool(string(held.get("name")), path, string(held.get("description")), obj(given), entry)


def tools_of(
    entries: Sequence[JsonValue], path: str, read: Callable[[JsonValue, str], Tool | None]
) -> tuple[Tool, ...]:
    """The tools in a list; entries of the provider's own are none."""
    found = (read(entry, f"{path}[{index}]") for index, entry in enumerate(entries))
    return tuple(tool for tool in found if tool is not None)


# --- from turns to JSON -----------------------------------------------------------------------------


def is_as_it_came(turn: Turn, unfold: Callable[[JsonValue, str], Turn]) -> bool:
    """Whether nobody touched a turn, so that it goes back as it came."""
    if turn.role == "unknown" and not isinstance(turn.raw, dict):
        return True
    return turn.raw is not None and unfold(turn.raw, turn.path) == turn


def role_of(turn: Turn, roles: Mapping[str, Role]) -> JsonValue:
    """The role as it stood, as long as it means the same; else the plain word for it."""
    if isinstance(turn.raw, dict) and roles.get(turn.wire_role, "unknown") == turn.role:
        return turn.raw.get("role", turn.wire_role)
    return turn.role


def folded_content(blocks: Sequence[Block], old: JsonValue, write: Callable[[Block], list[JsonValue]]) -> JsonValue:
    """Content that has been changed: one text as such where it was no list, everything else as a list of parts."""
    if len(blocks) == 1 and not isinstance(old, list):
        only = blocks[0]
        if only.kind == "text":
            return only.text
        if only.path.endswith(".content") and only.raw is not None:
            return only.raw
    parts: list[JsonValue] = []
    for block in blocks:
        # the text of a whole content is not yet a part
        is_part = block.raw is not None and not (block.kind == "text" and isinstance(block.raw, str))
        parts += [block.raw] if is_part else write(block)
    return parts


def merged_tools(
    old: Sequence[JsonValue],
    tools: Sequence[Tool],
    read: Callable[[JsonValue, str], Tool | None],
    write: Callable[[Tool], JsonValue],
) -> list[JsonValue]:
    """A list of tools with these in it; the provider's own ones among them stay where they are. A tool that nobody
    touched goes back as it came."""
    waiting: list[JsonValue] = [write(tool) if tool.raw is None else tool.raw for tool in tools]
    entries: list[JsonValue] = []
    for entry in old:
        if read(entry, "") is None:
            entries.append(entry)
        elif waiting:
            entries.append(waiting.pop(0))
    return entries + waiting


def declared(tool: Tool) -> JsonObject:
    """A tool from its fields, as most formats spell it."""
    body: JsonObject = {"name": tool.name}
    if tool.description:
        body["description"] = tool.description
    return {**body, "parameters": tool.parameters or {"type": "object", "properties": {}}}
