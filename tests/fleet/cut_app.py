"""An agent whose runs take a while, for workers whose network is cut. What its tools do is in a file, with who did it.

    python cut_app.py JOURNAL TEMPORAL TASK...    submits tasks

A task is `NAME-STEPS`.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time
from typing import Any, NamedTuple

from fleet_world import Outside

from tenlines import NOT_DONE, Agent, CallContext, Reply, ToolCall, tool
from tenlines.journal import open_journal

EFFECTS = "TEST_EFFECTS"
"""The variable that names the file."""
KINDS = ("mail", "put", "mail", "post")
"""What the steps of a run do, in turn."""
MODEL_S, TOOL_S = 0.6, 0.3
"""How long a model takes to reply, and a tool before it acts and after that: from half of it to the whole."""
HEARTBEAT_S = 8.0


class Done(NamedTuple):
    """One effect, as the world saw it."""

    what: str
    item: str
    key: str
    pid: int
    at: float


class Place(Outside):
    """The world, which notes who comes, and when."""

    def does(self, what: str, item: str, key: str) -> None:
        """Something happens."""
        os.write(self._file, f"{what} {item} {key} {os.getpid()} {time.time()}\n".encode())

    def did(self, key: str) -> bool:
        """Whether it happened for this key."""
        return any(one.key == key for one in self.all())

    def all(self) -> list[Done]:
        """Everything that happened."""
        with open(self._path) as lines:
            parts = [line.split() for line in lines]
        return [Done(what, item, key, int(pid), float(at)) for what, item, key, pid, at in parts]


async def _takes(seconds: float) -> None:
    await asyncio.sleep(random.uniform(seconds / 2, seconds))


async def model(messages: Any, request: Any) -> Any:
    """Asks for what is next, and for a look at it."""
    await _takes(MODEL_S)
    task = messages[0]["content"]
    if request.step > int(task.rpartition("-")[2]):
        return "done"
    item = f'{{"item": "{task}/{request.step}"}}'
    names = (KINDS[request.step % len(KINDS)], "look")
    return Reply(calls=tuple(ToolCall(f"c{request.step}{n}", name, item) for n, name in enumerate(names)))


place = Place(os.environ.get(EFFECTS, os.devnull))


async def _do(what: str, item: str, ctx: CallContext) -> str:
    await _takes(TOOL_S)
    place.does(what, item, ctx.key)
    await _takes(TOOL_S)
    return f"{what} {item}"


@tool
async def mail(item: str, ctx: CallContext) -> str:
    """Mails, as often as it is asked to."""
    return await _do("mail", item, ctx)


@tool(idempotent=True)
async def put(item: str, ctx: CallContext) -> str:
    """Puts, once for a key."""
    return await _do("put", item, ctx)


def _posted(item: str, ctx: CallContext) -> Any:
    return f"post {item}" if place.did(ctx.key) else NOT_DONE


@tool(reconcile=_posted)
async def post(item: str, ctx: CallContext) -> str:
    """Posts, and can be asked whether it did."""
    return await _do("post", item, ctx)


@tool(read_only=True)
async def look(item: str) -> str:
    """Has no effect."""
    await _takes(TOOL_S)
    return f"saw {item}"


agent = Agent(model, [mail, put, post, look], name="cut", version="1")


async def _submit(journal: str, temporal: str, tasks: list[str]) -> None:
    from tenlines.fleet.temporal import Temporal

    engine = Temporal(temporal, heartbeat_s=HEARTBEAT_S)
    sender = Agent(model, [mail, put, post, look], name="cut", version="1", journal=open_journal(journal))
    await asyncio.gather(*(sender.submit(task, engine, key=task) for task in tasks))


if __name__ == "__main__":
    asyncio.run(_submit(sys.argv[1], sys.argv[2], sys.argv[3:]))
