"""Connections to Postgres: made when they are needed, waited for when they are lost, spoken of without secrets."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from tenlines.errors import JournalError, MissingExtra

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise MissingExtra("a journal in Postgres", "postgres") from error

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
PostgresError: TypeAlias = psycopg.Error
T = TypeVar("T")

FIRST_WAIT_S, LONGEST_WAIT_S = 0.05, 1.0
"""Between two attempts to reach a server; each wait is twice the one before."""
_POOL_WAIT_S = 1.0
"""The pool is asked for a connection for so long; then it counts as an attempt that failed."""
_CLOSING_S = 1.0
"""How long a write that is under way is waited for when all is closed."""

_HABITS = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "fallback_application_name": "tenlines",
}
"""What holds unless the address says otherwise: a machine that went away is noticed in half a minute, not in hours, and
a write that is under way soon enough to be tried again."""

_AS_DURABLE_AS_EVER = """
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
_left: list[object] = []
"""Connections of a process that this one was forked from. They are its own: kept here so that nobody ends them."""

logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())  # what goes wrong is in the errors that are raised


class Link:
    """What one process has open to one database: a connection for the writer, and a few to read with.

    Args:
        address: A URL or words, as libpq takes them.
        patience_s: Seconds for which a server that cannot be reached is tried again.
        connections: How many may be open for reading at once.

    Raises:
        JournalError: The address cannot be understood.
    """

    def __init__(self, address: str, *, patience_s: float, connections: int) -> None:
        given = _understood(address)
        self.label = _label(given)
        self._conninfo = make_conninfo("", **{**_HABITS, **given, "client_encoding": "UTF8"})
        self._patience_s, self._connections = patience_s, connections
        self._is_closed = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._writing = threading.Lock()  # held while the writer's connection is used
        self._writer: Connection | None = None
        self._opening = threading.Lock()  # guards the pool, and whether all is closed
        self._pool: ConnectionPool[Connection] | None = None

    def connect(self) -> Connection:
        """A new connection in autocommit mode. One attempt."""
        return psycopg.connect(self._conninfo, autocommit=True)

    @contextmanager
    def writer(self) -> Iterator[Connection]:
        """The connection of the writer; after a failure that may pass it is made anew, perhaps to another server."""
        with self._writing:
            connection, self._writer = self._writer or self._connect_writer(), None
            try:
                yield connection
            except psycopg.Error as error:
                if passes(error):
                    connection.close()
                raise
            finally:
                self._writer = None if connection.closed else connection

    def _connect_writer(self) -> Connection:
        connection = self.connect()
        try:
            connection.execute(_AS_DURABLE_AS_EVER)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def reader(self) -> Iterator[Connection]:
        """Borrow a connection."""
        with self._opening:
            if self._is_closed:
                raise JournalError(f"{self.label} is closed: open it again to go on")
            if self._pool is None:
                self._pool = self._new_pool()
        with self._pool.connection() as connection:
            yield connection

    def patiently(self, action: Callable[[], T]) -> T:
        """Do it; again, with growing waits, as long as it fails for what may pass and there is patience left.

        Raises:
            psycopg.Error: It failed for good, or for too long (`passes` tells which).
        """
        until, wait = time.monotonic() + self._patience_s, FIRST_WAIT_S
        while True:
            try:
                return action()
            except psycopg.Error as error:
                if not passes(error) or time.monotonic() + wait > until:
                    raise
            time.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_S)

    def failure(self, verb: str, error: Exception) -> JournalError:
        """The error in our words, with the next move."""
        if isinstance(error, PoolTimeout):
            error = self._reason(error)
        text = f"{self.label} could not be {verb}: {in_a_line(error)}"
        if passes(error):
            return JournalError(
                f"{text}; it was tried for {self._patience_s:g} s: see that the server runs, then resume"
            )
        return JournalError(text + _advice(error))

    def close(self) -> None:
        """Close everything. At the end of a process, what is just being written is left to itself."""
        with self._opening:
            self._is_closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        if self._writing.acquire(timeout=_CLOSING_S):
            if self._writer is not None:
                self._writer.close()
            self._writing.release()

    def abandon(self) -> None:
        """This is a forked process: begin with no connections, and leave those of the other one alone."""
        _left.extend((self._writer, self._pool))
        self._begin_anew()

    def _new_pool(self) -> ConnectionPool[Connection]:
        """A pool that only connects when asked and tries once: how long to go on trying is decided here."""
        return ConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=self._connections,
            open=True,
            timeout=_POOL_WAIT_S,
            reconnect_timeout=0.0,
            num_workers=1,
        )

    def _reason(self, error: PoolTimeout) -> psycopg.Error:
        """Why the pool has no connection, which it does not say."""
        try:
            self.connect().close()
        except psycopg.Error as reason:
            return reason
        return error


def passes(error: Exception) -> bool:
    """Whether the same may succeed a moment later: no connection, a restart, a deadlock, a change of the primary."""
    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError)
    return state[:2] in ("08", "40") or state[:3] == "57P" or state in ("25006", "53300")


def in_a_line(error: Exception) -> str:
    """What Postgres says, without its line breaks."""
    return " ".join(str(error).split())


def _advice(error: Exception) -> str:
    if isinstance(error, psycopg.errors.DiskFull):
        return "; free some space on the server, then resume the run"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return "; grant its user the right to it"
    if isinstance(error, psycopg.errors.UndefinedTable):
        return "; somebody removed its tables: open the journal again"
    return ""


def _understood(address: str) -> dict[str, Any]:
    """The parts of an address.

    What cannot be read for sure is refused without repeating it: in `postgresql://me:pass/word@host` the password would
    be taken for a port and a database, and stand in every error.
    """
    try:
        given = conninfo_to_dict(address)
    except psycopg.Error:
        given = {"port": "none"}
    host, port, database = (str(given.get(name) or "") for name in ("host", "port", "dbname"))
    if "@" in host + database or port.strip("0123456789,"):
        raise JournalError(
            "the address of the journal is not one that Postgres understands: write postgresql://USER:PASSWORD@HOST/"
            "DATABASE, with @ : / % and spaces in the password as %40 %3A %2F %25 %20"
        )
    return given


def _label(given: dict[str, Any]) -> str:
    """What it is called in errors: the address without its password."""
    user = f"{given['user']}@" if given.get("user") else ""
    port = f":{given['port']}" if given.get("port") else ""
    host = given.get("host") or given.get("hostaddr") or ""
    return f"the journal postgresql://{user}{host}{port}/{given.get('dbname') or ''}"
