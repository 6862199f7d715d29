"""An agent with tools of all kinds, and the world outside it, which remembers what was done whoever dies."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tenlines import (
    NOT_DONE,
    Agent,
    CallContext,
    GuardedCall,
    Limits,
    Reply,
    RunResult,
    Settings,
    ToolCall,
    tool,
)
from tenlines.core.effects import CallModel
from tenlines.core.events import AnyEvent, RunEnded, RunStarted
from tenlines.core.transcript import Assistant, Message, Result, User
from tenlines.journal.postgres import PostgresJournal
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import Journal, RunSummary

# --- outside --------------------------------------------------------------------------------------------


class Outside:
    """What was asked of the world: a file to which every request adds one line in one system call.

    What is in it was done, whatever became of the process that did it. An item is what a user wanted once: a message to
    be sent, an order to be paid.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def does(self, what: str, item: str, key: str) -> None:
        """Something happens."""
        os.write(self._file, f"{what} {item} {key}\n".encode())

    def seen(self, prefix: str = "") -> dict[tuple[str, str], list[str]]:
        """What was done with which items: the key of each time."""
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for line in Path(self._path).read_text().splitlines():
            what, item, key = line.split()
            if item.startswith(prefix):
                found[what, item].append(key)
        return found


_outside: list[Outside] = []
"""The one that the tools of this process act on."""
_pause_s = [0.0]
"""The longest pause of a tool or of the model, each as long as chance has it."""


def act_on(outside: Outside, pause_s: float = 0.0) -> None:
    """Say on what the tools act in this process, and how slow everything is."""
    _outside[:] = [outside]
    _pause_s[0] = pause_s


async def _pause() -> None:
    if _pause_s[0]:
        await asyncio.sleep(random.uniform(0.0, _pause_s[0]))


# --- tools ----------------------------------------------------------------------------------------------


@tool(read_only=True)
def look(item: str) -> str:
    """Has no effect."""
    return f"saw {item}"


@tool(read_only=True)
async def peek(item: str) -> str:
    """The same, awaited."""
    await _pause()
    return f"saw {item}"


@tool(idempotent=True)
def put(item: str, ctx: CallContext) -> str:
    """A service that does what it is asked once for each key."""
    _outside[0].does("put", item, ctx.key)
    return f"put {item}"


@tool
def send(item: str, ctx: CallContext) -> str:
    """Does it each time that it is asked."""
    _outside[0].does("send", item, ctx.key)
    return f"sent {item}"


@tool
async def mail(item: str, ctx: CallContext) -> str:
    """The same, awaited: it may be killed before and after it did it."""
    await _pause()
    _outside[0].does("mail", item, ctx.key)
    await _pause()
    return f"sent {item}"


def _find(item: str, ctx: CallContext) -> Any:
    return f"booked {item}" if ctx.key in _outside[0].seen().get(("book", item), ()) else NOT_DONE


def _unbook(item: str, ctx: CallContext) -> None:
    _outside[0].does("unbook", item, ctx.key)


@tool(reconcile=_find, undo=_unbook)
def book(item: str, ctx: CallContext) -> str:
    """Does it each time that it is asked, and can say whether it did."""
    _outside[0].does("book", item, ctx.key)
    return f"booked {item}"


async def _refund(item: str, ctx: CallContext, result: str) -> None:
    _outside[0].does("refund", item, ctx.key)


@tool(approve=True, undo=_refund)
def pay(item: str, ctx: CallContext) -> str:
    """Does it each time that it is asked, if a person allows it."""
    _outside[0].does("pay", item, ctx.key)
    return f"paid {item}"


def _is_first(call: GuardedCall) -> bool:
    """Whether a person is asked: only about the second call of a reply, and later ones."""
    return call.position > 0


@tool(approve=_is_first, idempotent=True)
async def post(item: str, ctx: CallContext) -> str:
    """A service with keys that a person has to allow now and then."""
    await _pause()
    _outside[0].does("post", item, ctx.key)
    return f"posted {item}"


@tool(approve=True)
def burn(item: str, ctx: CallContext) -> str:
    """Nobody ever allows it."""
    _outside[0].does("burn", item, ctx.key)
    return f"burnt {item}"


TOOLS = (look, peek, put, send, mail, book, pay, post, burn)
for _one in TOOLS:
    _one.check({"item": "x"})  # here, so that what this imports is there before anything forks
PLAIN = {"send", "mail", "pay"}
"""What a crash leaves in doubt."""
COMPENSATIONS = {"book": "unbook", "pay": "refund"}


# --- the model ------------------------------------------------------------------------------------------


class Script:
    """A model that asks for the calls of a list of replies and then answers: a pure function of the messages."""

    def __init__(self, replies: Sequence[Sequence[str]]) -> None:
        self.name, self._replies = "script", replies

    def session(self) -> Script:
        """It remembers nothing, so one will do."""
        return self

    def complete(self, request: CallModel, on_delta: object) -> Reply:
        """The next reply of the list."""
        return self._next(request.messages)

    async def acomplete(self, request: CallModel, on_delta: object) -> Reply:
        """The same, after a pause."""
        await _pause()
        return self._next(request.messages)

    def _next(self, messages: Sequence[Message]) -> Reply:
        begin = max(place for place, one in enumerate(messages) if isinstance(one, User))
        step = sum(isinstance(one, Assistant) for one in messages[begin:])
        if step == len(self._replies):
            return Reply(answer_to(messages))
        task = messages[begin].text
        names = enumerate(self._replies[step])
        return Reply(calls=tuple(ToolCall(f"c{n}", name, _item(task, step, n)) for n, name in names))


def _item(task: str, step: int, position: int) -> str:
    return msgspec.json.encode({"item": f"{task}/{step}.{position}"}).decode()


def answer_to(messages: Sequence[Message]) -> str:
    """What the model says in the end."""
    return f"done after {sum(isinstance(one, Result) for one in messages)} results"


# --- the agent ------------------------------------------------------------------------------------------


class Case(msgspec.Struct, frozen=True):
    """An agent, as it is killed: what its model asks for, how it is driven, where its journal is."""

    name: str
    replies: tuple[tuple[str, ...], ...]
    driver: str
    store: str
    """The address of a database, or the path of a file."""
    effects: str
    """The file of `Outside`."""
    settings: Settings = Settings()
    undo: bool = False
    """Whether what it did is taken back when it is through."""
    patience_s: float = 30.0
    flaw: str = ""
    """Something that is wrong on purpose, which the checks must see."""

    @property
    def status(self) -> str:
        """How it ends."""
        steps = self.settings.limits.steps
        return "answered" if steps is None or steps > len(self.replies) else "max_steps"

    def journal(self) -> SqliteJournal | PostgresJournal:
        """Open it."""
        if "://" in self.store:
            return PostgresJournal(self.store, patience_s=self.patience_s)
        return SqliteJournal(self.store, patience_s=self.patience_s)

    def agent(self, journal: Journal, at: Callable[[str], None] | None = None) -> Agent:
        """Make it, with `at` called before and after whatever it asks of the outside."""
        model: Any = Script(self.replies)
        tools: list[Any] = [_FLAWED.get((self.flaw, one.name), one) for one in TOOLS]
        if self.flaw == "commits late":
            journal = _CommitsLate(journal)
        if at is not None:
            model = _WatchedModel(model, at)
            tools = [Watched(one, one.name, _OF_TOOLS, at) for one in tools]
            journal = Watched(journal, "journal", _OF_JOURNALS, at)
        return Agent(model, tools, settings=self.settings, journal=journal)


UNDONE_ON_STOP = Settings(limits=Limits(steps=2), on_stop="undo")
ASKED_IN_DOUBT = Settings(on_in_doubt="ask")

_OF_TOOLS = {"check", "call", "render", "permit", "reconcile", "undo"}
_OF_JOURNALS = {"append", "commit", "acommit", "read"}
_OF_MODELS = {"complete", "acomplete"}


class Watched:
    """Another object, some of whose methods say when they begin and when they are through."""

    def __init__(self, inner: Any, label: str, names: set[str], at: Callable[[str], None]) -> None:
        self._inner, self._label, self._names, self._at = inner, label, names, at

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        return self._watched(f"{self._label}.{name}", value) if name in self._names else value

    def _watched(self, place: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._at(f"before {place}")
            value = method(*args, **kwargs)
            if inspect.iscoroutine(value):
                return self._awaited(place, value)
            self._at(f"after {place}")
            return value

        return call

    async def _awaited(self, place: str, work: Any) -> Any:
        value = await work
        self._at(f"after {place}")
        return value


class _WatchedModel(Script):
    def __init__(self, inner: Script, at: Callable[[str], None]) -> None:
        self.name, self._inner, self._at = inner.name, inner, at

    def session(self) -> Any:
        return Watched(self._inner, "model", _OF_MODELS, self._at)


# --- flaws ----------------------------------------------------------------------------------------------


def _leave(item: str) -> None:
    """A compensation that does nothing."""


def _always_not_done(item: str) -> Any:
    """A tool that never finds what it did."""
    return NOT_DONE


_FLAWED: dict[tuple[str, str], Any] = {
    ("promises too much", "send"): tool(send, idempotent=True),
    ("undoes nothing", "book"): tool(book, undo=_leave),
    ("never knows", "book"): tool(book, reconcile=_always_not_done),
    ("does nothing", "put"): tool(look, name="put", read_only=False),
}


class _CommitsLate:
    """Makes nothing durable before the run ends."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._is_over = inner, False
        self.read, self.runs = inner.read, inner.runs

    def append(self, run_id: str, event: AnyEvent) -> None:
        """Hold it."""
        self._is_over = isinstance(event, RunEnded | RunStarted)
        self._inner.append(run_id, event)

    def commit(self, run_id: str) -> None:
        """Only of the beginning and the end."""
        if self._is_over:
            self._inner.commit(run_id)

    async def acommit(self, run_id: str) -> None:
        """The same."""
        self.commit(run_id)


# --- what a process does --------------------------------------------------------------------------------


def run_of(journal: Journal, task: str) -> RunSummary | None:
    """The run of a task, where it has begun."""
    found = [one for one in journal.runs() if one.task == task]
    assert len(found) < 2, f"{task} was begun twice"
    return found[0] if found else None


async def carry_on(case: Case, agent: Agent, task: str, known: RunSummary | None) -> RunResult:
    """Whatever a process has to do so that a task comes to its end, wherever another one was when it died."""
    is_aio = case.driver == "aio"

    async def through(method: str, *args: Any, **kwargs: Any) -> RunResult:
        work = getattr(agent, method if is_aio else f"{method}_sync")(*args, **kwargs)
        result: RunResult = await work if is_aio else work
        return result

    if known is None:
        result = await through("run", task, raise_on_stop=False)
    elif case.undo and any(type(event).__name__ == "UndoRequested" for event in agent.journal.read(known.run_id)):
        return await through("undo", known.run_id)
    else:
        result = await through("resume", known.run_id, raise_on_stop=False)
    while result.status == "awaiting_approval":
        assert result.pending, "the run waits, and nobody knows for what"
        decide(agent, result)
        result = await through("resume", result.run_id, raise_on_stop=False)
    if case.undo and result.status == case.status:
        result = await through("undo", result.run_id)
    return result


def decide(agent: Agent, result: RunResult) -> None:
    """What a person says to each call that waits. About one in doubt they look whether it was done."""
    for call in result.pending:
        is_done = (call.name, call.arguments["item"]) in _outside[0].seen()
        if call.name == "burn":
            agent.deny(result.run_id, call.place, by="Ann", reason="nothing is burnt here")
        elif call.about == "in_doubt" and is_done:
            agent.deny(result.run_id, call.place, by="Ann", reason="it was done")
        else:
            agent.approve(result.run_id, call.place, by="Ann", digest=call.digest)
