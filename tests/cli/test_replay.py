"""Recorded runs, with the tools of today."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenlines import Agent, Reply, ToolCall
from tenlines.tools.load import load_tools

FILE = '''
from pathlib import Path
from tenlines import tool

@tool
def post(text: str) -> str:
    """Post a text."""
    with Path("posted").open("a") as file:
        file.write(text)
    return "posted"
'''


@pytest.fixture
def run_id(home: Path) -> str:
    (home / "posts.py").write_text(FILE)
    replies = [Reply("", (ToolCall("a", "post", '{"text": "hello"}'),)), Reply("It is posted.")]
    tools = load_tools(home / "posts.py")
    agent = Agent(replies, tools, instructions="Post texts.", journal=os.environ["TENLINES_JOURNAL"])
    return agent.run_sync("Post hello.").run_id


def test_a_run_goes_the_same_way_and_nothing_runs(tenlines: Callable[..., Any], run_id: str, home: Path) -> None:
    done = tenlines("replay", "last")
    assert (done.code, done.out) == (0, f"run {run_id} goes the same way: 2 steps and 1 call\n")
    assert (home / "posted").read_text() == "hello"


def test_a_tool_that_has_changed_is_named_with_the_step(tenlines: Callable[..., Any], run_id: str, home: Path) -> None:
    (home / "posts.py").write_text(FILE.replace("Post a text.", "Send a text now."))
    done = tenlines("replay", run_id)
    assert done.code == 1
    assert done.out.startswith(f"step 1 of run {run_id} is not as recorded: the description of tool post\n")
    assert "-Post a text.\n+Send a text now." in done.out
    report = json.loads(tenlines("replay", run_id, "--json").out)
    assert (report["same"], report["step"], report["recorded"]) == (False, 1, "Post a text.")


def test_other_instructions_are_another_request(tenlines: Callable[..., Any], run_id: str) -> None:
    done = tenlines("replay", run_id, "--instructions", "Post nothing.")
    assert done.code == 1
    assert "-Post texts.\n+Post nothing." in done.out
    assert tenlines("replay", run_id, "--instructions", "Post texts.", "--json").code == 0


def test_several_runs_are_a_line_each(tenlines: Callable[..., Any], run_id: str) -> None:
    done = tenlines("replay", run_id, "last", "--json")
    assert [json.loads(line)["same"] for line in done.out.splitlines()] == [True]


def test_what_cannot_be_replayed_is_said(
    tenlines: Callable[..., Any], process: Callable[..., Any], server: Any, run_id: str, home: Path
) -> None:
    (home / "posts.py").unlink()
    gone = tenlines("replay", run_id)
    assert gone.code == 2
    assert "which is gone; name their file with --tools" in gone.err
    assert tenlines("replay", "zz").code == 2


@pytest.mark.slow
def test_a_run_that_has_not_ended_is_refused(
    server: Any, process: Callable[..., Any], tenlines: Callable[..., Any]
) -> None:
    import threading

    server.replies = [threading.Event()]
    worker = process("run", "x", "--model", server.model)
    server.asked.wait(20)
    done = tenlines("replay", "last")
    assert done.code == 2
    assert "has not ended: resume it to its end" in done.err
    worker.popen.kill()
