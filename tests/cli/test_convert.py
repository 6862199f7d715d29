"""`tenlines convert`: from every form into every other, and what is said on the way."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spoiled

from tenlines.wire.formats import FORMATS

Tenlines = Callable[..., Any]
SOURCES = {**spoiled.BODIES, **spoiled.DUMPS}


def write(name: str, value: Any) -> str:
    Path(name).write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return name


@pytest.mark.parametrize("target", [*FORMATS, "vllm", "mistral:v13", "anthropic:claude-opus-5", "openai:gpt-5"])
@pytest.mark.parametrize("name", SOURCES)
def test_a_broken_transcript_becomes_a_request_that_its_target_takes(
    name: str, target: str, tenlines: Tenlines
) -> None:
    done = tenlines("convert", write("t.json", SOURCES[name]), "--to", target, "-o", "out.json")
    assert (done.code, done.out) == (0, "")
    assert f"t.json: taken as {name}" in done.err
    assert "none was recorded" in done.err or "had no result" in done.err
    form = FORMATS.get(target.partition(":")[0], FORMATS["openai_chat"]).name
    assert tenlines("check", "out.json", "--for", target, "--from", form, "-q").code == 0
    text = Path("out.json").read_text()
    assert all(word in text for word in ('"one"', '"two"', '"look"'))
    assert ("claude-opus-5" in text) == (target == "anthropic:claude-opus-5")


def test_messages_one_a_line_become_one_request(tenlines: Tenlines) -> None:
    done = tenlines("convert", write("t.jsonl", spoiled.lines(spoiled.CHAT["messages"])), "--to", "anthropic", "-q")
    assert len(json.loads(done.out)["messages"]) == 3
    assert done.err == ""


def test_several_transcripts_become_one_request_a_line(tenlines: Tenlines) -> None:
    done = tenlines("convert", write("t.jsonl", spoiled.lines([spoiled.CHAT, spoiled.ANTHROPIC])), "--to", "gemini")
    assert [len(json.loads(line)["contents"]) for line in done.out.splitlines()] == [3, 3]
    assert [line.split(": ")[0] for line in done.err.splitlines() if "was recorded" in line] == ["t.jsonl", "t.jsonl:2"]


def test_standard_input_becomes_standard_output(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(spoiled.OTEL).encode())))
    done = tenlines("convert", "-", "--to", "openai", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert [one["role"] for one in json.loads(done.out)["messages"]] == ["user", "assistant", "tool", "user"]


def test_what_a_user_misses_is_said_and_what_nobody_misses_is_not(tenlines: Tenlines) -> None:
    body = {
        "model": "gpt-4o",
        "stream": True,
        "temperature": 0.5,
        "seed": 7,
        "messages": [{"role": "user", "content": "hi"}],
    }
    done = tenlines("convert", write("t.json", body), "--to", "anthropic")
    said = [line.removeprefix("t.json: ") for line in done.err.splitlines()]
    assert said[1:] == ["not part of a transcript, and left out: temperature, seed"]
    assert "gpt-4o" not in done.out


def test_the_same_loss_in_many_places_is_said_once(tenlines: Tenlines) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "EqQBCkYIBxgC"}
    pair = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "y"}]},
    ]
    body = {"max_tokens": 9, "messages": pair * 5, "system": "s"}
    done = tenlines("convert", write("t.json", body), "--to", "openai")
    losses = [line for line in done.err.splitlines() if "reasoning" in line]
    assert len(losses) == 1
    assert "and 4 more" in losses[0]
    assert "hm" not in done.out


def test_damage_is_said_even_when_quiet(tenlines: Tenlines) -> None:
    done = tenlines("convert", write("t.jsonl", spoiled.CUT), "--to", "anthropic", "--quiet")
    assert done.code == 0
    assert "line 2: the last record is cut off" in done.err
    assert len(json.loads(done.out)["messages"]) == 1


def test_nothing_is_overwritten_and_nothing_is_left_of_a_failure(tenlines: Tenlines, home: Path) -> None:
    file = write("t.json", spoiled.CHAT)
    assert tenlines("convert", file, "--to", "gemini", "-o", file).code == 2
    for name, data in {"empty": b"", "cut": b'{"messages": [', "other": b'{"a": 1}'}.items():
        done = tenlines("convert", write(name, data), "--to", "gemini", "-o", "out.json")
        assert (done.code, done.out) == (2, "")
    assert not Path("out.json").exists()
    assert not list(home.glob(".*.part"))
    assert json.loads(Path(file).read_text()) == spoiled.CHAT


def test_targets_that_there_are_not(tenlines: Tenlines) -> None:
    done = tenlines("convert", write("t.json", spoiled.CHAT), "--to", "antropic")
    assert done.code == 2
    assert "Did you mean anthropic?" in done.err


def test_what_is_said_is_harmless_on_a_terminal(tenlines: Tenlines) -> None:
    call = {**spoiled.CALL, "function": {"name": "look", "arguments": "\x1b[2J\u202e"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    done = tenlines("convert", write("t.json", messages), "--to", "anthropic")
    assert done.code == 0
    assert not {"\x1b", "\u202e"} & set(done.err)
