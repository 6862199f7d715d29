"""The run that answers a request: begun, or taken up where it waited; heard while it works; stopped when left."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import structs

from tenlines.core import events as ev
from tenlines.core.events import AnyEvent
from tenlines.core.history import mend
from tenlines.core.machine import Machine
from tenlines.core.result import RunResult
from tenlines.core.transcript import Assistant, Message, Part, System, User
from tenlines.drivers.control import Control
from tenlines.drivers.drafts import Draft
from tenlines.drivers.threads import in_thread
from tenlines.errors import InvalidEvent, JournalDamaged, RunNotFound
from tenlines.journal.owner import is_alive
from tenlines.ports import Delta, Journal, Observer
from tenlines.serve.openai_asked import Asked, instructed
from tenlines.serve.openai_faults import NO_RETRY, Fault
from tenlines.serve.openai_told import WAITS
from tenlines.trace.redaction import Redaction

if TYPE_CHECKING:
    from tenlines.agent import Agent

CLOSES_S = 10.0
"""Seconds that a run has to close its log after its client has gone."""


class Offer(NamedTuple):
    """What is offered."""

    name: str
    """What clients call the agent: the name of the model."""
    agent: Callable[[Sequence[Observer]], Agent]
    """Makes the agent of a request, with who watches it."""
    way_on: Callable[[RunResult], str]
    """What a person can do about a run that stopped."""
    decide: Callable[[RunResult], Sequence[str]]
    """The commands that decide about the calls of a run that waits."""
    shows_steps: bool = False
    redaction: Callable[[], Redaction] = Redaction
    """Makes what takes secrets out of the arguments of calls."""


# --- how a request is answered ------------------------------------------------------------------------


class Begin(NamedTuple):
    """By a run of its own, from this conversation."""

    messages: tuple[Message, ...]


class GoOn(NamedTuple):
    """By a run that waited, and that is told this first."""

    run_id: str
    said: tuple[tuple[Part, ...], ...]


class StillWaits(NamedTuple):
    """By saying once more that a run waits."""

    result: RunResult


Way: TypeAlias = Begin | GoOn | StillWaits


def way_of(journal: Journal, name: str, messages: tuple[Message, ...]) -> Way:
    """How a conversation goes on: with the run that it says waits, where it is of this very conversation.

    Raises:
        Fault: Somebody else works on that run.
    """
    index = next((at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], Assistant)), None)
    if index is None or (run_id := _waits_in(messages[index])) is None:
        return Begin(messages)
    past = _past_of(journal, run_id)
    if past is None or not past.belongs(name, messages[:index]):
        return Begin(messages)
    return past.way(messages[index + 1 :])


_WAITS = re.compile(WAITS.format(r"(\w{6,40})"))


def _waits_in(message: Message) -> str | None:
    """The run that the message says waits."""
    found = _WAITS.findall(message.text) if isinstance(message, Assistant) else []
    return found[-1] if found else None


class _Past(NamedTuple):
    machine: Machine
    start: ev.RunStarted
    owner: str

    def belongs(self, name: str, before: Sequence[Message]) -> bool:
        """Whether the run began with the beginning of this conversation. Standing instructions may be others: clients
        write the time into them."""
        begun, since = _talk(self.start.messages), _talk(mend(before).messages)
        return self.start.agent == name and not self.start.parent and since[: len(begun)] == begun

    def way(self, news: Sequence[Message]) -> Way:
        """How the run, or the conversation behind it, goes on."""
        result = self.machine.result()
        if self.machine.state.ended is None:
            if is_alive(self.owner) is not False:
                told = f"Run {result.run_id} is being worked on; ask again when that is over."
                raise Fault(409, told, "run_error", code="run_busy", headers=NO_RETRY)
        elif result.status != "awaiting_approval":  # somebody has gone on with it elsewhere
            return Begin((*result.messages, *news))
        if result.pending:
            return StillWaits(result)
        return GoOn(result.run_id, tuple(one.parts for one in news if isinstance(one, User)))


def _talk(messages: Sequence[Message]) -> list[Message]:
    return [one for one in messages if not isinstance(one, System)]


def _past_of(journal: Journal, run_id: str) -> _Past | None:
    machine, owner = Machine(), ""
    try:
        for event in journal.read(run_id):
            machine.apply(event)
            if isinstance(event, ev.RunStarted | ev.RunResumed):
                owner = event.owner
    except RunNotFound:
        return None
    except InvalidEvent as error:
        raise JournalDamaged(f"what the journal has of run {run_id} is not the log of a run: {error}") from error
    start = machine.state.start
    return None if start is None else _Past(machine, start, owner)


# --- a run under way ----------------------------------------------------------------------------------

Seen: TypeAlias = AnyEvent | Delta | None


class _Events:
    """Passes on what happens, from whatever thread, in order."""

    def __init__(self, seen: Callable[[Seen], None]) -> None:
        self.on_event = seen


class _Pieces(_Events):
    """The same, with what is being written; that makes models stream."""

    def __init__(self, seen: Callable[[Seen], None]) -> None:
        super().__init__(seen)
        self.on_delta = seen


class Running:
    """The run that answers a request.

    Attributes:
        run_id: The run; "" before it has begun.
        began_at: When it began, or was taken up (Unix seconds); 0 before.
    """

    def __init__(self, offer: Offer, asked: Asked) -> None:
        self._offer, self._asked = offer, asked
        self._loop, self._control = asyncio.get_running_loop(), Control()
        self._seen: asyncio.Queue[Seen] = asyncio.Queue()
        self._task: asyncio.Task[RunResult] | None = None
        self.run_id, self.began_at = "", 0.0

    async def begin(self) -> None:
        """Begin.

        Raises:
            Fault: Somebody else works on the run that the conversation waits for.
        """
        watch = _Pieces if self._asked.stream else _Events
        agent = self._offer.agent([watch(self._hear)])
        messages = instructed(self._asked.messages, agent.instructions)
        way = await in_thread(partial(way_of, agent.journal, self._offer.name, messages))
        self._task = self._loop.create_task(self._do(agent, way))
        self._task.add_done_callback(lambda _: self._hear(None))

    async def _do(self, agent: Agent, way: Way) -> RunResult:
        match way:
            case StillWaits(result):
                self.run_id = result.run_id
                return result
            case GoOn(run_id, said):
                self.run_id = run_id
                for parts in said:
                    self._control.deliver(Draft(ev.MessageQueued, {"parts": parts}))
                return await agent.resume(run_id, control=self._control, raise_on_stop=False)
            case Begin(messages):
                agent.settings = _bounded(agent.settings, self._asked.max_tokens)
                return await agent.run(None, messages=messages, control=self._control, raise_on_stop=False)

    async def next(self, seconds: float) -> Seen:
        """What happened next; None when the run is over.

        Raises:
            TimeoutError: Nothing happened in that time.
        """
        async with asyncio.timeout(seconds):
            seen = await self._seen.get()
        if isinstance(seen, ev.RunStarted):
            self.run_id = seen.run_id
        if isinstance(seen, ev.Event) and not self.began_at:
            self.began_at = seen.at
        return seen

    def result(self) -> RunResult:
        """What it came to, when it is over."""
        assert self._task is not None
        return self._task.result()

    def stop(self, reason: str) -> None:
        """Stop it at once."""
        self._control.cancel(now=True, reason=reason)

    async def close(self, reason: str) -> None:
        """Stop it, unless it is over, and wait until its log is closed."""
        if self._task is None or self._task.done():
            return
        self.stop(reason)
        await asyncio.wait({self._task}, timeout=CLOSES_S)

    def _hear(self, seen: Seen) -> None:
        self._loop.call_soon_threadsafe(self._seen.put_nowait, seen)


def _bounded(settings: ev.Settings, asked: int | None) -> ev.Settings:
    """The settings for a client that wants shorter replies."""
    if asked is None:
        return settings
    own = settings.max_output_tokens
    return structs.replace(settings, max_output_tokens=asked if own is None else min(own, asked))
