"""Profiles of servers: each is found by name and by address, and what is written for it is taken by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import SPECS, asking, cuts, transcripts

from tenlines.core.transcript import Assistant, Image, Message, Note, Opaque, Result, System, Text, ToolCall, User
from tenlines.wire.checking import check
from tenlines.wire.openai_chat.compatible import profile_for_address
from tenlines.wire.openai_chat.encoding import UNDERSTOOD
from tenlines.wire.openai_chat.format import FORMAT
from tenlines.wire.parts import CONTINUE, EMPTY, NO_OUTPUT, START
from tenlines.wire.profile import Profile, Target

CONTEXTS: tuple[Mapping[str, str | bool], ...] = (
    {},
    {"model": "gpt-4.1"},
    {"model": "gpt-5"},
    {"model": "gpt-5.6-terra"},
    {"model": "o4-mini"},
    {"server": "azure", "model": "gpt-5.6"},
    {"server": "compatible"},
    {"server": "strict-template"},
    {"server": "vllm", "version": "<=0.25"},
    {"server": "vllm", "version": "0.26"},
    {"server": "sglang"},
    {"server": "llama.cpp", "enable_thinking": True},
    {"server": "llama.cpp", "enable_thinking": False},
    {"server": "ollama"},
    {"server": "deepseek", "model": "deepseek-v4"},
    {"server": "deepseek", "model": "deepseek-r1"},
    {"server": "deepseek", "model": "deepseek-chat"},
    {"server": "moonshot", "model": "kimi-k2.6"},
    {"server": "moonshot", "model": "kimi-k2-instruct"},
    {"server": "mimo"},
    {"server": "minimax-like"},
    {"server": "groq"},
    {"server": "openrouter"},
    {"server": "xai"},
    {"server": "gemini"},
    {"server": "mistral-backed (Scaleway)"},
    {"server": "qwen"},
    {"server": "glm"},
    {"server": "meta"},
)


def target(context: Mapping[str, str | bool], **more: Any) -> Target:
    return Target(profile=FORMAT.profile(context), model=str(context.get("model", "m")), **more)


def sent(messages: list[Message], context: Mapping[str, str | bool], **more: Any) -> Any:
    return FORMAT.talk(target(context)).request(asking(messages, **more), False)


def user(text: str) -> User:
    return User((Text(text),))


CALLED = [user("go"), Assistant("", (ToolCall("a", "f", "{}"),)), Result("a", "f", "ok", (Text("1"),))]


# --- what is written for a server is taken by it ----------------------------------------------------


PAYLOADS: list[Any] = [{"reasoning_content": "hm"}, {"reasoning": "hm"}, {"extra_content": [None]}, "odd"]
OPAQUES = st.builds(
    Opaque,
    st.sampled_from(["openai", "deepseek", "moonshot", "compatible", "elsewhere"]),
    st.sampled_from(["m", "deepseek-v4", "deepseek-r1", "kimi-k2.6"]),
    st.sampled_from(PAYLOADS),
)
CHOICES = st.sampled_from(["auto", "none", "required", "f"])


def breaks_no_rule(messages: list[Message], context: Mapping[str, str | bool], choice: str) -> None:
    assert check(sent(messages, context, tool_choice=choice), FORMAT, FORMAT.profile(context)) == []


def only_grows(messages: list[Message], context: Mapping[str, str | bool]) -> None:
    grown = FORMAT.talk(target(context))
    before: list[Any] = []
    for end in cuts(messages):
        now: Any = grown.request(asking(messages[:end]), False)["messages"]
        assert now == sent(messages[:end], context)["messages"]  # a fresh process says the same
        last = before[-1:]
        if last in ([{"role": "user", "content": CONTINUE}], [{"role": "user", "content": START}]):
            before = before[:-1]  # it was only there to end the request
        assert json.dumps(now).startswith(json.dumps(before).rstrip('"}]'))
        before = list(now)


@settings(max_examples=20)
@given(transcripts(OPAQUES).filter(bool), st.sampled_from(CONTEXTS), CHOICES)
def test_what_is_written_for_a_server_breaks_none_of_its_rules(
    messages: list[Message], context: Mapping[str, str | bool], choice: str
) -> None:
    breaks_no_rule(messages, context, choice)


@settings(max_examples=20)
@given(transcripts(), st.sampled_from(CONTEXTS))
def test_a_request_begins_with_the_one_before(messages: list[Message], context: Mapping[str, str | bool]) -> None:
    only_grows(messages, context)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(transcripts(OPAQUES).filter(bool), CHOICES)
def test_every_server_takes_what_is_written_for_it(messages: list[Message], choice: str) -> None:
    for context in CONTEXTS:  # each transcript for all of them: it takes longer to make one than to write it
        try:
            breaks_no_rule(messages, context, choice)
            only_grows(messages, context)
        except Exception as error:
            error.add_note(f"written for {context}")
            raise


@settings(max_examples=15)
@given(transcripts(most=3), st.data())
def test_what_is_taken_back_is_gone(messages: list[Message], data: st.DataObject) -> None:
    for server in ("compatible", "mistral-backed", "openai"):
        ends = [0, *cuts(messages)]
        grown = FORMAT.talk(target({"server": server}))
        for end in data.draw(st.lists(st.sampled_from(ends), max_size=3)):
            kept = data.draw(st.integers(0, end))
            body = grown.request(asking(messages[:end], new_from=kept), False)
            assert body == sent(messages[:end], {"server": server})


# --- what stands between messages -------------------------------------------------------------------


def roles(body: Any) -> list[str]:
    return [message["role"] for message in body["messages"]]


def test_a_strict_template_gets_roles_in_turn_and_every_text() -> None:
    transcript: list[Message] = [
        System("a"),
        System("b"),
        Assistant("hello"),
        user("one"),
        Note("two"),
        Assistant(" "),
        user("three"),
        Assistant("x"),
        Assistant("y"),
    ]
    body = sent(transcript, {"server": "strict-template"})
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("system", "a\n\nb"),
        ("user", START),
        ("assistant", "hello"),
        ("user", "one\n\n[note from the runtime] two\n\nthree"),
        ("assistant", "x"),
        ("user", CONTINUE),
        ("assistant", "y"),
        ("user", CONTINUE),
    ]


def test_empty_texts_get_a_placeholder_where_they_are_refused() -> None:
    transcript = [user(""), CALLED[1], Result("a", "f", "ok", (Text("\n"),))]
    assert [one["content"] for one in sent(transcript, {"server": "compatible"})["messages"]] == [EMPTY, "", NO_OUTPUT]
    assert [one["content"] for one in sent(transcript, {})["messages"]] == ["", None, "\n"]


def test_an_image_behind_text_that_was_sent_is_a_message_of_its_own() -> None:
    picture = User((Image("image/png", b"x"),))
    assert roles(sent([user("a"), picture], {"server": "compatible"})) == ["user", "assistant", "user"]
    joined = sent([picture, user("a")], {"server": "compatible"})["messages"]
    assert [part["type"] for part in joined[0]["content"]] == ["image_url", "text"]


def test_where_a_user_may_not_follow_results_the_assistant_says_a_word() -> None:
    body = sent([*CALLED, user("and?")], {"server": "mistral-backed"})
    assert body["messages"][3:] == [
        {"role": "assistant", "content": UNDERSTOOD},
        {"role": "user", "content": "and?"},
    ]


# --- reasoning --------------------------------------------------------------------------------------


def thinking(provider: str, model: str = "deepseek-v4") -> list[Message]:
    calls = (ToolCall("a", "f", "{}"),)
    opaque = Opaque(provider, model, {"reasoning_content": "hm"})
    return [user("go"), Assistant("", calls, (opaque,)), CALLED[2], Assistant("done"), user("more")]


def test_reasoning_that_must_be_there_is_there_if_only_empty() -> None:
    context = {"server": "deepseek", "model": "deepseek-v4"}
    own = sent(thinking("deepseek"), context)["messages"]
    assert [own[1]["reasoning_content"], own[3]["reasoning_content"]] == ["hm", ""]
    assert sent(thinking("other"), context)["messages"][1]["reasoning_content"] == ""
    kimi = sent(thinking("other"), {"server": "moonshot"})["messages"]
    assert kimi[1]["reasoning_content"] == ""
    assert "reasoning_content" not in kimi[3]


def test_reasoning_goes_to_a_later_edition_of_the_model_and_to_no_other() -> None:
    context = {"server": "deepseek", "model": "deepseek-v4-2026-11-01"}
    assert sent(thinking("deepseek"), context)["messages"][1]["reasoning_content"] == "hm"
    assert sent(thinking("deepseek", "deepseek-v3"), context)["messages"][1]["reasoning_content"] == ""


@pytest.mark.parametrize("context", [{"server": "deepseek", "model": "deepseek-r1"}, {}])
def test_reasoning_is_never_sent_where_it_is_refused(context: dict[str, str | bool]) -> None:
    provider = FORMAT.profile(context).provider
    assert "reasoning_content" not in sent(thinking(provider, "deepseek-r1"), context)["messages"][1]


# --- ids and choices --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "given", "taken"),
    [
        ("moonshot", "functions.f:0", "functions.f:0"),
        ("mistral-backed", "abcdefgh1", "abcdefgh1"),
        ("openai", "call_1", "call_1"),
    ],
)
def test_ids_go_back_as_they_came_where_they_are_taken(server: str, given: str, taken: str) -> None:
    call = Assistant("", (ToolCall(given, "f", "{}"),))
    body = sent([user("go"), call, Result(given, "f", "ok", ())], {"server": server})
    assert body["messages"][1]["tool_calls"][0]["id"] == body["messages"][2]["tool_call_id"] == taken


def test_ids_for_mistral_are_nine_letters_and_digits() -> None:
    body = sent(CALLED, {"server": "mistral-backed"})
    call_id = body["messages"][1]["tool_calls"][0]["id"]
    assert len(call_id) == 9
    assert call_id.isalnum()
    assert body["messages"][2]["tool_call_id"] == call_id


@pytest.mark.parametrize(
    ("server", "choice", "goes"),
    [
        ("deepseek", "required", "auto"),
        ("deepseek", "f", "auto"),
        ("deepseek", "none", "none"),
        ("moonshot", "f", "auto"),
        ("moonshot", "required", "required"),
        ("qwen", "required", "auto"),
        ("glm", "none", "auto"),
        ("openai", "required", "required"),
    ],
)
def test_a_choice_that_is_refused_is_left_to_the_model(server: str, choice: str, goes: str) -> None:
    assert sent(CALLED, {"server": server}, tool_choice=choice)["tool_choice"] == goes


def test_openais_newest_models_get_tools_without_thinking() -> None:
    assert sent(CALLED, {"model": "gpt-5.6"})["reasoning_effort"] == "none"
    assert "reasoning_effort" not in sent(CALLED, {"model": "gpt-5.6"}, tools=())
    assert "reasoning_effort" not in sent(CALLED, {"model": "gpt-5.1"})


def test_the_limit_has_the_name_that_the_server_knows() -> None:
    limited = FORMAT.talk(target({"server": "groq"}, max_tokens=5)).request(asking(CALLED), True)
    assert limited["max_tokens"] == 5
    assert limited["stream_options"] == {"include_usage": True}
    assert FORMAT.talk(target({}, max_tokens=5)).request(asking(CALLED), False)["max_completion_tokens"] == 5


# --- finding the profile ----------------------------------------------------------------------------


@pytest.mark.parametrize("context", CONTEXTS, ids=str)
def test_a_profile_is_dated_and_its_faults_are_rules_of_the_format(context: Mapping[str, str | bool]) -> None:
    profile = FORMAT.profile(context)
    assert profile.as_of
    assert profile.sources
    assert set(profile.faults.values()) <= {rule.id for rule in FORMAT.rules}


@pytest.mark.parametrize(
    ("version", "is_parsed"), [("<=0.25", True), ("0.25.1", True), ("", True), ("0.26.0", False), (">0.25", False)]
)
def test_newer_vllm_mends_arguments_itself(version: str, is_parsed: bool) -> None:
    assert ("args.json" in FORMAT.profile({"server": "vllm", "version": version}).faults) is is_parsed


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("api.openai.com", "openai"),
        ("my-place.openai.azure.com", "azure"),
        ("api.deepseek.com", "deepseek"),
        ("openrouter.ai:443", "openrouter"),
        ("api.groq.com", "groq"),
        ("api.moonshot.ai", "moonshot"),
        ("api.x.ai", "xai"),
        ("127.0.0.1:8080", "compatible"),
        ("localhost", "compatible"),
        ("notapi.groq.com.example.org", "compatible"),
        ("", "compatible"),
    ],
)
def test_profiles_by_address(host: str, name: str) -> None:
    found: Profile = profile_for_address(host, "some/Model")
    assert found.name == name
    assert found.model == "model"
    if name == "compatible":
        assert found.provider == host


def test_names_of_servers_that_nobody_knows_get_the_conservative_profile() -> None:
    assert FORMAT.profile({"server": "brand-new"}).name == "compatible"
    assert FORMAT.profile({"server": "Kimi"}).name == "moonshot"


# --- rules ------------------------------------------------------------------------------------------

BREAKABLE = [rule for rule in FORMAT.rules if rule.severity != "info" and rule.needs in ("static", "profile")]


@pytest.mark.parametrize("rule", BREAKABLE, ids=lambda rule: rule.id)
def test_the_example_of_a_rule_breaks_it(rule: Any) -> None:
    found = check(json.loads(rule.example), FORMAT, FORMAT.profile(rule.context))
    assert (rule.id, rule.severity) in [(one.rule, one.severity) for one in found]
    assert {one.kind for one in found if one.rule == rule.id} <= set(rule.kinds)


def test_rules_have_ids_of_their_own_and_refusals_name_them() -> None:
    ids = [rule.id for rule in FORMAT.rules]
    assert len(set(ids)) == len(ids)
    assert {rule_id for _, rule_id in FORMAT.rejections} <= set(ids)
    assert len(SPECS) == 6
