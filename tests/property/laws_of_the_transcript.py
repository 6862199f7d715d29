"""The laws of the transcript: what is in it, in what order, what it may say, and that it only grows but for cuts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from call_facts import CallFacts

from tenlines.core import events as ev
from tenlines.core.effects import CallModel, RunTools
from tenlines.core.history import first_fault
from tenlines.core.transcript import Assistant, File, Image, Note, Result, User

if TYPE_CHECKING:
    from laws import Checked

CLAIMS_IT_DID_NOT_RUN = ("not executed", "did not run", "nothing was run", "nothing was changed", "cancelled")


def law_5_results_stand_in_call_order_behind_their_message(run: Checked) -> None:
    messages, expected = run.machine.state.messages, run.facts.expected
    if len(messages) == run.seen:
        missing = len(expected) - run.met
        assert not missing or (run.facts.open and missing == 1), "a message is missing from the transcript"
        return
    assert first_fault(messages) == ""
    for message in messages[run.seen :]:
        if isinstance(message, Note):
            _says_what_was_changed(run, message)
            continue
        assert run.met < len(expected), f"nobody said {message!r}"
        _matches(message, expected[run.met])
        run.met += 1
    run.kept.extend(messages[run.seen :])
    run.seen = len(messages)
    if not run.facts.open:
        assert run.met == len(expected), f"missing from the transcript: {expected[run.met :]!r}"
    assert run.noted == len(run.facts.notes), f"the model was not told: {run.facts.notes[run.noted :]!r}"


def _says_what_was_changed(run: Checked, note: Note) -> None:
    """A note on an edit, or on what was undone, is there where it is due, and says it all."""
    if "changed the arguments" not in note.text and "was undone" not in note.text:
        return
    assert run.noted < len(run.facts.notes), f"nothing was changed or undone: {note.text!r}"
    for words in run.facts.notes[run.noted]:
        assert words in note.text, f"{words!r} is missing in {note.text!r}"
    run.noted += 1


def _matches(message: Any, wanted: Any) -> None:
    if isinstance(wanted, CallFacts):
        assert isinstance(message, Result), "a result was expected here"
        parts = wanted.parts + wanted.tail
        assert (message.outcome, message.parts) == (wanted.outcome, parts), "a result was changed on its way"
        _is_true(wanted, message.outcome, message.text)
    elif isinstance(wanted, Assistant):
        assert isinstance(message, Assistant)
        assert (message.text, message.opaque) == (wanted.text, wanted.opaque)
        for call in message.calls:
            assert isinstance(json.loads(call.arguments), dict)
    else:
        assert message == wanted


def law_7_no_result_claims_what_is_not_known(run: Checked) -> None:
    """What is in the transcript is judged where it is matched, in law 5; here is what is about to be said."""
    if isinstance(run.effect, RunTools):
        for refusal in run.effect.refusals:
            _is_true(run.facts.open[refusal.position], refusal.outcome, refusal.text)


def _is_true(call: CallFacts, outcome: str, text: str) -> None:
    if outcome in ("ok", "tool_error"):
        return
    if outcome in ("in_doubt", "cancelled", "timeout"):
        assert call.runs, f"{outcome} of a call that never started"
    else:
        assert not call.may_have_had_effect, f"a call that may have taken effect is told as {outcome}"
    if outcome == "cancelled":
        assert not call.may_have_had_effect, "a call that may have taken effect is told as cancelled"
    if call.may_have_had_effect:
        for claim in CLAIMS_IT_DID_NOT_RUN:
            assert claim not in text, f"{claim!r} is said of a call that may have taken effect"
        if outcome == "in_doubt":
            assert "may have" in text


def law_11_the_transcript_only_grows(run: Checked) -> None:
    messages = run.machine.state.messages
    assert len(messages) == len(run.kept)
    assert not messages or messages[-1] is run.kept[-1]
    if isinstance(run.event, ev.RunEnded):
        assert all(one is other for one, other in zip(messages, run.kept, strict=True))
    if isinstance(run.effect, CallModel):
        assert len(run.effect.messages) == len(messages)
        assert 0 <= run.effect.new_from <= len(messages)
        assert run.facts.start is not None
        told_anew = run.facts.retells or run.cuts.is_cut
        begin = len(messages) if told_anew else max(run.effect.new_from, len(run.facts.start.messages))
        assert all(not isinstance(message, Assistant) for message in messages[begin:]), "the model's own words are new"


def what_was_refused_is_not_sent_again(run: Checked) -> None:
    effect, facts = run.effect, run.facts
    assert run.machine.state.left_out == facts.left_out
    if not isinstance(effect, CallModel):
        return
    if facts.retells:
        assert effect.new_from == 0, "a request that leaves something out is another request from the start"
    begin = 0 if isinstance(run.event, ev.ModelFailed) else max(0, len(effect.messages) - 6)
    for message, whole in zip(effect.messages[begin:], run.machine.state.messages[begin:], strict=True):
        assert type(message) is type(whole)
        if isinstance(message, Assistant):
            assert isinstance(whole, Assistant)
            assert message.calls == whole.calls
            assert not (message.opaque and "reasoning" in facts.left_out)
        elif isinstance(message, User | Result) and "media" in facts.left_out:
            assert not any(isinstance(part, Image | File) for part in message.parts)
        if not facts.left_out:
            assert message is whole
