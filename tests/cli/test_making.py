"""Weights are fetched before the run's clock starts, and it can be watched."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tenlines.cli import making
from tenlines.models import resolve, weights


class Local:
    """Stands for the local model."""

    name = "local"

    def session(self) -> Any:
        raise AssertionError("nothing is asked here")


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was fetched; nothing is in the cache, and fetching takes no time."""
    names: list[str] = []

    def fetch(known: weights.Weights, progress: Callable[[int, int, str], None] | None = None) -> Path:
        names.append(known.name)
        if progress is not None:
            for done in (0, known.size_bytes // 2, known.size_bytes):
                progress(done, known.size_bytes, "fetching [part]")
        return Path("weights")

    monkeypatch.setattr(weights, "fetch", fetch)
    monkeypatch.setattr(weights, "is_cached", lambda known: False)
    monkeypatch.setattr(resolve, "resolve", lambda name: Local())
    return names


def test_a_terminal_sees_how_far_it_is(fetched: list[str]) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, markup=False, highlight=False)
    making.make_model("local", console)
    assert len(fetched) == 1
    assert "1.1 GB, once" in out.getvalue()
    assert "fetching [part]" in out.getvalue()


def test_without_a_terminal_it_is_fetched_in_silence(fetched: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    making.make_model("local", None)
    assert len(fetched) == 1
    assert capsys.readouterr() == ("", "")


def test_what_is_there_is_not_fetched(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "is_cached", lambda known: True)
    making.make_model("local", None)
    assert fetched == []


def test_an_interrupt_says_that_what_was_fetched_is_kept(fetched: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(known: Any, progress: Any) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(weights, "fetch", fetch)
    out = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        making.make_model("local", Console(file=out, width=100))
    assert "is kept" in out.getvalue()


def test_tools_are_written_as_text_once() -> None:
    assert making.with_text_tools("local") == "text+local"
    assert making.with_text_tools("text-json+local") == "text-json+local"


def test_the_weights_of_a_local_model_are_fetched_also_where_its_tools_are_text(
    fetched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Local, "name", "text+local")
    making.make_model("text+local", None)
    assert fetched == [weights.KNOWN["local"].name]
