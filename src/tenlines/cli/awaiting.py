"""Waiting for a run that others work on: it is watched until it is over, or nobody is there who could go on with it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import NamedTuple

import typer

from tenlines.cli import fleets
from tenlines.cli import options as opt
from tenlines.cli.driving import Seat, exit_code, seat
from tenlines.cli.moves import command
from tenlines.cli.owners import is_gone
from tenlines.cli.wait import TIMED_OUT
from tenlines.core.events import AnyEvent
from tenlines.drivers.threads import in_thread
from tenlines.errors import ConfigError, EngineError
from tenlines.past import follow
from tenlines.ports import Engine, Journal, Lane
from tenlines.trace.text import clean

IDLE_S = 10.0
"""Silence after which it is looked whether any worker is there."""
LOOK_S = 1.0
"""How often it is looked whether the process of a run of no fleet is gone."""
_EVERY_S = 0.1


class Patience(NamedTuple):
    """How a run is waited for."""

    output: opt.Output
    timeout_s: float | None
    journal: str | None
    """The journal as it was named."""
    engine: Callable[[], Engine | None]
    """Who may know whether a worker is there."""
    is_engine_named: bool = True
    """Where nobody said where it is, it need not be there."""
    past: int = 0
    """Events that the run has, and that are no end yet: it was put back."""


def wait_for(store: Journal, run_id: str, patience: Patience) -> int:
    """Wait for a run, and say what it came to; returns the exit code.

    Raises:
        ConfigError: It is a run of no fleet whose process is gone.
    """
    again = command("wait", [run_id], patience.journal)
    with seat(patience.output) as here:
        waiting = Waiting(here, store, run_id, patience)
        try:
            with here.moving():
                is_over = asyncio.run(waiting.until_over())
        except KeyboardInterrupt:
            typer.echo(f"the run goes on; wait again: {again}", err=True)
            return 130
        if here.control.pending:  # nobody reads any more
            return 1
        if not is_over:
            typer.echo(f"run {run_id} is not over yet, and goes on; wait again: {again}", err=True)
            return TIMED_OUT
        result = here.story.machine.result()
        here.conclude(result, patience.journal)
        return exit_code(result, None)


class Waiting:
    """Waits for one run.

    Args:
        here: Where it is watched from.
    """

    def __init__(self, here: Seat, store: Journal, run_id: str, patience: Patience) -> None:
        self._here, self._store, self._run_id, self._patience = here, store, run_id, patience
        self._lane = fleets.lane_of(store, run_id)
        self._looking: asyncio.Future[None] | None = None

    async def until_over(self) -> bool:
        """Watch until the run is over for now; False where the time was over first, or nobody reads any more."""
        clock, timeout_s = self._here.clock, self._patience.timeout_s
        until = math.inf if timeout_s is None else clock.now() + timeout_s
        events = self._events()
        coming = asyncio.ensure_future(anext(events, None))
        while (left := until - clock.now()) > 0 and not self._here.control.pending:
            await asyncio.wait({coming}, timeout=min(left, self._silence_s()))
            if not coming.done():
                self._wonder()
            elif (event := coming.result()) is None:
                return True
            else:
                self._here.watcher.on_event(event)
                coming = asyncio.ensure_future(anext(events, None))
        coming.cancel()
        return False  # what else is under way ends with the event loop

    async def _events(self) -> AsyncIterator[AnyEvent]:
        """Those of the run, as soon as it has been taken up again where it was put back."""
        past, clock = self._patience.past, self._here.clock
        while past and not await in_thread(partial(self._has_event, past)):
            await clock.sleep(_EVERY_S)
        async for event in follow(self._store, self._run_id, clock):
            yield event

    def _has_event(self, seq: int) -> bool:
        return next(iter(self._store.read(self._run_id, seq)), None) is not None

    def _silence_s(self) -> float:
        """After how much silence something is looked at."""
        if self._lane is None:
            return LOOK_S
        return IDLE_S if self._looking is None else math.inf

    def _wonder(self) -> None:
        """Nothing happens.

        Raises:
            ConfigError: Nobody will go on with it.
        """
        if self._lane is None:
            self._refuse_dead()
        elif self._looking is None:
            self._looking = asyncio.ensure_future(self._look_for_workers(self._lane))

    async def _look_for_workers(self, lane: Lane) -> None:
        """Say so where nobody is there who could go on."""
        engine = await in_thread(self._patience.engine)
        try:
            if engine is not None and not await engine.workers(lane):
                self._tell(f"nothing has happened for {IDLE_S:g} s: {fleets.no_worker(lane)}")
        except EngineError as error:
            if self._patience.is_engine_named:
                self._tell(str(error))

    def _refuse_dead(self) -> None:
        if is_gone(self._here.story.owner):
            go_on = command("resume", [self._run_id], self._patience.journal)
            raise ConfigError(f"run {self._run_id} is of no fleet, and its process is gone; go on: {go_on}")

    def _tell(self, text: str) -> None:
        if self._here.console is not None:
            self._here.tell(text)
        elif not self._patience.output.quiet:
            typer.echo(clean(text), err=True)
