"""What a cut keeps and what it says of the rest: for text, lists, tables, JSON and binary, in any language."""

from __future__ import annotations

import gc
import itertools
import json
import re
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines.core.transcript import File, Image, Json, Text, estimate_text
from tenlines.ports import Rendered
from tenlines.tools.breaks import boundary, fits, prefix, size, suffix
from tenlines.tools.cut import ENOUGH, KEPT
from tenlines.tools.render import render, room_for
from tenlines.tools.tool import tool

MARKER = re.compile(
    r"\n\[\.\.\. (?:([\d,]+) of ([\d,]+) lines \(([\d,]+) to ([\d,]+); )?([\d,]+) of ([\d,]+) characters\)?"
    + re.escape(f" left out here; {KEPT}")
    + r" \.\.\.\]\n"
)
ROWS_NOTE = re.compile(r"\.\.\. ([\d,]+) of ([\d,]+) items left out here; " + re.escape(KEPT) + r" \.\.\.")


def text_of(rendered: Rendered) -> str:
    (part,) = rendered.parts
    assert isinstance(part, Text)
    return part.text


def shown(value: Any, limit: int = 2_000) -> str:
    text = text_of(render(value, limit))
    assert size(text) <= limit
    return text


def number(text: str) -> int:
    return int(text.replace(",", ""))


def kept(full: str, cut: str) -> list[tuple[int, int]]:
    """Which pieces of the whole are in the cut, by what its markers say; each is compared with the whole."""
    place, begin, pieces = 0, 0, []
    for marker in [*MARKER.finditer(cut), None]:
        piece = cut[place : marker.start() if marker else len(cut)]
        assert full[begin : begin + len(piece)] == piece
        pieces.append((begin, begin + len(piece)))
        if marker:
            assert number(marker[6]) == len(full)
            begin, place = begin + len(piece) + number(marker[5]), marker.end()
    assert pieces[0][0] == 0
    assert pieces[-1][1] == len(full)
    return pieces


# --- text: the counts are true, and nothing is split --------------------------------------------------

CLUSTERS = (
    "a", "word ", "\n", "\r\n", "\t", "é", "e\u0301", "a\u0301\u0302", "日本", "한국", "\u1112\u1161\u11ab", "ไทย",
    "\u0e01\u0e33", "\u0915\u094d\u0937\u093f", "😀", "👍🏽", "👩\u200d🚀", "🇩🇪", "🇯🇵", "☝\ufe0f", "\x1b[31m", "\x00",
    "\\", "\ud83d\ude00", "\ud800", "\x85", "ERROR ",
)  # fmt: skip
_texts = st.lists(st.sampled_from(CLUSTERS), min_size=1, max_size=30).map("".join)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(_texts, st.integers(40, 300), st.integers(400, 2_500))
def test_a_cut_text_is_the_whole_but_for_what_its_markers_say(text: str, times: int, limit: int) -> None:
    regex = pytest.importorskip("regex")
    rendered = render(text * times, limit)
    cut = text_of(rendered)
    assert size(cut) <= limit
    cut.encode()
    assert rendered.truncated is (rendered.full is not None)
    if rendered.full is None:
        return
    pieces = kept(rendered.full, cut)
    assert rendered.shown_chars == sum(end - begin for begin, end in pieces)
    characters = {one.end() for one in regex.finditer(r"\X", rendered.full)} | {0}
    escapes = [one.span() for one in re.finditer(r"\\x1b\[31m|\\x[0-9a-f]{2}", rendered.full)]
    for place in itertools.chain.from_iterable(pieces):
        assert place in characters
        assert not any(begin < place < end for begin, end in escapes)


@settings(max_examples=60, deadline=None)
@given(st.integers(60, 3_000), st.integers(400, 3_000), st.sampled_from(["", "é", "日本語"]), st.booleans())
def test_the_lines_that_are_missing_are_counted_and_named(lines: int, limit: int, more: str, trouble: bool) -> None:
    rows = [f"{n} {more}{' ERROR' if trouble and n == lines // 2 else ''}" for n in range(1, lines + 1)]
    rendered = render("\n".join(rows), limit)
    if not rendered.truncated:
        return
    cut = text_of(rendered)
    missing: set[int] = set()
    for marker in MARKER.finditer(cut):
        count, of, first, last = (number(one) for one in marker.groups()[:4])
        assert (count, of) == (last - first + 1, lines)
        missing |= set(range(first, last + 1))
    left = [int(line.split()[0]) for line in MARKER.sub("\n", cut).split("\n")]
    assert sorted([*left, *missing]) == list(range(1, lines + 1))


@settings(max_examples=100, deadline=None)
@given(_texts, st.integers(0, 40))
def test_prefix_and_suffix_are_the_most_that_fits(text: str, room: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    head, tail = text[: prefix(text, room)], text[suffix(text, room) :]
    assert fits(head, room)
    assert fits(tail, room)
    assert head == text or not fits(text[: len(head) + 1], room)
    assert tail == text or not fits(text[len(text) - len(tail) - 1 :], room)


def test_a_boundary_in_a_thousand_flags_splits_none() -> None:
    flags = "🇩🇪" * 1_000
    assert [boundary(flags, at) % 2 for at in range(900, 910)] == [0] * 10


# --- text: what matters stays -------------------------------------------------------------------------

TRACEBACK = """\
  File "/app/orders.py", line 41, in total
    return sum(row["net"] for row in rows)
KeyError: 'net'
error: exit status 1
"""


def test_the_last_lines_of_a_log_survive_in_very_little_room() -> None:
    cut = shown("INFO all is well here\n" * 5_000 + TRACEBACK, 400)
    assert cut.endswith("\n" + TRACEBACK)
    assert cut.startswith("INFO all is well here\n")


def test_the_first_error_of_a_long_build_survives_where_it_stands() -> None:
    lines = [f"[{n}/9000] CC src/part{n}.o" for n in range(9_000)]
    lines[4_321] = "src/part4321.c:7:3: error: expected ';' before '}' token"
    lines[4_322] = "    7 |   return x"
    cut = shown("\n".join(lines), 4_000)
    assert f"\n{lines[4_321]}\n{lines[4_322]}\n" in cut
    assert cut.startswith(lines[0])
    assert cut.endswith(lines[-1])
    assert len(MARKER.findall(cut)) == 2


def test_where_all_lines_are_errors_head_and_tail_stay() -> None:
    cut = shown("ERROR again\n" * 5_000)
    assert len(MARKER.findall(cut)) == 1
    assert cut.startswith("ERROR again\n")
    assert cut.endswith("ERROR again\n")


def test_csv_keeps_the_names_of_its_columns_and_its_last_rows() -> None:
    header = ",".join(f"a_rather_long_name_of_a_column_{n}" for n in range(20))
    rows = [",".join(str(n * m) for m in range(20)) for n in range(3_000)]
    cut = shown("\n".join([header, *rows]), 4_000)
    assert cut.startswith(f"{header}\n")
    assert cut.endswith(f"\n{rows[-1]}")
    assert "of 3,001 lines" in cut


# --- the limit is in tokens ---------------------------------------------------------------------------


@pytest.mark.parametrize("piece", ["日本語の行です。", "😀👩\u200d🚀", "e\u0301", "текст ", "plain words "])
@pytest.mark.parametrize("shape", [lambda text: text, lambda text: [text], lambda text: [text[:40]] * 300], ids="tlr")
def test_a_result_has_at_most_max_result_tokens_in_any_language(piece: str, shape: Callable[[str], Any]) -> None:
    @tool(max_result=200)
    def read() -> str:
        """Read."""
        return ""

    rendered = read.render(shape(piece * 2_000))
    assert rendered.truncated
    text = text_of(rendered)
    assert len(text.encode()) <= 4 * 200
    assert 0.5 * 200 < estimate_text(text) <= 1.06 * 200 or len(text.encode()) <= MARKED, (
        "as many tokens as were asked for"
    )


MARKED = 440
"""Bytes. There is always room for a little text, and the words that say what is missing."""


def test_a_text_at_the_limit_is_not_cut() -> None:
    assert not render("wort" * 150, 600).truncated
    assert render("wort" * 151, 600).truncated
    assert not render(["wort" * 149], 600).truncated
    assert render(["wort" * 150], 600).truncated
    assert not render([Text("wort" * 75), Text("wort" * 75)], 600).truncated
    assert render([Text("wort" * 75), Text("wort" * 76)], 600).truncated


@pytest.mark.parametrize(("text", "characters"), [("日", 1_250), ("7", 1_428), ("word ", 4_000)])
def test_a_text_of_short_tokens_is_cut_sooner(text: str, characters: int) -> None:
    """At 1,000 tokens: a Chinese character is 0.8 of one, a digit 0.7."""
    longest = characters // len(text)
    assert not render(text * longest, 4_000).truncated
    assert render(text * (longest + 2), 4_000).truncated


def test_the_room_for_a_long_text_is_told_from_a_part_of_it() -> None:
    assert room_for("word " * 1_000_000, 4_000) == 4_000
    assert room_for("12345 " * 1_000_000, 4_000) == pytest.approx(4_000 / 4 / 0.62, rel=0.1)
    assert room_for("日" * 1_000_000, 4_000) == pytest.approx(4_000 / 4 / 0.27, rel=0.25)
    assert room_for("7" * 5_000, 400) == 400, "never less than what is needed to say something"


# --- lists and tables ---------------------------------------------------------------------------------


def cut_rows(value: Any, limit: int = 2_000) -> tuple[list[Any], list[Any], int]:
    """First rows, last rows, and how many are said to be missing."""
    rows = json.loads(shown(value, limit))
    notes = [n for n, row in enumerate(rows) if isinstance(row, str) and ROWS_NOTE.fullmatch(row)]
    if not notes:
        return rows, [], 0
    (at,) = notes
    match = ROWS_NOTE.fullmatch(rows[at])
    assert match is not None
    assert number(match[2]) == len(value)
    assert number(match[1]) + len(rows) - 1 == len(value)
    return rows[:at], rows[at + 1 :], number(match[1])


def wide(count: int) -> list[dict[str, Any]]:
    return [
        {"id": n, "title": f"Order {n}", "body": f"{n}: " + "lorem ipsum " * 60, "open": True} for n in range(count)
    ]


def test_wide_rows_get_shorter_cells_before_rows_are_lost() -> None:
    first, last, missing = cut_rows(wide(500), 4_000)
    assert len(first) + len(last) >= ENOUGH
    assert missing > 0
    assert last[-1]["id"] == 499
    for row in (*first, *last):
        assert list(row) == ["id", "title", "body", "open"]
        assert row["title"] == f"Order {row['id']}"
        assert re.fullmatch(rf"{row['id']}: lorem .*\.\.\. \(72\d characters\)", row["body"])


def test_narrow_rows_are_whole() -> None:
    rows = [{"id": n, "name": f"name {n}"} for n in range(500)]
    first, last, _ = cut_rows(rows)
    assert first == rows[: len(first)]
    assert last == rows[-1:]
    assert len(first) > 25


def test_rows_that_are_lists_are_rows_too() -> None:
    first, last, _ = cut_rows([(n, "x" * 900, None) for n in range(100)], 3_000)
    assert len(first) + len(last) >= ENOUGH
    assert [row[0] for row in (*first, *last)] == [*range(len(first)), 99]


def test_rows_of_which_all_fit_in_shorter_cells_are_all_there() -> None:
    first, last, missing = cut_rows(wide(12), 5_000)
    assert missing == 0
    assert [row["id"] for row in first + last] == list(range(12))


def test_a_table_inside_an_object_is_cut_as_a_table() -> None:
    cut = json.loads(shown({"rows": wide(300), "total": 300}, 4_000))
    assert cut["total"] == 300
    assert cut["rows"][-1]["id"] == 299
    assert len(cut["rows"]) > ENOUGH


def test_a_list_of_lines_keeps_as_much_of_its_end_as_of_its_beginning() -> None:
    lines = [f"line {n} of the log" for n in range(2_000)]
    first, last, _ = cut_rows(lines)
    assert first == lines[: len(first)]
    assert last == lines[-len(last) :]
    assert abs(len(first) - len(last)) < 8


_cells = st.none() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | _texts.map(lambda one: one * 3)
_rows = st.lists(st.dictionaries(st.sampled_from("abcdé日"), _cells, min_size=2), min_size=1, max_size=6)
_lists = _rows | st.lists(st.integers(), min_size=1, max_size=6) | st.lists(_texts, min_size=1, max_size=4)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(_lists, st.integers(2, 80), st.integers(400, 3_000))
def test_a_cut_list_is_json_in_bounds_with_the_true_count(rows: list[Any], times: int, limit: int) -> None:
    rendered = render(rows * times, limit)
    if len(rows) * times <= 8:
        json.loads(text_of(rendered))
        return
    whole = json.loads(rendered.full or text_of(rendered))
    first, last, missing = cut_rows(whole, limit)
    assert len(first) + len(last) + missing == len(whole)
    assert list(map(type, first)) == list(map(type, whole[: len(first)]))


# --- JSON that is a text ------------------------------------------------------------------------------


def test_json_text_on_one_line_is_cut_as_json_and_kept_as_it_was() -> None:
    text = json.dumps({"rows": [{"n": n} for n in range(3_000)], "total": 3_000})
    rendered = render(text, 2_000)
    cut = json.loads(text_of(rendered))
    assert cut["total"] == 3_000
    assert cut["rows"][-1] == {"n": 2_999}
    assert rendered.full is text


def test_json_text_of_many_lines_is_cut_between_its_lines() -> None:
    text = json.dumps([{"n": n} for n in range(3_000)], indent=2)
    cut = shown(text)
    assert set(MARKER.sub("\n", cut).split("\n")) <= set(text.split("\n"))


@pytest.mark.parametrize(
    "text", ["[" + "NaN, " * 900 + "1]", "[" * 900 + "]" * 900, "{" + "x" * 3_000 + "}", "[1" * 1_500]
)
def test_what_only_looks_like_json_is_cut_as_text_or_stays_json(text: str) -> None:
    cut = shown(text)
    assert MARKER.search(cut) or json.loads(cut) is not None


def test_escaped_halves_of_characters_in_json_text_do_not_get_through() -> None:
    cut = shown('["' + "\\ud800" * 2_000 + '", "\\ud83d\\ude00"]')
    cut.encode()
    assert json.loads(cut)[1] == "😀"


# --- binary -------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 400


@pytest.mark.parametrize("value", [PNG, bytearray(PNG), memoryview(PNG)])
def test_bytes_are_a_line_with_their_kind_size_digest_and_beginning(value: Any) -> None:
    assert shown(value) == (
        "(102,408 bytes of binary data, not shown: PNG image; sha256 8c032cd181ae64cb...; "
        "begins 89 50 4e 47 0d 0a 1a 0a 00 01 02 03 04 05 06 07)"
    )


def test_binary_deep_inside_a_value_is_a_line_too() -> None:
    value = {
        "a": [PNG, {"b": Image("image/png", PNG)}, File("text/csv", b"a,b\n1,2", "t.csv")],
        "c": Image("image/png", url="http://x/y.png"),
    }
    cut = json.loads(shown(value))
    assert cut["a"][0].startswith("(102,408 bytes of binary data, not shown: PNG image; sha256 ")
    assert cut["a"][1]["b"].startswith("(image, image/png, 102,408 bytes, not shown: PNG image; sha256 ")
    assert cut["a"][2].startswith("(file 't.csv', text/csv, 7 bytes, not shown: sha256 ")
    assert cut["c"] == "(image, image/png, at http://x/y.png)"


def test_an_image_and_a_file_beside_text_stay_parts() -> None:
    image, file = Image("image/png", PNG), File("application/pdf", b"%PDF-1.7", "a.pdf")
    assert render([image, file, Json([1])], 400).parts == (image, file, Json([1]))


# --- tables and arrays of other libraries -------------------------------------------------------------


class Index(list[Any]):
    name, is_unique = None, True

    def tolist(self) -> list[Any]:
        return list(self)


class Frame:
    """As much of a pandas frame as counts here."""

    index, columns = Index(), Index()

    def __init__(self, rows: list[dict[str, Any]], labels: list[Any] | None = None) -> None:
        self.rows, self.columns = rows, Index(rows[0])
        self.index = Index(range(len(rows)) if labels is None else labels)
        self.shape = (len(rows), len(self.columns))

    shape = (0, 0)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def iloc(self) -> Any:
        frame = self

        class At:
            def __getitem__(self, rows: slice) -> Frame:
                return Frame(frame.rows[rows], list(frame.index[rows]))

        return At()

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self.rows


class Polars:
    """The same of a polars frame."""

    shape, columns = (3, 1), ("a",)

    def __len__(self) -> int:
        return 3

    def slice(self, start: int, count: int) -> Polars:
        return self

    def to_dicts(self) -> list[dict[str, Any]]:
        return [{"a": n} for n in range(3)]


def test_a_frame_is_its_rows() -> None:
    rows = [{"a": n, "b": float("nan")} for n in range(3)]
    assert json.loads(shown(Frame(rows))) == [{"a": n, "b": None} for n in range(3)]
    assert json.loads(shown({"table": Polars()})) == {"table": [{"a": 0}, {"a": 1}, {"a": 2}]}


def test_labels_that_say_something_stay() -> None:
    assert json.loads(shown(Frame([{"a": 1}, {"a": 2}], ["x", "y"]))) == [
        {"index": "x", "a": 1},
        {"index": "y", "a": 2},
    ]


def test_a_frame_with_more_values_than_anyone_reads_says_how_many_rows_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenlines.tools.plain.MAX_VALUES", 30)
    rows = json.loads(shown(Frame([{"a": n} for n in range(100)])))
    assert rows[-1] == "(more than 30 values: 86 of 100 rows were left out)"


def test_an_array_with_more_values_than_anyone_reads_is_not_read() -> None:
    class Array:
        size, shape, dtype = 10**9, (10**5, 10**4), "float64"

        def tolist(self) -> list[float]:
            raise AssertionError

    assert (
        shown(Array())
        == "(an array of 1,000,000,000 values, shape (100000, 10000), type float64: more than can be shown)"
    )


# --- memory -------------------------------------------------------------------------------------------


def peak(value: Any) -> tuple[int, Rendered]:
    """Bytes that rendering took beside the value."""
    gc.collect()
    tracemalloc.start()
    try:
        rendered = render(value, 32_000)
        return tracemalloc.get_traced_memory()[1], rendered
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("line", ["a line of a log\n", "eine Zeile für sich\n", "日本語の行です\n", "x"], ids=range(4))
def test_a_large_text_is_not_copied(line: str, say: Callable[..., None]) -> None:
    text = line * (10_000_000 // len(line))
    taken, rendered = peak(text)
    say(f"{taken / 1e6:.1f} MB beside a text of {len(text) / 1e6:.0f} million characters")
    assert rendered.full is text
    assert taken < 9_000_000


@pytest.mark.slow
def test_rows_take_their_json_text_twice(say: Callable[..., None]) -> None:
    rows = [{"id": n, "name": f"name {n}", "city": "Paris", "paid": True, "sum": n / 4} for n in range(40_000)]
    taken, rendered = peak(rows)
    assert rendered.full is not None
    say(f"{taken / len(rendered.full):.2f} times the JSON text of {len(rendered.full) / 1e6:.1f} MB")
    assert taken < 2.5 * len(rendered.full)


def test_values_that_are_json_already_are_not_copied_and_stay_as_they_are() -> None:
    rows = [{"n": [1, 2.5, "x"]}] * 50
    before = json.dumps(rows)
    shown(rows, 400)
    assert json.dumps(rows) == before
