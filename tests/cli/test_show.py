"""One run, seen in every way, and while another process works on it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenlines import Agent, Reply, ToolCall, Usage, tool
from tenlines.cli.following import tail
from tenlines.core import events as ev
from tenlines.core.transcript import Opaque
from tenlines.errors import RunStopped
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import SystemClock

KEY = "sk-demo-1111222233334444"
USE = Usage(1200, 20, 800)


@tool(read_only=True)
def get_order(order_id: str, api_key: str = "") -> dict[str, str]:
    """One order."""
    return {"order": order_id, "password": "hunter-demo-22", "note": "keep me"}


@tool
def refund(order_id: str) -> str:
    """Raises."""
    raise RuntimeError(f"401 for {KEY}, header X-Api-Key: {KEY}")


def call(id_: str, name: str, **arguments: str) -> ToolCall:
    return ToolCall(id_, name, json.dumps(arguments))


@pytest.fixture
def run_id() -> str:
    thought = (Opaque("anthropic", "m", {"type": "thinking", "signature": "x"}),)
    replies = [
        Reply("I look.", (call("a", "get_order", order_id="1042", api_key=KEY), call("b", "get_order", order_id="7"))),
        Reply("", (call("c", "refund", order_id="1042"),), usage=USE, opaque=thought),
        Reply(f"Shipped, said {KEY}.", usage=USE),
    ]
    agent = Agent(replies, [get_order, refund], instructions="Be brief.", journal=os.environ["TENLINES_JOURNAL"])
    return agent.run_sync("Where is order 1042?").run_id


def test_calls_are_a_line_each(tenlines: Callable[..., Any], run_id: str) -> None:
    lines = tenlines("show", "last", "--calls").out.splitlines()
    assert [line.split()[:2] for line in lines] == [["1.1", "ok"], ["1.2", "ok"], ["2.1", "tool_error"]]
    assert 'get_order(order_id="7") → {"order": "7"' in lines[1]
    assert tenlines("show", "last", "--calls", "--step", "2").out.splitlines() == lines[2:]
    assert tenlines("show", "last", "--calls", "--step", "3").out.strip() == "no calls"


def test_the_transcript_is_what_the_model_has(tenlines: Callable[..., Any], run_id: str) -> None:
    whole = tenlines("show", run_id, "--raw").out
    heads = [line.removeprefix("── ") for line in whole.splitlines() if line.startswith("──")]
    assert heads == [
        *("system", "user", "assistant", "call a get_order", "call b get_order"),
        *("result a get_order ok", "result b get_order ok", "assistant", "call c refund", "result c refund tool_error"),
        "assistant",
    ]
    assert "(thinking of anthropic, sent back as it came)" in whole
    sent = tenlines("show", run_id, "--raw", "--step", "2").out
    assert whole.startswith(sent)
    assert sent.rstrip().endswith('"note": "keep me"}')


@pytest.mark.parametrize("words", [(), ("--full",), ("--calls",), ("--raw",), ("--json",), ("--follow",)])
def test_what_is_named_is_in_no_view(tenlines: Callable[..., Any], run_id: str, words: tuple[str, ...]) -> None:
    plain = tenlines("show", run_id, *words).out
    assert KEY in plain
    hidden = tenlines("show", run_id, *words, "--redact", "api-key,password")
    assert hidden.code == 0
    assert KEY not in hidden.out
    assert "hunter-demo-22" not in hidden.out
    assert "[redacted]" in hidden.out
    assert "keep me" in hidden.out


def test_names_to_take_out_may_be_in_the_environment(
    tenlines: Callable[..., Any], run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENLINES_REDACT", "api_key")
    assert KEY not in tenlines("show", run_id).out


def test_a_function_of_ones_own_takes_out_what_it_likes(tenlines: Callable[..., Any], run_id: str, home: Path) -> None:
    (home / "hide.py").write_text("def orders(text):\n    return text.replace('1042', '####')\n")
    shown = tenlines("show", run_id, "--redact-with", "hide.py:orders").out
    assert "Where is order ####?" in shown
    assert "1042" not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--calls", "--raw"), "--calls and --raw are different views"),
        (("--follow", "--step", "1"), "leave --step, --calls and --raw out"),
        (("--json", "--step", "1"), "leave --step out"),
        (("--step", "9"), "has 3 steps"),
        (("--raw", "--step", "9"), "has 3 steps"),
        (("--calls", "--step", "9"), "has 3 steps"),
        (("--redact-with", "hide.py"), "name a file and a function in it"),
        (("--redact-with", "hide.py:f"), "there is no file hide.py"),
        (("--redact-with", "tools.py:nothing"), "has no function nothing"),
    ],
)
def test_what_cannot_be_is_said(tenlines: Callable[..., Any], run_id: str, words: tuple[str, ...], said: str) -> None:
    done = tenlines("show", run_id, *words)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


# --- following --------------------------------------------------------------------------------------------


def test_a_run_that_has_ended_is_shown_to_its_end(tenlines: Callable[..., Any], run_id: str) -> None:
    shown = tenlines("show", run_id, "--follow").out
    assert "step 2" in shown
    assert f"Shipped, said {KEY}." in shown
    assert "answered · 3 steps" in shown


@pytest.mark.slow
def test_a_run_of_another_process_is_watched_until_it_ends(
    server: Any, process: Callable[..., Any], home: Path
) -> None:
    server.replies = [server.calls(("wait", {"for_file": str(home / "go")})), server.says("all done")]
    worker = process("run", "wait for it", "--model", server.model, "--tools", "tools.py")
    server.asked.wait(20)
    looks = process("show", "last", "--follow", terminal=True, tty_out=True)
    looks.wait_for("wait(for_file=")
    as_json = process("show", "last", "--follow", "--json")
    (home / "go").touch()
    looks.wait_for("waited")
    looks.wait_for("all done")
    assert looks.end().code == 0
    assert worker.end().out == "all done\n"
    kinds = [json.loads(line)["type"] for line in as_json.end().out.splitlines()]
    assert kinds[0] == "RunStarted"
    assert kinds[-1] == "RunEnded"


@pytest.mark.slow
def test_looking_away_disturbs_nothing(server: Any, process: Callable[..., Any], home: Path) -> None:
    server.replies = [server.calls(("wait", {"for_file": str(home / "go")})), server.says("all done")]
    worker = process("run", "wait for it", "--model", server.model, "--tools", "tools.py")
    server.asked.wait(20)
    looks = process("show", "last", "--follow", terminal=True, tty_out=True)
    looks.wait_for("wait(for_file=")
    looks.interrupt()
    looks.wait_for("the run goes on")
    assert looks.end().code == 130
    (home / "go").touch()
    assert worker.end().out == "all done\n"


@pytest.mark.slow
def test_when_the_process_of_the_run_dies_it_says_so(server: Any, process: Callable[..., Any], home: Path) -> None:
    server.replies = [server.calls(("wait", {"for_file": str(home / "go")}))]
    worker = process("run", "wait for it", "--model", server.model, "--tools", "tools.py")
    server.asked.wait(20)
    looks = process("show", "last", "--follow", terminal=True, tty_out=True)
    looks.wait_for("wait(for_file=")
    worker.interrupt(signal.SIGKILL)
    worker.popen.wait()
    looks.wait_for("its process is gone")
    looks.wait_for("tenlines resume")
    assert looks.end().code == 0


def test_the_tail_of_a_journal_is_every_event_once() -> None:
    journal = MemoryJournal()
    with pytest.raises(RunStopped):
        Agent([Reply("", (call("a", "get_order", order_id="1"),))], [get_order], journal=journal).run_sync("x")
    run = journal.runs()[0].run_id
    log = list(journal.read(run))

    class Growing:
        """As another process writes it: one event more at each look."""

        looks = 0

        def read(self, run_id: str, from_seq: int = 0) -> Any:
            self.looks += 1
            return iter(log[from_seq : self.looks])

    class Hurried(SystemClock):
        def wait(self, event: Any, seconds: float) -> None:
            assert 0 < seconds <= 1

    assert list(tail(Growing(), run, Hurried())) == log  # type: ignore[arg-type]
    assert isinstance(log[-1], ev.RunEnded)
