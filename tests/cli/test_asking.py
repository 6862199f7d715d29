"""The question to a person, on a real terminal; and owners that are real processes."""

from __future__ import annotations

import json
import re
import signal
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shopping import SHOP, done_in, events_of, starter
from waiting_for import plain, until

from tenlines.cli.asking import edited, login_name
from tenlines.core import events as ev
from tenlines.errors import ConfigError

Start = Callable[..., Any]
BIG, HUGE = ("pay", {"amount": 500}), ("pay", {"amount": 9000, "to": "Bob"})
CHOICES = "[l]ater? "


@pytest.fixture(autouse=True)
def shop(home: Path) -> None:
    (home / "shop.py").write_text(SHOP)


@pytest.fixture
def asked(server: Any, process: Start) -> Start:
    """A run on a terminal that asks about these calls."""

    def start(*calls: Any, **how: Any) -> Any:
        server.replies = [server.calls(*calls), server.says("all done")]
        words = ["run", "Run the shop", "--model", server.model, "--tools", "shop.py"]
        return process(*words, **{"terminal": True, **how})

    return start


@pytest.fixture
def begin(tenlines: Start, server: Any) -> Start:
    """The same in this process, without a terminal: a run that has paused or ended."""
    return starter(tenlines, server)


def editor(home: Path, text: str, code: int = 0) -> str:
    """A command that stands in for a person's editor: it writes this and leaves."""
    file = home / "editor.py"
    file.write_text(f"import sys\nopen(sys.argv[1], 'w').write({text!r})\nsys.exit({code})\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return f"{sys.executable} {file}"


@pytest.mark.slow
def test_the_person_is_asked_call_by_call_and_the_run_goes_on(asked: Start, server: Any, home: Path) -> None:
    command = asked(BIG, HUGE)
    command.answer(CHOICES, "a")
    command.answer(CHOICES, "d")
    command.answer("(Enter for nothing): ", "too much")
    done = command.end()
    assert (done.code, done.out) == (0, "all done\n")
    shown = plain(done.err)
    assert '"amount": 500' in shown
    assert '"to": "Bob"' in shown
    assert done_in(home) == ["paid 500 to Ann"]
    given = [event for event in events_of() if isinstance(event, ev.ApprovalGiven)]
    assert [(event.verdict, event.by, event.reason) for event in given] == [
        ("allow", login_name(), ""), ("deny", login_name(), "too much"),
    ]  # fmt: skip
    assert "too much" in json.dumps(server.requests[-1]["messages"])


@pytest.mark.slow
def test_arguments_are_edited_in_the_person_s_editor_and_checked(asked: Start, home: Path) -> None:
    command = asked(BIG, env={"VISUAL": "", "EDITOR": editor(home, '{"amount": "much"}')})
    command.answer(CHOICES, "e")
    command.wait_for("cannot be put in place")
    editor(home, '{"amount": 50}')
    command.answer(CHOICES, "e")
    done = command.end()
    assert (done.code, done.out) == (0, "all done\n")
    assert done_in(home) == ["paid 50 to Ann"]
    assert "with other arguments" in plain(done.err)


@pytest.mark.slow
def test_what_is_put_off_waits_and_the_rest_goes_on(asked: Start, home: Path) -> None:
    command = asked(("pay", {"amount": 500}), HUGE)
    command.answer(CHOICES, "nonsense")
    command.answer(CHOICES, "a")
    command.answer(CHOICES, "l")
    done = command.end()
    assert done.code == 5
    assert done_in(home) == ["paid 500 to Ann"]
    shown = plain(done.err)
    assert re.search(r"tenlines approve \w{12} --resume", shown)
    assert shown.count("1.2  pay") == 2  # asked once, and told at the end


@pytest.mark.slow
@pytest.mark.parametrize("key", ["Ctrl-C", "Ctrl-D"])
def test_ctrl_c_and_ctrl_d_leave_and_keep_what_was_decided(asked: Start, tenlines: Start, home: Path, key: str) -> None:
    command = asked(BIG, HUGE)
    command.answer(CHOICES, "a")
    command.wait_for(CHOICES)
    if key == "Ctrl-C":
        command.interrupt()
    else:
        command.type("\x04")
    done = command.end()
    assert done.code == 5
    assert done_in(home) == []
    assert "Traceback" not in done.err
    assert tenlines("deny", "last", "--resume").out == "all done\n"
    assert done_in(home) == ["paid 500 to Ann"]


@pytest.mark.slow
def test_hostile_arguments_are_harmless_in_the_question(asked: Start) -> None:
    command = asked(("pay", {"amount": 500, "to": "\x1b[2J\u202e\n  1.2  mail"}))
    command.answer(CHOICES, "l")
    shown = command.end().err
    assert not any(harm in shown for harm in ("\x1b[2J", "\u202e"))
    assert not re.search(r"^\s*1\.2", plain(shown), re.MULTILINE)


@pytest.mark.slow
def test_a_run_that_somebody_else_brought_to_its_end_is_shown_and_nothing_is_done_twice(
    asked: Start, tenlines: Start, home: Path
) -> None:
    command = asked(BIG)
    command.wait_for(CHOICES)
    assert tenlines("approve", "last", "--by", "Carla", "--resume").out == "all done\n"
    command.type("a\n")
    done = command.end()
    assert (done.code, done.out) == (0, "all done\n")
    assert "has ended as answered" in plain(done.err)
    assert done_in(home) == ["paid 500 to Ann"]


@pytest.mark.slow
def test_a_run_that_somebody_else_went_on_with_is_left_to_him(
    asked: Start, process: Start, home: Path, server: Any
) -> None:
    command = asked(BIG)
    command.wait_for(CHOICES)
    held = threading.Event()
    server.replies = [held]
    server.asked.clear()
    other = process("approve", "last", "--resume")
    assert server.asked.wait(20)
    command.type("a\n")
    done = command.end()
    assert done.code == 2
    assert "another process went on with run" in plain(done.err)
    held.set()
    assert other.end().out == "late\n"
    assert done_in(home) == ["paid 500 to Ann"]


@pytest.mark.slow
def test_resume_on_a_terminal_asks_too(begin: Start, process: Start, home: Path) -> None:
    begin(BIG)
    command = process("resume", "last", terminal=True)
    command.answer(CHOICES, "a")
    assert command.end().out == "all done\n"
    assert done_in(home) == ["paid 500 to Ann"]


@pytest.mark.slow
def test_quiet_and_json_ask_nothing(begin: Start, process: Start) -> None:
    begin(BIG)
    for option in ("--quiet", "--json"):
        assert process("resume", "last", option, terminal=True).end().code == 5


@pytest.mark.slow
def test_undo_asks_first_and_shows_what_it_does(begin: Start, process: Start, home: Path) -> None:
    begin(("pay", {"amount": 5}))
    no = process("undo", "last", terminal=True)
    no.answer("[y/N] ", "")
    assert no.end().code == 1
    yes = process("undo", "last", terminal=True)
    yes.answer("[y/N] ", "y")
    done = yes.end()
    assert (done.code, done.out) == (0, "undone  1.1  pay\n")
    assert "pay(amount=5)" in plain(done.err)
    assert done_in(home) == ["paid 5 to Ann", "took back 5 of 1:0"]


@pytest.mark.slow
def test_ctrl_c_leaves_an_undo_that_the_same_command_goes_on_with(
    begin: Start, process: Start, tenlines: Start, home: Path
) -> None:
    begin(("pay", {"amount": 5}), ("pay", {"amount": 7}))
    (home / "bank-is-slow").touch()
    command = process("undo", "last", "--yes", terminal=True)
    until(lambda: (home / "taking-back").exists())
    command.interrupt()
    done = command.end()
    assert done.code == 130
    assert "tenlines undo" in plain(done.err)
    (home / "bank-is-slow").unlink()
    again = tenlines("undo", "last", "--yes")
    assert again.code == 0
    assert again.out == "undone  1.2  pay\nundone  1.1  pay\n"


# --- real owners --------------------------------------------------------------------------------------


@pytest.fixture
def under_way(server: Any, process: Start, home: Path) -> Callable[[str], Any]:
    """A run in a process of its own, in the middle of a tool that waits for a file."""

    def start(name: str) -> Any:
        server.replies.append(server.calls(("wait", {"for_file": str(home / name)})))
        command = process("run", f"wait for {name}", "--model", server.model, "--tools", "tools.py")
        until(lambda: (home / f"{name}.started").exists())
        return command

    return start


@pytest.mark.slow
def test_a_run_is_left_to_its_process_as_long_as_that_lives(
    under_way: Callable[[str], Any], tenlines: Start, home: Path, server: Any
) -> None:
    owner = under_way("go")
    done = tenlines("resume", "last")
    assert done.code == 2
    assert f"is being worked on by process {owner.popen.pid} on this machine" in done.err
    assert f"open, process {owner.popen.pid} " in tenlines("runs").out
    server.replies = [server.says("taken over")]
    taken = tenlines("resume", "last", "--take-over")
    assert (taken.code, taken.out) == (0, "taken over\n")
    (home / "go").touch()
    former = owner.end()
    assert former.code == 4
    assert former.out == ""
    assert "tenlines show" in former.err


@pytest.mark.slow
def test_after_two_runs_were_killed_all_are_gone_on_with(
    under_way: Callable[[str], Any], tenlines: Start, home: Path, server: Any
) -> None:
    killed, alive = [under_way("one"), under_way("two")], under_way("three")
    for one in killed:
        one.interrupt(signal.SIGKILL)
        one.end()
    server.replies = [server.says("done after all")] * 2
    done = tenlines("resume", "--all", "--parallel", "2")
    assert done.code == 0
    assert done.out.count("answered  (in doubt: wait) done after all") == 2
    assert f"process {alive.popen.pid} " in done.out
    assert done.out.endswith("2 answered, 1 skipped\n")
    server.replies = [server.says("undisturbed")]
    (home / "three").touch()
    assert alive.end().out == "undisturbed\n"


@pytest.mark.slow
def test_ctrl_c_stops_all_that_are_gone_on_with(
    under_way: Callable[[str], Any], process: Start, home: Path, server: Any
) -> None:
    for name in ("one", "two"):
        command = under_way(name)
        command.interrupt(signal.SIGKILL)
        command.end()
    server.replies = [server.calls(("wait", {"for_file": str(home / "again")}))]
    command = process("resume", "--all")
    until(lambda: (home / "again.started").exists())
    command.interrupt()
    (home / "again").touch()
    done = command.end()
    assert done.code == 130
    assert "stopped   cancelled" in done.out.replace("(in doubt: wait) ", "")
    assert "stopped before it began" in done.out


# --- the editor ---------------------------------------------------------------------------------------


def test_what_the_editor_left_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", editor(home, '{"a": 1}'))
    assert edited({"a": 1}) is None
    assert edited({"a": 2}) == {"a": 1}


@pytest.mark.parametrize(
    ("command", "says"), [("no-such-editor", "cannot be started"), ("'", "cannot be started"), ("", "ended with 3")]
)
def test_an_editor_that_fails_changes_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: str, says: str
) -> None:
    monkeypatch.setenv("VISUAL", command or editor(home, "{}", 3))
    with pytest.raises(ConfigError, match=says):
        edited({"a": 1})
