"""Runs the cases of `cases.jsonl`: tools as described, replies as written down, and what must hold in every run.

Notation of a case: a reply is `{"text", "tool_calls": [{"id", "name", "arguments"}], "stop"}` or
`{"raise": {"status", "retry_after"}}`, arguments being raw text; `<<rep:X:N>>` is X, N times; `\\uXXXX` in a tool's
text is that code unit. A model given as a sentence is a rule, and so a function here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from case_laws import assert_valid, check_log, check_requests, check_sums, encoded

from tenlines import Agent, Control, Limits, Reply, RunResult, Settings, Tool, Usage, tool
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.replay import fold
from tenlines.core.transcript import Note, Result
from tenlines.errors import OutOfMoves, RemoteError
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal
from tenlines.models.plain import ScriptedModel
from tenlines.ports import (
    Bound,
    CallContext,
    Clock,
    Delta,
    GuardedCall,
    Invalid,
    Journal,
    OnDelta,
    Opinion,
    Rendered,
)
from tenlines.testing import RecordingObserver
from tenlines.wire.errors import error_from
from tenlines.wire.format import Piece
from tenlines.wire.openai_chat.stream import StreamDecoder
from tenlines.wire.parts import NOTE_PREFIX
from tenlines.wire.plain import read_reply

HERE = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = {
    case["id"]: case for case in map(json.loads, (HERE / "cases.jsonl").read_text().splitlines())
}
STATUS = {
    "completed": "answered",
    "completed after resume": "answered",
    "loop_detected": "stuck",
    "tool_retries_exhausted": "stuck",
    "budget_exceeded": "budget",
    "provider_error": "model_error",
    "storage_error": "journal_error",
}
USAGE = Usage(input=100, output=10)
"""What each scripted reply used, so that the sums can be checked."""


class Mode(NamedTuple):
    """One way to run an agent."""

    driver: str
    watched: bool

    def __str__(self) -> str:
        return f"{self.driver}{'-watched' if self.watched else ''}"


MODES = [Mode(driver, watched) for driver in ("sync", "aio") for watched in (False, True)]


def case_id(function_name: str) -> str | None:
    """The id that a test's name begins with: `test_pair_01_...` is for the case `pair-01`."""
    found = re.match(r"test_([a-z]+)_(\d\d)_", function_name)
    return f"{found[1]}-{found[2]}" if found else None


def outcome_of(name: str) -> str:
    """A result class of the cases in our words."""
    if name == "interrupted_unknown":
        return "in_doubt"
    return re.sub("_(json|shape|schema|limit|loop|truncated)$", "", name)


def expand(text: Any) -> Any:
    """Write out `<<rep:X:N>>`."""
    if not isinstance(text, str):
        return text
    return re.sub(r"<<rep:(.*?):(\d+)>>", lambda m: m[1] * int(m[2]), text, flags=re.S)


def reply_of(move: Any) -> Any:
    """A reply in the notation of the cases, as the plain dict that a model function may return; or an exception."""
    if not isinstance(move, dict):
        return move
    if "raise" in move:
        return failure_of(move["raise"])
    if "stream" in move or "deltas" in move:
        return move
    reply = {"usage": USAGE, **move}
    if reply.get("stop") == "malformed_tool_call":
        reply["stop"] = "malformed_call"
    calls = reply.get("tool_calls") or ()
    reply["tool_calls"] = [{**call, "arguments": expand(call.get("arguments"))} for call in calls]
    return reply


def failure_of(fault: dict[str, Any]) -> Exception:
    """What a client raises for an answer with this status, or for a connection that breaks."""
    if "error" in fault:
        return {"ConnectionResetError": ConnectionResetError}[fault["error"]]("Connection reset by peer")
    headers = {"retry-after": fault["retry_after"]} if "retry_after" in fault else {}
    message = "too many requests" if fault["status"] == 429 else "it failed"
    body = {"error": {"message": message, "code": fault.get("code")}}
    return error_from(fault["status"], body, headers)


def streamed(move: dict[str, Any], show: Callable[[Piece], None]) -> Reply:
    """A reply that comes in pieces, through the decoder that reads the real ones."""
    decoder, used = StreamDecoder(), None
    try:
        for chunk in chunks_of(move):
            piece = decoder.feed(chunk)
            used = piece.usage or used
            show(piece)
        return decoder.finish()
    except RemoteError as error:
        error.usage = used
        raise


def chunks_of(move: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks of a move: `stream` (pieces of text) or `deltas` (pieces of calls), then how it ends."""
    usages = iter(move.get("usage_chunks", [{"input": 100, "output": 10}]))
    for text in move.get("stream", ()):
        used = next(usages, None)
        counts = {"prompt_tokens": used["input"], "completion_tokens": used["output"]} if used else None
        yield {"choices": [{"delta": {"content": text}}], "usage": counts}
    for piece in move.get("deltas", ()):
        function = {"name": piece.get("name"), "arguments": piece["args"]}
        entry = {"index": piece["index"], "id": piece.get("id"), "function": function}
        yield {"choices": [{"delta": {"tool_calls": [entry]}}]}
    if "then" not in move:
        yield {"choices": [{"delta": {}, "finish_reason": move["stop"]}]}
        yield {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10} if "deltas" in move else None}
    elif move["then"] == "error 503":
        yield {"error": {"message": "service unavailable", "type": "server_error", "code": 503}}


def calls(*asked: tuple[str, str, str], text: str | None = None, stop: str = "tool_calls") -> dict[str, Any]:
    """`K(...)` of the cases: a reply with calls of (id, name, arguments)."""
    listed = [{"id": id_, "name": name, "arguments": arguments} for id_, name, arguments in asked]
    return {"text": text, "tool_calls": listed, "stop": stop}


def says(text: str | None) -> dict[str, Any]:
    """`T(...)` of the cases: a reply in words."""
    return {"text": text, "tool_calls": [], "stop": "stop"}


def gives(value: Any) -> Callable[[], Any]:
    """A function that gives a value."""
    return lambda: value


async def until(happened: Callable[[], bool]) -> None:
    """Wait in a tool, whichever thread its loop runs in."""
    for _ in range(5000):
        if happened():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("what was waited for did not happen")


# --- the model ----------------------------------------------------------------------------------------


class CaseModel:
    """Scripted replies, or a rule for every request; streams what it says to those who watch."""

    name = "case"

    def __init__(self, moves: list[Any] | Callable[[CallModel], Any]) -> None:
        self.moves = moves if callable(moves) else ScriptedModel([reply_of(move) for move in moves]).replies
        self.requests: list[CallModel] = []

    def session(self) -> _Session:
        """Start at the first reply."""
        return _Session(self)


class _Session:
    def __init__(self, model: CaseModel) -> None:
        self.model, self.used = model, 0

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        self.model.requests.append(request)
        moves = self.model.moves
        if callable(moves):
            move = reply_of(moves(request))
        elif self.used < len(moves):
            move = moves[self.used]
        else:
            raise OutOfMoves("the script is used up")
        self.used += 1
        if isinstance(move, BaseException):
            raise move
        if isinstance(move, dict) and ("stream" in move or "deltas" in move):
            return streamed(move, partial(_show, request, on_delta))
        reply = read_reply(move)
        if on_delta is not None:
            for start in range(0, len(reply.text), 3):
                on_delta(Delta(request.step, reply.text[start : start + 3]))
        return reply

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        await asyncio.sleep(0)
        return self.complete(request, on_delta)


def _show(request: CallModel, on_delta: OnDelta | None, piece: Piece) -> None:
    if on_delta is not None and piece.text:
        on_delta(Delta(request.step, piece.text))


# --- tools --------------------------------------------------------------------------------------------


class Counted:
    """A tool that counts how often its body is entered, and with what."""

    def __init__(self, inner: Tool[..., Any]) -> None:
        self.inner, self.runs = inner, 0
        self.given: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.spec, self.is_async, self.is_killable = inner.spec, inner.is_async, inner.is_killable

    def check(self, arguments: dict[str, Any]) -> Bound | Invalid:
        return self.inner.check(arguments)

    def call(self, bound: Bound, ctx: CallContext) -> Any:
        self.runs += 1
        self.given.append(bound.arguments)
        self.keys.append(ctx.key)
        return self.inner.call(bound, ctx)

    def render(self, value: Any) -> Rendered:
        return self.inner.render(value)

    def permit(self, call: GuardedCall) -> Opinion:
        return self.inner.permit(call)


# --- a case in one mode -------------------------------------------------------------------------------


class World:
    """One case in one mode: its tools, and `play` to run it."""

    def __init__(self, case: dict[str, Any], mode: Mode, folder: Path) -> None:
        self.case, self.mode, self.folder = case, mode, folder
        self.input, self.expected = case["input"], case["expected"]
        self.tools: dict[str, Any] = {}
        self.journal: Journal = MemoryJournal()
        self.stores: list[SqliteJournal] = []

    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """`@world.tool(...)`: a tool of this case. The plain function is returned."""
        if function is None:
            return partial(self.tool, **options)
        made = Counted(tool(function, **options))
        self.tools[made.spec.name] = made
        return function

    def store(self, kind: type[SqliteJournal] = SqliteJournal) -> SqliteJournal:
        """Use a session store: a journal in a file. Once more is another journal on the same file."""
        self.journal = opened = kind(self.folder / "journal.db")
        self.stores.append(opened)
        return opened

    def close(self) -> None:
        """Close what was opened."""
        for store in self.stores:
            store.close()

    @property
    def newest(self) -> str:
        """The run that was begun last."""
        return self.journal.runs(1)[0].run_id

    def agent(
        self,
        model: Any = (),
        *,
        clock: Clock | None = None,
        observers: Iterable[Any] = (),
        limits: Limits | None = None,
        **settings: Any,
    ) -> Agent:
        """An agent with the tools and the journal of this case."""
        return Agent(
            model if isinstance(model, CaseModel) else CaseModel(model),
            list(self.tools.values()),
            settings=Settings(limits=limits or Limits(), **settings),
            journal=self.journal,
            observers=tuple(observers),
            clock=clock,
        )

    def play(
        self,
        *,
        task: Any = ...,
        history: Iterable[Any] | None = None,
        model: Any = None,
        control: Control | None = None,
        clock: Clock | None = None,
        observers: Iterable[Any] = (),
        resume: str | None = None,
        limits: Limits | None = None,
        **settings: Any,
    ) -> Played:
        """Run the case, or what is given in place of its parts, and check what always holds."""
        moves = self.input.get("model") if model is None else model
        scripted = moves if isinstance(moves, CaseModel) else CaseModel(moves)
        seen = RecordingObserver()
        watching = (*observers, *([seen] if self.mode.watched else []))
        agent = self.agent(scripted, clock=clock, observers=watching, limits=limits, **settings)
        if resume is not None:
            ways = {"sync": partial(agent.resume_sync, resume), "aio": partial(agent.resume, resume)}
            options: dict[str, Any] = {"limits": limits}
        else:
            said = self.input.get("user") if task is ... else task
            past = self.input.get("history", ()) if history is None else history
            ways = {"sync": partial(agent.run_sync, said), "aio": partial(agent.run, said)}
            options = {"messages": past}
        run = partial(ways[self.mode.driver], control=control, raise_on_stop=False, **options)
        result = run() if self.mode.driver == "sync" else asyncio.run(run())
        return Played(self, result, scripted, seen).check_always()


class Played:
    """A run that was played."""

    def __init__(self, world: World, result: RunResult, model: CaseModel, seen: RecordingObserver) -> None:
        self.world, self.result, self.model, self.seen = world, result, model, seen
        self.log = list(world.journal.read(result.run_id))

    # --- reading ------------------------------------------------------------------------------------

    @property
    def sent(self) -> list[list[dict[str, Any]]]:
        """Every request's messages, as they go over the wire."""
        return [encoded(request.messages) for request in self.model.requests]

    @property
    def notes(self) -> list[str]:
        """What the loop told the model."""
        return [one.text for one in self.result.messages if isinstance(one, Note)]

    def call(self, call_id: str) -> Any:
        """The record of a call, by the id that the provider gave it."""
        (found,) = [record for record in self.result.calls if record.provider_id == call_id]
        return found

    def events(self, kind: type[Any]) -> list[Any]:
        """The events of a kind."""
        return [event for event in self.log if isinstance(event, kind)]

    def results(self) -> dict[str, str]:
        """What the model is shown of each call, by id."""
        return {one.call_id: one.text for one in self.result.messages if isinstance(one, Result)}

    # --- what the case expects ----------------------------------------------------------------------

    def expect(self, **other: Any) -> Played:
        """Assert what the case expects in its fields, or what is given in their place."""
        wanted = {**self.world.expected, **other}
        if "status" in wanted:
            names = wanted["status"] if isinstance(wanted["status"], list) else [wanted["status"]]
            assert self.result.status in [STATUS.get(name, name) for name in names], self.result.reason
        if "model_calls" in wanted:
            assert fits(len(self.model.requests), wanted["model_calls"])
        for name, number in wanted.get("tool_runs", {}).items():
            runs = self.world.tools[name].runs if name in self.world.tools else 0
            assert fits(runs, number), f"{name} ran {runs} times, expected {number}"
        for one in wanted.get("obs", ()):
            self._observed(one)
        if "final" in wanted:
            said = self.result.answer if self.result.status == "answered" else self.result.partial_answer
            assert said == wanted["final"]
        if "sent_roles" in wanted:
            assert [[message["role"] for message in sent] for sent in self.sent] == wanted["sent_roles"]
        return self

    def _observed(self, wanted: dict[str, Any]) -> None:
        in_history = [one for one in self.result.messages if isinstance(one, Result) and one.call_id == wanted["call"]]
        known = [record for record in self.result.calls if record.provider_id == wanted["call"]]
        (record,) = known or in_history
        classes = wanted["class"] if isinstance(wanted["class"], list) else [wanted["class"]]
        assert record.outcome in [outcome_of(name) for name in classes], record.text
        for text in wanted.get("has", ()):
            assert text.lower() in record.text.lower()
        if "truncated" in wanted:
            assert record.truncated is wanted["truncated"]

    # --- what always holds --------------------------------------------------------------------------

    def check_always(self) -> Played:
        """G2 to G6 and V1 to V8. G1 (no raw exception) held, or we would not be here."""
        check_requests(self.model.requests, self.log)
        assert_valid(encoded(self.result.messages))
        check_log(self.log, self.result)
        check_sums(self.log, self.result)
        if self.world.mode.watched:
            assert self.seen.events == self.log[len(self.log) - len(self.seen.events) :]
            said = "".join(event.reply.text for event in self.seen.events if isinstance(event, ev.ModelReplied))
            heard = "".join(delta.text for delta in self.seen.deltas)
            assert heard == said or (self.events(ev.ModelFailed) and heard.endswith(said))  # of a broken one, more
        return self


def fits(number: int, wanted: Any) -> bool:
    """Whether a number is what a case allows: a number, one of several, or `<= N`."""
    if isinstance(wanted, list):
        return number in wanted
    return number <= int(wanted.removeprefix("<=")) if isinstance(wanted, str) else number == wanted


def transcript_of(journal: Journal, run_id: str) -> list[dict[str, Any]]:
    """A stored transcript, as it goes over the wire."""
    return encoded(fold(journal.read(run_id)).state.messages)


def is_note(message: dict[str, Any]) -> bool:
    """Whether a message on the wire is the loop's own."""
    return message["role"] == "user" and str(message["content"]).startswith(NOTE_PREFIX)
