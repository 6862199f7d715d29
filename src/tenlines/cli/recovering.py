"""`tenlines resume --all`: after a machine went down, go on with every run that lost its process."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO, TypeAlias, get_args

from tenlines.cli import options as opt
from tenlines.cli.callers import is_waited_for
from tenlines.cli.fleets import is_of_fleet
from tenlines.cli.moves import command
from tenlines.cli.owners import is_gone
from tenlines.cli.reopening import Given, gone, model_of, tools_of
from tenlines.cli.screen import console_for, json_line, own_stdout
from tenlines.cli.signals import Stopper
from tenlines.core.state import Phase
from tenlines.drivers.control import Control
from tenlines.errors import TenlinesError
from tenlines.trace.story import Story, read_story
from tenlines.trace.text import one_line
from tenlines.trace.words import owner as described

if TYPE_CHECKING:
    from tenlines.agent import Agent
    from tenlines.core.result import RunResult
    from tenlines.ports import Journal, Model

Kind: TypeAlias = Literal["answered", "undone", "waits", "stopped", "failed", "skipped"]
IS_FINE: frozenset[Kind] = frozenset({"answered", "undone", "waits", "skipped"})


class Recovered(NamedTuple):
    """What became of a run."""

    run_id: str
    kind: Kind
    text: str
    status: str = ""


class Crowd:
    """Hands on all runs that are worked on: what stops one stops all, and those that have not begun never do."""

    def __init__(self) -> None:
        self._controls: list[Control] = []
        self._lock = threading.Lock()
        self.is_stopped = False

    def join(self) -> Control | None:
        """A hand on one more run; None when no more shall begin."""
        with self._lock:
            if self.is_stopped:
                return None
            self._controls.append(Control())
            return self._controls[-1]

    def cancel(self, *, now: bool = False, reason: str = "") -> None:
        """Stop them all: after what is running, or at once."""
        with self._lock:
            self.is_stopped = True
            for control in self._controls:
                control.cancel(now=now, reason=reason)


class Models:
    """The models that are asked for, each made once: a local one is large."""

    def __init__(self) -> None:
        self._made: dict[str, Model] = {}
        self._lock = threading.Lock()

    def of(self, story: Story, named: str | None) -> Model:
        """The model of this run."""
        assert story.start is not None
        name = named or story.start.model
        with self._lock:
            if name not in self._made:
                self._made[name] = model_of(story, named, None)
            return self._made[name]


def recover(store: Journal, given: Given, output: opt.Output, parallel: int) -> int:
    """Go on with all runs that lost their process; a line for each. Returns the exit code."""
    crowd, models = Crowd(), Models()
    paused = [one.run_id for one in store.runs(status="awaiting_approval")]
    stranded = [one.run_id for one in reversed(store.runs(status="open"))]
    found = [_left_alone(run_id) for run_id in reversed(paused)]
    with own_stdout() as out, Stopper(crowd, _warn) as stopper:
        tell = _teller(out, output)
        for one in found:
            tell(one)
        with ThreadPoolExecutor(parallel) as pool:
            jobs = [pool.submit(_recover_one, store, run_id, given, crowd, models) for run_id in stranded]
            for job in as_completed(jobs):
                found.append(job.result())
                tell(found[-1])
        if not output.json:
            out.write(_summary(found) + "\n")
    if stopper.signal is not None:
        return 128 + stopper.signal
    return 0 if all(one.kind in IS_FINE for one in found) else 1


def _left_alone(run_id: str) -> Recovered:
    return Recovered(run_id, "waits", f"for a decision: tenlines pending {run_id}", "awaiting_approval")


def _recover_one(store: Journal, run_id: str, given: Given, crowd: Crowd, models: Models) -> Recovered:
    """Go on with one run. Whatever is wrong with it keeps none of the others from going on."""
    control = crowd.join()
    if control is None:
        return Recovered(run_id, "skipped", "stopped before it began")
    try:
        story = read_story(store.read(run_id))
        if is_of_fleet(store, run_id):
            return Recovered(
                run_id, "skipped", f"it is worked on by a fleet: {command('wait', [run_id], given.journal)}"
            )
        if why := _why_not(story, given.take_over):
            return Recovered(run_id, "skipped", why)
        if caller := is_waited_for(store, run_id):
            return Recovered(run_id, "skipped", f"it is a call of run {caller}, which takes it up")
        was_undoing = story.machine.state.phase is Phase.UNDOING
        return _outcome(_resumed(store, story, given, control, models), was_undoing)
    except TenlinesError as error:
        return Recovered(run_id, "failed", str(error))
    except Exception as error:  # noqa: BLE001  # a bug that one run brings up
        return Recovered(run_id, "failed", f"this is a bug in tenlines: {type(error).__name__}: {error}")


def _why_not(story: Story, take_over: bool) -> str:
    """Why this run is not touched; "" where its process is known to be dead."""
    if story.end is not None:
        return f"it ended meanwhile as {story.end.status}"
    dead, who = is_gone(story.owner), described(story.owner) or "a process that nobody named"
    if dead or take_over:
        return ""
    if dead is False:
        return f"{who} works on it"
    return f"whether {who} still works on it is not known here; --take-over takes it"


def _resumed(store: Journal, story: Story, given: Given, control: Control, models: Models) -> RunResult:
    assert story.start is not None
    agent = _agent(store, story, given, models.of(story, given.model))
    if given.say is not None:
        control.say(given.say)
    limits = given.limits.over(story.machine.state.limits)
    return agent.resume_sync(
        story.start.run_id, limits=limits, control=control, compaction=given.compaction, raise_on_stop=False
    )


def _agent(store: Journal, story: Story, given: Given, model: Model) -> Agent:
    from tenlines.agent import Agent
    from tenlines.cli.plan import is_planned, planner_again

    if is_planned(story):
        return planner_again(story, model, store, given, given.observers)
    tools = tools_of(story, given)
    if missing := gone(story, tools):
        _warn(f"run {story.start.run_id if story.start else ''}: {missing}")
    return Agent(model, tools, journal=store, observers=given.observers)


def _outcome(result: RunResult, was_undoing: bool) -> Recovered:
    run_id, status = result.run_id, result.status
    if was_undoing and status != "journal_error":
        failed = [one.name for one in result.undone if one.outcome != "ok"]
        text = (
            f"what could not be undone: {', '.join(failed)}; tenlines undo {run_id}" if failed else "as was asked for"
        )
        return Recovered(run_id, "stopped" if failed else "undone", text, status)
    if status == "awaiting_approval":
        return _left_alone(run_id)
    text = result.answer or "" if status == "answered" else f"{status}: {result.reason}"
    if doubtful := [one.name for one in result.calls if one.outcome == "in_doubt"]:
        text = f"(in doubt: {', '.join(doubtful)}) {text}"
    return Recovered(run_id, "answered" if status == "answered" else "stopped", text, status)


def _teller(out: TextIO, output: opt.Output) -> Callable[[Recovered], None]:
    def tell(one: Recovered) -> None:
        if output.json:
            out.write(json_line(one._asdict(), out) + "\n")
        else:
            out.write(f"{one.run_id}  {one.kind:<8}  {one_line(one.text, 300)}\n")
        out.flush()

    return tell


def _summary(found: list[Recovered]) -> str:
    if not found:
        return "no run lost its process; there was nothing to do"
    counts = Counter(one.kind for one in found)
    return ", ".join(f"{counts[kind]} {kind}" for kind in get_args(Kind) if counts[kind])


def _warn(text: str) -> None:
    console_for(sys.stderr).print(text, style="yellow")
