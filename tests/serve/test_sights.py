"""What is looked at: which pieces change with what happens, and what a person is shown who may do something."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serve_world import SECRET, asks, ended_run, pay, waiting_run

from tenlines import Agent, Settings
from tenlines.core import events as ev
from tenlines.core.transcript import Text
from tenlines.drivers import decisions
from tenlines.drivers.decisions import Decision
from tenlines.errors import JournalDamaged, RunNotFound
from tenlines.journal.owner import new_owner
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import RunSummary, SystemClock
from tenlines.report import Reading
from tenlines.serve import sights
from tenlines.serve.boards import NOWHERE
from tenlines.serve.pages import Asked, run_address
from tenlines.serve.sights import Run, Runs, shown_status
from tenlines.testing import FakeClock
from tenlines.trace.redaction import Redaction

CLOCK = SystemClock()
ASKED = Asked("nonce", "csrf")
DEAD = "/".join([*new_owner().split("/")[:2], "999999999", "1", "n"])


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    made = SqliteJournal(tmp_path / "journal.db")
    yield made
    made.close()


def sight_of(journal: Any, run_id: str, clock: Any = CLOCK) -> Run:
    return Run(journal, run_id, clock, lambda: Reading(Redaction()), lambda: f"tenlines resume {run_id}")


def pieces(sight: Run | Runs, mark: Any = NOWHERE) -> dict[str, str]:
    return {piece.id: piece.html for piece in sight.changes(mark)[1]}


def add(journal: SqliteJournal, run_id: str, kind: Any, **fields: Any) -> None:
    """Something happens in a run."""
    journal.append(run_id, kind(seq=len(list(journal.read(run_id))), at=CLOCK.now(), **fields))
    journal.commit(run_id)


# --- a run ----------------------------------------------------------------------------------------------------


def test_only_what_changed_is_told(journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    sight = sight_of(journal, run_id)
    assert sight.look()
    mark, first = sight.changes(NOWHERE)
    assert {piece.id for piece in first} >= {"start", "step-1", "end", "head", "charts", "desk-state", "desk-call-1-1"}
    assert not sight.look()
    assert sight.changes(mark) == (mark, [])
    add(journal, run_id, ev.RunResumed, owner=new_owner())
    assert sight.look()
    changed = set(pieces(sight, mark))
    assert {"remark-1", "end", "head", "desk-state", "desk-call-1-1"} <= changed
    assert not {"start", "charts"} & changed


def test_a_piece_is_made_once_for_all_who_watch(journal: SqliteJournal) -> None:
    sight = sight_of(journal, ended_run(journal))
    sight.look()
    one, two = sight.changes(NOWHERE)[1], sight.changes(NOWHERE)[1]
    assert all(first is second for first, second in zip(one, two, strict=True))


def test_many_who_look_at_once_take_each_event_once(journal: SqliteJournal) -> None:
    sight = sight_of(journal, ended_run(journal))
    threads = [threading.Thread(target=sight.look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sight.view().head.status == "answered"


def test_the_charts_are_drawn_now_and_then_and_at_the_end(journal: SqliteJournal) -> None:
    run_id, clock = waiting_run(journal), FakeClock()
    sight = sight_of(journal, run_id, clock)
    clock.time = CLOCK.now()
    sight.look()
    mark = sight.board.mark
    add(journal, run_id, ev.RunResumed, owner=new_owner())
    sight.look()
    assert "charts" not in pieces(sight, mark)
    clock.time += sights.CHARTS_EVERY_S + 1
    sight.look()
    assert "charts" in pieces(sight, mark)
    mark = sight.board.mark
    clock.time += 100
    sight.look()
    assert pieces(sight, mark) == {}  # nothing happened since


def test_a_secret_that_is_named_only_later_is_taken_out_of_what_was_shown_before(journal: SqliteJournal) -> None:
    run_id = waiting_run(journal, {"amount": 1, "to": SECRET})
    sight = sight_of(journal, run_id)
    sight.look()
    assert any(SECRET in html for html in pieces(sight).values())
    mark = sight.board.mark
    add(journal, run_id, ev.RunResumed, owner=new_owner())
    add(journal, run_id, ev.MessageQueued, parts=(Text(f"password: {SECRET}"),))
    sight.look()
    assert {"step-1", "start"} <= set(pieces(sight, mark))  # anew
    assert not any(SECRET in html for html in pieces(sight).values())
    assert SECRET not in sight.page(ASKED)


def test_a_run_that_is_gone_or_is_no_run_is_said_to_be(journal: SqliteJournal) -> None:
    with pytest.raises(RunNotFound):
        sight_of(journal, "nobody").look()
    run_id = waiting_run(journal)
    sight = sight_of(journal, run_id)
    sight.look()
    journal.append(run_id, ev.CallStarted(seq=len(list(journal.read(run_id))), at=1e9, step=9, position=9, key="k"))
    journal.commit(run_id)
    with pytest.raises(JournalDamaged, match="is not the log of a run"):
        sight.look()


# --- the desk -------------------------------------------------------------------------------------------------


def state_of(journal: SqliteJournal, run_id: str) -> str:
    sight = sight_of(journal, run_id)
    sight.look()
    return pieces(sight)["desk-state"]


def test_a_run_that_waits_can_be_told_something_and_nothing_runs(journal: SqliteJournal) -> None:
    html = state_of(journal, waiting_run(journal, {"amount": 1}, {"amount": 2}))
    assert "2 calls wait for a decision. Nothing runs meanwhile." in html
    assert 'data-hears="yes"' in html
    assert "tenlines resume" not in html


def test_when_all_is_decided_the_command_is_shown_that_goes_on(journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    decisions.decide(journal, CLOCK, run_id, None, Decision("deny"))
    html = state_of(journal, run_id)
    assert "Everything is decided. The run goes on when it is resumed." in html
    assert f"tenlines resume {run_id}" in html


@pytest.mark.parametrize(
    ("owner", "words", "command"),
    [
        (new_owner(), "works on it.", False),
        (DEAD, "Its process is gone. The run goes on when it is resumed.", True),
        ("", "A process works on it.", False),
    ],
    ids=["alive", "dead", "unknown"],
)
def test_a_run_that_is_open_says_who_works_on_it(journal: SqliteJournal, owner: str, words: str, command: bool) -> None:
    run_id = waiting_run(journal)
    add(journal, run_id, ev.RunResumed, owner=owner)
    html = state_of(journal, run_id)
    assert words in html
    assert 'data-hears="yes"' in html
    assert ("tenlines resume" in html) == command
    assert "desk-call-1-1" not in {id for id, html in pieces(sight_of(journal, run_id)).items() if html}


def test_a_run_whose_calls_wait_in_runs_of_their_own_leads_there(journal: SqliteJournal) -> None:
    child = Agent([asks(("pay", {"amount": 5}))], [pay], name="payer", journal=journal)
    parent = Agent([asks(("payer", {"task": "pay"})), "done"], [child.as_tool()], journal=journal)
    run_id = parent.run_sync("have it paid").run_id
    (inner,) = (one.run_id for one in journal.runs() if one.run_id != run_id)
    html = state_of(journal, run_id)
    assert "It waits for decisions in the runs under its calls." in html
    assert f'<a href="{run_address(inner)}">pay 1.1</a>' in html
    assert 'data-hears="yes"' in html
    assert "1 call" not in html


def test_a_run_that_is_undone_hears_nothing(journal: SqliteJournal) -> None:
    run_id = ended_run(journal)
    add(journal, run_id, ev.UndoRequested, owner=new_owner())
    html = state_of(journal, run_id)
    assert "undoes what it did." in html
    assert 'data-hears="no"' in html


def test_a_run_that_has_ended_has_nothing_on_its_desk(journal: SqliteJournal) -> None:
    html = state_of(journal, ended_run(journal))
    assert html.strip() == '<div id="desk-state" class="desk-state" data-hears="no"></div>'


def test_a_question_is_shown_whole_and_harmless_and_goes_when_it_is_answered(journal: SqliteJournal) -> None:
    hostile = "</textarea><script>alert(1)</script>\u202e"
    run_id = waiting_run(journal, {"amount": 500, "to": hostile, "api_key": SECRET})
    sight = sight_of(journal, run_id)
    sight.look()
    html = pieces(sight)["desk-call-1-1"]
    digest = decisions.pending(journal, run_id)[0].digest
    assert f'data-digest="{digest}"' in html
    assert "May it run?" in html
    assert "&lt;/textarea&gt;&lt;script&gt;" in html
    assert "<script>" not in html
    assert "\u202e" not in html
    assert SECRET not in html
    decisions.decide(journal, CLOCK, run_id, None, Decision("allow"))
    sight.look()
    assert pieces(sight)["desk-call-1-1"] == ""


def test_a_question_says_how_long_it_holds(journal: SqliteJournal) -> None:
    settings = Settings(approval_expires_s=600.0)
    agent = Agent([asks(("pay", {"amount": 5}))], [pay], journal=journal, settings=settings)
    run_id, clock = agent.run_sync("go").run_id, FakeClock()
    sight = sight_of(journal, run_id, clock)
    for seconds, words in ((1, "for 9 min"), (570, "less than a minute"), (700, "Its time is over; it is asked anew")):
        clock.time = CLOCK.now() + seconds
        sight.look()
        assert words in pieces(sight)["desk-call-1-1"]


# --- the list ---------------------------------------------------------------------------------------------------


def line(status: str, owner: str = "") -> RunSummary:
    return RunSummary("r", 1.0, 1.0, "a", "m", "task", status, 3, owner=owner)


@pytest.mark.parametrize(
    ("status", "owner", "shown"),
    [
        ("answered", "", ("answered", "good")),
        ("awaiting_approval", "", ("waits for a decision", "warn")),
        ("max_steps", "", ("max_steps", "warn")),
        ("model_error", "", ("model_error", "bad")),
        ("open", "", ("open", "info")),
        ("open", DEAD, ("open, its process is gone", "warn")),
        ("open", "web-2/b/47/1/n", ("open, process 47", "info")),
    ],
)
def test_the_list_says_how_a_run_stands(status: str, owner: str, shown: tuple[str, str]) -> None:
    assert shown_status(line(status, owner)) == shown


def test_the_list_tells_new_runs_last_so_that_they_come_to_the_top_in_order(journal: SqliteJournal) -> None:
    sight = Runs(journal, CLOCK, Redaction())
    ids = [f"run-{ended_run(journal)}" for _ in range(3)]
    assert sight.look()
    assert list(pieces(sight)) == ids
    assert list(sight.rows) == ids[::-1]
    assert not sight.look()
    journal.delete([ids[1].removeprefix("run-")])
    mark = sight.board.mark
    sight.look()
    assert pieces(sight, mark) == {ids[1]: ""}
    assert ids[1] not in sight.page(ASKED)
