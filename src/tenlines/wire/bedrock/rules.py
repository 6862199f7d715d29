"""What Converse demands of a request: the shape that is common to all models, and what each family adds.

Traits of the profiles of this format:

- `status`: results may be marked as errors. `no_status`: the mark is refused.
- `results_alone`: nothing may stand beside results in their message.
- `no_documents_beside`: documents and videos may not stand beside results.
- `calls_alone`: no text may stand beside calls.
- `no_reasoning`: reasoning is refused when it comes back.
- `image_results`: results may hold images. `json_results`: results are JSON rather than text.
- `choice_any`, `choice_tool`: the model can be made to call some tool, or a certain one.
- `cache_marks`, `cache_tools`: marks of the cache in the system prompt and in messages, and behind the tools.
- `strict_subset`: the schemas of strict tools may use only some keywords.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.bedrock.encoding import NAME_PATTERN, model_family
from tenlines.wire.json_values import string
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.rules import Rule

AS_OF = "2026-11-30"

# --- examples ---------------------------------------------------------------------------------------


def call(call_id: str = "a", name: str = "f", given: JsonValue = None) -> JsonObject:
    """A call, for an example."""
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": {} if given is None else given}}


def result(call_id: str = "a", **fields: JsonValue) -> JsonObject:
    """A result, for an example."""
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": "1"}], **fields}}


def tool(name: str = "f", **fields: JsonValue) -> JsonObject:
    """A tool, for an example."""
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object", "properties": {}}}, **fields}}


def said(*blocks: JsonObject | str) -> JsonObject:
    """A message of the assistant, for an example."""
    return {"role": "assistant", "content": [{"text": one} if isinstance(one, str) else one for one in blocks]}


def asked(*blocks: JsonObject | str) -> JsonObject:
    """A message of the user, for an example."""
    return {**said(*blocks), "role": "user"}


USER = asked("hi")
DOCUMENT: JsonObject = {"document": {"format": "pdf", "name": "report", "source": {"bytes": "JVBERi0="}}}
STRICT = tool(
    strict=True,
    inputSchema={"json": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}},
)


def example(*messages: JsonObject, **fields: JsonValue) -> str:
    """A body as JSON text; a tool is declared."""
    return json.dumps({"messages": list(messages), "toolConfig": {"tools": [tool()]}, **fields})


# --- the rules --------------------------------------------------------------------------------------

RULES: tuple[Rule, ...] = (
    Rule(
        "BED-1",
        ("ROLE-UNKNOWN", "ROLE-SYSTEM", "ROLE-ORDER"),
        "error",
        "A message is the user's or the assistant's: calls stand in the assistant's, results in the user's. The system "
        "prompt is a list of its own beside the messages, and its texts are not empty.",
        "failed to satisfy constraint: Member must satisfy enum value set",
        evidence="source",
        fix="Send results as toolResult blocks of a user message, and standing instructions in `system`.",
        example=example(USER, {"role": "tool", "content": [{"text": "18C"}]}),
    ),
    Rule(
        "BED-2",
        ("ROLE-FIRST",),
        "error",
        "There is a message, and for most families the first one is the user's; Anthropic, Qwen, Z.ai and Moonshot "
        "let the assistant begin.",
        "A conversation must start with a user message",
        evidence="source",
        fix="Put a user message in front.",
        example=example(said("Welcome"), USER),
        context={"model_family": "amazon.nova"},
        needs="profile",
    ),
    Rule(
        "BED-3",
        (),
        "info",
        "The service joins neighbours of one role, so that splitting a message in two does not keep its parts apart. "
        "Some reports still speak of strict alternation.",
        evidence="source",
    ),
    Rule(
        "BED-4",
        ("EMPTY-TEXT", "EMPTY-MSG"),
        "error",
        "No text block is blank and no message is empty; models of Anthropic refuse text that is only whitespace.",
        "is blank. Add text to the text field",
        evidence="reported",
        fix="Leave the block out; where nothing else is in the message, say that it is empty.",
        example=example(asked("")),
    ),
    Rule(
        "BED-5",
        ("ID-MISSING", "ID-CHARSET", "ID-LENGTH", "ID-DUP"),
        "error",
        "The id of a call is 1 to 64 letters, digits, dots, colons, underscores and hyphens, and stands once in its "
        "message.",
        "toolUseId' failed to satisfy constraint",
        evidence="source",
        fix="Replace the id by a short one, in the call and in its result.",
        example=example(USER, said(call("call 1")), asked(result("call 1"))),
    ),
    Rule(
        "BED-6",
        ("ARGS-TYPE", "ARGS-JSON"),
        "error",
        "The input of a call is a JSON object, not its text.",
        "toolUse.input is invalid. Provide a json object",
        evidence="source",
        fix="Parse the text, or send an empty object where it cannot be parsed.",
        example=example(USER, said(call(given="{}")), asked(result())),
    ),
    Rule(
        "BED-7",
        ("PAIR-MISSING", "PAIR-SPLIT", "PAIR-GAP"),
        "error",
        "All results for the calls of a message stand in the very next message, together.",
        "Expected toolResult blocks at",
        evidence="reported",
        fix="Put the results into one user message right behind the calls; add one that says so where there is none.",
        example=example(USER, said(call("a"), call("b")), asked(result("a"))),
    ),
    Rule(
        "BED-8",
        ("PAIR-ORPHAN", "PAIR-DUP"),
        "error",
        "A message holds no more results than there are calls in the message before it.",
        "exceeds the number of toolUse blocks of previous turn",
        evidence="reported",
        fix="Take the result out, or bring its call back.",
        example=example(USER, said("hm"), asked(result())),
    ),
    Rule(
        "BED-9",
        ("TOOLS-ABSENT",),
        "error",
        "As long as calls or results stand in the messages, toolConfig has to declare tools.",
        "toolConfig field must be defined when using toolUse and toolResult",
        evidence="reported",
        fix="Declare the tools again; stubs with the names of those that were called will do.",
        example=json.dumps({"messages": [USER, said(call()), asked(result())]}),
    ),
    Rule(
        "BED-10",
        ("TOOLS-COUNT", "SCHEMA-SUBSET", "EMPTY-TEXT"),
        "error",
        "toolConfig has at least one tool; a tool has an inputSchema whose json is of type object, and its "
        "description, if there is one, is not empty.",
        "valid min length: 1",
        evidence="source",
        fix="Leave toolConfig out when there are no tools; give each tool an object schema.",
        example=example(USER, toolConfig={"tools": []}),
    ),
    Rule(
        "BED-11",
        ("PARAM-COMBO",),
        "error",
        "toolChoice is exactly one of auto, any and tool. There is no word for no calls.",
        "must be one of: auto, any, tool",
        evidence="source",
        fix="Leave toolChoice out and do not run the calls that come.",
        example=example(USER, toolConfig={"tools": [tool()], "toolChoice": {"none": {}}}),
    ),
    Rule(
        "BED-12",
        ("ERR-EMPTY", "EMPTY-MSG"),
        "error",
        "A result has a list of content, and one that is marked as an error has something in it.",
        "cannot be empty when status value is error",
        evidence="reported",
        fix="Say in the result what went wrong, or that there was no output.",
        example=example(USER, said(call()), asked(result(content=[], status="error"))),
    ),
    Rule(
        "BED-13",
        ("PAIR-ORDER",),
        "error",
        "Beside results, models of Anthropic take text and images behind them, but no documents and videos; Llama, "
        "Mistral and Writer take nothing.",
        "Conversation blocks and tool result blocks cannot be provided in the same turn",
        evidence="reported",
        fix="Put a short message of the assistant between the results and the rest.",
        example=example(USER, said(call()), asked(result(), "and now?")),
        context={"model_family": "meta.llama"},
        needs="profile",
    ),
    Rule(
        "BED-14",
        ("PAIR-ORDER",),
        "error",
        "Llama takes no text beside calls.",
        "Conversation blocks and tool use blocks cannot be provided in the same turn",
        evidence="reported",
        fix="Move the text into a message of its own before the calls.",
        example=example(USER, said("I look", call()), asked(result())),
        context={"model_family": "meta.llama"},
        needs="profile",
    ),
    Rule(
        "BED-15",
        ("PARAM-COMBO",),
        "error",
        "Palmyra of Writer does not know the status of a result. Elsewhere it is best left out of results that are "
        "no errors.",
        "doesn't support the status field",
        evidence="source",
        fix="Leave the status out.",
        example=example(USER, said(call()), asked(result(status="success"))),
        context={"model_family": "writer"},
        needs="profile",
    ),
    Rule(
        "BED-16",
        ("RSN-FOREIGN", "RSN-UNSIGNED", "RSN-EDITED", "RSN-PREFIX"),
        "error",
        "Reasoning of a model of Anthropic goes back as it came, with its signature. DeepSeek takes none back.",
        "reasoningContent",
        evidence="source",
        fix="Leave the reasoning out, unless it is untouched and goes to the model that made it.",
        example=example(USER, said({"reasoningContent": {"reasoningText": {"text": "hm"}}}, call()), asked(result())),
        context={"model_family": "deepseek"},
        needs="profile",
    ),
    Rule(
        "BED-17",
        ("MEDIA-LIMIT", "MEDIA-PLACE"),
        "error",
        "Images and documents stand in user messages: at most 20 images of 3.75 MB and 5 documents of 4.5 MB in each, "
        "and text beside every document.",
        "must also include a ContentBlock with a text field",
        evidence="source",
        fix="Add a line of text; send fewer or smaller files.",
        example=example(asked(DOCUMENT)),
    ),
    Rule(
        "BED-18",
        (),
        "info",
        "Models of Mistral understand results as JSON better, all others as text.",
        evidence="source",
    ),
    Rule(
        "BED-19",
        ("NAME-CHARSET", "NAME-LENGTH"),
        "error",
        "The name of a tool is 1 to 64 letters, digits, underscores and hyphens, where it is declared and where it is "
        "called.",
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+",
        evidence="source",
        fix="Replace what is not allowed, everywhere alike.",
        example=example(USER, toolConfig={"tools": [tool("fs.read")]}),
    ),
    Rule(
        "BED-20",
        ("SCHEMA-SUBSET",),
        "error",
        "Strict tools of models of Anthropic have no bounds on numbers and no multipleOf, no maxItems, and a minItems "
        "of at most 1. Bounds on the length of text are taken.",
        "output_config.format.schema",
        evidence="source",
        fix="Say the bounds in the description of the property.",
        example=example(USER, toolConfig={"tools": [STRICT]}),
        context={"model_family": "anthropic"},
        needs="profile",
    ),
    Rule(
        "CAC-4",
        (),
        "info",
        "A cachePoint block marks up to where a request is cached, in system, messages and tools, for models that know "
        "it; four are allowed.",
        evidence="secondary",
        needs="none",
    ),
    Rule(
        "STR-5",
        (),
        "info",
        "A stream is messageStart, then blocks by contentBlockIndex, of which only calls are sure to have a start, "
        "then messageStop with the reason and metadata with the usage.",
        evidence="source",
        needs="none",
    ),
    Rule(
        "USE-5",
        (),
        "info",
        "inputTokens does not count what was read from or written to the cache; the whole input is the sum of the "
        "three.",
        evidence="source",
        needs="none",
    ),
)

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"conversation must start with a user message", "BED-2"),
    (r"text field in the ContentBlock.{0,80}is blank|must contain non-whitespace text|text content blocks must be "
     r"non-empty", "BED-4"),
    (r"toolUse\.input is invalid", "BED-6"),
    (r"Expected toolResult blocks at|without `?tool_result`? blocks", "BED-7"),
    (r"toolResult blocks at .{0,60}exceeds the number of toolUse|unexpected `?tool_use_id`?", "BED-8"),
    (r"toolConfig field must be defined", "BED-9"),
    (r"toolChoice.{0,40}must be one of", "BED-11"),
    (r"toolResult cannot be empty when status|toolResult: \"content\"", "BED-12"),
    (r"tool result blocks cannot be provided in the same turn", "BED-13"),
    (r"tool use blocks cannot be provided in the same turn", "BED-14"),
    (r"support the status field", "BED-15"),
    (r"reasoningContent|`?signature`? in `?thinking`? block|`?thinking`? (or `?redacted_thinking`? )?blocks? .{0,80}"
     r"(cannot be modified|bound to)", "BED-16"),
    (r"must also include a ContentBlock with a text field|too many (images|documents)|duplicate document names",
     "BED-17"),
    (r"toolUseId.{0,40}failed to satisfy constraint", "BED-5"),
    (r"satisfy regular expression pattern: \[a-zA-Z0-9_\.:-\]", "BED-5"),
    (r"(tool|toolSpec)\S{0,20}name.{0,60}failed to satisfy constraint|regular expression pattern: \[a-zA-Z0-9_-\]\+",
     "BED-19"),
    (r"toolConfig\.tools, value: 0", "BED-10"),
    (r"cachePoint|cache_control|cache point", "CAC-4"),
    (r"role' failed to satisfy constraint|enum value set: \[.*assistant", "BED-1"),
)  # fmt: skip
"""What the service says when it refuses a request, and the rule that it speaks of."""

# --- profiles ---------------------------------------------------------------------------------------

_FAULTS: dict[Situation, str] = {
    "role.unknown": "BED-1",
    "role.system": "BED-1",
    "role.call": "BED-1",
    "role.result": "BED-1",
    "role.first": "BED-2",
    "message.none": "BED-2",
    "text.empty": "BED-4",
    "text.blank": "BED-4",
    "message.empty": "BED-4",
    "id.missing": "BED-5",
    "id.pattern": "BED-5",
    "id.length": "BED-5",
    "id.repeated": "BED-5",
    "args.type": "BED-6",
    "args.json": "BED-6",
    "pair.missing": "BED-7",
    "pair.split": "BED-7",
    "pair.gap": "BED-7",
    "pair.orphan": "BED-8",
    "pair.stranger": "BED-8",
    "pair.repeated": "BED-8",
    "tools.absent": "BED-9",
    "result.empty": "BED-12",
    "result.silent": "BED-12",
    "media.role": "BED-17",
    "reasoning.foreign": "BED-16",
    "reasoning.edited": "BED-16",
    "reasoning.prefix": "BED-16",
    "name.pattern": "BED-19",
    "name.length": "BED-19",
}

_ALONE = frozenset({"results_alone"})
_PLAIN = frozenset({"no_documents_beside"})


class _Family(NamedTuple):
    """What a family of models adds to the common shape."""

    traits: frozenset[str]
    leads: bool = False
    """The assistant may speak first."""
    faults: Mapping[Situation, str] = {}
    lifted: tuple[Situation, ...] = ()
    """Situations that are no faults here."""


_FAMILIES: dict[str, _Family] = {
    "anthropic": _Family(
        frozenset({"status", "image_results", "choice_any", "choice_tool", "strict_subset"}) | _PLAIN,
        leads=True,
        faults={"pair.order": "BED-13", "reasoning.unsigned": "BED-16"},
        lifted=("role.system",),
    ),
    "amazon.nova": _Family(frozenset({"status", "image_results", "choice_any", "choice_tool"}) | _PLAIN),
    "amazon": _Family(_PLAIN),
    "meta": _Family(_ALONE | {"calls_alone"}, faults={"pair.beside": "BED-13"}),
    "mistral": _Family(_ALONE | {"json_results", "choice_any"}, faults={"pair.beside": "BED-13"}),
    "writer": _Family(_ALONE | {"no_status"}, faults={"pair.beside": "BED-13"}),
    "cohere": _Family(_ALONE),
    "ai21": _Family(_ALONE),
    "deepseek": _Family(_ALONE | {"no_reasoning"}),
    "qwen": _Family(_PLAIN, leads=True),
    "zai": _Family(_PLAIN, leads=True),
    "moonshot": _Family(_PLAIN, leads=True),
    "openai": _Family(_PLAIN),
}
"""Families by the beginning of a model's name, the longer ones first. Known from adapters that were tried against
the service in July 2026; see BED-2, BED-13, BED-14, BED-15."""

_UNKNOWN = _Family(_ALONE)
"""For any other model: nothing is said that not all understand."""

_CACHED_TOO = re.compile(r"claude-(3-5-haiku|3-7-|(haiku|sonnet|opus|fable|mythos)-\d)")
"""Models of Anthropic that know marks of the cache: since 3.5 Haiku and 3.7 Sonnet."""


def family_of(context: Mapping[str, str | bool]) -> str:
    """The family of the model: named, or by the beginning of its name. "" when it is not known."""
    for key in ("model_family", "model"):
        given = context.get(key)
        if isinstance(given, str):
            bare = model_family(given)
            for name in _FAMILIES:
                if bare.startswith(name):
                    return name
    return ""


def profile(context: Mapping[str, str | bool]) -> Profile:
    """The profile for a model or a family."""
    name, model = family_of(context), context.get("model")
    known = _FAMILIES.get(name, _UNKNOWN)
    traits = set(known.traits)
    bare = model_family(model) if isinstance(model, str) else ""
    if name == "amazon.nova" and bare:
        traits.add("cache_marks")
    if _CACHED_TOO.search(bare):
        traits |= {"cache_marks", "cache_tools"}
    carries = {"images", "files", "result_json"}
    carries |= {"errors"} if "status" in traits else set()
    carries |= {"result_images"} if "image_results" in traits else set()
    carries |= set() if "no_reasoning" in traits else {"reasoning"}
    return Profile(
        name=f"bedrock:{name}" if name else "bedrock",
        format="bedrock",
        provider="bedrock",
        as_of=AS_OF,
        sources="the service model of the AWS SDK; adapters; refusals that people quoted",
        model=string(model),
        faults={key: rule for key, rule in {**_FAULTS, **known.faults}.items() if key not in known.lifted},
        id_pattern=r"[a-zA-Z0-9_.:-]+",
        id_max=64,
        results="next",
        results_in="user",
        arguments="object",
        name_pattern=NAME_PATTERN,
        name_max=64,
        system="aside",
        first=() if known.leads else ("user",),
        merges=True,
        traits=frozenset(traits),
        carries=frozenset(carries),
    )
