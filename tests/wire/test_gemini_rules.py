"""Gemini: the rules, the cures of what is special to this format, and profiles by model."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import File, Image, Json, Text
from tenlines.wire.checking import check
from tenlines.wire.gemini.encoding import DUMMY
from tenlines.wire.gemini.format import FORMAT
from tenlines.wire.parts import START
from tenlines.wire.profile import Artefact
from tenlines.wire.repairing import repair
from tenlines.wire.turns import Block, Tool, Turn

GEMINI_3 = FORMAT.profile({"model_family": "gemini-3"})
GEMINI_2 = FORMAT.profile({"model_family": "gemini-2.5"})
USER: Any = {"role": "user", "parts": [{"text": "hi"}]}
TOOLS: Any = [{"functionDeclarations": [{"name": "f"}]}]


def call(name: str = "f", signature: str = "", **more: Any) -> Any:
    part: Any = {"functionCall": {"name": name, "args": {}, **more}}
    return {**part, "thoughtSignature": signature} if signature else part


def result(name: str = "f", **more: Any) -> Any:
    return {"functionResponse": {"name": name, "response": {"output": "1"}, **more}}


def model(*parts: Any) -> Any:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Any) -> Any:
    return {"role": "user", "parts": list(parts)}


def found(*contents: Any, profile: Any = GEMINI_3, artefacts: Any = (), **more: Any) -> list[tuple[str, str]]:
    body = {"contents": list(contents), "tools": TOOLS, **more}
    return [(one.rule, one.path) for one in check(body, FORMAT, profile, artefacts)]


def amended(*contents: Any, profile: Any = GEMINI_3, artefacts: Any = (), is_last: bool = True) -> Any:
    turns = [FORMAT.unfold(content, f"contents[{index}]") for index, content in enumerate(contents)]
    made, changes = FORMAT.amend(turns, profile, artefacts, is_last=is_last)
    again, none = FORMAT.amend(made, profile, artefacts, is_last=is_last)
    assert (again, none) == (made, [])
    assert bool(changes) == (made != turns)
    return [FORMAT.fold(turn) for turn in made]


# --- the rules as data ------------------------------------------------------------------------------


def test_all_rules_of_the_format_are_there_in_order() -> None:
    assert [rule.id for rule in FORMAT.rules] == [f"GEM-{number}" for number in range(1, 21)]


@pytest.mark.parametrize(
    "rule", [rule for rule in FORMAT.rules if rule.severity != "info" and rule.needs in ("static", "profile")],
    ids=lambda rule: rule.id,
)  # fmt: skip
def test_the_example_of_a_rule_breaks_it(rule: Any) -> None:
    profile = FORMAT.profile(rule.context)
    assert rule.id in {one.rule for one in check(json.loads(rule.example), FORMAT, profile)}
    assert rule.fix


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.", "GEM-3"),
        ("function call turn comes immediately after a user turn or after a function response turn.", "GEM-4"),
        ("the number of function response parts is equal to the number of function call parts", "GEM-5"),
        ("Please ensure that function response turn comes immediately after a function call turn.", "GEM-6"),
        ("Function call is missing a thought_signature in functionCall parts.", "GEM-10"),
        ("Corrupted thought signature.", "GEM-11"),
        ("Please ensure that multiturn requests ends with a user role or a function response.", "GEM-14"),
        ("Please ensure that single turn requests end with a user role or the role field is empty.", "GEM-14"),
        ("Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters': Cannot find field.", "GEM-17"),
    ],
)  # fmt: skip
def test_what_a_refusal_looks_like(text: str, rule: str) -> None:
    assert next(name for pattern, name in FORMAT.rejections if re.search(pattern, text, re.IGNORECASE)) == rule
    assert {name for _, name in FORMAT.rejections} <= {one.id for one in FORMAT.rules}


@pytest.mark.parametrize(
    ("context", "name", "has"),
    [
        ({}, "gemini", {"json_schema"}),
        ({"model": "gemini-3-pro-preview"}, "gemini:3", {"json_schema", "signatures", "ids", "result_media", "levels"}),
        ({"model": "models/gemini-4.5-flash"}, "gemini:3", {"signatures"}),
        ({"model": "gemini-flash-latest"}, "gemini:3", {"signatures"}),
        ({"model_family": "gemini-2.5"}, "gemini:2.5", {"json_schema"}),
        ({"model": "gemini-2.5-flash", "server": "vertex"}, "gemini:2.5", {"vertex"}),
        ({"model": "gemini-2.0-flash"}, "gemini:2.0", set()),
        ({"model": "gemma-3"}, "gemini", {"json_schema"}),
    ],
)
def test_profiles_by_model(context: Any, name: str, has: Any) -> None:
    profile = FORMAT.profile(context)
    assert profile.name == name
    assert has <= profile.traits
    assert profile.has("signatures") == (name == "gemini:3")
    assert profile.has("json_schema") == (name != "gemini:2.0")


# --- signatures -------------------------------------------------------------------------------------


def test_every_step_of_the_current_turn_needs_a_signature_on_its_first_call_alone() -> None:
    steps = [USER, model(call(), call()), user(result(), result()), model(call(signature="x"), call())]
    assert found(*steps, user(result(), result())) == [("GEM-10", "contents[1].parts[0]")]
    assert found(*steps, user(result(), result()), profile=GEMINI_2) == []


def test_a_word_of_the_user_beside_results_begins_a_new_turn() -> None:
    assert found(USER, model(call()), user(result(), {"text": "and quick"})) == []


def test_missing_signatures_get_the_stand_in_where_they_are_looked_at() -> None:
    made = amended(USER, model({"text": "so"}, call(), call()), user(result(), result()))
    assert made[1]["parts"] == [{"text": "so"}, call(signature=DUMMY), call()]
    same = [USER, model(call()), user(result())]
    assert amended(*same, is_last=False) == same
    assert amended(*same, profile=GEMINI_2) == same


def test_foreign_signatures_are_replaced_or_left_out() -> None:
    other = (Artefact("abc", "anthropic", "x"),)
    contents = [USER, model(call(signature="abc"), call(signature="abc")), user(result(), result())]
    places = ["contents[1].parts[0]", "contents[1].parts[1]"]
    assert found(*contents, artefacts=other) == [("GEM-11", path) for path in places]
    assert amended(*contents, artefacts=other)[1]["parts"] == [call(signature=DUMMY), call()]
    assert amended(*contents, artefacts=other, profile=GEMINI_2)[1]["parts"] == [call(), call()]
    alone = [USER, model({"text": "", "thoughtSignature": "abc"})]
    assert amended(*alone, artefacts=other)[1]["parts"] == [{"text": "(nothing said)"}]


def test_an_empty_text_with_a_signature_is_no_empty_text() -> None:
    assert found(USER, model({"text": "a"}, {"text": "", "thoughtSignature": "x"}), USER) == []
    assert found(USER, model({"text": "a"}, {"text": ""}), USER) == [("GEM-3", "contents[1].parts[1]")]


# --- parts ------------------------------------------------------------------------------------------


def test_parts_with_several_things_or_none_at_all() -> None:
    contents = [user({"text": "a", "fileData": {"fileUri": "u"}}, "b", None), model({"text": "c"}, {}), USER]
    places = ["contents[0].parts[0]", "contents[0].parts[1]", "contents[0].parts[2]", "contents[1].parts[1]"]
    assert found(*contents) == [("GEM-3", path) for path in places]
    made = amended(contents[0])
    assert made == [user({"text": "a"}, {"fileData": {"fileUri": "u"}}, {"text": "b"}, {"text": "null"})]


def test_a_response_that_is_no_object() -> None:
    contents = [USER, model(call(signature="x", id="a")), user(result(id="a", response="18C"))]
    assert found(*contents) == [("GEM-8", "contents[2].parts[0]")]
    assert amended(*contents)[2] == user({"functionResponse": {"id": "a", "name": "f", "response": {"output": "18C"}}})
    missing = user({"functionResponse": {"name": "f"}})
    assert found(USER, model(call(signature="x")), missing) == [("GEM-8", "contents[2].parts[0]")]


def test_pictures_in_results_are_for_gemini_3() -> None:
    shown = user(result(parts=[{"inlineData": {"mimeType": "image/png", "data": "YWJj"}}]))
    assert found(USER, model(call(signature="x")), shown) == []
    assert found(USER, model(call()), shown, profile=GEMINI_2) == [("GEM-8", "contents[2].parts[0]")]


def test_a_history_that_begins_with_calls() -> None:
    contents = [model(call(signature="x")), user(result())]
    assert found(*contents) == [("GEM-4", "contents[0]")]
    assert amended(*contents) == [user({"text": START}), *contents]


# --- declarations -----------------------------------------------------------------------------------

ODD = {"type": "object", "$schema": "x", "properties": {"a": {"type": ["string", "null"]}}}


def declaring(**declared: Any) -> Any:
    return {"contents": [USER], "tools": [{"googleSearch": {}}, {"function_declarations": [{"name": "f", **declared}]}]}


@pytest.mark.parametrize(
    ("declared", "rules"),
    [
        ({"parameters": ODD}, {"GEM-17"}),
        ({"parameters": ODD, "parametersJsonSchema": ODD}, {"GEM-16", "GEM-17"}),
        ({"parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True}}}}, set()),
        ({"parameters": {"type": "STRING", "enum": [1]}}, {"GEM-17"}),
        ({"parametersJsonSchema": ODD}, set()),
        ({}, set()),
    ],
)
@pytest.mark.parametrize("profile", [GEMINI_3, FORMAT.profile({"model": "gemini-2.0-flash"})], ids=["new", "old"])
def test_declarations_outside_of_the_dialect(declared: Any, rules: Any, profile: Any) -> None:
    body = declaring(**declared)
    before = json.dumps(body)
    assert {one.rule for one in check(body, FORMAT, profile)} == rules
    made, changes = FORMAT.amend_frame(body, profile)
    assert json.dumps(body) == before
    assert bool(changes) == bool(rules)
    assert check(made, FORMAT, profile) == []
    assert FORMAT.amend_frame(made, profile) == (made, [])


def test_a_converted_schema_keeps_its_meaning() -> None:
    made: Any = FORMAT.amend_frame(declaring(parameters=ODD), GEMINI_3)[0]
    parameters = made["tools"][1]["function_declarations"][0]["parameters"]
    assert parameters["properties"]["a"] == {"type": "string", "nullable": True}


def test_vertex_takes_a_little_more() -> None:
    body = declaring(parameters={"type": "object", "properties": {}, "additionalProperties": False})
    assert {one.rule for one in check(body, FORMAT, GEMINI_3)} == {"GEM-17"}
    assert check(body, FORMAT, FORMAT.profile({"server": "vertex"})) == []


# --- unfolding and folding --------------------------------------------------------------------------


def test_what_the_blocks_of_a_content_say() -> None:
    turn = FORMAT.unfold(
        model(
            {"text": "so", "thought": True},
            {"text": "look", "thoughtSignature": "s"},
            call(id="a", signature="t"),
            {"inlineData": {"mimeType": "image/png", "data": "YWJj"}},
            {"inline_data": {"mime_type": "application/pdf", "data": "JVBERg", "display_name": "a.pdf"}},
            {"executableCode": {}},
        ),
        "contents[1]",
    )
    assert turn.role == "assistant"
    assert [(block.kind, block.text, block.signature) for block in turn.blocks] == [
        ("reasoning", "so", ""),
        ("text", "look", "s"),
        ("call", "", "t"),
        ("media", "", ""),
        ("media", "", ""),
        ("other", "", ""),
    ]
    assert turn.blocks[3].parts == (Image("image/png", b"abc"),)
    assert turn.blocks[4].parts == (File("application/pdf", b"%PDF", "a.pdf"),)
    assert turn.blocks[2].path == "contents[1].parts[2]"


@pytest.mark.parametrize(
    ("response", "parts", "is_error"),
    [
        ({"output": "18C"}, (Text("18C"),), False),
        ({"error": "timeout"}, (Text("timeout"),), True),
        ({"output": {"t": 18}}, (Json({"t": 18}),), False),
        ({"temperature": 18}, (Json({"temperature": 18}),), False),
        ({"output": ""}, (), False),
        ("18C", (Text("18C"),), False),
        (None, (), False),
    ],
)
def test_what_a_result_says(response: Any, parts: Any, is_error: bool) -> None:
    (block,) = FORMAT.unfold(user(result(id="a", response=response)), "").blocks
    assert (block.kind, block.id, block.name, block.parts, block.is_error) == ("result", "a", "f", parts, is_error)


def test_made_blocks_are_written_from_their_fields() -> None:
    blocks = (
        Block("text", "", text="hi"),
        Block("reasoning", "", text="so", signature="s"),
        Block("reasoning", "", signature="s"),
        Block("call", "", id="a", name="f", arguments='{"x": 1}', signature="t"),
        Block("result", "", id="a", name="f", parts=(Text("no"), Image("image/png", b"abc")), is_error=True),
        Block("media", "", parts=(Image("image/*", url="u"),)),
    )
    assert FORMAT.fold(Turn("assistant", blocks, "")) == model(
        {"text": "hi"},
        {"text": "so", "thought": True, "thoughtSignature": "s"},
        {"text": "", "thoughtSignature": "s"},
        {"functionCall": {"id": "a", "name": "f", "args": {"x": 1}}, "thoughtSignature": "t"},
        {
            "functionResponse": {
                "id": "a",
                "name": "f",
                "response": {"error": "no"},
                "parts": [{"inlineData": {"mimeType": "image/png", "data": "YWJj"}}],
            }
        },
        {"fileData": {"fileUri": "u"}},
    )


def test_a_changed_role_is_written_and_the_rest_of_the_content_kept() -> None:
    turn = FORMAT.unfold({"role": "assistant", "parts": [{"text": "x"}], "odd": 1}, "")
    assert (turn.role, turn.wire_role) == ("unknown", "assistant")
    changed = Turn("assistant", turn.blocks, turn.path, turn.raw, turn.wire_role)
    assert FORMAT.fold(changed) == {"role": "model", "parts": [{"text": "x"}], "odd": 1}


def test_a_frame() -> None:
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {"googleSearch": {}},
            {
                "functionDeclarations": [
                    {"name": "f", "description": "Does f.", "parameters": {"type": "OBJECT", "properties": {
                        "a": {"type": "STRING", "nullable": True, "enum": ["x"]},
                        "b": {"type": "ARRAY", "items": {"type": "INTEGER"}},
                        "c": {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}], "nullable": True},
                    }}},
                    {"name": "g", "parametersJsonSchema": {"type": "object"}},
                ]
            },
        ],
    }  # fmt: skip
    frame = FORMAT.frame(body)
    assert [(turn.role, turn.blocks[0].text) for turn in frame.system] == [("system", "Be brief.")]
    assert [(tool.name, tool.path) for tool in frame.tools] == [
        ("f", "tools[1].functionDeclarations[0]"),
        ("g", "tools[1].functionDeclarations[1]"),
    ]
    assert frame.tools[0].parameters == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "enum": ["x", None]},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
        },
    }


def test_a_changed_frame_is_written_and_the_rest_kept() -> None:
    body: Any = {"tools": [{"googleSearch": {}}], "contents": [USER], "system_instruction": {"parts": [{"text": "a"}]}}
    frame = FORMAT.frame(body)
    hoisted = FORMAT.unfold({"role": "system", "parts": [{"text": "b"}]}, "contents[0]")
    made = FORMAT.fold_frame(body, [*frame.system, hoisted], [Tool("f", "", "Does f.", {"type": "object"})])
    assert made == {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "f", "description": "Does f.", "parametersJsonSchema": {"type": "object"}}
                ]
            },
            {"googleSearch": {}},
        ],
        "contents": [USER],
        "system_instruction": {"parts": [{"text": "a"}, {"text": "b"}]},
    }
    assert FORMAT.fold_frame(made, [], []) == {"tools": [{"googleSearch": {}}], "contents": [USER]}
    assert list(FORMAT.fold_frame({"contents": []}, [hoisted], [])) == ["systemInstruction", "contents"]


# --- whatever is broken -----------------------------------------------------------------------------

TOOL_NAMES, IDS = st.sampled_from(["f", "g", "2fa", ""]), st.sampled_from(["a", "b", "c"])


def maybe(**fields: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({}, optional=fields)


BROKEN_CALLS = st.fixed_dictionaries(
    {"functionCall": maybe(id=IDS, name=TOOL_NAMES, args=st.sampled_from([{}, {"x": 1}, '{"x":1}', "bad", [1], None]))},
    optional={"thoughtSignature": st.sampled_from(["sig", "foreign"]), "text": st.just("beside")},
)
BROKEN_RESULTS = st.fixed_dictionaries(
    {
        "functionResponse": maybe(
            id=IDS,
            name=TOOL_NAMES,
            response=st.sampled_from([{"output": "1"}, {"error": "e"}, {"output": ""}, "s", None, [1]]),
            parts=st.sampled_from([[], [{"inlineData": {"mimeType": "image/png", "data": "YWJj"}}]]),
        )
    }
)
BROKEN_TEXTS = st.fixed_dictionaries(
    {"text": st.sampled_from(["hi", "", " ", 5])},
    optional={"thought": st.booleans(), "thoughtSignature": st.sampled_from(["sig", "foreign", ""])},
)
ODD_PARTS = st.sampled_from([{}, None, "x", {"executableCode": {}}, {"thoughtSignature": "sig"}, {"toolCall": {}}])
BROKEN_CONTENTS = st.fixed_dictionaries(
    {"parts": st.lists(BROKEN_TEXTS | BROKEN_CALLS | BROKEN_RESULTS | ODD_PARTS, max_size=4)},
    optional={"role": st.sampled_from(["user", "user", "model", "model", "assistant", "system", "function", ""])},
)
BROKEN_TOOLS = st.lists(
    maybe(
        googleSearch=st.just({}),
        functionDeclarations=st.lists(
            maybe(
                name=TOOL_NAMES,
                parameters=st.sampled_from([{}, {"type": "OBJECT"}, ODD, "x", {"$ref": "#/x"}]),
                parametersJsonSchema=st.sampled_from([{}, {"type": "object"}]),
            ),
            max_size=2,
        ),
    ),
    max_size=2,
)
BROKEN_BODIES = st.fixed_dictionaries(
    {"contents": st.lists(BROKEN_CONTENTS | st.sampled_from([None, "x", []]), max_size=6)},
    optional={"tools": BROKEN_TOOLS, "systemInstruction": BROKEN_CONTENTS | st.sampled_from(["Be brief.", ""])},
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemini-3-pro", "gemini-2.5-flash", "gemini-2.0-flash", ""])
@given(BROKEN_BODIES)
def test_whatever_is_broken_can_be_mended_once_and_for_all(name: str, body: Any) -> None:
    profile, artefacts = FORMAT.profile({"model": name}), [Artefact("foreign", "other", "m")]
    repaired = repair(body, FORMAT, profile, artefacts, warnings=True)
    assert check(repaired.body, FORMAT, profile, artefacts) == []
    assert repair(repaired.body, FORMAT, profile, artefacts, warnings=True).changes == ()
