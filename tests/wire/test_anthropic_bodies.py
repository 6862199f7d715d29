"""Anthropic Messages: bodies unfolded, checked and cured."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from artefacts_made import artefacts_of
from hostile import COMPARABLE as JSON
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.transcript import File, Image, Opaque, Text
from tenlines.wire.anthropic.format import FORMAT
from tenlines.wire.anthropic.rules import RULE
from tenlines.wire.checking import check
from tenlines.wire.profile import Profile
from tenlines.wire.repairing import repair
from tenlines.wire.rules import Rule
from tenlines.wire.turns import Block, Tool, Turn

SIGNATURE = "EqQBCkYIBxgCKkBzaWduYXR1cmU="
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
TOOL: dict[str, Any] = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
NEWEST = {"model": "claude-opus-5-5"}


def text(said: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **fields}


def use(call_id: str = "a", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}, **fields}


def answer(call_id: str = "a", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "1", **fields}


def thinking(**fields: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE, **fields}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks) or "Hi"}


def model(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"tools": [TOOL], **fields, "messages": list(messages)}


def found(
    given_body: dict[str, Any], context: dict[str, Any] | None = None, artefacts: Any = ()
) -> list[tuple[str, str]]:
    return [(one.rule, one.path) for one in check(given_body, FORMAT, FORMAT.profile(context), artefacts)]


def cured(given_body: dict[str, Any], context: dict[str, Any] | None = None, artefacts: Any = ()) -> dict[str, Any]:
    """The body after a repair, which leaves nothing to be found and does nothing when it is done again."""
    before, profile = copy.deepcopy(given_body), FORMAT.profile(context)
    repaired = repair(given_body, FORMAT, profile, artefacts, warnings=True)
    assert given_body == before, "the body that was given was changed"
    assert check(repaired.body, FORMAT, profile, artefacts) == []
    assert repair(repaired.body, FORMAT, profile, artefacts, warnings=True).changes == ()
    return repaired.body


# --- unfolding --------------------------------------------------------------------------------------


def test_a_message_unfolded() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}
    page = {
        "type": "document",
        "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
    }
    searched = {"type": "search_result", "source": "x", "title": "y", "content": []}
    held = [text("see"), picture, page, searched, text("")]
    result = answer(content=held, is_error=True)
    redacted = {"type": "redacted_thinking", "data": "Emw"}
    turn = FORMAT.unfold(user(result, text("so?"), thinking(), redacted, use(), {"type": "new"}, 7), "messages[3]")
    path = "messages[3].content"
    parts = (
        Text("see"),
        Image("image/png", b"\x89PNG"),
        File("application/pdf", b"%PDF", "a.pdf"),
        Opaque("anthropic", "", searched),
    )
    assert turn.blocks == (
        Block("result", f"{path}[0]", result, id="a", text=turn.blocks[0].text, parts=parts, is_error=True),
        Block("text", f"{path}[1]", text("so?"), text="so?"),
        Block("reasoning", f"{path}[2]", thinking(), text="Hm.", signature=SIGNATURE),
        Block("reasoning", f"{path}[3]", redacted, signature="Emw"),
        Block("call", f"{path}[4]", use(), id="a", name="f", arguments={}),
        Block("other", f"{path}[5]", {"type": "new"}),
        Block("other", f"{path}[6]", 7),
    )
    assert FORMAT.unfold({"role": "user", "content": "Hi"}, "m").blocks == (
        Block("text", "m.content", "Hi", text="Hi"),
    )
    assert FORMAT.unfold({"role": "developer"}, "m") == Turn("unknown", (), "m", {"role": "developer"}, "developer")


def test_what_is_changed_is_written_from_its_fields() -> None:
    raw = {"role": "user", "content": "Hi", "extra": 1}
    turn = FORMAT.unfold(raw, "messages[0]")
    blocks = (
        Block("result", "", id="b", text="1", parts=(Text("1"), Opaque("anthropic", "", {"type": "search_result"}))),
        Block("result", "", id="c", is_error=True),
        *turn.blocks,
        Block("media", "", parts=(Image("image/png", url="https://example.org/a.png"),)),
    )
    assert FORMAT.fold(Turn("user", blocks, "messages[0]", raw, "user")) == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "b", "content": [text("1"), {"type": "search_result"}]},
            {"type": "tool_result", "tool_use_id": "c", "is_error": True},
            text("Hi"),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        ],
        "extra": 1,
    }
    said = (Block("reasoning", "", text="Hm.", signature="x"), Block("call", "", id="a", name="f"))
    assert FORMAT.fold(Turn("assistant", said, "")) == model(thinking(signature="x"), use())


def test_what_stands_beside_the_messages() -> None:
    given_body: dict[str, Any] = {"system": "Be brief.", "tools": [TOOL, {"type": "mcp_toolset"}, 7], "messages": []}
    frame = FORMAT.frame(given_body)
    assert [turn.blocks[0].text for turn in frame.system] == ["Be brief."]
    assert frame.tools == (Tool("f", "tools[0]", "", TOOL["input_schema"], TOOL),)
    assert FORMAT.fold_frame(given_body, frame.system, frame.tools) == given_body
    more = (*frame.system, Turn("system", (Block("text", "", text="And kind."),), "messages[0]"))
    changed = FORMAT.fold_frame(given_body, more, (Tool("g", "tools", "Does g."),))
    assert changed["system"] == [text("Be brief."), text("And kind.")]
    assert changed["tools"] == [
        {"name": "g", "description": "Does g.", "input_schema": {"type": "object", "properties": {}}},
        {"type": "mcp_toolset"},
        7,
    ]
    assert FORMAT.fold_frame({"messages": []}, (), ()) == {"messages": []}
    assert "system" not in FORMAT.fold_frame(given_body, (), frame.tools)


BLOCKS = st.one_of(
    JSON,
    st.builds(text, st.text(max_size=3)),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "image", "document", "tool_use", "tool_result", "thinking", "compaction"])},
        optional={
            "text": JSON,
            "id": JSON,
            "tool_use_id": JSON,
            "content": JSON,
            "source": st.dictionaries(st.sampled_from(["type", "url", "data", "media_type"]), st.text(max_size=4)),
            "title": JSON,
            "input": JSON,
            "is_error": JSON,
        },
    ),
)
ANY_MESSAGE = JSON | st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "system", "tool"]) | JSON,
        "content": JSON | st.lists(BLOCKS, max_size=3),
        "tool_call_id": JSON,
        "x": JSON,
    },
)


@given(ANY_MESSAGE)
def test_any_message_goes_back_as_it_came(message: Any) -> None:
    assert FORMAT.fold(FORMAT.unfold(message, "messages[0]")) == message


@given(st.dictionaries(st.sampled_from(["system", "tools", "messages", "x"]), JSON | st.lists(BLOCKS, max_size=3)))
def test_any_body_keeps_what_stands_beside_its_messages(given_body: dict[str, Any]) -> None:
    frame = FORMAT.frame(given_body)
    assert FORMAT.fold_frame(given_body, frame.system, frame.tools) == given_body


# --- rules ------------------------------------------------------------------------------------------

SHOWN = [rule for rule in FORMAT.rules if rule.severity != "info" and rule.needs in ("static", "profile")]


@pytest.mark.parametrize("rule", SHOWN, ids=lambda rule: rule.id)
def test_each_rule_has_an_example_that_breaks_it_and_can_be_cured(rule: Rule) -> None:
    assert rule.fix
    example = json.loads(rule.example)
    assert rule.id in [id for id, _ in found(example, rule.context)]
    cured(example, rule.context)


@pytest.mark.parametrize("rule", [rule for rule in FORMAT.rules if rule.answer], ids=lambda rule: rule.id)
def test_each_answer_is_recognised(rule: Rule) -> None:
    if rule.id not in ("ANT-6", "ANT-20", "ANT-21", "ANT-32", "ANT-11"):
        match = next(id for pattern, id in FORMAT.rejections if re.search(pattern, rule.answer, re.IGNORECASE))
        assert match == rule.id


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", "ANT-11"),
        ("tools.12.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", "ANT-20"),
        ("tools.17.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12", "ANT-32"),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", "ANT-24"),
        ("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different", "ANT-25"),
        ("messages.1.content.0.thinking.signature: Field required", "ANT-24"),
        ("The `content[].thinking` in the thinking mode must be passed back to the API.", "ANT-23"),
        ('"thinking.type.enabled" is not supported for this model.', "ANT-37"),
        ("`temperature` is deprecated for this model.", "ANT-37"),
        ("messages.63: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_x.", "ANT-13"),
        ("Did not find 1 `tool_result` block(s) at the beginning of this message.", "ANT-15"),
        ("prompt is too long: 3 tokens > 2 maximum", ""),
    ],
)
def test_refusals_are_recognised(answer: str, expected: str) -> None:
    match = next((id for pattern, id in FORMAT.rejections if re.search(pattern, answer, re.IGNORECASE)), "")
    assert match == expected or (expected == "ANT-25" and match in ("ANT-24", "ANT-25"))


def test_rules_are_in_order_and_profiles_name_real_ones() -> None:
    assert list(RULE) == sorted(RULE, key=lambda id: (id.split("-")[0], int(id.split("-")[1])))
    for context in ({}, {"model": "claude-opus-5"}, NEWEST, {"server": "deepseek"}, {"server": "llama.cpp"}):
        assert set(FORMAT.profile(context).faults.values()) <= set(RULE)


# --- what only this format knows --------------------------------------------------------------------


def test_cache_marks() -> None:
    marked = [text(letter, cache_control=MARK) for letter in "abcdef"]
    given_body = body(user(*marked[:2], answer(content=[marked[2]])), tools=[{**TOOL, "cache_control": MARK}])
    assert "ANT-28" not in [rule for rule, _ in found(given_body)]
    many = body(user(*marked), system=[text("s", cache_control=MARK)])
    assert found(many) == [("ANT-28", "messages[0].content[3]")]
    kept = cured(many)
    assert [("cache_control" in block) for block in kept["messages"][0]["content"]] == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]
    assert "cache_control" not in kept["system"][0]
    automatic = body(user(*marked[:4]), cache_control=MARK)
    assert found(automatic) == [("ANT-28", "messages[0].content[3]")]
    assert cured(automatic)["cache_control"] == MARK
    late = body(user(marked[0], text("b", cache_control=HOUR)), model(thinking(cache_control=MARK), text("c")), user())
    assert found(late) == [("ANT-28", "messages[0].content[1]"), ("ANT-28", "messages[1].content[0]")]
    assert cured(late)["messages"][0]["content"][1] == text("b", cache_control=MARK)


def test_signatures() -> None:
    for signature in ("made-up", "", "x" * 11, "not base64 at all, is it"):
        assert found(body(user(), model(thinking(signature=signature), text("ok")), user())) == [
            ("ANT-24", "messages[1].content[0]")
        ]
    for signature in (SIGNATURE, "EqQBCkYIBxgC\N{HORIZONTAL ELLIPSIS}", "EqQBCkYIBxgC..."):
        assert found(body(user(), model(thinking(signature=signature), text("ok")), user())) == []
    unsigned = body(user(), model({"type": "thinking", "thinking": "Hm."}, use()), user(answer()))
    assert cured(unsigned)["messages"][1] == model(use())
    assert found(unsigned, {"server": "llama.cpp"}) == []


def test_thinking_that_a_budget_needs() -> None:
    budget = {"type": "enabled", "budget_tokens": 2048}
    asked = (user(), model(text("Hm"), use()), user(answer(), text("and?")))
    assert found(body(*asked, thinking=budget)) == [("ANT-23", "messages[1].content[0]")]
    assert "thinking" not in cured(body(*asked, thinking=budget))
    assert found(body(*asked, model(text("1")), user(), thinking=budget)) == []
    stripped = body(user(), model(thinking(signature="made-up"), use()), user(answer()), thinking=budget)
    assert "thinking" not in cured(stripped)
    deepseek = {"server": "deepseek"}
    assert found(body(*asked), deepseek) == [("ANT-23", "messages[1]")]
    assert found(body(*asked, thinking={"type": "disabled"}), deepseek) == []
    assert cured(body(*asked), deepseek)["messages"][1]["content"][0]["type"] == "thinking"


def test_what_became_of_thinking_since_it_was_made() -> None:
    made = body(
        user(),
        model(thinking(), use()),
        user(answer()),
        model(thinking(signature=SIGNATURE[::-1]), text("1")),
        user(),
        system="v1",
    )
    artefacts = artefacts_of(made, FORMAT, model="claude-opus-5-5")
    assert len(artefacts) == 2
    assert found(made, NEWEST, artefacts) == []
    assert found(body(*made["messages"], model(text("so")), user(), system="v1"), NEWEST, artefacts) == []
    marked = copy.deepcopy(made)
    marked["messages"][0]["content"] = "Hi"
    marked["messages"][2]["content"][0]["cache_control"] = MARK
    assert found(marked, NEWEST, artefacts) == [], "marks may move"
    del marked["messages"][1]["content"][0]
    assert found(marked, NEWEST, artefacts) == [], "thinking may go from the front"
    edited = copy.deepcopy(made)
    edited["messages"][1]["content"][0]["thinking"] = "(summary)"
    assert ("ANT-22", "messages[1].content[0]") in found(edited, NEWEST, artefacts)
    assert "thinking" not in json.dumps(cured(edited, NEWEST, artefacts))
    moved = {**made, "system": "v2"}
    assert [rule for rule, _ in found(moved, NEWEST, artefacts)] == ["ANT-25", "ANT-25"]
    assert "thinking" not in json.dumps(cured(moved, NEWEST, artefacts))
    assert (
        found(
            moved,
            {"model": "claude-opus-5"},
            [one.__class__(one.mark, "anthropic", "claude-opus-5", one.digest, one.prefix) for one in artefacts],
        )
        == []
    )
    foreign = artefacts_of(made, FORMAT, "deepseek", "deepseek-v4-pro")
    assert [rule for rule, _ in found(made, NEWEST, foreign)] == ["ANT-24", "ANT-24"]


def test_tools_of_servers() -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    assert found(body(user(), model(search, result, text("ok")), user())) == []
    assert found(body(user(), model(search))) == [], "paused"
    assert found(body(user(), model(search), model(result, text("ok")), user())) == [], "went on after a pause"
    at_work = (user(), model(search, use()), user(answer()))
    assert found(body(*at_work)) == []
    assert found(body(*at_work, model(result, text("ok")), user())) == []
    assert found(body(*at_work, model(text("ok")), user())) == [("ANT-29", "messages[1].content[0]")]
    beside = body(user(), model(search, use()), user(answer(), text("hurry")))
    assert found(beside) == [("ANT-29", "messages[1].content[0]")]
    assert cured(beside)["messages"][1] == model(use())
    alone = body(user(), model(search), user(text("hello?")))
    assert [one["role"] for one in cured(alone)["messages"]] in (["user"], ["user", "user"])


def test_places_of_system_messages() -> None:
    note = {"role": "system", "content": "note"}
    opus = {"model": "claude-opus-5"}
    fine = (user(), model(use()), user(answer()), note, model(text("1")), user(), note)
    assert found(body(*fine), opus) == []
    assert found(body(user(), model(text("1")), note), opus) == [("ANT-6", "messages[2]")]
    assert found(body(user(), note, note), opus) == [("ANT-6", "messages[2]")]
    first = body(note, user(), system="s")
    assert found(first, opus) == [("ANT-6", "messages[0]")]
    assert cured(first, opus) == body(user(), system=[text("s"), text("note")])
    between = body(user(), model(use()), note, user(answer()))
    assert [one["role"] for one in cured(between, opus)["messages"]] == ["user", "assistant", "user", "system"]
    for given_body in (
        body(user(), note, user()),
        body(user(), note, note),
        body(note),
        body(user(), model(text("1")), note),
    ):
        assert "note" in json.dumps(cured(given_body, opus))
        assert "note" in json.dumps(cured(given_body))


def test_inside_of_results() -> None:
    given_body = body(
        user(),
        model(use("a"), use("b")),
        user(answer("a", content=[text(""), text("x")]), answer("b", content="", is_error=True)),
    )
    assert found(given_body) == [("ANT-21", "messages[2].content[0]"), ("ANT-21", "messages[2].content[1]")]
    assert [one.severity for one in check(given_body, FORMAT, FORMAT.profile())] == ["error", "warning"]
    assert cured(given_body)["messages"][2]["content"] == [
        answer("a", content=[text("x")]),
        answer("b", content=[text("(tool failed without a message)")], is_error=True),
    ]


def test_parameters_that_a_model_does_not_take() -> None:
    opus = {"model": "claude-opus-5"}
    given_body = body(
        user(), thinking={"type": "enabled", "budget_tokens": 1024}, temperature=0, top_k=3, tool_choice={"type": "any"}
    )
    assert [rule for rule, _ in found(given_body, opus)] == ["ANT-37", "ANT-37", "ANT-37", "ANT-27"]
    assert cured(given_body, opus) == body(user(), thinking={"type": "adaptive"}, tool_choice={"type": "any"}) or cured(
        given_body, opus
    ) == body(user(), thinking={"type": "adaptive"}, tool_choice={"type": "auto"})
    off = body(user(), thinking={"type": "disabled"}, output_config={"effort": "max"})
    assert found(off, opus) == [("ANT-37", "thinking")]
    assert found({**off, "output_config": {"effort": "high"}}, opus) == []
    assert found(off, NEWEST) == [("ANT-37", "thinking")]
    forced = body(user(), tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True})
    assert found(forced, opus) == []
    assert found(forced, NEWEST) == [("ANT-27", "tool_choice")]
    assert cured(forced, NEWEST)["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_schemas_of_tools() -> None:
    def tools(*schemas: Any, **fields: Any) -> dict[str, Any]:
        return body(
            user(), tools=[{"name": f"f{at}", "input_schema": schema, **fields} for at, schema in enumerate(schemas)]
        )

    for schema in ({"type": "string"}, {"oneOf": []}, None, {}):
        assert found(tools(schema)) == [("ANT-32", "tools[0].input_schema")]
        assert cured(tools(schema))["tools"][0]["input_schema"]["type"] == "object"
    strict = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}, "additionalProperties": False}
    assert found(tools(strict)) == []
    assert found(tools(strict, strict=True)) == [("ANT-32", "tools[0].input_schema")]
    assert "minimum" not in json.dumps(
        {**cured(tools(strict, strict=True))["tools"][0], "description": ""}["input_schema"]["properties"]["a"]
        .keys()
        .__repr__()
    )
    assert found(body(user(), tools=[{"type": "web_search_20250305", "name": "web_search"}])) == []
    plain = {"type": "object", "properties": {}, "additionalProperties": False}
    assert found(tools(*[plain] * 21, strict=True)) == [("ANT-32", "tools")]
    assert "strict" not in cured(tools(*[plain] * 21, strict=True))["tools"][20]


def test_compaction_blocks() -> None:
    signed = {"type": "compaction", "content": "So far ...", "signature": SIGNATURE}
    beta = {"beta": "compact-2026-09-04"}
    assert found(body(model(signed), user()), beta) == []
    assert found(body(user(), model(signed), user()), beta) == [("ANT-34", "messages[1].content[0]")]
    assert (
        found(body(user(), model({**signed, "content": None}, text("ok")), user()), {"beta": "compact-2026-01-12"})
        == []
    )
    empty = body(user(), model({"type": "compaction", "content": ""}, text("ok")), user())
    assert found(empty) == [("ANT-34", "messages[1].content[0]")]
    assert cured(empty)["messages"][1] == model(text("ok"))
    cured(body(user(), model(signed), user()), beta)


def test_the_beginning_of_a_reply() -> None:
    old = {"model": "claude-sonnet-4-5"}
    spaced = body(user(), model(text("It is "), text("\n")))
    assert found(spaced, old) == [("ANT-5", "messages[1].content[1]")]
    assert cured(spaced, old)["messages"][1] == model(text("It is"))
    assert found(body(user(), model()), old) == []
    assert found(spaced) == [("ANT-4", "messages[1]")]


def test_profiles() -> None:
    base = FORMAT.profile()
    assert base == FORMAT.profile({"server": "bedrock", "version": "1"})
    assert isinstance(base, Profile)
    assert FORMAT.profile({"model_family": "claude-opus-5"}).model == "claude-opus-5"
    assert FORMAT.profile({"server": "llama.cpp"}).provider == "llama.cpp"
    assert found(body(user(), model(use()), model(text("ok"))), {"server": "llama.cpp"}) == []
    assert found(body(user(), model(use(input="x")), user(answer())), {"server": "llama.cpp"}) == [
        ("ANT-10", "messages[1].content[0]")
    ]


# --- any body ---------------------------------------------------------------------------------------

IDS = st.sampled_from(["a", "b", "c.d", "", "s1"])
TEXTS = st.sampled_from(["", " ", "x", "x "])
SAID = st.one_of(
    st.builds(text, TEXTS),
    st.builds(lambda id, given_input: use(id, input=given_input), IDS, st.sampled_from([{}, "{}", "x", None])),
    st.builds(
        lambda id, held, failed: answer(id, content=held, is_error=failed),
        IDS,
        st.sampled_from(["", "1", [], [text("")]]),
        st.booleans(),
    ),
    st.builds(lambda signature: thinking(signature=signature), st.sampled_from([SIGNATURE, "", "made-up"])),
    st.builds(lambda id: {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}, IDS),
    st.builds(lambda id: {"type": "web_search_tool_result", "tool_use_id": id, "content": []}, IDS),
    st.builds(
        lambda said: {"type": "compaction", "content": said, "signature": SIGNATURE}, st.sampled_from(["", "x", None])
    ),
    st.builds(lambda mark: text("x", cache_control=mark), st.sampled_from([MARK, HOUR])),
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "user", "assistant", "system", "tool", "developer"]),
            "content": st.lists(SAID, max_size=4) | TEXTS,
        }
    ),
    max_size=6,
)
BODIES = st.fixed_dictionaries(
    {"messages": MESSAGES},
    optional={
        "thinking": st.sampled_from(
            [{"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}, {"type": "disabled"}]
        ),
        "tools": st.sampled_from([[], [TOOL], [{**TOOL, "cache_control": MARK}], [{"name": "a.b"}]]),
        "tool_choice": st.sampled_from([{"type": "any"}, {"type": "auto"}]),
        "system": TEXTS | st.lists(st.builds(text, TEXTS), max_size=2),
        "temperature": st.just(0),
    },
)
CONTEXTS = st.sampled_from(
    [
        {},
        {"model": "claude-sonnet-4-5"},
        {"model": "claude-opus-4-6"},
        {"model": "claude-opus-5"},
        NEWEST,
        {"server": "deepseek"},
        {"server": "llama.cpp"},
        {"beta": "compact-2026-09-04"},
    ]
)


@pytest.mark.slow
@given(BODIES, CONTEXTS)
def test_any_body_can_be_cured(given_body: dict[str, Any], context: dict[str, Any]) -> None:
    cured(given_body, context)


@given(
    st.dictionaries(st.sampled_from(["system", "tools", "thinking", "tool_choice", "messages", "output_config"]), JSON)
)
def test_any_json_can_be_checked(given_body: dict[str, Any]) -> None:
    held = given_body.get("messages")
    cured({**given_body, "messages": held if isinstance(held, list) else []})


def test_text_without_text_in_a_result_is_left_out() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text"}, None]}
    said = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [said]}]
    body = {"messages": [*messages, {"role": "user", "content": [result]}], "tools": [{"name": "f"}]}
    done = repair(body, FORMAT, FORMAT.profile())
    assert done.body["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": "t1"}]
    assert check(done.body, FORMAT, FORMAT.profile()) == []


@pytest.mark.parametrize("text", [{}, {"text": None}, {"text": ""}])
def test_text_without_text_is_empty_text(text: dict[str, Any]) -> None:
    said = [{"type": "text", **text}, {"type": "text", "text": "x"}]
    asked = {"role": "user", "content": "hi"}
    body = {"messages": [asked, {"role": "assistant", "content": said}, asked]}
    assert [(one.rule, one.path) for one in check(body, FORMAT, FORMAT.profile())] == [
        ("ANT-7", "messages[1].content[0]")
    ]
    assert repair(body, FORMAT, FORMAT.profile()).body["messages"][1]["content"] == [{"type": "text", "text": "x"}]


def test_what_is_no_text_does_not_become_a_system_prompt() -> None:
    kept = {"type": "compaction", "content": "x", "signature": "EqQB"}
    asked = {"role": "user", "content": "hi"}
    for others, system in (([], None), ([{"type": "text", "text": "be brief"}], "be brief")):
        body = {"messages": [{"role": "system", "content": [kept, *others]}, asked]}
        done = repair(body, FORMAT, FORMAT.profile())
        assert done.body["messages"] == [asked]
        assert [block["text"] for block in done.body.get("system", [])] == ([system] if system else [])
        assert "compaction" in done.changes[0].message
