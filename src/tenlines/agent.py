"""`Agent`: a model, tools, instructions and limits, wired to a machine, a driver and a journal.

This is the only place that wires things together. Nothing is decided here either.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, TypeAlias

import msgspec

from tenlines.child import Brief, ChildTool, given_up, under
from tenlines.core import events as ev
from tenlines.core.children import ID_LENGTH, ID_LETTERS, derived_id
from tenlines.core.context import Compaction, instructed
from tenlines.core.events import AnyEvent, Settings
from tenlines.core.history import mend
from tenlines.core.limits import Limits, Spent
from tenlines.core.machine import Machine
from tenlines.core.outcomes import FINISH, READ_RESULT, wire_name
from tenlines.core.prefix import beginning_change
from tenlines.core.result import PendingCall, RunResult
from tenlines.core.state import Phase, State
from tenlines.core.transcript import Message, Part, System, User
from tenlines.drivers import aio, decisions, sync
from tenlines.drivers.control import Control
from tenlines.drivers.decisions import Decision
from tenlines.drivers.delivery import hearing
from tenlines.drivers.drafts import Draft
from tenlines.drivers.letters import draft_of, waiting
from tenlines.drivers.recorder import Parts, Recorder, machine_of
from tenlines.drivers.threads import in_thread
from tenlines.errors import ConfigError, JournalConflict, stopped
from tenlines.journal import open_journal
from tenlines.journal.owner import new_owner
from tenlines.models.resolve import resolve
from tenlines.past import Past, follow, needs_counting, whole_result
from tenlines.ports import (
    CallContext,
    Clock,
    Delta,
    Engine,
    Journal,
    Model,
    Observer,
    Order,
    Policy,
    SystemClock,
    ToolPort,
    ToolSource,
)
from tenlines.tools.finish import finish, reader_of, recorded, with_finish
from tenlines.tools.load import as_tools, is_source, listed_things
from tenlines.tools.policy import as_policy, settle
from tenlines.tools.reading import ReadResult
from tenlines.trace import logs
from tenlines.trace.ambient import surrounding
from tenlines.wire.plain import read_history, read_messages

History: TypeAlias = Iterable[Message | Mapping[str, Any]]


Asking: TypeAlias = Callable[[Model], Model]


class Agent:
    """An agent: give it a task, get an answer or an honest reason why there is none.

    Args:
        model: `openai:NAME`, `local`, `http://host/v1#NAME`, ...; a function of the messages; a list of
            scripted replies; or a `Model`.
        tools: `@tool` functions, plain typed functions, a dict of functions, servers of tools (`tenlines.tools.mcp`).
        instructions: Standing instructions (the system prompt).
        limits: What a run may use. By default 20 steps.
        settings: Everything else the machine decides by; `limits` wins over `settings.limits`.
        name: How runs of this agent are called in the journal.
        journal: A file, `"memory"`, or a `Journal`; by default a SQLite file in the user's state directory.
        observers: Who sees the events of every run.
        policy: Who may let calls run: a function of the call (`GuardedCall`) that says `"allow"`, `"deny"`, `"ask"`,
            `Deny(reason)`, `Ask(reason)`, `Edit(arguments)` or None (then the tool's own `approve` decides); or a dict
            of name patterns to these. With a policy, every call needs leave, and who gave it is in the journal.
        compaction: When the transcript is made smaller: a `Compaction`, or True for its defaults. None: never.
        read_results: Whether the model has the tool `read_result`, to read what was cut from a result. By default it
            has where the transcript may be made smaller.
        output: The type of the answer: anything that pydantic takes for one, or a JSON Schema as a dict. Then words end
            no run: the model gives its answer by the tool `finish`, and `result.output` is the value.
        clock: Where the time comes from.
        version: Which version of the agent this is. It stands in the log of each run, and a worker of a fleet goes on
            only with runs of the versions that it has.

    Raises:
        ConfigError: Something does not fit; the message says what and how to mend it.
    """

    def __init__(
        self,
        model: str | Model | Any,
        tools: Any = (),
        *,
        instructions: str = "",
        limits: Limits | None = None,
        settings: Settings | None = None,
        name: str = "agent",
        journal: Journal | str | Path | None = None,
        observers: Sequence[Observer] = (),
        policy: Any = None,
        compaction: Compaction | bool | None = None,
        read_results: bool | None = None,
        output: Any = None,
        clock: Clock | None = None,
        version: str = "",
    ) -> None:
        self.model: Model = resolve(model)
        self._finish = None if output is None else finish(output)
        self._given = listed_things(tools)
        self._sources: list[ToolSource] = list(filter(is_source, self._given))
        self._read_tools()
        self.instructions, self.name, self.version = instructions, name, version
        self.settings = _settings(settings or Settings(), limits, compaction, read_results)
        if self.settings.read_results and READ_RESULT in self.tools:
            raise ConfigError(f"a tool is called {READ_RESULT}, as the built-in one is: give yours another name")
        self.observers, self.clock = tuple(observers), clock or SystemClock()
        self.policy: Policy | None = as_policy(policy)
        self._journal = journal
        forced = self.settings.tool_choice
        if forced == "none" and self._finish is not None:
            raise ConfigError("tool_choice='none' lets the model call nothing, and output= wants a call: leave one out")
        if forced not in ("auto", "none", "required") and forced not in self.tools:
            raise ConfigError(f"tool_choice names {forced!r}, which is not a tool; tools: {', '.join(self.tools)}")

    @property
    def journal(self) -> Journal:
        """Where runs are recorded. Opened at first use."""
        if self._journal is None or isinstance(self._journal, str | Path):
            self._journal = open_journal(self._journal)
        return self._journal

    # --- running ------------------------------------------------------------------------------------

    def run_sync(
        self,
        task: str | Sequence[Part] | None,
        *,
        messages: History = (),
        limits: Limits | None = None,
        control: Control | None = None,
        under: CallContext | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """Run a task to its end. Needs no event loop, and works inside a running one.

        Args:
            task: What is to be done; None to go on with `messages` as they are.
            messages: The conversation so far, from an earlier `result.messages` or as dicts. Never changed.
            limits: Instead of the agent's, for this run.
            control: A hand on the run, for another thread.
            under: The call that the run serves, from inside a tool (`@tool(spends=True)`): it draws on the limits of
                that call's run, which counts what it uses.
            raise_on_stop: Raise `RunStopped` when there is no answer; False returns the result in any case.

        Raises:
            RunStopped: The run ended without an answer; `.result` has everything.
            KeyboardInterrupt: As it came, after the log was closed.
        """
        with _Serving(under, self._limits(limits)) as served:
            served.parts = parts = self._begin(task, messages, served.limits, control, place=served.place)
            return outcome(sync.drive(parts), raise_on_stop)

    async def run(
        self,
        task: str | Sequence[Part] | None,
        *,
        messages: History = (),
        limits: Limits | None = None,
        control: Control | None = None,
        under: CallContext | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """The same as `run_sync`, for asyncio."""
        with _Serving(under, self._limits(limits)) as served:
            begin = partial(self._begin, task, messages, served.limits, control, place=served.place)
            is_long = needs_counting(self._settings(served.limits)) or self._has_other_tools()
            served.parts = parts = await in_thread(begin) if is_long else begin()
            return outcome(await aio.drive(parts), raise_on_stop)

    def stream(self, task: str | Sequence[Part] | None, *, messages: History = (), limits: Limits | None = None) -> Run:
        """Start a run that is watched: `async for event in agent.stream(task)`.

        What comes are events, and `Delta`s of the reply that is being written. The run is the same whether it is
        watched or not.
        """
        return Run(self, task, messages, limits)

    def resume_sync(
        self,
        run_id: str,
        *,
        limits: Limits | None = None,
        control: Control | None = None,
        compaction: Compaction | bool | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """Go on with a run of the journal: after a limit, a cancel, a crash. Nothing is repeated.

        A run that is answered already is returned as it is. A call that had started when the process died runs
        again only if its tool is `read_only` or `idempotent`; any other is reported as in doubt.

        Args:
            limits: The limits from now on, counted over the whole run; None keeps them.
            compaction: When the transcript is made smaller from now on, as in `Agent`; None keeps it.

        Raises:
            RunNotFound: The journal has no such run.
            RunStopped: As in `run_sync`.
        """
        return outcome(sync.drive(self._reopen(run_id, limits, control, compaction)), raise_on_stop)

    async def resume(
        self,
        run_id: str,
        *,
        limits: Limits | None = None,
        control: Control | None = None,
        compaction: Compaction | bool | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """The same as `resume_sync`, for asyncio."""
        reopen = partial(self._reopen, run_id, limits, control, compaction)
        return outcome(await aio.drive(await in_thread(reopen)), raise_on_stop)

    # --- runs under a call --------------------------------------------------------------------------

    def as_tool(
        self,
        name: str | None = None,
        description: str | None = None,
        *,
        task: Callable[..., str] | None = None,
        limits: Limits | None = None,
        parallel: bool | None = None,
        final: bool = False,
        history: bool = False,
        approve: Any = False,
        timeout_s: float | None = None,
        max_result: int = 8_000,
    ) -> ChildTool:
        """This agent as a tool of another one: each call is a run of its own, in the journal of the run that calls.

        That run pays for it and limits it, stops it when it stops, and waits with it for people. After a crash the same
        call goes on with the same run.

        Args:
            name: What the model calls it; by default the agent's name, as far as a tool can be called so.
            description: What the model reads; by default the docstring of `task`, or a sentence.
            task: A function whose parameters the tool takes, and which returns the task. By default: one, `task`.
            limits: What one call may use, within its share of what its run has left; by default the agent's limits.
            parallel: Whether calls of one reply run together. Only where all tools of this agent are `read_only`; there
                they do by default.
            final: Its answer is the answer of the run that calls.
            history: It starts from the conversation of the run that calls. Then the task may be left out.
            approve: As in `@tool`: who may let a call begin.
            timeout_s: Seconds after which a call is given up.
            max_result: As in `@tool`: tokens of the answer that the model is shown.

        Raises:
            ConfigError: Something does not fit.
        """
        brief = Brief(name or wire_name(self.name), description, task, approve, max_result)
        return ChildTool(
            self, brief, limits=limits, parallel=parallel, final=final, history=history, timeout_s=timeout_s
        )

    _asking: Asking | None = None

    def _recording_in(self, journal: Journal, asking: Asking | None = None) -> Agent:
        """The same agent with another journal, for its own runs and those under them.

        Args:
            asking: What stands between them and their models.
        """
        same = copy(self)
        same._journal = journal
        if asking is not None:
            same._asking, same.model = asking, asking(self.model)
        same.tools = {name: under(one, same) for name, one in self.tools.items()}
        return same

    # --- runs of a fleet ----------------------------------------------------------------------------

    async def submit(
        self,
        task: str | Sequence[Part] | None,
        to: Engine,
        *,
        messages: History = (),
        limits: Limits | None = None,
        queue: str = "default",
        priority: int = 3,
        key: str | None = None,
        delay_s: float = 0.0,
    ) -> str:
        """Hand a task to the workers of a fleet (`tenlines worker`), and wait for nothing.

        The run is in the journal at once: it can be shown, cancelled and told something before anybody works on it.
        `wait` waits for its end.

        Args:
            to: The engine of the fleet (`tenlines.fleet.Temporal`). The journal of this agent has to be that of the
                fleet.
            queue: Where it waits.
            priority: From 1, the soonest, to 5.
            key: An id of the task for whoever submits it. The same key again is the same run.
            delay_s: Seconds before it may be begun.

        Returns:
            The id of the run.

        Raises:
            ConfigError: The key was used for another task, or something does not fit.
            EngineError: The engine cannot be reached. Nothing was submitted.
            JournalError: The journal cannot be written. Nothing was submitted.
        """
        run_id = new_run_id() if key is None else derived_id(f"{self.name} {key}")
        order = Order(run_id, self.name, self.version, queue, priority, delay_s)
        order.check()
        place = {"run_id": run_id, "queue": queue, "owner": ""}
        begun = await in_thread(partial(self._begin, task, messages, limits, None, place=place))
        await to.start(order)  # first: an order without a run is forgotten, a run without an order would be
        try:
            await Recorder(begun._replace(observers=())).aclaim()
        except JournalConflict:
            await in_thread(partial(self._check_same, run_id, key, begun))
        return run_id

    def submit_sync(self, task: str | Sequence[Part] | None, to: Engine, **options: Any) -> str:
        """The same as `submit`, for programs without an event loop."""
        return asyncio.run(self.submit(task, to, **options))

    async def wait(self, run_id: str, *, raise_on_stop: bool = True) -> RunResult:
        """Wait until a run that others work on ends, or waits for people.

        Raises:
            RunNotFound: The journal has no such run.
            RunStopped: As in `run`.
        """
        machine = Machine()
        async for _ in follow(self.journal, run_id, self.clock, machine):
            pass
        tools = self._tools_of(machine, machine.state.settings.read_results)
        result, read = machine.result(), reader_of(tools)
        if result.answer is not None and read is not None:
            result = msgspec.structs.replace(result, output=read(result.answer))
        return outcome(result, raise_on_stop)

    def watch(self, run_id: str) -> AsyncIterator[AnyEvent]:
        """The events of a run that others work on, those that are there and those that come, until it ends or waits for
        people.

        Raises:
            RunNotFound: The journal has no such run.
        """
        return follow(self.journal, run_id, self.clock)

    def _check_same(self, run_id: str, key: str | None, parts: Parts) -> None:
        """Raise, unless the run that is there was begun for the same."""
        there, wanted = machine_of(self.journal, run_id).state.start, parts.machine.state.start
        assert there is not None
        assert wanted is not None
        if there.messages != wanted.messages:
            raise ConfigError(
                f"key {key!r} was used for another task, which is run {run_id}: give this one a key of its own"
            )

    # --- people -------------------------------------------------------------------------------------

    def pending(self, run_id: str) -> tuple[PendingCall, ...]:
        """The calls of a run that wait for somebody's decision."""
        return decisions.pending(self.journal, run_id)

    def approve(
        self,
        run_id: str,
        call: str | None = None,
        *,
        by: str = "",
        arguments: Mapping[str, Any] | None = None,
        digest: str | None = None,
    ) -> tuple[PendingCall, ...]:
        """Allow a call of a run that is `awaiting_approval`. It runs when the run is resumed, by whatever process.

        Args:
            call: Its place (`"2.1"`: step 2, first call), its id, or the name of its tool; None where only one waits.
            by: Who allows it; recorded.
            arguments: What it shall run with in place of what the model wrote. The model is told.
            digest: `PendingCall.digest` of what was looked at, so that nothing else can be allowed.

        Returns:
            The calls that still wait.

        Raises:
            ApprovalRefused: No such call waits, it is another one by now, or the time is over.
            ConfigError: The tool does not take these arguments.
        """
        changed = None if arguments is None else dict(arguments)
        if changed is not None:
            tool = self.tools.get(decisions.find(self.pending(run_id), run_id, call).name)
            if tool is not None:
                decisions.check_edit(tool, changed)
        decision = Decision("allow", by, "", changed, digest)
        return decisions.decide(self.journal, self.clock, run_id, call, decision)

    def deny(
        self, run_id: str, call: str | None = None, *, by: str = "", reason: str = "", digest: str | None = None
    ) -> tuple[PendingCall, ...]:
        """Forbid a call of a run that is `awaiting_approval`; the model is told `reason`. The rest as in `approve`."""
        return decisions.decide(self.journal, self.clock, run_id, call, Decision("deny", by, reason, None, digest))

    def undo_sync(self, run_id: str, *, by: str = "", reason: str = "", control: Control | None = None) -> RunResult:
        """Take back what a run did: the `undo` of each of its calls, in reverse order. A run that is open is ended.

        Doing it again undoes what could not be undone, and nothing twice. `result.undone` says what came of it,
        `result.standing` what still stands.

        Raises:
            RunNotFound: The journal has no such run.
        """
        if stopping := self._stopping(run_id, control):
            _unless_lost(sync.drive(stopping))
        return _unless_lost(sync.drive(self._undoing(run_id, by, reason, control)))

    async def undo(self, run_id: str, *, by: str = "", reason: str = "", control: Control | None = None) -> RunResult:
        """The same as `undo_sync`, for asyncio."""
        if stopping := await in_thread(partial(self._stopping, run_id, control)):
            _unless_lost(await aio.drive(stopping))
        return _unless_lost(await aio.drive(await in_thread(partial(self._undoing, run_id, by, reason, control))))

    # --- another continuation -------------------------------------------------------------------------

    def fork_sync(
        self,
        run_id: str,
        at: int,
        task: str | Sequence[Part] | None = None,
        *,
        limits: Limits | None = None,
        control: Control | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """Start a new run from another's transcript as it stood before its step `at`. The other stays as it is.

        Args:
            at: Number of the step that is made anew, from 1; one more than the run has goes on from its end.
            task: Something more to say first; None to only ask again.

        Raises:
            RunNotFound: The journal has no such run.
            ConfigError: It never came to that step.
            RunStopped: As in `run_sync`.
        """
        return outcome(sync.drive(self._fork(run_id, at, task, limits, control)), raise_on_stop)

    async def fork(
        self,
        run_id: str,
        at: int,
        task: str | Sequence[Part] | None = None,
        *,
        limits: Limits | None = None,
        control: Control | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """The same as `fork_sync`, for asyncio."""
        return outcome(
            await aio.drive(await in_thread(partial(self._fork, run_id, at, task, limits, control))), raise_on_stop
        )

    # --- wiring -------------------------------------------------------------------------------------

    def _begin(
        self,
        task: str | Sequence[Part] | None,
        messages: History,
        limits: Limits | None,
        control: Control | None,
        watchers: tuple[Observer, ...] = (),
        *,
        place: Mapping[str, Any] = MappingProxyType({}),
        before: State | None = None,
    ) -> Parts:
        said, remarks = read_history([*messages])
        if task is not None:
            said = (*said, User(read_task(task)))
        if not said:
            raise ConfigError("there is nothing to do: give a task, or messages to go on from")
        if before is not None or not any(isinstance(one, System) for one in said):
            said = tuple(instructed(said, self.instructions))
        history = mend(said)
        settings, machine = self._settings(self._limits(limits)), Machine()
        tools = self._tools_of(machine, settings.read_results)
        specs = self._specs(tools)
        prior = self._past.prior(settings, history.messages, specs, self.clock.now())
        run_id = str(place.get("run_id") or new_run_id())
        start = {
            "run_id": run_id,
            "agent": self.name,
            "model": self.model.name,
            "messages": history.messages,
            "tools": specs,
            "settings": prior.settings,
            "repairs": remarks + history.repairs,
            "owner": new_owner(),
            "counting": prior.counting,
            "changed": "" if before is None else _change(before, self.model.name, history.messages, specs),
            "traceparent": surrounding(),
            "version": self.version,
            **place,
        }
        parts = self._parts(machine, run_id, control, (Draft(ev.RunStarted, start),), tools)
        return parts._replace(observers=(*parts.observers, *watchers))

    def _limits(self, stated: Limits | None) -> Limits:
        """The limits of one run."""
        return self.settings.limits if stated is None else stated

    def _settings(self, limits: Limits) -> Settings:
        """The settings of one run."""
        same = limits is self.settings.limits
        return self.settings if same else msgspec.structs.replace(self.settings, limits=limits)

    @property
    def _past(self) -> Past:
        return Past(self.name, self.model.name, self.journal)

    def _fork(
        self,
        run_id: str,
        at: int,
        task: str | Sequence[Part] | None,
        limits: Limits | None,
        control: Control | None,
    ) -> Parts:
        history = transcript_before(self.journal.read(run_id), at)
        if history is None:
            raise ConfigError(
                f"run {run_id} never came to step {at}: name one that it began, or the one after its last"
            )
        return self._begin(task, history, limits, control, place={"origin": f"{run_id}@{at}"})

    def _reopen(
        self, run_id: str, limits: Limits | None, control: Control | None, compaction: Compaction | bool | None
    ) -> Parts:
        machine, tools = self._reopened(run_id)
        state = machine.state
        if state.phase is Phase.ENDED and state.ended is not None and state.ended.status == "answered":
            return self._parts(machine, run_id, control, (), tools)
        chosen = self._past.informed(Compaction() if compaction is True else compaction or None)
        raised = () if limits is None else (Draft(ev.LimitsRaised, {"limits": limits}),)
        unheard = map(draft_of, waiting(self.journal, run_id, state.mail))
        opening = (self._taking_up(tools, chosen), *raised, *given_up(state, tools.values()), *unheard)
        return self._parts(machine, run_id, control, opening, tools)

    def _reopened(self, run_id: str, *, is_ending: bool = False) -> tuple[Machine, dict[str, ToolPort]]:
        """A run of the journal, and the tools that it has now."""
        machine = machine_of(self.journal, run_id)
        return machine, self._tools_of(machine, machine.state.settings.read_results, is_ending=is_ending)

    def _stopping(self, run_id: str, control: Control | None, reason: str = "the run is undone") -> Parts | None:
        """Parts that end an open run; None where it has ended, or is being undone already."""
        machine, tools = self._reopened(run_id, is_ending=True)
        if machine.state.phase is Phase.UNDOING or (machine.state.phase is Phase.ENDED and not machine.state.exchange):
            return None
        stop = Draft(ev.CancelRequested, {"mode": "now", "reason": reason})
        return self._parts(machine, run_id, control, (self._taking_up(tools), stop), tools)

    def _undoing(self, run_id: str, by: str, reason: str, control: Control | None) -> Parts:
        machine, tools = self._reopened(run_id, is_ending=True)
        request = {"by": by, "reason": reason, "tools": self._specs(tools), "owner": new_owner()}
        is_under_way = machine.state.phase is Phase.UNDOING
        opening = self._taking_up(tools) if is_under_way else Draft(ev.UndoRequested, request)
        return self._parts(machine, run_id, control, (opening,), tools)

    def _taking_up(self, tools: Mapping[str, ToolPort], compaction: Compaction | None = None) -> Draft:
        return Draft(ev.RunResumed, {"tools": self._specs(tools), "owner": new_owner(), "compaction": compaction})

    def _read_tools(self) -> None:
        """Take the tools that are there now."""
        self._versions = [one.version for one in self._sources]
        self.tools: dict[str, ToolPort] = {one.spec.name: under(one, self) for one in as_tools(self._given)}
        if self._finish is not None:
            self.tools = with_finish(self.tools, self._finish)

    def _has_other_tools(self) -> bool:
        """Whether a source of tools has others than it had."""
        return self._versions != [one.version for one in self._sources]

    def _tools_of(self, machine: Machine, read_results: bool, *, is_ending: bool = False) -> dict[str, ToolPort]:
        """The tools of one run. It keeps them, so that its requests go on beginning as they did."""
        if self._has_other_tools():
            self._read_tools()
        tools, asked = self.tools, machine.state.finish
        if asked is not None and self._finish is None:  # whoever began the run knows the type of the answer
            tools = with_finish(tools, recorded(asked, is_called=not is_ending))
        if not read_results:
            return tools
        return {**tools, READ_RESULT: ReadResult(partial(whole_result, self.journal, machine))}

    def _specs(self, tools: Mapping[str, ToolPort]) -> tuple[ev.ToolSpec, ...]:
        """The tools as the machine knows them. With a policy, every call of yours needs leave."""
        specs = (one.spec for one in tools.values())
        if self.policy is None:
            return tuple(specs)
        own = (READ_RESULT, FINISH if FINISH in tools and tools[FINISH].spec.answer else "")
        return tuple(msgspec.structs.replace(spec, approve=spec.name not in own) for spec in specs)

    def _parts(
        self,
        machine: Machine,
        run_id: str,
        control: Control | None,
        opening: tuple[Draft, ...],
        tools: dict[str, ToolPort],
    ) -> Parts:
        return Parts(
            machine,
            run_id,
            self.model.session(),
            tools,
            self.journal,
            self.clock,
            (*self.observers, *logs.wanted()),
            hearing(control, self.journal),
            opening,
            partial(settle, self.policy),
            reader_of(tools),
        )


class Run:
    """A run that is under way under asyncio: watch it, talk to it, stop it, wait for it.

    Iterating gives events and deltas; leaving the loop early cancels the run. `await run` gives the result.
    """

    def __init__(
        self, agent: Agent, task: str | Sequence[Part] | None, messages: History, limits: Limits | None
    ) -> None:
        self.control = Control()
        self._seen: asyncio.Queue[AnyEvent | Delta | None] = asyncio.Queue()
        self._parts = agent._begin(task, messages, limits, self.control, (_Watch(self._seen),))
        self.run_id = self._parts.run_id
        self._task: asyncio.Task[RunResult] | None = None

    def say(self, text: str) -> None:
        """Tell the model something as soon as the exchange at hand is closed."""
        self.control.say(text)

    def cancel(self, *, now: bool = False) -> None:
        """Stop after what is running, or at once."""
        self.control.cancel(now=now)

    async def result(self, *, raise_on_stop: bool = True) -> RunResult:
        """Wait for the end.

        Raises:
            RunStopped: The run ended without an answer.
        """
        return outcome(await self._started(), raise_on_stop)

    def __await__(self) -> Any:
        return self.result().__await__()

    async def __aiter__(self) -> AsyncIterator[AnyEvent | Delta]:
        task = self._started()
        try:
            while (seen := await self._seen.get()) is not None:
                yield seen
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        outcome(task.result(), True)

    async def __aenter__(self) -> Run:
        self._started()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task = self._started()
        if kind is not None and not task.done():
            task.cancel()
        await asyncio.wait([task])

    def _started(self) -> asyncio.Task[RunResult]:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(aio.drive(self._parts))
            self._task.add_done_callback(lambda _: self._seen.put_nowait(None))
        return self._task


class _Watch:
    """Passes what happens on to whoever iterates. A queue without a bound: watching never slows a run."""

    def __init__(self, seen: asyncio.Queue[AnyEvent | Delta | None]) -> None:
        self.on_event = self.on_delta = seen.put_nowait


def read_task(task: str | Sequence[Part]) -> tuple[Part, ...]:
    """A task as parts.

    Raises:
        ConfigError: It is empty, or not made of text and parts.
    """
    parts = () if isinstance(task, str) and not task.strip() else read_messages([{"role": "user", "content": task}])
    if not parts or not isinstance(parts[0], User):
        raise ConfigError("the task is empty: say what is to be done")
    return parts[0].parts


def new_run_id() -> str:
    """A new id: 12 characters, no vowels that could spell something, unique enough for a journal of billions."""
    return "".join(secrets.choice(ID_LETTERS) for _ in range(ID_LENGTH))


def transcript_before(log: Iterable[AnyEvent], step: int) -> tuple[Message, ...] | None:
    """The transcript as the model was sent it for that step; None where the run never came to it."""
    machine = Machine()
    for event in log:
        if isinstance(event, ev.StepStarted) and event.step == step:
            break
        machine.apply(event)
    state = machine.state
    return tuple(state.messages) if state.account.steps + 1 == step and state.exchange is None else None


def _settings(
    base: Settings, limits: Limits | None, compaction: Compaction | bool | None, read_results: bool | None
) -> Settings:
    """What the front door was told, in one."""
    if limits is not None:
        base = msgspec.structs.replace(base, limits=limits)
    if compaction is not None:
        chosen = Compaction() if compaction is True else compaction or None
        base = msgspec.structs.replace(base, compaction=chosen)
    if read_results is None:
        read_results = base.read_results or base.compaction is not None
    return msgspec.structs.replace(base, read_results=read_results)


def _change(before: State, model: str, messages: Sequence[Message], specs: Sequence[ev.ToolSpec]) -> str:
    """What of the beginning of a conversation is not as the model was sent it last."""
    assert before.start is not None
    if before.start.model != model:
        return f"the model: {model}, was {before.start.model}"
    return beginning_change((before.messages, before.specs), (messages, specs))


class _Serving:
    """A run that serves a call: what it may use is set aside, and the call pays for what it used, however it ends.

    Args:
        under: The call; None for a run of its own.
        limits: What the run would take.
    """

    def __init__(self, under: CallContext | None, limits: Limits) -> None:
        self._under = under
        self.limits = limits if under is None else under.set_aside(limits)
        self.place = {} if under is None else {"parent": under.key, "traceparent": under.traceparent}
        self.parts: Parts | None = None
        """The run, as soon as there is one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._under is None:
            return
        spent = Spent()
        if self.parts is not None:
            spent = self.parts.machine.state.account.charged
            spent = msgspec.structs.replace(spent, runs=(self.parts.run_id, *spent.runs))
        self._under.charge(spent, self.limits)


def _unless_lost(result: RunResult) -> RunResult:
    """The result, unless the journal failed."""
    return outcome(result, result.status == "journal_error")


def outcome(result: RunResult, raise_on_stop: bool) -> RunResult:
    """The result; or the exception for it, where there is no answer and that was asked for."""
    if raise_on_stop and result.status not in ("answered", "awaiting_approval"):
        raise stopped(result)
    return result
