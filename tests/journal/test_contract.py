"""What every store promises. A store of your own should pass this as well."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from journal_world import PATIENCE_S, Store, live, log, put, said, start, together

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.outcomes import encodable
from tenlines.core.transcript import Reply, Text, ToolCall, User
from tenlines.errors import JournalConflict, JournalError, RunNotFound
from tenlines.journal import rows
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import Mailbox, Saying, Stopping

# --- order and atomicity --------------------------------------------------------------------------------


def test_events_come_back_in_order_and_equal(store: Store) -> None:
    journal, events = store.open(), log("r1", 5)
    for event in events:
        put(journal, "r1", event)
    assert list(journal.read("r1")) == events
    assert list(journal.read("r1", 3)) == events[3:]
    assert list(journal.read("r1", 5)) == list(journal.read("r1", 99)) == []


def test_a_real_run_comes_back_from_another_instance(store: Store) -> None:
    journal = store.open()
    run_id = live(journal, large="é" * 5000)
    events = list(store.open().read(run_id))
    assert events == list(journal.read(run_id))
    assert isinstance(events[0], ev.RunStarted)
    assert isinstance(events[-1], ev.RunEnded)


def test_an_event_that_is_there_already_is_a_conflict(store: Store) -> None:
    journal = store.open()
    put(journal, "r1", *log("r1"))
    with pytest.raises(JournalConflict, match="r1"):
        put(store.open(), "r1", said(2, "of another"))
    with pytest.raises(JournalConflict, match="r1"):
        put(store.open(), "r1", start("r1"))
    assert list(journal.read("r1")) == log("r1")


def test_an_event_that_leaves_a_gap_is_refused(store: Store) -> None:
    journal = store.open()
    put(journal, "r1", *log("r1"))
    with pytest.raises(JournalConflict):
        put(store.open(), "r1", said(4))
    assert list(journal.read("r1")) == log("r1")


def test_a_run_that_does_not_begin_at_its_beginning_is_refused(store: Store) -> None:
    journal = store.open()
    with pytest.raises(JournalConflict):
        put(journal, "r1", said(1))
    with pytest.raises(RunNotFound):
        journal.read("r1")


def test_a_batch_that_loses_leaves_none_of_its_events(store: Store) -> None:
    if store.name == "memory":
        pytest.skip("memory takes events one by one")
    ours, theirs = store.open(), store.open()
    put(ours, "r1", *log("r1"))
    for event in (said(3), said(4), said(5)):
        ours.append("r1", event)
    put(theirs, "r1", said(3, "first"))
    with pytest.raises(JournalConflict, match="another process"):
        ours.commit("r1")
    assert list(ours.read("r1")) == [*log("r1"), said(3, "first")]


def test_after_a_commit_that_failed_nothing_later_of_the_run_is_written(store: Store) -> None:
    if store.name == "memory":
        pytest.skip("memory never fails")
    ours, theirs = store.open(), store.open()
    put(ours, "r1", *log("r1"))
    put(theirs, "r1", said(3, "first"))
    for seq in range(3, 6):
        with pytest.raises(JournalConflict):
            put(ours, "r1", said(seq))
    put(ours, "r2", *log("r2"))  # other runs are not concerned
    assert list(ours.read("r1")) == [*log("r1"), said(3, "first")]
    put(ours, "r1", ev.RunResumed(seq=4, at=9.0))  # who takes it up anew has read it
    put(ours, "r1", said(5))
    assert len(list(theirs.read("r1"))) == 6


def test_what_was_only_appended_is_not_there(store: Store) -> None:
    if store.name == "memory":
        pytest.skip("memory holds what it is given")
    journal = store.open()
    put(journal, "r1", *log("r1"))
    journal.append("r1", said(3))
    assert list(store.open().read("r1")) == log("r1")
    journal.commit("r1")
    assert list(store.open().read("r1")) == [*log("r1"), said(3)]


def test_a_closed_journal_refuses_to_write(store: Store) -> None:
    if store.name == "memory":
        pytest.skip("memory has nothing to close")
    journal = store.open()
    put(journal, "r1", *log("r1"))
    journal.close()
    with pytest.raises(JournalError, match="closed"):
        put(journal, "r1", said(3))
    assert list(store.open().read("r1")) == log("r1")


# --- many at once ---------------------------------------------------------------------------------------


def test_many_threads_write_their_runs_at_once(store: Store) -> None:
    journal = store.open()

    def work(run_id: str) -> None:
        for event in log(run_id, 20):
            put(journal, run_id, event)

    threads = [threading.Thread(target=work, args=(f"r{number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for number in range(20):
        assert list(journal.read(f"r{number}")) == log(f"r{number}", 20)
    assert {(run.events, run.status) for run in journal.runs()} == {(20, "open")}


def test_many_tasks_write_their_runs_at_once(store: Store) -> None:
    journal = store.open()

    async def work(run_id: str) -> None:
        for event in log(run_id, 20):
            journal.append(run_id, event)
            await journal.acommit(run_id)

    async def main() -> None:
        await asyncio.gather(*(work(f"r{number}") for number in range(20)))

    asyncio.run(main())
    for number in range(20):
        assert list(journal.read(f"r{number}")) == log(f"r{number}", 20)


def test_of_many_that_take_over_one_run_one_wins_and_the_others_write_nothing(store: Store) -> None:
    put(store.open(), "r1", *log("r1"))
    won: list[int] = []
    ready = threading.Barrier(6)

    def take_over(number: int) -> None:
        ready.wait(PATIENCE_S)
        try:
            put(journals[number], "r1", ev.RunResumed(seq=3, at=9.0, owner=str(number)))
        except JournalConflict:
            return
        won.append(number)

    journals = [store.open() for _ in range(6)]
    threads = [threading.Thread(target=take_over, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    last = list(store.open().read("r1"))[-1]
    assert isinstance(last, ev.RunResumed)
    assert won == [int(last.owner)]


@pytest.mark.slow
def test_a_run_that_goes_on_can_be_read_at_any_moment(store: Store) -> None:
    writing, reading, whole = store.open(), store.open(), log("r1", 300)
    put(writing, "r1", whole[0])
    ended = threading.Event()

    def work() -> None:
        for at in range(1, 300, 2):
            put(writing, "r1", *whole[at : at + 2])
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    seen = 0
    while not ended.is_set() or seen < 300:
        events = list(reading.read("r1"))
        assert events == whole[: len(events)]
        assert len(events) >= seen
        seen = len(events)
    thread.join(PATIENCE_S)


# --- sessions and the list of runs ----------------------------------------------------------------------


def test_the_turn_of_a_session_belongs_to_one_run(store: Store) -> None:
    journal = store.open()
    put(journal, "r1", *log("r1", session="chat", turn=1))
    with pytest.raises(JournalConflict, match=r"turn 1 of the session 'chat' belongs to another run"):
        put(store.open(), "r2", *log("r2", session="chat", turn=1))
    with pytest.raises(RunNotFound):
        journal.read("r2")
    put(journal, "r3", *log("r3", session="chat", turn=2))
    put(journal, "r4", *log("r4", session="other", turn=1))
    put(journal, "r5", *log("r5"))
    put(journal, "r6", *log("r6"))  # no session: no turn to claim
    assert [run.run_id for run in journal.runs(session="chat")] == ["r3", "r1"]
    assert [run.run_id for run in journal.runs(session="")] == ["r6", "r5"]
    assert [run.turn for run in journal.runs(session="chat", limit=1)] == [2]


def test_of_many_that_claim_a_turn_one_wins(store: Store) -> None:
    journals, won, ready = [store.open() for _ in range(6)], [], threading.Barrier(6)

    def claim(number: int) -> None:
        ready.wait(PATIENCE_S)
        try:
            put(journals[number], f"r{number}", *log(f"r{number}", session="chat", turn=1))
        except JournalConflict:
            return
        won.append(f"r{number}")

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [run.run_id for run in store.open().runs(session="chat")] == won
    assert len(won) == 1


def test_the_list_shows_the_newest_runs_first_and_what_became_of_them(store: Store) -> None:
    journal = store.open()
    put(journal, "r1", *log("r1", owner="first"))
    put(journal, "r2", *log("r2"), ev.RunEnded(seq=3, at=7.0, status="answered", answer="42"))
    put(journal, "r3", *log("r3"), ev.RunEnded(seq=3, at=8.0, status="max_steps"))
    put(journal, "r1", ev.ModelReplied(seq=3, at=9.0, step=1, reply=Reply("x")), said(4))
    put(journal, "r3", ev.RunResumed(seq=4, at=10.0, owner="second"))
    shown = [(run.run_id, run.status, run.events, run.steps, run.owner, run.last_at) for run in journal.runs()]
    assert shown == [
        ("r3", "open", 5, 0, "second", 10.0),
        ("r2", "answered", 4, 0, "", 7.0),
        ("r1", "open", 5, 1, "first", 9.0),
    ]
    assert [run.run_id for run in journal.runs(2)] == ["r3", "r2"]
    assert [run.run_id for run in journal.runs(status="open")] == ["r3", "r1"]
    assert [run.run_id for run in journal.runs(1, status="open")] == ["r3"]
    assert journal.runs(status="cancelled") == []
    assert (journal.runs()[2].task, journal.runs()[2].agent, journal.runs()[2].model) == ("do it", "a", "m")


def test_a_run_that_is_not_there_is_said_to_be(store: Store) -> None:
    journal = store.open()
    assert journal.runs() == []
    for name in ("nobody", "", "x" * 10_000, "'; DROP TABLE runs; --"):
        with pytest.raises(RunNotFound):
            journal.read(name)
    for name in ("\udc80", "a\0b"):
        with pytest.raises(JournalError):
            journal.read(name)


# --- deleting -------------------------------------------------------------------------------------------


def test_deleting_takes_whole_runs_and_leaves_the_others(store: Store) -> None:
    journal = store.open()
    large = "x" * 9000
    for run_id in ("r1", "r2", "r3"):
        put(journal, run_id, start(run_id, session=run_id, turn=1), said(1, large), said(2, run_id + large))
    assert journal.delete(["r1", "r3", "nobody"]) == 2
    assert journal.delete([]) == 0
    assert [run.run_id for run in journal.runs()] == ["r2"]
    assert [event.parts[0].text for event in journal.read("r2", 1)] == [large, "r2" + large]
    for run_id in ("r1", "r3"):
        with pytest.raises(RunNotFound):
            journal.read(run_id)
    put(journal, "r9", *log("r9", session="r1", turn=1))  # the turn is free again


def test_a_run_that_went_on_since_its_line_was_read_is_not_deleted(store: Store) -> None:
    journal = store.open()
    for run_id in ("r1", "r2"):
        put(journal, run_id, start(run_id), said(1, "x" * 9000))
    lines = journal.runs()
    put(store.open(), "r1", said(2))
    assert journal.delete(lines) == 1
    assert [run.run_id for run in journal.runs()] == ["r1"]
    assert len(list(journal.read("r1"))) == 3
    assert journal.delete([*lines, "r1"]) == 1  # by its id it goes, as it is
    assert journal.runs() == []


def test_who_works_on_a_run_that_is_deleted_is_stopped(store: Store) -> None:
    journal = store.open()
    put(journal, "r1", *log("r1"))
    assert store.open().delete(["r1"]) == 1
    with pytest.raises(JournalConflict):
        put(journal, "r1", said(3))
    assert journal.runs() == []


# --- mailboxes ------------------------------------------------------------------------------------------


@pytest.fixture
def mailbox(store: Store) -> Any:
    """A journal with a mailbox for `r1` and for `r2`."""
    if store.name == "memory":
        pytest.skip("memory has no mailbox: no other process can reach it")
    journal = store.open()
    for run_id in ("r1", "r2"):
        put(journal, run_id, *log(run_id))
    return journal


def test_memory_has_no_mailbox() -> None:
    assert not isinstance(MemoryJournal(), Mailbox)


def test_letters_are_numbered_and_come_in_order_to_whom_they_were_posted(store: Store, mailbox: Any) -> None:
    assert isinstance(mailbox, Mailbox)
    posted = [
        mailbox.post("r1", Saying("one", "ann"), at=5.0),
        store.open().post("r1", Stopping("drain", "enough", "bob"), at=4.0),
        mailbox.post("r2", Saying("two"), at=6.5),
        mailbox.post("r1", Saying(""), at=7.0),
    ]
    assert [(letter.run_id, letter.number) for letter in posted] == [("r1", 1), ("r1", 2), ("r2", 1), ("r1", 3)]
    other = store.open()
    assert other.letters({"r1": 0}) == [posted[0], posted[1], posted[3]]
    assert other.letters({"r2": 0, "r1": 2, "nobody": 0}) == [posted[3], posted[2]]
    assert other.letters({"r1": 3, "r2": 1}) == other.letters({}) == []


def test_a_number_is_above_every_letter_that_was_heard(mailbox: Any) -> None:
    """Also where the letters did not come along: a run that was imported has heard some that are not here."""
    assert mailbox.post("r1", Saying("x"), at=5.0, above=7).number == 8
    assert mailbox.post("r1", Saying("x"), at=6.0, above=7).number == 9
    assert mailbox.post("r1", Saying("x"), at=7.0, above=2).number == 10


def test_a_letter_to_a_run_that_is_not_there_is_refused(mailbox: Any) -> None:
    for name in ("nobody", "", "'; DROP TABLE letters; --"):
        with pytest.raises(RunNotFound):
            mailbox.post(name, Saying("x"), at=5.0)
    for name in ("\udc80", "a\0b"):
        with pytest.raises(JournalError):
            mailbox.post(name, Saying("x"), at=5.0)


def test_letters_that_are_posted_at_once_all_arrive(store: Store, mailbox: Any) -> None:
    journals, ready = [store.open() for _ in range(6)], threading.Barrier(6)

    def post(number: int) -> None:
        ready.wait(PATIENCE_S)
        for turn in range(5):
            journals[number].post("r1", Saying(f"{number} {turn}"), at=5.0)

    assert together([partial(post, number) for number in range(6)]) == []
    letters = mailbox.letters({"r1": 0})
    assert [letter.number for letter in letters] == list(range(1, 31))
    assert {letter.what.text for letter in letters} == {f"{n} {turn}" for n in range(6) for turn in range(5)}
    for number in range(6):  # those of one sender in the order in which they were sent
        turns = [letter.what.text for letter in letters if letter.what.text.startswith(f"{number} ")]
        assert turns == [f"{number} {turn}" for turn in range(5)]


def test_letters_do_not_change_the_run(mailbox: Any) -> None:
    before = (mailbox.runs(), list(mailbox.read("r1")))
    mailbox.post("r1", Saying("x"), at=5.0)
    assert (mailbox.runs(), list(mailbox.read("r1"))) == before
    put(mailbox, "r1", said(3))  # its owner is not disturbed


def test_letters_go_with_their_run(mailbox: Any) -> None:
    for run_id in ("r1", "r2"):
        mailbox.post(run_id, Saying("x"), at=5.0)
    mailbox.delete(["r1"])
    assert [letter.run_id for letter in mailbox.letters({"r1": 0, "r2": 0})] == ["r2"]
    put(mailbox, "r1", *log("r1"))
    assert mailbox.letters({"r1": 0}) == []


def test_every_text_comes_back_from_a_mailbox(mailbox: Any) -> None:
    for moment, text in enumerate(HOSTILE):
        mailbox.post("r1", Saying(text, text[:50]), at=float(moment))
    back = [letter.what.text for letter in mailbox.letters({"r1": 0})]
    assert back == [encodable(text) for text in HOSTILE]


# --- what stands in events ------------------------------------------------------------------------------

HOSTILE = [
    "",
    "\0",
    "a\0b",
    "\ud800",
    "half \udfff a character",
    "\u2028\u2029\x7f\x85",
    "🚲" * 300,
    '"\\/\b\f\n\r\t',
    rows.MARK,
    rows.MARK + "ab" * 32,
    f'x"{rows.MARK}{"ab" * 32}',
    f"{rows.MARK}{rows.blob_digest(b'x' * 9000).hex()}",
    "\\u0000" + "ab" * 32,
    "x" * 1023,
    "x" * 1024,
    '\\"' * 3000,
    "é" * 1_000_000,
]


def test_every_text_comes_back(store: Store) -> None:
    journal, written = store.open(), {}
    for text in HOSTILE:
        for filler in ("z", "y" * 9000):  # beside a large text, small ones are looked at too
            run_id = f"r{len(written)}"
            result = ev.CallReturned(seq=1, at=2.0, step=1, position=0, parts=(Text(text), Text(filler)), full=text)
            first = start(run_id, messages=(User((Text(text), Text(filler))),), agent=text[:50], model=text)
            put(journal, run_id, first, result)
            written[run_id] = [codec.encode(first), codec.encode(result)]
    again = store.open()
    for run_id, bodies in written.items():
        assert [codec.encode(event) for event in again.read(run_id)] == bodies
    assert [run.run_id for run in again.runs()] == [*reversed(written)]


NUMBERS = [0, -1, 2**31, 2**53 + 1, 2**63, -(2**63), 2**64 - 1, 10**30, 0.1, 1e300, 5e-324, -0.0, True, None]


def test_numbers_beside_large_texts_come_back_as_they_were(store: Store) -> None:
    journal = store.open()
    nested: Any = {"list": NUMBERS, "large": "x" * 9000}
    for _ in range(200):
        nested = {"deeper": [nested]}
    events = [start("r1", tools=(ev.ToolSpec("t", parameters=nested),)), said(1)]
    put(journal, "r1", *events)
    back = list(store.open().read("r1"))
    assert codec.encode(back[0]) == codec.encode(events[0])


TEXTS = st.one_of(st.text(), st.text().map(lambda text: text * 400), st.sampled_from(HOSTILE[:16]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.lists(TEXTS, max_size=4))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_in_an_event_its_row_gives_it_back(value: dict[str, Any], texts: list[str]) -> None:
    reply = Reply("".join(texts), (ToolCall("1", "t", codec._encoder.encode(texts[:1] and "x").decode()),))
    tool = ev.ToolSpec("t", parameters=value)
    for event in (start("r1", tools=(tool,)), ev.ModelReplied(seq=1, at=2.0, step=1, reply=reply)):
        row, blobs = rows.row_of("r1", event)
        assert codec.encode(rows.event_of(row, blobs)) == codec.encode(event)
        assert len(row.body) <= max(len(codec.encode(event)), rows.LARGE_EVENT)


def test_news_are_of_runs_that_wait_and_of_what_came_since(store: Store, mailbox: Any) -> None:
    journal = store.open()
    for run_id in ("waits", "told", "old"):
        put(journal, run_id, start(run_id), ev.RunEnded(seq=1, at=2.0, status="awaiting_approval"))
    assert {one.run_id for one in mailbox.news(2.0)} == {"waits", "told", "old"}
    assert mailbox.news(2.5) == []
    mailbox.post("told", Saying("hello"), at=3.0)
    mailbox.post("r1", Saying("hello"), at=3.0)  # which is open: who works on it hears
    marks = {one.run_id: one.mark for one in mailbox.news(0.0)}
    assert mailbox.news(2.5) == [("told", marks["old"] + 1)]
    put(journal, "waits", ev.RunResumed(seq=2, at=4.0))
    assert {one.run_id for one in mailbox.news(0.0)} == {"told", "old"}
