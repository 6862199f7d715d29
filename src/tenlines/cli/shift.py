"""A worker at work until it is told to leave: SIGTERM or Ctrl-C drains it, a second one leaves at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from tenlines.cli.entries import Entry, Teller
from tenlines.cli.strays import Strays
from tenlines.errors import EngineError, JournalError
from tenlines.trace.words import count

if TYPE_CHECKING:
    from tenlines.fleet import Fleet
    from tenlines.fleet.metrics import Metrics
    from tenlines.fleet.worker import Limits, Turn
    from tenlines.ports import Engine, Journal

LOOK_EVERY_S = 60.0
"""Between two looks for runs that wait in vain."""


class Setup(NamedTuple):
    """What a worker works with."""

    fleet: Fleet
    store: Journal
    engine: Engine
    limits: Limits
    queues: tuple[str, ...]
    parallel: int
    grace_s: float
    """Seconds that runs have to be handed back in."""
    is_counted: bool = False
    """What it does is counted, for OpenTelemetry."""
    metrics_at: tuple[str, int] | None = None
    """Host and port where what was counted is told, and whether the worker is well."""


class Shift:
    """The time in which a worker works.

    Args:
        teller: Is told what happens.
        leave: Ends the process at once, with that exit code: to end the tasks would be to end the runs.
    """

    def __init__(self, setup: Setup, teller: Teller, leave: Callable[[int], NoReturn]) -> None:
        from tenlines.fleet.worker import Worker

        self._setup, self._teller, self._leave = setup, teller, leave
        self._leaving = asyncio.Event()
        self._lanes = setup.fleet.lanes(setup.queues)
        self._strays = Strays(setup.store, setup.engine, self._lanes)
        self._metrics: Metrics | None = None
        self._served: AbstractAsyncContextManager[str] = nullcontext("")
        if setup.is_counted:
            self._count()
        self._worker = Worker(
            setup.fleet,
            setup.store,
            setup.engine,
            setup.limits,
            parallel=setup.parallel,
            queues=setup.queues,
            watch=self._watch,
        )

    def _count(self) -> None:
        from tenlines.fleet.health import Health, looks_at, serving
        from tenlines.fleet.metrics import Metrics

        setup = self._setup
        health = Health(looks_at(setup.store, setup.engine, self._lanes[0]), self._leaving.is_set)
        self._metrics = metrics = Metrics(health)
        if setup.metrics_at is not None:
            self._served = serving(health, metrics, *setup.metrics_at)

    def _watch(self, turn: Turn) -> None:
        self._teller.turn(turn)
        if self._metrics is not None:
            self._metrics(turn)

    async def work(self, begun: Callable[[str], None]) -> None:
        """Work until a signal comes, then until all is handed back. What is not back in time is left.

        Args:
            begun: Called with the address of the metrics, or "", when the engine has answered.

        Raises:
            EngineError: The engine cannot be reached.
            ConfigError: Nobody can listen where the metrics are to be told.
        """
        await self._setup.engine.workers(self._lanes[0])
        async with self._served as url:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays in force
                    asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
            begun(url)
            await self._work()

    async def _work(self) -> None:
        serving = asyncio.create_task(self._worker.serve(self._leaving))
        others = [asyncio.create_task(self._leaving.wait()), asyncio.create_task(self._look())]
        await asyncio.wait([serving, others[0]], return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            await asyncio.wait([serving], timeout=self._setup.grace_s)
        if not serving.done():
            self._abandon()
        for task in others:
            task.cancel()
        await serving
        self._teller.tell(Entry("left", "left, with nothing under way"))

    def _on_signal(self) -> None:
        if self._leaving.is_set():
            self._abandon()
        self._leaving.set()
        runs, within = count(len(self._worker.under_way), "run"), f"{self._setup.grace_s:g} s"
        then = f"{runs} under way, handed back at the next step, within {within}" if self._worker.under_way else runs
        self._teller.tell(Entry("drains", f"leaving: {then}; a second signal leaves at once"))

    def _abandon(self) -> NoReturn:
        """Leave what is under way as after a crash, and name it."""
        left = [*self._worker.under_way.values()]
        for order in left:
            self._teller.tell(Entry("left", "left under way, as after a crash; others take it up", True, order))
        self._leave(1 if left else 0)

    async def _look(self) -> None:
        """Say which runs wait in vain."""
        while True:
            try:
                for text in await self._strays.look():
                    self._teller.tell(Entry("waits", text, True))
            except (EngineError, JournalError):
                pass  # whoever works on runs says it
            await asyncio.sleep(LOOK_EVERY_S)
