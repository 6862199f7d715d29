"""What `worker`, `submit` and `wait` share: the file with the agents, the engine, and whose run a run is."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from tenlines.errors import ConfigError
from tenlines.ports import HEARTBEAT_S

if TYPE_CHECKING:
    from tenlines.fleet import Fleet
    from tenlines.fleet.temporal import Temporal
    from tenlines.ports import Journal, Lane

APP_VARIABLE, TEMPORAL_VARIABLE = "TENLINES_APP", "TENLINES_TEMPORAL"
NAMED = (TEMPORAL_VARIABLE, "TEMPORAL_ADDRESS")
"""Variables that say where Temporal is: ours, and its own."""
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})")

AppFiles: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--app",
        metavar="FILE.py",
        help=f"A Python file with a Fleet, or with Agents. May be given several times. [${APP_VARIABLE}]",
    ),
]
Address: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--temporal",
        metavar="HOST:PORT",
        help=f"The Temporal server. [${TEMPORAL_VARIABLE}, or what Temporal's own settings say, or 127.0.0.1:7233]",
    ),
]
Namespace: TypeAlias = Annotated[
    str | None, typer.Option("--namespace", metavar="NAME", help="Of Temporal. [what its settings say, or default]")
]


# --- agents -------------------------------------------------------------------------------------------


def load_fleet(files: Sequence[str] | None) -> Fleet:
    """The fleet of these files, or of those that the environment names: their `Fleet`, or else all their agents.

    Raises:
        ConfigError: No file is named, one cannot be imported, there is no agent, or there are two fleets.
    """
    from tenlines.agent import Agent
    from tenlines.fleet import Fleet
    from tenlines.tools.load import import_file

    files = files or [one for one in os.environ.get(APP_VARIABLE, "").split(os.pathsep) if one]
    if not files:
        raise ConfigError(f"name the file that has your agents: --app FILE.py, or ${APP_VARIABLE}")
    values = {id(value): value for file in files for value in list(vars(import_file(file)).values())}
    fleets = [one for one in values.values() if isinstance(one, Fleet)]
    agents = [one for one in values.values() if isinstance(one, Agent)]
    named = ", ".join(files)
    if len(fleets) > 1:
        raise ConfigError(f"{named}: there are {len(fleets)} Fleets at the top level; put all agents into one")
    if not (fleets or agents):
        raise ConfigError(
            f"{named}: there is no agent at the top level; write `support = Agent(..., name='support')`, or "
            "`fleet = Fleet([...])`"
        )
    fleet = fleets[0] if fleets else Fleet(agents)
    if not fleet.agents:
        raise ConfigError(f"{named}: the Fleet has no agents")
    return fleet


# --- the engine ---------------------------------------------------------------------------------------


def named_engine(address: str | None) -> str | None:
    """Where Temporal is, as it was named; None for what its own settings say.

    Raises:
        ConfigError: It is no address.
    """
    typed = os.environ.get(TEMPORAL_VARIABLE) or None if address is None else address
    if typed is None:
        return None
    source = f"${TEMPORAL_VARIABLE}" if address is None else "--temporal"
    found = _ADDRESS.fullmatch(typed.strip())
    if found is None or not 0 < int(found[2]) < 65536:
        raise ConfigError(f"{source} must be HOST:PORT, as in 127.0.0.1:7233; got {typed!r}")
    return typed.strip()


def engine_at(address: str | None, namespace: str | None, heartbeat_s: float = HEARTBEAT_S) -> Temporal:
    """The engine at an address. It is not spoken to yet.

    Raises:
        ConfigError: It is no address.
        MissingExtra: The SDK is not installed.
    """
    from tenlines.fleet.temporal import Temporal

    return Temporal(named_engine(address), namespace=namespace, heartbeat_s=heartbeat_s)


def is_engine_named(address: str | None) -> bool:
    """Whether somebody said where the engine is."""
    return address is not None or any(os.environ.get(name) for name in NAMED)


def no_worker(lane: Lane) -> str:
    """What is said where nobody takes the runs of a lane."""
    queue = f" --queue {lane.queue}" if lane.queue != "default" else ""
    return (
        f"no worker takes the runs of {lane.who} in the queue {lane.queue} at the moment; "
        f"start one: tenlines worker --app FILE.py{queue}"
    )


# --- runs ---------------------------------------------------------------------------------------------


def shared_place(journal: str | None) -> str:
    """The journal by its whole name: one that other processes can have too.

    Raises:
        ConfigError: They cannot.
    """
    from tenlines.journal import default_journal

    place = default_journal() if journal is None else journal
    if place == "memory":
        raise ConfigError("a journal in memory is nobody else's: name a file, or postgresql://..., with --journal")
    return place


def lane_of(store: Journal, run_id: str) -> Lane | None:
    """Where a run waits for the workers that go on with it, or the run of whose calls it is one; None for no fleet."""
    from tenlines.core.events import RunStarted
    from tenlines.drivers.callers import outermost
    from tenlines.ports import Lane

    start = next(iter(store.read(outermost(store, run_id))), None)
    if not isinstance(start, RunStarted) or not start.queue:
        return None
    return Lane(start.queue, start.agent, start.version)


def is_of_fleet(store: Journal, run_id: str) -> bool:
    """Whether the workers of a fleet go on with a run."""
    return lane_of(store, run_id) is not None


def refuse_if_of_fleet(store: Journal, run_id: str, journal: str | None, take_over: bool) -> None:
    """Leave a run that is not over to the workers of its fleet.

    Raises:
        ConfigError: It is one, and nobody said that it is to be taken away from them.
    """
    from tenlines.cli.moves import command

    if not take_over and is_of_fleet(store, run_id):
        raise ConfigError(
            f"run {run_id} is worked on by a fleet: {command('wait', [run_id], journal)}. "
            "`--take-over` takes the run away from its workers"
        )


def goes_on(store: Journal, run_id: str, journal: str | None) -> str:
    """The command that goes on with a run, or with the one of whose calls it is one; where its fleet does that by
    itself, the one that waits for it.

    Args:
        journal: The journal as it was named.
    """
    from tenlines.cli.moves import command
    from tenlines.drivers.callers import outermost

    return command("wait" if is_of_fleet(store, run_id) else "resume", [outermost(store, run_id)], journal)
