"""What OpenAI itself demands of a Chat Completions request: its rules, its refusals and its profiles.

Traits of the profiles of this format, beside the ids of the rules that the inspector looks for (`OAI-C-5`):

- `limit.new_name`: the most output tokens go as `max_completion_tokens`.
- `effort.none_with_tools`: function tools only with `reasoning_effort="none"`.
- `content.blank`: a message of calls alone has the content `""` rather than null.
- `content.filled`: no text may be empty; a placeholder stands in.
- `reasoning.never`: reasoning must not be sent back.
- `reasoning.calls`, `reasoning.every`: `reasoning_content` must stand in messages with calls, or in all of the model's.
- `turns.continued`: nothing may end with the model, nor may it speak twice in a row; "Continue." is put there.
- `user.after_results.never`: a word of the model stands between results and a user message.
- `ids.native`: ids of calls go back as the server made them. `ids.nine`: ids are nine letters and digits.
- `choice.auto_only`, `choice.never_required`, `choice.never_named`: which choices of a tool are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.rules import Rule

AS_OF = "2026-11-30"

# --- examples ---------------------------------------------------------------------------------------


def call(call_id: str = "a", name: str = "f", arguments: str = "{}") -> JsonObject:
    """A call, for an example."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: JsonObject, **fields: JsonValue) -> JsonObject:
    """A message with calls, for an example."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **fields}


def result(call_id: str = "a", content: JsonValue = "1") -> JsonObject:
    """A result, for an example."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


USER: JsonObject = {"role": "user", "content": "hi"}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
PICTURE: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


def example(*messages: JsonObject, **fields: JsonValue) -> str:
    """A body as JSON text; `tools` are declared when there are calls in it."""
    body: JsonObject = {"messages": list(messages)}
    if any("tool_calls" in message for message in messages):
        body["tools"] = [TOOL]
    return json.dumps({key: value for key, value in {**body, **fields}.items() if value is not None})


# --- the rules --------------------------------------------------------------------------------------

_STRICT: JsonObject = {
    "type": "function",
    "function": {
        "name": "f",
        "strict": True,
        "parameters": {"type": "object", "properties": {"x": {"type": "string"}}, "required": []},
    },
}

RULES: tuple[Rule, ...] = (
    Rule(
        "OAI-C-1",
        ("ROLE-UNKNOWN",),
        "error",
        "A message has one of the roles developer, system, user, assistant, tool, or the outdated function. For "
        "reasoning models developer has taken the place of system; either is understood.",
        "invalid_request_error",
        fix="Name the role as this format does: model is assistant here, and a result is a tool message.",
        example=example(USER, {"role": "model", "content": "hello"}),
    ),
    Rule(
        "OAI-C-2",
        (),
        "info",
        "Roles need not alternate: system messages may stand anywhere, neighbours may have one role, and the "
        "assistant may speak first.",
        evidence="inferred",
    ),
    Rule(
        "OAI-C-3",
        ("EMPTY-MSG",),
        "error",
        "Content is text or a list of parts. Only a message with tool_calls may have null, or none at all.",
        "expected one of a string or array of objects",
        fix="Give the message text, or leave it out.",
        example=example(USER, {"role": "assistant", "content": None}),
    ),
    Rule(
        "OAI-C-4",
        ("MEDIA-PLACE",),
        "error",
        "Parts belong to roles: system and tool messages hold text, the assistant's hold text and refusals, only a "
        "user's hold images, audio and files.",
        "Image URLs are only allowed for messages with role 'user'",
        evidence="reported",
        fix="Put the image into a user message behind all results, and a line of text in its place.",
        example=example(USER, calling(call()), result(content=[PICTURE])),
    ),
    Rule(
        "OAI-C-5",
        ("EMPTY-MSG",),
        "error",
        "A message without calls has no tool_calls; an empty list is refused.",
        "Expected an array with minimum length 1",
        evidence="reported",
        fix="Leave the field out.",
        example=example(USER, {"role": "assistant", "content": "hello", "tool_calls": []}, USER, tools=[TOOL]),
    ),
    Rule(
        "OAI-C-6",
        ("ID-MISSING", "ARGS-TYPE", "ROLE-ORDER"),
        "error",
        "Calls stand in messages of the assistant. A call has an id, a type, and a function with a name and "
        "arguments, which are text; a result names the id of its call.",
        "Missing required parameter",
        fix="Write the arguments as JSON text, and the same id on both sides.",
        example=example(USER, calling({"type": "function", "function": {"name": "f", "arguments": "{}"}}), result("")),
    ),
    Rule(
        "OAI-C-7",
        ("ID-LENGTH",),
        "error",
        "The id of a call has at most 40 characters. Ids of other endpoints and of gateways are often longer.",
        "string too long. Expected a string with maximum length 40",
        evidence="reported",
        fix="Replace the id by a short one, in the call and in its result.",
        example=example(USER, calling(call("c" * 41)), result("c" * 41)),
    ),
    Rule(
        "OAI-C-8",
        ("PAIR-MISSING", "PAIR-GAP"),
        "error",
        "Every call is answered in the unbroken run of tool messages right behind the message that made it.",
        "must be followed by tool messages responding to each 'tool_call_id'",
        evidence="reported",
        fix="Move the result up to its call; where there is none, add one that says so.",
        example=example(USER, calling(call()), USER),
    ),
    Rule(
        "OAI-C-9",
        ("PAIR-ORPHAN",),
        "error",
        "A tool message stands in the run right behind a message with calls.",
        "must be a response to a preceeding message with 'tool_calls'",
        evidence="reported",
        fix="Take the result out, or bring its call back.",
        example=example(USER, result()),
    ),
    Rule(
        "OAI-C-10",
        ("PAIR-ORPHAN",),
        "error",
        "A result names one of the ids of the message that it stands behind.",
        "not found in 'tool_calls' of previous message",
        evidence="reported",
        fix="Give the result the id of its call, or take it out.",
        example=example(USER, calling(call()), result(), result("b")),
    ),
    Rule(
        "OAI-C-11",
        ("PAIR-DUP",),
        "error",
        "A call has one result.",
        "Duplicate value for 'tool_call_id'",
        evidence="reported",
        fix="Keep the result that the tool gave and take the other one out.",
        example=example(USER, calling(call()), result(), result()),
    ),
    Rule("OAI-C-12", (), "info", "The results of one message may come in any order.", evidence="reported"),
    Rule(
        "OAI-C-13",
        ("EMPTY-MSG",),
        "error",
        "A tool message has content: text, which may be empty, or text parts.",
        "Missing required parameter",
        fix="Write an empty text, or say that there was no output.",
        example=example(USER, calling(call()), {"role": "tool", "tool_call_id": "a"}),
    ),
    Rule(
        "OAI-C-14",
        ("NAME-CHARSET", "NAME-LENGTH"),
        "error",
        "Names of tools are 1 to 64 letters, digits, underscores and hyphens, in earlier calls as well.",
        "string does not match pattern",
        fix="Replace what is not allowed, everywhere alike.",
        example=example(USER, calling(call(name="a.b")), result()),
    ),
    Rule(
        "OAI-C-15",
        ("NAME-CHARSET",),
        "error",
        "The name of a speaker is made of letters, digits, underscores and hyphens.",
        "string does not match pattern",
        evidence="reported",
        fix="Replace what is not allowed.",
        example=example({"role": "user", "name": "Ada L.", "content": "hi"}),
    ),
    Rule(
        "OAI-C-16",
        (),
        "info",
        "Arguments of earlier calls are not parsed here, so broken JSON may go back; other servers parse it (CMP-3).",
        evidence="inferred",
    ),
    Rule("OAI-C-17", (), "info", "Tools of earlier calls need not be declared any more.", evidence="inferred"),
    Rule(
        "OAI-C-18",
        ("TOOLS-COUNT",),
        "error",
        "There are 1 to 128 tools, or no list at all.",
        "empty_array",
        evidence="reported",
        fix="Leave an empty list out; offer fewer tools.",
        example=example(USER, tools=[]),
    ),
    Rule(
        "OAI-C-19",
        ("PARAM-COMBO",),
        "error",
        "tool_choice and parallel_tool_calls go with tools only.",
        "is only allowed when 'tools' are specified",
        evidence="inferred",
        fix="Leave the parameter out.",
        example=example(USER, tool_choice="auto"),
    ),
    Rule(
        "OAI-C-20",
        ("PARAM-COMBO",),
        "error",
        "GPT-5.4 and later take function tools on this endpoint only with reasoning_effort none; their own default "
        "is refused as well. gpt-6-astra does not know none, so it has no function tools here.",
        "Function tools with reasoning_effort are not supported",
        evidence="reported",
        fix="Set reasoning_effort to none, or use the Responses endpoint.",
        example=example(USER, tools=[TOOL], reasoning_effort="low"),
        context={"model": "gpt-5.6"},
        needs="profile",
    ),
    Rule(
        "OAI-C-21",
        ("PARAM-COMBO",),
        "error",
        "Reasoning models take max_completion_tokens for max_tokens, and neither temperature nor its kin; o3 and "
        "o4-mini take no stop either.",
        "is not supported with this model",
        fix="Rename the limit and leave the other parameters out.",
        example=example(USER, max_tokens=9),
        context={"model": "o4-mini"},
        needs="profile",
    ),
    Rule(
        "OAI-C-22",
        ("RSN-FOREIGN",),
        "warning",
        "The format has no place for reasoning: reasoning_content, reasoning and reasoning_details are other servers' "
        "fields. Whether they are tolerated is not known.",
        evidence="uncertain",
        fix="Leave the field out.",
        example=example(USER, {"role": "assistant", "content": "hello", "reasoning_content": "hm"}, USER),
    ),
    Rule(
        "OAI-C-24",
        ("SCHEMA-SUBSET",),
        "error",
        "The parameters of a strict tool are an object that requires all its properties and allows no others, and so "
        "are the objects in it.",
        "invalid_function_parameters",
        fix="Require every property, make those that are optional nullable, and set additionalProperties to false.",
        example=example(USER, tools=[_STRICT]),
    ),
    Rule(
        "OAI-C-26",
        ("ID-DUP",),
        "error",
        "An id is new in its message. In a later message it may be used again.",
        "duplicate",
        evidence="reported",
        fix="Give the second call an id of its own, and its result as well.",
        example=example(USER, calling(call(), call()), result()),
    ),
)

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"must be followed by tool messages|did not have response messages", "OAI-C-8"),
    (r"must be a response to a preceeding message", "OAI-C-9"),
    (r"not found in 'tool_calls' of previous message", "OAI-C-10"),
    (r"duplicate value for 'tool_call_id'", "OAI-C-11"),
    (r"duplicate tool_call_id", "OAI-C-26"),
    (r"function tools with reasoning_effort are not supported", "OAI-C-20"),
    (r"only allowed when 'tools' are specified", "OAI-C-19"),
    (r"image urls are only allowed", "OAI-C-4"),
    (r"'messages\[\d+\]\.tool_calls': empty array", "OAI-C-5"),
    (r"'tools': (empty array|array too long)", "OAI-C-18"),
    (r"(id'?: string too long|tool_call_id.{0,40}string too long|maximum length 40)", "OAI-C-7"),
    (r"'messages\[\d+\]\.name': string does not match pattern", "OAI-C-15"),
    (r"name'?: string (does not match pattern|too long)", "OAI-C-14"),
    (r"\.arguments': expected|invalid type for 'messages\[\d+\]\.tool_calls", "OAI-C-6"),
    (r"missing required parameter: 'messages\[\d+\]\.(tool_calls|tool_call_id)", "OAI-C-6"),
    (r"missing required parameter: 'messages\[\d+\]\.content", "OAI-C-13"),
    (r"invalid type for 'messages\[\d+\]\.content'", "OAI-C-3"),
    (r"invalid value: .{0,40}supported values are: .{0,20}'(system|developer|assistant)'", "OAI-C-1"),
    (r"invalid_function_parameters|invalid schema for function", "OAI-C-24"),
    (r"(unsupported parameter|unsupported_parameter|unsupported_value).{0,80}not support", "OAI-C-21"),
)

# --- profiles ---------------------------------------------------------------------------------------

FAULTS: dict[Situation, str] = {
    "role.unknown": "OAI-C-1",
    "role.call": "OAI-C-6",
    "id.missing": "OAI-C-6",
    "id.length": "OAI-C-7",
    "id.repeated": "OAI-C-26",
    "args.type": "OAI-C-6",
    "pair.missing": "OAI-C-8",
    "pair.gap": "OAI-C-8",
    "pair.orphan": "OAI-C-9",
    "pair.stranger": "OAI-C-10",
    "pair.repeated": "OAI-C-11",
    "name.pattern": "OAI-C-14",
    "name.length": "OAI-C-14",
    "tools.empty": "OAI-C-18",
    "message.empty": "OAI-C-3",
    "result.empty": "OAI-C-13",
    "media.result": "OAI-C-4",
    "media.role": "OAI-C-4",
}

_BASE = frozenset({"OAI-C-3", "OAI-C-4", "OAI-C-5", "OAI-C-6", "OAI-C-15", "OAI-C-18", "OAI-C-19", "OAI-C-24"})
"""What the inspector looks for at OpenAI and, unless a profile says otherwise, everywhere."""

_REASONING = re.compile(r"o\d|o-series|gpt-(5(?!.*chat)|[6-9])")
_NONE_WITH_TOOLS = re.compile(r"gpt-(5\.[4-9]|[6-9])")
_NO_STOP = re.compile(r"o3|o4-mini")
_NO_SCHEMA = re.compile(r"$|gpt-3|gpt-4(-|$)|gpt-4o-2024-05|chatgpt|o1-(mini|preview)|.*(audio|search|realtime)")
"""Models that take no `response_format` with a schema, and those that are not known."""


def openai_profile(context: Mapping[str, str | bool]) -> Profile:
    """OpenAI itself, or OpenAI's models elsewhere; what depends on the model is there when it is known."""
    model = str(context.get("model") or context.get("model_family") or "").rsplit("/", 1)[-1].lower()
    traits = {*_BASE, "OAI-C-22", "limit.new_name", "reasoning.never"}
    if _REASONING.match(model):
        traits.add("OAI-C-21")
    if _NO_SCHEMA.match(model) is None:
        traits.add("answer.beside")
    if _NO_STOP.match(model):
        traits.add("stop.never")
    if _NONE_WITH_TOOLS.match(model):
        traits |= {"OAI-C-20", "effort.none_with_tools"}
    return Profile(
        name="azure" if context.get("server") == "azure" else "openai",
        format="openai_chat",
        provider="openai",
        as_of=AS_OF,
        sources="types of the openai package 3.57; error texts that users quoted",
        model=model,
        faults=FAULTS,
        id_max=40,
        traits=frozenset(traits),
        carries=frozenset({"images", "files"}),
    )
