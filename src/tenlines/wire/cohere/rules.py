"""What Cohere demands of a chat request: its rules, its profile, its inspector and the cure of what that finds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.format import Inspector as BaseInspector
from tenlines.wire.json_values import obj
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.rules import Change, Diagnostic, Rule
from tenlines.wire.schemas import convert, sizes

AS_OF = "2026-11-30"
MOST_FIELDS = 200

_USER: JsonObject = {"role": "user", "content": "hi"}
_CALL: JsonObject = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_OPTIONAL: JsonObject = {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}
_TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": _OPTIONAL}}

RULES: tuple[Rule, ...] = (
    Rule(
        "COH-1",
        ("PAIR-MISSING", "PAIR-GAP", "PAIR-ORPHAN", "PAIR-DUP", "ID-MISSING", "ID-DUP", "ARGS-TYPE"),
        "error",
        "Every call is answered right behind its message by a tool message with its id; arguments are JSON text; "
        "what the model says beside calls stands in tool_plan.",
        "must be followed by tool messages responding to each 'tool_call_id'",
        fix="Give each call its one result, right behind the message that made it.",
        example=json.dumps({"messages": [_USER, {"role": "assistant", "tool_calls": [_CALL]}, _USER]}),
    ),
    Rule(
        "COH-2",
        ("SCHEMA-SUBSET",),
        "error",
        "With strict_tools every tool requires at least one of its parameters, and all tools together have at most "
        f"{MOST_FIELDS} fields.",
        "strict_tools",
        fix="Require a parameter of every tool, or leave strict_tools out.",
        example=json.dumps({"messages": [_USER], "strict_tools": True, "tools": [_TOOL]}),
    ),
)

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"must be followed by tool messages|did not have response messages", "COH-1"),
    (r"must be a response to a prece+ding message|not found in 'tool_calls'", "COH-1"),
    (r"strict_tools|at least one required parameter", "COH-2"),
)

_FAULTS: dict[Situation, str] = {
    "id.missing": "COH-1",
    "id.repeated": "COH-1",
    "args.type": "COH-1",
    "pair.missing": "COH-1",
    "pair.gap": "COH-1",
    "pair.orphan": "COH-1",
    "pair.stranger": "COH-1",
    "pair.repeated": "COH-1",
}


def profile(context: Mapping[str, str | bool]) -> Profile:
    """Cohere's own endpoint; all its models are alike here."""
    return Profile(
        name="cohere",
        format="cohere",
        provider="cohere",
        as_of=AS_OF,
        sources="Cohere's guide to tool use, version 2; error texts that users quoted",
        model=str(context.get("model") or "").lower(),
        faults=_FAULTS,
        name_pattern="",
        traits=frozenset({"answer.alone"}),
        carries=frozenset({"images", "result_json", "reasoning"}),
    )


# --- strict tools -----------------------------------------------------------------------------------


class Inspector(BaseInspector):
    """Strict tools are all that no general situation covers."""

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """Tools, when they are strict."""
        for path, message in _looseness(body):
            yield self._found("COH-2", path, message)


def _looseness(body: JsonObject) -> Iterator[tuple[str, str]]:
    tools = body.get("tools")
    if body.get("strict_tools") is not True or not isinstance(tools, list):
        return
    fields = 0
    for index, entry in enumerate(tools):
        parameters = _parameters(entry)
        fields += sizes(parameters).properties
        if not parameters.get("required"):
            yield f"tools[{index}].function.parameters", "tools are strict, and this one requires no parameter"
    if fields > MOST_FIELDS:
        yield "tools", f"tools are strict and have {fields} fields together; at most {MOST_FIELDS} are allowed"


def _parameters(entry: JsonValue) -> JsonObject:
    function = entry.get("function") if isinstance(entry, dict) else None
    parameters = function.get("parameters") if isinstance(function, dict) else None
    return obj(parameters)


def amend_frame(body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
    """Make tools strict that are said to be; where that cannot be done, do not say so."""
    if next(_looseness(body), None) is None:
        return body, []
    tools = body.get("tools")
    entries = [_strict(entry) for entry in tools] if isinstance(tools, list) else []
    amended: JsonObject = {**body, "tools": entries}
    if next(_looseness(amended), None) is None:
        return amended, [Change("SCHEMA-SUBSET", "tools", "Rewrote the parameters of strict tools.")]
    plain = {key: value for key, value in body.items() if key != "strict_tools"}
    return plain, [Change("SCHEMA-SUBSET", "strict_tools", "Left strict_tools out: these tools cannot be strict.")]


def _strict(entry: JsonValue) -> JsonValue:
    if not isinstance(entry, dict) or _parameters(entry).get("required"):
        return entry
    function = entry.get("function")
    if not isinstance(function, dict):
        return entry
    schema = convert(_parameters(entry), "cohere_strict").schema
    return {**entry, "function": {**function, "parameters": schema}}
