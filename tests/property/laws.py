"""The eleven laws of the machine as checks, shared by every kind of test in this folder.

`Checked` is a machine under observation. Beside the live machine it keeps a *shadow*: a second machine that has
seen nothing but what the log holds, and only after it went through the codec. And it keeps `Facts`: what the log
says, read from the events alone. The laws of leave, doubt and undoing are in `laws_of_leave`, those of money in
`laws_of_money`, those of cuts and of the beginning of requests in `laws_of_cuts`, those of calls that are runs in
`laws_of_children`, those of answers with a schema in `laws_of_answers`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec
from call_facts import as_object
from cut_facts import CutFacts, Meter
from facts import Facts
from laws_of_answers import LAWS_OF_ANSWERS
from laws_of_children import LAWS_OF_CHILDREN
from laws_of_cuts import LAWS_OF_CUTS, check_cut
from laws_of_leave import LAWS_OF_LEAVE
from laws_of_money import LAWS_OF_MONEY, committed
from laws_of_the_transcript import (
    law_5_results_stand_in_call_order_behind_their_message,
    law_7_no_result_claims_what_is_not_known,
    law_11_the_transcript_only_grows,
    what_was_refused_is_not_sent_again,
)
from stills import still

from tenlines.core import codec, metering
from tenlines.core import events as ev
from tenlines.core.changes import estimate_tools
from tenlines.core.effects import (
    AskHuman,
    CallModel,
    Compact,
    Effect,
    Finish,
    Reconcile,
    RunTools,
    Sleep,
    Summarise,
    UndoCall,
)
from tenlines.core.leaving import without
from tenlines.core.limits import Limits
from tenlines.core.machine import Machine
from tenlines.core.state import OpenCall, Phase
from tenlines.core.transcript import (
    Note,
    System,
    TranscriptView,
    User,
    estimate_tokens,
)
from tenlines.errors import InvalidEvent

_ALWAYS = frozenset(
    {ev.RunResumed, ev.LimitsRaised, ev.MessageQueued, ev.CancelRequested, ev.LateResultArrived},
)
ACCEPTS: dict[Phase, frozenset[type]] = {
    Phase.NEW: frozenset({ev.RunStarted}),
    Phase.READY: _ALWAYS | {ev.RunEnded, ev.StepStarted, ev.UndoStarted, ev.SummaryStarted, ev.ContextCompacted},
    Phase.SUMMARISING: _ALWAYS | {ev.SummaryEnded},
    Phase.AWAITING_MODEL: _ALWAYS | {ev.ModelReplied, ev.ModelFailed},
    Phase.AWAITING_TOOLS: _ALWAYS
    | {ev.CallStarted, ev.CallReturned, ev.CallFailed, ev.CallTimedOut, ev.CallAbandoned}
    | {ev.ChildPaused, ev.CallReconciled, ev.ApprovalAsked, ev.ApprovalGiven, ev.RunEnded},
    Phase.UNDOING: _ALWAYS | {ev.RunEnded, ev.UndoStarted, ev.CallUndone},
    Phase.ENDED: frozenset({ev.RunResumed, ev.LateResultArrived, ev.ApprovalGiven, ev.UndoRequested}),
}
"""Which kinds of event may be accepted where; written down a second time, by hand."""


class Checked:
    """A machine under observation: `take` an event and every law is checked."""

    def __init__(self) -> None:
        self.machine, self.shadow, self.facts = Machine(), Machine(), Facts()
        self.event: ev.AnyEvent | None = None
        self.effect: Effect | None = None
        self.now = 0.0
        self.seen = 0
        """How many messages of the transcript have been looked at."""
        self.met = 0
        """How many of the expected messages have been found there."""
        self.noted = 0
        """How many of the notes on edits and on undoing have been found there."""
        self.kept: list[Any] = []
        """The transcript, as it was looked at."""
        self.cuts, self.meter = CutFacts(), Meter()
        self.words = self.tools = 0
        """What the transcript is estimated at, and the tools."""
        self.asked: list[Any] = []
        """What the model was sent last."""
        self.view: TranscriptView | None = None
        """The view that was taken for it."""
        self.attempted: tuple[Any, str] | None = None
        """The tools of that request, and its tool choice."""
        self.answered: tuple[int, Any, str] | None = None
        """The same of the last request that was answered, and before them how many messages it had."""
        self._remember()

    def _remember(self) -> None:
        """What the laws compare with after the next event."""
        state = self.machine.state
        self.committed = committed(self)
        self.reckoned = (metering.likely(state), metering.most(state))
        self.length, self.window = len(state.messages), state.cuts.window
        self.told_window = None if self.cuts.compaction is None else self.cuts.compaction.window

    def fork(self) -> Checked:
        """A second one with the same log, without checking it again."""
        twin = copy.copy(self)
        twin.machine, twin.shadow, twin.facts = still(self.machine), still(self.shadow), self.facts.still()
        twin.kept = list(twin.machine.state.messages)
        twin.cuts, twin.meter = msgspec.structs.replace(self.cuts), msgspec.structs.replace(self.meter)
        twin.view = None
        return twin

    def take(self, event: ev.AnyEvent) -> None:
        """An event that has to be accepted."""
        try:
            self.machine.apply(event)
        except InvalidEvent as error:
            raise AssertionError(f"an honest event was refused: {error}") from error
        self._accepted(event)

    def refuse(self, event: Any) -> None:
        """An event that has to be refused."""
        accepted = self._offer(event)
        assert not accepted, f"a hostile event was accepted: {event!r}"

    def offer(self, event: Any) -> bool:
        """An event that may or may not be accepted; the laws hold either way."""
        phase = self.machine.state.phase
        if not self._offer(event):
            return False
        assert type(event) in ACCEPTS[phase], f"{type(event).__name__} was accepted while {phase}"
        self._accepted(event)
        return True

    def _offer(self, event: Any) -> bool:
        try:
            self.machine.apply(event)
        except InvalidEvent:
            assert self.machine.state == self.shadow.state, "a refused event changed the state"
            return False
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} instead of InvalidEvent: {error}") from error
        return True

    def _accepted(self, event: ev.AnyEvent) -> None:
        read = codec.decode(codec.encode(event))
        self.facts.read(read)
        self.shadow.replay(read)
        self.event, self.now = read, max(self.now, read.at)
        self._follow(read)
        self.check()
        self._remember()

    def _follow(self, event: ev.AnyEvent) -> None:
        """What the log says together with the transcript, which the laws have found to be right so far."""
        state, stretch = self.machine.state, self.cuts.asked or (0, 0)
        if isinstance(event, ev.StepStarted) and isinstance(self.effect, CallModel):
            self.view = self.effect.messages
        if isinstance(event, ev.ContextCompacted):
            check_cut(self.kept, state.messages, event)
            assert self.view is None or len(self.view) == len(self.asked)
            assert self.view is None or list(self.view) == self.asked, "what was sent is changed in the hands of others"
            self.kept, self.seen = list(state.messages), len(state.messages)
        goes = (one for one in self.kept[slice(*stretch)] if not isinstance(one, User | System))
        self.cuts.read(event, sum(map(estimate_tokens, goes)))
        if len(state.messages) != self.length or isinstance(event, ev.ContextCompacted | ev.RunStarted):
            self.words = sum(map(estimate_tokens, state.messages))
        if isinstance(event, ev.RunStarted | ev.RunResumed | ev.UndoRequested):
            self.tools = estimate_tools(tuple(self.facts.tools.values()))
        self.meter.read(event, self.words + self.tools)
        if isinstance(event, ev.StepStarted):
            self.asked = [without(one, state.left_out) for one in state.messages]
            self.attempted = (tuple(self.facts.tools.values()), state.asked_choice)
        elif isinstance(event, ev.ModelReplied) and self.attempted is not None:
            self.answered = (len(self.asked), *self.attempted)

    def check(self) -> None:
        """Every law, now."""
        self.effect = None if self.phase is Phase.NEW else self.machine.next(self.now)
        for law in LAWS:
            law(self)

    @property
    def phase(self) -> Phase:
        return self.machine.state.phase


# --- the laws -----------------------------------------------------------------------------------------


def law_1_every_limit_is_checked_first(run: Checked) -> None:
    facts, effect, limits = run.facts, run.effect, run.facts.limits
    if isinstance(run.event, ev.CallStarted) and limits.tool_calls is not None:
        call = facts.open[run.event.position]
        is_free = len(call.runs) > 1 or facts.tools[call.name].answer
        assert is_free or facts.used("tool_calls") <= limits.tool_calls, "a call started past the limit"
    if isinstance(effect, RunTools) and limits.tool_calls is not None:
        new = sum(not (facts.open[call.position].runs or facts.tools[call.name].answer) for call in effect.calls)
        used = facts.used("tool_calls")
        assert used + new <= max(limits.tool_calls, used), "more calls may run than are left"
    if isinstance(run.event, ev.StepStarted):
        _has_a_step_left(facts, limits)
    if isinstance(effect, Finish) and run.phase is Phase.READY and run.machine.state.stop is None:
        _is_really_used_up(run, effect)
    if isinstance(effect, CallModel) and run.phase is Phase.READY:
        _has_a_step_left(facts, limits, effect.tool_choice)
        _fits_the_budget(run, effect)


def _has_a_step_left(facts: Facts, limits: Limits, choice: str = "") -> None:
    if limits.steps is not None and facts.used("steps") >= limits.steps:
        assert limits.last_words, "the model is asked past the step limit"
        assert 0 < limits.steps == facts.used("steps"), "more than one request past the step limit"
        wanted = "none" if facts.giver is None else facts.giver.name
        assert choice in ("", wanted), "the last words could be another call"


def _is_really_used_up(run: Checked, effect: Finish) -> None:
    """A limit is given as the reason only where there is one, and it is reached."""
    facts, limits = run.facts, run.facts.limits
    if effect.status == "max_steps":
        assert limits.steps is not None, "ended at a step limit that there is not"
        assert facts.used("steps") >= limits.steps, "ended before the step limit"
    elif effect.status == "budget":
        assert (limits.tokens, limits.dollars) != (None, None), "ended at a budget that there is not"
    elif effect.status == "deadline":
        assert facts.deadline is not None, "ended at a deadline that there is not"


def _fits_the_budget(run: Checked, effect: CallModel) -> None:
    facts, limits, reserved = run.facts, run.facts.limits, effect.reserved
    assert facts.start is not None
    assert run.machine.state.tools_tokens >= len(run.machine.state.specs), "the tools are not reserved for"
    if limits.tokens is not None:
        assert effect.max_output_tokens is not None
        assert facts.used("tokens") + reserved.input_tokens + effect.max_output_tokens <= limits.tokens
    if limits.dollars is not None:
        price = facts.start.settings.price
        assert price is not None, "a dollar limit without a price"
        if price.output:
            assert effect.max_output_tokens is not None
        worst = price.worst(reserved.input_tokens, effect.max_output_tokens or 0)
        assert facts.used("dollars") + worst <= limits.dollars + 1e-9 * (1 + limits.dollars)
        assert reserved.dollars == worst
    if facts.deadline is not None:
        assert run.now < facts.deadline, "the model is asked after the deadline"
        assert effect.deadline_at is not None
        assert abs(effect.deadline_at - facts.deadline) < 1e-6


def law_2_a_run_that_has_no_end_ends_as_max_steps(run: Checked) -> None:
    event = run.event
    if run.facts.ended is None and isinstance(event, ev.RunStarted | ev.StepStarted | ev.CallStarted):
        result = run.machine.result()
        assert (result.status, result.answer) == ("max_steps", None)
    if isinstance(event, ev.ModelFailed) and event.kind == "OutOfMoves" and not run.facts.cancelled:
        assert isinstance(run.effect, Finish | UndoCall)
        assert not isinstance(run.effect, Finish) or run.effect.status == "max_steps"


def law_3_nothing_runs_before_its_intent(run: Checked) -> None:
    facts, effect = run.facts, run.effect
    if isinstance(run.event, ev.CallStarted):
        assert run.event.step == facts.replies, "a call of a reply that is not in the log"
        assert run.event.position < len(facts.open)
    if isinstance(effect, RunTools):
        for one in (*effect.calls, *effect.refusals):
            assert one.step == facts.replies
            assert one.position < len(facts.open)
        for call in effect.calls:
            assert call.key == f"{facts.start.run_id}:{call.step}:{call.position}", "the key is not stable"  # type: ignore[union-attr]


def law_4_one_result_for_each_call(run: Checked) -> None:
    state, facts = run.machine.state, run.facts
    assert len(state.records) == facts.closed_calls, "results and calls do not match"
    is_paused = facts.ended is not None and facts.ended.status == "awaiting_approval"
    assert (state.phase is Phase.AWAITING_TOOLS or is_paused) == bool(facts.open)
    assert (state.exchange is not None) == bool(facts.open)
    if isinstance(run.effect, RunTools):
        answered = [one.position for one in (*run.effect.refusals, *run.effect.calls)]
        assert len(set(answered)) == len(answered), "one call is named twice"
        assert all(not facts.open[position].outcome for position in answered), "a second result would be written"


def law_6_nothing_happens_after_the_end(run: Checked) -> None:
    facts, effect, event = run.facts, run.effect, run.event
    if facts.ended is not None:
        assert isinstance(effect, Finish)
        assert (effect.status, effect.reason, effect.answer) == (
            facts.ended.status,
            facts.ended.reason,
            facts.ended.answer,
        )
    if facts.final is not None:
        assert isinstance(effect, RunTools)
        assert not effect.calls, "a call would run beside the final answer"
        assert not isinstance(event, ev.CallStarted), "a call started beside the final answer"
    finals = (one for one in facts.open if one.spec and one.spec.final and as_object(one.raw) is not None)
    first = next((one for one in finals if not one.is_handed_over), None)
    if first is not None and not first.outcome and isinstance(effect, RunTools):
        refused = first.position in {one.position for one in effect.refusals}
        assert refused or all(call.position == first.position for call in effect.calls), "the final tool has to wait"
    if facts.last_final is not None and facts.is_ready and facts.ended is None:
        assert isinstance(effect, Finish)
        assert (effect.status, effect.answer) == ("answered", facts.last_final)


def law_8_no_tool_runs_with_arguments_that_nobody_wrote(run: Checked) -> None:
    """The model's own, or those that somebody put in place, on record."""
    if isinstance(run.event, ev.CallStarted):
        call = run.facts.open[run.event.position]
        assert call.spec is not None, "an unknown tool ran"
        assert as_object(call.raw) is not None, "unreadable arguments ran"
        assert not call.blocked, "a call of a reply that is not whole ran"
    if isinstance(run.effect, RunTools):
        for one in run.effect.calls:
            asked = run.facts.open[one.position]
            assert one.name == asked.name
            assert one.arguments == asked.arguments, "the arguments were changed"
            assert one.name in run.facts.tools, "a tool would run that this process does not have"


def law_9_only_an_answer_is_an_answer(run: Checked) -> None:
    effect = run.effect
    if isinstance(effect, Finish):
        assert (effect.answer is not None) == (effect.status == "answered")
        if effect.status == "answered":
            assert effect.answer in (run.facts.words, run.facts.last_final), "nobody gave this answer"
        if run.facts.ended is not None:
            result = run.machine.result()
            assert (result.status, result.answer) == (effect.status, effect.answer)


def law_10_the_log_says_it_all(run: Checked) -> None:
    assert run.machine.state == run.shadow.state, "the folded log gives another state"
    if run.effect is not None:
        assert _plain(run.shadow.next(run.now)) == _plain(run.effect), "the folded log says another next effect"
        assert run.machine.state == run.shadow.state, "asking for the next effect changed the state"


def _plain(effect: Effect) -> Any:
    """An effect as it compares: the transcript in it is a view of the state, which is compared anyway."""
    if isinstance(effect, Summarise):
        return effect.start, effect.end, _plain(effect.request)
    if not isinstance(effect, CallModel):
        return effect
    return [len(effect.messages)] + [getattr(effect, name) for name in _CALL_MODEL]


_CALL_MODEL = [name for name in CallModel.__struct_fields__ if name != "messages"]


def a_cancelled_run_starts_nothing(run: Checked) -> None:
    if not run.facts.cancelled:
        return
    assert not isinstance(run.event, ev.CallStarted | ev.StepStarted), "something started after the cancel"
    if run.phase is Phase.READY:
        assert isinstance(run.effect, Finish | UndoCall), "a cancelled run goes on"
    if isinstance(run.effect, RunTools):
        assert not run.effect.calls, "a call would start after the cancel"
        on_time = run.facts.deadline is None or run.now < run.facts.deadline
        if run.facts.cancelled == "drain" and on_time and run.facts.final is None:
            running = {one.call.id for one in under_way(run)}
            exchange = run.machine.state.exchange
            given_up = {exchange.calls[one.position].call.id for one in run.effect.refusals} if exchange else set()
            assert not running & given_up, "a drain gives up what runs"


def a_request_is_repeated_only_so_often_and_not_too_soon(run: Checked) -> None:
    facts = run.facts
    if facts.start is None:
        return
    attempts = facts.start.settings.retry.attempts
    assert facts.failures <= attempts + facts.cured, "more attempts than allowed"
    if isinstance(run.effect, CallModel) and run.phase is Phase.READY:
        assert facts.failures < attempts + facts.cured, "another attempt past the last"
        assert run.now >= facts.not_before, "asked again before the provider's time"
        assert run.effect.attempt == facts.failures + 1


def a_run_is_never_stuck(run: Checked) -> None:
    """Not ended means that there is something to do, and that it can be done."""
    effect, facts = run.effect, run.facts
    match run.phase:
        case Phase.READY:
            assert isinstance(effect, CallModel | Sleep | Finish | UndoCall | Compact | Summarise)
            assert not isinstance(effect, Sleep) or effect.until > run.now
        case Phase.AWAITING_TOOLS if isinstance(effect, RunTools):
            under_way = any(one.in_hand for one in facts.open)
            assert effect.calls or effect.refusals or under_way, "nothing can be done"
        case Phase.AWAITING_TOOLS:
            assert isinstance(effect, AskHuman | Reconcile | Finish)
        case Phase.UNDOING:
            assert isinstance(effect, UndoCall | Finish)
        case Phase.ENDED:
            assert isinstance(effect, Finish)


def under_way(run: Checked) -> list[OpenCall]:
    """The calls that have started in this process and have not ended."""
    exchange = run.machine.state.exchange
    calls = [] if exchange is None else exchange.calls
    return [one for one in calls if one.started and one.outcome is None and one.refusal is None]


def calls_run_alone_unless_they_only_read(run: Checked) -> None:
    busy = [one.spec for one in under_way(run) if one.spec is not None]
    assert len(busy) < 2 or all(spec.read_only for spec in busy), "a call that acts runs beside another"
    if isinstance(run.effect, RunTools) and run.effect.calls:
        specs = busy + [run.facts.tools[call.name] for call in run.effect.calls]
        assert len(specs) == 1 or all(spec.read_only for spec in specs), "a call that acts would run beside another"


def a_loop_is_told_and_one_more_round_ends_it(run: Checked) -> None:
    facts, effect = run.facts, run.effect
    closed = isinstance(run.event, ev.CallReturned | ev.CallFailed | ev.CallTimedOut | ev.CallAbandoned)
    if facts.start is None or facts.open or not closed:
        return
    rules = facts.start.settings.repeats
    stuck = isinstance(effect, Finish) and effect.status == "stuck"
    too_many = rules.invalid_in_a_row is not None and facts.invalid >= rules.invalid_in_a_row
    assert not too_many or isinstance(effect, Finish | UndoCall), "nothing but invalid calls, and the run goes on"
    if rules.told_after is None:
        assert not stuck or too_many, "stuck without a reason"
        return
    rounds = {p: facts.stretch(p) / p for p in range(1, 7)}
    over = [p for p, n in rounds.items() if n > rules.told_after and n == int(n)]
    assert not over or isinstance(effect, Finish | UndoCall), f"the loop of {over} exchanges was not ended"
    assert not stuck or over or too_many, "stuck too early"
    if rules.told_after in rounds.values() and isinstance(effect, CallModel | Sleep) and not _is_blank(run):
        notes = [one.text for one in run.kept[-4:] if isinstance(one, Note)]
        assert any("same result" in note for note in notes), "the model was not told of the loop"


def _is_blank(run: Checked) -> bool:
    for event in reversed(run.facts.log):
        if isinstance(event, ev.ModelReplied):
            return event.reply.stop == "malformed_call"
    return False


def the_end_stays_the_end(run: Checked) -> None:
    if isinstance(run.effect, Finish) and run.phase is not Phase.AWAITING_TOOLS:
        assert run.machine.next(run.now) == run.effect
        assert run.machine.next(run.now + 1e6) == run.effect, "the end depends on when it is asked for"


LAWS: tuple[Callable[[Checked], None], ...] = (
    law_10_the_log_says_it_all,
    law_1_every_limit_is_checked_first,
    law_2_a_run_that_has_no_end_ends_as_max_steps,
    law_3_nothing_runs_before_its_intent,
    law_4_one_result_for_each_call,
    law_5_results_stand_in_call_order_behind_their_message,
    law_6_nothing_happens_after_the_end,
    law_7_no_result_claims_what_is_not_known,
    law_8_no_tool_runs_with_arguments_that_nobody_wrote,
    law_9_only_an_answer_is_an_answer,
    law_11_the_transcript_only_grows,
    a_cancelled_run_starts_nothing,
    a_request_is_repeated_only_so_often_and_not_too_soon,
    what_was_refused_is_not_sent_again,
    a_run_is_never_stuck,
    calls_run_alone_unless_they_only_read,
    a_loop_is_told_and_one_more_round_ends_it,
    the_end_stays_the_end,
    *LAWS_OF_LEAVE,
    *LAWS_OF_MONEY,
    *LAWS_OF_CUTS,
    *LAWS_OF_CHILDREN,
    *LAWS_OF_ANSWERS,
)
