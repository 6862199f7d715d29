"""Cures for what the inspector finds: parameters, parts, fields of messages, reasoning. All of them idempotent."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.json_values import obj, string
from tenlines.wire.openai_chat.encoding import REASONING_FIELDS, is_refused
from tenlines.wire.openai_chat.inspecting import (
    CALL_TYPES,
    MOST_TOOLS,
    SPEAKER,
    choice_word,
    is_allowed,
    kind_of,
    part_word,
    unsupported,
)
from tenlines.wire.openai_chat.turns import ROLES, fold, unfold
from tenlines.wire.parts import CONTINUE, EMPTY
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Change
from tenlines.wire.schemas import convert, problems
from tenlines.wire.turns import Block, Turn

# --- beside the messages ----------------------------------------------------------------------------


def amend_frame(body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
    """Cure tools and parameters; the body itself is not changed."""
    body, changes = dict(body), []
    tools = body.get("tools")
    if isinstance(tools, list):
        changes += _amend_tools(body, tools, profile)
    elif tools is not None and profile.has("OAI-C-18"):
        del body["tools"]
        changes.append(Change("TOOLS-COUNT", "tools", "Left out tools that were no list."))
    changes += _amend_combinations(body, profile)
    changes += _amend_limits(body, profile)
    return body, changes


def _amend_tools(body: JsonObject, tools: list[JsonValue], profile: Profile) -> list[Change]:
    tools, changes = list(tools), []
    if len(tools) > MOST_TOOLS and profile.has("OAI-C-18"):
        kept = _most_wanted(tools, body.get("messages"))
        changes.append(Change("TOOLS-COUNT", "tools", f"Left {len(tools) - MOST_TOOLS} tools out that no call needs."))
        tools = kept
    for index, entry in enumerate(tools):
        amended, said = _amend_tool(entry, profile)
        if said:
            tools[index] = amended
            changes.append(Change("SCHEMA-SUBSET", f"tools[{index}]", said))
    if changes:
        body["tools"] = tools
    return changes


def _most_wanted(tools: list[JsonValue], messages: JsonValue) -> list[JsonValue]:
    """As many tools as are allowed, in their order: those that were called, and then the first ones."""
    called = (
        {block.name for message in messages for block in unfold(message, "").of("call")}
        if isinstance(messages, list)
        else set()
    )
    places = sorted(range(len(tools)), key=lambda place: (_tool_name(tools[place]) not in called, place))
    return [tools[place] for place in sorted(places[:MOST_TOOLS])]


def _tool_name(entry: JsonValue) -> str:
    function = entry.get("function") if isinstance(entry, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return string(name)


_NAMELESS: JsonObject = {"name": "unnamed", "parameters": {"type": "object", "properties": {}}}


def _amend_tool(entry: JsonValue, profile: Profile) -> tuple[JsonValue, str]:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(function, dict):
        if isinstance(entry, dict) and entry.get("type") == "function" and profile.has("LCP-1"):
            return {**entry, "function": _NAMELESS}, "Gave a tool without a function an empty one."
        return entry, ""
    if profile.has("LCP-1") and not ("name" in function and "parameters" in function):
        return {**entry, "function": _NAMELESS | function}, "Gave a tool the name or the parameters that it lacked."
    parameters = function.get("parameters")
    if function.get("strict") is True and profile.has("OAI-C-24") and problems(parameters, "openai_strict"):
        schema = convert(obj(parameters), "openai_strict").schema
        if problems(schema, "openai_strict"):
            said = "Took the mark `strict` off a tool whose parameters cannot be strict."
            return {**entry, "function": {**function, "strict": False}}, said
        said = "Rewrote the parameters of a strict tool: everything required, nothing else allowed."
        return {**entry, "function": {**function, "parameters": schema}}, said
    return entry, ""


def _amend_combinations(body: JsonObject, profile: Profile) -> list[Change]:
    changes = []
    has_tools = isinstance(body.get("tools"), list) and bool(body["tools"])
    for field in ("tool_choice", "parallel_tool_calls"):
        if not has_tools and profile.has("OAI-C-19") and body.get(field) is not None:
            del body[field]
            changes.append(Change("PARAM-COMBO", field, f"Left {field} out, as there are no tools."))
    if has_tools and profile.has("OAI-C-20") and body.get("reasoning_effort") != "none":
        body["reasoning_effort"] = "none"
        changes.append(Change("PARAM-COMBO", "reasoning_effort", "Set reasoning_effort to none, as there are tools."))
    choice = body.get("tool_choice")
    if choice is not None and _any(profile, "DSK-3", "CMP-9") and is_refused(choice, profile):
        body["tool_choice"] = "auto"
        changes.append(Change("PARAM-COMBO", "tool_choice", f"Set tool_choice {choice_word(choice)} to auto."))
    return changes


def _amend_limits(body: JsonObject, profile: Profile) -> list[Change]:
    if not profile.has("OAI-C-21"):
        return []
    changes = []
    for field in unsupported(body, profile):
        value = body.pop(field)
        said = f"Left {field} out, which this model does not take."
        if field == "max_tokens":
            body.setdefault("max_completion_tokens", value)
            said = "Renamed max_tokens to max_completion_tokens."
        changes.append(Change("PARAM-COMBO", field, said))
    return changes


# --- messages ---------------------------------------------------------------------------------------


def amend(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
) -> tuple[list[Turn], list[Change]]:
    """Cure one stretch of turns."""
    amended, changes = [], list[Change]()
    for turn in turns:
        message = fold(turn)
        if not isinstance(message, dict):
            amended.append(turn)
            continue
        cured = dict(message)
        found = [change for cure in _CURES for change in cure(cured, turn, profile)]
        amended.append(unfold(cured, turn.path) if found else turn)
        changes += found
    if is_last and profile.has("LCP-2"):
        changes += _close(amended, profile)
    return amended, changes


def _cure_content(message: JsonObject, turn: Turn, profile: Profile) -> list[Change]:
    content, path = message.get("content"), f"{turn.path}.content"
    if profile.has("OAI-C-3") and content is not None and not isinstance(content, str | list):
        text = content.get("text") if isinstance(content, dict) else None
        message["content"] = string(text)
        said = f"Replaced content that was {kind_of(content)} by {'its text' if message['content'] else 'empty text'}."
        return [Change("EMPTY-MSG", path, said)]
    if profile.has("OAI-C-3") and not content and _only_reasons(message, turn):
        message["content"] = EMPTY if profile.has("content.filled") else ""
        return [Change("EMPTY-MSG", path, "Gave a message of reasoning alone a text.")]
    return []


def _only_reasons(message: JsonObject, turn: Turn) -> bool:
    blocks = unfold(message, turn.path).blocks
    return bool(blocks) and all(block.kind == "reasoning" for block in blocks)


def _cure_parts(message: JsonObject, turn: Turn, profile: Profile) -> list[Change]:
    content, role = message.get("content"), ROLES.get(str(message.get("role")), "")
    if not isinstance(content, list) or not role or not profile.has("OAI-C-4"):
        return []
    kept = [part for part in content if is_allowed(part, role)]
    if len(kept) == len(content):
        return []
    dropped = [
        Change("MEDIA-PLACE", f"{turn.path}.content[{index}]", f"Took {part_word(part)} out of a {role} message.")
        for index, part in enumerate(content)
        if not is_allowed(part, role)
    ]
    message["content"] = kept or (None if turn.of("call") else "")
    return dropped


def _cure_calls(message: JsonObject, turn: Turn, profile: Profile) -> list[Change]:
    calls, path = message.get("tool_calls"), f"{turn.path}.tool_calls"
    if calls == [] and profile.has("OAI-C-5"):
        del message["tool_calls"]
        return [Change("EMPTY-MSG", path, "Left an empty list of calls out.")]
    if calls is None or not profile.has("OAI-C-6"):
        return []
    if not isinstance(calls, list):
        del message["tool_calls"]
        return [Change("ARGS-TYPE", path, "Left out tool_calls that were no list.")]
    kept, changes = list[JsonValue](), []
    for index, entry in enumerate(calls):
        if not isinstance(entry, dict) or entry.get("type") in CALL_TYPES:
            kept.append(entry)
            continue
        kept.append({**entry, "type": "custom" if isinstance(entry.get("custom"), dict) else "function"})
        changes.append(
            Change("ARGS-TYPE", f"{path}[{index}]", "Said of a call without a type that it is a function's.")
        )
    if changes:
        message["tool_calls"] = kept
    return changes


def _cure_speaker(message: JsonObject, turn: Turn, profile: Profile) -> list[Change]:
    name = message.get("name")
    if message.get("role") in ("tool", "function") or not isinstance(name, str) or not profile.has("OAI-C-15"):
        return []
    if SPEAKER.fullmatch(name):
        return []
    clean = re.sub(r"[^a-zA-Z0-9_-]+", "_", name).strip("_")[:64]
    if clean:
        message["name"] = clean
        return [Change("NAME-CHARSET", f"{turn.path}.name", f"Renamed the speaker to {clean}.")]
    del message["name"]
    return [Change("NAME-CHARSET", f"{turn.path}.name", "Left the name of the speaker out.")]


def _cure_reasoning(message: JsonObject, turn: Turn, profile: Profile) -> list[Change]:
    if turn.role != "assistant":
        return []
    changes = []
    if _any(profile, "DSK-2", "OAI-C-22"):
        for field in REASONING_FIELDS:
            if message.pop(field, None) is not None:
                changes.append(Change("RSN-FOREIGN", f"{turn.path}.{field}", f"Took {field} out."))
    is_missing = not isinstance(message.get("reasoning_content"), str)
    if _any(profile, "DSK-1", "KIM-1") and is_missing and unfold(message, turn.path).of("call"):
        message["reasoning_content"] = ""
        changes.append(Change("RSN-MISSING", turn.path, "Gave a message with calls an empty reasoning_content."))
    return changes


_CURES = (_cure_calls, _cure_content, _cure_parts, _cure_speaker, _cure_reasoning)


def _close(turns: list[Turn], profile: Profile) -> list[Change]:
    """A user's word behind the assistant's messages at the end, where the server would continue them or refuse."""
    if profile.has("history"):
        return []
    ending = 0
    for turn in reversed(turns):
        if turn.role != "assistant" or turn.of("call"):
            break
        ending += 1
    if ending > 1 or (ending and profile.has("thinks")):
        path = turns[-1].path
        turns.append(Turn("user", (Block("text", path, text=CONTINUE),), path))
        return [Change("ROLE-LAST", path, "Put a short user message behind the assistant's at the end.")]
    return []


def _any(profile: Profile, *traits: str) -> bool:
    return any(profile.has(trait) for trait in traits)
