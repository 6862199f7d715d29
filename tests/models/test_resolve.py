"""What may be written as a model."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tenlines.errors import ConfigError, MissingExtra
from tenlines.models.local import LocalModel
from tenlines.models.openai_compatible import OpenAICompatible
from tenlines.models.plain import FunctionModel, ScriptedModel
from tenlines.models.resolve import CLIENTS, resolve


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ("TENLINES_API_KEY", "OLLAMA_HOST", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "MISTRAL_API_KEY")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", *ours):
        monkeypatch.delenv(name, raising=False)


def server(spec: str) -> OpenAICompatible:
    model = resolve(spec)
    assert isinstance(model, OpenAICompatible)
    return model


def test_openai_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = server("openai:gpt-5")
    assert (model.name, model.target.model, model.target.profile.provider) == ("openai:gpt-5", "gpt-5", "openai")


def test_openai_without_a_key_says_what_to_set_and_what_needs_none() -> None:
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY.*local"):
        resolve("openai:gpt-5")


@pytest.mark.parametrize(
    ("spec", "name", "model"),
    [
        ("http://127.0.0.1:9/v1#m", "http://127.0.0.1:9/v1#m", "m"),
        ("http://127.0.0.1:9/v1/#org/m:q4#2", "http://127.0.0.1:9/v1#org/m:q4#2", "org/m:q4#2"),
        ("http://127.0.0.1:9#m", "http://127.0.0.1:9/v1#m", "m"),
        ("https://127.0.0.1:9/api/v2#m", "https://127.0.0.1:9/api/v2#m", "m"),
        ("ollama:llama3.2:1b", "ollama:llama3.2:1b", "llama3.2:1b"),
    ],
)
def test_servers(spec: str, name: str, model: str) -> None:
    found = server(spec)
    assert (found.name, found.target.model) == (name, model)


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("", "127.0.0.1:11434"),
        ("127.0.0.1:5000", "127.0.0.1:5000"),
        ("http://localhost:5000/", "localhost:5000"),
        ("0.0.0.0", "127.0.0.1:11434"),
        (":5000", "127.0.0.1:5000"),
        ("https://box", "box:443"),
        ("[::1]:5000", "[::1]:5000"),
        ("127.0.0.1:x", "127.0.0.1:11434"),
    ],
)
def test_ollamas_own_variable_is_honoured(host: str, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert server("ollama:m").address in (f"http://{provider}/v1", "https://box/v1")


def test_a_server_without_a_name_is_asked_for_its_only_model(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENLINES_API_KEY", "own")
    chat.say({"data": [{"id": "the-one"}]})
    assert server(chat.url).target.model == "the-one"
    assert chat.paths == ["/v1/models"]
    assert chat.headers[0]["authorization"] == "Bearer own"


def test_a_server_with_several_models_lists_them(chat: Any) -> None:
    chat.say({"data": [{"id": "a"}, {"id": "b"}]})
    with pytest.raises(ConfigError, match=r"2 models \(a, b\).*/v1#NAME"):
        resolve(chat.url)


def test_a_server_that_does_not_say_its_models(chat: Any) -> None:
    chat.say("<html>", content_type="text/html")
    with pytest.raises(ConfigError, match="is it running"):
        resolve(chat.url)
    chat.close()
    with pytest.raises(ConfigError, match="is it running"):
        resolve(chat.url)


@pytest.mark.parametrize("spec", ["http://", "http://:80/v1#m", "http://host:x/v1#m"])
def test_what_is_no_address(spec: str) -> None:
    with pytest.raises(ConfigError, match="not an address"):
        resolve(spec)


def test_the_local_model_in_its_forms(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    for spec in ("local", "local:small", f"local:{own}"):
        model = resolve(spec)
        assert isinstance(model, LocalModel)
        assert model.name == spec
    with pytest.raises(ConfigError, match=r"no file .*nowhere\.gguf"):
        resolve(f"local:{tmp_path}/nowhere.gguf")


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("anthropic:claude-sonnet-5", "set ANTHROPIC_API_KEY"),
        ("anthropic", "is incomplete: write anthropic:NAME"),
        ("claude-sonnet-5", "Did you mean 'anthropic:claude-sonnet-5'"),
        ("gemini-3", "Did you mean 'google:gemini-3'"),
        ("magistral-small", "Did you mean 'mistral:magistral-small'"),
        ("antropic:claude-sonnet-5", "Did you mean anthropic:NAME"),
        ("litellm", "is incomplete"),
        ("gpt-5", "Did you mean 'openai:gpt-5'"),
        ("opnai:gpt-5", "Did you mean openai:NAME"),
        ("olama:m", "Did you mean ollama:NAME"),
        ("lokal", "Did you mean local"),
        ("model.gguf", "Did you mean 'local:model.gguf'"),
        ("openai:", "is incomplete: write openai:NAME"),
        ("openai", "is incomplete"),
        ("local:", "is incomplete"),
        ("ollama", "is incomplete"),
        ("", "is empty"),
        ("nonsense", "A model is one of"),
    ],
)
def test_what_stands_for_no_model_says_what_does(spec: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(spec)
    assert hint in str(caught.value)


def test_an_sdk_client_is_refused_with_the_way_to_use_it() -> None:
    with (
        openai.OpenAI(api_key="k") as client,
        pytest.raises(ConfigError, match=r"OpenAICompatible\('NAME', client=\.\.\.\)"),
    ):
        resolve(client)
    with (
        anthropic.Anthropic(api_key="k") as other,
        pytest.raises(ConfigError, match=r"Anthropic\('NAME', client=\.\.\.\) \(from tenlines\.models\.anthropic\)"),
    ):
        resolve(other)


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        ("anthropic:claude-opus-5", "ANTHROPIC_API_KEY"),
        ("google:gemini-3-pro", "GEMINI_API_KEY"),
        ("gemini:gemini-3-pro", "GEMINI_API_KEY"),
        ("mistral:mistral-large-latest", "MISTRAL_API_KEY"),
    ],
)
def test_each_provider_has_its_key(spec: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=variable):
        resolve(spec)
    monkeypatch.setenv(variable, "k")
    assert resolve(spec).name == spec.replace("gemini:", "google:")


def test_the_library_for_everything_else() -> None:
    assert resolve("litellm:groq/llama-4").name == "litellm:groq/llama-4"


@pytest.mark.parametrize("kind", sorted({"openai", *CLIENTS}))
def test_every_class_that_a_client_is_for_is_there(kind: str) -> None:
    module, name = CLIENTS[kind]
    made = getattr(importlib.import_module(module), name)
    assert {"client", "profile", "name", "max_tokens"} <= inspect.signature(made).parameters.keys()


def test_objects_functions_and_lists() -> None:
    model = OpenAICompatible("m", "http://127.0.0.1:9/v1")
    assert resolve(model) is model
    assert isinstance(resolve(lambda messages: "hi"), FunctionModel)
    assert isinstance(resolve(["hi"]), ScriptedModel)
    for wrong in (7, None, OpenAICompatible):
        with pytest.raises(ConfigError):
            resolve(wrong)


@pytest.mark.parametrize(
    ("module", "spec", "extra"),
    [
        ("openai", "http://127.0.0.1:9/v1#m", "openai"),
        ("xllamacpp", "local", "local"),
        ("openai", "local", "local"),
    ],
)
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(
    module: str, spec: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'tenlines\[{extra}\]'"):
        resolve(spec)


def test_resolving_imports_no_sdk() -> None:
    code = "import sys, tenlines.models.resolve as r; r.resolve(['hi']); print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", ["flow:front_page", "function:my_model"])
def test_what_only_a_program_has_is_told_apart_from_a_mistake(name: str) -> None:
    with pytest.raises(ConfigError, match=r"Go on with .* there"):
        resolve(name)
