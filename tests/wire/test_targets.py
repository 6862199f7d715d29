"""From what a person writes to a format and a profile."""

from __future__ import annotations

import pytest

from tenlines.errors import ConfigError
from tenlines.wire.checking import check
from tenlines.wire.formats import FORMATS
from tenlines.wire.openai_chat.compatible import SERVERS
from tenlines.wire.targets import ALIASES, as_history, format_name, goal, own_goal


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_by_its_name(name: str) -> None:
    found = goal(name)
    assert (found.format.name, found.model) == (name, "")
    assert found.profile == FORMATS[name].profile()
    assert goal(f" {name.upper()} ").format.name == name


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_other_words_for_formats(alias: str, name: str) -> None:
    assert format_name(alias.title()) == name
    assert goal(f"{alias}:some-model").format is FORMATS[name]


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_speaks_chat_completions(server: str) -> None:
    found = goal(f"{server}/v1:NAME" if server in FORMATS else f"{server}:NAME")
    assert (found.format.name, found.model) == ("openai_chat", "NAME")
    assert found.profile == FORMATS["openai_chat"].profile({"server": server, "model": "NAME"})


def test_a_model_may_have_colons_of_its_own() -> None:
    found = goal("bedrock:anthropic.claude-opus-5-v1:0")
    assert found.model == "anthropic.claude-opus-5-v1:0"
    assert found.profile == FORMATS["bedrock"].profile({"model": found.model})


def test_a_tokenizer_of_mistral_is_no_model() -> None:
    assert goal("mistral:v13").model == ""
    assert goal("mistral:v13").profile != goal("mistral:v7").profile
    assert goal("mistral:vibe").model == "vibe"


@pytest.mark.parametrize(
    ("text", "says"), [("antropic:x", "Did you mean anthropic?"), ("", "Formats: openai_chat"), ("zzz", "Servers: ")]
)
def test_what_stands_for_nothing(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        goal(text)
    assert says in str(caught.value)


def test_whom_a_body_was_written_for_is_said_by_its_model() -> None:
    assert own_goal({"model": "gpt-5"}, "openai_chat").profile == goal("openai_chat:gpt-5").profile
    assert own_goal({"modelId": "amazon.nova-pro"}, "bedrock").profile == goal("bedrock:amazon.nova-pro").profile
    assert own_goal({"model": 5}, "anthropic") == own_goal([], "anthropic") == goal("anthropic")


@pytest.mark.parametrize("name", ["anthropic:claude-opus-5", "gemini", "mistral", "strict-template", "llama.cpp"])
def test_a_history_may_end_with_a_reply(name: str) -> None:
    found = goal(name)
    role, content = ("model", "parts") if name == "gemini" else ("assistant", "content")
    texts = [("user", "a"), (role, "b"), ("user", "c"), (role, "d")]
    messages = [{"role": who, content: [{"text": text}] if content == "parts" else text} for who, text in texts]
    body = {found.format.list_field: messages}
    assert "ROLE-LAST" not in {one.kind for one in check(body, found.format, as_history(found).profile)}
    if name != "llama.cpp":
        assert {one.kind for one in check(body, found.format, found.profile)} & {"ROLE-LAST", "ROLE-ORDER"}
