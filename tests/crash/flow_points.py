"""A workflow, watched at each of its port calls, at which `crash_strides` kills it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crash_forks import Reaper, Tell
from crash_strides import main
from crash_world import _OF_JOURNALS, _OF_TOOLS, Outside, Watched, _WatchedModel, act_on, put, send

from tenlines import Reply, RunResult, Usage
from tenlines.core.effects import CallModel
from tenlines.core.events import CallStarted, RunStarted
from tenlines.core.transcript import Json, User, text_of
from tenlines.errors import StageFailed
from tenlines.flow import Flow, stage, step, together
from tenlines.journal.sqlite import SqliteJournal


@stage
async def shout(word: str) -> str:
    """Say it loudly."""


@stage
async def join(first: str, second: str) -> str:
    """Say both as one."""


keep, post = step(put), step(send)


async def two_words(task: str) -> str:
    """Stages beside one another, a step that may be repeated, one that may not, a stage of what came before."""
    first, second = await together(shout("one"), shout("two"))
    await keep(f"{task}/kept")
    both = await join(first, second)
    try:
        await post(f"{task}/sent")
    except StageFailed as failed:
        return f"{both}, {failed.outcome}"
    return f"{both}, sent"


class Model:
    """A pure function of the request."""

    name = "words"

    def session(self) -> Model:
        """It remembers nothing, so one will do."""
        return self

    def complete(self, request: CallModel, on_delta: object) -> Reply:
        """What was asked, loudly."""
        said = next(text_of(one.parts) for one in request.messages if isinstance(one, User))
        return Reply("ONETWO" if said.startswith("{") else said.upper(), usage=Usage(50, 5))

    async def acomplete(self, request: CallModel, on_delta: object) -> Reply:
        """The same."""
        return self.complete(request, on_delta)


def flow_of(journal: SqliteJournal, at: Callable[[str], None]) -> Flow[str]:
    """The workflow, watched at each port."""
    watched: Any = Watched(journal, "journal", _OF_JOURNALS, at)
    model: Any = _WatchedModel(Model(), "model", at)
    flow = Flow(two_words, [shout, join, keep, post], model=model, journal=watched)
    for name in ("put", "send"):
        flow.agent.tools[name] = Watched(flow.agent.tools[name], name, _OF_TOOLS, at)
    return flow


def live(folder: Path, driver: str, task: str, die_at: int | None, tell: Tell) -> None:
    """Carry a task on, from wherever it is; say what is wrong in the end."""
    act_on(Outside(folder / "effects"))
    journal, reaper = SqliteJournal(str(folder / "journal.db")), Reaper(die_at, tell)
    known = [one.run_id for one in journal.runs() if one.agent == "two_words" and given(journal, one.run_id) == task]
    flow = flow_of(journal, reaper)
    if driver == "sync":
        result = flow.resume_sync(known[0]) if known else flow.run_sync(task)
    else:
        result = asyncio.run(flow.resume(known[0]) if known else flow.run(task))
    places = list(reaper.places)
    tell({"wrong": list(problems(journal, folder, task, result)), "places": places})
    journal.close()


def given(journal: SqliteJournal, run_id: str) -> str:
    """The task that a workflow was given."""
    start = next(journal.read(run_id))
    assert isinstance(start, RunStarted)
    said = start.messages[0]
    assert isinstance(said, User)
    assert isinstance(said.parts[0], Json)
    task: str = said.parts[0].value["task"]
    return task


def problems(journal: SqliteJournal, folder: Path, task: str, result: RunResult) -> Iterator[str]:
    """What is wrong with a workflow that came to its end."""
    done = Outside(folder / "effects").seen(f"{task}/")
    if result.output not in ("ONETWO, sent", "ONETWO, in_doubt"):
        yield f"it ended as {result.status}: {result.answer} {result.reason}"
    for (what, _), keys in done.items():
        if len(set(keys) if what == "put" else keys) != 1:
            yield f"{what} was done with {keys}"
    if result.output == "ONETWO, sent" and len(done) != 2:
        yield f"done was {list(done)}"
    main_log = list(journal.read(result.run_id))
    asked = [(one.step, one.position) for one in main_log if isinstance(one, CallStarted)]
    if len({place for place in asked}) != 5:
        yield f"the calls are {asked}"
    agents = sorted(_agent(journal, run) for run in result.children.runs)
    if agents != ["two_words.join", "two_words.shout", "two_words.shout"]:
        yield f"there are runs of {agents}"


def _agent(journal: SqliteJournal, run_id: str) -> str:
    start = next(journal.read(run_id))
    assert isinstance(start, RunStarted)
    return start.agent


if __name__ == "__main__":
    main(live)
