"""`tenlines submit`: hand a task to the workers of a fleet."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tenlines.cli import fleets
from tenlines.cli import options as opt
from tenlines.errors import ConfigError, EngineError
from tenlines.ports import HEARTBEAT_S

if TYPE_CHECKING:
    from tenlines.core.state import State
    from tenlines.fleet import Fleet
    from tenlines.fleet.temporal import Temporal
    from tenlines.ports import Journal, Order

Task = Annotated[
    str | None, typer.Argument(metavar="TASK", help="What is to be done; `-` reads it from standard input.")
]
AgentName = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", help="Who does it. [the only one that there is]")
]
Queue = Annotated[str | None, typer.Option("--queue", metavar="NAME", help="Where it waits. [default]")]
Priority = Annotated[int, typer.Option("--priority", metavar="1-5", min=1, max=5, help="1 is the soonest, 5 the last.")]
Key = Annotated[
    str | None, typer.Option("--key", metavar="ID", help="An id of your own: the same one again is the same run.")
]
In = Annotated[str | None, typer.Option("--in", metavar="TIME", help="Begin it in 90s, 15m, 2h or 1d, not before.")]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Begin it then, not before: 2027-01-31T08:00, or with +01:00 or Z."),
]
Again = Annotated[
    str | None,
    typer.Option("--again", metavar="RUN", help="Put a run that ended without an answer back, in place of a task."),
]
Heartbeat = Annotated[
    float,
    typer.Option(
        "--heartbeat",
        metavar="S",
        min=1,
        help="Silence after which its worker counts as dead, and another takes it up.",
    ),
]
Wait = Annotated[bool, typer.Option("--wait", "-w", help="Wait for it, as `tenlines wait` does.")]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON object on standard output; with --wait, the events, one a line.")
]
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|m|min|h|d)?")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
PATIENCE_S = 3.0
"""How long the engine has to let go of a run that has just ended."""
_EVERY_S = 0.2


class Place(NamedTuple):
    """Where a run is handed to, and when it may be begun."""

    agent: str | None
    queue: str | None
    key: str | None
    priority: int
    delay_s: float


class Handed(NamedTuple):
    """A run that was handed to the engine."""

    store: Journal
    order: Order
    has_worker: bool
    past: int = 0
    """Events that it had before."""


def submit(
    task: Task = None,
    app: fleets.AppFiles = None,
    agent: AgentName = None,
    queue: Queue = None,
    priority: Priority = 3,
    key: Key = None,
    in_: In = None,
    at: At = None,
    again: Again = None,
    max_steps: opt.MaxSteps = None,
    max_tool_calls: opt.MaxToolCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_dollars: opt.MaxDollars = None,
    timeout: opt.Timeout = None,
    last_words: opt.LastWords = False,
    wait: Wait = False,
    temporal: fleets.Address = None,
    namespace: fleets.Namespace = None,
    heartbeat: Heartbeat = HEARTBEAT_S,
    journal: opt.JournalName = None,
    json: Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Hand a task to the workers of a fleet (`tenlines worker`), and print the id of its run.

    The run is in the journal at once: it can be shown, told something and cancelled before anybody works on it.
    `tenlines wait` waits for it. The agent is one of the file, with its limits unless others are given. The journal and
    Temporal have to be those of the workers.

    With --again a run that ended without an answer (a limit, a cancel, set aside) is worked on again. So is one that is
    not over, where Temporal has lost it. It keeps its agent, version and queue; what is done is not repeated. Limits
    are those of the whole run.

    \b
    Examples:
      tenlines submit "Where is order 1042?" --app support.py
      tenlines submit "Sum up the week" --app support.py --agent reports --queue reports --priority 5
      tenlines submit - --app support.py --key mail-8812 < mail.txt
      tenlines submit "Remind me" --app support.py --in 2h
      tenlines submit "Where is order 1042?" --app support.py --wait > answer.txt
      tenlines submit --again k2v9 --max-steps 40
    """
    from tenlines.core.limits import Limits

    given = opt.GivenLimits(max_steps, max_tool_calls, max_tokens, max_dollars, timeout, last_words)
    given.over(Limits())  # a wrong number is reported before anything is opened
    place = Place(agent, queue, key, priority, read_delay(in_, at))
    engine = fleets.engine_at(temporal, namespace, heartbeat)
    if again is None:
        handed = _submit(_said(task), app, place, given, journal, engine)
    elif task is None:
        handed = _put_back(again, place, given, journal, engine)
    else:
        raise ConfigError("--again goes on with a run that is there: leave TASK out, or --again")
    _tell(handed, json=json, is_quiet=quiet, is_waited_for=wait)
    if wait:
        from tenlines.cli.awaiting import Patience, wait_for

        patience = Patience(opt.Output(json, quiet, False), None, journal, lambda: engine, past=handed.past)
        raise typer.Exit(wait_for(handed.store, handed.order.run_id, patience))


def _said(task: str | None) -> str:
    from tenlines.cli.run import read_task

    if task is None:
        raise ConfigError("TASK is missing: say what is to be done, or name a run that is put back: --again RUN")
    return read_task(task)


def _submit(
    said: str, app: list[str] | None, place: Place, given: opt.GivenLimits, journal: str | None, engine: Temporal
) -> Handed:
    """Submit a task.

    Raises:
        ConfigError: There is no such agent, or something else does not fit.
        EngineError: The engine cannot be reached. Nothing was submitted.
    """
    import asyncio

    from msgspec.structs import replace

    from tenlines.journal import open_journal
    from tenlines.ports import Order

    fleet = fleets.load_fleet(app)
    chosen = fleet.named(place.agent or _only(fleet))
    queue = place.queue or "default"
    order = Order("", chosen.name, chosen.version, queue, place.priority, place.delay_s)
    order.check()
    store = open_journal(fleets.shared_place(journal))

    async def submit() -> Handed:
        run_id = await chosen._recording_in(store).submit(
            said,
            engine,
            limits=given.over(chosen.settings.limits),
            queue=queue,
            priority=place.priority,
            key=place.key,
            delay_s=place.delay_s,
        )
        return Handed(store, replace(order, run_id=run_id), await _has_worker(engine, order))

    return asyncio.run(submit())


def _only(fleet: Fleet) -> str:
    """The name of the only agent.

    Raises:
        ConfigError: There are several.
    """
    names = list(dict.fromkeys(one.name for one in fleet.agents))
    if len(names) > 1:
        raise ConfigError(f"there are {len(names)} agents: name one with --agent: {', '.join(names)}")
    return names[0]


async def _has_worker(engine: Temporal, order: Order) -> bool:
    """Whether somebody takes such runs, as far as is known."""
    try:
        return await engine.workers(order.lane) > 0
    except EngineError:
        return True


# --- again --------------------------------------------------------------------------------------------


def _put_back(named: str, place: Place, given: opt.GivenLimits, journal: str | None, engine: Temporal) -> Handed:
    """Have a run worked on again that has ended, or that the engine does not know any more.

    Raises:
        ConfigError: It is of no fleet, or there is nothing to go on with, or its fleet has it.
        EngineError: The engine cannot be reached, or has not let go of the run.
    """
    import asyncio

    from tenlines.drivers.recorder import machine_of
    from tenlines.ports import Order

    for option, value in (("--agent", place.agent), ("--queue", place.queue), ("--key", place.key)):
        if value is not None:
            raise ConfigError(f"a run keeps its agent and its queue, and has an id: leave {option} out")
    store = opt.open_existing(journal)
    run_id = opt.find_run(store, named)
    state = machine_of(store, run_id).state
    assert state.start is not None
    status = _status(state)
    _refuse_to_put_back(store, state, status, journal)
    start, limits = state.start, given.over(state.limits)
    again = status != "awaiting_approval"
    order = Order(run_id, start.agent, start.version, start.queue, place.priority, place.delay_s, again, limits)

    async def start_again() -> Handed:
        until = asyncio.get_running_loop().time() + PATIENCE_S
        while not await engine.start(order):
            _refuse_what_is_there(run_id, status, journal)
            if asyncio.get_running_loop().time() > until:
                raise EngineError(f"Temporal has not let go of run {run_id} yet: try it again in a moment")
            await asyncio.sleep(_EVERY_S)
        return Handed(store, order, await _has_worker(engine, order), state.seq + 1)

    return asyncio.run(start_again())


def _status(state: State) -> str:
    from tenlines.core.state import Phase

    return "open" if state.ended is None or state.phase is not Phase.ENDED else state.ended.status


def _refuse_to_put_back(store: Journal, state: State, status: str, journal: str | None) -> None:
    """Refuse a run that is of no fleet, or that there is nothing to do about.

    Raises:
        ConfigError: It is one.
    """
    from tenlines.cli.moves import command
    from tenlines.drivers.callers import outermost

    assert state.start is not None
    run_id = state.start.run_id
    if (root := outermost(store, run_id)) != run_id:
        raise ConfigError(f"run {run_id} is a call of run {root}, which goes on with it: name that one")
    if not state.start.queue:
        raise ConfigError(f"run {run_id} is of no fleet; go on with it here: {command('resume', [run_id], journal)}")
    if status == "answered":
        raise ConfigError(f"run {run_id} is answered already: {command('show', [run_id], journal)}")


def _refuse_what_is_there(run_id: str, status: str, journal: str | None) -> None:
    """Refuse a run that is not over, and that the engine knows.

    Raises:
        ConfigError: It is one.
    """
    from tenlines.cli.moves import command

    if status == "awaiting_approval":
        pending = command("pending", [run_id], journal)
        raise ConfigError(f"run {run_id} waits for a decision, and goes on by itself when it has it: {pending}")
    if status == "open":
        raise ConfigError(f"run {run_id} is not over, and its fleet has it: {command('wait', [run_id], journal)}")


# --- when ---------------------------------------------------------------------------------------------


def read_delay(in_: str | None, at: str | None) -> float:
    """Seconds from now on.

    Raises:
        ConfigError: It is no time, one that is over, or there are two.
    """
    if in_ is not None and at is not None:
        raise ConfigError("--in and --at both say when: leave one of them out")
    if at is not None:
        return _until(at)
    if in_ is None:
        return 0.0
    found = _TIME.fullmatch(in_.strip().lower())
    if found is None:
        raise ConfigError(f"--in must be a length of time, as in 90s, 15m, 2h or 1d; got {in_!r}")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def _until(at: str) -> float:
    from tenlines.ports import SystemClock
    from tenlines.trace.words import ago

    try:
        then = datetime.fromisoformat(at.strip()).timestamp()
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"--at must be a time, as in 2027-01-31T08:00 or 2027-01-31T08:00Z; got {at!r}") from error
    left = then - SystemClock().now()
    if left < 0:
        raise ConfigError(f"--at {at}: that was {ago(-left)}; without a zone it is the time of this machine")
    return left


# --- what is said -------------------------------------------------------------------------------------


def _tell(handed: Handed, *, json: bool, is_quiet: bool, is_waited_for: bool) -> None:
    """The id, and whether anybody is there."""
    from tenlines.cli.screen import json_line
    from tenlines.trace.text import clean

    order = handed.order
    if json and not is_waited_for:
        names = ("run_id", "agent", "version", "queue", "priority", "delay_s")
        said = {name: getattr(order, name) for name in names}
        typer.echo(json_line({**said, "has_worker": handed.has_worker}, sys.stdout))
    elif not is_waited_for:
        typer.echo(order.run_id)
    elif not is_quiet:
        typer.echo(f"submitted as run {order.run_id}", err=True)
    if not handed.has_worker and not is_quiet:
        typer.echo(clean(fleets.no_worker(order.lane)), err=True)
