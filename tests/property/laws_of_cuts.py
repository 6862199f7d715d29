"""The laws of cuts: what stays, what a summary may do, how large a request may be, what is said of its beginning.

Judged from the log and from the transcript before and after, at every prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from laws_of_money import CENT, at_request

from tenlines.core import context, metering
from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Compact, Finish, Sleep, Summarise
from tenlines.core.history import first_fault
from tenlines.core.limits import BOUNDED_OUTPUT
from tenlines.core.prefix import tools_change
from tenlines.core.state import Phase
from tenlines.core.transcript import Assistant, Message, Note, Result, System, Text, User, estimate_tokens

if TYPE_CHECKING:
    from laws import Checked

MOST_SUMMARIES = 2
"""So many in a row may come to nothing."""
SHORT = 400
"""Characters of a result that is never left out."""


# --- what a cut is --------------------------------------------------------------------------------------


def check_cut(before: Sequence[Message], after: Sequence[Message], event: ev.ContextCompacted) -> None:
    """What stands outside the stretch is as it was; inside, what people said is; and it is a transcript still."""
    start, end = event.start, event.end
    behind = len(before) - end
    assert first_fault(after) == "", "the cut broke the transcript"
    assert all(one is other for one, other in zip(before[:start], after[:start], strict=True)), "cut in front of it"
    for one, other in zip(before[end:], after[len(after) - behind :], strict=True):
        _is_as_it_was(one, other)
    same = next(
        (at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one is not other), len(after)
    )
    for message in after[same:]:
        is_signed = isinstance(message, Assistant) and message.opaque
        assert not is_signed or message.rebased, "signed reasoning is taken for what it was before the cut"  # type: ignore[union-attr]
    old, new = before[start:end], after[start : len(after) - behind]
    assert _said(old) == _said(new), "what somebody said was cut"
    if event.strategy == "elide":
        for one, other in zip(old, new, strict=True):
            _is_elided(one, other)
        return
    news = [one for one in new if not any(one is other for other in old)]
    held = any(isinstance(one, Assistant) for one in old)
    assert len(news) == held, "not one note in the place of exchanges"
    for note in news:
        assert isinstance(note, Note)
        assert note.summary == (event.strategy == "summarise"), "a note passes for a summary"
        assert event.strategy == "drop" or event.summary in note.text, "the summary is another"
    if held:
        assert not any(isinstance(one, Assistant | Result) for one in new), "an exchange is left of those that went"
        kept = [one for one in old if isinstance(one, Note) and one.summary and event.strategy == "drop"]
        assert [one for one in new if isinstance(one, Note) and one.summary and one not in news] == kept


def _said(messages: Sequence[Message]) -> list[Message]:
    return [one for one in messages if isinstance(one, User | System)]


def _is_as_it_was(one: Message, other: Message) -> None:
    """The same, but for the mark that its signed reasoning stands behind a cut."""
    if isinstance(one, Assistant) and one is not other:
        assert isinstance(other, Assistant)
        assert one.opaque, "a message was copied for nothing"
        one = msgspec.structs.replace(one, rebased=True)
    assert one == other, "a message was changed that stays"


def _is_elided(one: Message, other: Message) -> None:
    if not isinstance(one, Result):
        _is_as_it_was(one, other)
        return
    assert isinstance(other, Result)
    assert (one.call_id, one.name, one.outcome) == (other.call_id, other.name, other.outcome)
    if one is other:
        assert len(one.text) <= SHORT, "a long result was not left out"
    else:
        assert [type(part) for part in other.parts] == [Text]
        assert len(other.text) <= SHORT
        assert len(one.text) > SHORT or not all(isinstance(part, Text) for part in one.parts)


# --- what is asked for ----------------------------------------------------------------------------------


def a_cut_is_made_only_where_it_may_be(run: Checked) -> None:
    """Between two exchanges, by a run that goes on, of what can be cut; and it makes the transcript smaller."""
    effect, facts, state = run.effect, run.facts, run.machine.state
    if not isinstance(effect, Compact | Summarise) or run.phase in (Phase.SUMMARISING, Phase.AWAITING_MODEL):
        return  # nobody asks what is next while a request is under way
    assert run.phase is Phase.READY, f"cut while the run is {run.phase}"
    compaction = run.cuts.compaction
    assert compaction is not None, "nobody wants anything to be cut"
    assert not facts.open, "cut within an exchange"
    assert not facts.cancelled, "cut in a run that is cancelled"
    assert run.now >= facts.not_before, "cut before the time to ask again"
    strategy = "summarise" if isinstance(effect, Summarise) else effect.strategy
    assert strategy in compaction.strategies or strategy == "elide" or run.cuts.written, "a strategy that nobody wants"
    found = context.Span(strategy, effect.start, effect.end, 0, 0)
    assert context.problem(state.messages, found) == ""
    if isinstance(effect, Summarise):
        _is_the_next_request(run, effect)
        return
    _says_why(run, effect)
    if strategy == "summarise":
        assert run.cuts.written == (effect.start, effect.end, effect.summary), "a summary that nobody wrote"
    else:
        assert effect.summary == ""
        assert effect.arithmetic.tokens_after <= effect.arithmetic.tokens_before, "a cut that makes it larger"


def _says_why(run: Checked, effect: Compact) -> None:
    """The reason that is given is one."""
    assert run.cuts.compaction is not None
    told, window, at = effect.arithmetic, run.machine.state.cuts.window, run.cuts.compaction.at
    price = run.facts.start.settings.price if run.facts.start else None
    assert told.unit == ("tokens" if price is None else "dollars")
    assert abs(told.tokens_before - run.meter.likely) <= 1 + 1e-6 * run.meter.likely
    if told.why == "window":
        assert window is not None, "cut for a window that nobody knows"
    elif told.why == "asked":
        assert at is not None, "cut because more is held than nobody said"
        assert run.meter.likely > at
    elif effect.strategy != "summarise":  # what was written already is paid for
        assert told.saves > told.costs, "a cut that does not pay"
        is_odd = price is not None and (price.cache_read or 0.0) > price.input
        known = run.meter.at or run.facts.retells or is_odd
        assert known or told.costs >= -CENT, "where nothing was reported, a cut costs less than nothing"


def _is_the_next_request(run: Checked, effect: Summarise) -> None:
    """A summary is asked for with the transcript as it is, and a question behind it."""
    state, request, compaction = run.machine.state, effect.request, run.cuts.compaction
    assert compaction is not None
    assert "summarise" in compaction.strategies
    assert run.cuts.failures < MOST_SUMMARIES, "a summary is asked for again and again"
    assert not run.cuts.was_tried, "a second summary is asked for in one step"
    assert run.cuts.written is None, "a summary is asked for, and there is one"
    assert len(request.messages) == len(state.messages) + 1
    assert isinstance(request.messages[-1], Note)
    assert request.tools == state.specs
    assert request.tool_choice in ("auto", "none"), "a summary that has to call a tool"
    assert request.new_from == state.sent
    assert request.max_output_tokens is None or request.max_output_tokens > 0
    most = run.meter.most + estimate_tokens(request.messages[-1])
    assert abs(request.reserved.input_tokens - most) <= 1, "the reservation is not for what would be sent"


def a_summary_is_used_once_or_not_at_all(run: Checked) -> None:
    """One that can be used is put in place before the model is asked; any other leaves nothing in the transcript."""
    cuts, state = run.cuts, run.machine.state
    assert state.cuts.failures == cuts.failures
    assert state.cuts.summary == cuts.written, "another summary waits than the one that was written"
    assert (state.phase is Phase.SUMMARISING) == (cuts.asked is not None), "a summary is waited for in vain"
    if run.phase is Phase.READY and cuts.written is not None:
        assert not isinstance(run.effect, CallModel), "a summary was paid for and is not used"
    if isinstance(run.event, ev.SummaryEnded):
        assert not run.facts.waiting, "what people said meanwhile is not in the transcript"
        assert all(isinstance(one, User) for one in state.messages[run.length :]), "a summary is in the transcript"


def no_request_is_larger_than_the_window(run: Checked) -> None:
    """What is sent fits with its reply. Where nothing can be left out any more it is enough that it likely does."""
    request, state = at_request(run.effect), run.machine.state
    window, compaction = state.cuts.window, run.cuts.compaction
    if request is None or run.phase is not Phase.READY or window is None or compaction is None:
        return
    most = state.settings.max_output_tokens or BOUNDED_OUTPUT
    least_output = min(most, int(window / 4))
    output = request.max_output_tokens
    held = request.reserved.input_tokens
    if held + least_output <= window:
        assert output is None or held + output <= max(window, held + 1), "the reply does not fit into the window"
        return
    assert isinstance(run.effect, CallModel), "a summary is asked for, and the question does not fit"
    assert run.meter.likely + least_output <= window, "a request leaves above the window"
    assert context.last_resort(state.messages, [estimate_tokens(one) for one in state.messages]) is None
    assert output is None or output <= max(1, least_output)


def a_run_that_is_too_long_ends_only_where_nothing_helps(run: Checked) -> None:
    effect, window = run.effect, run.machine.state.cuts.window
    if not isinstance(effect, Finish) or effect.status != "context_overflow" or run.phase is not Phase.READY:
        return
    if run.machine.state.stop is not None:
        return
    assert window is not None, "too long for a window that nobody knows"
    most = run.machine.state.settings.max_output_tokens or BOUNDED_OUTPUT
    assert run.meter.likely + min(most, int(window / 4)) > window, "it would fit, and the run ends"


def the_window_is_what_was_said_or_learnt(run: Checked) -> None:
    """It is known from whoever starts or takes up the run, and made smaller by each refusal."""
    window, before, compaction = run.machine.state.cuts.window, run.window, run.cuts.compaction
    match run.event:
        case ev.RunStarted():
            assert window == (None if compaction is None else compaction.window)
        case ev.RunResumed(compaction=told):
            most = before if told is None else told.window
            assert most is None or (window is not None and window <= most), "the window grew beyond what is known"
            if told is not None and told.window is not None and told.window != run.told_window:
                assert window == told.window, "it is said how much the model takes in, and that is not believed"
        case ev.ModelFailed(kind="ContextTooLong") if compaction is not None:
            assert window is not None, "nothing is learnt from a refusal"
            assert window < max(run.meter.likely, 1e-9) or window == 0, "the very same request would be sent again"
            assert before is None or window <= before
        case _:
            assert window == before, "the window changed by itself"


# --- what the log says of the beginning of a request ----------------------------------------------------


def a_request_begins_as_the_one_before_it(run: Checked) -> None:
    """Up to `new_from`, message for message; and where the beginning changed, it says so, and else says nothing."""
    request = at_request(run.effect)
    if request is None or run.phase is not Phase.READY:
        return
    upto = request.new_from
    assert 0 <= upto <= len(run.asked) + 1, "the model is taken to know what it was not sent"
    for index in range(min(upto, len(run.asked))):
        sent, now = run.asked[index], request.messages[index]
        assert sent is now or sent == now, "the request begins otherwise than the one before it"
    if upto > len(run.asked):
        assert isinstance(request.messages[upto - 1], Assistant), "more was sent than that"
    _says_what_changed(run, request)


def _says_what_changed(run: Checked, request: CallModel) -> None:
    facts = run.facts
    assert facts.start is not None
    if run.answered is None:
        told = request.changed.startswith(facts.start.changed)
        assert told, "what changed since the last run of the session is not said"
        return
    upto, specs, choice = run.answered
    is_shorter = request.new_from < upto
    is_other = bool(tools_change(specs, request.tools)) or choice != request.tool_choice
    if is_shorter or is_other:
        assert request.changed, "the beginning changed, and that is not said"
    elif upto:
        assert not request.changed, f"it is said that the beginning changed: {request.changed}"


def what_is_cut_is_told_anew(run: Checked) -> None:
    """The model's session is not left with messages that are no more."""
    state = run.machine.state
    assert state.sent <= len(state.messages)


def looks_are_few(run: Checked) -> None:
    """After a look nothing is looked at again before the request has grown: looking costs a share of the work."""
    state = run.machine.state
    if isinstance(run.event, ev.StepStarted) and state.compaction is not None and state.phase is Phase.AWAITING_MODEL:
        at = state.compaction.at
        assert state.cuts.look_at > metering.likely(state) or not metering.likely(state) or at is not None
    if isinstance(run.effect, Sleep):
        assert run.phase is Phase.READY


LAWS_OF_CUTS = (
    a_cut_is_made_only_where_it_may_be,
    a_summary_is_used_once_or_not_at_all,
    no_request_is_larger_than_the_window,
    a_run_that_is_too_long_ends_only_where_nothing_helps,
    the_window_is_what_was_said_or_learnt,
    a_request_begins_as_the_one_before_it,
    what_is_cut_is_told_anew,
    looks_are_few,
)
