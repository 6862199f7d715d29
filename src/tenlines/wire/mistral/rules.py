"""What Mistral demands of a request, by the version of the tokenizer that validates it.

The hosted API does not say which version it runs, and deployments are of different age. So without a version the
profile is a cautious one: ids of nine letters and digits, which every version takes, and no user message directly
behind results, which the open validator takes and the hosted API was seen to refuse.

Traits of the profiles of this format:

- `user_after_tool`: a user message may stand directly behind results.
- `calls_alone`: a message has text or calls, never both and never neither.
- `thinking`: thoughts may stand in messages of the assistant.
- `image_results`: results may hold images. `no_images`: nobody may send any.
- `no_effort`: there is no `reasoning_effort`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.json_values import string
from tenlines.wire.mistral.encoding import NAME_PATTERN, NAMED, NINE
from tenlines.wire.profile import Profile, Situation, TurnRole
from tenlines.wire.rules import Rule

AS_OF = "2026-11-30"

# --- examples ---------------------------------------------------------------------------------------


def call(call_id: str = "aaaaaaaa1", name: str = "f") -> JsonObject:
    """A call, for an example."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def calling(*calls: JsonObject, **fields: JsonValue) -> JsonObject:
    """A message with calls, for an example."""
    return {"role": "assistant", "tool_calls": list(calls), **fields}


def result(call_id: str = "aaaaaaaa1", content: JsonValue = "1") -> JsonObject:
    """A result, for an example."""
    return {"role": "tool", "tool_call_id": call_id, "name": "f", "content": content}


def tool(name: str = "f", parameters: JsonObject | None = None) -> JsonObject:
    """A tool, for an example."""
    schema = parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": schema}}


USER: JsonObject = {"role": "user", "content": "hi"}
HELLO: JsonObject = {"role": "assistant", "content": "hello"}
IMAGE: JsonObject = {"type": "image_url", "image_url": "data:image/png;base64,iVBORw0KGgo="}


def example(*messages: JsonObject, **fields: JsonValue) -> str:
    """A body as JSON text; a tool is declared."""
    return json.dumps({"messages": list(messages), "tools": [tool()], **fields})


_V3: dict[str, str | bool] = {"tokenizer": "v3"}
_V11: dict[str, str | bool] = {"tokenizer": "v11"}
_V13: dict[str, str | bool] = {"tokenizer": "v13"}

# --- the rules --------------------------------------------------------------------------------------

RULES: tuple[Rule, ...] = (
    Rule(
        "MIS-1",
        ("ROLE-FIRST", "EMPTY-MSG"),
        "error",
        "There is a message, and a single one is the user's or a system message. Calls in the very first message are "
        "not counted, so that their results are refused.",
        "Conversation must (have at least one message|start with a user message or system message)",
        evidence="source",
        fix="Let the user say something.",
        example=example(HELLO),
        context=_V13,
        needs="profile",
    ),
    Rule(
        "MIS-2",
        ("ROLE-ORDER", "ROLE-UNKNOWN", "PAIR-GAP"),
        "error",
        "The roles are system, user, assistant and tool. After the assistant comes the assistant, a user or a result; "
        "after a result another one, the assistant, or (by the open validator, not at the hosted API) a user; after "
        "anything else no result.",
        "Unexpected role '",
        evidence="source",
        fix="Move system messages to the front, results behind their calls, and put a word of the assistant between "
        "results and a user.",
        example=example(USER, calling(call()), {"role": "system", "content": "note"}, result()),
        context=_V13,
        needs="profile",
    ),
    Rule(
        "MIS-3",
        ("ROLE-LAST",),
        "error",
        "The last message is a user's or a result, or one of the assistant with `prefix: true`, which may stand "
        "nowhere else.",
        "Expected last role User or Tool",
        evidence="source",
        fix="Put a user message at the end, or mark the last message as a prefix.",
        example=example(USER, HELLO),
        context=_V13,
        needs="profile",
    ),
    Rule(
        "MIS-4",
        ("ID-MISSING", "ID-CHARSET", "ID-LENGTH"),
        "error",
        "Up to v11 the id of a call is exactly nine letters and digits; from v13 on it is any text but an empty one "
        "and `null`.",
        "Tool call id",
        evidence="source",
        fix="Replace the id by nine letters and digits, in the call and in its result.",
        example=example(USER, calling(call("call_abc12")), result("call_abc12")),
        context=_V11,
        needs="profile",
    ),
    Rule(
        "MIS-5",
        ("PAIR-MISSING", "PAIR-ORPHAN", "PAIR-DUP"),
        "error",
        "There are as many results as calls before the assistant speaks again, and at the end.",
        "Not the same number of function calls and responses",
        evidence="source",
        fix="Add a result that says that nothing was recorded; take out those that answer no call.",
        example=example(USER, calling(call("aaaaaaaa1"), call("aaaaaaaa2")), result("aaaaaaaa1")),
        context=_V3,
        needs="profile",
    ),
    Rule(
        "MIS-6",
        ("PAIR-ORPHAN", "PAIR-DUP", "ID-DUP"),
        "error",
        "From v11 on results are matched by id: each answers one call of the message before it, and no id stands twice "
        "in a message. In later rounds an id may come again, and the order of results is free.",
        "tool call id",
        evidence="source",
        fix="Give each result the id of its call, and each call of a message an id of its own.",
        example=example(USER, calling(call("aaaaaaaa1")), result("aaaaaaaa9")),
        context=_V11,
        needs="profile",
    ),
    Rule(
        "MIS-7",
        ("EMPTY-MSG",),
        "error",
        "Up to v3 a message of the assistant has either content or calls; later both are allowed, and even neither. "
        "All other messages have content, which may be an empty text.",
        "Assistant message must have either content or tool_calls, but not both",
        evidence="source",
        fix="Make two messages of one with both, and leave one with neither out.",
        example=example(USER, calling(call(), content="I look"), result()),
        context=_V3,
        needs="profile",
    ),
    Rule(
        "MIS-8",
        ("NAME-CHARSET", "NAME-LENGTH"),
        "error",
        "The name of a tool is 1 to 64 letters, digits, underscores and hyphens, where it is declared, where it is "
        "called, and in a result that has one.",
        "Function name was",
        evidence="source",
        fix="Replace what is not allowed, everywhere alike.",
        example=example(USER, tools=[tool("fs.read")]),
    ),
    Rule(
        "MIS-9",
        ("SCHEMA-SUBSET",),
        "error",
        "The parameters of a tool are a valid JSON Schema of Draft 7.",
        "Invalid tool schema",
        evidence="source",
        fix="Correct the keyword, or leave it out.",
        example=example(USER, tools=[tool("f", {"type": "objekt"})]),
    ),
    Rule(
        "MIS-10",
        (),
        "info",
        "Arguments are text or an object; none at all mean no arguments, and text that is no JSON is passed on.",
        evidence="source",
    ),
    Rule(
        "MIS-11",
        ("MEDIA-PLACE", "RSN-FOREIGN"),
        "error",
        "Images stand in user messages (from v3 on), in results only from v15 on, and thoughts in messages of the "
        "assistant from v11 on.",
        "Unexpected content chunk types in",
        evidence="source",
        fix="Put a line of text in the place of the image, and the image into a later user message.",
        example=example(USER, calling(call()), result(content=[IMAGE])),
        context=_V13,
        needs="profile",
    ),
    Rule(
        "MIS-12",
        (),
        "info",
        "The assistant may begin when something follows, and neighbours of one role are joined by blank lines.",
        evidence="source",
    ),
    Rule(
        "MIS-13",
        ("PARAM-COMBO", "ARGS-TYPE", "EMPTY-TEXT"),
        "error",
        "A message has the fields of its role and no others, so nothing that other formats have beside them; a call "
        "has arguments, and a chunk of text has text.",
        "Extra inputs are not permitted",
        evidence="source",
        fix="Leave out what the format does not have; write `{}` for a call without arguments.",
        example=example({**HELLO, "refusal": None}, USER),
    ),
    Rule(
        "CAC-6",
        (),
        "info",
        "A prefix that was seen before is read from the cache; `prompt_cache_key` sends like requests to one place.",
        evidence="documented",
        needs="none",
    ),
    Rule(
        "STR-6",
        (),
        "info",
        "A stream is like OpenAI's, but a call mostly comes whole, and all may have the index 0.",
        evidence="uncertain",
        needs="none",
    ),
    Rule(
        "USE-6",
        (),
        "info",
        "prompt_tokens counts cached tokens too; num_cached_tokens or prompt_tokens_details says how many there were.",
        evidence="documented",
        needs="none",
    ),
)

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"must have at least one message|must start with a user message", "MIS-1"),
    (r"Unexpected role '?\w+'? after role", "MIS-2"),
    (r"Expected last role|with prefix True must be last|Cannot continue", "MIS-3"),
    (r"(Unexpected|Duplicate) tool call id", "MIS-6"),
    (r"Tool call id", "MIS-4"),
    (r"Not the same number of function calls|More tool responses than tool calls", "MIS-5"),
    (r"must have either content or tool_calls|must have content", "MIS-7"),
    (r"Function name was", "MIS-8"),
    (r"Invalid tool schema", "MIS-9"),
    (r"Extra inputs are not permitted|extra_forbidden", "MIS-13"),
    (r"Unexpected content chunk types|Chunk cannot be used in", "MIS-11"),
)
"""What a server says when it refuses a request, and the rule that it speaks of."""

# --- profiles ---------------------------------------------------------------------------------------

_FAULTS: dict[Situation, str] = {
    "message.none": "MIS-1",
    "role.unknown": "MIS-2",
    "role.call": "MIS-2",
    "role.follows": "MIS-2",
    "pair.gap": "MIS-2",
    "id.missing": "MIS-4",
    "id.pattern": "MIS-4",
    "pair.missing": "MIS-5",
    "result.empty": "MIS-7",
    "args.type": "MIS-13",
    "name.pattern": "MIS-8",
    "name.length": "MIS-8",
    "media.role": "MIS-11",
}
_BY_NUMBER: dict[Situation, str] = {"pair.orphan": "MIS-5", "pair.repeated": "MIS-5"}
_BY_ID: dict[Situation, str] = {
    "pair.orphan": "MIS-6",
    "pair.repeated": "MIS-6",
    "pair.stranger": "MIS-6",
    "id.repeated": "MIS-6",
}

_FOLLOWERS: dict[TurnRole, tuple[TurnRole, ...]] = {
    "system": ("user", "assistant", "system"),
    "user": ("assistant", "system", "user"),
    "assistant": ("assistant", "user", "tool"),
}


def version_of(context: Mapping[str, str | bool]) -> int:
    """The number of the tokenizer's version; 0 when it is not known."""
    found = re.fullmatch(r"v?(\d{1,3})(m\d+)?", str(context.get("tokenizer", "")).strip().lower())
    return int(found[1]) if found else 0


def profile(context: Mapping[str, str | bool]) -> Profile:
    """The profile for a version of the tokenizer; without one, for the hosted API."""
    version = version_of(context)
    newest = version or 11  # the hosted API: pairs by id, nine characters, thoughts, no images in results
    is_hosted = not version or context.get("server") == "mistral-api"
    traits = {
        "user_after_tool": not is_hosted,
        "calls_alone": newest <= 3,
        "thinking": newest >= 11,
        "image_results": newest >= 15,
        "no_images": newest < 3,
        "answer.alone": is_hosted,
        "no_effort": version != 0 and version < 15,
    }
    faults = _FAULTS | (_BY_ID if newest >= 11 else _BY_NUMBER)
    if newest < 15:
        faults["media.result"] = "MIS-11"
    model = context.get("model")
    carries = {"names": True, "images": newest >= 3, "result_images": newest >= 15, "reasoning": newest >= 11}
    after_tool: tuple[TurnRole, ...] = ("assistant", "tool") if is_hosted else ("assistant", "tool", "user")
    return Profile(
        name=f"mistral:v{version}" if version else "mistral",
        format="mistral",
        provider="mistral",
        as_of=AS_OF,
        sources="the open validator (mistral-common 1.13.1); for the hosted API also refusals that people quoted",
        model=string(model),
        faults=faults,
        id_pattern=NINE if newest < 13 else NAMED,
        arguments="either",
        name_pattern=NAME_PATTERN,
        name_max=64,
        followers={**_FOLLOWERS, "tool": after_tool},
        traits=frozenset(name for name, is_set in traits.items() if is_set),
        carries=frozenset(name for name, is_set in carries.items() if is_set),
    )
