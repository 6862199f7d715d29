"""`tenlines plan`, `run --plan`, `run --plan-first`, and what comes after."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOOLS = '''
import pathlib
from tenlines import tool

@tool(read_only=True)
def look(what: str) -> str:
    """Look at something."""
    with open("done.txt", "a") as file:
        file.write(f"look {what}\\\\n")
    return f"seen {what}"

def _back(what: str) -> None:
    with open("done.txt", "a") as file:
        file.write(f"back {what}\\\\n")

@tool(undo=_back)
def write(what: str) -> str:
    """Write something down."""
    with open("done.txt", "a") as file:
        file.write(f"write {what}\\\\n")
    return f"written {what}"
'''.replace("\\\\n", "\\n")
STEPS = [
    {"id": "find", "do": "Look at the order.", "needs": [], "tools": ["look"]},
    {"id": "note", "do": "Write it down.", "needs": ["find"], "tools": ["write"]},
]
Tenlines = Callable[..., Any]


@pytest.fixture(autouse=True)
def shop(home: Path) -> None:
    (home / "shop.py").write_text(TOOLS)


def done_in(home: Path) -> list[str]:
    file = home / "done.txt"
    return file.read_text().splitlines() if file.exists() else []


def planned(server: Any, *steps: dict[str, Any]) -> None:
    """The model is going to make this plan."""
    server.replies.append(server.calls(("finish", {"steps": list(steps)})))


def followed(server: Any, *words: str) -> None:
    """The model is going to do steps with one call each, and to answer."""
    for word in words:
        server.replies += [server.calls((word, {"what": "it"})), server.says(f"done: {word}")]
    server.replies.append(server.says("all is done"))


def test_a_plan_is_written_shown_edited_and_followed_as_edited(tenlines: Tenlines, server: Any, home: Path) -> None:
    planned(server, *STEPS)
    done = tenlines("plan", "Note the order", "--tools", "shop.py", "--model", server.model, "-o", "plan.json")
    assert (done.code, done.err, done_in(home)) == (0, "", [])
    for piece in ("plan: Note the order", "1  find  Look at the order.", "(may use: look)", "2  note", "needs: find"):
        assert piece in done.out
    assert "may act, so it runs alone" in done.out
    assert [one["function"]["name"] for one in server.requests[0]["tools"]] == ["finish"]
    made = json.loads((home / "plan.json").read_text())
    assert made == {"task": "Note the order", "steps": STEPS}
    done = tenlines("plan", "Note the order", "--model", server.model, "-o", "plan.json")
    assert (done.code, done.err, len(server.requests)) == (
        2,
        "tenlines: plan.json is there already: name another file, or say --replace\n",
        1,
    )

    made["steps"] = made["steps"][:1]  # a person takes the second step away
    (home / "plan.json").write_text(json.dumps(made))
    followed(server, "look")
    done = tenlines("run", "--plan", "plan.json", "--tools", "shop.py", "--model", server.model)
    assert (done.code, done.out, done_in(home)) == (0, "all is done\n", ["look it"])
    assert [one["function"]["name"] for one in server.requests[1]["tools"]] == ["look"]


def test_a_plan_goes_to_standard_output_as_json(tenlines: Tenlines, server: Any) -> None:
    planned(server, *STEPS)
    done = tenlines("plan", "Note the order", "--tools", "shop.py", "--model", server.model)
    assert (done.code, json.loads(done.out)["steps"], done.err) == (0, STEPS, "")


def test_a_model_that_makes_no_plan_is_told_as_such(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("Certainly!")] * 4
    done = tenlines("plan", "Note the order", "--model", server.model, "-o", "plan.json")
    assert done.code == 1
    assert "stuck" in done.err
    assert not Path("plan.json").exists()


def test_a_plan_that_cannot_be_followed_starts_nothing(tenlines: Tenlines, server: Any, home: Path) -> None:
    (home / "plan.json").write_text(
        json.dumps({"task": "t", "steps": [{**STEPS[0], "tools": ["lok"], "needs": ["x"]}]})
    )
    done = tenlines("run", "--plan", "plan.json", "--tools", "shop.py", "--model", server.model)
    assert (done.code, server.requests) == (2, [])
    assert "plan.json cannot be followed:" in done.err
    assert "step find needs 'x', which is no step" in done.err
    assert "step find may use 'lok', which is no tool (did you mean look?); tools: look, write" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("Do it", "--plan", "plan.json"), "the task stands in the plan plan.json"),
        ((), "TASK is missing: say what"),
        (("Do it", "--plan-first", "--session", "s"), "a plan is no part of a conversation"),
        (("--plan", "none.json"), "none.json cannot be read: No such file"),
    ],
)
def test_what_does_not_go_together_is_said(words: tuple[str, ...], said: str, tenlines: Tenlines, server: Any) -> None:
    done = tenlines("run", *words, "--model", server.model)
    assert done.code == 2
    assert said in done.err


def test_a_plan_waits_and_is_changed_by_approve(tenlines: Tenlines, server: Any, home: Path) -> None:
    planned(server, *STEPS)
    done = tenlines("run", "Note the order", "--plan-first", "--tools", "shop.py", "--model", server.model)
    assert (done.code, done_in(home)) == (5, [])
    assert "2.1  use_plan  may it run?" in done.err
    assert '"do": "Look at the order."' in done.err

    broken = json.dumps({"task": "t", "steps": [{"id": "a", "do": "x", "tools": ["rm"]}]})
    done = tenlines("approve", "last", "--edit", broken)
    assert (done.code, "step a may use 'rm', which is no tool" in done.err) == (2, True)

    (home / "changed.json").write_text(json.dumps({"task": "Look only", "steps": STEPS[:1]}))
    followed(server, "look")
    waiting = json.loads(tenlines("pending", "--json").out.splitlines()[0])["run_id"]
    done = tenlines("approve", waiting, "--edit", "@changed.json", "--resume")
    assert (done.code, done.out, done_in(home)) == (0, "all is done\n", ["look it"])
    shown = tenlines("show", waiting).out
    assert "use_plan" in shown
    assert "Look only" in shown


def test_a_run_that_was_stopped_by_its_limit_goes_on_by_its_id(tenlines: Tenlines, server: Any, home: Path) -> None:
    (home / "plan.json").write_text(json.dumps({"task": "t", "steps": STEPS}))
    followed(server, "look", "write")
    words = ("run", "--plan", "plan.json", "--tools", "shop.py", "--model", server.model, "--max-tool-calls", "4")
    done = tenlines(*words)
    assert done.code != 0
    assert done_in(home) == ["look it"]
    run = tenlines("runs", "--json").out
    (main,) = {one["run_id"] for one in map(json.loads, run.splitlines()) if one["agent"] == "plan"}
    server.replies = [server.calls(("write", {"what": "it"})), server.says("done: write"), server.says("all is done")]
    done = tenlines("resume", main, "--max-tool-calls", "none")
    assert (done.code, done.out) == (0, "all is done\n")
    assert done_in(home) == ["look it", "write it"]

    assert "back it" not in done_in(home)
    assert tenlines("undo", main, "--yes").code == 0
    assert done_in(home)[-1] == "back it"


def test_a_call_inside_of_a_step_waits_is_allowed_there_and_the_whole_goes_on(
    tenlines: Tenlines, server: Any, home: Path
) -> None:
    (home / "plan.json").write_text(json.dumps({"task": "t", "steps": STEPS[1:]}).replace('["find"]', "[]"))
    server.replies = [server.calls(("write", {"what": "it"}))]
    words = ("run", "--plan", "plan.json", "--tools", "shop.py", "--model", server.model, "--ask", "write")
    done = tenlines(*words)
    assert (done.code, done_in(home)) == (5, [])
    assert "write  may it run?" in tenlines("pending").out
    listed = [json.loads(line) for line in tenlines("pending", "--json").out.splitlines()]
    waiting = next(one for one in listed if one.get("name") == "write" and "arguments" in one)
    server.replies = [server.says("done: write"), server.says("all is done")]
    done = tenlines("approve", waiting["run_id"], "--resume")
    assert (done.code, done.out, done_in(home)) == (0, "all is done\n", ["write it"])


def test_such_a_run_is_not_forked(tenlines: Tenlines, server: Any, home: Path) -> None:
    (home / "plan.json").write_text(json.dumps({"task": "t", "steps": STEPS[:1]}))
    followed(server, "look")
    assert tenlines("run", "--plan", "plan.json", "--tools", "shop.py", "--model", server.model).code == 0
    (main,) = {
        one["run_id"] for one in map(json.loads, tenlines("runs", "--json").out.splitlines()) if one["agent"] == "plan"
    }
    done = tenlines("fork", main, "--at", "2", "--model", server.model)
    assert (done.code, "the run follows a plan" in done.err) == (2, True)
