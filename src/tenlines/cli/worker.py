"""`tenlines worker`: a process that works on the runs of a fleet."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tenlines.cli import fleets, telemetry
from tenlines.cli import leave as end_process
from tenlines.cli import options as opt
from tenlines.errors import ConfigError
from tenlines.ports import HEARTBEAT_S
from tenlines.trace.words import count

if TYPE_CHECKING:
    from tenlines.cli.entries import Teller
    from tenlines.cli.shift import Setup
    from tenlines.fleet import Fleet
    from tenlines.fleet.dev_server import DevServer
    from tenlines.fleet.worker import Limits
    from tenlines.ports import Observer

Queues = Annotated[
    list[str] | None,
    typer.Option("--queue", metavar="NAME", help="Take runs of this queue. [default, and those that the Fleet names]"),
]
Parallel = Annotated[
    int, typer.Option("--parallel", metavar="N", min=1, max=1000, help="Runs of each agent and queue at once.")
]
Grace = Annotated[
    float, typer.Option("--grace", metavar="S", min=0, help="Seconds that runs have to be handed back in.")
]
Heartbeat = Annotated[
    float,
    typer.Option(
        "--heartbeat",
        metavar="S",
        min=1,
        help="Silence after which a worker counts as dead, for runs of its schedules; `submit` says it for all others.",
    ),
]
Dev = Annotated[bool, typer.Option("--dev", help="Bring a Temporal server up with it, on this machine alone.")]
MetricsAt = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="[HOST:]PORT",
        help="Answer /livez, /readyz and /metrics (Prometheus) there. [host: 127.0.0.1; port 0: any]",
    ),
]
Lines = Annotated[bool, typer.Option("--json", help="What happens on standard output, one JSON object a line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only what somebody should look at.")]


def worker(
    app: fleets.AppFiles = None,
    journal: opt.JournalName = None,
    temporal: fleets.Address = None,
    namespace: fleets.Namespace = None,
    queue: Queues = None,
    parallel: Parallel = 20,
    grace: Grace = 30.0,
    heartbeat: Heartbeat = HEARTBEAT_S,
    dev: Dev = False,
    metrics: MetricsAt = None,
    otel: telemetry.Otel = False,
    json: Lines = False,
    quiet: Quiet = False,
) -> None:
    """Work on the runs that `tenlines submit` and `Agent.submit` hand to a fleet, until it is told to leave.

    The agents are those of the file: a `Fleet` at its top level, or else every `Agent` there. Runs of agents or
    versions that are not among them are left alone; that such runs wait is said.

    All workers of a fleet, and whoever submits, name the same journal and the same Temporal. On several machines the
    journal is a database; one in a file is for the workers of one machine, each with limits of its own.

    With --dev a Temporal server comes up with it, on 127.0.0.1 (at 7233, or the port that --temporal names), with a
    file beside your journal, and goes with it. Nothing else is needed on one machine.

    There is a line for each run that ends, waits for a decision, or failed. SIGTERM and Ctrl-C drain: nothing more is
    begun, and each run under way is handed back at its next step. What is not back within --grace seconds is left as
    after a crash, and named. A second signal leaves at once.

    The exit code is 0 when all was handed back, and 1 when something was left.

    \b
    Examples:
      tenlines worker --app support.py --dev
      tenlines worker --app support.py --journal postgresql://user@host/agents --temporal temporal:7233
      tenlines worker --app support.py --queue reports --parallel 4 --grace 120
      tenlines worker --app support.py --json | jq 'select(.what == "failed")'
    """
    from tenlines.cli.entries import Remarks, Teller
    from tenlines.cli.screen import own_stdout
    from tenlines.cli.shift import Setup
    from tenlines.journal import open_journal
    from tenlines.ports import SystemClock

    place, at = fleets.shared_place(journal), _metrics_at(metrics)
    fleet = fleets.load_fleet(app)
    queues = tuple(fleet.queue(name).name for name in dict.fromkeys(queue or ["default", *fleet.queues]))
    with ExitStack() as held:
        clock = SystemClock()
        teller = Teller(held.enter_context(own_stdout()), clock, journal, json=json, is_quiet=quiet)
        Remarks(teller, clock).attach()
        _observe(fleet, held.enter_context(telemetry.tracing(otel, journal, "RUN")))
        there = held.enter_context(_dev_server(temporal, place)).address if dev else temporal
        engine, limits = fleets.engine_at(there, namespace, heartbeat), _limits(fleet, place)
        setup = Setup(fleet, open_journal(place), engine, limits, queues, parallel, grace, otel or at is not None, at)
        _work(setup, teller, place, partial(_leave, held))


def _metrics_at(typed: str | None) -> tuple[str, int] | None:
    """Host and port.

    Raises:
        ConfigError: They are none.
    """
    if typed is None:
        return None
    host, _, port = typed.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--metrics must be PORT or HOST:PORT, as in 9464 or 0.0.0.0:9464; got {typed!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _observe(fleet: Fleet, observers: Sequence[Observer]) -> None:
    for agent in fleet.agents:
        agent.observers = (*agent.observers, *observers)


def _dev_server(temporal: str | None, place: str) -> DevServer:
    """A Temporal server of this worker, not started yet. Its file is beside that of the journal.

    Raises:
        ConfigError: It would not be on this machine.
    """
    from tenlines.fleet.dev_server import PORT, DevServer

    host, _, port = (fleets.named_engine(temporal) or f"127.0.0.1:{PORT}").rpartition(":")
    if host not in ("127.0.0.1", "localhost"):
        raise ConfigError(f"--dev brings Temporal up on 127.0.0.1, and not on {host}: leave one of the two out")
    state = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state", "tenlines", "temporal.db")
    return DevServer(state if "://" in place else f"{place}.temporal", port=int(port))


def _work(setup: Setup, teller: Teller, place: str, leave: Callable[[int], NoReturn]) -> NoReturn:
    """Work until a signal comes.

    Raises:
        EngineError: The engine cannot be reached.
    """
    import asyncio

    from tenlines.cli.shift import Shift

    asyncio.run(Shift(setup, teller, leave).work(lambda url: teller.head(*head_of(setup, place, url))))
    setup.limits.places.close()
    leave(0)


def _limits(fleet: Fleet, place: str) -> Limits:
    """What holds for all workers of a database, and for this one alone where the journal is a file."""
    from tenlines.fleet.pacing import LocalPace
    from tenlines.fleet.places import LocalPlaces
    from tenlines.fleet.worker import Limits

    if "://" not in place:
        return Limits(LocalPace(fleet.rates), LocalPlaces())
    from tenlines.fleet.postgres_pace import PostgresPace
    from tenlines.fleet.postgres_places import PostgresPlaces

    return Limits(PostgresPace(place, fleet.rates), PostgresPlaces(place))


def _leave(held: ExitStack, code: int) -> NoReturn:
    """End the process. Whatever threads of tools and libraries still do keeps nobody waiting."""
    held.close()
    end_process(code)


# --- what it is -----------------------------------------------------------------------------------------


def head_of(setup: Setup, place: str, url: str) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """What a worker is, for programs and in lines.

    Args:
        place: The journal.
        url: Where its metrics are told, or "".
    """
    from tenlines.cli.served import shareable

    fleet = setup.fleet
    agents = [lane.who for lane in fleet.lanes(["default"])]
    facts: dict[str, object] = {
        "pid": os.getpid(),
        "agents": agents,
        "journal": shareable(place),
        "engine": f"{setup.engine!r}".strip("<>"),
        "queues": {name: fleet.queue(name).at_once for name in setup.queues},
        "parallel": setup.parallel,
        "metrics": url,
    }
    queues = ", ".join(map(partial(_queue_words, fleet), setup.queues))
    lines = [
        ("worker", f"process {os.getpid()}"),
        ("agents", ", ".join(agents)),
        ("journal", f"{facts['journal']}"),
        ("engine", f"{facts['engine']}"),
        ("queues", f"{queues}; here {count(setup.parallel, 'run')} of each agent and queue at once"),
        *[("metrics", f"{url}/metrics")] * bool(url),
    ]
    return facts, lines + [("note", one) for one in _notes(setup, place)]


def _queue_words(fleet: Fleet, name: str) -> str:
    at_once = fleet.queue(name).at_once
    return name if at_once is None else f"{name} (at most {at_once} at once)"


def _notes(setup: Setup, place: str) -> list[str]:
    """What a journal in a file means."""
    if "://" in place:
        return []
    notes = ["the journal is a file: all workers, and whoever submits, have to be on this machine"]
    if setup.fleet.rates or any(setup.fleet.queue(name).at_once for name in setup.queues):
        notes.append("limits of queues and rates of models hold for this worker alone; a database shares them")
    return notes
