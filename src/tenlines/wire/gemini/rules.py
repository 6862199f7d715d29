"""What `generateContent` demands: its rules, its refusals, and its profiles by model.

Traits of the profiles of this format:

- `signatures`: in the current turn the first call of each step must carry a thought signature.
- `ids`: calls have ids, and results give them back.
- `result_media`: pictures and files stand in results.
- `json_schema`: declarations take `parametersJsonSchema`.
- `levels`: how much to think is said as a level; without it, as a budget of tokens.
- `vertex`: Vertex AI, whose `parameters` take a little more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from msgspec import structs

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.gemini.encoding import NAME_MAX, NAME_PATTERN
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.rules import Rule

AS_OF = "2026-11-30"
GEMINI_3: dict[str, str | bool] = {"model_family": "gemini-3"}
GEMINI_2: dict[str, str | bool] = {"model_family": "gemini-2.5"}

# --- examples ---------------------------------------------------------------------------------------

USER: JsonObject = {"role": "user", "parts": [{"text": "hi"}]}
TOOLS: JsonValue = [{"functionDeclarations": [{"name": "f", "description": "Does f."}]}]


def calling(args: JsonValue = None, **beside: JsonValue) -> JsonObject:
    """A content with a call, for an example."""
    return {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {} if args is None else args}, **beside}]}


def answering(response: JsonValue = None, **beside: JsonValue) -> JsonObject:
    """A content with a result, for an example."""
    said: JsonValue = {"output": "1"} if response is None else response
    return {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": said, **beside}}]}


def example(*contents: JsonValue, **beside: JsonValue) -> str:
    """A body as JSON text, for an example."""
    return json.dumps({"contents": list(contents), "tools": TOOLS} | beside)


def _declaring(**declared: JsonValue) -> str:
    return json.dumps({"contents": [USER], "tools": [{"functionDeclarations": [{"name": "f", **declared}]}]})


# --- the rules --------------------------------------------------------------------------------------

RULES: tuple[Rule, ...] = (
    Rule(
        "GEM-1",
        ("ROLE-UNKNOWN", "ROLE-SYSTEM"),
        "error",
        "A content has the role user or model; without a role it is the user's. Nothing else speaks in contents, "
        "system text included.",
        "Please use a valid role: user, model.",
        "documented",
        "Write assistant as model; move system text to systemInstruction.",
        example(USER, {"role": "assistant", "parts": [{"text": "hello"}]}, USER),
    ),
    Rule(
        "GEM-2",
        ("ROLE-SYSTEM",),
        "info",
        "System text stands in systemInstruction, beside the contents.",
        needs="none",
    ),
    Rule(
        "GEM-3",
        ("EMPTY-MSG", "EMPTY-TEXT"),
        "error",
        "A content has at least one part, and a part holds exactly one thing (text, a call, a result, a file, ...). "
        "An empty text counts as nothing, unless a thought signature rides on it.",
        "contents.parts must not be empty",
        "reported",
        "Leave the empty part out, and the content when nothing remains in it.",
        example(USER, {"role": "model", "parts": []}, USER),
    ),
    Rule(
        "GEM-4",
        ("ROLE-ORDER",),
        "error",
        "A content with calls comes directly after one of the user's (text or results): a history cannot begin with "
        "calls, nor can calls follow another content of the model.",
        "function call turn comes immediately after a user turn or after a function response turn",
        "reported",
        "Put a user content before it, or join it with the model's content before it.",
        example(calling(), answering()),
        GEMINI_2,
        needs="profile",
    ),
    Rule(
        "GEM-5",
        ("PAIR-MISSING", "PAIR-SPLIT", "PAIR-GAP", "PAIR-DUP"),
        "error",
        "The very next content holds the results of all calls of a content: as many as there were calls, and all of "
        "them in this one content.",
        "number of function response parts is equal to the number of function call parts",
        "reported",
        "Put one functionResponse for each call into one user content directly behind the calls.",
        example(USER, calling(), USER),
    ),
    Rule(
        "GEM-6",
        ("PAIR-ORPHAN", "ROLE-ORDER"),
        "error",
        "Results stand in a user content directly behind a content with calls, and nowhere else.",
        "function response turn comes immediately after a function call turn",
        "reported",
        "Leave a result out that belongs to no call.",
        example(answering(), {"role": "model", "parts": [{"text": "1"}]}, USER),
    ),
    Rule(
        "GEM-7",
        ("PAIR-NAME", "PAIR-ORPHAN", "ID-DUP"),
        "error",
        "A result names the function of its call, and gives the id of the call back where the call has one. Ids are "
        "optional; Gemini 3 gives them.",
        "function_response.name: Name cannot be empty",
        "documented",
        "Take name and id from the call.",
        example(USER, calling(), {"role": "user", "parts": [{"functionResponse": {"response": {"output": "1"}}}]}),
    ),
    Rule(
        "GEM-8",
        ("ARGS-TYPE", "MEDIA-PLACE"),
        "error",
        "The response of a result is an object: the text under `output`, or under `error` when the call failed. "
        "Gemini 3 takes pictures and files in `parts` beside it; older models do not.",
        "function_response.response",
        "documented",
        'Wrap the response: {"output": ...}.',
        example(USER, calling(thoughtSignature="c2ln"), answering("18C")),
    ),
    Rule(
        "GEM-9",
        ("ARGS-TYPE", "ARGS-JSON"),
        "error",
        "The args of a call are an object, not its JSON text.",
        "function_call.args",
        "documented",
        "Parse the text and send the object.",
        example(USER, calling('{"x": 1}', thoughtSignature="c2ln"), answering()),
    ),
    Rule(
        "GEM-10",
        ("RSN-MISSING",),
        "error",
        "Gemini 3 and later: in the current turn, which begins behind the last user content with more than results, "
        "the first call of every step carries the thoughtSignature that it came with. Calls beside it have none, and "
        "older turns are not looked at.",
        "Function call is missing a thought_signature",
        "documented",
        "Put the signature back, or, for calls that no Gemini made, the documented stand-in "
        "skip_thought_signature_validator.",
        example(USER, calling(), answering()),
        GEMINI_3,
        needs="profile",
    ),
    Rule(
        "GEM-11",
        ("RSN-FOREIGN",),
        "error",
        "A thoughtSignature is taken by the model family that made it. Another's is corrupt.",
        "Corrupted thought signature",
        "documented",
        "Put the documented stand-in skip_thought_signature_validator in its place, or leave it out.",
        example(USER, calling(thoughtSignature="Zm9yZWlnbg=="), answering()),
        GEMINI_3,
        needs="provenance",
    ),
    Rule(
        "GEM-12",
        ("NAME-CHARSET", "NAME-LENGTH"),
        "error",
        "The name of a function begins with a letter or an underscore and goes on with those, digits, dots, colons and "
        "dashes; at most 64 characters (the SDK's own text says 128). Names of parameters have letters, digits and "
        "underscores.",
        "Invalid function name",
        "documented",
        "Rename the function, and its calls and results with it.",
        _declaring(name="2fa_check"),
    ),
    Rule(
        "GEM-13",
        ("ROLE-ORDER",),
        "warning",
        "Contents of one role do not stand side by side. Some servers take it, others refused it.",
        "multiturn requests",
        "uncertain",
        "Join the neighbours into one content.",
        example(USER, USER),
    ),
    Rule(
        "GEM-14",
        ("ROLE-LAST",),
        "error",
        "A request ends with a user content or with results; a single content is the user's.",
        "requests ends? with a user role",
        "reported",
        "Put a user content behind it.",
        example(USER, {"role": "model", "parts": [{"text": "18C"}]}),
    ),
    Rule(
        "GEM-15",
        ("TOOLS-ABSENT",),
        "warning",
        "A history with calls needs no declarations, but without them the model may still call, and the reply breaks "
        "off as UNEXPECTED_TOOL_CALL.",
        "",
        "secondary",
        "Keep the declarations; with mode NONE they are not used.",
        json.dumps({"contents": [USER, calling(), answering()]}),
    ),
    Rule(
        "GEM-16",
        ("PARAM-COMBO",),
        "error",
        "A declaration has `parameters` or `parametersJsonSchema`, not both.",
        "parameters_json_schema",
        "documented",
        "Leave `parameters` out.",
        _declaring(parameters={"type": "OBJECT"}, parametersJsonSchema={"type": "object"}),
    ),
    Rule(
        "GEM-17",
        ("SCHEMA-SUBSET",),
        "error",
        "`parameters` is a part of OpenAPI: one type each, `nullable` instead of a null type, enums of texts, no "
        "references, and none of JSON Schema's other keywords.",
        "Cannot find field",
        "documented",
        "Convert the schema, or move it to parametersJsonSchema.",
        _declaring(parameters={"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
    ),
    Rule(
        "GEM-18",
        ("RSN-EDITED",),
        "warning",
        "A signature goes back in the very part that it came in, and that part is not joined with another. In a reply "
        "without calls it is the last part. Nothing is refused; the model thinks worse.",
        fix="Send the parts of a reply back as they came.",
        needs="none",
    ),
    Rule(
        "GEM-19",
        (),
        "info",
        "Gemini 3 mixes tools of the service with functions: includeServerSideToolInvocations asks for it, and the "
        "toolCall and toolResponse parts go back as they came.",
        needs="none",
    ),
    Rule(
        "GEM-20",
        ("EMPTY-TEXT",),
        "warning",
        "A content of calls alone is not padded with a text. Newer models are said to refuse it.",
        "",
        "uncertain",
        "Leave the text out.",
        needs="none",
    ),
)

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"use a valid role: user, model", "GEM-1"),
    (r"parts must not be empty|required oneof field 'data'|at least one parts field|empty text parameter", "GEM-3"),
    (r"contents is not specified|contents are required", "GEM-3"),
    (r"function call turn comes immediately after", "GEM-4"),
    (r"number of function response parts", "GEM-5"),
    (r"function response turn comes immediately after", "GEM-6"),
    (r"function_response\.name", "GEM-7"),
    (r"function_response\.response", "GEM-8"),
    (r"function_call\.args", "GEM-9"),
    (r"missing a thought_?\s?signature", "GEM-10"),
    (r"(corrupted|invalid) thought.?signature|thought.?signature is not valid", "GEM-11"),
    (r"invalid function name", "GEM-12"),
    (r"requests? ends? with a user role", "GEM-14"),
    (r"parameters.{0,40}parameters_json_schema|parameters_json_schema.{0,40}mutually", "GEM-16"),
    (r"function_declarations.{0,200}(cannot find field|not repeating)", "GEM-17"),
    (r"multiturn requests", "GEM-13"),
)

# --- profiles ---------------------------------------------------------------------------------------

_FAULTS: dict[Situation, str] = {
    "role.unknown": "GEM-1",
    "role.system": "GEM-1",
    "role.follows": "GEM-13",
    "role.last": "GEM-14",
    "role.call": "GEM-4",
    "role.result": "GEM-6",
    "id.repeated": "GEM-7",
    "pair.missing": "GEM-5",
    "pair.gap": "GEM-5",
    "pair.split": "GEM-5",
    "pair.repeated": "GEM-5",
    "pair.orphan": "GEM-6",
    "pair.stranger": "GEM-7",
    "pair.name": "GEM-7",
    "args.type": "GEM-9",
    "args.json": "GEM-9",
    "name.pattern": "GEM-12",
    "name.length": "GEM-12",
    "tools.absent": "GEM-15",
    "text.empty": "GEM-3",
    "message.empty": "GEM-3",
    "message.none": "GEM-3",
    "result.empty": "GEM-8",
    "reasoning.foreign": "GEM-11",
}
_CARRIES = frozenset({"errors", "names", "images", "files", "result_json", "reasoning"})
_NEWER = frozenset({"signatures", "ids", "result_media", "levels", "answer.beside"})

BASE = Profile(
    name="gemini",
    format="gemini",
    provider="google",
    as_of=AS_OF,
    sources="Google's function calling and thought signature guides, types of its SDK, reported refusals",
    faults=_FAULTS | {"media.result": "GEM-8"},
    results="next",
    results_in="user",
    pairs_by="position",
    arguments="object",
    name_pattern=NAME_PATTERN,
    name_max=NAME_MAX,
    system="aside",
    last=("user",),
    followers={"user": ("assistant",), "assistant": ("user",)},
    merges=True,
    traits=frozenset({"json_schema", "optional_arguments"}),
    carries=_CARRIES,
)
"""Any model: what all of them demand, and nothing that only some of them give."""

_GENERATION = re.compile(r"gemini-(\d+)")
_NEWEST = re.compile(r"gemini-[a-z-]*latest$")
"""Names that move on with each generation."""


def profile(context: Mapping[str, str | bool] | None = None) -> Profile:
    """The profile for a model: by its generation, and by whether Vertex AI serves it."""
    known = context or {}
    model = str(known.get("model") or "").lower().rsplit("/", 1)[-1]
    named = str(known.get("model_family") or "").lower() or model
    found = _GENERATION.search(named)
    generation = int(found[1]) if found else 3 if _NEWEST.search(named) else 0
    traits, faults, carries, name = set(BASE.traits), dict(BASE.faults), BASE.carries, BASE.name
    if generation >= 3:
        traits |= _NEWER
        faults, carries, name = dict(_FAULTS), _CARRIES | {"result_images", "result_files"}, "gemini:3"
    elif generation:
        name = "gemini:2.5"
        if generation < 2 or named.startswith("gemini-2.0"):
            traits.discard("json_schema")
            name = "gemini:2.0"
    if known.get("server") == "vertex":
        traits.add("vertex")
    return _replaced(name, model, frozenset(traits), faults, carries)


def _replaced(
    name: str, model: str, traits: frozenset[str], faults: dict[Situation, str], carries: frozenset[str]
) -> Profile:
    return structs.replace(BASE, name=name, model=model, traits=traits, faults=faults, carries=carries)
