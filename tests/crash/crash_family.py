"""What must hold for a run whose calls are runs, and that was killed and carried on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import isclose

from crash_money import sum_of
from crash_world import Outside, answer_to

from tenlines.core import events as ev
from tenlines.core.children import child_id
from tenlines.core.events import AnyEvent
from tenlines.core.limits import NOTHING
from tenlines.core.replay import fold
from tenlines.core.state import State
from tenlines.ports import Journal

RUNS = ("agent", "crew", "lead", "scout", "scout")
"""Who works on a task, however often a process dies."""


def problems_of_family(journal: Journal, task: str, log: Sequence[AnyEvent]) -> Iterator[str]:
    """One run for each call, whoever started it; each came to its end; what they used is counted once; nothing stays
    set aside for them."""
    logs = [[*journal.read(run.run_id)] for run in journal.runs() if run.task.startswith(f"{task}/")]
    states = [fold(one).state for one in logs]
    names = sorted(state.start.agent for state in states if state.start is not None)
    if ("agent", *names) != RUNS:
        yield f"there are runs of {names}"
    parents = Counter(state.start.parent for state in states if state.start is not None)
    yield from (f"the call {key} is {count} runs" for key, count in parents.items() if count > 1)
    for state, one in zip(states, logs, strict=True):
        yield from _of_child(state, one)
    yield from _of_costs(fold(log).state, states)


def _of_child(state: State, log: Sequence[AnyEvent]) -> Iterator[str]:
    assert state.start is not None
    name, run_id = state.start.agent, state.start.run_id
    if run_id != child_id(state.start.parent):
        yield f"{name} has the id {run_id}"
    if state.ended is None or state.ended.status != "answered" or state.answer != answer_to(state.messages):
        yield f"{name} ended as {state.ended}"
    yield from sum_of(log)[1]
    if state.account.held != NOTHING:
        yield f"{name} still holds {state.account.held}"


def _of_costs(root: State, states: Sequence[State]) -> Iterator[str]:
    """What the runs used by themselves, all of them together, is what their first caller was charged with."""
    told, account = root.account.children, root.account
    if account.held != NOTHING or account.holders:
        yield f"{account.held} is still set aside, for {account.holders} calls"
    for name in ("steps", "tool_calls", "input_tokens", "output_tokens", "dollars", "presumed_tokens"):
        used = sum(getattr(one.account, name) for one in states)
        if not isclose(used, getattr(told, name)):
            yield f"the runs used {used} {name}, and {getattr(told, name)} are counted"


def effects_of(outside: Outside, task: str) -> Iterator[str]:
    """What was done too often."""
    for (what, item), keys in outside.seen(f"{task}/").items():
        times = len(set(keys)) if what == "put" else len(keys)
        if times > 1:
            yield f"{what} {item} was done {times} times, with {keys}"


def unrecorded(journal: Journal, outside: Outside, task: str) -> Iterator[str]:
    """What was done although no log says that it was about to be done."""
    runs = (run.run_id for run in journal.runs() if run.task.startswith(f"{task}/"))
    called = {event.key for run in runs for event in journal.read(run) if isinstance(event, ev.CallStarted)}
    for (what, item), keys in outside.seen(f"{task}/").items():
        yield from (f"{what} {item} was done with {key} before its intent" for key in keys if key not in called)
