"""What the model sees of a value: always text that can be sent, always within bounds, never the tool run again."""

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import json
import re
import time
import types
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from tenlines.core.codec import encode
from tenlines.core.events import CallReturned
from tenlines.core.transcript import File, Image, Json, Part, Text
from tenlines.ports import Rendered
from tenlines.tools.render import render, room_for

LIMIT = 2_000


def text_of(rendered: Rendered) -> str:
    (part,) = rendered.parts
    assert isinstance(part, Text)
    return part.text


def shown(value: Any, limit: int = LIMIT) -> str:
    return text_of(render(value, limit))


def strict(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


# --- values -------------------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Row(NamedTuple):
    name: str
    size: int


@dataclasses.dataclass
class Point:
    x: int
    tags: set[str]


class Model(BaseModel):
    when: dt.date


class Packed(msgspec.Struct):
    path: Path


class Silent:
    pass


class Speaking:
    def __str__(self) -> str:
        return "I speak"


class Addressed:
    def __repr__(self) -> str:
        return f"<Addressed at {hex(id(self))}>"


class Failing:
    def __str__(self) -> str:
        raise RuntimeError("no")


class SubText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")


class SubFloat(float):
    pass


class Attrs:
    """Looks as a class of the attrs library does."""

    __attrs_attrs__ = (types.SimpleNamespace(name="size"),)
    size = 3


class ArrayLike:
    def tolist(self) -> list[float]:
        return [1.0, float("nan")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        ("", ""),
        ("two\nlines\t\r\n", "two\nlines\t\r\n"),
        (None, "(no output)"),
        (True, "true"),
        (0, "0"),
        (1.5, "1.5"),
        (float("inf"), "null"),
        ([], "[]"),
        ({}, "{}"),
        ([None, False, "é"], '[null, false, "é"]'),
        ({"a": {"b": (1, 2)}}, '{"a": {"b": [1, 2]}}'),
        (dt.datetime(2024, 5, 1, tzinfo=dt.UTC), "2024-05-01T00:00:00+00:00"),
        ([dt.date(2024, 5, 1), dt.time(1, 2)], '["2024-05-01", "01:02:00"]'),
        (dt.timedelta(minutes=1), "60.0"),
        ([decimal.Decimal("1.10")], '["1.10"]'),
        ({"b", "a", "c"}, '["a", "b", "c"]'),
        (frozenset([3, "x", None]), '[null, 3, "x"]'),
        ([Path("/x")], '["/x"]'),
        ([Color.RED, Level.HIGH], '["red", 3]'),
        ([uuid.UUID(int=1)], '["00000000-0000-0000-0000-000000000001"]'),
        (Row("a", 1), '{"name": "a", "size": 1}'),
        (Point(1, {"b", "a"}), '{"x": 1, "tags": ["a", "b"]}'),
        (Model(when=dt.date(2024, 5, 1)), '{"when": "2024-05-01"}'),
        (Packed(Path("/x")), '{"path": "/x"}'),
        (b"abc", "(3 bytes of binary data, not shown: sha256 ba7816bf8f01cfea...; is 'abc')"),
        (b"", "(0 bytes of binary data, not shown)"),
        (memoryview(b"abcd")[::2], "(2 bytes of binary data, not shown: sha256 f45de51cdef30991...; is 'ac')"),
        (
            {"b": bytearray(2_000)},
            '{"b": "(2,000 bytes of binary data, not shown: sha256 2da42fb1d7bd8524...; begins '
            '00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00)"}',
        ),
        (ValueError("bad"), "ValueError: bad"),
        ([KeyError()], '["KeyError"]'),
        (range(3), "[0, 1, 2]"),
        (collections.deque([1]), "[1]"),
        (collections.OrderedDict(b=1, a=2), '{"b": 1, "a": 2}'),
        (types.MappingProxyType({"a": 1}), '{"a": 1}'),
        ({"b": 1, "a": 2}.keys(), '["b", "a"]'),
        ({"b": 1}.items(), '[["b", 1]]'),
        ({1: "a", None: "b", (1, 2): "c"}, '{"1": "a", "null": "b", "[1,2]": "c"}'),
        ({dt.date(2024, 5, 1): 1, True: 2, 1.5: 3}, '{"2024-05-01": 1, "true": 2, "1.5": 3}'),
        ({1: "a", "1": "b"}, '{"1": "a", "1 (str)": "b"}'),
        ([Silent()], '["(an object of the type Silent)"]'),
        ([Speaking()], '["I speak"]'),
        ([Addressed()], '["(an object of the type Addressed)"]'),
        ([Failing()], '["(a Failing that cannot be shown: RuntimeError)"]'),
        ([ArrayLike()], "[[1.0, null]]"),
        (map(str, [1]), "(a map, an iterator that was not read)"),
        (shown, "(function shown)"),
        (complex(1, 2), "(1+2j)"),
        (["a" * 3, SubText("b")], '["aaa", "b"]'),
        ([SubFloat("nan"), SubFloat(1.5)], "[null, 1.5]"),
        (Attrs(), '{"size": 3}'),
        ([10**5_000], '["(an integer of 16,610 bits)"]'),
    ],
)  # fmt: skip
def test_each_kind_of_value_has_one_text(value: Any, expected: str) -> None:
    assert shown(value) == expected
    assert shown(value) == expected


def test_nan_and_infinity_are_null() -> None:
    text = shown({"mean": float("nan"), "max": float("inf"), "n": 0})
    assert strict(text) == {"mean": None, "max": None, "n": 0}


def test_a_value_that_contains_itself_is_shown_once() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert shown(loop) == '[1, "(contains itself)"]'
    shared = [1]
    assert shown([shared, shared]) == "[[1], [1]]"


def test_very_deep_nesting_is_a_note() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = {"a": deep}
    assert "nested too deeply" in shown(deep)
    strict(shown(deep))


@pytest.mark.slow
def test_a_value_that_explodes_when_it_is_written_out_ends() -> None:
    bomb: Any = ["x"]
    for _ in range(30):
        bomb = [bomb] * 10
    strict(shown(bomb))


def test_more_values_than_anyone_reads_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenlines.tools.plain.MAX_VALUES", 3)
    assert shown([1, 2, 3, 4, 5]) == '[1, 2, 3, "(more than 3 values: 2 of 5 items were left out)"]'
    assert shown(dict.fromkeys("abcd", 1)).endswith('"(more)": "(more than 3 values: 1 of 4 entries were left out)"}')
    assert shown([[1, 2], [3]]) == '[[1, 2], "(more than 3 values: 1 of 2 items were left out)"]'


def test_a_forgotten_coroutine_is_a_note_and_no_warning() -> None:
    async def work() -> None: ...

    assert shown(work()) == "(a coroutine, work, that was not awaited)"


# --- parts --------------------------------------------------------------------------------------------


def test_parts_pass_as_parts() -> None:
    image = Image("image/png", b"\x89PNG")
    assert render(image, LIMIT).parts == (image,)
    assert render([Text("a"), image, File("text/csv", b"a,b", "t.csv"), Json({"a": 1})], LIMIT).parts == (
        Text("a"), image, File("text/csv", b"a,b", "t.csv"), Json({"a": 1}),
    )  # fmt: skip


def test_other_values_beside_parts_are_rendered() -> None:
    assert render([Text("a"), {"n": float("nan")}, "b"], LIMIT).parts == (Text("a"), Text('{"n": null}'), Text("b"))


def test_a_json_part_is_strict_json() -> None:
    (part,) = render(Json({"a": float("nan"), "b": "\ud800"}), LIMIT).parts  # type: ignore[dict-item]
    assert part == Json({"a": None, "b": "\ufffd"})


def test_too_much_text_in_parts_is_cut_and_images_stay() -> None:
    image = Image("image/png", b"\x89PNG")
    rendered = render([Text("ab c\n" * 1_200), image, Text("the end")], LIMIT)
    assert rendered.truncated
    text, kept, end = rendered.parts
    assert (kept, end) == (image, Text("the end"))
    assert isinstance(text, Text)
    assert 0.7 * LIMIT < len(text.text) <= LIMIT - len("the end")
    assert rendered.full == "ab c\n" * 1_200 + "\n\nthe end"


def test_a_json_part_that_is_too_long_stays_json() -> None:
    rendered = render([Json({"rows": list(range(5_000))}), Text("b\n" * 5_000)], LIMIT)
    cut, text = rendered.parts
    assert isinstance(cut, Json)
    assert isinstance(text, Text)
    assert cut.value["rows"][-1] == 4_999  # type: ignore[index, call-overload]
    assert len(json.dumps(cut.value)) + len(text.text) <= LIMIT


def test_many_long_parts_are_cut_as_one_text() -> None:
    image = Image("image/png", b"\x89PNG")
    rendered = render([image, *(Text(f"part {n}\n" * 100) for n in range(20))], LIMIT)
    text, kept = rendered.parts
    assert kept == image
    assert isinstance(text, Text)
    assert text.text.startswith("part 0\n")
    assert text.text.endswith("part 19\n")


# --- text that can be sent ----------------------------------------------------------------------------


def test_surrogates_in_json_that_is_cut_are_repaired_too() -> None:
    for text in ("\ud83d\ude00", "\ud800"):
        cut = shown([text] * 2_000)
        cut.encode()
        strict(cut)


def test_lone_surrogates_become_replacement_characters_and_are_counted() -> None:
    rendered = render("price \udc81 5 \ud800", LIMIT)
    assert text_of(rendered) == "price \ufffd 5 \ufffd"
    assert rendered.remarks == ("2 lone surrogates replaced by U+FFFD",)


def test_a_pair_of_surrogates_becomes_its_character() -> None:
    rendered = render("\ud83d\ude00!", LIMIT)
    assert text_of(rendered) == "😀!"
    assert rendered.remarks == ()


def test_control_characters_become_visible_escapes() -> None:
    rendered = render("a\x00b\x1b[31mred\x1b[0m \x7f\x9b\ttab\r\n", LIMIT)
    assert text_of(rendered) == "a\\x00b\\x1b[31mred\\x1b[0m \\x7f\\x9b\ttab\r\n"
    assert rendered.remarks == ("5 control characters shown as \\xNN",)


def test_control_characters_in_json_are_json_escapes() -> None:
    value = {"a\x00": "\x1b\x7f\x85é\ud800"}
    rendered = render(value, LIMIT)
    assert strict(text_of(rendered)) == {"a\x00": "\x1b\x7f\x85é\ufffd"}
    assert not re.search("[\x00-\x1f\x7f-\x9f]", text_of(rendered))
    assert rendered.remarks == ("1 lone surrogate replaced by U+FFFD",)


def test_clean_text_has_no_remarks() -> None:
    assert render("naïve 😀 текст\n", LIMIT) == Rendered((Text("naïve 😀 текст\n"),))


# --- text that is too long ----------------------------------------------------------------------------


def test_a_text_at_the_limit_is_not_cut() -> None:
    assert render("x" * LIMIT, LIMIT).truncated is False
    assert render("x" * (LIMIT + 1), LIMIT).truncated is True


def test_a_long_log_keeps_head_and_tail_and_says_what_is_missing() -> None:
    text = "line of log\n" * 190_000
    rendered = render(text, 20_000)
    cut = text_of(rendered)
    assert 19_500 < len(cut) <= 20_000
    assert rendered.full == text
    assert rendered.original_chars == len(text)
    match = re.search(
        r"\n\[\.\.\. ([\d,]+) of 190,000 lines \(([\d,]+) to ([\d,]+); ([\d,]+) of 2,280,000 characters\) left out", cut
    )
    assert match is not None
    missing, first, last, chars = (int(one.replace(",", "")) for one in match.groups())
    head, tail = cut[: match.start() + 1], cut[cut.index(" ...]\n") + 6 :]
    assert head.count("\n") == first - 1
    assert tail.count("\n") == 190_000 - last
    assert missing == last - first + 1
    assert rendered.shown_chars == len(text) - chars
    assert "journal" in cut


def test_the_last_lines_survive() -> None:
    cut = shown("ok test\n" * 20_000 + "E assert 3 == 4\n2 failed, 19998 passed", 4_000)
    assert len(cut) <= 4_000
    assert cut.startswith("ok test\n")
    assert cut.endswith("ok test\nE assert 3 == 4\n2 failed, 19998 passed")


def test_only_whole_lines_are_kept_where_there_are_lines() -> None:
    lines = [f"row {number} of 5000" for number in range(5_000)]
    cut = shown("\n".join(lines), 3_000)
    assert all(line in set(lines) or line.startswith("[... ") for line in cut.split("\n"))


def test_one_long_line_is_cut_between_characters() -> None:
    cut = shown("x" * 50_000 + "y")
    assert len(cut) <= LIMIT
    assert cut.endswith("y")
    assert "of 50,001 characters left out" in cut


@pytest.mark.parametrize(
    "cluster", ["e\u0301", "👩\u200d🚀", "👍🏽", "\u0915\u094d\u0937\u093f", "a\u0301\u0302\u0303"]
)
@pytest.mark.parametrize("shift", range(6))
def test_a_character_is_never_split_from_its_accents(cluster: str, shift: int) -> None:
    cut = shown("-" * shift + cluster * 3_000)
    head, _, rest = cut.partition("\n[")
    tail = rest.partition("]\n")[2]
    assert re.fullmatch(f"-*({re.escape(cluster)})*", head)
    assert re.fullmatch(f"({re.escape(cluster)})*", tail)


@pytest.mark.parametrize("shift", range(8))
def test_an_escape_is_never_split(shift: int) -> None:
    cut = shown("-" * shift + "\x1b" * 3_000)
    head, _, rest = cut.partition("\n[")
    assert re.fullmatch(r"-*(\\x1b)*", head)
    assert re.fullmatch(r"(\\x1b)*", rest.partition("]\n")[2])


def test_a_tower_of_accents_does_not_hang_or_break_the_limit() -> None:
    assert len(shown("e" + "\u0301" * 100_000)) <= LIMIT


def test_two_million_characters_take_a_few_milliseconds() -> None:
    text = "line of log\n" * 160_000
    best = min(_seconds(text) for _ in range(5))
    assert best < 0.03  # 3 ms where this was written


def _seconds(text: str) -> float:
    start = time.perf_counter()
    render(text, 20_000)
    return time.perf_counter() - start


# --- JSON that is too long ----------------------------------------------------------------------------


def test_a_long_list_keeps_its_first_rows_the_last_and_the_true_count() -> None:
    rows = [{"id": number, "name": f"row {number}"} for number in range(5_000)]
    rendered = render(rows, LIMIT)
    cut = strict(text_of(rendered))
    assert len(text_of(rendered)) <= LIMIT
    assert cut[0] == rows[0]
    assert cut[-1] == rows[-1]
    note = cut[-2]
    assert (
        note
        == f"... {5_000 - (len(cut) - 1):,} of 5,000 items left out here; the whole is kept in the run's journal ..."
    )
    assert cut[:-2] == rows[: len(cut) - 2]
    assert rendered.full is not None
    assert strict(rendered.full) == rows


def test_a_list_inside_an_object_is_cut_in_its_place() -> None:
    cut = strict(shown({"rows": list(range(10_000)), "total": 10_000, "log": "line\n" * 1_000}))
    assert cut["total"] == 10_000
    assert cut["rows"][:3] == [0, 1, 2]
    assert cut["rows"][-1] == 9_999
    assert "of 1,000 lines" in cut["log"]


def test_an_object_with_many_keys_says_how_many_are_missing() -> None:
    cut = strict(shown({f"key {number}": number for number in range(5_000)}))
    assert cut["key 0"] == 0
    assert cut["..."].endswith("of 5,000 entries left out here; the whole is kept in the run's journal")


def test_a_few_large_items_are_each_cut() -> None:
    cut = strict(shown(["a\n" * 5_000, 1, "b\n" * 5_000]))
    assert cut[1] == 1
    assert cut[0].startswith("a\n")
    assert cut[2].endswith("b\n")


def test_a_text_full_of_quotes_is_cut_to_what_its_json_takes() -> None:
    text = shown(['"' * 10_000])
    room = room_for(json.dumps(['"' * 10_000]), LIMIT)
    assert 0.8 * room < len(text) <= room < LIMIT / 2, "marks are short tokens"
    strict(text)


# --- for every value ----------------------------------------------------------------------------------

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.text(alphabet='\ud800\udc00\x00\x1b"\\\n\u0301a', max_size=200)
    | st.binary()
    | st.dates()
    | st.decimals()
    | st.sampled_from([Color.RED, Silent(), Failing(), ArrayLike(), Row("a", 1), shown, ValueError("\ud800")])
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=12)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=20) | st.integers() | st.dates(), inner, max_size=8)
        | st.lists(inner, min_size=1, max_size=2).map(lambda few: few * 40)
    ),
    max_leaves=30,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(_values, st.integers(400, 3_000))
def test_every_value_is_shown_in_bounds_as_text_that_can_be_stored(value: Any, limit: int) -> None:
    rendered = render(value, limit)
    text = text_of(rendered)
    assert len(text) <= limit
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)
    text.encode()
    for whole in (text, rendered.full) if isinstance(value, list | dict) else ():
        if whole is not None:
            strict(whole)
    assert rendered.truncated is (rendered.full is not None)
    assert render(value, limit) == rendered
    encode(_event(rendered.parts, rendered.full)).decode()


@pytest.mark.slow
@settings(deadline=None)
@given(st.text(st.characters(), max_size=50).map(lambda piece: piece * 100), st.integers(400, 800))
def test_every_cut_keeps_the_beginning_and_the_end(text: str, limit: int) -> None:
    rendered = render(text, limit)
    if not rendered.truncated:
        return
    cut, full = text_of(rendered), rendered.full or ""
    head, tail = cut.split("\n[... ")[0], cut.split(" ...]\n")[-1]
    assert full.startswith(head)
    assert full.endswith(tail)
    assert tail
    assert rendered.original_chars == len(full)


def _event(parts: tuple[Part, ...], full: str | None) -> CallReturned:
    return CallReturned(seq=1, at=0.0, step=1, position=0, parts=parts, full=full)
