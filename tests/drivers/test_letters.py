"""Letters to a run: which are taken, what they become, and that each is heard once, wherever a process dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from driver_doubles import Way, asks, kinds, log_of, of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenlines import Agent, Limits, tool
from tenlines.core import events as ev
from tenlines.core.limits import Reservation
from tenlines.core.replay import fold
from tenlines.core.transcript import Text, User
from tenlines.drivers.letters import draft_of, post, waiting
from tenlines.errors import ConfigError, RunNotFound
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import Saying, Stopping, SystemClock

CLOCK = SystemClock()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    journal = SqliteJournal(tmp_path / "journal.db")
    yield journal
    journal.close()


@tool(approve=True)
def pay() -> str:
    """Pay."""
    return "paid"


def cut_off(journal: SqliteJournal) -> str:
    """A run whose process died in its first step."""
    task = (User((Text("go"),)),)
    journal.append("r1", ev.RunStarted(seq=0, at=1.0, run_id="r1", agent="a", model="m", messages=task))
    journal.append("r1", ev.StepStarted(seq=1, at=2.0, step=1, attempt=1, reserved=Reservation()))
    journal.commit("r1")
    return "r1"


def heard(log: list[Any]) -> list[tuple[str, int]]:
    return [(event.parts[0].text, event.mail) for event in of(log, ev.MessageQueued)]


# --- what is taken ----------------------------------------------------------------------------------------


def test_a_letter_to_an_open_run_is_taken_and_names_who_sent_it(journal: SqliteJournal) -> None:
    run_id = cut_off(journal)
    letter = post(journal, CLOCK, run_id, Saying("hurry", "ann"))
    assert (letter.number, letter.what) == (1, Saying("hurry", "ann"))
    assert waiting(journal, run_id, 0) == [letter]
    assert waiting(journal, run_id, 1) == []


def ended(status: str) -> Callable[[SqliteJournal], str]:
    def make(journal: SqliteJournal) -> str:
        model = ["42"] if status == "answered" else [asks("look"), "never"]
        agent = Agent(model, {"look": lambda: "x"}, journal=journal, limits=Limits(steps=1))
        return agent.run_sync("go", raise_on_stop=False).run_id

    return make


@pytest.mark.parametrize(
    ("status", "what", "words"),
    [
        ("answered", Saying("x"), "is answered, so nothing more can be said in it; start a new one with `run`"),
        ("answered", Stopping(), "has ended as answered: there is nothing to stop"),
        ("max_steps", Stopping(), "has ended as max_steps: there is nothing to stop"),
        ("max_steps", Saying("x"), "has ended as max_steps; say it and go on: `tenlines resume .* --say TEXT`"),
    ],
)
def test_a_run_that_has_ended_takes_no_letter(
    journal: SqliteJournal, status: str, what: Saying | Stopping, words: str
) -> None:
    run_id = ended(status)(journal)
    with pytest.raises(ConfigError, match=words):
        post(journal, CLOCK, run_id, what)
    assert journal.letters({run_id: 0}) == []


def test_a_run_that_is_being_undone_takes_no_letter(journal: SqliteJournal) -> None:
    run_id = ended("max_steps")(journal)
    journal.append(run_id, ev.UndoRequested(seq=len(list(journal.read(run_id))), at=CLOCK.now()))
    journal.commit(run_id)
    with pytest.raises(ConfigError, match="is being undone"):
        post(journal, CLOCK, run_id, Saying("x"))


def test_nothing_said_no_such_run_and_no_mailbox_are_refused(journal: SqliteJournal) -> None:
    run_id = cut_off(journal)
    with pytest.raises(ConfigError, match="there is nothing to say"):
        post(journal, CLOCK, run_id, Saying(" \n"))
    with pytest.raises(RunNotFound):
        post(journal, CLOCK, "nobody", Saying("x"))
    with pytest.raises(ConfigError, match="this journal has no mailbox"):
        post(MemoryJournal(), CLOCK, run_id, Saying("x"))


def test_a_run_that_moved_without_its_letters_goes_on_counting(journal: SqliteJournal, tmp_path: Path) -> None:
    run_id = cut_off(journal)
    post(journal, CLOCK, run_id, Saying("one"))
    Agent([asks("pay"), "never"], [pay], journal=journal).resume_sync(run_id)
    other = SqliteJournal(tmp_path / "other.db")
    for event in journal.read(run_id):
        other.append(run_id, event)
    other.commit(run_id)
    assert post(other, CLOCK, run_id, Saying("two")).number == 2
    Agent(["done"], [pay], journal=other).resume_sync(run_id)
    assert heard(list(other.read(run_id))) == [("one", 1), ("two", 2)]
    other.close()


# --- what they become -------------------------------------------------------------------------------------


def test_what_waits_is_heard_first_when_the_run_is_resumed(way: Way, journal: SqliteJournal) -> None:
    run_id = cut_off(journal)
    for text in ("one", "two"):
        post(journal, CLOCK, run_id, Saying(text, "ann"))
    agent = Agent(["done"], journal=journal)
    result = way.resume(agent, run_id)
    log = log_of(agent, run_id)
    assert result.answer == "done"
    at = kinds(log).index("RunResumed")
    assert kinds(log)[at : at + 4] == ["RunResumed", "MessageQueued", "MessageQueued", "StepStarted"]
    assert (heard(log), log[at + 1].by) == ([("one", 1), ("two", 2)], "ann")
    assert [m for m in result.messages if isinstance(m, User)][-2:] == [User((Text("one"),)), User((Text("two"),))]


def test_a_cancel_that_waits_ends_the_run_when_it_is_resumed_and_only_then(way: Way, journal: SqliteJournal) -> None:
    run_id = cut_off(journal)
    post(journal, CLOCK, run_id, Stopping("drain", "enough", "ann"))
    agent = Agent(["done"], journal=journal)
    stopped = way.resume(agent, run_id)
    assert (stopped.status, stopped.reason) == ("cancelled", "enough")
    assert of(log_of(agent, run_id), ev.CancelRequested)[0].by == "ann"
    assert way.resume(agent, run_id).answer == "done"


def test_a_letter_waits_with_a_run_that_waits_for_a_decision(way: Way, journal: SqliteJournal) -> None:
    agent = Agent([asks("pay"), "done"], [pay], journal=journal)
    run_id = way.run(agent).run_id
    post(journal, CLOCK, run_id, Saying("be quick"))
    agent.approve(run_id)
    assert way.resume(Agent(["done"], [pay], journal=journal), run_id).answer == "done"
    log = log_of(agent, run_id)
    assert heard(log) == [("be quick", 1)]
    assert len(of(log, ev.CallReturned)) == 1


# --- once -------------------------------------------------------------------------------------------------

ACTS = st.lists(st.sampled_from(["post", "hear", "lose", "resume"]), max_size=25)


@pytest.mark.slow
@given(ACTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_letter_is_heard_once_and_in_order_whatever_is_lost(tmp_path: Path, acts: list[str]) -> None:
    """`hear` records what was handed over and commits it; `lose` is a crash: it was recorded and not committed."""
    path = tmp_path / "law.db"
    journal = SqliteJournal(path)
    run_id = cut_off(journal)
    machine, posted = fold(journal.read(run_id)), 0

    def record(kind: Any, **fields: Any) -> None:
        event = kind(seq=machine.state.seq + 1, at=CLOCK.now(), **fields)
        machine.apply(event)
        journal.append(run_id, event)

    for act in [*acts, "resume", "hear"]:
        if act == "post":
            posted += 1
            post(journal, CLOCK, run_id, Saying(f"{posted}"))
            continue
        if act == "resume":
            record(ev.RunResumed)
        for letter in waiting(journal, run_id, machine.state.mail):
            draft = draft_of(letter)
            record(draft.kind, **draft.fields)
        if act == "lose":
            journal.close()
            journal = SqliteJournal(path)
            machine = fold(journal.read(run_id))
        else:
            journal.commit(run_id)
    assert heard(list(journal.read(run_id))) == [(f"{number}", number) for number in range(1, posted + 1)]
    journal.close()
    path.unlink()
