"""What a reply in words means where the answer has a schema (`ToolSpec.answer`)."""

from __future__ import annotations

import msgspec

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.calls import RUNS_CALLS
from tenlines.core.changes import append, offer_last_words
from tenlines.core.state import State, Stop
from tenlines.core.transcript import Note, Reply, ToolCall


def as_call(state: State, reply: Reply) -> Reply:
    """The reply; one that is nothing but a JSON object as the call of the tool that takes the answer. So comes what a
    provider constrains to the schema of the answer; whether it fits is seen as with every call."""
    text = reply.text.strip()
    if state.finish is None or reply.calls or reply.stop not in RUNS_CALLS or not text.startswith("{"):
        return reply
    if outcomes.parse_arguments(text).value is None:
        return reply
    return msgspec.structs.replace(reply, text="", calls=(ToolCall("", state.finish.name, text),))


def ask_for_finish(state: State, finish: ev.ToolSpec) -> None:
    """Words where the answer has a schema: ask for the call that takes it, as often as for replies that say nothing."""
    state.blanks += 1
    state.finish_due = True
    append(state, Note(outcomes.finish_wanted(finish.name)))
    if state.blanks > state.settings.blank_replies:
        reason = f"the model answers in words instead of calling {finish.name}"
        state.stop = Stop("stuck", f"{reason}; replies without an answer, in a row: {state.blanks}")
        return
    state.warnings.append(f"step {state.account.steps}: the reply was words, and {finish.name} was asked for")
    offer_last_words(state)
