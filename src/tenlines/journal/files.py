"""A run as a file of lines: one event each, between a header that counts them and an end that proves them.

```text
{"tenlines_run":1,"run_id":"run-1","schema":3,"events":2}
{"type":"RunStarted","seq":0,...}
{"type":"RunEnded","seq":1,...}
{"tenlines_run_end":1,"sha256":"..."}
```

The digest is of all bytes before the end line: `head -n -1 FILE | sha256sum`. So a file that is cut short, by a full
disk or a broken transfer, is told from one that was changed: the first loses its end and says how much, the second
is refused. What `tenlines show RUN --json` prints, the events alone, can be read too, and proves nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from tenlines.core import codec
from tenlines.core.events import SCHEMA, AnyEvent, RunStarted
from tenlines.errors import JournalConflict, JournalDamaged, JournalFormatError, RunNotFound
from tenlines.ports import Journal

FORMAT = 1
"""Version of the header and of the end."""
_CONTROL = re.compile(rb"[\x00-\x1f]")
"""The lines that are written have no such bytes, so one that was only cut has none either."""


class RunFile(NamedTuple):
    """What a file holds of a run."""

    run_id: str
    """"" where the file was cut before it."""
    events: tuple[AnyEvent, ...]
    """All that are complete, from the first on without gaps."""
    notices: tuple[str, ...] = ()
    """What is missing or not proven, a sentence each."""

    @property
    def is_whole(self) -> bool:
        """Whether the file proves that nothing is missing and nothing was changed."""
        return not self.notices


class _Header(msgspec.Struct, frozen=True):
    tenlines_run: int
    run_id: str
    schema: int
    events: int


class _End(msgspec.Struct, frozen=True):
    tenlines_run_end: int
    sha256: str


# --- writing ------------------------------------------------------------------------------------------


def write_run(journal: Journal, run_id: str) -> Iterator[bytes]:
    """A run as the lines of a file, as far as it is in the journal.

    Raises:
        RunNotFound: There is no such run.
    """
    return _lines(run_id, list(journal.read(run_id)))


def _lines(run_id: str, events: Sequence[AnyEvent]) -> Iterator[bytes]:
    digest = hashlib.sha256()
    header = msgspec.json.encode(_Header(FORMAT, run_id, SCHEMA, len(events)))
    for body in (header, *map(codec.encode, events)):
        digest.update(body + b"\n")
        yield body + b"\n"
    yield msgspec.json.encode(_End(FORMAT, digest.hexdigest())) + b"\n"


# --- reading ------------------------------------------------------------------------------------------


def read_run(lines: Iterable[bytes]) -> RunFile:
    """Read the lines of a file and check them. A file that was cut gives what is left of it, and says so.

    Args:
        lines: As an open binary file gives them, each with its line break.

    Raises:
        JournalDamaged: A line is not what was written. Nothing of the file is used.
        JournalFormatError: It was written by a newer version, or it is no run.
    """
    listed = list(lines)
    while listed and not listed[-1].strip(b"\r\n"):
        listed.pop()
    bodies = [line.rstrip(b"\r\n") for line in listed]
    cut = bodies.pop() if listed and _is_cut(listed[-1]) else b""
    if not bodies:
        return RunFile("", (), (f"the file is cut in line 1, after {len(cut)} bytes: it holds no event",))
    header = _header(bodies[0])
    if header is None:
        return _without_header(bodies, cut)
    end = None if cut else _end(bodies[-1])
    events = _events(bodies[1:] if end is None else bodies[1:-1], header)
    if end is None:
        return RunFile(header.run_id, events, (_missing(header.events - len(events), header.events, len(bodies), cut),))
    _check_end(end, header, events, bodies)
    return RunFile(header.run_id, events)


def _is_cut(line: bytes) -> bool:
    """Whether the last line is the first part of one."""
    if line.endswith(b"\n") or not line.startswith(b"{") or _CONTROL.search(line):
        return False
    try:
        msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return True
    return False


def _header(body: bytes) -> _Header | None:
    """The header, or None where the first line is an event."""
    if _CONTROL.search(body):
        raise JournalDamaged(f"line 1 is damaged: {_damage(body)}")
    try:
        value = msgspec.json.decode(body, type=dict)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalFormatError(f"this is not the file of a run: line 1 is no JSON object ({error})") from None
    if "type" in value and "tenlines_run" not in value:
        return None
    _refuse_newer("the file has format", value.get("tenlines_run"), FORMAT)
    try:
        header = msgspec.convert(value, _Header)
    except msgspec.ValidationError as error:
        raise JournalFormatError(f"this is not the file of a run: line 1 is no header of one ({error})") from None
    _refuse_newer("the file has events of format", header.schema, SCHEMA)
    return header


def _refuse_newer(what: str, version: object, known: int) -> None:
    if isinstance(version, int) and version > known:
        raise JournalFormatError(f"{what} {version}, this tenlines reads up to {known}: upgrade tenlines")


def _end(body: bytes) -> _End | None:
    try:
        return msgspec.json.decode(body, type=_End)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _without_header(bodies: Sequence[bytes], cut: bytes) -> RunFile:
    events = _events(bodies, None)
    notices = ["the file has neither header nor end, so nothing proves that its events are all and unchanged"]
    if cut:
        notices.append(f"the file is cut in line {len(bodies) + 1}, after {len(cut)} bytes")
    start = events[0]
    return RunFile(start.run_id if isinstance(start, RunStarted) else "", events, tuple(notices))


def _events(bodies: Sequence[bytes], header: _Header | None) -> tuple[AnyEvent, ...]:
    """The events, all of them.

    Raises:
        JournalDamaged: One is not what was written.
    """
    before, schema, run_id = (1, SCHEMA, None) if header is None else (2, header.schema, header.run_id)
    events: list[AnyEvent] = []
    for seq, body in enumerate(bodies):
        where = f"line {seq + before} (event {seq})"
        if _CONTROL.search(body):
            raise JournalDamaged(f"{where} is damaged: {_damage(body)}")
        if header is not None and seq >= header.events:
            raise JournalDamaged(f"{where} is damaged: the header says that the run has {header.events} events")
        try:
            event = codec.decode(body, schema)
        except JournalFormatError as error:
            raise JournalDamaged(f"{where} is damaged: {error}") from None
        if event.seq != seq:
            raise JournalDamaged(f"{where} is damaged: event {event.seq} stands there")
        events.append(event)
    _check_start(events, run_id, before)
    return tuple(events)


def _check_start(events: Sequence[AnyEvent], run_id: str | None, line: int) -> None:
    if not events:
        return
    start = events[0]
    if not isinstance(start, RunStarted):
        raise JournalDamaged(
            f"line {line} (event 0) is damaged: a run begins with RunStarted, not {type(start).__name__}"
        )
    if run_id not in (None, start.run_id):
        raise JournalDamaged(
            f"line {line} (event 0) is damaged: it is of run {start.run_id!r}, the header of {run_id!r}"
        )


def _check_end(end: _End, header: _Header, events: Sequence[AnyEvent], bodies: Sequence[bytes]) -> None:
    if len(events) < header.events:
        raise JournalDamaged(f"line {len(bodies)} is damaged: the end stands where event {len(events)} should be")
    digest = hashlib.sha256(b"".join(body + b"\n" for body in bodies[:-1])).hexdigest()
    if digest != end.sha256:
        raise JournalDamaged(
            f"one of the lines 1 to {len(bodies)} was changed: they do not match the digest in the last of them"
        )


def _damage(body: bytes) -> str:
    """What stands in a line that was never written into it."""
    zeros = body.count(0)
    return f"it holds {zeros:,} zero bytes" if zeros else "it holds control characters"


def _missing(missing: int, of: int, lines: int, cut: bytes) -> str:
    """Where a file was cut, and what it lost."""
    where = (
        f"the file is cut in line {lines + 1}, after {len(cut)} bytes" if cut else f"the file ends after line {lines}"
    )
    if missing == 0:
        return f"{where}: all {of} events are there, and the end that proves them is missing"
    return f"{where}: {missing} of {of} events are missing, from event {of - missing} on"


# --- storing ------------------------------------------------------------------------------------------


def import_run(journal: Journal, run: RunFile, *, recover: bool = False) -> None:
    """Store a run that was read from a file, under its own id, which its events and the keys of its calls contain.

    Args:
        journal: Where to.
        run: From `read_run`.
        recover: Also take a file that does not prove to be whole. To resume such a run is to go on from an older state:
            what it did later, nobody knows of, and it may be done a second time. Look at the world first.

    Raises:
        JournalConflict: The journal has a run of this id.
        JournalDamaged: The file is not whole and `recover` is False, or it holds no event.
    """
    if not run.events:
        raise JournalDamaged(f"there is nothing to store: {'; '.join(run.notices)}")
    if not (run.is_whole or recover):
        raise JournalDamaged(
            f"run {run.run_id} is not whole: {'; '.join(run.notices)}. It is only stored with recover=True: a run that "
            "is resumed from an older state may do again what it did already"
        )
    if _has(journal, run.run_id):
        raise JournalConflict(f"the journal has a run {run.run_id} already; nothing was stored. Use another journal")
    for event in run.events:
        journal.append(run.run_id, event)
    journal.commit(run.run_id)


def _has(journal: Journal, run_id: str) -> bool:
    try:
        next(iter(journal.read(run_id)), None)
    except RunNotFound:
        return False
    return True
