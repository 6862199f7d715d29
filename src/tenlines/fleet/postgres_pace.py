"""Rates that hold over all workers which share a Postgres database."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from tenlines.drivers.threads import in_thread
from tenlines.errors import ConnectionFailed, JournalError
from tenlines.fleet.pacing import AHEAD_S, Answer, InLine, Rate
from tenlines.journal.postgres_link import Connection, Link, PostgresError, in_a_line, passes
from tenlines.ports import Clock

T = TypeVar("T")

_NOW = "extract(epoch FROM clock_timestamp())::float8"
_IS_THERE = "SELECT 1 FROM pg_class WHERE oid = to_regclass('tenlines_pace')"
_LOCK = 0x74656E6C70616365
"""Key of the advisory lock under which the table is made: `tenlpace` in bytes."""
_MAKE = """
CREATE TABLE IF NOT EXISTS tenlines_pace (
    model       text COLLATE "C" PRIMARY KEY,
    taken_at    double precision NOT NULL,
    send_at     double precision NOT NULL,
    requests_at double precision NOT NULL,
    tokens_at   double precision NOT NULL
) WITH (fillfactor = 20)
"""
_TAKE = f"""
WITH taken AS (
    INSERT INTO tenlines_pace AS p (model, taken_at, send_at, requests_at, tokens_at)
    SELECT %(model)s, now, now, now + %(request_s)s::float8, now + %(tokens_s)s::float8
    FROM (SELECT {_NOW} AS now OFFSET 0) AS clock
    ON CONFLICT (model) DO UPDATE SET (taken_at, send_at, requests_at, tokens_at) = (
        SELECT now, send,
            greatest(send, p.requests_at - back) + %(request_s)s::float8,
            greatest(send, p.tokens_at - back) + %(tokens_s)s::float8
        FROM (SELECT {_NOW} AS now OFFSET 0) AS clock,
            LATERAL (SELECT greatest(0, p.taken_at - now) AS back) AS turned,
            LATERAL (SELECT greatest(
                now, greatest(p.requests_at, p.tokens_at) - back - %(burst_s)s::float8) AS send) AS next
    )
    WHERE greatest(p.requests_at, p.tokens_at) - %(burst_s)s::float8
        <= greatest(p.taken_at, {_NOW}) + %(ahead_s)s::float8
    RETURNING send_at
), quick AS (
    SELECT set_config('synchronous_commit', 'off', true)
)
SELECT true, send_at - {_NOW} FROM taken, quick
UNION ALL
SELECT false, greatest(requests_at, tokens_at) - %(burst_s)s::float8 - greatest(taken_at, {_NOW}) FROM tenlines_pace
WHERE model = %(model)s AND NOT EXISTS (SELECT FROM taken)
"""
"""`tenlines.fleet.pacing.booked` as one statement, with the clock of the database, read when the row is ours alone."""


class PostgresPace(InLine):
    """Rates that hold over all processes and machines which share a database. One statement takes a place.

    It stands in the table `tenlines_pace`, in the schema of the journal, and is made when it is missing. How far apart
    places are is exact; a request that is sent late, as a machine or the network is slow, comes closer to the next one.
    A place is not on the disk of the server at once: where that goes down hard, the places of its last moments (less
    than a second) may be given once more.

    Args:
        address: Of the journal, as for `PostgresJournal`.
        rates: Names of models and their rates.
        patience_s: Seconds for which a lost server is tried again before a request fails.
        clock: Waits.

    Raises:
        ConfigError: What is given for a model is no `Rate`.
        JournalError: The database cannot be reached, or the table cannot be made.
    """

    def __init__(
        self, address: str, rates: Mapping[str, Rate], *, patience_s: float = 30.0, clock: Clock | None = None
    ) -> None:
        super().__init__(rates, clock)
        self._link = link = Link(address, patience_s=patience_s, connections=1)
        weakref.finalize(self, link.close)
        if rates:
            self._prepare()

    def _prepare(self) -> None:
        try:
            with self._link.writer() as connection:
                _make(connection)
        except PostgresError as error:
            raise JournalError(
                f"the rates of models cannot be kept in {self._link.label}: {in_a_line(error)}; see that the server "
                "runs, and that its user may make tables"
            ) from error

    async def ask(self, model: str, rate: Rate, tokens: int) -> Answer:
        """Take the next place, unless it is too far ahead.

        Raises:
            ConnectionFailed: The server cannot be reached.
            JournalError: It refuses.
        """
        values = {
            "model": model,
            "request_s": rate.request_s,
            "tokens_s": rate.tokens_s(tokens),
            "burst_s": rate.burst_s,
            "ahead_s": AHEAD_S,
        }
        answer: Answer = await in_thread(partial(patiently, self._link, partial(self._take, values)))
        return answer

    def _take(self, values: dict[str, Any]) -> Answer:
        with self._link.writer() as connection:
            row = connection.execute(_TAKE, values).fetchone()
        return Answer(False, 0.0) if row is None else Answer._make(row)  # none: somebody else has just made the line

    def close(self) -> None:
        """Close the connection."""
        self._link.close()


def patiently(link: Link, action: Callable[[], T]) -> T:
    """Do it, and wait for a server that is lost.

    Raises:
        ConnectionFailed: It was lost for too long: later it may be there again.
        JournalError: It refuses.
    """
    try:
        return link.patiently(action)
    except PostgresError as error:
        failure = link.failure("asked for a place", error)
        if passes(error):
            raise ConnectionFailed(str(failure)) from error
        raise failure from error


def _make(connection: Connection) -> None:
    """Make the table, if nobody has. Many workers may do it at once."""
    if connection.execute(_IS_THERE).fetchone() is None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            if connection.execute(_IS_THERE).fetchone() is None:
                connection.execute(_MAKE)
