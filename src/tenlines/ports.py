"""The roles that the outside plays: a model, a tool, a journal, a clock, an observer. Protocols only.

Write your own by having the same methods; nothing here is to be inherited from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

import msgspec

from tenlines.core.effects import CallModel
from tenlines.core.events import AnyEvent, ToolSpec
from tenlines.core.transcript import JsonObject, Part, Reply

# --- the model ----------------------------------------------------------------------------------------


class Delta(msgspec.Struct, frozen=True):
    """A piece of a reply while it is being written. For eyes only: the run uses the finished `Reply`."""

    step: int
    text: str = ""
    reasoning: str = ""


OnDelta: TypeAlias = Callable[[Delta], None]


class Session(Protocol):
    """One run's conversation with a model. Called once at a time, with a transcript that only grows.

    `request.messages` is everything, `request.messages[request.new_from:]` is what the model has not been sent.
    `on_delta` is None when nobody watches; then there is no need to stream. Both methods raise an error of
    `tenlines.errors` (`RateLimited`, `ConnectionFailed`, ...) when the request fails; any other exception is
    taken as a permanent failure. Neither retries: the machine does.
    """

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """Ask the model and wait for its finished reply."""
        ...

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio. Cancelling it closes the connection."""
        ...


class Model(Protocol):
    """A way to reach a model."""

    @property
    def name(self) -> str:
        """As it stands in the journal: `openai:gpt-5`, `local`, `function:my_model`."""
        ...

    def session(self) -> Session:
        """Begin the conversation of one run."""
        ...


# --- tools --------------------------------------------------------------------------------------------


class CallContext:
    """What a tool may know about the call that it serves. A tool gets it by asking: `ctx: CallContext`.

    Attributes:
        tool: Name of the tool.
        key: Idempotency key: the same for the same call over retries, crashes and resumes.
        deadline_at: Unix time at which the call is given up, or None.
    """

    __slots__ = ("_cancelled", "_on_give_up", "deadline_at", "key", "tool")

    def __init__(self, key: str, tool: str, deadline_at: float | None) -> None:
        self.key, self.tool, self.deadline_at = key, tool, deadline_at
        self._cancelled = False
        self._on_give_up: list[Callable[[], None]] = []

    @property
    def run_id(self) -> str:
        """The run."""
        return self.key.rsplit(":", 2)[0]

    @property
    def step(self) -> int:
        """Number of the reply that asked for the call, from 1."""
        return int(self.key.rsplit(":", 2)[1])

    @property
    def position(self) -> int:
        """Place of the call in that reply, from 0."""
        return int(self.key.rsplit(":", 2)[2])

    @property
    def cancelled(self) -> bool:
        """Whether the call was given up (timeout, cancel). A long-running tool looks at it and stops."""
        return self._cancelled

    def on_give_up(self, action: Callable[[], None]) -> None:
        """Have `action` called, from another thread, when the call is given up."""
        self._on_give_up.append(action)
        if self._cancelled:
            action()

    def give_up(self) -> None:
        """Called by the driver: the call is not waited for any more."""
        if not self._cancelled:
            self._cancelled = True
            for action in self._on_give_up:
                action()


class Invalid(NamedTuple):
    """Arguments that do not fit a tool, in words for the model."""

    text: str


class Bound(NamedTuple):
    """Checked arguments, ready to call."""

    arguments: dict[str, Any]
    remarks: tuple[str, ...] = ()


class Rendered(NamedTuple):
    """What a tool returned, as the model will see it; `full` is the whole text where `parts` is a cut."""

    parts: tuple[Part, ...]
    truncated: bool = False
    shown_chars: int | None = None
    original_chars: int | None = None
    full: str | None = None
    remarks: tuple[str, ...] = ()


class ToolPort(Protocol):
    """A tool, as a driver uses it: check, then call, then render."""

    @property
    def spec(self) -> ToolSpec:
        """What the machine and the model know of it."""
        ...

    @property
    def is_async(self) -> bool:
        """Whether `call` returns an awaitable."""
        ...

    @property
    def is_killable(self) -> bool:
        """Whether giving the call up really ends it (it runs in a process of its own)."""
        ...

    def check(self, arguments: JsonObject) -> Bound | Invalid:
        """Validate strictly. Nothing has run yet."""
        ...

    def call(self, bound: Bound, ctx: CallContext) -> Any:
        """Run it. May raise anything."""
        ...

    def render(self, value: Any) -> Rendered:
        """Turn the value into bounded parts. Never runs the tool again."""
        ...


# --- journal, clock, observer -------------------------------------------------------------------------


class RunSummary(msgspec.Struct, frozen=True):
    """One line of `tenlines runs`."""

    run_id: str
    started_at: float
    last_at: float
    agent: str
    model: str
    task: str
    status: str
    """How it ended, or `open`."""
    events: int


class Journal(Protocol):
    """The store of events. All methods raise `JournalError` when the store fails; the run then stops.

    `append` may hold events back; `commit` returns when all of them are durable. A driver commits before it
    acts (asks the model, starts a tool) and before it waits or ends.
    """

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Add the next event of a run.

        Raises:
            JournalConflict: The run already has an event with this `seq`.
        """
        ...

    def commit(self, run_id: str) -> None:
        """Make everything that was appended to this run durable."""
        ...

    def read(self, run_id: str, from_seq: int = 0) -> Iterator[AnyEvent]:
        """The events of a run, in order.

        Raises:
            RunNotFound: There is no such run.
        """
        ...

    def runs(self, limit: int | None = None) -> list[RunSummary]:
        """The newest runs first."""
        ...


class Clock(Protocol):
    """Time for a driver."""

    def now(self) -> float:
        """Unix time in seconds."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait until `event` is set, at most `seconds`."""
        ...

    async def sleep(self, seconds: float) -> None:
        """The same length of time for asyncio; ended early by cancelling it."""
        ...


class SystemClock:
    """The machine's own clock."""

    now = staticmethod(time.time)  # noqa: TID251  # the one place where the time is read

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait on the event."""
        event.wait(seconds)

    async def sleep(self, seconds: float) -> None:
        """Sleep in the event loop."""
        import asyncio

        await asyncio.sleep(seconds)


class Observer(Protocol):
    """Sees what happens. It can never break or steer a run: its exceptions are counted, not raised.

    One that also has `on_delta(delta: Delta)` sees replies while they are written; only then is anything streamed.
    """

    def on_event(self, event: AnyEvent) -> None:
        """An event, after it was recorded."""
        ...
