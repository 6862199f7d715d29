"""A recorded run once more, with the agent of today: nothing acts, and every request has to be the recorded one.

The log is read event by event, and each goes one of two ways.

- What came from outside is fed as it was, at the same place and the same time: replies, summaries and failures of the
  model, what tools gave and spent, how calls ended after a crash, what people said, decided, raised and cancelled,
  processes that took over.
- What was decided here is decided anew: the next request, the next call, which calls do not run, who is asked, what is
  cut and undone, how the run ends. The machine is the same as in a live run; the instructions, the settings, the checks
  of the arguments, the policy and the `approve` of tools are those of the agent. Any difference is a `ReplayMismatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from pathlib import Path
from typing import Any

import msgspec

from tenlines.agent import Agent, History
from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.effects import (
    AskHuman,
    CallModel,
    Compact,
    Effect,
    Finish,
    RunTools,
    Sleep,
    Summarise,
    UndoCall,
)
from tenlines.core.limits import Limits
from tenlines.core.machine import Machine
from tenlines.core.result import RunResult
from tenlines.core.state import Phase
from tenlines.core.transcript import Message, Part, System
from tenlines.drivers import drafts
from tenlines.drivers.bookkeeping import Bookkeeping
from tenlines.drivers.drafts import Draft
from tenlines.drivers.recorder import Parts
from tenlines.errors import InternalError, JournalDamaged, MisuseError
from tenlines.journal.files import read_run
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import Invalid, Journal
from tenlines.testing.answering import RecordedModel, answered_by
from tenlines.testing.differences import Difference, ReplayMismatch, changes, in_request, in_words, named

__tracebackhide__ = methodcaller("errisinstance", ReplayMismatch)
"""For pytest: a difference is shown where the test asked for it."""

_DECIDED = (
    ev.StepStarted,
    ev.RunEnded,
    ev.CallStarted,
    ev.CallAbandoned,
    ev.ApprovalAsked,
    ev.UndoStarted,
    ev.SummaryStarted,
    ev.ContextCompacted,
)
"""Events that say what the run decided. `CallFailed` and `ApprovalGiven` are both: see `_is_decided`."""
_OWN = ("seq", "at", "digest", "expires_at", "reserved", "key", "changed", "allowance", "arithmetic")
"""Fields of these that do not say what was decided."""
_PLACE = ("run_id", "owner", "session", "turn", "origin", "parent", "counting", "changed")
"""Fields of the start that stay as they were."""


def replay(
    agent: Agent,
    source: Journal | str | Path,
    run_id: str | None = None,
    *,
    task: str | Sequence[Part] | None = None,
    messages: History = (),
    limits: Limits | None = None,
) -> RunResult:
    """Do a recorded run again with `agent`: its model and its tools are answered from the record and never asked.

    The checks of the arguments, the policy, `approve` and the observers of the agent do run. How long it waits between
    requests is not compared, and no time passes. What the run is called, its session and its times are the recorded
    ones.

    Args:
        agent: The agent of today.
        source: The journal that has the run, or the file of a run.
        run_id: Which run of the journal; not needed for a file.
        task: The task as it would be given today; None for the recorded one.
        messages: The conversation before the task, as it would be given today; where neither is given, the recorded
            one without its system message, which is taken from the agent.
        limits: Instead of the agent's, as in `Agent.run`.

    Returns:
        The result. A run that stopped without an answer is no error.

    Raises:
        ReplayMismatch: The agent asks something else, or the run goes another way.
        MisuseError: The run has not ended, so there is nothing to compare its end with.
        RunNotFound: The journal has no such run.
        JournalDamaged: The file is cut or was changed.
    """
    log = _recorded_events(source, run_id)
    start = log[0]
    assert isinstance(start, ev.RunStarted)
    stand_in = answered_by(agent, RecordedModel(agent.model.name, {}), MemoryJournal())
    said = [*messages]
    if task is None and not said:
        said += _without_instructions(start)
    times = _Times()
    parts = stand_in._begin(task, said, limits, None)._replace(run_id=start.run_id, clock=times)
    return _Replay(parts, agent._specs(parts.tools), times, agent.settings).follow(log)


def _recorded_events(source: Journal | str | Path, run_id: str | None) -> list[ev.AnyEvent]:
    """The events of a run that has ended."""
    notices: tuple[str, ...] = ()
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            run = read_run(file)
        log, notices = list(run.events), run.notices
    elif run_id is None:
        raise MisuseError("say which run is to be replayed: replay(agent, journal, run_id)")
    else:
        log = list(source.read(run_id))
    if not _has_ended(log):
        if notices:
            raise JournalDamaged(f"{source} cannot be replayed: {'; '.join(notices)}")
        raise MisuseError(f"run {run_id or source} has not ended: resume it to its end, then replay it")
    return log


def _without_instructions(start: ev.RunStarted) -> list[Message]:
    """What the run began from; the instructions are the agent's, unless all of it came from another run."""
    is_from_another = bool(start.origin) or start.turn > 1
    return [one for one in start.messages if is_from_another or not isinstance(one, System)]


def _has_ended(log: Iterable[ev.AnyEvent]) -> bool:
    last = [type(event) for event in log if isinstance(event, ev.RunEnded | ev.RunResumed | ev.UndoRequested)]
    return bool(last) and last[-1] is ev.RunEnded


class _Times:
    """The clock of a replay: it says when the event at hand was recorded."""

    time = 0.0

    def now(self) -> float:
        return self.time

    def wait(self, event: object, seconds: float) -> None:
        raise InternalError("a replay waited")

    async def sleep(self, seconds: float) -> None:
        raise InternalError("a replay waited")


class _Replay(Bookkeeping):
    """Two machines side by side: one sees the log, the other what the agent makes of it."""

    def __init__(self, parts: Parts, specs: tuple[ev.ToolSpec, ...], times: _Times, stated: ev.Settings) -> None:
        super().__init__(parts)
        self.specs, self.times, self.stated = specs, times, stated
        self.then, self.today = Machine(), parts.machine
        self.compared = 0
        """How many messages of both transcripts are known to be the same."""

    def begin(self, key: str, call: Callable[[], Any], is_async: bool) -> Callable[[], None]:
        """Nothing runs here."""
        raise InternalError("a replay ran a tool")

    def latecomers(self) -> Iterator[Draft]:
        """They stand in the log."""
        return iter(())

    def follow(self, log: Sequence[ev.AnyEvent]) -> RunResult:
        """Go through the log."""
        for event in log:
            self.times.time = event.at
            draft = self._decided(event) if self._is_decided(event) else self._fed(event)
            try:
                self.recorder.record(draft)
            except InternalError as error:
                raise self._mismatch(event, f"it cannot be: {error.__cause__}") from None
            self.then.replay(event)
        return self.recorder.result()

    def _is_decided(self, event: ev.AnyEvent) -> bool:
        if isinstance(event, ev.CallFailed):
            return event.outcome != "tool_error"
        if isinstance(event, ev.ApprovalGiven):  # a person's word comes while the run rests
            return self.then.state.phase is not Phase.ENDED
        return isinstance(event, _DECIDED)

    # --- from outside -------------------------------------------------------------------------------

    def _fed(self, event: ev.AnyEvent) -> Draft:
        fields = _fields(event)
        match event:
            case ev.RunStarted():
                return self._begun(event)
            case ev.RunResumed() | ev.UndoRequested():
                fields["tools"] = self.specs
            case ev.ApprovalGiven():
                exchange = self.today.state.exchange
                if exchange is not None and event.position < len(exchange.calls):
                    fields["digest"] = exchange.calls[event.position].digest
        return Draft(type(event), fields)

    def _begun(self, event: ev.RunStarted) -> Draft:
        """The start as the agent makes it; which run it is stays as it was."""
        (opening,) = self.parts.opening
        model = opening.fields["model"]
        if model != event.model:
            raise ReplayMismatch(event.run_id, 0, Difference("the model", event.model, model))
        place = {name: getattr(event, name) for name in _PLACE}
        settings = _as_known(opening.fields["settings"], event.settings, self.stated)
        return Draft(ev.RunStarted, {**opening.fields, **place, "settings": settings})

    # --- decided here -------------------------------------------------------------------------------

    def _decided(self, event: ev.AnyEvent) -> Draft:
        """What the agent decides where the recorded one decided `event`.

        That was at some time after the event before it, and not after it was stamped: at a deadline, these may differ.
        """
        made: list[Draft] = []
        for at in (event.at, self.today.state.at):
            effect = _awake(self.today, at)
            draft = self._made(effect, event)
            if draft is not None and _says(draft) == _says(Draft(type(event), _fields(event))):
                if isinstance(effect, CallModel | Summarise):
                    self._compare(event, effect)
                if isinstance(effect, Compact):
                    self.compared = min(self.compared, effect.start)
                if "expires_at" in draft.fields:
                    draft.fields["expires_at"] = getattr(event, "expires_at", None)
                return draft
            made += [] if draft is None else [draft]
        raise self._mismatch(event, self._words(made[0]) if made else _waits(self.today, event))

    def _made(self, effect: Effect, event: Any) -> Draft | None:
        """What a driver would record of an effect, where the recorded one spoke of a call: of the same call."""
        match effect:
            case CallModel():
                return drafts.step_started(effect)
            case Finish(status, reason, answer):
                return Draft(ev.RunEnded, {"status": status, "reason": reason, "answer": answer})
            case UndoCall(call):
                return drafts.undo_started(call)
            case Summarise():
                return drafts.summary_started(effect)
            case Compact():
                return drafts.compacted(effect)
            case AskHuman(questions):
                asked = [one for one in questions if one.call.position == getattr(event, "position", None)]
                return next(self.ask(AskHuman(tuple(asked or questions[:1]))))
            case RunTools():
                return self._made_of_call(effect, getattr(event, "position", None))
        return None

    def _made_of_call(self, effect: RunTools, position: int | None) -> Draft | None:
        for refusal in effect.refusals:
            if position in (refusal.position, None):
                return drafts.refused(refusal)
        for call in effect.calls:
            if position in (call.position, None):
                bound = drafts.check(self.parts.tools[call.name], call)
                return drafts.invalid(call, bound.text) if isinstance(bound, Invalid) else drafts.call_started(call)
        return None

    def _compare(self, event: ev.AnyEvent, now: CallModel | Summarise) -> None:
        """Both requests, message by message, tool by tool."""
        asked = (_awake(self.then, at) for at in (event.at, self.then.state.at))
        recorded = next(one for one in asked if isinstance(one, type(now)))
        if difference := in_request(_request(recorded), _request(now), self.compared):
            raise self._differs(difference)
        if isinstance(now, CallModel):
            self.compared = len(now.messages)

    # --- differences --------------------------------------------------------------------------------

    def _mismatch(self, event: Any, now: str) -> ReplayMismatch:
        state = self.then.state
        what = named(state, event) if hasattr(event, "position") else "how it goes on"
        return self._differs(Difference(what, in_words(state, event), now))

    def _words(self, draft: Draft) -> str:
        return in_words(self.today.state, draft.kind(seq=0, at=0.0, **draft.fields))

    def _differs(self, difference: Difference) -> ReplayMismatch:
        state = self.then.state
        assert state.start is not None
        assert self.today.state.start is not None
        is_asking = state.phase in (Phase.READY, Phase.AWAITING_MODEL)
        step = state.account.steps + is_asking
        return ReplayMismatch(state.start.run_id, step, difference, changes(state.start, self.today.state.start))


def _awake(machine: Machine, at: float) -> Effect:
    """What the machine wants, once it has waited."""
    effect = machine.next(at)
    return machine.next(effect.until) if isinstance(effect, Sleep) else effect


def _request(effect: CallModel | Summarise) -> CallModel:
    return effect.request if isinstance(effect, Summarise) else effect


def _as_known(today: ev.Settings, then: ev.Settings, stated: ev.Settings) -> ev.Settings:
    """The settings of today, with what was looked up when the run began: the price, the window, the steps to expect.
    What the agent states by itself is not looked up."""
    changes: dict[str, Any] = {} if stated.price else {"price": then.price}
    if today.compaction is not None and then.compaction is not None and stated.compaction is not None:
        found = {"window": then.compaction.window, "expected_steps": then.compaction.expected_steps}
        unstated = {name: value for name, value in found.items() if not getattr(stated.compaction, name)}
        changes["compaction"] = msgspec.structs.replace(today.compaction, **unstated)
    return msgspec.structs.replace(today, **changes)


def _fields(event: ev.AnyEvent) -> dict[str, Any]:
    names = event.__struct_fields__
    return {name: getattr(event, name) for name in names if name not in ("seq", "at")}


def _says(draft: Draft) -> tuple[type, Mapping[str, Any]]:
    """What was decided, without what is only beside it. Fields that were left to their defaults have them."""
    whole: Any = draft.kind(seq=0, at=0.0, **draft.fields)
    whole = codec.as_read(whole)
    return draft.kind, {name: getattr(whole, name) for name in whole.__struct_fields__ if name not in _OWN}


def _waits(machine: Machine, event: Any) -> str:
    """Why nothing is to be said of a call."""
    return f"{named(machine.state, event)} has to wait" if hasattr(event, "position") else "it waits for calls"
