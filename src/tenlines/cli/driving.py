"""What `run` and `resume` share: who watches, how it is stopped, what is said at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TextIO

from tenlines.cli.options import Output
from tenlines.cli.screen import console_for, own_stdout
from tenlines.cli.signals import Stopper
from tenlines.core import codec
from tenlines.core.events import AnyEvent
from tenlines.core.result import RunResult
from tenlines.drivers.control import Control
from tenlines.errors import ConfigError, stopped
from tenlines.ports import Clock, Journal, Observer, SystemClock
from tenlines.trace.story import Place, Story
from tenlines.trace.text import clean, clean_json

if TYPE_CHECKING:
    from rich.console import Console

    from tenlines.agent import Agent
    from tenlines.cli.live import LiveView

WAITS = 5
"""The exit code of a run that waits for somebody's decision: no answer, and no failure."""
RUN_NOTE = "run "
"""A note on an exception that names the run in which it came up begins with this."""


class Follower:
    """An observer that only remembers; where there is nothing to draw."""

    def __init__(self, story: Story | None = None) -> None:
        self.story = story or Story()

    def on_event(self, event: AnyEvent) -> None:
        """Take it in."""
        self.story.take(event)


class JsonLines(Follower):
    """Writes each event as one line of JSON. When nobody reads any more, the run is stopped: it works for nobody."""

    def __init__(self, out: TextIO, control: Control, story: Story | None = None) -> None:
        super().__init__(story)
        self._out, self._control = out, control
        self._is_terminal = out.isatty()

    def on_event(self, event: AnyEvent) -> None:
        """Write it."""
        super().on_event(event)
        self.write(event)

    def write(self, event: AnyEvent) -> None:
        """One line, at once."""
        line = codec.encode(event).decode()
        try:
            self._out.write((clean_json(line) if self._is_terminal else line) + "\n")
            self._out.flush()
        except BrokenPipeError:
            self._control.cancel(now=True, reason="the reader of the output went away")


class Seat(NamedTuple):
    """Where a run is watched and steered from."""

    watcher: Follower | LiveView
    control: Control
    clock: Clock
    out: TextIO
    output: Output
    console: Console | None
    """Where there is something to be told beside errors; None where silence was asked for."""

    @property
    def observers(self) -> tuple[Observer, ...]:
        """The watcher, for an agent. One without `on_delta` is never streamed to."""
        return (self.watcher,)

    @property
    def story(self) -> Story:
        """What happened so far."""
        return self.watcher.story

    def tell(self, text: str) -> None:
        """Say something that is good to know."""
        if self.console is not None:
            self.console.print(clean(text), style="dim", soft_wrap=True)

    def drive(self, agent: Agent, begin: Callable[[], RunResult], journal: str | None) -> int:
        """Do a run and say how it ended; returns the exit code.

        Where a person is there who can be asked, a run that waits for a decision goes on when it has one.
        """
        stopper, known = Stopper(self.control, self._warn), set(self.story.in_doubt)
        try:
            result = self._watch(begin, stopper)
            if result.status == "awaiting_approval" and self.can_ask:
                result = self._ask(agent, result, stopper)
        except (KeyboardInterrupt, SystemExit) as stop:
            if self.story.start is not None:
                self.conclude(self.story.machine.result(), journal, known)
            return stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
        except Exception as error:
            if self.story.start is not None:
                error.add_note(f"{RUN_NOTE}{self.story.start.run_id}")
            raise
        self.conclude(result, journal, known)
        return exit_code(result, stopper.signal)

    def _ask(self, agent: Agent, result: RunResult, stopper: Stopper) -> RunResult:
        """Let the person decide and the run go on, until it ends or he puts off the rest."""
        from tenlines.cli.asking import Asker

        assert self.console is not None
        run_id, journal, asker = result.run_id, agent.journal, Asker(agent, self.console)
        while result.status == "awaiting_approval":
            has_decided = asker.ask(run_id)
            self._catch_up(journal, run_id)
            if not has_decided:
                return self.story.machine.result()
            again = partial(agent.resume_sync, run_id, control=self.control, raise_on_stop=False)
            result = self._watch(again, stopper)
        return result

    def _watch(self, begin: Callable[[], RunResult], stopper: Stopper) -> RunResult:
        with self.moving(), stopper:
            return begin()

    def moving(self) -> AbstractContextManager[object]:
        """While it is entered, what is under way is drawn."""
        return nullcontext() if isinstance(self.watcher, Follower) else self.watcher

    @property
    def can_ask(self) -> bool:
        """Whether a person is there who sees what is told, and can answer."""
        from tenlines.cli.asking import can_ask

        return self.console is not None and can_ask()

    def _catch_up(self, journal: Journal, run_id: str) -> None:
        """Take in what others recorded of the run: decisions.

        Raises:
            ConfigError: Somebody else went on with the run.
        """
        for event in journal.read(run_id, self.story.machine.state.seq + 1):
            self.watcher.on_event(event)
        if self.story.end is None:
            raise ConfigError(f"another process went on with run {run_id}; `tenlines show {run_id}` shows it")

    def conclude(self, result: RunResult, journal: str | None, known: Collection[Place] = ()) -> None:
        """The answer on standard output; everything else on standard error.

        Args:
            known: Calls that were in doubt before.
        """
        from tenlines.cli import ending

        errors = self.console or console_for(sys.stderr)
        if doubtful := [place for place in self.story.in_doubt if place not in known]:
            ending.in_doubt(errors, [self.story.call(*place) for place in doubtful], result.run_id)
        if result.status != "answered":
            start, limits = self.story.start, self.story.machine.state.limits
            is_of_fleet = start is not None and bool(start.queue)
            ending.stopped(errors, result, limits, journal, is_of_fleet=is_of_fleet)
            return
        if self.console is not None:
            ending.answered(self.console, result, self.story.worked_s)
            if self.out.isatty():
                self.console.print()
        if not self.output.json:
            self.answer(result.answer or "")

    def answer(self, text: str) -> None:
        """The answer as it is; made harmless where it goes to a terminal."""
        self.out.write((clean(text) if self.out.isatty() else text) + "\n")
        self.out.flush()

    def _warn(self, text: str) -> None:
        (self.console or console_for(sys.stderr)).print(text, style="yellow")


@contextmanager
def seat(output: Output, story: Story | None = None) -> Iterator[Seat]:
    """Choose who watches: JSON lines, the live view where standard error is a terminal, or nobody."""
    control, clock = Control(), SystemClock()
    console = None if output.quiet or output.json or not sys.stderr.isatty() else console_for(sys.stderr)
    with own_stdout() as out:
        watcher: Follower | LiveView
        if output.json:
            watcher = JsonLines(out, control, story)
        elif console is not None:
            from tenlines.cli.live import LiveView

            watcher = LiveView(console, clock, stream=output.stream, story=story)
        else:
            watcher = Follower(story)
        yield Seat(watcher, control, clock, out, output, console)


def exit_code(result: RunResult, signal_number: int | None) -> int:
    """0 for an answer, else what the way of stopping says; a signal's own code where one stopped the run."""
    if result.status == "answered":
        return 0
    if result.status == "awaiting_approval":
        return WAITS
    if result.status == "cancelled" and signal_number is not None:
        return 128 + signal_number
    return stopped(result).exit_code
