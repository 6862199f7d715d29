"""`tenlines run --output`: the answer as JSON on standard output, and what is said of types that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting_for import until

Tenlines = Callable[..., Any]
TYPES = """
from dataclasses import dataclass
from pydantic import BaseModel

@dataclass
class Order:
    id: str
    total: float

numbers = list[int]
"""
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture(autouse=True)
def files(home: Path) -> None:
    (home / "types_.py").write_text(TYPES)
    (home / "schema.json").write_text(json.dumps(SCHEMA))
    (home / "list.json").write_text("[1]")
    (home / "bad.json").write_text("{")


@pytest.mark.parametrize(
    ("output", "arguments", "out"),
    [
        ("types_.py:Order", {"total": 3, "id": "7"}, '{"id":"7","total":3}\n'),
        ("types_.py:numbers", {"answer": [1, 2]}, "[1,2]\n"),
        ("schema.json", {"n": 1}, '{"n":1}\n'),
    ],
)
def test_the_answer_is_json_on_standard_output(
    tenlines: Tenlines, server: Any, output: str, arguments: dict[str, Any], out: str
) -> None:
    server.replies = [server.says("Let me think."), server.calls(("finish", arguments))]
    done = tenlines("run", "x", "--model", server.model, "--output", output)
    assert (done.code, done.out) == (0, out)
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["finish"]
    assert server.requests[1]["tool_choice"]["function"]["name"] == "finish"


def test_words_for_ever_are_no_answer(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("three")] * 3
    done = tenlines("run", "x", "--model", server.model, "--output", "schema.json")
    assert done.code not in (0, 2)
    assert done.out == ""
    assert "words instead of calling finish" in done.err
    assert "three" in done.err


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("nope.json", "nope.json: it cannot be read: No such file"),
        ("bad.json", "bad.json: it is not JSON"),
        ("list.json", "a JSON Schema is an object"),
        ("nope.py:Order", "nope.py: there is no such file"),
        ("types_.py", "say which type of the file"),
        ("types_.py:", "no name behind the colon; its types: Order"),
        ("types_.py:Ordre", "types_.py has no Ordre; its types: Order"),
        ("types_.py:dataclass", "output=: dataclass is a function"),
    ],
)
def test_what_is_no_type_is_said_so(tenlines: Tenlines, server: Any, output: str, said: str) -> None:
    done = tenlines("run", "x", "--model", server.model, "--output", output)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert server.requests == []


def test_the_run_can_be_replayed_and_forked_by_its_id(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("Hm."), server.calls(("finish", {"answer": [1]}))]
    assert tenlines("run", "x", "--model", server.model, "--output", "types_.py:numbers").code == 0
    assert "goes the same way" in tenlines("replay", "last").out
    server.replies = [server.calls(("finish", {"answer": [2]}))]
    assert tenlines("fork", "last", "--at", "2").out == "[2]\n"


def test_a_plan_has_an_answer_in_words(tenlines: Tenlines, server: Any) -> None:
    done = tenlines("run", "x", "--model", server.model, "--output", "schema.json", "--plan-first")
    assert done.code == 2
    assert "leave out --output" in done.err


@pytest.mark.slow
def test_a_run_that_was_killed_is_resumed_to_its_answer_by_its_id_alone(
    process: Callable[..., Any], server: Any, home: Path
) -> None:
    server.replies = [server.calls(("wait", {"for_file": str(home / "go")})), server.calls(("finish", {"n": 1}))]
    words = ["run", "wait", "--model", server.model, "--tools", "tools.py", "--output", "schema.json"]
    command = process(*words)
    until(lambda: (home / "go.started").exists())
    command.popen.kill()
    command.end()
    done = process("resume", "last").end()
    assert (done.code, done.out) == (0, '{"n":1}\n')
    assert "in doubt" in done.err
