"""An agent with tools of all kinds, and the world outside it, which remembers what was done whoever dies."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import os
import random
import shutil
import tempfile
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
from tenlines.core.changes import estimate_tools
from tenlines.core.codec import decode, encode
from tenlines.core.context import Compaction, question
from tenlines.core.effects import CallModel
from tenlines.core.events import AnyEvent, RunEnded, RunStarted
from tenlines.core.limits import Price
from tenlines.core.replay import fold
from tenlines.core.transcript import Message, Note, Result, Usage, User, estimate_tokens
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
        self._asked = os.open(f"{path}.asked", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def close(self) -> None:
        """Let go of the files."""
        os.close(self._file)
        os.close(self._asked)

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

    def is_asked(self, task: str, request: CallModel) -> None:
        """A model was sent a request."""
        asked = Asked(task, is_summary(request), request.step, request.changed, digests(request.messages))
        os.write(self._asked, msgspec.json.encode(asked) + b"\n")

    def asked(self, task: str) -> list[Asked]:
        """What was sent for a task, whichever process did it."""
        lines = Path(f"{self._path}.asked").read_bytes().splitlines()
        requests = (msgspec.json.decode(line, type=Asked) for line in lines)
        return [one for one in requests if one.task == task]


class Asked(msgspec.Struct, array_like=True, frozen=True):
    """A request, as the world outside saw it."""

    task: str
    is_summary: bool
    step: int
    changed: str
    messages: tuple[str, ...]


def digests(messages: Sequence[Message]) -> tuple[str, ...]:
    """Each message, in short."""
    return tuple(hashlib.blake2b(repr(one).encode(), digest_size=6).hexdigest() for one in messages)


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


@tool(read_only=True, max_result=4_000)
def scan(item: str) -> str:
    """Returns much, which is left out later."""
    return f"{item} " * 200


@tool(read_only=True)
def note(item: str) -> str:
    """Returns too little to be left out by itself, and enough to be summarised."""
    return f"{item} {'.' * 330}"


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


_child: list[Agent] = []
"""The agent that the tools of this process ask."""


@tool(spends=True)
def hire(item: str, ctx: CallContext) -> str:
    """Asks another agent, which costs; then does it."""
    result = _child[0].run_sync(f"{item}/child", under=ctx, raise_on_stop=False)
    _outside[0].does("hire", item, ctx.key)
    return f"hired {item}: {result.status}"


@tool(spends=True, idempotent=True)
async def staff(item: str, ctx: CallContext) -> str:
    """The same, awaited, with a service that knows keys."""
    result = await _child[0].run(f"{item}/child", under=ctx, raise_on_stop=False)
    _outside[0].does("staff", item, ctx.key)
    return f"staffed {item}: {result.status}"


def _brief(item: str) -> str:
    """What a run under a call has to do."""
    return f"{item}/child"


TOOLS = (look, peek, put, send, mail, book, pay, post, burn)
CUTTING = (scan, note)
SPENDING = (hire, staff)
for _one in (*TOOLS, *CUTTING, *SPENDING):
    _one.check({"item": "x"})  # here, so that what this imports is there before anything forks
PLAIN = {"send", "mail", "pay", "hire"}
"""What a crash leaves in doubt."""
COMPENSATIONS = {"book": "unbook", "pay": "refund"}


# --- the model ------------------------------------------------------------------------------------------


class Script:
    """A model that asks for the calls of a list of replies and then answers: a pure function of the request."""

    def __init__(self, replies: Sequence[Sequence[str]], is_watched: bool = False) -> None:
        self.name, self._replies, self._is_watched = "script", replies, is_watched

    def session(self) -> Script:
        """It remembers nothing, so one will do."""
        return self

    def complete(self, request: CallModel, on_delta: object) -> Reply:
        """The next reply of the list."""
        return self._next(request)

    async def acomplete(self, request: CallModel, on_delta: object) -> Reply:
        """The same, after a pause."""
        await _pause()
        return self._next(request)

    def _next(self, request: CallModel) -> Reply:
        messages, step = request.messages, request.step - 1
        task = next(one.text for one in reversed(messages) if isinstance(one, User))
        if self._is_watched:
            _outside[0].is_asked(task, request)
        usage = Usage(sum(map(estimate_tokens, messages)) + estimate_tools(request.tools), 20)
        if is_summary(request):
            return Reply(f"summary of {task} before step {request.step}", usage=usage)
        if step == len(self._replies):
            return Reply(answer_to(messages), usage=usage)
        names = enumerate(self._replies[step])
        return Reply(calls=tuple(ToolCall(f"c{n}", name, _item(task, step, n)) for n, name in names), usage=usage)


def is_summary(request: CallModel) -> bool:
    """Whether a summary is asked for."""
    last = request.messages[-1]
    return isinstance(last, Note) and last == question(CUT_TO)


def _item(task: str, step: int, position: int) -> str:
    return msgspec.json.encode({"item": f"{task}/{step}.{position}"}).decode()


def answer_to(messages: Sequence[Message]) -> str:
    """What the model says in the end."""
    return f"done after {sum(isinstance(one, Result) for one in messages)} results"


# --- the agent ------------------------------------------------------------------------------------------


def warm_up() -> None:
    """Let an agent work in this process, without threads or files: what Python makes ready when something runs for the
    first time, children that are forked later share instead of making it each."""
    folder = tempfile.mkdtemp()
    act_on(Outside(Path(folder) / "effects"))
    for number in range(3):
        model: Any = Script((("look", "put"), ("look",)))
        agent = Agent(model, TOOLS, journal="memory")
        result = agent.run_sync(f"warm up {number}")
        assert result.answer == answer_to(result.messages)
        log = [decode(encode(event)) for event in agent.journal.read(result.run_id)]
        assert fold(log).result().answer == result.answer
    _outside.pop().close()
    shutil.rmtree(folder)


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
    family: bool = False
    """Whether its calls are runs: two that only read, side by side, one of which has one itself; then one that acts."""
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
        model: Any = Script(self.replies, self.settings.compaction is not None)
        tools: list[Any] = [_FLAWED.get((self.flaw, one.name), one) for one in self._tools]
        if self.flaw == "cuts nothing":
            model = _CutsNothing(self.replies, True)
        if self.flaw == "commits late":
            journal = _CommitsLate(journal)
        if at is not None:
            model = _WatchedModel(model, "model", at)
            tools = [Watched(one, one.name, _OF_TOOLS, at) for one in tools]
            journal = Watched(journal, "journal", _OF_JOURNALS, at)
        if self.family:
            return Agent(model, self._family(at), settings=self.settings, journal=journal)
        _child[:] = [self._child(journal, at)]
        return Agent(model, tools, settings=self.settings, journal=journal)

    def _family(self, at: Callable[[str], None] | None) -> list[Any]:
        """The agents that are tools. Their runs are in the journal of the run that calls them, wherever theirs is."""

        def member(name: str, replies: Sequence[Sequence[str]], tools: Sequence[Any]) -> Any:
            model: Any = Script(replies)
            if at is not None:
                model = _WatchedModel(model, name, at)
                tools = [one if one.spec.child else Watched(one, one.name, _OF_TOOLS, at) for one in tools]
            agent = Agent(model, tools, settings=self.settings, journal="memory", name=name)
            return agent.as_tool(task=_brief, limits=Limits(steps=None))

        scout = member("scout", (("look",),), [look])
        return [scout, member("lead", (("scout",),), [scout]), member("crew", (("send",),), [send])]

    @property
    def _tools(self) -> tuple[Any, ...]:
        return (*TOOLS, *(CUTTING if self.settings.compaction else ()), *(SPENDING if self.settings.price else ()))

    def _child(self, journal: Any, at: Callable[[str], None] | None) -> Agent:
        """The agent that some tools ask; with the same journal."""
        model: Any = Script((("look",),))
        if at is not None:
            model = _WatchedModel(model, "child", at)
        settings = msgspec.structs.replace(self.settings, limits=Limits(steps=None), compaction=None)
        return Agent(model, [look], settings=settings, journal=journal, name="child")


CUT_TO = 60
"""Longest summary, in tokens."""
CUT = Settings(compaction=Compaction(keep=1, at=900, least_gain=1.0, summary_tokens=CUT_TO))
"""Old results are left out first; where there are none, what was done is summarised. No cut pays: `at` says when."""
DROPPED = Settings(compaction=Compaction(strategies=("drop",), keep=1, at=900, least_gain=1.0, summary_tokens=CUT_TO))
PRICED = Settings(price=Price(input=1.0, output=2.0), limits=Limits(steps=None, dollars=0.05))
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


class _WatchedModel:
    """A model whose requests say what they are for: a reply, a summary, a child."""

    def __init__(self, inner: Script, label: str, at: Callable[[str], None]) -> None:
        self.name, self._inner, self._label, self._at = inner.name, inner, label, at

    def session(self) -> _WatchedModel:
        """It remembers nothing."""
        return self

    def complete(self, request: CallModel, on_delta: object) -> Reply:
        """Ask."""
        reply: Reply = self._of(request).complete(request, on_delta)
        return reply

    async def acomplete(self, request: CallModel, on_delta: object) -> Reply:
        """The same."""
        reply: Reply = await self._of(request).acomplete(request, on_delta)
        return reply

    def _of(self, request: CallModel) -> Any:
        return Watched(self._inner, "summary" if is_summary(request) else self._label, _OF_MODELS, self._at)


# --- flaws ----------------------------------------------------------------------------------------------


def _leave(item: str) -> None:
    """A compensation that does nothing."""


def _always_not_done(item: str) -> Any:
    """A tool that never finds what it did."""
    return NOT_DONE


@tool(name="hire", spends=True)
def _hires_in_secret(item: str, ctx: CallContext) -> str:
    """Does not say under which call the other agent works."""
    result = _child[0].run_sync(f"{item}/child", raise_on_stop=False)
    return f"hired {item}: {result.status}"


_FLAWED: dict[tuple[str, str], Any] = {
    ("spends in secret", "hire"): _hires_in_secret,
    ("promises too much", "send"): tool(send, idempotent=True),
    ("undoes nothing", "book"): tool(book, undo=_leave),
    ("never knows", "book"): tool(book, reconcile=_always_not_done),
    ("does nothing", "put"): tool(look, name="put", read_only=False),
}


class _CutsNothing(Script):
    """Sends all that was ever sent once more."""

    _known: tuple[Message, ...] = ()

    def _next(self, request: CallModel) -> Reply:
        self._known += tuple(request.messages)[len(self._known) :]
        return super()._next(msgspec.structs.replace(request, messages=self._known))


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
    while (
        result.status == "budget" != case.status
    ):  # what a crash left set aside nobody can account for: a person raises
        limits = fold(agent.journal.read(result.run_id)).state.limits
        raised = msgspec.structs.replace(limits, dollars=(limits.dollars or 0.0) + 0.05)
        result = await through("resume", result.run_id, limits=raised, raise_on_stop=False)
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
