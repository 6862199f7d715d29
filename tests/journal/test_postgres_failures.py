"""A real server that goes away, comes back, or answers to nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from cutting_proxy import Cut, CuttingProxy
from journal_world import PATIENCE_S, log, put, said, start, together
from postgres_server import PASSWORD, PostgresServer

from tenlines.core import events as ev
from tenlines.errors import JournalConflict, JournalError
from tenlines.journal import postgres_letters
from tenlines.journal.owner import new_owner
from tenlines.journal.postgres import PostgresJournal
from tenlines.ports import Saying

SOON_S = 5.0
"""Within which a hopeless attempt must have failed."""
CUTS: list[Cut] = ["before", "during", "after"]


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[CuttingProxy]:
    """Between the journal and the server."""
    with CuttingProxy(postgres_server.port) as proxy:
        yield proxy


@pytest.fixture
def journal(postgres_address: str, postgres_server: PostgresServer, proxy: CuttingProxy) -> Iterator[PostgresJournal]:
    """An empty one, whose line can be cut."""
    journal = PostgresJournal(postgres_server.address(postgres_address.rpartition("/")[2], port=proxy.port))
    yield journal
    journal.close()


@contextmanager
def other(address: str) -> Iterator[PostgresJournal]:
    """Another owner's journal in the same database, whose line is never cut."""
    journal = PostgresJournal(address)
    yield journal
    journal.close()


def overtake(proxy: CuttingProxy, address: str, *events: ev.AnyEvent) -> None:
    """Another owner appends, as soon as the line of the first is cut."""
    assert proxy.has_cut.wait(PATIENCE_S)
    with other(address) as theirs:
        put(theirs, "r1", *events)
    proxy.is_deaf = False


# --- a line that is cut in a commit ---------------------------------------------------------------------


@pytest.mark.parametrize("when", CUTS)
def test_a_commit_whose_line_is_cut_is_written_once(journal: PostgresJournal, proxy: CuttingProxy, when: Cut) -> None:
    put(journal, "r1", *log("r1"))
    for seq in (3, 4):
        proxy.cut(when)
        put(journal, "r1", said(seq))
        assert proxy.has_cut.wait(PATIENCE_S)
    assert list(journal.read("r1")) == [*log("r1"), said(3), said(4)]


@pytest.mark.parametrize("when", CUTS)
def test_the_start_of_a_run_whose_line_is_cut_is_written_once(
    journal: PostgresJournal, proxy: CuttingProxy, when: Cut
) -> None:
    put(journal, "r1", *log("r1", session="chat", turn=1))
    proxy.cut(when)
    put(journal, "r2", *log("r2", session="chat", turn=2))
    assert proxy.has_cut.wait(PATIENCE_S)
    assert [(line.run_id, line.events) for line in journal.runs(session="chat")] == [("r2", 3), ("r1", 3)]


@pytest.mark.parametrize("when", CUTS)
def test_a_letter_whose_commit_is_cut_is_posted_once(
    journal: PostgresJournal, proxy: CuttingProxy, when: Cut, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(journal, "r1", *log("r1"))
    posted = postgres_letters.post

    def post(*given: Any) -> int | None:
        number = posted(*given)
        if not proxy.has_cut.is_set():
            proxy.cut(when)  # what is sent next is the end of the transaction
        return number

    monkeypatch.setattr(postgres_letters, "post", post)
    letter = journal.post("r1", Saying("once"), at=5.0)
    assert proxy.has_cut.is_set()
    assert journal.letters({"r1": 0}) == [letter]
    assert journal.post("r1", Saying("once"), at=6.0).number == letter.number + 1  # said again later: another one


def test_a_commit_that_was_lost_is_a_conflict_where_another_owner_came_first(
    journal: PostgresJournal, proxy: CuttingProxy, postgres_address: str
) -> None:
    put(journal, "r1", *log("r1"))
    proxy.cut("before", then_be_deaf=True)

    def go_on() -> None:
        put(journal, "r1", ev.RunResumed(seq=3, at=4.0, owner=new_owner()))

    theirs = partial(overtake, proxy, postgres_address, ev.RunResumed(seq=3, at=4.0, owner=new_owner()))
    (error,) = together([theirs, go_on])
    assert isinstance(error, JournalConflict)
    assert len(list(journal.read("r1"))) == 4


def test_a_commit_that_was_written_counts_where_another_owner_came_after_it(
    journal: PostgresJournal, proxy: CuttingProxy, postgres_address: str
) -> None:
    put(journal, "r1", *log("r1"))
    proxy.cut("after", then_be_deaf=True)

    theirs = partial(overtake, proxy, postgres_address, ev.RunResumed(seq=4, at=4.0, owner=new_owner()))
    assert together([theirs, lambda: put(journal, "r1", said(3))]) == []
    with pytest.raises(JournalConflict):
        put(journal, "r1", said(4))
    assert [type(event) for event in journal.read("r1", 3)] == [ev.MessageQueued, ev.RunResumed]


def test_a_commit_that_only_looks_like_what_another_owner_wrote_is_a_conflict(
    journal: PostgresJournal, proxy: CuttingProxy, postgres_address: str
) -> None:
    put(journal, "r1", *log("r1"))
    proxy.cut("before", then_be_deaf=True)

    theirs = partial(overtake, proxy, postgres_address, said(3), said(4, "theirs"))
    (error,) = together([theirs, lambda: put(journal, "r1", said(3), said(4, "ours"))])
    assert isinstance(error, JournalConflict)
    assert list(journal.read("r1", 3)) == [said(3), said(4, "theirs")]


@pytest.mark.slow
@pytest.mark.parametrize("when", CUTS)
def test_lines_that_are_cut_again_and_again_lose_and_double_nothing(
    journal: PostgresJournal, proxy: CuttingProxy, when: Cut
) -> None:
    def work(number: int) -> None:
        for event in log(f"r{number}", 8):
            if event.seq == number % 8 and number < 8:
                proxy.cut(when)
            put(journal, f"r{number}", event)

    assert together([lambda number=number: work(number) for number in range(20)]) == []
    assert proxy.has_cut.is_set()
    for number in range(20):
        assert list(journal.read(f"r{number}")) == log(f"r{number}", 8)


# --- a server that goes away and comes back -------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("hard", [False, True], ids=["stopped", "killed"])
def test_a_restart_in_the_middle_of_many_runs_is_not_noticed(
    postgres_server: PostgresServer, postgres_address: str, hard: bool
) -> None:
    journal, written, restarted = PostgresJournal(postgres_address), threading.Semaphore(0), threading.Event()

    def work(run_id: str) -> None:
        events = log(run_id, 30)
        for event in events[:15]:
            put(journal, run_id, event)
        written.release()
        count = 15
        while not restarted.is_set() or count < 30:  # goes on writing all the time
            put(journal, run_id, said(count, f"{run_id} {count}"))
            count += 1
        assert list(journal.read(run_id)) == log(run_id, count)

    def restart() -> None:
        for _ in range(20):
            assert written.acquire(timeout=PATIENCE_S)
        postgres_server.restart(hard=hard)
        restarted.set()

    assert together([restart, *(lambda run_id=f"r{number}": work(run_id) for number in range(20))]) == []
    assert len(journal.runs()) == 20
    journal.close()


@pytest.mark.slow
def test_what_was_committed_survives_a_server_that_is_killed_even_where_the_database_would_not_wait_for_its_disk(
    postgres_server: PostgresServer,
) -> None:
    address = postgres_server.new_database()
    postgres_server.run(f"ALTER DATABASE {address.rpartition('/')[2]} SET synchronous_commit = off")
    journal = PostgresJournal(address)
    committed = log("r1", 40)
    for event in committed:
        put(journal, "r1", event)
    postgres_server.restart(hard=True)
    assert list(journal.read("r1")) == committed
    journal.close()


@pytest.mark.slow
def test_a_server_that_stays_away_fails_the_commit_when_patience_is_over(
    postgres_server: PostgresServer, postgres_address: str
) -> None:
    journal = PostgresJournal(postgres_address, patience_s=0.5)
    put(journal, "r1", *log("r1"))
    assert len(list(journal.read("r1"))) == 3
    postgres_server.stop()
    try:
        for act in (lambda: put(journal, "r1", said(3)), lambda: list(journal.read("r1")), lambda: journal.runs()):
            began = time.monotonic()
            with pytest.raises(
                JournalError, match=r"could not be .*refused.*tried for 0.5 s: see that the server runs"
            ):
                act()
            assert 0.2 < time.monotonic() - began < SOON_S
    finally:
        postgres_server.start()
    with pytest.raises(JournalConflict, match="events before 4 of run r1 could not be written"):
        put(journal, "r1", said(4))
    put(journal, "r1", ev.RunResumed(seq=3, at=9.0, owner=new_owner()))  # who takes it up again has read it
    put(journal, "r2", *log("r2"))
    assert [line.events for line in journal.runs()] == [3, 4]
    journal.close()


@pytest.mark.slow
def test_who_reads_waits_for_a_server_as_well(postgres_server: PostgresServer, postgres_address: str) -> None:
    journal = PostgresJournal(postgres_address)
    put(journal, "r1", *log("r1", 1000))
    events = journal.read("r1")
    read = [next(events)]
    postgres_server.stop()
    thread = threading.Thread(target=lambda: read.extend(events))
    thread.start()
    postgres_server.start()
    thread.join(PATIENCE_S)
    assert read == log("r1", 1000)
    journal.close()


# --- opening --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({PASSWORD: "wrong-word"}, "password authentication failed"),
        ({"tenlines:": "nobody:"}, "password authentication failed"),
        ({"/postgres?": "/no-such-database?"}, "does not exist"),
        ({"127.0.0.1": "no-such-host.invalid"}, "could not be opened: .*no-such-host.invalid"),
        ({"127.0.0.1": "127.0.0.1:1,127.0.0.1"}, None),
    ],
    ids=["password", "user", "database", "host", "second host"],
)
def test_what_is_wrong_with_an_address_is_told_at_once_and_without_the_password(
    postgres_address: str, change: dict[str, str], words: str | None
) -> None:
    address = postgres_address
    for old, new in change.items():
        address = address.replace(old, new)
    began = time.monotonic()
    if words is None:
        PostgresJournal(address).close()  # the first of two hosts is down
        return
    with pytest.raises(JournalError, match=words) as caught:
        PostgresJournal(address)
    assert time.monotonic() - began < SOON_S
    assert PASSWORD not in str(caught.value)
    assert "wrong-word" not in str(caught.value)
    assert "see that the server runs, and that host" in str(caught.value)


def test_a_server_that_is_down_is_told_at_once(postgres_server: PostgresServer, proxy: CuttingProxy) -> None:
    proxy.is_deaf = True
    began = time.monotonic()
    with pytest.raises(JournalError, match=r"could not be opened: .*closed the connection"):
        PostgresJournal(postgres_server.address(port=proxy.port))
    with pytest.raises(JournalError, match=r"could not be opened: .*refused"):
        PostgresJournal(postgres_server.address(port=1))
    assert time.monotonic() - began < SOON_S


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:se@cret@127.0.0.1/runs",
        "postgresql://me:se/cret@127.0.0.1/runs",
        "postgresql://me:se%cret@127.0.0.1/runs",
        "postgresql://me:se cret@127.0.0.1/runs",
        "postgresql://me:sec/ret@127.0.0.1:5432/runs",
        "host=127.0.0.1 password=se cret",
    ],
)
def test_an_address_that_cannot_be_understood_is_not_repeated(address: str) -> None:
    with pytest.raises(JournalError, match="write postgresql://USER:PASSWORD@HOST/DATABASE") as caught:
        PostgresJournal(address)
    error: BaseException | None = caught.value
    while error is not None:
        assert "cret" not in str(error)
        assert "se@" not in str(error)
        error = None if error.__suppress_context__ else error.__cause__ or error.__context__


def test_errors_while_it_runs_do_not_show_the_password(
    journal: PostgresJournal, postgres_address: str, proxy: CuttingProxy
) -> None:
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute("DROP TABLE tenlines_runs CASCADE")
    with pytest.raises(JournalError, match="somebody removed its tables: open the journal again") as caught:
        put(journal, "r1", start("r1"))
    assert PASSWORD not in f"{caught.value!r} {caught.value.__cause__!r} {journal._link.label}"
