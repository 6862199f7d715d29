"""Places of queues that hold over all workers which share a Postgres database."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from time import monotonic

from tenlines.drivers.threads import in_thread, workers
from tenlines.errors import JournalError
from tenlines.fleet.places import Queue
from tenlines.fleet.postgres_pace import patiently
from tenlines.journal.postgres_link import Connection, Link, PostgresError, in_a_line

POLL_S = (0.2, 1.0)
"""Between which two lengths of time somebody who waits asks again."""
KEPT_S = 5.0
"""So long after it was taken, a place goes on from run to run within a process; then others may have it."""
WATCH_S = 1.0
"""How often a process that holds places looks whether it still does."""
SETTLE_S = 5.0
"""How long after a loss of the places no new ones are taken, so that all processes have theirs again first."""

_END_THE_OLD = """
SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s
"""
"""The server may not know yet that a connection is no more, and keep its places for it. Another that has got the same
number since began at another time."""
_BEGIN = """
SELECT current_schema(), extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::float8,
    pid, backend_start,
    set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
    set_config('tcp_keepalives_count', '3', false)
FROM pg_stat_activity WHERE pid = pg_backend_pid()
"""
"""A machine that went away without a word: the server looks after it, and frees its places in half a minute."""
_TAKE = """
WITH RECURSIVE slots (list) AS (SELECT %(slots)s::int[]), tried (i, got) AS (
    SELECT 1, pg_try_advisory_lock(%(key)s, list[1]) FROM slots
    UNION ALL
    SELECT i + 1, pg_try_advisory_lock(%(key)s, list[i + 1]) FROM tried, slots WHERE NOT got AND i < cardinality(list)
)
SELECT list[i] FROM tried, slots WHERE got
"""
"""The first that is free. One after the other, so that never more than one is taken."""
_TAKE_ANEW = """
SELECT place FROM unnest(%(keys)s::int[], %(slots)s::int[]) WITH ORDINALITY AS held (key, slot, place)
WHERE pg_try_advisory_lock(key, slot)
"""
_GIVE_BACK = "SELECT pg_advisory_unlock(%s, %s)"

_log = logging.getLogger("tenlines.fleet")


class PostgresPlaces:
    """Places that hold over all processes and machines which share a database. For one event loop.

    A place is an advisory lock of Postgres, held by one connection of the process. So the places of a process that dies
    are free at once, and those of a machine that went away without a word in half a minute. Fleets in other schemas or
    databases have places of their own. The address has to lead to the server itself, or through a pooler that pools
    whole sessions.

    When that connection is lost (the server restarts, the line is cut), the places are. The process notices within a
    second or as soon as the line is there again, and takes its places anew; for a few seconds it takes no others, and
    neither does anybody from a server that has just started. So a restart of Postgres changes nothing as a rule. Where
    others were faster, or the line of this process alone was cut, the runs that are under way go on without a place: a
    queue may exceed its limit by these, for the length of the stretch of each, and no new run of this process begins
    in that queue before each of them has a place or is over.

    Workers may differ on how many places a queue has, as while a new version comes: each keeps to its own number.

    Args:
        address: Of the journal, as for `PostgresJournal`. Connected to when a limited queue is first entered.
        patience_s: Seconds for which a lost server is tried again before waiting for a place fails.
    """

    def __init__(self, address: str, *, patience_s: float = 30.0) -> None:
        self._link = Link(address, patience_s=patience_s, connections=1)
        self._keeper = _Keeper(self._link)
        self._lines: dict[Queue, _Line] = {}
        weakref.finalize(self, self._keeper.close)

    @asynccontextmanager
    async def of(self, queue: Queue) -> AsyncIterator[None]:
        """Wait for a place, and hold it.

        Raises:
            ConnectionFailed: The server could not be reached for as long as it was tried.
            JournalError: It refuses.
        """
        if queue.at_once is None:
            yield
            return
        place = await self._place(self._lines.setdefault(queue, _Line(queue.name, queue.at_once)))
        try:
            yield
        finally:
            self._leave(place)

    def close(self) -> None:
        """Let go of all places."""
        self._keeper.close()

    async def _place(self, line: _Line) -> _Place:
        """A place for the first in line: one that was just left here, or one that is free."""
        line.waiting += 1
        try:
            async with line.head:
                while not line.spare:
                    place = await self._ask(line)
                    if place is not None:
                        return place
                    await line.wait(secrets.SystemRandom().uniform(*POLL_S))
                return line.spare.pop()
        finally:
            line.waiting -= 1
            while line.spare and not line.waiting:
                self._give_back(line.spare.pop())

    async def _ask(self, line: _Line) -> _Place | None:
        """A place, unless all are taken. What comes when it is not waited for any more is given back."""
        asked = asyncio.ensure_future(in_thread(partial(patiently, self._link, partial(self._keeper.take, line))))
        try:
            return await asyncio.shield(asked)
        except asyncio.CancelledError:
            asked.add_done_callback(self._unwanted)
            raise

    def _unwanted(self, asked: asyncio.Future[_Place | None]) -> None:
        if not asked.cancelled() and asked.exception() is None and (place := asked.result()) is not None:
            self._give_back(place)

    def _leave(self, place: _Place) -> None:
        if place.line.waiting and place.slot is not None and monotonic() < place.taken_at + KEPT_S:
            place.line.spare.append(place)
            place.line.woken.set()
        else:
            self._give_back(place)

    def _give_back(self, place: _Place) -> None:
        workers.submit(partial(self._keeper.give_back, place))  # nobody need wait for it


class _Line:
    """Those of one process who wait for a place in a queue; only the first of them asks."""

    def __init__(self, name: str, at_once: int) -> None:
        self.name, self.at_once = name, at_once
        self.head, self.woken, self.waiting = asyncio.Lock(), asyncio.Event(), 0
        self.spare: list[_Place] = []
        """Places that were just left, for the next."""

    async def wait(self, seconds: float) -> None:
        """Wait, at most until a place is left here."""
        self.woken.clear()
        if not self.spare:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.woken.wait(), seconds)


class _Place:
    """One run's place. `slot` is None where it was lost."""

    def __init__(self, line: _Line, slot: int) -> None:
        self.line, self.taken_at = line, monotonic()
        self.slot: int | None = slot


class _Keeper:
    """The connection that holds the places of this process. Its methods block: they run in threads."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._using = threading.Lock()  # guards all that follows, and is held while the connection is used
        self._connection: Connection | None = None
        self._old: tuple[object, ...] | None = None
        """Which connection of the server's it is, or was."""
        self._schema, self._not_before = "", 0.0
        self._places: set[_Place] = set()
        self._closed = threading.Event()
        self._watch: threading.Thread | None = None

    def take(self, line: _Line) -> _Place | None:
        """A place, if one is free. One attempt.

        Raises:
            JournalError: All is closed.
        """
        with self._connected() as connection:
            self._watched()
            if not self._all_have_one(connection, line) or monotonic() < self._not_before:
                return None
            slot = self._take(connection, line)
            if slot is None:
                return None
            place = _Place(line, slot)
            self._places.add(place)
            return place

    def _all_have_one(self, connection: Connection, line: _Line) -> bool:
        """Whether no run is left that lost its place. It has the next that is free."""
        for place in self._places:
            if place.line is line and place.slot is None:
                place.slot = self._take(connection, line)
                if place.slot is None:
                    return False
        return True

    def _take(self, connection: Connection, line: _Line) -> int | None:
        ours = {one.slot for one in self._places if one.line.name == line.name}
        others = [slot for slot in range(line.at_once) if slot not in ours]
        if not others:
            return None
        first = secrets.randbelow(len(others))
        wanted = {"key": _key(self._schema, line.name), "slots": others[first:] + others[:first]}
        row = connection.execute(_TAKE, wanted).fetchone()
        return None if row is None else row[0]

    def give_back(self, place: _Place) -> None:
        """The run is over, or has been let go of."""
        with self._using:
            self._places.discard(place)
            if self._connection is None or place.slot is None:
                return
            with suppress(PostgresError), self._lost_when_it_fails(self._connection):
                self._connection.execute(_GIVE_BACK, (_key(self._schema, place.line.name), place.slot))

    def close(self) -> None:
        """Close the connection, and so give everything back."""
        self._closed.set()
        if self._using.acquire(timeout=1.0):
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._using.release()
        self._link.close()

    # --- the connection ---------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self._using:
            if self._closed.is_set():
                raise JournalError("the places of queues are closed: this worker has ended")
            connection = self._connection or self._begin()
            with self._lost_when_it_fails(connection):
                yield connection

    @contextmanager
    def _lost_when_it_fails(self, connection: Connection) -> Iterator[None]:
        """Whatever the failure is, with the connection nothing is held that is not known here."""
        try:
            yield
        except PostgresError:
            connection.close()
            self._connection = None
            raise

    def _begin(self) -> Connection:
        """Connect, and take anew what was held."""
        connection = self._link.connect()
        try:
            if self._old is not None:
                connection.execute(_END_THE_OLD, self._old)
            schema, age_s, pid, began_at, *_ = connection.execute(_BEGIN).fetchall()[0]
            self._schema = schema or ""
            self._take_anew(connection)
        except BaseException:
            connection.close()
            raise
        self._not_before = monotonic() + SETTLE_S - (age_s if self._old is None else 0.0)
        self._connection, self._old = connection, (pid, began_at)
        return connection

    def _take_anew(self, connection: Connection) -> None:
        held = [one for one in self._places if one.slot is not None]
        if not held:
            return
        wanted = {"keys": [_key(self._schema, one.line.name) for one in held], "slots": [one.slot for one in held]}
        again = {held[place - 1] for (place,) in connection.execute(_TAKE_ANEW, wanted)}
        for place in held:
            if place not in again:
                place.slot = None
        if len(again) < len(held):
            lost = len(held) - len(again)
            _log.warning("%d runs go on without the places they had: the line to the server was lost", lost)

    def _watched(self) -> None:
        if self._watch is None:
            self._watch = threading.Thread(target=self._look_again, name="tenlines-places", daemon=True)
            self._watch.start()

    def _look_again(self) -> None:
        """See again and again that what is held is held; where it is not, `_begin` takes it anew."""
        while not self._closed.wait(WATCH_S):
            try:
                with self._connected() as connection:
                    connection.execute("SELECT 1")
                    for line in {one.line for one in self._places}:
                        self._all_have_one(connection, line)
            except (PostgresError, JournalError) as error:
                _log.info("the places of queues are out of reach; it is tried again: %s", in_a_line(error))


def _key(schema: str, queue: str) -> int:
    """The first half of the key of a queue's locks; the other half is the slot."""
    digest = hashlib.sha256(f"{schema}\0{queue}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], signed=True)
