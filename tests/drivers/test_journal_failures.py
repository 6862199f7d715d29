"""A journal that fails, at every place where it can: the run stops, and nothing acts any more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from driver_doubles import Trail, Way, asks, of

from tenlines import Agent, Reply, Settings, tool
from tenlines.core import events as ev
from tenlines.core.limits import Retry
from tenlines.errors import JournalFailure, Overloaded
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal
from tenlines.testing import FakeClock


def busy_agent(journal: Trail) -> Agent:
    """One that does all that an agent can do to the world."""

    @tool(read_only=True)
    def look() -> str:
        journal.acts("look")
        return "seen"

    @tool(read_only=True)
    async def peek() -> str:
        journal.acts("peek")
        await asyncio.sleep(0)
        return "seen"

    @tool
    def send() -> str:
        journal.acts("send")
        return "sent"

    @tool(timeout_s=5)
    async def post() -> str:
        journal.acts("post")
        return "posted"

    moves = iter([asks("look", "peek", "nobody", "send"), Overloaded("busy"), asks("post", "look"), Reply("done")])

    def model(messages: list[Any]) -> Reply:
        journal.acts("model")
        move = next(moves)
        if isinstance(move, Exception):
            raise move
        return move

    settings = Settings(retry=Retry(first_wait_s=1))
    return Agent(model, [look, peek, send, post], journal=journal, clock=FakeClock(), settings=settings)


def operations(way: Way) -> int:
    """How many operations a run without failures takes."""
    journal = Trail()
    assert way.run(busy_agent(journal)).answer == "done"
    assert journal.too_early == []
    return journal.operations


def test_wherever_the_journal_fails_the_run_stops_and_nothing_acts_after(way: Way) -> None:
    total = operations(way)
    assert total > 30
    for number in range(total):
        journal = Trail(fail_at=number)
        result = way.run(busy_agent(journal))
        if not journal.has_failed:
            continue  # results that came together were made durable together, so there were fewer operations
        assert result.status == "journal_error", number
        assert result.answer is None
        assert "the disk is full" in result.reason
        assert result.run_id
        # A call that stands beside the one that could not be recorded may have been handed to its thread already.
        assert set(journal.after_failure) <= {"look", "peek"}
        assert journal.too_early == []
        started = len(of(journal._runs.get(result.run_id, []), ev.CallStarted))
        ran = [what for what in journal.trail if what in ("look", "peek", "send", "post")]
        assert len(ran) <= started  # each had its intent in the journal


def test_the_text_of_an_answer_that_could_not_be_recorded_is_not_lost_and_not_the_answer(way: Way) -> None:
    journal = Trail(fail_on=ev.RunEnded)
    result = way.run(busy_agent(journal))
    assert (result.status, result.answer, result.partial_answer) == ("journal_error", None, "done")


def test_a_failing_journal_raises_the_result_with_it() -> None:
    for number in (0, 1, 5):
        with pytest.raises(JournalFailure, match="the disk is full") as caught:
            busy_agent(Trail(fail_at=number)).run_sync("go")
        assert caught.value.result.status == "journal_error"
        with pytest.raises(JournalFailure, match="the disk is full"):
            asyncio.run(busy_agent(Trail(fail_at=number)).run("go"))


def test_a_run_that_its_journal_failed_can_be_resumed_once_the_journal_works(way: Way) -> None:
    total = operations(way)
    for number in range(3, total - 1):
        journal = Trail(fail_at=number)
        result = way.run(busy_agent(journal))
        journal.fail_at, journal.has_failed = None, False
        journal.pending.clear()
        sends = journal.trail.count("send")
        again = way.resume(busy_agent(journal), result.run_id)
        assert again.answer == "done"
        assert journal.trail.count("send") - sends <= 2  # the script begins anew and may ask for another
        keys = [event.key for event in of(journal.read(result.run_id), ev.CallStarted) if event.position == 3]
        assert len(keys) == len(set(keys))


def test_two_owners_of_one_run_cannot_both_go_on(way: Way, tmp_path: Path) -> None:
    first_journal, second_journal = SqliteJournal(tmp_path / "j.db"), SqliteJournal(tmp_path / "j.db")
    runs = []

    @tool
    def work() -> str:
        runs.append("work")
        if len(runs) == 1:  # another process takes the run over in the middle of the call
            taken = Agent(["done by the other"], [work], journal=second_journal)
            assert way_inside(taken) == "done by the other"
        return "ok"

    def way_inside(agent: Agent) -> str | None:
        return agent.resume_sync(run_id()).answer

    def run_id() -> str:
        return second_journal.runs(1)[0].run_id

    loser = way.run(Agent([asks("work"), "never"], [work], journal=first_journal))
    assert loser.status == "journal_error"
    assert "another process" in loser.reason
    winner = way.resume(Agent(["x"], [work], journal=second_journal), run_id())
    assert winner.answer == "done by the other"
    assert [record.outcome for record in winner.calls] == ["in_doubt"]
    assert runs == ["work"]
    first_journal.close()
    second_journal.close()


def test_a_second_owner_that_comes_too_late_touches_nothing(way: Way) -> None:
    """Both read the same log; the one that is not the first to write has lost."""
    journal = MemoryJournal()
    acted: list[str] = []

    def model(messages: list[Any]) -> str:
        acted.append("model")
        return "done"

    first = Agent([asks("nobody")], journal=journal)
    run_id = way.run(first).run_id
    stale = list(journal.read(run_id))

    class Stale(MemoryJournal):
        """Reads what was there before the other came."""

        def append(self, run_id: str, event: Any) -> None:
            journal.append(run_id, event)

        def read(self, run_id: str, from_seq: int = 0) -> Any:
            return iter(stale)

    assert way.resume(Agent(model, journal=journal), run_id).answer == "done"
    before = list(journal.read(run_id))
    lost = way.resume(Agent(model, journal=Stale()), run_id)
    assert lost.status == "journal_error"
    assert acted == ["model"]
    assert list(journal.read(run_id)) == before
