"""What is left of a damaged SQLite journal: whole runs into a new one, the rest of the events into files beside it.

A run is whole where its line says how many events it has, and each of them is proven by its digest. No part of another
run is put into the new journal: a run that went on from an older state would do again what it did already.

Where the write-ahead log is damaged before its last commit, commits may be lost of any run, and nothing else shows of
which: a run looks whole and is shorter than it was. So then only a run that was answered counts as whole, as it never
goes on. The file is read in two ways: with what lies behind the damage, from which a page may be missing, and without.
"""

from __future__ import annotations

import itertools
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from tenlines.core import codec
from tenlines.core.events import AnyEvent, RunStarted
from tenlines.errors import JournalDamaged, JournalError, JournalFormatError
from tenlines.journal import sqlite_tables as tables
from tenlines.journal.letters import letters_of
from tenlines.journal.migrations import migrate
from tenlines.journal.rows import Blobs, Row, contiguous, event_of, parted
from tenlines.journal.sqlite_errors import journal_error
from tenlines.journal.sqlite_file import SqliteFile
from tenlines.journal.sqlite_log import log_of, mend
from tenlines.journal.summary import summarise

_COLUMNS = "seq, at, schema, type, body, digest, blobs"
_MOST_PROBES = 1_000_000
"""How many places of a run are looked at one by one, where what is around them cannot be read."""


class DamagedRun(msgspec.Struct, frozen=True):
    """A run that is not whole."""

    run_id: str
    why: str
    events: int
    """How many of its events can be read."""
    file: Path | None
    """Where these are, one event a line; None where there are none."""


class Recovery(msgspec.Struct, frozen=True):
    """What was found in a damaged journal."""

    into: Path
    """The new journal."""
    whole: tuple[str, ...]
    """The runs that are in it, as they were."""
    damaged: tuple[DamagedRun, ...]
    """The runs that are not."""


def recover(path: str | Path, into: str | Path) -> Recovery:
    """Copy every whole run, byte for byte, into a new journal, and what can be read of the others into files.

    The new journal appears under its name when all is in it, and not at all where that fails. No file is overwritten.
    The damaged journal is not changed; a copy is worked on, in the folder of the new one. Nothing may have it open, not
    even this process.

    Args:
        path: The damaged journal.
        into: The new one. Of a damaged run, `RUN.damaged.jsonl` is written beside it (`RUN-2.damaged.jsonl` where that
            is there already).

    Raises:
        JournalError: There is no such file, the new one exists already or cannot be written.
        JournalFormatError: It is of an older layout, and so damaged that it cannot be brought to this one.
    """
    path, into = Path(path), Path(into)
    if not path.is_file():
        raise JournalError(f"there is no journal {path}: name the file that is to be recovered")
    if into.exists():
        raise JournalError(f"{into} exists already: name a new file for what is recovered")
    try:
        into.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=into.parent, prefix=".recover-") as place:
            new, folder = Path(place) / "new.db", Path(place)
            with _sources(path, folder) as sources, closing(SqliteFile(new, "power", patience_s=30.0)) as target:
                found = _recover(sources, target.writer(), into)
            new.rename(into)
            return found
    except (sqlite3.Error, OSError, UnicodeError, MemoryError) as error:
        raise journal_error(error, into, "recovered") from error


def _recover(sources: Sequence[_Source], connection: sqlite3.Connection, into: Path) -> Recovery:
    whole, damaged = [], []
    for run_id in dict.fromkeys(run_id for source in sources for run_id in source.run_ids()):
        why = _copy_from_one(sources, run_id, connection)
        if why:
            damaged.append(_keep(sources, run_id, why, into))
        else:
            whole.append(run_id)
    return Recovery(into, tuple(whole), tuple(damaged))


def _copy_from_one(sources: Sequence[_Source], run_id: str, connection: sqlite3.Connection) -> str:
    """Put a run into the new journal from the first source in which it is whole. Returns why it is in none, or ""."""
    why = ""
    for source in sources:
        try:
            _copy(connection, source, run_id, may_go_on=len(sources) == 1)
        except (JournalDamaged, JournalFormatError) as error:
            why = why or str(error)
        else:
            return ""
    return why


def _copy(connection: sqlite3.Connection, source: _Source, run_id: str, *, may_go_on: bool) -> None:
    """Put a run into the new journal.

    Args:
        may_go_on: Whether a run counts as whole that is not answered.

    Raises:
        JournalDamaged, JournalFormatError: It is not whole.
    """
    count = source.count(run_id)
    if count is None:
        raise JournalDamaged(f"how many events run {run_id} has cannot be read")
    rows = source.rows(run_id)
    blobs = source.blobs(rows)
    log = [event_of(row, blobs) for row in contiguous(run_id, rows, 0, count)]
    if not log or not isinstance(log[0], RunStarted):
        raise JournalDamaged(f"run {run_id} does not begin with its start")
    line = summarise(run_id, log)
    if line.status != "answered" and not may_go_on:
        raise JournalDamaged(f"run {run_id} may have gone on in the part of the write-ahead log that cannot be read")
    try:
        tables.insert_run(connection, line, rows, blobs)
    except sqlite3.IntegrityError as error:
        raise JournalDamaged(f"run {run_id} cannot stand beside the others: {error}") from error
    connection.executemany("INSERT OR IGNORE INTO letters VALUES (?, ?, ?, ?)", source.letters(run_id))


def _keep(sources: Sequence[_Source], run_id: str, why: str, into: Path) -> DamagedRun:
    """Write what can be read of a run into a file: each event as the first source has it that can read it."""
    found: dict[int, AnyEvent] = {}
    for source in sources:
        rows = source.rows(run_id)
        for event in _readable(rows, source.blobs(rows)):
            found.setdefault(event.seq, event)
    events = [found[seq] for seq in sorted(found)]
    if not events:
        return DamagedRun(run_id, why, 0, None)
    file = _new_file(into.parent, re.sub("[^A-Za-z0-9._-]", "_", run_id)[:100])
    file.write_bytes(b"".join(codec.encode(event) + b"\n" for event in events))
    return DamagedRun(run_id, why, len(events), file)


def _new_file(folder: Path, stem: str) -> Path:
    """An empty file of which nobody had the name, readable by its owner alone."""
    for number in itertools.count(1):
        file = folder / f"{stem if number == 1 else f'{stem}-{number}'}.damaged.jsonl"
        with suppress(FileExistsError):
            file.touch(0o600, exist_ok=False)
            break
    return file


def _readable(rows: Iterable[Row], blobs: Blobs) -> Iterator[AnyEvent]:
    for row in rows:
        try:
            yield event_of(row, blobs)
        except (JournalDamaged, JournalFormatError):
            continue


# --- the damaged file -----------------------------------------------------------------------------------


@contextmanager
def _sources(path: Path, folder: Path) -> Iterator[list[_Source]]:
    """Copies of the file in that folder; where its log is damaged, first one that is read to the end of the log."""
    with ExitStack() as opened:
        mended = _copied(path, folder / "mended.db")
        copies = [mended] if mend(log_of(mended)) else []
        sources = [
            opened.enter_context(_source(copy, path)) for copy in (*copies, _copied(path, folder / "journal.db"))
        ]
        yield sources


def _copied(path: Path, copy: Path) -> Path:
    """The file and its log under another name."""
    shutil.copyfile(path, copy)
    log = log_of(path)
    if log.exists():
        shutil.copyfile(log, log_of(copy))
    return copy


@contextmanager
def _source(copy: Path, path: Path) -> Iterator[_Source]:
    """A copy of that file, opened so that SQLite overlooks what it can."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")  # a file that was cut is read as far as it goes
        connection.text_factory = lambda text: text.decode(errors="replace")
        source = _Source(connection)
        if source.is_older():
            _bring_up(connection, path)
        yield source


def _bring_up(connection: sqlite3.Connection, path: Path) -> None:
    try:
        migrate(connection, path)
    except sqlite3.Error as error:
        raise JournalFormatError(
            f"{path} is of an older layout, whose rows prove nothing, and too damaged to be brought to this one "
            f"({error}): take a copy from before the damage"
        ) from error


class _Source:
    """A damaged file, asked in so many ways that one damaged page hides as little as possible."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def is_older(self) -> bool:
        """Whether it has tables, and they are older than rows with digests."""
        columns = {row[1] for row in self._ask("PRAGMA table_info(events)")}
        return bool(columns) and "digest" not in columns

    def run_ids(self) -> list[str]:
        """Every run that is named anywhere, in the order in which they began as far as that is known."""
        listed = self._both_ways("SELECT run_id FROM runs ORDER BY number {}")
        indexed = self._both_ways("SELECT run_id FROM runs ORDER BY run_id {}")
        found = dict.fromkeys(row[0] for row in (*listed, *indexed, *self._event_runs()))
        return [run_id for run_id in found if isinstance(run_id, str)]

    def count(self, run_id: str) -> int | None:
        """How many events its line says it has; None where that cannot be read, or is said in two ways."""
        by_index = self._ask("SELECT run_id, events FROM runs WHERE run_id = ?", run_id)
        by_scan = self._ask("SELECT run_id, events FROM runs NOT INDEXED WHERE run_id = ?", run_id)
        said = {count for name, count in (*by_index, *by_scan) if name == run_id}
        count = said.pop() if len(said) == 1 else None
        return count if isinstance(count, int) else None

    def rows(self, run_id: str) -> list[Row]:
        """All rows of it that can be reached: from the front, from the back, and between these one by one."""
        found: dict[Any, Row] = {}
        for row in self._both_ways(f"SELECT {_COLUMNS} FROM events WHERE run_id = ? ORDER BY seq {{}}", run_id):
            found.setdefault(row[0], _row(run_id, row))
        places = [seq for seq in found if isinstance(seq, int)]
        end = max([*places, (self.count(run_id) or 0) - 1], default=-1) + 1
        for seq in range(min(end, _MOST_PROBES)):
            if seq not in found:
                for row in self._ask(f"SELECT {_COLUMNS} FROM events WHERE run_id = ? AND seq = ?", run_id, seq):
                    found[seq] = _row(run_id, row)
        return [found[seq] for seq in sorted(seq for seq in found if isinstance(seq, int))]

    def blobs(self, rows: Iterable[Row]) -> Blobs:
        """The texts that these rows keep out of line, without those that are missing or damaged."""
        found: dict[bytes, bytes] = {}
        for name in {name for row in rows for name in row.blobs}:
            try:
                found.update(tables.blobs(self._connection, [name]))
            except (sqlite3.Error, JournalDamaged):
                continue
        return found

    def letters(self, run_id: str) -> list[tuple[Any, ...]]:
        """Those to it that can be read. A file of layout 2 has none."""
        found = self._ask("SELECT run_id, number, at, body FROM letters WHERE run_id = ? ORDER BY number", run_id)
        return [row for row in found if letters_of([row])]

    def _event_runs(self) -> Iterator[tuple[Any, ...]]:
        """The runs that have events, from the first on and from the last back."""
        for query in (
            "SELECT run_id FROM events WHERE run_id > ? ORDER BY run_id LIMIT 1",
            "SELECT run_id FROM events WHERE run_id < ? ORDER BY run_id DESC LIMIT 1",
        ):
            seen: set[object] = set()
            step = self._ask(query, "" if ">" in query else "\U0010ffff")
            while step and isinstance(step[0][0], str) and step[0][0] not in seen:
                seen.add(step[0][0])
                yield step[0]
                step = self._ask(query, step[0][0])

    def _both_ways(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows in order; where some cannot be read, those from the other end as well."""
        found: list[tuple[Any, ...]] = []
        if self._ask_into(found, query.format(""), *values):
            return found
        behind: list[tuple[Any, ...]] = []
        self._ask_into(behind, query.format("DESC"), *values)
        return [*found, *reversed(behind)]

    def _ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        self._ask_into(found, query, *values)
        return found

    def _ask_into(self, found: list[tuple[Any, ...]], query: str, *values: object) -> bool:
        """Add what can be read, and say whether that was all."""
        try:
            for row in self._connection.execute(query, values):
                found.append(row)
        except (sqlite3.Error, UnicodeError, MemoryError):
            return False
        return True


def _row(run_id: str, values: tuple[Any, ...]) -> Row:
    return Row._make((run_id, *values[:6], parted(values[6])))
