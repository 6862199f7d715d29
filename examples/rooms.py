"""Book a meeting room. Large groups need a person's leave; what was booked can be taken back.

    tenlines run "Book the attic for 12 people on 2 March 2026" --tools examples/rooms.py

A booking is a file, in the folder that `ROOMS_STATE` names or else in `bookings`. The key of the call stands in it as
its reference. By that `find` tells after a crash whether the booking was made, and `cancel` takes back this booking
and no other, as often as it is called.
"""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path

from tenlines import CallContext, tool
from tenlines.ports import NOT_DONE, Aftermath, GuardedCall

ROOMS = {"attic": 12, "hall": 80, "kitchen": 6}
"""Room -> how many people it holds."""
LARGE = 20
"""People. From here on somebody has to agree."""


@tool(read_only=True)
def free_rooms(day: date) -> dict[str, int]:
    """List the rooms that are free on a day, with the number of people that each holds."""
    return {room: size for room, size in ROOMS.items() if not _booking(room, day).exists()}


def is_large(call: GuardedCall) -> bool:
    """Whether somebody has to be asked."""
    people = call.arguments["people"]
    return not isinstance(people, int) or people >= LARGE


def cancel(room: str, day: date, ctx: CallContext) -> None:
    """Take back what a call booked, if it booked anything."""
    if _reference(room, day) == ctx.key:
        _booking(room, day).unlink()


def find(room: str, day: date, ctx: CallContext) -> str | Aftermath:
    """Whether a call booked the room before the process died."""
    return _confirmation(room, day) if _reference(room, day) == ctx.key else NOT_DONE


@tool(approve=is_large, undo=cancel, reconcile=find)
def book_room(room: str, day: date, people: int, ctx: CallContext) -> str:
    """Book a room for a whole day.

    Args:
        room: As free_rooms names it.
        day: Which day.
        people: How many people will come.
    """
    if not 0 < people <= ROOMS.get(room, 0):
        raise ValueError(f"there is no room {room!r} for {people} people; free_rooms tells what there is")
    booking = _booking(room, day)
    booking.parent.mkdir(parents=True, exist_ok=True)
    draft = booking.with_name(f"{booking.name}.{os.getpid()}")
    draft.write_text(json.dumps({"reference": ctx.key, "people": people}))
    try:
        os.link(draft, booking)  # the whole booking at once, and only one of two
    except FileExistsError:
        raise ValueError(f"{room} is taken on {day}; free_rooms tells what is free") from None
    finally:
        draft.unlink()
    return _confirmation(room, day)


def _confirmation(room: str, day: date) -> str:
    return f"{room} is booked for {day}"


def _reference(room: str, day: date) -> str:
    """The key of the call that made a booking, or ""."""
    booking = _booking(room, day)
    return str(json.loads(booking.read_text())["reference"]) if room in ROOMS and booking.exists() else ""


def _booking(room: str, day: date) -> Path:
    return Path(os.environ.get("ROOMS_STATE") or "bookings") / f"{day}-{room}.json"
