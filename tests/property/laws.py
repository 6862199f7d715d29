"""The eleven laws of the machine as checks, shared by every kind of test in this folder.

`Checked` is a machine under observation. Beside the live machine it keeps a *shadow*: a second machine that has
seen nothing but what the log holds, and only after it went through the codec. And it keeps `Facts`: what the log
says, read from the events alone and in the plainest way, so that no law trusts the machine that it judges.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from tenlines.core import codec, outcomes
from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Effect, Finish, RunTools, Sleep
from tenlines.core.history import first_fault
from tenlines.core.limits import Limits
from tenlines.core.machine import Machine
from tenlines.core.replay import fold
from tenlines.core.state import OpenCall, Phase
from tenlines.core.transcript import Assistant, File, Image, Note, Part, Result, Text, Usage, User, estimate_tokens
from tenlines.errors import InvalidEvent

CLAIMS_IT_DID_NOT_RUN = ("not executed", "did not run", "nothing was run", "nothing was changed", "cancelled")

WHOLE = ("end", "tool_calls", "stop_sequence")
"""Stop reasons of a reply that is whole: its calls may run, its words may be the answer."""

ACCEPTS: dict[Phase, frozenset[type]] = {
    Phase.NEW: frozenset({ev.RunStarted}),
    Phase.READY: frozenset(
        {
            ev.RunResumed,
            ev.LimitsRaised,
            ev.MessageQueued,
            ev.CancelRequested,
            ev.RunEnded,
            ev.StepStarted,
            ev.LateResultArrived,
        }
    ),
    Phase.AWAITING_MODEL: frozenset(
        {
            ev.RunResumed,
            ev.LimitsRaised,
            ev.MessageQueued,
            ev.CancelRequested,
            ev.ModelReplied,
            ev.ModelFailed,
            ev.LateResultArrived,
        }
    ),
    Phase.AWAITING_TOOLS: frozenset(
        {
            ev.RunResumed,
            ev.LimitsRaised,
            ev.MessageQueued,
            ev.CancelRequested,
            ev.CallStarted,
            ev.CallReturned,
            ev.CallFailed,
            ev.CallTimedOut,
            ev.CallAbandoned,
            ev.LateResultArrived,
        }
    ),
    Phase.ENDED: frozenset({ev.RunResumed, ev.LateResultArrived}),
}
"""Which kinds of event may be accepted where; written down a second time, by hand."""


class CallFacts(msgspec.Struct):
    """What the log says about one call."""

    step: int
    position: int
    name: str
    raw: str
    spec: ev.ToolSpec | None
    """The tool as it was known when the reply came."""
    runs: list[ev.ToolSpec] = []
    """The tool as it was known at each start."""
    outcome: str = ""
    parts: tuple[Part, ...] = ()
    given_up: bool = False

    @property
    def may_have_had_effect(self) -> bool:
        return any(not spec.read_only for spec in self.runs)


class Facts(msgspec.Struct):
    """What the log says, event by event."""

    log: list[ev.AnyEvent] = []
    start: ev.RunStarted | None = None
    limits: Limits = Limits()
    tools: dict[str, ev.ToolSpec] = {}
    replies: int = 0
    tokens: int = 0
    dollars: float = 0.0
    starts: int = 0
    """Calls that really started a tool, each counted once."""
    failures: int = 0
    """Failed requests in a row, in the hands of one owner."""
    cured: int = 0
    """How many of these failures were refusals that had a cure."""
    retells: bool = False
    """The next request tells the model everything anew."""
    left_out: set[str] = set()
    """What the provider refused and must not be sent again."""
    not_before: float = 0.0
    open: list[CallFacts] = []
    stop: str = ""
    """Why the last reply ended."""
    closed_calls: int = 0
    final: str | None = None
    """The answer that a final tool gave in the open exchange."""
    words: str | None = None
    """The text of the last reply without calls, until something else is said."""
    last_final: str | None = None
    owed: set[tuple[int, int]] = set()
    """Calls that were given up and have not reported late."""
    waiting: list[User] = []
    expected: list[Any] = []
    """The transcript without notes, as it must be."""
    cancelled: str = ""
    """How the run was cancelled: `drain`, `now`, or "" if it was not."""
    began: float = 0.0
    worked: float = 0.0
    at: float = 0.0
    ended: ev.RunEnded | None = None
    exchanges: list[Any] = []
    """What the exchanges were since a stuck run was let go on, as far as it matters for repetition."""
    invalid: int = 0
    """How many calls in a row never reached a tool, since a stuck run was let go on."""

    # --- reading the log ---

    def read(self, event: ev.AnyEvent) -> None:
        getattr(self, f"_on_{type(event).__name__}", lambda _: None)(event)
        self.log.append(event)
        self.at = max(self.at, event.at)

    def _on_RunStarted(self, event: ev.RunStarted) -> None:
        self.start, self.limits, self.began = event, event.settings.limits, event.at
        self.tools = {spec.name: spec for spec in event.tools}
        self.expected = [message for message in event.messages if not isinstance(message, Note)]

    def _on_RunResumed(self, event: ev.RunResumed) -> None:
        self.tools = {spec.name: spec for spec in event.tools}
        self.worked += max(0.0, self.at - self.began)
        if self.ended is not None and self.ended.status == "stuck":
            self.exchanges, self.invalid = [], 0
        self.began, self.cancelled, self.ended = event.at, "", None
        self.failures = self.cured = 0
        self.not_before = 0.0
        if not self.open:
            self._release()

    def _on_LimitsRaised(self, event: ev.LimitsRaised) -> None:
        self.limits = event.limits

    def _on_MessageQueued(self, event: ev.MessageQueued) -> None:
        self.waiting.append(User(event.parts))
        if self.is_ready:
            self._release()
            self.words = self.last_final = None

    def _on_CancelRequested(self, event: ev.CancelRequested) -> None:
        self.cancelled = "now" if "now" in (event.mode, self.cancelled) else "drain"
        if self.is_asking and event.mode == "now":
            self._release()

    def _on_RunEnded(self, event: ev.RunEnded) -> None:
        self.ended = event

    def _on_ModelFailed(self, event: ev.ModelFailed) -> None:
        self.failures += 1
        self._pay(event.usage, None)
        self.not_before = event.at + (event.retry_after_s or 0.0)
        cure = {"RSN": "reasoning", "MED": "media"}.get(event.violation[:3])
        if event.kind not in ("OutOfMoves", "ContextTooLong") and cure and cure not in self.left_out:
            self.left_out.add(cure)
            self.cured += 1
            self.retells = True
            self.not_before = 0.0
        self._release()

    def _pay(self, usage: Usage | None, dollars: float | None) -> None:
        assert self.start is not None
        price = self.start.settings.price
        if usage is not None:
            self.tokens += (usage.input or 0) + (usage.output or 0)
        if dollars is not None:
            self.dollars += dollars
        elif usage is not None and price is not None and None not in (usage.input, usage.output):
            self.dollars += price.of(usage)

    def _on_ModelReplied(self, event: ev.ModelReplied) -> None:
        assert self.start is not None
        reply = event.reply
        self.replies += 1
        self.failures = self.cured = 0
        self.not_before, self.retells = 0.0, False
        self.words = self.last_final = None
        self._pay(reply.usage, reply.dollars)
        self.stop, text = reply.stop, reply.text if reply.text.strip() else ""
        if reply.calls:
            self.open = [
                CallFacts(self.replies, position, call.name, call.arguments, self.tools.get(call.name))
                for position, call in enumerate(reply.calls)
            ]
            self.final = None
            self.expected.append(Assistant(text, (), reply.opaque))
            return
        kept = reply.opaque and (reply.stop == "pause" or self.start.settings.empty_is_answer)
        if text or kept:
            self.expected.append(Assistant(text, (), reply.opaque))
        self.words = reply.text if reply.stop in (*WHOLE, "unknown") and not self.waiting else None
        self._release()

    def _on_CallStarted(self, event: ev.CallStarted) -> None:
        call = self.open[event.position]
        self.starts += not call.runs
        call.runs.append(self.tools[call.name])

    def _on_CallReturned(self, event: ev.CallReturned) -> None:
        call = self.open[event.position]
        spec = self.tools.get(call.name) or call.spec
        if spec is not None and spec.final:
            texts = [part.text for part in event.parts if isinstance(part, Text)]
            self.final = event.full if event.full is not None else "\n\n".join(texts)
        self._end(call, "ok", event.parts)

    def _on_CallFailed(self, event: ev.CallFailed) -> None:
        call = self.open[event.position]
        if call.may_have_had_effect and event.outcome in ("denied", "invalid_arguments"):
            # It ran before a crash; that it is refused now says nothing about what it did then.
            self._end(call, "in_doubt", (Text(outcomes.interrupted(call.name, False)),))
        else:
            self._end(call, event.outcome, (Text(event.text),))

    def _on_CallTimedOut(self, event: ev.CallTimedOut) -> None:
        self.owed.add((event.step, event.position))
        self._end(self.open[event.position], "timeout", (Text(event.text),))

    def _on_CallAbandoned(self, event: ev.CallAbandoned) -> None:
        self.owed.add((event.step, event.position))
        self._end(self.open[event.position], event.outcome, (Text(event.text),))

    def _on_LateResultArrived(self, event: ev.LateResultArrived) -> None:
        assert (event.step, event.position) in self.owed, "a late result of a call that owes none"
        self.owed.remove((event.step, event.position))

    def _end(self, call: CallFacts, outcome: str, parts: tuple[Part, ...]) -> None:
        call.outcome, call.parts = outcome, parts
        if any(not one.outcome for one in self.open):
            return
        exchange = [(one.name, canonical(one.raw), one.outcome, one.parts) for one in self.open]
        counts = not any(one.spec and one.spec.repeatable and one.outcome == "ok" for one in self.open)
        self.exchanges.append(exchange if counts else object())
        for one in self.open:
            self.invalid = self.invalid + 1 if one.outcome in ("unknown_tool", "invalid_arguments") else 0
        self.expected.extend(self.open)
        self.closed_calls += len(self.open)
        self.last_final, self.final, self.open = self.final, None, []
        self._release()

    def _release(self) -> None:
        self.expected.extend(self.waiting)
        self.waiting = []

    # --- what follows from it ---

    @property
    def is_asking(self) -> bool:
        """Whether a request is under way."""
        for event in reversed(self.log):
            if isinstance(event, ev.StepStarted):
                return True
            if isinstance(event, ev.ModelReplied | ev.ModelFailed | ev.RunResumed | ev.RunStarted):
                return False
            if isinstance(event, ev.CancelRequested) and event.mode == "now":
                return False
        return False

    @property
    def is_ready(self) -> bool:
        return not self.open and not self.is_asking

    def stretch(self, period: int) -> int:
        """How many of the newest exchanges repeat with this period."""
        all_, end = self.exchanges, len(self.exchanges)
        first = end - period
        while first > 0 and all_[first - 1] == all_[first - 1 + period]:
            first -= 1
        return end - first if first >= 0 else 0

    @property
    def deadline(self) -> float | None:
        return None if self.limits.seconds is None else self.began + self.limits.seconds - self.worked


def as_object(raw: str) -> Any:
    """What the arguments say in the strictest reading, or None."""
    if raw.strip() in ("", "null"):
        return {}

    def no(word: str) -> Any:
        raise ValueError(word)

    try:
        value = json.loads(raw, parse_constant=no)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def canonical(raw: str) -> str:
    """Equal for equal arguments."""
    value = as_object(raw)
    return raw if value is None else json.dumps(value, sort_keys=True)


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
        self.kept: list[Any] = []

    def fork(self) -> Checked:
        """A second one with the same log, without checking it again."""
        twin = Checked()
        twin.machine, twin.shadow = fold(self.facts.log), fold(self.facts.log)
        twin.facts = msgspec.structs.replace(self.facts)
        for name in ("log", "tools", "waiting", "expected", "owed", "exchanges"):
            setattr(twin.facts, name, getattr(self.facts, name).copy())
        twin.facts.open = [msgspec.structs.replace(one, runs=one.runs.copy()) for one in self.facts.open]
        twin.event, twin.effect, twin.now = self.event, self.effect, self.now
        twin.seen, twin.met, twin.kept = self.seen, self.met, list(twin.machine.state.messages)
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
        self.shadow.apply(read)
        self.event, self.now = read, max(self.now, read.at)
        self.check()

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
        repeated = len(facts.open[run.event.position].runs) > 1
        assert repeated or facts.starts <= limits.tool_calls, "a call started past the limit"
    if isinstance(effect, RunTools) and limits.tool_calls is not None:
        new = sum(not facts.open[call.position].runs for call in effect.calls)
        assert facts.starts + new <= max(limits.tool_calls, facts.starts), "more calls may run than are left"
    if isinstance(run.event, ev.StepStarted):
        _has_a_step_left(facts, limits)
    if isinstance(effect, Finish) and run.phase is Phase.READY and run.machine.state.stop is None:
        _is_really_used_up(run, effect)
    if isinstance(effect, CallModel) and run.phase is Phase.READY:
        _has_a_step_left(facts, limits, effect.tool_choice)
        _fits_the_budget(run, effect)


def _has_a_step_left(facts: Facts, limits: Limits, choice: str = "none") -> None:
    if limits.steps is not None and facts.replies >= limits.steps:
        assert limits.last_words, "the model is asked past the step limit"
        assert 0 < limits.steps == facts.replies, "more than one request past the step limit"
        assert choice == "none", "the last words could be another call"


def _is_really_used_up(run: Checked, effect: Finish) -> None:
    """A limit is given as the reason only where there is one, and it is reached."""
    facts, limits = run.facts, run.facts.limits
    if effect.status == "max_steps":
        assert limits.steps is not None, "ended at a step limit that there is not"
        assert facts.replies >= limits.steps, "ended before the step limit"
    elif effect.status == "budget":
        assert (limits.tokens, limits.dollars) != (None, None), "ended at a budget that there is not"
    elif effect.status == "deadline":
        assert facts.deadline is not None, "ended at a deadline that there is not"


def _fits_the_budget(run: Checked, effect: CallModel) -> None:
    facts, limits, reserved = run.facts, run.facts.limits, effect.reserved
    assert facts.start is not None
    state = run.machine.state
    size = sum(estimate_tokens(message) for message in state.messages)
    assert reserved.input_tokens == size + state.tools_tokens, "the reservation is not for what would be sent"
    assert state.tools_tokens >= len(state.specs), "the tools are not reserved for"
    if limits.tokens is not None:
        assert effect.max_output_tokens is not None
        assert facts.tokens + reserved.input_tokens + effect.max_output_tokens <= limits.tokens
    if limits.dollars is not None:
        price = facts.start.settings.price
        assert price is not None, "a dollar limit without a price"
        if price.output:
            assert effect.max_output_tokens is not None
        worst = price.worst(reserved.input_tokens, effect.max_output_tokens or 0)
        assert facts.dollars + worst <= limits.dollars + 1e-9
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
        assert isinstance(run.effect, Finish)
        assert run.effect.status == "max_steps"


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
    assert (state.phase is Phase.AWAITING_TOOLS) == bool(facts.open)
    if isinstance(run.effect, RunTools):
        answered = [one.position for one in (*run.effect.refusals, *run.effect.calls)]
        assert len(set(answered)) == len(answered), "one call is named twice"
        assert all(not facts.open[position].outcome for position in answered), "a second result would be written"


def law_5_results_stand_in_call_order_behind_their_message(run: Checked) -> None:
    messages, expected = run.machine.state.messages, run.facts.expected
    if len(messages) == run.seen:
        missing = len(expected) - run.met
        assert not missing or (run.facts.open and missing == 1), "a message is missing from the transcript"
        return
    assert first_fault(messages) == ""
    for message in messages[run.seen :]:
        if isinstance(message, Note):
            continue
        assert run.met < len(expected), f"nobody said {message!r}"
        _matches(message, expected[run.met])
        run.met += 1
    run.kept.extend(messages[run.seen :])
    run.seen = len(messages)
    if not run.facts.open:
        assert run.met == len(expected), f"missing from the transcript: {expected[run.met :]!r}"


def _matches(message: Any, wanted: Any) -> None:
    if isinstance(wanted, CallFacts):
        assert isinstance(message, Result), "a result was expected here"
        assert (message.outcome, message.parts) == (wanted.outcome, wanted.parts), "a result was changed on its way"
        _is_true(wanted, message.outcome, message.text)
    elif isinstance(wanted, Assistant):
        assert isinstance(message, Assistant)
        assert (message.text, message.opaque) == (wanted.text, wanted.opaque)
        for call in message.calls:
            assert isinstance(json.loads(call.arguments), dict)
    else:
        assert message == wanted


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
    first = next((one for one in facts.open if one.spec and one.spec.final and as_object(one.raw) is not None), None)
    if first is not None and not first.outcome and isinstance(effect, RunTools):
        refused = first.position in {one.position for one in effect.refusals}
        assert refused or all(call.position == first.position for call in effect.calls), "the final tool has to wait"
    if facts.last_final is not None and not facts.open and facts.ended is None:
        assert isinstance(effect, Finish)
        assert (effect.status, effect.answer) == ("answered", facts.last_final)


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


def law_8_no_tool_runs_with_arguments_that_the_model_did_not_write(run: Checked) -> None:
    if isinstance(run.event, ev.CallStarted):
        call = run.facts.open[run.event.position]
        assert call.spec is not None, "an unknown tool ran"
        assert as_object(call.raw) is not None, "unreadable arguments ran"
        assert run.facts.stop in WHOLE, "a call of a reply that is not whole ran"
        again = call.runs[1:]
        assert all(spec.read_only or spec.idempotent for spec in (call.runs if again else ())), "ran twice"
    if isinstance(run.effect, RunTools):
        for call in run.effect.calls:
            asked = run.facts.open[call.position]
            assert call.name == asked.name
            assert call.arguments == as_object(asked.raw), "the arguments were changed"
            assert call.name in run.facts.tools, "a tool would run that this process does not have"


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
    if not isinstance(effect, CallModel):
        return effect
    return [len(effect.messages)] + [getattr(effect, name) for name in _CALL_MODEL]


_CALL_MODEL = [name for name in CallModel.__struct_fields__ if name != "messages"]


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
        begin = len(messages) if run.facts.retells else max(run.effect.new_from, len(run.facts.start.messages))
        assert all(not isinstance(message, Assistant) for message in messages[begin:]), "the model's own words are new"


def a_cancelled_run_starts_nothing(run: Checked) -> None:
    if not run.facts.cancelled:
        return
    assert not isinstance(run.event, ev.CallStarted | ev.StepStarted), "something started after the cancel"
    if run.phase is Phase.READY:
        assert isinstance(run.effect, Finish), "a cancelled run goes on"
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


def a_run_is_never_stuck(run: Checked) -> None:
    """Not ended means that there is something to do, and that it can be done."""
    effect, facts = run.effect, run.facts
    match run.phase:
        case Phase.READY:
            assert isinstance(effect, CallModel | Sleep | Finish)
            assert not isinstance(effect, Sleep) or effect.until > run.now
        case Phase.AWAITING_TOOLS:
            assert isinstance(effect, RunTools)
            under_way = any(one.runs and not one.outcome for one in facts.open)
            assert effect.calls or effect.refusals or under_way, "nothing can be done"
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
    assert not too_many or isinstance(effect, Finish), "nothing but invalid calls, and the run goes on"
    if rules.told_after is None:
        assert not stuck or too_many, "stuck without a reason"
        return
    rounds = {p: facts.stretch(p) / p for p in range(1, 7)}
    over = [p for p, n in rounds.items() if n > rules.told_after and n == int(n)]
    assert not over or isinstance(effect, Finish), f"the loop of {over} exchanges was not ended"
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
    if isinstance(run.effect, Finish):
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
    law_8_no_tool_runs_with_arguments_that_the_model_did_not_write,
    law_9_only_an_answer_is_an_answer,
    law_11_the_transcript_only_grows,
    a_cancelled_run_starts_nothing,
    a_request_is_repeated_only_so_often_and_not_too_soon,
    what_was_refused_is_not_sent_again,
    a_run_is_never_stuck,
    calls_run_alone_unless_they_only_read,
    a_loop_is_told_and_one_more_round_ends_it,
    the_end_stays_the_end,
)
