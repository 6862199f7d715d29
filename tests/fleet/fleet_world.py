"""An agent with tools of all kinds whose effects are counted outside, and how it is told from the log what came of it.

Each run is a task with a name. What its tools do is one line in a file for each effect, added in one system call: that
was done, whatever became of the process that did it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tenlines import NOT_DONE, Agent, CallContext, Reply, ToolCall, tool
from tenlines.core.events import AnyEvent
from tenlines.core.replay import fold
from tenlines.core.transcript import Result

NAME, VERSION = "loader", "1"
EFFECTS = ("put", "post", "mail", "store")
"""What each run does once, in this order: by a keyed tool, one that can be asked, a plain one, a keyed one again."""
STEPS = len(EFFECTS) + 1


class Outside:
    """The world, as a file."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def does(self, what: str, item: str, key: str) -> None:
        """Something happens."""
        os.write(self._file, f"{what} {item} {key}\n".encode())

    def did(self, key: str) -> bool:
        """Whether it happened for this key."""
        return any(line.endswith(f" {key}") for line in Path(self._path).read_text().splitlines())

    @property
    def size(self) -> int:
        """Grows with everything that happens."""
        return os.fstat(self._file).st_size

    def seen(self) -> dict[tuple[str, str], list[str]]:
        """What was done with which items: the key of each time."""
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for line in Path(self._path).read_text().splitlines():
            what, item, key = line.split()
            found[what, item].append(key)
        return found


def loader(outside: Outside, pause_s: float = 0.0, journal: Any = None, **options: Any) -> Agent:
    """The agent: five steps, four effects."""

    async def model(messages: Any, request: Any) -> Any:
        await asyncio.sleep(random.uniform(0.0, pause_s))
        if request.step > len(EFFECTS):
            return "done"
        item = json.dumps({"item": messages[0]["content"]})
        calls = (EFFECTS[request.step - 1], "look") if request.step == 2 else (EFFECTS[request.step - 1],)
        return Reply(calls=tuple(ToolCall(f"c{request.step}{n}", name, item) for n, name in enumerate(calls)))

    return Agent(model, tools(outside, pause_s), name=NAME, version=VERSION, journal=journal, **options)


def tools(outside: Outside, pause_s: float) -> list[Any]:
    """Of all kinds."""

    async def pause() -> None:
        await asyncio.sleep(random.uniform(0.0, pause_s))

    @tool(idempotent=True)
    async def put(item: str, ctx: CallContext) -> str:
        """Puts, once for a key."""
        await pause()
        outside.does("put", item, ctx.key)
        return "put"

    @tool(idempotent=True)
    async def store(item: str, ctx: CallContext) -> str:
        """Stores, once for a key."""
        outside.does("store", item, ctx.key)
        return "stored"

    @tool
    async def mail(item: str, ctx: CallContext) -> str:
        """Mails, as often as it is asked to."""
        outside.does("mail", item, ctx.key)
        await pause()
        return "mailed"

    def posted(item: str, ctx: CallContext) -> Any:
        return "posted" if outside.did(ctx.key) else NOT_DONE

    @tool(reconcile=posted)
    async def post(item: str, ctx: CallContext) -> str:
        """Posts, and can be asked whether it did."""
        await pause()
        outside.does("post", item, ctx.key)
        return "posted"

    @tool(read_only=True)
    def look(item: str) -> str:
        """Has no effect."""
        return f"saw {item}"

    return [put, store, mail, post, look]


def judged(
    task: str, log: Iterable[AnyEvent], seen: dict[tuple[str, str], list[str]]
) -> tuple[list[str], Counter[str]]:
    """What is wrong with a run and its effects, and what of it is worth counting."""
    state = fold(log).state
    wrong: list[str] = []
    if state.ended is None or state.ended.status != "answered":
        wrong.append(f"{task} is {state.ended and (state.ended.status, state.ended.reason)}")
    ends = {message.name: message.outcome for message in state.messages if isinstance(message, Result)}
    counts = Counter({"runs": 1, "steps": state.account.steps})
    for what in EFFECTS:
        keys, end = seen.get((what, task), []), ends.get(what)
        counts[f"{what} in doubt"] += end == "in_doubt"
        times = len(set(keys)) if what in ("put", "store") else len(keys)
        counts["done again with the same key"] += len(keys) - times if what in ("put", "store") else 0
        if times > 1:
            wrong.append(f"{what} {task} was done {times} times: {keys}")
        if times < 1 and end != "in_doubt":
            wrong.append(f"{what} {task} was lost: {end}")
        counts["effects"] += times
    return wrong, counts
