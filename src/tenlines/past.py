"""What is known before a run starts, and where to look for what was: prices, windows, earlier runs, whole results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from tenlines.core.changes import estimate_tools
from tenlines.core.context import Compaction
from tenlines.core.events import AnyEvent, CallReturned, RunStarted, Settings, ToolSpec
from tenlines.core.limits import Counting
from tenlines.core.machine import Machine
from tenlines.core.result import paused_calls, pending_calls
from tenlines.core.state import Phase, State
from tenlines.core.transcript import Message, estimate_tokens, text_of
from tenlines.counting import first_count
from tenlines.drivers.recorder import machine_of
from tenlines.drivers.threads import in_thread
from tenlines.errors import JournalError
from tenlines.ports import Clock, Journal
from tenlines.prices import price_of, window_of

LOOKED_AT = 64
"""The newest runs that are looked at for how many steps one takes."""
LARGEST = 2_000
"""Events of the longest run that is read for what its tokens were."""
EXACT_MARGIN, LEARNT_MARGIN = 1.1, 1.25
"""What is reserved of a first request that a tokenizer counted, or whose rate earlier runs showed."""


class Prior(NamedTuple):
    """What a run starts from."""

    settings: Settings
    counting: Counting


class Past(NamedTuple):
    """What an agent can know of a run before it starts."""

    agent: str
    model: str
    journal: Journal

    def prior(self, settings: Settings, messages: Sequence[Message], tools: Sequence[ToolSpec], at: float) -> Prior:
        """Fill in what nobody stated: the price, the model's window, the steps to expect, how its tokens count."""
        if settings.price is None and (price := price_of(self.model, at)) is not None:
            settings = msgspec.structs.replace(settings, price=price)
        if settings.compaction is not None:
            settings = msgspec.structs.replace(settings, compaction=self.informed(settings.compaction))
        return Prior(settings, self._counting(messages, tools) if needs_counting(settings) else Counting())

    def informed(self, compaction: Compaction | None) -> Compaction | None:
        """Compaction with the model's window and the steps that earlier runs took."""
        if compaction is None:
            return None
        window = compaction.window or window_of(self.model)
        steps = compaction.expected_steps or self._steps()
        return msgspec.structs.replace(compaction, window=window, expected_steps=steps)

    def _steps(self) -> tuple[int, ...]:
        """How many steps the newest answered runs of this agent took, each."""
        try:
            runs = self.journal.runs(LOOKED_AT, status="answered")
        except JournalError:
            return ()  # the run itself will say that its journal does not work
        return tuple(sorted(one.steps for one in runs if one.agent == self.agent))

    def _counting(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Counting:
        exact = first_count(self.model, messages, tools)
        if exact is not None:
            estimate = sum(map(estimate_tokens, messages)) + estimate_tools(tools)
            return Counting(rate=exact[0] / max(1, estimate), margin=EXACT_MARGIN, source=exact[1])
        return self._learnt() or Counting()

    def _learnt(self) -> Counting | None:
        """What the newest run with this model showed."""
        try:
            runs = [one for one in self.journal.runs(LOOKED_AT) if one.model == self.model and 2 < one.events < LARGEST]
            state = machine_of(self.journal, runs[0].run_id).state if runs else None
        except JournalError:
            return None
        if state is None or not state.known_estimate:
            return None
        return Counting(rate=state.rate, margin=LEARNT_MARGIN, source=f"run {runs[0].run_id}")


def needs_counting(settings: Settings) -> bool:
    """Whether a run that is to start must guess how its tokens count, for which earlier runs are read and tokenizers
    are loaded: a fraction of a second."""
    limits = settings.limits
    return limits.tokens is not None or limits.dollars is not None or settings.compaction is not None


def whole_result(journal: Journal, machine: Machine, key: str) -> str:
    """The whole text that a call returned, by its key (`RUN:STEP:POSITION`).

    Raises:
        LookupError: There is no such call in the run, nor in another run of its session; the message says so.
    """
    run_id, step, position = _read_key(key)
    state = machine.state
    assert state.start is not None
    if run_id == state.start.run_id:
        seq = state.returned.get((step, position))
        found = None if seq is None else next(journal.read(run_id, seq), None)
    else:
        found = _in_session(journal, state.start.session, run_id, (step, position))
    if isinstance(found, CallReturned):
        return found.full if found.full is not None else text_of(found.parts)
    raise LookupError(f"there is no result of a call {key!r} here")


def _read_key(key: str) -> tuple[str, int, int]:
    run_id, _, place = key.strip().partition(":")
    step, _, position = place.partition(":")
    if not (step.isdecimal() and position.isdecimal()):
        raise LookupError(
            f"{key!r} is no key of a call: it looks like the ones that stand behind results that were cut"
        )
    return run_id, int(step), int(position)


def _in_session(journal: Journal, session: str, run_id: str, place: tuple[int, int]) -> CallReturned | None:
    """A call of another run, if it is of the same conversation."""
    try:
        for event in journal.read(run_id):
            if isinstance(event, RunStarted) and (not session or event.session != session):
                return None
            if isinstance(event, CallReturned) and (event.step, event.position) == place:
                return event
    except JournalError:
        return None
    return None


FIRST_LOOK_S, LONGEST_LOOK_S = 0.05, 1.0
"""Seconds between two looks at a run that others work on: short where much happens, longer where nothing does."""


async def follow(
    journal: Journal, run_id: str, clock: Clock, machine: Machine | None = None
) -> AsyncIterator[AnyEvent]:
    """The events of a run, those that are there and those that come, until nobody works on it any more: it has ended,
    or people have to decide first.

    Args:
        machine: A new one, which is told each event before it is passed on.
    """
    machine, pause = machine or Machine(), FIRST_LOOK_S
    while True:
        for event in await in_thread(partial(_since, journal, run_id, machine.state.seq + 1)):
            machine.apply(event)
            pause = FIRST_LOOK_S
            yield event
        if machine.state.phase is Phase.ENDED and not _is_decided(machine.state):
            return
        await clock.sleep(pause)
        pause = min(LONGEST_LOOK_S, 1.5 * pause)


def _since(journal: Journal, run_id: str, seq: int) -> list[AnyEvent]:
    return list(journal.read(run_id, seq))


def _is_decided(state: State) -> bool:
    """Whether a run that paused for people is about to go on: they have said all that it waits for."""
    is_paused = state.exchange is not None and state.ended is not None and state.ended.status == "awaiting_approval"
    return is_paused and not pending_calls(state) and not paused_calls(state)
