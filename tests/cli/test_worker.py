"""`tenlines worker`: what it says, how it leaves, and the whole way of a run through processes of their own."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from fleet_app import NotingEngine, app_agent, queued, worked_on, write_app
from waiting_for import until

from tenlines import Agent
from tenlines.cli import shift
from tenlines.cli.entries import Entry, Remarks, Teller, entry_of
from tenlines.cli.shift import Setup, Shift
from tenlines.cli.strays import Strays
from tenlines.cli.worker import head_of
from tenlines.fleet import Fleet, Queue, Rate
from tenlines.fleet.pacing import LocalPace
from tenlines.fleet.places import LocalPlaces
from tenlines.fleet.temporal import Temporal
from tenlines.fleet.worker import Limits as FleetLimits
from tenlines.fleet.worker import Turn
from tenlines.journal import open_journal
from tenlines.ports import Handback, Lane, Order
from tenlines.testing import FakeClock

Tenlines = Callable[..., Any]
ORDER = Order("k2v9", "support", "2")


@pytest.fixture(autouse=True)
def app(home: Path) -> None:
    write_app(home)


# --- lines --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turn", "what", "text"),
    [
        (Turn("handed back", ORDER, Handback("ended", "answered")), "ended", "answered, support@2"),
        (
            Turn("handed back", ORDER, Handback("paused", "awaiting_approval")),
            "paused",
            "waits for a decision: tenlines pending k2v9 --journal j.db",
        ),
        (Turn("handed back", ORDER, Handback("taken")), "taken", "another worker took it over"),
        (Turn("failed", ORDER, why="no room"), "failed", "failed, and is tried again: no room"),
        (
            Turn("set aside", ORDER, why="set aside: 5 workers died"),
            "set aside",
            "set aside: 5 workers died; to put it back: tenlines submit --journal j.db --again k2v9",
        ),
        (Turn("submitted", ORDER), "submitted", "submitted for support@2"),
    ],
)
def test_what_a_worker_did_is_a_line(turn: Turn, what: str, text: str) -> None:
    entry = entry_of(turn, "j.db")
    assert entry is not None
    assert (entry.what, entry.text, entry.order) == (what, text, ORDER)


def test_a_run_that_is_not_in_the_journal_makes_one_think_of_the_journal() -> None:
    entry = entry_of(Turn("handed back", ORDER, Handback("absent")), None)
    assert entry is not None
    assert entry.is_bad
    assert "was it submitted with another --journal?" in entry.text


@pytest.mark.parametrize(
    "turn",
    [
        Turn("began", ORDER),
        Turn("handed back", ORDER, Handback("left")),
        Turn("handed back", ORDER, Handback("asleep", until=9.0)),
    ],
)
def test_what_is_no_news_is_no_line(turn: Turn) -> None:
    assert entry_of(turn, None) is None


def told(*entries: Entry, json_: bool = False, is_quiet: bool = False) -> list[str]:
    out = io.StringIO()
    teller = Teller(out, FakeClock(1000.5), None, json=json_, is_quiet=is_quiet)
    for one in entries:
        teller.tell(one)
    return out.getvalue().splitlines()


def test_text_that_is_hostile_stays_one_harmless_line() -> None:
    (line,) = told(Entry("failed", "a\nb \x1b[2J \u202e" + "x" * 10_000, True, ORDER))
    assert re.fullmatch(r"\d\d:\d\d:\d\d  k2v9  a b .*", line)
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert len(line) < 600


def test_as_json_a_line_is_an_object() -> None:
    (line,) = told(Entry("ended", "answered, support@2", False, ORDER, "answered"), json_=True)
    assert json.loads(line) == {
        "at": 1000.5,
        "what": "ended",
        "run_id": "k2v9",
        "agent": "support",
        "version": "2",
        "queue": "default",
        "status": "answered",
        "text": "answered, support@2",
    }


def test_quiet_is_for_what_somebody_should_look_at() -> None:
    lines = told(Entry("ended", "fine", False, ORDER), Entry("failed", "not fine", True, ORDER), is_quiet=True)
    assert len(lines) == 1
    assert lines[0].endswith("not fine")


def test_that_nobody_reads_does_not_disturb_the_work() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    teller = Teller(Closed(), FakeClock(), None, json=True, is_quiet=False)
    teller.turn(Turn("submitted", ORDER))
    teller.turn(Turn("submitted", ORDER))


def test_what_libraries_say_is_a_line_and_not_said_again_and_again() -> None:
    out, clock = io.StringIO(), FakeClock(1000.0)
    remarks = Remarks(Teller(out, clock, None, json=False, is_quiet=True), clock)

    def say(name: str, *texts: str) -> list[str]:
        for text in texts:
            remarks.emit(logging.LogRecord(name, logging.ERROR, "", 0, text, (), None))
        return [line[10:] for line in out.getvalue().splitlines()]

    assert say("x", "lost", "lost", "found", "lost") == ["lost", "found", "lost"]
    assert say("tenlines.fleet.temporal", "retried 6 times", "retried 7 times")[3:] == ["Temporal: retried 6 times"]
    clock.advance(61)
    assert say("tenlines.fleet.temporal", "retried 99 times")[4:] == ["Temporal: retried 99 times"]


def test_the_head_says_what_it_is_without_a_password() -> None:
    fleet = Fleet(
        [Agent(["x"], name="support", version="2"), Agent(["x"], name="billing")],
        queues=[Queue("reports", at_once=4)],
        rates={"scripted": Rate(requests=5)},
    )
    setup = Setup(fleet, open_journal(), Temporal("host:1"), limits(fleet), ("default", "reports"), 20, 30.0)
    facts, lines = head_of(setup, "postgresql://me:secret@host/db", "http://127.0.0.1:9")
    text = "\n".join(f"{name} {said}" for name, said in lines)
    assert "secret" not in f"{facts} {text}"
    assert "agents support@2, billing" in text
    assert "queues default, reports (at most 4 at once); here 20 runs of each agent and queue at once" in text
    assert "engine Temporal at host:1" in text
    assert "metrics http://127.0.0.1:9/metrics" in text
    assert "note" not in text
    _, lines = head_of(setup, "journal.db", "")
    notes = [said for name, said in lines if name == "note"]
    assert "have to be on this machine" in notes[0]
    assert "hold for this worker alone" in notes[1]


# --- runs that wait in vain -----------------------------------------------------------------------------------


def looked(engine: NotingEngine, *lanes: Lane) -> list[list[str]]:
    """What is said the first time, and the second."""
    strays = Strays(open_journal(), engine, lanes)
    return [asyncio.run(strays.look()) for _ in range(2)]


def test_runs_of_a_version_that_is_not_here_are_told_once() -> None:
    for _ in range(3):
        queued("look")
    worked_on(queued("hello"))  # is over
    app_agent().run_sync("hello")  # of no fleet
    engine = NotingEngine()
    engine.at_work = 0
    here = Lane("default", "support", "1"), Lane("default", "billing", "")
    said = "3 runs wait for support@2, which this worker does not have (it has support@1)"
    assert looked(engine, *here) == [[said], []]
    engine.at_work = 1
    assert looked(engine, *here) == [[f"{said}; 1 other worker has it"], []]
    assert looked(engine, Lane("default", "billing", ""))[0] == [
        "3 runs wait for support@2, which this worker does not have; 1 other worker has it"
    ]
    assert looked(engine, Lane("default", "support", "2")) == [[], []]


def test_runs_in_a_queue_that_nobody_takes_are_told() -> None:
    queued("look", queue="reports")
    engine = NotingEngine()
    engine.at_work = 0
    here = Lane("default", "support", "2")
    said = "1 run waits for support@2 in the queue reports, which no worker takes (this one takes default)"
    assert looked(engine, here) == [[said], []]
    engine.at_work = 1
    assert looked(engine, here) == [[], []]


# --- leaving --------------------------------------------------------------------------------------------------


def limits(fleet: Fleet) -> FleetLimits:
    return FleetLimits(LocalPace(fleet.rates), LocalPlaces())


def test_a_worker_with_nothing_to_do_leaves_at_the_first_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shift, "LOOK_EVERY_S", 0.01)
    fleet, out = Fleet([app_agent()]), io.StringIO()
    setup = Setup(fleet, open_journal(), NotingEngine(), limits(fleet), ("default",), 1, 5.0)

    def leave(code: int) -> Any:
        raise AssertionError("there was nothing to be left")

    async def work() -> None:
        one = Shift(setup, Teller(out, FakeClock(), None, json=True, is_quiet=False), leave)
        loop = asyncio.get_running_loop()
        await one.work(lambda url: loop.call_later(0.05, signal.raise_signal, signal.SIGTERM) and None)

    asyncio.run(work())
    assert [json.loads(line)["what"] for line in out.getvalue().splitlines()] == ["drains", "left"]


# --- refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name the file that has your agents"),
        (("--app", "nope.py"), "nope.py: there is no such file"),
        (("--app", "app.py", "--journal", "memory"), "a journal in memory is nobody else's"),
        (("--app", "app.py", "--temporal", "x"), "--temporal must be HOST:PORT"),
        (("--app", "app.py", "--metrics", "x"), "--metrics must be PORT or HOST:PORT"),
        (("--app", "app.py", "--metrics", "1:99999"), "--metrics must be PORT or HOST:PORT"),
        (("--app", "app.py", "--dev", "--temporal", "db:7233"), "--dev brings Temporal up on 127.0.0.1, and not on db"),
        (("--app", "app.py", "--queue", "a/b"), "'a/b' is no name of a queue"),
        (("--app", "app.py", "--parallel", "0"), "--parallel"),
    ],
)
def test_what_does_not_fit_is_said(tenlines: Tenlines, words: tuple[str, ...], said: str) -> None:
    done = tenlines("worker", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.slow
def test_a_server_that_is_not_there_is_named_and_the_process_ends_well(process: Callable[..., Any]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        done = process("worker", "--app", "app.py", "--temporal", address).end()
    assert (done.code, done.out) == (3, "")
    assert f"there is no Temporal at {address}: start it, name another one" in done.err
    assert "Fatal" not in done.err


# --- the whole way --------------------------------------------------------------------------------------------


class Crew:
    """A worker in a process of its own, which writes JSON."""

    def __init__(self, popen: Any, home: Path) -> None:
        self._popen, self._file = popen, home / "worker.jsonl"

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self._file.read_text().splitlines() if line.endswith("}")]

    def said(self, what: str) -> list[Any]:
        return [one for one in self.lines if one["what"] == what]

    def leave(self, *signals: int) -> int:
        """Send the signals; returns the exit code."""
        for number in signals:
            self._popen.send_signal(number)
            until(lambda: self.said("drains") or self._popen.poll() is not None)
        code: int = self._popen.wait(30)
        return code


@pytest.fixture
def crew(process: Callable[..., Any], home: Path) -> Iterator[Callable[..., Crew]]:
    out = (home / "worker.jsonl").open("w")

    def start(*words: str) -> Crew:
        one = Crew(process("worker", "--app", "app.py", "--json", *words, stdout=out.fileno()).popen, home)
        until(lambda: one.said("worker") or one._popen.poll() is not None)
        return one

    yield start
    out.close()


@pytest.mark.slow
def test_one_command_has_everything_and_runs_go_through_it(
    tenlines: Tenlines, process: Callable[..., Any], crew: Callable[..., Crew], home: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    worker = crew("--dev", "--temporal", address, "--metrics", "0")
    (head,) = worker.said("worker")
    assert (head["agents"], head["engine"]) == (["support@2"], f"Temporal at {address}")
    assert (home / "journal.db.temporal").exists()
    to = ("--app", "app.py", "--temporal", address)
    pay = process("submit", "pay", *to)  # beside the next one: there is time for both
    look = process("submit", "look", *to, "--max-steps", "2", "--wait").end()
    assert (look.code, look.out) == (1, "")
    run_id = re.search(r"tenlines submit --again (\w+) --max-steps 4", look.err)
    assert run_id is not None
    again = process("submit", "--again", run_id[1], "--max-steps", "9", "--wait", "--temporal", address)
    paid = pay.end().out.strip()
    assert tenlines("wait", paid).code == 5
    assert not (home / "paid.txt").exists()
    assert tenlines("approve", paid).code == 0
    assert tenlines("wait", paid).out == "done: pay\n"
    assert (home / "paid.txt").read_text() == "5\n"
    done = again.end()
    assert (done.code, done.out) == (0, "done: look\n")
    until(lambda: len(worker.said("ended")) == 3)
    assert [one["status"] for one in worker.said("ended") if one["run_id"] == run_id[1]] == ["max_steps", "answered"]
    assert worker.said("paused")[0]["run_id"] == paid
    assert "tenlines_fleet_handed_back" in urlopen(f"{head['metrics']}/metrics").read().decode()
    assert worker.leave(signal.SIGINT) == 0
    assert worker.lines[-1]["text"] == "left, with nothing under way"
    with socket.socket() as gone:
        assert gone.connect_ex(("127.0.0.1", int(address.rpartition(":")[2]))) != 0


@pytest.mark.slow
@pytest.mark.parametrize("is_hurried", [False, True])
def test_what_does_not_come_back_in_time_is_left_and_named(
    temporal_server: Any, crew: Callable[..., Crew], process: Callable[..., Any], home: Path, is_hurried: bool
) -> None:
    worker = crew("--temporal", temporal_server.address, "--grace", "60" if is_hurried else "0.2")
    submit = process("submit", "hang", "--app", "app.py", "--temporal", temporal_server.address)
    run_id = submit.end().out.strip()
    until(lambda: (home / "hanging").exists())
    assert worker.leave(*[signal.SIGTERM] * (1 + is_hurried)) == 1
    assert "1 run under way" in worker.said("drains")[0]["text"]
    (left,) = worker.said("left")
    assert (left["run_id"], left["text"]) == (run_id, "left under way, as after a crash; others take it up")
    assert open_journal().runs(1)[0].status == "open"


@pytest.mark.slow
def test_a_run_is_handed_back_at_its_next_step_and_the_next_worker_ends_it(
    temporal_server: Any, tenlines: Tenlines, crew: Callable[..., Crew], process: Callable[..., Any], home: Path
) -> None:
    worker = crew("--temporal", temporal_server.address)
    submit = process("submit", "hang", "--app", "app.py", "--temporal", temporal_server.address)
    until(lambda: (home / "hanging").exists())
    run_id = submit.end().out.strip()
    worker._popen.send_signal(signal.SIGTERM)
    until(lambda: worker.said("drains"))
    (home / "go").touch()
    assert worker._popen.wait(30) == 0
    assert open_journal().runs(1)[0].status == "open"
    assert tenlines("wait", run_id, "--timeout", "0.1").code == 124
    crew("--temporal", temporal_server.address)
    assert tenlines("wait", run_id).out == "done: hang\n"
