"""The roles that the outside plays: a model, a tool, a journal, a clock, an observer. Protocols only.

Write your own by having the same methods; nothing here is to be inherited from.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from tenlines.core.children import bounded, left_for
from tenlines.core.effects import CallModel
from tenlines.core.events import AnyEvent, ChildRun, ToolSpec, WaitingCall
from tenlines.core.limits import Left, Limits, Spent
from tenlines.core.surroundings import traceparent
from tenlines.core.transcript import JsonObject, Part, Reply
from tenlines.errors import ConfigError

# --- the model ----------------------------------------------------------------------------------------


class Delta(msgspec.Struct, frozen=True):
    """A piece of a reply while it is being written. For eyes only: the run uses the finished `Reply`."""

    step: int
    text: str = ""
    reasoning: str = ""
    answer: str = ""
    """A piece of the answer, where it has a schema: text of a JSON object that is not whole yet
    (`tenlines.tools.finish.partial`)."""


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


TEXT_FORMS = ("text+", "text-json+")
"""How the name of a model begins whose tools are written as text (`tenlines.models.text_protocol`)."""


def plain_name(model: str) -> str:
    """The name of the model itself, however its tools are written: what it costs and takes in goes by that."""
    for form in TEXT_FORMS:
        model = model.removeprefix(form)
    return model


# --- tools --------------------------------------------------------------------------------------------


_NOTHING = Spent()
_charging = threading.Lock()


class Began(NamedTuple):
    """Which event of a run began something, and what surrounds that run."""

    seq: int
    within: str = ""
    """`RunStarted.traceparent`."""


FIRST = Began(0)


class CallContext:
    """What a tool may know about the call that it serves. A tool gets it by asking: `ctx: CallContext`.

    Attributes:
        tool: Name of the tool.
        key: Idempotency key: the same for the same call over retries, crashes and resumes.
        deadline_at: Unix time at which the call is given up, or None.
        allowance: What of the limits of its run the call may use, where its tool spends on its own (`spends=True`).
        spent: What it used so far; None for nothing.
        began: The event that began it.
    """

    __slots__ = (
        "_aside",
        "_cancelled",
        "_drains",
        "_on_drain",
        "_on_give_up",
        "allowance",
        "began",
        "deadline_at",
        "key",
        "spent",
        "tool",
    )

    def __init__(
        self, key: str, tool: str, deadline_at: float | None, allowance: Left | None = None, began: Began = FIRST
    ) -> None:
        self.key, self.tool, self.deadline_at, self.began = key, tool, deadline_at, began
        self.allowance, self.spent = allowance, None if allowance is None else _NOTHING
        self._aside: list[Limits] = []
        self._cancelled = self._drains = False
        self._on_give_up: list[Callable[[], None]] = []
        self._on_drain: list[Callable[[], None]] = []

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
    def traceparent(self) -> str:
        """The span of the call, to be passed on as the header `traceparent` (W3C Trace Context). It is the same whether
        somebody traces the run now, or exports it later."""
        return traceparent(self.run_id, *self.began)

    @property
    def cancelled(self) -> bool:
        """Whether the call was given up (timeout, cancel). A long-running tool looks at it and stops."""
        return self._cancelled

    def set_aside(self, limits: Limits) -> Limits:
        """Set aside what a run under the call may use: `limits`, within what other runs have left of the allowance.

        `Agent.run(..., under=ctx)` does it by itself. A run without limits of its own takes all that is left; so of
        several at once, give each its own.

        Returns:
            The limits of that run. They stay set aside until `charge` says what it used.

        Raises:
            ConfigError: The tool does not say that it spends (`@tool(spends=True)`).
        """
        with _charging:
            if self.allowance is None or self.spent is None:
                raise ConfigError(f"{self.tool} spends on its own: say so, with @tool(spends=True)")
            within = bounded(limits, left_for(self.allowance, self.spent, self._aside))
            self._aside.append(within)
            return within

    def charge(self, spent: Spent, aside: Limits | None = None) -> None:
        """Enter what the call used of its allowance. `Agent.run(..., under=ctx)` does it by itself.

        Args:
            spent: What it was.
            aside: What was set aside for it (`set_aside`).

        Raises:
            ConfigError: The tool does not say that it spends (`@tool(spends=True)`).
        """
        with _charging:  # the runs under a call may end in several threads
            if self.spent is None:
                raise ConfigError(f"{self.tool} spends on its own: say so, with @tool(spends=True)")
            self.spent = self.spent.plus(spent)
            if aside is not None:
                self._aside.remove(aside)

    def on_give_up(self, action: Callable[[], None]) -> None:
        """Have `action` called, from another thread, when the call is given up."""
        self._on_give_up.append(action)
        if self._cancelled:
            action()

    def on_drain(self, action: Callable[[], None]) -> None:
        """Have `action` called, from another thread, when the run is to stop after what is running: the call is waited
        for, and shall begin nothing new."""
        self._on_drain.append(action)
        if self._drains:
            action()

    def drain(self) -> None:
        """Called by the driver: the run stops after what is running."""
        if not self._drains:
            self._drains = True
            for action in self._on_drain:
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


class ChildEnd(NamedTuple):
    """What the call of a tool returns that is a run (`ToolSpec.child`): how the run ended, or that it waits."""

    run: ChildRun
    text: str
    """The answer. Where there is none: for the model, why, and what there is so far."""
    waiting: tuple[WaitingCall, ...] = ()
    """Calls in it, or under it, that wait for somebody's decision, where it is `awaiting_approval`."""


class GuardedCall(NamedTuple):
    """A call that waits for leave to run, as a policy sees it."""

    tool: ToolSpec
    arguments: JsonObject
    """As the model wrote them; the tool takes them."""
    run_id: str
    step: int
    position: int

    @property
    def name(self) -> str:
        """Name of the tool."""
        return self.tool.name


class Allow(msgspec.Struct, frozen=True):
    """The call may run."""


class Deny(msgspec.Struct, frozen=True):
    """The call does not run. The model is told why."""

    reason: str = ""


class Ask(msgspec.Struct, frozen=True):
    """A person decides; the run pauses until somebody has."""

    reason: str = ""
    """Shown to the person."""


class Edit(msgspec.Struct, frozen=True):
    """The call may run with these arguments in place of those that the model wrote. The model is told."""

    arguments: JsonObject
    reason: str = ""


Verdict: TypeAlias = Allow | Deny | Ask | Edit
Opinion: TypeAlias = Verdict | Literal["allow", "deny", "ask"] | None
"""What a policy may say; None leaves the call to the tool's own `approve`."""
Policy: TypeAlias = Callable[[GuardedCall], Opinion]


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


class CarefulTool(ToolPort, Protocol):
    """What a tool also has where its spec says so (`approve`, `reconcilable`, `undoable`)."""

    def permit(self, call: GuardedCall) -> Opinion:
        """Whether the call may run, where the agent's policy left it to the tool. May raise anything, which asks a
        person."""
        ...

    def reconcile(self, arguments: JsonObject, ctx: CallContext) -> Any:
        """What became of a call that had started when a process died.

        Returns, or is awaited for, the value that the call returned; `NOT_DONE` where it took no effect; `UNKNOWN`. May
        raise anything, which means that it is not known.
        """
        ...

    def undo(self, arguments: JsonObject, result: str, ctx: CallContext) -> Any:
        """Take back what a call did. It may be called again with the same `ctx.key`, and for a call that had no effect.
        May raise anything; an awaitable is awaited."""
        ...


class Aftermath(Enum):
    """What `reconcile` says when there is no value."""

    NOT_DONE = "not_done"
    UNKNOWN = "unknown"


NOT_DONE, UNKNOWN = Aftermath.NOT_DONE, Aftermath.UNKNOWN


class InDoubt(Exception):
    """Raised by a tool that does not know whether the call took effect: what it spoke to was gone before it answered.

    The call is then in doubt, as after a crash, and what the exception says is what the model is told. From a tool that
    spends (`spends=True`) it is an error like any other.
    """


class ToolSource(Protocol):
    """Several tools that come from one place and may change there. A run has those that were there when it began."""

    @property
    def version(self) -> int:
        """Another number where `tools` would give others than the last time."""
        ...

    def tools(self, taken: Collection[str] = ()) -> Sequence[ToolPort]:
        """The tools there are now.

        Args:
            taken: Names that other tools have already.
        """
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
    steps: int = 0
    owner: str = ""
    """Who took it up last (`tenlines.journal.owner` says whether that process is alive)."""
    session: str = ""
    turn: int = 0


class Journal(Protocol):
    """The store of events. All methods raise `JournalError` when the store fails; the run then stops.

    `append` may hold events back; `commit` returns when all of them are durable. A driver commits before it
    acts (asks the model, starts a tool) and before it waits or ends. What a commit could not write is lost to the
    run, and nothing later of the run is written either: a log has no gaps.
    """

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Add the next event of a run.

        Raises:
            JournalConflict: The run already has an event with this `seq`.
        """
        ...

    def commit(self, run_id: str) -> None:
        """Make everything that was appended to this run durable.

        Raises:
            JournalConflict: The run, or the turn of its session, belongs to somebody else.
        """
        ...

    async def acommit(self, run_id: str) -> None:
        """The same for asyncio: other runs go on meanwhile."""
        ...

    def read(self, run_id: str, from_seq: int = 0) -> Iterator[AnyEvent]:
        """The events of a run, in order, as they come out of the text that they were written as (`codec.decode`).

        Raises:
            RunNotFound: There is no such run.
        """
        ...

    def runs(
        self, limit: int | None = None, *, status: str | None = None, session: str | None = None
    ) -> list[RunSummary]:
        """The newest runs first; only those with this status (`open` included) or of this session."""
        ...


class Saying(msgspec.Struct, frozen=True, tag="say"):
    """Tell the model something."""

    text: str
    by: str = ""
    """Who says it."""


class Stopping(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop the run: `drain` lets what is running finish, `now` does not."""

    mode: Literal["drain", "now"] = "now"
    reason: str = ""
    by: str = ""


class Letter(msgspec.Struct, frozen=True):
    """What a process that does not work on a run has to say to it."""

    run_id: str
    number: int
    """Its number in the mailbox of the run: above those of the letters before it."""
    at: float
    what: Saying | Stopping


class News(NamedTuple):
    """Something is new about a run that nobody works on."""

    run_id: str
    mark: int
    """Grows with whatever is new."""


@runtime_checkable
class Mailbox(Protocol):
    """What a journal also has where other processes can reach its runs. All methods raise `JournalError` when the
    store fails."""

    def post(self, run_id: str, what: Saying | Stopping, *, at: float, above: int = 0) -> Letter:
        """Put a letter into the mailbox of a run. It stays there as long as the run is in the journal.

        Args:
            above: What its number is above, at least: the last letter that the run has heard.

        Raises:
            RunNotFound: There is no such run.
        """
        ...

    def letters(self, above: Mapping[str, int]) -> list[Letter]:
        """The letters of these runs whose numbers are above what is stated for each, in order."""
        ...

    def news(self, since: float) -> list[News]:
        """The runs that wait for people, of which something was decided, or to which something was said, at the Unix
        time `since` or later."""
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

    One that also has `for_run(run_id: str, past: Iterable[AnyEvent]) -> Observer` gives each run an observer of its
    own when the run is begun or taken up, and so can watch several at once. `past` is what happened in it before.

    One that also has `around_call(ctx: CallContext) -> AbstractContextManager` is entered where the code of a tool
    runs, in its thread or its task, and left when that has ended. So is `around_request()`, where a model is asked.
    """

    def on_event(self, event: AnyEvent) -> None:
        """An event, after it was recorded."""
        ...


# --- the engine of a fleet ------------------------------------------------------------------------------


HEARTBEAT_S = 15.0
"""Silence after which a worker counts as dead, and others take its runs up."""


def check_queue(name: str) -> None:
    """Raise where a queue cannot be called so.

    Raises:
        ConfigError: It has no name, or one with a slash, which parts a lane.
    """
    if not name.strip() or "/" in name:
        raise ConfigError(f"{name!r} is no name of a queue: give it one, without /")


class Lane(NamedTuple):
    """Where runs of one version of one agent wait for a worker that has it."""

    queue: str
    agent: str
    version: str = ""

    @property
    def who(self) -> str:
        """The agent with its version, where it has one: `support@2`."""
        return self.agent + f"@{self.version}" * bool(self.version)

    def __str__(self) -> str:
        return f"{self.queue}/{self.who}"


class Order(msgspec.Struct, frozen=True):
    """A run that is to be worked on, as an engine knows it. What a model is sent is in the journal alone."""

    run_id: str
    agent: str
    version: str = ""
    queue: str = "default"
    priority: int = 3
    """From 1, the soonest, to 5."""
    delay_s: float = 0.0
    """Seconds before it may be begun."""
    again: bool = False
    """Go on with a run that has ended without an answer."""
    limits: Limits | None = None
    """The limits that hold from now on; None for those that it has."""
    careful: bool = False
    """Workers died under it: one worker has one such run at a time, and only for a few steps. So it shows
    whether it was the run."""

    @property
    def lane(self) -> Lane:
        """Where it waits."""
        return Lane(self.queue, self.agent, self.version)

    def check(self) -> None:
        """Raise where it cannot be followed.

        Raises:
            ConfigError: The message says what does not fit.
        """
        check_queue(self.queue)
        if self.priority not in range(1, 6):
            raise ConfigError(f"the priority is {self.priority}: it goes from 1, the soonest, to 5")
        if not 0.0 <= self.delay_s < float("inf"):
            raise ConfigError(f"the delay is {self.delay_s} s: give it in seconds, from 0 on")


class Timetable(msgspec.Struct, frozen=True):
    """When a schedule is due, as an engine knows it. What is then to be done stands in the code of the workers."""

    name: str
    cron: tuple[str, ...]
    """Each as in `crontab`: minute, hour, day of the month, month, day of the week."""
    lane: Lane
    """Whose workers begin its runs."""
    time_zone: str = "UTC"


class Handback(msgspec.Struct, frozen=True):
    """Why a worker lets go of a run."""

    why: Literal["ended", "paused", "asleep", "left", "absent", "taken"]
    """`paused`: people have to decide. `asleep`: nothing is to be done before `until`. `left`: another worker may go on
    at once. `absent`: the journal has no such run (yet). `taken`: somebody else took it over."""
    status: str = ""
    """How it ended."""
    until: float | None = None
    """Unix time at which it is to be looked at again, whatever happens before."""
    mark: int = -1
    """That of the news (`News`) that it knows: older ones are none."""


Beat: TypeAlias = Callable[[int], None]
"""Called again and again while a worker is alive and has a run, with the steps that the run has made; -1 while it has
not begun with it."""


class Crew(Protocol):
    """What an engine calls in a worker."""

    async def advance(self, order: Order, beat: Beat) -> Handback:
        """Go on with a run until it ends, pauses, sleeps or is let go of.

        Raises:
            TenlinesError: It cannot be gone on with at the moment.
        """
        ...

    async def set_aside(self, order: Order, reason: str) -> None:
        """End a run that costs too many workers their lives."""
        ...

    async def submit_due(self, schedule: str, due: str) -> str:
        """Submit the run of a schedule. Safe to repeat for the same time `due`. Returns the run's id."""
        ...


class Engine(Protocol):
    """Has the runs of a fleet worked on: it queues them, hands each to one worker, and to another where that one dies.

    All methods raise `EngineError` where the engine cannot be reached.
    """

    async def start(self, order: Order) -> bool:
        """See to it that a run is worked on. Safe to repeat; False where it is known already."""
        ...

    async def wake(self, run_id: str, news: News) -> bool:
        """Something was said to a run, or decided about it or a run under its calls. False where the engine has no such
        run. News that it has had already are no news to it."""
        ...

    async def plan(self, timetables: Sequence[Timetable]) -> None:
        """See to it that schedules are kept. One that is known by its name is replaced."""
        ...

    async def workers(self, lane: Lane) -> int:
        """How many workers take runs from a lane."""
        ...

    async def work(self, crew: Crew, lanes: Mapping[Lane, int], leaving: Awaitable[object]) -> None:
        """Have `crew` work on what waits in these lanes, on so many runs of each at once, until `leaving` is over; then
        begin nothing more, and come back when all that was begun is handed back."""
        ...
