"""Rows: what proves them, and what stands out of line. That texts come back is in the contract of the stores."""

from __future__ import annotations

import pytest
from journal_world import said, start

from tenlines.core import codec
from tenlines.core.events import SCHEMA
from tenlines.core.transcript import Text, User
from tenlines.errors import JournalDamaged, JournalFormatError
from tenlines.journal import rows

ROW, _ = rows.row_of("r1", said(3, "hello"))
LARGE, BLOBS = rows.row_of("r1", said(3, "x" * 9000))


def test_a_small_event_stands_in_its_row_and_a_large_text_out_of_line() -> None:
    assert ROW.body == codec.encode(said(3, "hello")).decode()
    assert ROW.blobs == ()
    assert len(LARGE.body) < 300
    assert dict(BLOBS) == {LARGE.blobs[0]: b"x" * 9000}


def test_only_large_strings_of_large_events_are_moved() -> None:
    texts = ("small", "x" * 1023, "y" * 1024, "z" * 3000)
    row, blobs = rows.row_of("r1", start("r1", messages=(User(tuple(map(Text, texts))),)))
    assert sorted(map(len, blobs.values())) == [1024, 3000]
    assert "small" in row.body
    assert rows.row_of("r1", said(1, "x" * 3000))[0].blobs == ()


def test_the_same_text_has_the_same_name_wherever_it_stands() -> None:
    _, other = rows.row_of("r2", start("r2", messages=(User((Text("x" * 9000),)),), agent="another"))
    assert set(other) == set(BLOBS)


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "r2"},
        {"seq": 4},
        {"schema": SCHEMA - 1},
        {"body": ROW.body.replace("hello", "hellp")},
        {"digest": bytes(16)},
        {"blobs": LARGE.blobs},
        {"at": 99.0},
        {"type": "RunEnded"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_column_of_a_row_is_proven(change: dict[str, object]) -> None:
    assert rows.event_of(ROW, {}) == said(3, "hello")
    with pytest.raises(JournalDamaged, match="is damaged"):
        rows.event_of(ROW._replace(**change), BLOBS)  # type: ignore[arg-type]


def test_a_text_that_is_missing_or_another_is_damage() -> None:
    with pytest.raises(JournalDamaged, match=LARGE.blobs[0].hex()[:16]):
        rows.event_of(LARGE, {})
    with pytest.raises(JournalDamaged, match="does not match its digest"):
        rows.event_of(LARGE._replace(blobs=()), {})
    with pytest.raises(JournalDamaged):
        rows.check_blob(LARGE.blobs[0], b"another")
    assert rows.check_blob(LARGE.blobs[0], b"x" * 9000) == b"x" * 9000


def test_a_row_of_a_newer_version_is_not_read() -> None:
    digest = rows.digest_of("r1", 3, 99, ROW.body)
    with pytest.raises(JournalFormatError, match=r"event 3 of run r1: .*upgrade"):
        rows.event_of(ROW._replace(schema=99, digest=digest), {})


@pytest.mark.parametrize("names", [(), (b"a" * 32,), (b"a" * 32, b"b" * 32)])
def test_the_names_of_texts_go_into_one_column_and_back(names: tuple[bytes, ...]) -> None:
    assert rows.parted(rows.joined(names)) == names


@pytest.mark.parametrize("column", [7, 1.5, "text", b"short"])
def test_a_column_that_is_damaged_gives_names_that_are_wrong(column: object) -> None:
    assert rows.parted(column) not in ((), LARGE.blobs)


def test_rows_are_given_until_one_is_missing() -> None:
    some = [rows.row_of("r1", said(seq))[0] for seq in range(4)]
    assert list(rows.contiguous("r1", some, 0, 4)) == some
    assert list(rows.contiguous("r1", some[2:], 2, 4)) == some[2:]
    assert list(rows.contiguous("r1", [], 9, 4)) == []
    for left, count in (([*some[:2], some[3]], 4), (some, 5), (some, 3), (some[1:], 4), ([], 4)):
        seen = []
        with pytest.raises(JournalDamaged):
            seen.extend(rows.contiguous("r1", left, 0, count))
        assert seen == some[: len(seen)]
