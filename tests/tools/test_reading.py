"""`read_result`: whatever was cut can be read, in pages that need no reading on, and searched."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines.ports import Bound, CallContext, Invalid, ToolPort
from tenlines.tools.breaks import size
from tenlines.tools.reading import ReadResult

KEY = "r-1:2:0"
LOG = "".join(f"line {n} {'Error: boom' if n % 500 == 7 else 'ok'}\n" for n in range(5_000))
ROWS = json.dumps([{"id": n, "name": f"customer {n}"} for n in range(5_000)])


def whole(results: Mapping[str, str]) -> Any:
    def find(key: str) -> str:
        if key not in results:
            raise LookupError(f"there is no result {key}: this run has {', '.join(results)}")
        return results[key]

    return find


def ask(text: str, max_result: int = 100, **arguments: Any) -> str:
    """What a model gets to see."""
    tool: ToolPort = ReadResult(whole({KEY: text}), max_result)
    bound = tool.check({"key": KEY, **arguments})
    assert isinstance(bound, Bound)
    rendered = tool.render(tool.call(bound, CallContext("r-1:3:0", "read_result", None)))
    assert not rendered.truncated
    (part,) = rendered.parts
    assert size(part.text) <= max_result * 4  # type: ignore[union-attr]
    return str(part.text)  # type: ignore[union-attr]


def pages(text: str, max_result: int = 100) -> list[str]:
    """All pages, each asked for as the one before says."""
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        assert offset == len("".join(found))
        heading, _, page = ask(text, max_result, offset=offset).partition("\n")
        following = re.search(r"for more: offset=(\d+)\]$", heading)
        found.append(page)
        offset = int(following[1]) if following else None
    return found


def test_the_description_costs_few_tokens() -> None:
    spec = ReadResult(whole({})).spec
    described = [spec.description, *(one["description"] for one in spec.parameters["properties"].values())]  # type: ignore[index, union-attr, call-overload]
    assert len(" ".join(map(str, described)).split()) < 60
    assert spec.name == "read_result"
    assert spec.read_only


@pytest.mark.parametrize(
    "text", [LOG[:9_000], ROWS[:9_000], "日本語の行です" * 400, "\u0301" * 2_000, "\\" * 2_000], ids=range(5)
)
def test_the_pages_together_are_the_whole(text: str) -> None:
    read = pages(text)
    assert len(read) > 5
    assert "".join(read) == text


@settings(max_examples=40, deadline=None)
@given(st.text("a\n日\u0301👩\u200d🚀🇩🇪\\x1b[31m", min_size=1, max_size=40).map(lambda piece: piece * 30))
def test_the_pages_of_any_text_are_the_whole(text: str) -> None:
    assert "".join(pages(text)) == text


def test_a_page_ends_after_a_line_or_a_row() -> None:
    assert all(page.endswith("\n") for page in pages(LOG[:9_000])[:-1])
    assert all(page.endswith("}, ") for page in pages(ROWS[:9_000])[:-1])


def test_a_negative_offset_reads_the_end() -> None:
    answer = ask(LOG, offset=-30)
    assert answer.endswith(LOG[-30:])
    assert "this is the end]" in answer
    assert ask("short", offset=-1_000).endswith("]\nshort")


def test_the_heading_says_which_characters_of_how_many() -> None:
    heading, page = ask(LOG, offset=1_000).split("\n", 1)
    match = re.fullmatch(
        rf"\[characters 1,000 to ([\d,]+) of {len(LOG):,} of the result of {KEY}; for more: offset=(\d+)\]", heading
    )
    assert match is not None
    assert int(match[1].replace(",", "")) == int(match[2]) == 1_000 + len(page)


def test_an_offset_from_the_end_that_is_inside_a_character_begins_with_the_character() -> None:
    assert ask("ae\u0301b", offset=-2).endswith("\ne\u0301b")


def test_places_are_found_with_their_lines_and_all_are_counted() -> None:
    answer = ask(LOG, 200, find="Error: boom")
    heading, *places = answer.rstrip("\n").split("\n")
    assert f"'Error: boom' occurs 10 times in the {len(LOG):,} characters" in heading
    for place in places:
        at, line = place.split(": ", 1)
        assert LOG[int(at) :].startswith("Error: boom")
        assert line in LOG.split("\n")


def test_a_search_goes_on_where_it_stopped_and_finds_every_place() -> None:
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        heading, *places = ask(LOG, 100, find="Error", offset=offset).rstrip("\n").split("\n")
        found += places
        following = re.search(r"for more: offset=(\d+) and the same find\]$", heading)
        offset = int(following[1]) if following else None
    assert [int(place.split(":")[0]) for place in found] == [one.start() for one in re.finditer("Error", LOG)]


def test_another_case_is_found_where_the_text_does_not_occur_as_it_is() -> None:
    assert "'eRROR' (in upper or lower case) occurs 10 times" in ask(LOG, find="eRROR")


def test_what_does_not_occur_is_said() -> None:
    answer = ask(LOG, find="panic")
    assert (
        answer
        == f"'panic' (in upper or lower case) does not occur in the {len(LOG):,} characters of the result of {KEY}."
    )


def test_places_in_one_endless_line_are_shown_with_what_is_around_them() -> None:
    answer = ask(ROWS, 400, find='"customer 4321"')
    assert '{"id": 4321, "name": "customer 4321"}' in answer
    assert "occurs 1 time in" in answer


def test_very_many_places_are_not_all_counted() -> None:
    assert "'a' occurs more than 10,000 times" in ask("a " * 20_000, find="a")


def test_control_characters_of_foreign_text_do_not_break_the_limit() -> None:
    answer = ask("\x1b" * 5_000)
    assert "\x1b" not in answer
    assert "\\x1b" in answer
    ask("\x1b" * 5_000, find="\x1b" * 70)


def test_an_empty_result_is_said() -> None:
    assert ask("") == f"The result of {KEY} is empty."


def test_an_unknown_key_says_what_there_is() -> None:
    tool = ReadResult(whole({KEY: "x"}))
    with pytest.raises(LookupError, match=f"this run has {KEY}"):
        tool.call(Bound({"key": "r-1:9:9"}), CallContext("r-1:3:0", "read_result", None))


def test_an_offset_beyond_the_end_says_where_the_end_is() -> None:
    tool = ReadResult(whole({KEY: "x" * 10}))
    with pytest.raises(ValueError, match="has 10 characters, so offsets go from 0 to 9"):
        tool.call(Bound({"key": KEY, "offset": 10}), CallContext("r-1:3:0", "read_result", None))


def test_a_wrong_type_is_explained_before_anything_is_read() -> None:
    refused = ReadResult(whole({})).check({"key": 5})
    assert isinstance(refused, Invalid)
    assert "read_result did not run" in refused.text
