"""Whoever follows a plan, watched at each of its port calls, at which `crash_strides` kills it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crash_forks import Reaper, Tell
from crash_strides import main
from crash_world import _OF_JOURNALS, _OF_TOOLS, Outside, Watched, _WatchedModel, act_on, look, put, send

from tenlines import Agent, Reply, RunResult, ToolCall, Usage
from tenlines.core.effects import CallModel
from tenlines.core.events import CallAbandoned, CallStarted, RunStarted
from tenlines.core.transcript import Result, System, User, text_of
from tenlines.journal.sqlite import SqliteJournal
from tenlines.planning import Plan, Planner, PlanStep
from tenlines.ports import Journal

USAGE = Usage(50, 5)
FIRST = (
    PlanStep(id="a", do="look", tools=("look",)),
    PlanStep(id="b", do="put", tools=("put",)),
    PlanStep(id="bad", do="refuse", needs=("a", "b")),
)
REST = (PlanStep(id="c", do="send", needs=("a",), tools=("send",)),)


class Model:
    """Does what a step says with one call of the tool of that name; a pure function of the request."""

    name = "steps"

    def session(self) -> Model:
        """It remembers nothing, so one will do."""
        return self

    def complete(self, request: CallModel, on_delta: object) -> Reply:
        """The plan for the rest, a call, or words."""
        first = request.messages[0]
        assert isinstance(first, System)
        asked = next(text_of(one.parts) for one in request.messages if isinstance(one, User))
        if first.text.startswith("You split"):
            steps = [one.model_dump(mode="json") for one in REST]
            return Reply(calls=(ToolCall("f", "finish", json.dumps({"steps": steps})),), usage=USAGE)
        if first.text.startswith("Answer"):
            return Reply(f"answered from {asked.count('did')} steps", usage=USAGE)
        word = asked.split()[0]
        if word == "refuse":
            return Reply("no", stop="refusal", usage=USAGE)
        if any(isinstance(one, Result) for one in request.messages):
            return Reply(f"did {word}", usage=USAGE)
        item = json.dumps({"item": f"{_task[0]}/{word}"})
        return Reply(calls=(ToolCall("c", word, item),), usage=USAGE)

    async def acomplete(self, request: CallModel, on_delta: object) -> Reply:
        """The same."""
        return self.complete(request, on_delta)


_task: list[str] = []
"""The one that this process works on."""


def planner(journal: Journal, at: Callable[[str], None]) -> Planner:
    """Whoever follows the plan, watched at each port."""
    watched: Any = Watched(journal, "journal", _OF_JOURNALS, at)
    model: Any = _WatchedModel(Model(), "model", at)
    tools = [Watched(one, one.name, _OF_TOOLS, at) for one in (look, put, send)]
    return Planner(Agent(model, tools, journal=watched), review="never")


def live(folder: Path, driver: str, task: str, die_at: int | None, tell: Tell) -> None:
    """Carry a task on, from wherever it is; say what is wrong in the end."""
    _task[:] = [task]
    act_on(Outside(folder / "effects"))
    journal, reaper = SqliteJournal(str(folder / "journal.db")), Reaper(die_at, tell)
    known = [one.run_id for one in journal.runs() if one.agent == "plan" and one.task == task]
    doing, plan = planner(journal, reaper), Plan(task=task, steps=FIRST)
    if driver == "sync":
        result = doing.resume_sync(known[0]) if known else doing.run_sync(plan)
    else:
        result = asyncio.run(doing.resume(known[0]) if known else doing.run(plan))
    places = list(reaper.places)
    tell({"wrong": list(problems(journal, folder, task, result)), "places": places})
    journal.close()


def problems(journal: SqliteJournal, folder: Path, task: str, result: RunResult) -> Iterator[str]:
    """What is wrong with a plan that was followed to its end."""
    if (result.status, result.answer) != ("answered", "answered from 3 steps"):
        yield f"it ended as {result.status}: {result.answer} {result.reason}"
    logs = [list(journal.read(run)) for run in (result.run_id, *result.children.runs)]
    heads = [log[0] for log in logs if isinstance(log[0], RunStarted)]
    names = sorted(one.agent for one in heads)
    if names != ["plan", "plan.a", "plan.answer", "plan.b", "plan.bad", "plan.c", "plan.make"]:
        yield f"there are runs of {names}"
    done = Outside(folder / "effects").seen(f"{task}/")
    doubtful = any(isinstance(one, CallAbandoned) for log in logs for one in log)
    called = {one.key for log in logs for one in log if isinstance(one, CallStarted)}
    for (what, _), keys in done.items():
        if len(set(keys) if what == "put" else keys) != 1:
            yield f"{what} was done with {keys}"
        yield from (f"{what} was done before its intent" for key in keys if key not in called)
    if len(done) != 2 and not doubtful:  # what nobody knows of is done once or not at all
        yield f"done was {list(done)}"


if __name__ == "__main__":
    main(live)
