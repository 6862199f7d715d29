"""The log that a dead process leaves beside a SQLite file: damage before its last commit is said, and a torn end is no
damage."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from journal_world import live, log, put

from tenlines.core import codec
from tenlines.core.events import AnyEvent
from tenlines.errors import JournalDamaged
from tenlines.journal import sqlite_log
from tenlines.journal.recovery import recover
from tenlines.journal.sqlite import SqliteJournal

FRAME, HEAD = 24 + 4096, 32
RUN = log("r1", 12)


class Left(NamedTuple):
    """What a process left on the disk that died, after it had stored an answered run, and one that is open."""

    main: bytes
    log: bytes
    answered: str
    ends: list[int]
    """How long the log was after each commit of the open run."""

    @property
    def frames(self) -> int:
        return (len(self.log) - HEAD) // FRAME

    def put(self, folder: Path, log: bytes, name: str = "j.db") -> Path:
        """Lay it there, with another log."""
        path = folder / name
        for end in ("-shm", "-wal", ""):
            Path(f"{path}{end}").unlink(missing_ok=True)
        path.write_bytes(self.main)
        Path(f"{path}-wal").write_bytes(log)
        return path


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    path = tmp_path_factory.mktemp("left") / "j.db"
    SqliteJournal(path).close()
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        journal = SqliteJournal(path)
        said = [live(journal, steps=2)]
        for event in RUN:
            put(journal, "r1", event)
            said.append(str(Path(f"{path}-wal").stat().st_size))
        os.write(send, "\n".join(said).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(send)
    with os.fdopen(receive) as pipe:
        answered, *ends = pipe.read().split("\n")
    log = Path(f"{path}-wal").read_bytes()
    assert int(ends[-1]) == len(log)
    return Left(path.read_bytes(), log, answered, [int(end) for end in ends])


def stored(path: Path) -> list[AnyEvent]:
    """The events of the open run."""
    with closing(SqliteJournal(path)) as journal:
        return list(journal.read("r1"))


def outcome(path: Path) -> int | None:
    """How many events of the open run a journal gives, all of them as written; None where it is refused."""
    files = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    try:
        found = stored(path)
    except JournalDamaged as error:
        if "write-ahead log" not in str(error):
            raise
        assert (path.read_bytes(), Path(f"{path}-wal").read_bytes()) == files
        return None
    assert found == RUN[: len(found)]
    return len(found)


def zeroed(data: bytes, at: int, count: int) -> bytes:
    return data[:at] + bytes(min(count, len(data) - at)) + data[at + count :]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


# --- damage ---------------------------------------------------------------------------------------------

DAMAGES: dict[str, Callable[[bytes, int], bytes]] = {
    "zeroed": lambda data, at: zeroed(data, at, FRAME),
    "its page number": lambda data, at: flipped(data, at + 3),
    "its commit": lambda data, at: flipped(data, at + 7),
    "its salts": lambda data, at: flipped(data, at + 12),
    "its sum": lambda data, at: flipped(data, at + 20),
    "its page": lambda data, at: flipped(data, at + 3000),
    "its last byte": lambda data, at: flipped(data, at + FRAME - 1),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_in_any_frame_but_the_last_is_refused(
    left: Left, tmp_path: Path, damage: Callable[[bytes, int], bytes]
) -> None:
    assert outcome(left.put(tmp_path, left.log)) == len(RUN)
    assert left.frames > 30
    found = [outcome(left.put(tmp_path, damage(left.log, HEAD + n * FRAME))) for n in range(left.frames)]
    assert found == [None] * (left.frames - 1) + [len(RUN) - 1]


@pytest.mark.parametrize("block", [512, 4096])
def test_a_block_that_is_zeroed_costs_the_last_transaction_at_most(left: Left, tmp_path: Path, block: int) -> None:
    for at in range(0, len(left.log), max(block, 1536)):
        data = zeroed(left.log, at, block)
        expected: set[int | None] = {None} if at + block <= left.ends[-2] else {None, len(RUN) - 1}
        if data == left.log:
            expected = {len(RUN)}
        assert outcome(left.put(tmp_path, data)) in expected, at


def test_damage_in_the_head_of_the_log_is_refused(left: Left, tmp_path: Path) -> None:
    for data in [*(flipped(left.log, at) for at in range(HEAD)), zeroed(left.log, 0, HEAD), zeroed(left.log, 0, 4096)]:
        assert outcome(left.put(tmp_path, data)) is None


def test_what_is_damaged_and_how_much_is_behind_that_is_said(left: Left, tmp_path: Path) -> None:
    path = left.put(tmp_path, flipped(left.log, left.ends[-4] + 100))
    with pytest.raises(JournalDamaged) as caught:
        SqliteJournal(path)
    assert str(caught.value) == (
        f"the journal {path} could not be opened: its write-ahead log {path}-wal is damaged at byte {left.ends[-4]}, "
        "and the 3 commits found behind that would be lost; `tenlines doctor --recover NEW.db` saves what can be read"
    )


def test_a_link_to_a_file_hides_no_damage(left: Left, tmp_path: Path) -> None:
    path = left.put(tmp_path, flipped(left.log, left.ends[-4] + 100))
    (tmp_path / "link.db").symlink_to(path)
    with pytest.raises(JournalDamaged, match="write-ahead log"):
        SqliteJournal(tmp_path / "link.db")


def test_a_log_whose_words_are_in_the_other_order_is_read_alike(left: Left, tmp_path: Path) -> None:
    path = left.put(tmp_path, left.log)
    with Path(f"{path}-wal").open("rb") as file:
        found = sqlite_log._Log.read(file)
        assert found is not None
        other = "big" if sys.byteorder == "little" else "little"
        found.form = found.form._replace(order=other)
        data = found.mended()
    assert data != left.log
    assert outcome(left.put(tmp_path, data)) == len(RUN)  # SQLite takes it
    assert outcome(left.put(tmp_path, flipped(data, left.ends[-3] + 100))) is None


# --- what is no damage ----------------------------------------------------------------------------------


def test_a_log_that_was_cut_gives_what_was_committed_before(left: Left, tmp_path: Path) -> None:
    frames = range(HEAD, len(left.log), FRAME)
    cuts = {0, 1, HEAD - 1, *frames, *(at + 10 for at in frames), *(at + 2000 for at in frames)}
    for cut in sorted(cuts):
        path = left.put(tmp_path, left.log[:cut])
        events = sum(end <= cut for end in left.ends)
        if events:
            assert outcome(path) == events, cut
        else:
            SqliteJournal(path).close()
    assert outcome(left.put(tmp_path, left.log)) == len(RUN)


def copied(path: Path, into: Path) -> Path:
    """The files as they are now, as if all that have them open died."""
    for end in ("", "-wal"):
        Path(f"{into}{end}").write_bytes(Path(f"{path}{end}").read_bytes())
    return into


def test_frames_of_a_former_time_behind_the_end_are_no_damage(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    for event in RUN[:8]:
        put(journal, "r1", event)
    size = Path(f"{journal.path}-wal").stat().st_size
    journal._file.writer().execute("PRAGMA wal_checkpoint(RESTART)")
    for event in RUN[8:]:
        put(journal, "r1", event)
    path = copied(journal.path, tmp_path / "copy.db")
    journal.close()
    log = Path(f"{path}-wal").read_bytes()
    assert len(log) == size
    assert stored(path) == RUN
    former = sqlite_log._HEAD + 20 * FRAME
    for data in (flipped(log, former + 100), zeroed(log, former, FRAME), log):
        path.write_bytes((tmp_path / "j.db").read_bytes())
        Path(f"{path}-wal").write_bytes(data)
        assert sqlite_log.find_damage(Path(f"{path}-wal")) is None
    Path(f"{path}-wal").write_bytes(flipped(log, HEAD + 100))
    assert sqlite_log.find_damage(Path(f"{path}-wal")) is not None


def test_what_is_left_of_a_transaction_that_was_rolled_back_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    journal = SqliteJournal(path)
    put(journal, "r1", *RUN[:3])
    with closing(sqlite3.connect(path, isolation_level=None)) as large:
        large.execute("PRAGMA cache_size = 5")
        large.execute("BEGIN IMMEDIATE")
        large.executemany("INSERT INTO blobs VALUES (?, ?)", [(bytes([n]), bytes(9000)) for n in range(100)])
        large.execute("ROLLBACK")
        size = Path(f"{path}-wal").stat().st_size
        put(journal, "r1", *RUN[3:])
    assert Path(f"{path}-wal").stat().st_size == size > 40 * FRAME
    copy = copied(path, tmp_path / "copy.db")
    journal.close()
    assert stored(copy) == RUN


def test_a_file_that_was_closed_has_no_log_to_look_at(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j.db")
    put(journal, "r1", *RUN)
    journal.close()
    assert [file.name for file in tmp_path.iterdir()] == ["j.db"]
    assert sqlite_log.find_damage(Path(f"{journal.path}-wal")) is None


WRITER = """
import sys
from journal_world import log, put, said, start
from tenlines.journal.sqlite import SqliteJournal

journal = SqliteJournal(sys.argv[1])
journal._file.writer().execute("PRAGMA wal_autocheckpoint = 60")
put(journal, "r1", start("r1"))
print("begun", flush=True)
for seq in range(1, 10**9):
    put(journal, "r1", said(seq, "x" * (seq % 900)))
"""


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Path]:
    """A journal to which another process writes, without end; its log begins anew many times a second."""
    path = tmp_path / "j.db"
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, path], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    yield path
    assert child.poll() is None
    child.kill()
    child.wait()
    child.stdout.close()


@pytest.mark.slow
def test_a_process_that_writes_meanwhile_is_no_damage(writing: Path) -> None:
    log, heads = Path(f"{writing}-wal"), set()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for _ in range(20):
            assert sqlite_log.find_damage(log) is None
        with log.open("rb") as file:
            heads.add(file.read(HEAD))
        SqliteJournal(writing).close()
    assert len(heads) > 3


# --- power cuts -----------------------------------------------------------------------------------------


def aged(path: Path) -> Path:
    """A journal whose log was written before this machine was started."""
    os.utime(f"{path}-wal", (1, 1))
    return path


def test_after_a_restart_of_the_machine_a_last_commit_with_a_hole_is_one_that_was_never_confirmed(
    left: Left, tmp_path: Path
) -> None:
    assert left.ends[-1] - left.ends[-2] >= 2 * FRAME
    data = zeroed(left.log, left.ends[-2], FRAME)
    assert outcome(left.put(tmp_path, data)) is None
    path = aged(left.put(tmp_path, data))
    journal = SqliteJournal(path)
    assert list(journal.read("r1")) == RUN[:-1]
    put(journal, "r1", RUN[-1])
    copy = copied(path, tmp_path / "copy.db")
    journal.close()
    assert stored(copy) == RUN  # what was torn is not found again
    assert outcome(aged(left.put(tmp_path, zeroed(left.log, left.ends[-3], FRAME)))) is None


# --- recovering -----------------------------------------------------------------------------------------


def test_from_a_damaged_log_come_the_answered_runs_and_the_events_of_the_others(left: Left, tmp_path: Path) -> None:
    left.put(tmp_path, left.log, "whole.db")
    with closing(SqliteJournal(tmp_path / "whole.db")) as journal:
        answer = list(journal.read(left.answered))
    for number in range(0, left.frames - 1, 3):
        at = HEAD + number * FRAME
        path = left.put(tmp_path, zeroed(left.log, at, FRAME))
        found = recover(path, tmp_path / f"{number}.db")
        assert set(found.whole) <= {left.answered}
        if at >= left.ends[0]:
            assert set(found.whole) == {left.answered}
            (lost,) = found.damaged
            assert lost.file is not None
            events = [codec.decode(line) for line in lost.file.read_bytes().splitlines()]
            assert events == [RUN[event.seq] for event in events]
            assert len(events) >= sum(end <= at for end in left.ends)
            lost.file.unlink()
        with closing(SqliteJournal(found.into)) as journal:
            assert list(journal.check()) == []
            assert all(list(journal.read(run_id)) == answer for run_id in found.whole)


def test_a_run_that_may_have_gone_on_is_not_put_into_the_new_journal(left: Left, tmp_path: Path) -> None:
    path = left.put(tmp_path, flipped(left.log, left.ends[5] + 100))
    found = recover(path, tmp_path / "new.db")
    assert found.whole == (left.answered,)
    (lost,) = found.damaged
    assert lost.why == "run r1 may have gone on in the part of the write-ahead log that cannot be read"
    assert lost.events == len(RUN)  # its pages were written again behind the damage
    assert outcome(path) is None  # it is as it was


@pytest.mark.slow
def test_doctor_says_it_and_what_would_be_saved(left: Left, tmp_path: Path) -> None:
    path = left.put(tmp_path, flipped(left.log, left.ends[5] + 100))
    said = subprocess.run(
        [sys.executable, "-m", "tenlines", "doctor", "--journal", path], capture_output=True, text=True, check=False
    )
    assert said.returncode == 4
    words = " ".join(said.stderr.split())
    assert f"damaged at byte {left.ends[5]}, and the 6 commits found behind that would be lost" in words
    assert "--recover NEW.db saves 1 of the 2 runs found in it" in words
