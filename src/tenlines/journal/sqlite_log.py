"""The write-ahead log beside a SQLite file: whether damage in it hides what was committed after that.

SQLite reads the log up to the first frame that is not as it was written, and takes what is behind for the remains of a
transaction that was never committed. That is right where a process died while it wrote: then no commit lies behind that
frame. Where one does, the frame was damaged later, and to go on would take runs back without a word.

A frame is known by two salts, which are others each time the log begins anew, and by a sum that goes on from the one
that the frame before it carries: so it can be proven although what lies before that is damaged.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tenlines.errors import JournalDamaged
from tenlines.journal.owner import PROC

_MAGICS = {b"\x37\x7f\x06\x82": "little", b"\x37\x7f\x06\x83": "big"}
"""How a log begins, and the order of the bytes in the words that are summed."""
_VERSION = (3007000).to_bytes(4, "big")
_PAGES = (4096, 512, 1024, 2048, 8192, 16384, 32768, 65536)
_HEAD, _FRAME_HEAD = 32, 24
_AT_ONCE = 1024
"""Frames that are summed together."""


class Damage(NamedTuple):
    """The first place of a log from which on nothing is read, although something was committed behind it."""

    at: int
    """In bytes; 0 where the head of the log is damaged."""
    commits: int
    """How many commits lie behind it, as far as they can be proven."""


def log_of(path: Path) -> Path:
    """The log of a journal: SQLite puts it beside the file itself, not beside a link to it."""
    return Path(f"{path.resolve()}-wal")


def refuse_damaged(path: Path, shown: Path) -> bool:
    """Refuse a journal whose log is damaged before the last commit. Called before SQLite looks at it; only reads.

    A power cut may leave the last transaction with a hole, as a disk writes in any order. So where the machine was
    started since the log was written, a single commit behind the place is taken for one that was never confirmed.

    Args:
        path: The file.
        shown: What it is called.

    Returns:
        Whether there is such a torn commit. It must be overwritten before anything is added: later on, it would look
        like one that was lost.

    Raises:
        JournalDamaged: It is damaged.
        OSError: It cannot be read.
    """
    log = log_of(path)
    damage = find_damage(log)
    if damage is None:
        return False
    if damage.commits == 1 and _is_older_than_boot(log):
        return True
    raise JournalDamaged(
        f"the journal {shown} could not be opened: its write-ahead log {log} is damaged at byte {damage.at}, and the "
        f"{damage.commits} commits found behind that would be lost; `tenlines doctor --recover NEW.db` saves what can "
        "be read"
    )


def find_damage(log: Path) -> Damage | None:
    """Where a log is damaged before its last commit.

    Another process may be writing. It writes frame after frame, so a place at which the same is found a second time
    was passed long ago by the writer of what lies behind.
    """
    before = None
    while (seen := _look(log)) is not None:
        if before is not None and before.same == seen.same:
            return seen.damage
        before = seen
    return None


class _Seen(NamedTuple):
    damage: Damage
    same: tuple[int, bytes, bytes]
    """What must be found a second time: the place, the head of the log, and the frame that is bad."""


def _look(log: Path) -> _Seen | None:
    try:
        with log.open("rb") as file:
            found = _Log.read(file)
            commits = found.commits() if found is not None else []
            if found is None or not commits:
                return None
            damage = Damage(found.place, len(commits))
            return _Seen(damage, (found.place, found.head, found.bytes_of(found.first)))
    except FileNotFoundError:
        return None


def mend(log: Path) -> bool:
    """Make a log readable to its end, without the frames that are damaged. For a copy: it is overwritten.

    Returns:
        Whether it was damaged before its last commit.
    """
    try:
        with log.open("rb") as file:
            found = _Log.read(file)
            mended = b"" if found is None or not found.commits() else found.mended()
    except FileNotFoundError:
        return False
    if mended:
        log.write_bytes(mended)
    return bool(mended)


def _is_older_than_boot(log: Path) -> bool:
    """Whether the machine was started after the log was last written, as far as that can be known."""
    try:
        lines = (PROC / "stat").read_text().splitlines()
        started = next(int(line.split()[1]) for line in lines if line.startswith("btime "))
    except (OSError, StopIteration):  # not Linux
        return False
    return log.stat().st_mtime < started


# --- sums -----------------------------------------------------------------------------------------------


def _swapped(words: bytes) -> bytes:
    """The same words of 32 bits in the other order of bytes."""
    swapped = array("I", words)
    swapped.byteswap()
    return swapped.tobytes()


def _sums(rows: memoryview, columns: Iterable[int], seeds: bytes) -> bytes:
    """SQLite's sums of many rows, two words each.

    Each row has 64 bits of its own in large numbers, of which it needs 34, so that one addition is that of all rows.

    Args:
        rows: Pairs of words, little endian, row after row.
        columns: Which pairs of a row are summed.
        seeds: The sums from which each goes on.
    """
    count = len(seeds) // 8
    width = len(rows) // count
    low = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * count, "little")
    both = int.from_bytes(seeds, "little")
    first, second = both & low, both >> 32 & low
    for column in columns:
        pair = int.from_bytes(rows[column::width].tobytes(), "little")
        first = (first + second + (pair & low)) & low
        second = (second + first + (pair >> 32 & low)) & low
    return (first | second << 32).to_bytes(8 * count, "little")


class _Form(NamedTuple):
    """How the frames of a log are laid out."""

    page: int
    order: str

    @property
    def frame(self) -> int:
        return _FRAME_HEAD + self.page

    def sums(self, frames: bytes, seeds: bytes) -> bytes:
        """The sums that frames should carry: over the first 8 bytes of their heads, and their pages."""
        columns = (0, *range(_FRAME_HEAD // 8, self.frame // 8))
        return self._sums(frames, columns, seeds)

    def sum_of_head(self, head: bytes) -> bytes:
        """What the head of a log should carry."""
        return self._sums(head[:24], range(3), bytes(8))

    def _sums(self, rows: bytes, columns: Iterable[int], seeds: bytes) -> bytes:
        words = rows if self.order == "little" else _swapped(rows)
        return _swapped(_sums(memoryview(words).cast("Q"), columns, _swapped(seeds)))


# --- the log --------------------------------------------------------------------------------------------


class _Log:
    """The heads of all frames of a log, and what their sums should be. Frames are counted from 0.

    Args:
        file: The log, open.
        salts: Those of the frames that count; None where the head of the log does not say it, so that they are those of
            the first two frames of which one proves the other.
    """

    def __init__(self, file: BinaryIO, head: bytes, form: _Form, salts: bytes | None) -> None:
        self.head, self.form, self._file = head, form, file
        self.commit, self.salts, self.carried, self.summed = array("I"), array("Q"), array("Q"), array("Q")
        self._load(salts)
        self.is_sound = salts is not None
        self.present = self._proven_salts() if salts is None else int.from_bytes(salts, sys.byteorder)
        self.first = self._first_bad()

    @classmethod
    def read(cls, file: BinaryIO) -> _Log | None:
        """The log in a file; None where nothing is in it, or nothing can be proven."""
        head = file.read(_HEAD)
        if len(head) < _HEAD:
            return None
        form = _Form(int.from_bytes(head[8:12], "big"), _MAGICS.get(head[:4], sys.byteorder))
        if head[:4] in _MAGICS and form.page in _PAGES and form.sum_of_head(head) == head[24:]:
            return cls(file, head, form, head[16:24])
        tried = (cls(file, head, _Form(page, sys.byteorder), None) for page in _PAGES)
        return next((log for log in tried if log.present is not None), None)

    def _load(self, salts: bytes | None) -> None:
        carried, frame = self.head[24:], self.form.frame
        self._file.seek(_HEAD)
        while count := len(data := self._file.read(frame * _AT_ONCE)) // frame:
            data = data[: count * frame]
            size, salt, carries = (memoryview(data).cast("Q")[n :: frame // 8].tobytes() for n in range(3))
            self.commit.extend(array("I", size)[1::2])
            self.salts.frombytes(salt)
            self.carried.frombytes(carries)
            counts = salts is None or salts in salt  # what is left of an earlier time needs no sums
            self.summed.frombytes(self.form.sums(data, carried + carries[:-8]) if counts else bytes(8 * count))
            carried = carries[-8:]

    def _proven_salts(self) -> int | None:
        pairs = zip(self.salts, self.salts[1:], strict=False)
        return next((one for n, (one, two) in enumerate(pairs, 1) if one == two and self._is_proven(n)), None)

    def _is_proven(self, number: int) -> bool:
        return self.carried[number] == self.summed[number]

    def _is_present(self, number: int) -> bool:
        return number >= 0 and self.salts[number] == self.present

    def _first_bad(self) -> int:
        """The first frame that SQLite does not take; -1 where that is the head of the log."""
        if not self.is_sound:
            return -1
        numbers = range(len(self.salts))
        return next((n for n in numbers if not (self._is_present(n) and self._is_proven(n))), len(self.salts))

    @property
    def place(self) -> int:
        """Where the first bad frame begins."""
        return 0 if self.first < 0 else _HEAD + self.first * self.form.frame

    def bytes_of(self, number: int) -> bytes:
        """A frame; nothing for the head of the log, or behind its end."""
        self._file.seek(_HEAD + max(number, 0) * self.form.frame)
        return self._file.read(self.form.frame) if number >= 0 else b""

    def behind(self) -> list[int]:
        """The frames behind the first bad one that belong to this log and are as they were written.

        Where the head of the frame before is lost, there is nothing to prove one with; then its salts speak for it.
        """
        numbers = (n for n in range(self.first + 1, len(self.salts)) if self._is_present(n))
        return [n for n in numbers if self._is_proven(n) or not self._is_present(n - 1) or self._goes_on(n)]

    def _goes_on(self, number: int) -> bool:
        """Whether a frame follows on the first bad one, of which nothing but the sum it carries is damaged."""
        if number != self.first + 1:
            return False
        seed = self.summed[self.first : number].tobytes()
        return self.form.sums(self.bytes_of(number), seed) == self.carried[number : number + 1].tobytes()

    def commits(self) -> list[int]:
        """Those of them that end a transaction."""
        return [number for number in self.behind() if self.commit[number]]

    def mended(self) -> bytes:
        """The log without what is damaged, and with new sums."""
        salts = array("Q", [self.present or 0]).tobytes()
        magic = next(magic for magic, order in _MAGICS.items() if order == self.form.order)
        head = magic + _VERSION + self.form.page.to_bytes(4, "big") + bytes(4) + salts
        parts, carried = [head], self.form.sum_of_head(head)
        parts.append(carried)
        for number in (*range(self.first), *self.behind()):
            frame = self.bytes_of(number)
            carried = self.form.sums(frame, carried)
            parts += (frame[:8], salts, carried, frame[_FRAME_HEAD:])
        return b"".join(parts)
