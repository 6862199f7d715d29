"""The meeting rooms of the examples: leave for large groups, and a booking that can be found and taken back."""

from pathlib import Path
from typing import Any

import pytest

from tenlines.ports import NOT_DONE, Allow, Ask, Bound, CallContext, GuardedCall
from tenlines.tools import Tool
from tenlines.tools.load import load_tools
from tenlines.tools.policy import settle

FILE = Path(__file__).parents[2] / "examples" / "rooms.py"
ATTIC = {"room": "attic", "day": "2026-03-02", "people": 12}
MINE, THEIRS = (CallContext(f"run-{number}:1:0", "book_room", None) for number in (1, 2))


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Tool[..., Any]]:
    monkeypatch.setenv("ROOMS_STATE", str(tmp_path / "state"))
    return {one.spec.name: one for one in load_tools(FILE)}


def call(one: Tool[..., Any], ctx: CallContext, **arguments: Any) -> Any:
    bound = one.check(arguments)
    assert isinstance(bound, Bound), bound
    return one.call(bound, ctx)


def test_a_room_is_booked_once(tools: dict[str, Tool[..., Any]]) -> None:
    assert list(tools) == ["free_rooms", "book_room"]
    assert call(tools["book_room"], MINE, **ATTIC) == "attic is booked for 2026-03-02"
    assert list(call(tools["free_rooms"], MINE, day="2026-03-02")) == ["hall", "kitchen"]
    with pytest.raises(ValueError, match="attic is taken on 2026-03-02"):
        call(tools["book_room"], THEIRS, **ATTIC)
    with pytest.raises(ValueError, match="there is no room 'attic' for 13 people"):
        call(tools["book_room"], THEIRS, **{**ATTIC, "people": 13})


def test_only_a_large_group_needs_leave(tools: dict[str, Tool[..., Any]]) -> None:
    book = tools["book_room"]
    for people, verdict in ((19, Allow), (20, Ask)):
        asked = GuardedCall(book.spec, {"room": "hall", "day": "2026-03-02", "people": people}, "run-1", 1, 0)
        assert type(settle(None, book, asked)) is verdict


def test_after_a_crash_a_booking_is_found_by_the_call_that_made_it(tools: dict[str, Tool[..., Any]]) -> None:
    book = tools["book_room"]
    assert book.reconcile(ATTIC, MINE) is NOT_DONE
    call(book, MINE, **ATTIC)
    assert book.reconcile(ATTIC, MINE) == "attic is booked for 2026-03-02"
    assert book.reconcile(ATTIC, THEIRS) is NOT_DONE


def test_a_booking_is_taken_back_by_its_own_call_and_as_often_as_asked(tools: dict[str, Tool[..., Any]]) -> None:
    book = tools["book_room"]
    call(book, MINE, **ATTIC)
    book.undo(ATTIC, "", THEIRS)
    assert "attic" not in call(tools["free_rooms"], MINE, day="2026-03-02")
    book.undo({**ATTIC, "room": "../attic"}, "", MINE)  # a call that failed had no effect
    for _ in range(2):
        book.undo(ATTIC, "attic is booked for 2026-03-02", MINE)
        assert "attic" in call(tools["free_rooms"], MINE, day="2026-03-02")
