"""The pytest fixture `recorded`, in a pytest of its own."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from recorded_runs import Office, asks

from tenlines import Agent, Reply, RunStopped
from tenlines.core import events as ev
from tenlines.errors import RateLimited
from tenlines.journal.files import read_run
from tenlines.testing import Recorded, ReplayMismatch
from tenlines.testing.recordings import MissingRecording

pytest_plugins = ["pytester"]
PAGE = Path(__file__).parent.parent.parent / "docs" / "testing.md"

TESTS = """
import asyncio
import os
from pathlib import Path

import pytest
from tenlines import Agent, Reply, ToolCall, tool

TRAIL = Path("trail.txt")


def note(what):
    with TRAIL.open("a") as file:
        file.write(f"{what}\\n")


def model(messages):
    note("model")
    if messages[-1]["role"] == "tool":
        return f"It is {messages[-1]['content']}."
    return {"tool_calls": [{"id": "1", "name": "find", "arguments": {"order": 1042}}]}


@tool
def find(order: int) -> str:
    \"\"\"Find an order.\"\"\"
    note("tool")
    return "in Hamburg"


agent = Agent(model, [find], instructions=os.environ.get("INSTRUCTIONS", "Be brief."))


def test_order(recorded):
    assert "Hamburg" in recorded(agent, "Where is order 1042?").answer
    assert recorded(agent, "And where is it now?").answer == "It is in Hamburg."


class TestAsync:
    @pytest.mark.parametrize("city", ["a/b", "c"])
    def test_order(self, recorded, city):
        assert asyncio.run(recorded.arun(agent, f"Is it in {city}?")).answer == "It is in Hamburg."
"""


def trail(folder: Path) -> list[str]:
    file = folder / "trail.txt"
    words = file.read_text().split() if file.exists() else []
    file.unlink(missing_ok=True)
    return words


@pytest.fixture
def pytests(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.delenv("CI", raising=False)
    pytester.makepyfile(test_orders=TESTS)
    return pytester


@pytest.mark.slow
def test_a_run_is_recorded_once_and_replayed_from_then_on(
    pytests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytests.runpytest_subprocess("-q").assert_outcomes(passed=3)
    assert trail(pytests.path).count("model") == 8
    folder = pytests.path / "recordings" / "test_orders"
    names = sorted(file.name for file in folder.iterdir())
    assert names[1:] == ["TestAsync.test_order[c].jsonl", "test_order.2.jsonl", "test_order.jsonl"]
    assert re.fullmatch(r"TestAsync.test_order\[a-b\]-[0-9a-f]{8}.jsonl", names[0])

    monkeypatch.setenv("CI", "true")
    before = {file: file.read_bytes() for file in folder.iterdir()}
    pytests.runpytest_subprocess("-q").assert_outcomes(passed=3)
    assert trail(pytests.path) == []
    assert {file: file.read_bytes() for file in folder.iterdir()} == before

    monkeypatch.setenv("INSTRUCTIONS", "Be verbose.")
    failed = pytests.runpytest_inprocess("-q", "-k", "test_order and not TestAsync")
    failed.assert_outcomes(failed=1, deselected=2)
    failed.stdout.fnmatch_lines(
        [
            "E*ReplayMismatch: step 1 of run * is not as recorded: message 1 of the request (system)",
            "E*-Be brief.",
            "E*+Be verbose.",
            "E*if this is meant, record it anew: pytest --tenlines-record 'test_orders.py::test_order'",
        ]
    )
    assert "replaying.py" not in failed.stdout.str()
    assert "recordings.py" not in failed.stdout.str()

    pytests.runpytest_inprocess("-q", "--tenlines-record").assert_outcomes(passed=3)
    assert trail(pytests.path).count("tool") == 4
    pytests.runpytest_inprocess("-q").assert_outcomes(passed=3)
    assert trail(pytests.path) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["CI", "option"])
def test_a_missing_recording_fails_where_none_may_be_made_and_says_what_to_do(
    pytests: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    options = ["--tenlines-replay-only"]
    if way == "CI":
        monkeypatch.setenv("CI", "true")
        options = []
    failed = pytests.runpytest_inprocess("-q", "-k", "not TestAsync", *options)
    failed.assert_outcomes(failed=1, deselected=2)
    failed.stdout.fnmatch_lines(
        [
            "E*there is no recording recordings/test_orders/test_order.jsonl, and none is made here: "
            "run `pytest --tenlines-record 'test_orders.py::test_order'` where the model can be reached, and commit *"
        ]
    )
    assert trail(pytests.path) == []
    assert not (pytests.path / "recordings").exists()


@pytest.mark.slow
def test_the_options_are_explained_and_contradict_one_another(pytests: pytest.Pytester) -> None:
    both = pytests.runpytest_inprocess("--tenlines-record", "--tenlines-replay-only")
    both.stderr.fnmatch_lines(["*--tenlines-record and --tenlines-replay-only contradict one another*"])
    assert both.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
def test_the_test_on_the_page_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    (block,) = [
        one for one in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.S | re.M) if "(recorded)" in one
    ]
    pytester.makepyfile(test_orders=block)
    for _ in range(2):
        pytester.runpytest_inprocess("-q").assert_outcomes(passed=1)
    assert (pytester.path / "recordings" / "test_orders" / "test_order.jsonl").exists()


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    heavy = ("openai", "httpx", "rich", "typer", "sqlite3", "pydantic", "docstring_parser", "psycopg")
    probe = f"import sys, tenlines.testing.plugin; print([one for one in {heavy!r} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- what it keeps ------------------------------------------------------------------------------------


def fixture(folder: Path, **options: bool) -> Recorded:
    return Recorded(folder / "test_x.py", "test_x.py::test_y", **{"may_record": True, "records_anew": False, **options})


def test_a_recording_keeps_neither_the_machine_nor_tracebacks(tmp_path: Path) -> None:
    agent = Agent([asks(("fail", '{"why":"no"}')), "done"], Office(tmp_path).tools)
    live = fixture(tmp_path)(agent, "go")
    with (tmp_path / "recordings" / "test_x" / "test_y.jsonl").open("rb") as file:
        run = read_run(file)
    assert run.is_whole
    start, failed = run.events[0], next(event for event in run.events if isinstance(event, ev.CallFailed))
    assert isinstance(start, ev.RunStarted)
    assert (start.owner, failed.detail) == ("", "")
    assert "ValueError" in failed.text
    assert fixture(tmp_path)(agent, "go") == live


def test_a_run_that_stops_is_kept_only_where_the_test_wants_it(tmp_path: Path) -> None:
    agent = Agent([RateLimited("no", is_retryable=False)])
    with pytest.raises(RunStopped):
        fixture(tmp_path)(agent, "go")
    assert not (tmp_path / "recordings").exists()
    live = fixture(tmp_path)(agent, "go", raise_on_stop=False)
    assert fixture(tmp_path)(agent, "go", raise_on_stop=False) == live
    with pytest.raises(RunStopped):
        fixture(tmp_path)(agent, "go")


def test_histories_and_limits_are_given_as_to_an_agent(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
    agent = Agent([Reply("done")])
    for _ in range(2):
        result = fixture(tmp_path)(agent, "go", messages=iter(said))
        assert [type(one).__name__ for one in result.messages] == ["User", "Assistant", "User", "Assistant"]
    with pytest.raises(ReplayMismatch, match=r"message 1 of the request"):
        fixture(tmp_path)(agent, "go")


def test_nothing_is_recorded_where_nothing_may_be(tmp_path: Path) -> None:
    with pytest.raises(MissingRecording, match="there is no recording recordings/test_x/test_y"):
        asyncio.run(fixture(tmp_path, may_record=False).arun(Agent(["done"]), "go"))
