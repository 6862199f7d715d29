"""What is special to Chat Completions in a body: parameters, parts, fields of messages, reasoning that must (not) be
there. A profile says which of these rules count: their ids are among its traits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.format import Inspector as BaseInspector
from tenlines.wire.json_values import items
from tenlines.wire.openai_chat.encoding import REASONING_FIELDS, is_refused
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Diagnostic, Rule
from tenlines.wire.schemas import problems
from tenlines.wire.turns import Turn

MOST_TOOLS = 128
SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias")
CALL_TYPES = ("function", "custom")
SPEAKER = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PARTS: Mapping[str, tuple[str, ...]] = {
    "system": ("text",),
    "tool": ("text",),
    "assistant": ("text", "refusal"),
    "user": ("text", "image_url", "input_audio", "file", "video_url", "audio_url"),
}
"""Types of parts that a role may hold; media outside of a user's message are found by the general check."""
_MEDIA = ("image_url", "input_audio", "file")


class Inspector(BaseInspector):
    """The rules that no general situation covers."""

    def __init__(self, profile: Profile, rules: Mapping[str, Rule], artefacts: Sequence[Artefact] = ()) -> None:
        super().__init__(profile, rules, artefacts)
        self._ending: list[Turn] = []  # the assistant's turns without calls at the end of what was seen

    def _has(self, *ids: str) -> str:
        """The first of these rules that counts here; "" when none does."""
        return next((one for one in ids if self._profile.has(one)), "")

    # --- beside the messages ---

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """Tools and parameters."""
        tools = body.get("tools")
        entries = items(tools)
        if tools is not None and not isinstance(tools, list) and self._has("OAI-C-18"):
            yield self._found("OAI-C-18", "tools", "tools is not a list")
        if len(entries) > MOST_TOOLS and self._has("OAI-C-18"):
            yield self._found(
                "OAI-C-18", "tools", f"there are {len(entries)} tools; at most {MOST_TOOLS} are allowed", "TOOLS-COUNT"
            )
        for index, entry in enumerate(entries):
            yield from self._tool(entry, f"tools[{index}]")
        yield from self._combinations(body, bool(entries))
        yield from self._choice(body)
        yield from self._reasoning_model(body)

    def _tool(self, entry: JsonValue, path: str) -> Iterator[Diagnostic]:
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(function, dict):
            if isinstance(entry, dict) and entry.get("type") == "function" and self._has("LCP-1"):
                yield self._found("LCP-1", path, "the tool has no function")
            return
        if self._has("LCP-1") and not ("name" in function and "parameters" in function):
            yield self._found("LCP-1", path, "the tool has no name or no parameters")
        if function.get("strict") is True and self._has("OAI-C-24"):
            for where, problem in problems(function.get("parameters"), "openai_strict"):
                place = f"{path}.function.parameters{where and '.'}{where}"
                yield self._found("OAI-C-24", place, f"the tool is strict: {problem}")

    def _combinations(self, body: JsonObject, has_tools: bool) -> Iterator[Diagnostic]:
        if not has_tools and self._has("OAI-C-19"):
            for field in ("tool_choice", "parallel_tool_calls"):
                if body.get(field) is not None:
                    yield self._found("OAI-C-19", field, f"there is a {field}, but there are no tools")
        if has_tools and self._has("OAI-C-20") and body.get("reasoning_effort") != "none":
            effort = body.get("reasoning_effort")
            said = "no reasoning_effort is set" if effort is None else f"reasoning_effort is {effort!r}"
            yield self._found("OAI-C-20", "reasoning_effort", f"there are function tools and {said}")

    def _choice(self, body: JsonObject) -> Iterator[Diagnostic]:
        choice = body.get("tool_choice")
        if choice is None or not is_refused(choice, self._profile):
            return
        rule = self._has("DSK-3", "CMP-9")
        if rule:
            yield self._found(rule, "tool_choice", f"tool_choice {choice_word(choice)} is refused here")

    def _reasoning_model(self, body: JsonObject) -> Iterator[Diagnostic]:
        if self._has("OAI-C-21"):
            for field in unsupported(body, self._profile):
                yield self._found("OAI-C-21", field, f"{field} is not taken by this model")

    # --- messages ---

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """One turn."""
        if turn.role == "assistant" and not turn.of("call"):
            self._ending.append(turn)
        else:
            self._ending.clear()
        if isinstance(turn.raw, dict):
            yield from self._fields(turn, turn.raw)
            yield from self._parts(turn)
            yield from self._calls(turn)
            yield from self._reasoning(turn, turn.raw)

    def _fields(self, turn: Turn, raw: JsonObject) -> Iterator[Diagnostic]:
        content = raw.get("content")
        if content is not None and not isinstance(content, str | list) and self._has("OAI-C-3"):
            found = f"content is {kind_of(content)}; it must be text or a list of parts"
            yield self._found("OAI-C-3", f"{turn.path}.content", found)
        only_reasons = bool(turn.blocks) and all(block.kind == "reasoning" for block in turn.blocks)
        if only_reasons and self._has("OAI-C-3"):
            yield self._found("OAI-C-3", turn.path, "the message has neither content nor calls, only reasoning")
        name = raw.get("name")
        if turn.role != "tool" and isinstance(name, str) and self._has("OAI-C-15") and not SPEAKER.fullmatch(name):
            yield self._found("OAI-C-15", f"{turn.path}.name", f"the name {name[:40]!r} has characters it may not")

    def _parts(self, turn: Turn) -> Iterator[Diagnostic]:
        content = turn.raw.get("content") if isinstance(turn.raw, dict) else None
        if not isinstance(content, list) or turn.role == "unknown" or not self._has("OAI-C-4"):
            return
        for index, part in enumerate(content):
            if not is_allowed(part, turn.role):
                path = f"{turn.path}.content[{index}]"
                yield self._found("OAI-C-4", path, f"a {turn.wire_role} message may not hold {part_word(part)}")

    def _calls(self, turn: Turn) -> Iterator[Diagnostic]:
        calls = turn.raw.get("tool_calls") if isinstance(turn.raw, dict) else None
        if calls == [] and self._has("OAI-C-5"):
            yield self._found("OAI-C-5", f"{turn.path}.tool_calls", "tool_calls is an empty list")
        if not self._has("OAI-C-6"):
            return
        if calls is not None and not isinstance(calls, list):
            yield self._found("OAI-C-6", f"{turn.path}.tool_calls", "tool_calls is not a list", "ARGS-TYPE")
        for block in turn.of("call"):
            if block.path.endswith(".function_call"):
                continue
            if not isinstance(block.raw, dict) or block.raw.get("type") not in CALL_TYPES:
                yield self._found("OAI-C-6", block.path, f"the call {block.id!r} has no type", "ARGS-TYPE")

    def _reasoning(self, turn: Turn, raw: JsonObject) -> Iterator[Diagnostic]:
        if turn.role != "assistant":
            return
        rule = self._has("DSK-2", "OAI-C-22")
        for field in REASONING_FIELDS if rule else ():
            if raw.get(field) is not None:
                yield self._found(rule, f"{turn.path}.{field}", f"{field} is sent back, and there is no place for it")
        rule = self._has("DSK-1", "KIM-1")
        if rule and turn.of("call") and not isinstance(raw.get("reasoning_content"), str):
            yield self._found(rule, turn.path, "the message has calls and no reasoning_content")

    def close(self) -> Iterator[Diagnostic]:
        """The end of the messages."""
        if not self._has("LCP-2") or not self._ending or self._profile.has("history"):
            return
        path = self._ending[-1].path
        if len(self._ending) > 1:
            yield self._found("LCP-2", path, f"{len(self._ending)} messages of the assistant stand at the end")
        elif self._profile.has("thinks"):
            yield self._found(
                "LCP-2", path, "the assistant's message at the end would be continued, while thinking is on"
            )


# --- what inspecting and amending both ask ----------------------------------------------------------


def unsupported(body: JsonObject, profile: Profile) -> list[str]:
    """Parameters of a body that a reasoning model does not take."""
    found = [field for field in ("max_tokens",) if body.get(field) is not None]
    if body.get("reasoning_effort") != "none":
        found += [field for field in SAMPLING if body.get(field) is not None]
    if profile.has("stop.never") and body.get("stop") is not None:
        found.append("stop")
    return found


def choice_word(choice: JsonValue) -> str:
    """A choice of a tool in one word."""
    return choice if isinstance(choice, str) else "by name"


def is_allowed(part: JsonValue, role: str) -> bool:
    """Whether a part may stand in a message of this role: a text has text. Media are left to the general check."""
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(part, dict) and kind == "text" and not isinstance(part.get("text"), str):
        return False
    return kind in _MEDIA or kind in PARTS.get(role, ())


def part_word(part: JsonValue) -> str:
    """A part in a few words."""
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        return "a text part without text"
    return f"a part of type {kind!r}" if isinstance(kind, str) else "a part without a type"


def kind_of(value: JsonValue) -> str:
    """The kind of a JSON value, in a word."""
    return "an object" if isinstance(value, dict) else "true or false" if isinstance(value, bool) else "a number"
