"""Looking for model servers on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from tenlines.models import discover

CLOSED = 1
"""A port where nobody listens."""


@pytest.fixture(autouse=True)
def _no_ollama(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{CLOSED}")


def test_nobody_is_there() -> None:
    assert discover.find_local_server(5, CLOSED) is None


def test_ollama_where_its_variable_says(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", chat.root)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    chat.say({"models": [{"name": "llama3.2:1b"}, {"name": "other"}]})
    assert discover.find_local_server(5) == ("ollama", chat.url, "llama3.2:1b")
    assert chat.paths == ["/api/tags"]


def test_llama_cpp_where_ollama_is_not(chat: Any) -> None:
    chat.say({"data": [{"id": "qwen"}]})
    found = discover.find_local_server(5, int(chat.root.rsplit(":", 1)[1]))
    assert found == ("llama.cpp", chat.url, "qwen")


@pytest.mark.parametrize("answer", [{"models": []}, {"models": None}, [], {"models": [3, {"name": 1}]}, "x"])
def test_an_ollama_without_models_is_none(chat: Any, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    monkeypatch.setenv("OLLAMA_HOST", chat.root)
    chat.say(answer)
    assert discover.find_local_server(5, CLOSED) is None


def test_another_machine_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://192.0.2.1:11434")
    assert discover.find_local_server(0.01, CLOSED) is None
