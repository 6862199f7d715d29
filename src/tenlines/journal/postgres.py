"""Runs in a Postgres database, for many processes and machines.

What is committed is on the disk of the server. A group of commits, of however many runs, is one statement: it moves
on the count of each run, where that count is what the run's owner expects, and stores the events of those runs alone.
One statement is one transaction and one exchange with the server.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tenlines.core.events import AnyEvent
from tenlines.core.outcomes import encodable
from tenlines.errors import JournalDamaged, JournalError, RunNotFound
from tenlines.journal import postgres_letters as mailbox
from tenlines.journal.letters import letters_of, written
from tenlines.journal.postgres_layout import migrate
from tenlines.journal.postgres_link import Connection, Link, PostgresError, in_a_line, passes
from tenlines.journal.rows import Blobs, Row, check_blob, contiguous, event_of
from tenlines.journal.summary import expected_events, summary_of
from tenlines.journal.writer import Batch, WrittenInGroups, conflict_of
from tenlines.ports import Letter, News, RunSummary, Saying, Stopping

MOST_BYTES = 16 * 1024 * 1024
"""Of text in one statement; one batch may be larger."""
CHUNK = 200
"""Events that are read at once."""

_LINE = ", ".join(RunSummary.__struct_fields__)
_WRITE = f"""
WITH begun AS (
    INSERT INTO tenlines_runs ({_LINE})
    SELECT * FROM unnest(
        %(b_run_id)s::text[], %(b_started_at)s::float8[], %(b_last_at)s::float8[], %(b_agent)s::text[],
        %(b_model)s::text[], %(b_task)s::text[], %(b_status)s::text[], %(b_events)s::bigint[], %(b_steps)s::bigint[],
        %(b_owner)s::text[], %(b_session)s::text[], %(b_turn)s::integer[])
    ON CONFLICT DO NOTHING
    RETURNING run_id
), continued AS (
    UPDATE tenlines_runs r SET
        events = r.events + c.events,
        steps = r.steps + c.steps,
        last_at = greatest(r.last_at, c.last_at),
        status = coalesce(nullif(c.status, ''), r.status),
        owner = coalesce(nullif(c.owner, ''), r.owner)
    FROM unnest(
        %(c_run_id)s::text[], %(c_first)s::bigint[], %(c_events)s::bigint[], %(c_steps)s::bigint[],
        %(c_last_at)s::float8[], %(c_status)s::text[], %(c_owner)s::text[])
        AS c (run_id, first, events, steps, last_at, status, owner)
    WHERE r.run_id = c.run_id AND r.events = c.first
    RETURNING r.run_id
), owned AS (
    SELECT run_id FROM begun UNION ALL SELECT run_id FROM continued
), stored AS (
    INSERT INTO tenlines_events (run_id, seq, at, schema, type, body, digest, blobs)
    SELECT e.run_id, e.seq, e.at, e.schema, e.type, e.body, e.digest, e.blobs::bytea[]
    FROM unnest(
        %(e_run_id)s::text[], %(e_seq)s::bigint[], %(e_at)s::float8[], %(e_schema)s::integer[], %(e_type)s::text[],
        %(e_body)s::text[], %(e_digest)b::bytea[], %(e_blobs)s::text[])
        AS e (run_id, seq, at, schema, type, body, digest, blobs)
    WHERE e.run_id IN (SELECT run_id FROM owned)
    RETURNING blobs
), kept AS (
    INSERT INTO tenlines_blobs (digest, body)
    SELECT t.digest, t.body FROM unnest(%(t_digest)b::bytea[], %(t_body)b::bytea[]) AS t (digest, body)
    WHERE t.digest IN (SELECT unnest(blobs) FROM stored)
    ORDER BY t.digest
    ON CONFLICT DO NOTHING
)
SELECT run_id FROM owned
"""
_CONTINUED = ("run_id", "first", "events", "steps", "last_at", "status", "owner")

_DIGESTS = "SELECT seq, digest FROM tenlines_events WHERE run_id = %s AND seq >= %s AND seq < %s ORDER BY seq"
_KNOWN = "SELECT run_id, events FROM tenlines_runs WHERE run_id = ANY(%s)"
_STRAYS = "SELECT count(*) FROM tenlines_events WHERE run_id = %s"

_READ = """
SELECT r.events, e.* FROM tenlines_runs r LEFT JOIN LATERAL (
    SELECT run_id, seq, at, schema, type, body, digest, blobs FROM tenlines_events
    WHERE run_id = r.run_id AND seq >= %s ORDER BY seq LIMIT %s
) e ON true WHERE r.run_id = %s ORDER BY e.seq
"""
_TEXTS_OF = "SELECT digest, body FROM tenlines_blobs WHERE digest = ANY(%b)"
_RUNS = f"""
SELECT {_LINE} FROM tenlines_runs
WHERE (%(status)s::text IS NULL OR status = %(status)s) AND (%(session)s::text IS NULL OR session = %(session)s)
ORDER BY number DESC LIMIT %(limit)s
"""

_ALONE = "LOCK TABLE tenlines_blobs IN SHARE ROW EXCLUSIVE MODE"
"""Waits for writers and keeps them out: one of them may be about to use a text that looks unused."""
_DELETE = """
WITH gone AS (DELETE FROM tenlines_runs WHERE run_id = ANY(%(ids)s)),
     rows AS (DELETE FROM tenlines_events WHERE run_id = ANY(%(ids)s) RETURNING blobs)
SELECT DISTINCT unnest(blobs) FROM rows
"""
_DELETE_TEXTS = """
DELETE FROM tenlines_blobs b WHERE b.digest = ANY(%b) AND NOT EXISTS (
    SELECT FROM tenlines_events e WHERE e.blobs <> '{}' AND e.blobs @> ARRAY[b.digest])
"""


class PostgresJournal(WrittenInGroups):
    """A journal in a Postgres database. Safe to share between threads, processes and machines.

    The tables stand in the first schema of the connection's `search_path` and are made when they are missing.
    A commit returns when the server has it on its disk (`synchronous_commit` is on even where the database says
    otherwise). A server that is lost later is waited for; opening tries once, so that a wrong address is told at once.

    Args:
        address: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`, or any other form that libpq takes.
        patience_s: Seconds for which a lost server is tried again before a commit or a read fails.
        connections: How many connections may be open for reading at once; the writer has one more.

    Raises:
        MissingExtra: The package `psycopg` is not installed.
        JournalError: The database cannot be reached.
        JournalFormatError: Its tables were made by a newer version.
    """

    def __init__(self, address: str, *, patience_s: float = 30.0, connections: int = 4) -> None:
        self._link = link = Link(address, patience_s=patience_s, connections=connections)
        self.label = link.label
        """What it is called in messages: the address, without its password."""
        super().__init__(link.label)
        try:
            with link.connect() as connection:
                migrate(connection, link.label)
        except PostgresError as error:
            raise JournalError(
                f"{link.label} could not be opened: {in_a_line(error)}; see that the server runs, and that host, port, "
                "database, user and password are right"
            ) from error
        weakref.finalize(self, link.close)

    def close(self) -> None:
        """Write what was committed, then close the connections. Events that were not committed are lost."""
        self._stop_writing()
        self._link.close()

    # --- writing ----------------------------------------------------------------------------------------

    def _after_fork(self) -> None:
        self._link.abandon()

    def _write(self, batches: Sequence[Batch]) -> None:
        for group in _groups(batches):
            self._write_group(group)

    def _write_group(self, group: Sequence[Batch], *, may_be_there: bool = False) -> None:
        """Write batches in one statement. What the server refuses is tried one by one.

        A connection that is lost while the statement is under way leaves open whether it was written. It is sent again:
        where the lost one was written, or still is being written, the count of the run has moved on, and the rows that
        are there are compared with ours (`_is_there`).

        Raises:
            JournalError: The server could not be reached.
        """
        was_sent = may_be_there

        def attempt() -> None:
            nonlocal was_sent
            with self._link.writer() as connection:
                is_repeat, was_sent = was_sent, True
                owned = {run_id for (run_id,) in connection.execute(_WRITE, _parameters(group))}
                for batch in group:
                    if batch.run_id not in owned and not (is_repeat and _is_there(connection, batch)):
                        batch.error = conflict_of(batch, _stored(connection, batch.run_id))

        try:
            self._link.patiently(attempt)
        except (PostgresError, UnicodeError) as error:
            failure = self._link.failure("written", error)
            if passes(error):
                raise failure from error
            if len(group) == 1:
                group[0].error = failure
                return
            for batch in group:
                self._write_group([batch], may_be_there=was_sent)

    # --- reading ----------------------------------------------------------------------------------------

    def read(self, run_id: str, from_seq: int = 0) -> Iterator[AnyEvent]:
        """The events of a run, in order, as they stand when the last of them is read.

        Raises:
            RunNotFound: There is no such run.
            JournalDamaged: While reading: what is there is not what was written.
        """
        return self._events(run_id, from_seq, *self._chunk(run_id, from_seq))

    def runs(
        self, limit: int | None = None, *, status: str | None = None, session: str | None = None
    ) -> list[RunSummary]:
        """The newest runs first; only those with this status (`open` included) or of this session."""
        wanted = None if session is None else encodable(session)
        rows = self._ask(_RUNS, {"limit": limit, "status": status, "session": wanted})
        return [RunSummary(*row) for row in rows]

    def delete(self, runs: Iterable[str | RunSummary]) -> int:
        """Delete runs as a whole: their events, and the texts that no other run uses. Whoever works on one is fenced.

        All are deleted, or none is. Writers wait meanwhile.

        Args:
            runs: Ids; or lines, of which a run is only deleted if no event was added to it since.

        Returns:
            How many there were.
        """
        wanted = expected_events(runs)
        gone: set[str] = set()

        def attempt() -> None:
            with self._link.reader() as connection, connection.transaction():
                connection.execute(_ALONE)
                known = dict(connection.execute(_KNOWN, (list(wanted),)).fetchall())
                ids = [run_id for run_id, events in wanted.items() if events in (None, known.get(run_id))]
                texts = [name for (name,) in connection.execute(_DELETE, {"ids": ids})]
                connection.execute(_DELETE_TEXTS, (texts,))
                gone.update(known.keys() & set(ids))  # also where the answer to the commit is lost: it is done again

        try:
            self._link.patiently(attempt)
        except (PostgresError, UnicodeError) as error:
            raise self._link.failure("written", error) from error
        return len(gone)

    def post(self, run_id: str, what: Saying | Stopping, *, at: float, above: int = 0) -> Letter:
        """Put a letter into the mailbox of a run.

        Raises:
            RunNotFound: There is no such run.
        """
        body = written(what)

        def attempt() -> int | None:
            with self._link.reader() as connection, connection.transaction():
                return mailbox.post(connection, run_id, body, at, above)

        try:
            number = self._link.patiently(attempt)
        except (PostgresError, UnicodeError) as error:
            raise self._link.failure("written", error) from error
        if number is None:
            raise self._not_found(run_id)
        return Letter(run_id, number, at, what)

    def letters(self, above: Mapping[str, int]) -> list[Letter]:
        """The letters of these runs whose numbers are above what is stated for each, in order."""
        return letters_of(self._ask(mailbox.LETTERS, (list(above), list(above.values()))))

    def news(self, since: float) -> list[News]:
        """The runs that wait for people, about which something is new since then."""
        return [News(*row) for row in self._ask(mailbox.NEWS, (since,))]

    def _not_found(self, run_id: str) -> RunNotFound:
        return RunNotFound(f"there is no run {run_id!r} in {self._link.label}; `tenlines runs` lists them")

    def _events(self, run_id: str, from_seq: int, rows: Sequence[Row], count: int) -> Iterator[AnyEvent]:
        """Each chunk is what stood there at one moment, so the last one and the count of that moment must agree."""
        is_last = False
        while not is_last:
            is_last = len(rows) < CHUNK
            try:
                blobs = self._texts(rows)
                for row in contiguous(run_id, rows, from_seq, count if is_last else None):
                    yield event_of(row, blobs)
            except JournalDamaged as error:
                self._chunk(run_id, from_seq)  # it may have been deleted meanwhile
                raise JournalDamaged(f"{self._link.label}: {error}") from error
            if not is_last:
                from_seq += len(rows)
                rows, count = self._chunk(run_id, from_seq)

    def _chunk(self, run_id: str, from_seq: int) -> tuple[list[Row], int]:
        """Some rows, and how many events the run has.

        Raises:
            RunNotFound: There is no such run.
            JournalDamaged: There are events of it, but it is not in the list of runs.
        """
        found = self._ask(_READ, (from_seq, CHUNK, run_id))
        if not found:
            self._check_strays(run_id)
            raise self._not_found(run_id)
        rows = [Row._make((*fields, tuple(blobs))) for _, *fields, blobs in found if blobs is not None]
        return rows, found[0][0]

    def _check_strays(self, run_id: str) -> None:
        ((strays,),) = self._ask(_STRAYS, (run_id,))
        if strays:
            raise JournalDamaged(
                f"{self._link.label} is damaged: run {run_id} has no line in the list of runs, and {strays} events"
            )

    def _texts(self, rows: Sequence[Row]) -> Blobs:
        names = list({name for row in rows for name in row.blobs})
        found = self._ask(_TEXTS_OF, (names,)) if names else []
        return {name: check_blob(name, text) for name, text in found}

    def _ask(self, query: str, parameters: Any) -> list[tuple[Any, ...]]:
        def attempt() -> list[tuple[Any, ...]]:
            with self._link.reader() as connection:
                return connection.execute(query, parameters, binary=True).fetchall()

        try:
            return self._link.patiently(attempt)
        except (PostgresError, UnicodeError) as error:
            raise self._link.failure("read", error) from error


def _groups(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """As many batches as can be one statement."""
    group: list[Batch] = []
    size = 0
    for batch in batches:
        more = sum(len(row.body) for row in batch.rows) + sum(map(len, batch.blobs.values()))
        if group and size + more > MOST_BYTES:
            yield group
            group, size = [], 0
        group.append(batch)
        size += more
    yield group


def _parameters(group: Sequence[Batch]) -> dict[str, list[Any]]:
    """The columns of `_WRITE`."""
    begun, continued = [], []
    for batch in group:
        start, status, owner, steps, last_at = batch.change
        if start is not None and batch.first == 0:
            line = summary_of(batch.run_id, start, batch.change, len(batch.rows))
            begun.append(_line(line))
        else:
            continued.append((batch.run_id, batch.first, len(batch.rows), steps, last_at, status, _shown(owner)))
    rows = ((*row[:-1], _array(row.blobs)) for batch in group for row in batch.rows)
    texts = {name: text for batch in group for name, text in batch.blobs.items()}
    return (
        _columns("b", RunSummary.__struct_fields__, begun)
        | _columns("c", _CONTINUED, continued)
        | _columns("e", Row._fields, rows)
        | _columns("t", ("digest", "body"), texts.items())
    )


def _columns(prefix: str, names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Any]]:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return {f"{prefix}_{name}": list(column) for name, column in zip(names, columns, strict=True)}


def _line(summary: RunSummary) -> tuple[Any, ...]:
    shown = {name: _shown(getattr(summary, name)) for name in ("agent", "model", "task", "owner")}
    return msgspec.structs.astuple(msgspec.structs.replace(summary, **shown))


def _array(names: tuple[bytes, ...]) -> str:
    """Digests as Postgres writes an array of them."""
    return "{" + ",".join(rf'"\\x{name.hex()}"' for name in names) + "}"


def _shown(text: str) -> str:
    """Text that is only for eyes, without what Postgres cannot hold. The event itself has it all."""
    return encodable(text).replace("\0", "\ufffd")


def _is_there(connection: Connection, batch: Batch) -> bool:
    """Whether the very rows of a batch were written, by a statement whose answer was lost.

    Only its owner can have written them: an owner begins with an event that holds its nonce, so another one that came
    first has another digest at the first of these places.
    """
    found = connection.execute(_DIGESTS, (batch.run_id, batch.first, batch.first + len(batch.rows)), binary=True)
    return list(found) == [(row.seq, row.digest) for row in batch.rows]


def _stored(connection: Connection, run_id: str) -> int | None:
    """How many events a run has; None where there is no such run."""
    row = connection.execute(_KNOWN, ([run_id],)).fetchone()
    return None if row is None else row[1]
