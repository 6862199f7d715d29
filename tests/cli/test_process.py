"""The command in a process of its own: signals, terminals, pipes."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting_for import plain, until

from tenlines.core import codec
from tenlines.core.events import CallAbandoned, RunEnded

Start = Callable[..., Any]
pytestmark = pytest.mark.slow


@pytest.fixture
def waiting(server: Any, process: Start, home: Path) -> Callable[..., Any]:
    """A run on a terminal, in the middle of a tool that waits for a file."""

    def start(*options: str, **how: Any) -> Any:
        server.replies = [server.calls(("wait", {"for_file": str(home / "go")})), server.says("all done")]
        words = ["run", "wait for it", "--model", server.model, "--tools", "tools.py", *options]
        command = process(*words, **{"terminal": True, **how})
        if command.has_terminal:
            command.wait_for("wait(for_file=")
        until(lambda: (home / "go.started").exists())
        return command

    return start


def test_ctrl_c_stops_after_what_is_running_and_resume_finishes(
    waiting: Callable[..., Any], process: Start, home: Path
) -> None:
    command = waiting()
    command.interrupt()
    command.wait_for("Stopping after what is running")
    (home / "go").touch()
    done = command.end()
    assert done.code == 130
    assert done.out == ""
    shown = plain(done.err)
    assert "waited" in shown
    assert "cancelled" in shown
    found = re.search(r"tenlines resume (\w{12})", shown)
    assert found
    resumed = process("resume", found[1]).end()
    assert (resumed.code, resumed.out) == (0, "all done\n")


def test_ctrl_c_twice_stops_at_once_and_the_journal_is_whole(
    waiting: Callable[..., Any], process: Start, home: Path
) -> None:
    command = waiting()
    command.interrupt()
    command.wait_for("Stopping after what is running")
    command.interrupt()
    done = command.end()
    assert done.code == 130
    assert "in_doubt" in plain(done.err)
    events = [codec.decode(line) for line in process("show", "last", "--json").end().out.splitlines()]
    assert isinstance(events[-1], RunEnded)
    assert any(isinstance(event, CallAbandoned) for event in events)
    resumed = process("resume", "last").end()
    assert (resumed.code, resumed.out) == (0, "all done\n")


def test_ctrl_c_while_the_model_thinks(server: Any, process: Start) -> None:
    held = threading.Event()
    server.replies = [held, server.says("in the end")]
    command = process("run", "x", "--model", server.model, terminal=True)
    command.wait_for("thinking")
    assert server.asked.wait(20)
    command.interrupt()
    command.wait_for("Stopping after")
    command.interrupt()
    done = command.end()
    held.set()
    assert done.code == 130
    assert process("resume", "last").end().out == "in the end\n"


def test_sigterm_stops_at_once(waiting: Callable[..., Any], home: Path) -> None:
    command = waiting(terminal=False)
    command.interrupt(signal.SIGTERM)
    done = command.end()
    assert done.code == 143
    assert "cancelled: SIGTERM" in done.err
    assert "tenlines resume" in done.err


def test_a_killed_run_is_open_and_is_resumed(waiting: Callable[..., Any], process: Start, home: Path) -> None:
    command = waiting(terminal=False)
    command.interrupt(signal.SIGKILL)
    command.end()
    assert "open, its process is gone" in process("runs").end().out
    assert "tenlines resume" in process("show", "last").end().out
    resumed = process("resume", "last").end()
    assert (resumed.code, resumed.out) == (0, "all done\n")
    assert "1 call is in doubt" in resumed.err
    assert "in_doubt" in process("show", "last").end().out


def test_progress_goes_to_the_terminal_and_the_answer_to_the_pipe(server: Any, process: Start) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"}), text="I look."), server.says("It is here. " * 30)]
    done = process("run", "x", "--model", server.model, "--tools", "tools.py", terminal=True).end()
    assert done.code == 0
    assert done.out == "It is here. " * 30 + "\n"
    shown = plain(done.err)
    assert 'get_order(order_id="7")' in shown
    assert "answered · 2 steps · 1 call" in shown
    assert all(request["stream"] for request in server.requests)


def test_no_stream_asks_for_whole_replies(server: Any, process: Start) -> None:
    server.replies = [server.says("ok")]
    done = process("run", "x", "--model", server.model, "--no-stream", terminal=True).end()
    assert done.out == "ok\n"
    assert not server.requests[0].get("stream")


def test_hostile_text_never_reaches_the_terminal_as_it_is(server: Any, process: Start) -> None:
    bad = "[bold]B[/bold] \x1b[2J \x1b]0;title\x07 \u202etxet"
    server.replies = [server.calls(("evil", {}), (bad, {bad: bad}), text=bad), server.says(bad)]
    done = process("run", bad, "--model", server.model, "--tools", "tools.py", terminal=True, tty_out=True).end()
    pages = [done.err, process("show", "last", terminal=True, tty_out=True).end().err]
    pages.append(process("runs", terminal=True, tty_out=True).end().err)
    pages.append(process("show", "last", "--json", terminal=True, tty_out=True).end().err)
    for shown in pages:
        assert "[bold]B[/bold]" in shown
        assert not any(harm in shown for harm in ("\x1b[2J", "\x1b]0", "\x07", "\u202e"))


def test_a_pipe_gets_the_answer_as_it_is(server: Any, process: Start) -> None:
    server.replies = [server.says("a\x1b[1mb \u202ec")]
    assert process("run", "x", "--model", server.model).end().out == "a\x1b[1mb \u202ec\n"


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_terminals_without_colour_are_given_none(server: Any, process: Start, env: dict[str, str]) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "7"})), server.says("ok")]
    done = process("run", "x", "--model", server.model, "--tools", "tools.py", terminal=True, env=env).end()
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", done.err)
    assert "get_order" in done.err
    if "TERM" in env:
        assert "\x1b" not in done.err


def test_quiet_says_nothing_on_a_terminal(server: Any, process: Start) -> None:
    server.replies = [server.says("ok")]
    done = process("run", "x", "--model", server.model, "--quiet", terminal=True).end()
    assert (done.code, done.out, done.err) == (0, "ok\n", "")


def test_json_has_standard_output_for_itself(server: Any, process: Start) -> None:
    server.replies = [server.calls(("talk", {})), server.says("ok")]
    done = process("run", "x", "--model", server.model, "--tools", "tools.py", "--json").end()
    events = [codec.decode(line) for line in done.out.splitlines()]
    assert isinstance(events[-1], RunEnded)
    assert "printed by the tool" in done.err
    assert "printed by a program" in done.err


def test_a_reader_that_leaves_stops_a_run_of_json_lines(
    waiting: Callable[..., Any], home: Path, process: Start
) -> None:
    command = waiting("--json", terminal=False)
    command.popen.stdout.close()
    (home / "go").touch()
    command.popen.wait(20)
    assert "cancelled" in process("runs").end().out


def test_runs_and_show_survive_a_closed_pipe(server: Any, process: Start) -> None:
    server.replies = [server.says("ok")]
    process("run", "x", "--model", server.model).end()
    read, write = os.pipe()
    os.close(read)
    done = process("show", "last", "--full", stdout=write).end()
    os.close(write)
    assert "Traceback" not in done.err
    assert "bug" not in done.err


def test_help_is_quick_and_imports_nothing_heavy(process: Start) -> None:
    done = process("run", "--help", env={"PYTHONPROFILEIMPORTTIME": "1"}).end()
    loaded = set(re.findall(r"\|\s+([\w.]+)$", done.err, re.MULTILINE))
    assert not loaded & {"rich.console", "openai", "sqlite3", "tenlines.cli.live"}
