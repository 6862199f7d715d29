"""The desk: the part of a run's page where a person decides about calls, tells the run something and stops it."""

from __future__ import annotations

import json
from typing import NamedTuple

from tenlines.core.events import WaitingCall
from tenlines.core.result import PendingCall, paused_calls, pending_calls
from tenlines.core.state import Phase, State
from tenlines.journal.owner import is_alive
from tenlines.serve import pages
from tenlines.trace import words
from tenlines.trace.redaction import Redaction
from tenlines.trace.story import Story
from tenlines.trace.text import clean, clean_json


class Stand(NamedTuple):
    """How a run stands, for whoever may do something about it."""

    text: str
    hears: bool
    """Whether it can be told something."""
    needs_resuming: bool
    """Whether somebody has to go on with it by a command."""
    elsewhere: tuple[WaitingCall, ...] = ()
    """Calls that waited in runs under its calls when it paused."""


class Question(NamedTuple):
    """A call that waits, as it is shown. The digest is that of the call as it really is."""

    id: str
    place: str
    name: str
    question: str
    arguments: str
    notes: tuple[str, ...]
    digest: str
    can_edit: bool


def pieces(story: Story, redaction: Redaction, now: float, go_on: str) -> dict[str, str]:
    """The pieces of the desk as HTML, by their ids.

    Args:
        go_on: The command that goes on with the run.
    """
    state = story.machine.state
    stand = stand_of(story)
    questions = [question_of(one, redaction, now) for one in pending_calls(state)] if _has_paused(state) else []
    command = clean(go_on) if stand.needs_resuming else ""
    elsewhere = [(pages.run_address(one.run_id), clean(f"{one.name} {one.place}")) for one in stand.elsewhere]
    shown = {"desk-state": pages.desk_state(clean(stand.text), elsewhere, hears=stand.hears, go_on=command)}
    return shown | {one.id: pages.desk_question(one) for one in questions}


def _has_paused(state: State) -> bool:
    """Whether a decision can be recorded: nobody works on the run."""
    return state.phase is Phase.ENDED and state.exchange is not None


def stand_of(story: Story) -> Stand:
    """How a run stands."""
    state, end = story.machine.state, story.end
    if end is None:
        return _open(story, is_undone=state.phase is Phase.UNDOING)
    if end.status != "awaiting_approval":
        return Stand("", hears=False, needs_resuming=False)
    waiting = len(pending_calls(state)) if _has_paused(state) else 0
    if waiting:
        calls = "A call waits" if waiting == 1 else f"{waiting:,} calls wait"
        return Stand(f"{calls} for a decision. Nothing runs meanwhile.", hears=True, needs_resuming=False)
    elsewhere = tuple(one for paused in paused_calls(state) for one in paused.waiting)
    if elsewhere:
        text = "It waits for decisions in the runs under its calls. When these are made, it goes on when it is resumed."
        return Stand(text, hears=True, needs_resuming=True, elsewhere=elsewhere)
    return Stand("Everything is decided. The run goes on when it is resumed.", hears=True, needs_resuming=True)


def _open(story: Story, *, is_undone: bool) -> Stand:
    who = words.owner(story.owner)
    if is_alive(story.owner) is False:
        text = "Its process is gone. The run goes on when it is resumed."
        return Stand(text, hears=not is_undone, needs_resuming=True)
    if is_undone:
        return Stand(f"{_named(who)} undoes what it did.", hears=False, needs_resuming=False)
    return Stand(f"{_named(who)} works on it.", hears=True, needs_resuming=False)


def _named(who: str) -> str:
    return f"{who[:1].upper()}{who[1:]}" if who else "A process"


_QUESTION = {"call": "May it run?", "in_doubt": "It may have taken effect before a crash. May it run again?"}


def question_of(one: PendingCall, redaction: Redaction, now: float) -> Question:
    """A call that waits, without its secrets."""
    notes = [f"Why it is asked: {clean(redaction.text(one.reason))}"] if one.reason else []
    if one.expires_at is not None:
        notes.append(_holds(one.expires_at - now))
    arguments = clean_json(json.dumps(redaction.of(one.arguments), ensure_ascii=False, indent=2))
    return Question(
        f"desk-call-{one.step}-{one.position + 1}",
        one.place,
        clean(redaction.text(one.name)),
        _QUESTION[one.about],
        arguments,
        tuple(notes),
        one.digest,
        one.about == "call",
    )


def _holds(seconds: float) -> str:
    """How long the question holds, so coarse that the page need not change by the second."""
    if seconds <= 0:
        return "Its time is over; it is asked anew when the run is resumed."
    left = "less than a minute" if seconds < 60 else words.duration(60 * (seconds // 60))
    return f"It can be answered for {left} more."
