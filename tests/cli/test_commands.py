"""The commands without a terminal, with a model server on loopback."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenlines.core import codec
from tenlines.core.events import MessageQueued, RunEnded, RunStarted

Tenlines = Callable[..., Any]


def run_id_of(text: str) -> str:
    found = re.search(r"resume (\w{12})", text)
    assert found, text
    return found[1]


# --- run ----------------------------------------------------------------------------------------------


def test_the_answer_alone_goes_to_standard_output(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"})), server.says("It was shipped.")]
    done = tenlines("run", "Where is 7?", "--model", server.model, "--tools", "tools.py")
    assert (done.code, done.out, done.err) == (0, "It was shipped.\n", "")
    assert not any(request.get("stream") for request in server.requests)  # nobody watches


def test_instructions_and_task_reach_the_model(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("ok")]
    tenlines("run", "the task", "--model", server.model, "--instructions", "be brief")
    assert [one["content"] for one in server.requests[0]["messages"]] == ["be brief", "the task"]


def test_the_task_can_come_from_standard_input(
    tenlines: Tenlines, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [server.says("ok")]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("wo ist é?\n".encode())))
    assert tenlines("run", "-", "--model", server.model).code == 0
    assert server.requests[0]["messages"][0]["content"] == "wo ist é?"


def test_standard_input_that_is_no_text_is_a_mistake(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    done = tenlines("run", "-", "--model", "local")
    assert done.code == 2
    assert "UTF-8" in done.err


def test_the_model_can_come_from_the_environment(
    tenlines: Tenlines, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [server.says("ok")]
    monkeypatch.setenv("TENLINES_MODEL", server.model)
    assert tenlines("run", "x").out == "ok\n"


def test_without_a_model_a_server_on_this_machine_is_used(
    tenlines: Tenlines, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenlines.models import discover

    server.replies = [server.says("ok")]
    base_url = server.model.partition("#")[0]
    monkeypatch.setattr(discover, "find_local_server", lambda: discover.FoundServer("llama.cpp", base_url, "x"))
    assert tenlines("run", "x").out == "ok\n"


def test_what_was_found_is_said_and_local_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenlines.cli.making import choose_model
    from tenlines.models import discover

    told: list[str] = []
    monkeypatch.setattr(discover, "find_local_server", lambda: discover.FoundServer("ollama", "http://h/v1", "m"))
    assert choose_model(None, told.append) == "http://h/v1#m"
    monkeypatch.setattr(discover, "find_local_server", lambda: None)
    assert choose_model(None, told.append) == "local"
    assert "ollama" in told[0]
    assert "--model" in told[0]
    assert "local" in told[1]


def test_json_is_every_event_one_line_and_nothing_else(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.calls(("talk", {}), ("evil", {})), server.says("done")]
    done = tenlines("run", "x", "--model", server.model, "--tools", "tools.py", "--json")
    events = [codec.decode(line) for line in done.out.splitlines()]
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunEnded)
    assert [event.seq for event in events] == list(range(len(events)))
    assert done.code == 0


def test_what_a_tool_prints_is_not_in_the_answer(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.calls(("talk", {})), server.says("done")]
    done = tenlines("run", "x", "--model", server.model, "--tools", "tools.py")
    assert done.out == "done\n"
    assert "printed by the tool" in done.err


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--max-steps", "1"], "max_steps", "--max-steps 2"),
        (["--max-steps", "0"], "max_steps", "--max-steps 1"),
        (["--max-tool-calls", "0"], "tool_limit", "--max-tool-calls 1"),
        (["--max-tokens", "500"], "budget", "--max-tokens"),
        (["--max-dollars", "0.0001", "--price", "1000/1000"], "budget", "--max-dollars"),
        (["--max-dollars", "1"], "budget", "--price"),
    ],
)
def test_a_limit_ends_with_1_and_says_how_to_go_on(
    tenlines: Tenlines, server: Any, options: list[str], status: str, says: str
) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"}))] * 5
    done = tenlines("run", "x", "--model", server.model, "--tools", "tools.py", *options)
    assert (done.code, done.out) == (1, "")
    assert status in done.err
    assert says in done.err


def test_last_words_are_shown_and_are_no_answer(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"})), server.says("Probably shipped.")]
    done = tenlines("run", "x", "--model", server.model, "--tools", "tools.py", "--max-steps", "1", "--last-words")
    assert (done.code, done.out) == (1, "")
    assert "Probably shipped." in done.err
    assert "not an answer" in done.err


def test_a_server_that_refuses_ends_with_3(tenlines: Tenlines, server: Any) -> None:
    server.replies = [401]
    done = tenlines("run", "x", "--model", server.model)
    assert done.code == 3
    assert "check the key" in done.err
    assert "tenlines resume" in done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", ""], "the task is empty"),
        (["run", "  \n"], "the task is empty"),
        (["run"], "TASK"),
        (["run", "x", "--tools", "none.py"], "none.py: there is no such file"),
        (["run", "x", "--tools", "broken.py"], "broken.py, line 2"),
        (["run", "x", "--tools", "raises.py"], "raises.py could not be imported: RuntimeError: at import"),
        (["run", "x", "--tools", "leaves.py"], "leaves.py could not be imported: SystemExit: 3"),
        (["run", "x", "--tools", "empty.py"], "has no tools"),
        (["run", "x", "--model", ""], "the model's name is empty"),
        (["run", "x", "--model", "gpt-4o"], "Did you mean 'openai:gpt-4o'"),
        (["run", "x", "--model", "openai:gpt-4o"], "OPENAI_API_KEY"),
        (["run", "x", "--max-steps", "-1"], "--max-steps must be 0 or more"),
        (["run", "x", "--max-steps", "many"], "--max-steps must be a whole number"),
        (["run", "x", "--max-steps", "2.5"], "--max-steps must be a whole number"),
        (["run", "x", "--timeout", "0"], "--timeout must be more than 0"),
        (["run", "x", "--timeout", "nan"], "--timeout must be"),
        (["run", "x", "--max-dollars", "inf"], "--max-dollars must be"),
        (["run", "x", "--max-tokens", "0"], "--max-tokens must be more than 0"),
        (["run", "x", "--price", "cheap"], "--price must be IN/OUT"),
        (["run", "x", "--price", "1"], "--price must be IN/OUT"),
        (["run", "x", "--parallel", "0"], "--parallel"),
        (["run", "x", "--journal", "mysql://h/d"], "mysql"),
        (["runs", "--status", "done"], "there is no such status"),
        (["nonsense"], "nonsense"),
        (["run", "x", "--nonsense"], "--nonsense"),
        (["runs", "--journal", "none.db"], "there is no journal none.db"),
        (["resume", "x", "--max-steps", "-1"], "--max-steps must be 0 or more"),
    ],
)
def test_a_users_mistake_is_one_message_and_2(
    tenlines: Tenlines, words: list[str], says: str, home: Path, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "broken.py").write_text("x = 1\ndef (\n")
    (home / "raises.py").write_text("raise RuntimeError('at import')\n")
    (home / "leaves.py").write_text("import sys; sys.exit(3)\n")
    (home / "empty.py").write_text("X = 1\n")
    monkeypatch.setenv("TENLINES_MODEL", server.model)
    done = tenlines(*words)
    assert done.code == 2
    assert done.out == ""
    assert says in done.err
    assert "Traceback" not in done.err
    assert not (home / "none.db").exists()


def test_a_traceback_is_there_for_who_asks(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenlines.errors import ConfigError

    monkeypatch.setenv("TENLINES_DEBUG", "1")
    with pytest.raises(ConfigError):
        tenlines("run", "")


def test_a_journal_that_cannot_be_written_ends_with_4(tenlines: Tenlines, server: Any, home: Path) -> None:
    (home / "folder").mkdir()
    done = tenlines("run", "x", "--model", server.model, "--journal", "folder")
    assert done.code == 4
    assert "folder" in done.err
    (home / "text.db").write_text("no database, but long enough to look like one " * 50)
    assert tenlines("runs", "--journal", "text.db").code == 4


def test_a_bug_is_said_to_be_one_and_names_the_run(
    tenlines: Tenlines, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tenlines.drivers.recorder import Recorder

    def broken(self: Any, effect: Any) -> None:
        raise RuntimeError("\x1b[2J should not be")

    server.replies = [server.says("ok")]
    monkeypatch.setattr(Recorder, "end", broken)
    done = tenlines("run", "x", "--model", server.model)
    assert done.code == 70
    assert "bug in tenlines: RuntimeError: \\x1b[2J should not be" in done.err
    assert re.search(r"journal of run \w{12}", done.err)
    assert "Traceback" not in done.err


def test_none_takes_a_limit_away(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("ok")]
    done = tenlines("run", "x", "--model", server.model, "--max-steps", "none", "--max-tokens", "1_000_000", "--json")
    start = codec.decode(done.out.splitlines()[0])
    assert isinstance(start, RunStarted)
    assert start.settings.limits.steps is None
    assert start.settings.limits.tokens == 1_000_000


# --- resume -------------------------------------------------------------------------------------------


def test_a_stopped_run_goes_on_with_its_own_model_and_tools(tenlines: Tenlines, server: Any, home: Path) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"}))]
    stopped = tenlines("run", "x", "--model", server.model, "--tools", "tools.py", "--max-steps", "1")
    server.replies = [server.calls(("get_order", {"order_id": "8"})), server.says("both are shipped")]
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    done = tenlines("resume", run_id_of(stopped.err), "--max-steps", "3")
    assert (done.code, done.out) == (0, "both are shipped\n")
    assert len(server.requests) == 3


def test_resuming_without_raising_the_cap_stops_again_and_says_how(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"}))]
    tenlines("run", "x", "--model", server.model, "--tools", "tools.py", "--max-steps", "1")
    done = tenlines("resume", "last")
    assert done.code == 1
    assert "--max-steps 2" in done.err
    assert len(server.requests) == 1


def test_other_limits_stay_as_they_were(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"}))] * 3
    options = ["--tools", "tools.py", "--max-steps", "1", "--max-tool-calls", "2"]
    tenlines("run", "x", "--model", server.model, *options)
    done = tenlines("resume", "last", "--max-steps", "9")
    assert "tool_limit" in done.err


def test_something_can_be_said_before_it_goes_on(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"}))]
    tenlines("run", "x", "--model", server.model, "--tools", "tools.py", "--max-steps", "1")
    server.replies = [server.says("fine")]
    done = tenlines("resume", "last", "--max-steps", "5", "--say", "use the archive", "--json")
    assert any(isinstance(codec.decode(line), MessageQueued) for line in done.out.splitlines())
    assert server.requests[-1]["messages"][-1]["content"] == "use the archive"


def test_an_answered_run_prints_its_answer_and_says_there_was_nothing_to_do(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("42")]
    tenlines("run", "x", "--model", server.model)
    done = tenlines("resume", "last")
    assert (done.code, done.out) == (0, "42\n")
    assert "nothing to do" in done.err
    as_json = tenlines("resume", "last", "--json")
    assert isinstance(codec.decode(as_json.out.splitlines()[-1]), RunEnded)
    assert tenlines("resume", "last", "--say", "more").code == 2


def test_tools_whose_file_is_gone_are_asked_for(tenlines: Tenlines, server: Any, home: Path) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"}))]
    tenlines("run", "x", "--model", server.model, "--tools", "tools.py", "--max-steps", "1")
    (home / "tools.py").rename(home / "moved.py")
    done = tenlines("resume", "last", "--max-steps", "5")
    assert done.code == 2
    assert "--tools" in done.err
    server.replies = [server.says("ok")]
    assert tenlines("resume", "last", "--max-steps", "5", "--tools", "moved.py").out == "ok\n"


def test_a_run_of_a_program_says_what_the_command_needs(tenlines: Tenlines) -> None:
    from tenlines import Agent, Limits

    def look() -> str:
        return "x"

    asks = [{"tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}]}]
    Agent(asks, [look], limits=Limits(steps=1)).run_sync("x", raise_on_stop=False)
    done = tenlines("resume", "last", "--max-steps", "5")
    assert done.code == 2
    assert "--model" in done.err
    done = tenlines("resume", "last", "--max-steps", "5", "--model", "http://127.0.0.1:1/v1#x")
    assert done.code == 2
    assert "which file has look" in done.err


# --- finding a run ------------------------------------------------------------------------------------


def test_a_beginning_or_last_names_a_run(tenlines: Tenlines, server: Any) -> None:
    for answer in ("one", "two"):
        server.replies = [server.says(answer)]
        tenlines("run", answer, "--model", server.model)
    ids = [json.loads(line)["run_id"] for line in tenlines("runs", "--json").out.splitlines()]
    assert tenlines("resume", "last").out == "two\n"
    assert tenlines("resume", ids[1]).out == "one\n"
    short = next(ids[1][:n] for n in range(1, 13) if not ids[0].startswith(ids[1][:n]))
    assert tenlines("resume", short).out == "one\n"


def test_an_unknown_run_shows_the_newest_three(tenlines: Tenlines, server: Any) -> None:
    for number in range(4):
        server.replies = [server.says("ok")]
        tenlines("run", f"task {number}", "--model", server.model)
    done = tenlines("show", "nope")
    assert done.code == 2
    assert all(f"task {number}" in done.err for number in (3, 2, 1))
    assert "task 0" not in done.err


def test_an_ambiguous_beginning_lists_what_it_could_be(home: Path) -> None:
    from tenlines.cli.options import find_run
    from tenlines.errors import RunNotFound
    from tenlines.journal.memory import MemoryJournal

    journal = MemoryJournal()
    for run_id in ("abc1", "abc2", "xyz"):
        journal.append(run_id, RunStarted(seq=0, at=1.0, run_id=run_id, agent="a", model="m", messages=()))
    with pytest.raises(RunNotFound, match=r"(?s)2 runs begin with 'abc'.*abc2.*abc1"):
        find_run(journal, "abc")
    assert find_run(journal, "x") == "xyz"
    assert find_run(journal, "abc1") == "abc1"
    with pytest.raises(RunNotFound):
        find_run(journal, "")


# --- runs and show ------------------------------------------------------------------------------------


def test_runs_lists_the_newest_first(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("ok"), server.calls(("get_order", {"order_id": "7"}))]
    tenlines("run", "the first", "--model", server.model)
    tenlines("run", "the second \x1b[2J\u202e", "--model", server.model, "--tools", "tools.py", "--max-steps", "1")
    head, second, first = tenlines("runs").out.splitlines()
    assert head.split() == ["run", "when", "status", "steps", "task"]
    assert "max_steps" in second
    assert "the second \\x1b[2J\\u202e" in second
    assert "answered" in first
    assert first.endswith("the first")
    only = tenlines("runs", "--status", "answered").out.splitlines()
    assert len(only) == 2
    assert len(tenlines("runs", "--limit", "1").out.splitlines()) == 2
    assert "no run has the status stuck" in tenlines("runs", "--status", "stuck").err


def test_an_empty_journal_says_how_to_start(tenlines: Tenlines, home: Path) -> None:
    done = tenlines("runs")
    assert (done.code, done.out) == (0, "")
    assert "tenlines run" in done.err
    assert tenlines("show", "last").code == 2
    assert not (home / "journal.db").exists()
    from tenlines.journal import open_journal

    open_journal(home / "journal.db")
    assert "tenlines run" in tenlines("runs").err
    assert "tenlines run" in tenlines("show", "last").err


@pytest.fixture
def shown(tenlines: Tenlines, server: Any) -> Callable[..., str]:
    server.replies = [
        server.calls(("get_order", {"order_id": "7"}), ("fail", {}), text="First I look."),
        server.calls(("evil", {}), ("nosuch", {"a": 1})),
        server.says("All is [bold]well[/bold]. \x1b[2J"),
    ]
    tenlines("run", "Where is 7?", "--model", server.model, "--tools", "tools.py", "--instructions", "Be brief.")
    return lambda *options: tenlines("show", "last", *options).out


def test_show_tells_the_whole_run(shown: Callable[..., str]) -> None:
    text = shown()
    for piece in (
        "· answered ·", "task    Where is 7?", "told    Be brief.", "limits  20 steps",
        "step 1 · ", "1,000 tokens in (40% cached), 20 out", "First I look.", '✓ get_order(order_id="7") · ',
        "order 7: shipped as TRK77", "✗ tool_error fail()", "ValueError: no [red]such[/red] thing",
        "✗ unknown_tool nosuch(a=1)", "All is [bold]well[/bold]. \\x1b[2J",
        "✓ answered · 3 steps · 3 calls · 3,000 tokens in (40% cached), 60 out",
    ):  # fmt: skip
        assert piece in text, piece
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "Traceback" not in text


def test_show_full_unfolds_and_step_picks_one(shown: Callable[..., str], tenlines: Tenlines) -> None:
    assert "Traceback" in shown("--full")
    second = shown("--step", "2")
    assert "evil()" in second
    assert "get_order(" not in second
    done = tenlines("show", "last", "--step", "9")
    assert done.code == 2
    assert "has 3 steps" in done.err


def test_show_json_is_the_log(shown: Callable[..., str]) -> None:
    events = [codec.decode(line) for line in shown("--json").splitlines()]
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunEnded)


def test_show_folds_long_results(tenlines: Tenlines, server: Any, home: Path) -> None:
    (home / "long.py").write_text(
        "def rows() -> str:\n    'Rows.'\n    return '\\n'.join(f'row {n}' for n in range(90))\n"
    )
    server.replies = [server.calls(("rows", {})), server.says("ok")]
    tenlines("run", "x", "--model", server.model, "--tools", "long.py")
    folded = tenlines("show", "last").out
    assert "row 5" in folded
    assert "row 6" not in folded
    assert "84 more lines (--full)" in folded
    assert "row 89" in tenlines("show", "last", "--full").out


def test_show_of_a_stopped_and_resumed_run_has_both_halves(tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"}))]
    tenlines("run", "x", "--model", server.model, "--tools", "tools.py", "--max-steps", "1")
    assert "tenlines resume" in tenlines("show", "last").out
    server.replies = [server.says("done")]
    tenlines("resume", "last", "--max-steps", "2", "--say", "go")
    text = tenlines("show", "last").out
    assert (
        text.index("step 1") < text.index("resumed") < text.index("limits from now on: 2 steps") < text.index("step 2")
    )
    assert "you: go" in text


# --- the front --------------------------------------------------------------------------------------


def test_tenlines_alone_prints_help_and_version_the_version(tenlines: Tenlines) -> None:
    import tenlines as package

    done = tenlines()
    assert done.code == 0
    assert "Exit codes" in done.out
    assert tenlines("--version").out == f"tenlines {package.__version__}\n"


@pytest.mark.parametrize("command", ["run", "resume", "fork", "pending", "approve", "deny", "undo", "runs", "show"])
def test_every_command_teaches_with_examples(tenlines: Tenlines, command: str) -> None:
    text = tenlines(command, "--help").out
    assert "Examples:" in text
    assert f"tenlines {command}" in text
