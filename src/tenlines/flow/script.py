"""A workflow in the place of the model: what it wants next is the reply, what it was given are the results.

So a workflow is an ordinary run. Its log, limits, journal, crashes, resume, trace and report are those of any run, and
there is no second engine. A run that is taken up begins the function anew and gives it the results that the log has.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from pydantic_core import to_json

from tenlines.core.effects import CallModel
from tenlines.core.transcript import Assistant, Json, Message, Outcome, Part, Reply, Result, Text, ToolCall, Usage, User
from tenlines.errors import FlowError, OutOfMoves, StageFailed
from tenlines.flow.rounds import Failure, Rounds, Want
from tenlines.ports import OnDelta

Reader = Callable[[Outcome, str], Any]
"""What came of a call, from its outcome and text in the log: a value, a `Failure` or a `Stopped`. May raise ValueError
where it cannot be read."""
Start = Callable[[Mapping[str, Any]], Coroutine[Any, Any, Any]]
"""Begins the function with its arguments, as JSON."""
NOTHING = Usage(0, 0, 0, 0, 0)
"""A workflow uses no tokens itself."""


class Script:
    """The function of a workflow as a model.

    Args:
        name: What it is called.
        start: Begins it.
        readers: Stage or step -> how what came of it is read from the log.
    """

    def __init__(self, name: str, start: Start, readers: Mapping[str, Reader]) -> None:
        self.name, self.start, self.readers = name, start, readers

    def session(self) -> Performance:
        """The function, from its beginning."""
        return Performance(self)


class Stopped(NamedTuple):
    """Something kept a stage from being asked to its end: a limit, a cancel, a server. It is asked again on resume."""

    status: str
    reason: str


class Performance:
    """One run of a workflow."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._rounds: Rounds | None = None
        self._wants: list[Want[Any]] = []
        self._values: dict[int, Any] = {}
        """What is known of these, by their place."""
        self._read = 0
        """How many messages of the transcript it knows."""

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """What is wanted next, or what the function returned.

        Raises:
            FlowError: The function goes another way than the log says that it went, or waits for something foreign.
            OutOfMoves: A stage came to a limit of steps.
            Exception: What the function raises.
        """
        messages, is_new = request.messages, self._rounds is None
        stopped = None
        if is_new:
            self._begin(messages)
        while self._read < len(messages):
            stopped = self._catch_up(messages)
        if stopped is not None and not is_new:
            raise _as_error(stopped)
        assert self._rounds is not None
        if self._rounds.is_done:
            return Reply(to_json(self._rounds.value).decode(), usage=NOTHING, dollars=0.0)
        return Reply("", self._calls(), "tool_calls", NOTHING, dollars=0.0)

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio; nothing is waited for."""
        return self.complete(request, on_delta)

    def _begin(self, messages: Sequence[Message]) -> None:
        first = next(index for index, one in enumerate(messages) if isinstance(one, User))
        self._rounds = Rounds(self._script.start(_arguments(messages[first])))
        self._read, self._wants = first + 1, self._rounds.advance()

    def _missing(self) -> list[int]:
        return [place for place in range(len(self._wants)) if place not in self._values]

    def _calls(self) -> tuple[ToolCall, ...]:
        wants = [self._wants[place] for place in self._missing()]
        if unknown := next((one.name for one in wants if one.name not in self._script.readers), None):
            raise FlowError(f"the workflow awaits {unknown}, which it does not list: add it to Flow(..., [{unknown}])")
        return tuple(
            ToolCall(f"{self._read}.{place}", want.name, msgspec.json.encode(want.arguments).decode())
            for place, want in enumerate(wants)
        )

    def _catch_up(self, messages: Sequence[Message]) -> Stopped | None:
        """Take in the next message: what was wanted, with what came of it. Others are not for a workflow."""
        message = messages[self._read]
        self._read += 1
        if not isinstance(message, Assistant) or not message.calls:
            return None
        missing = self._missing()
        self._compare(message, [self._wants[place] for place in missing])
        results: list[Result] = []
        while len(results) < len(message.calls):
            result = messages[self._read]
            self._read += 1
            if isinstance(result, Result):
                results.append(result)
        found = dict(zip(missing, map(self._value, results), strict=True))
        self._values |= {place: one for place, one in found.items() if not isinstance(one, Stopped)}
        if len(self._values) == len(self._wants):
            self._go_on()
        return next((one for one in found.values() if isinstance(one, Stopped)), None)

    def _go_on(self) -> None:
        """Everything of the round is known."""
        assert self._rounds is not None
        self._rounds.answer([self._values[place] for place in range(len(self._wants))])
        self._values = {}
        self._wants = self._rounds.advance()

    def _compare(self, message: Assistant, wants: Sequence[Want[Any]]) -> None:
        """That the log asks what the function asks."""
        then = [(one.name, msgspec.json.decode(one.arguments)) for one in message.calls]
        now = [(one.name, one.arguments) for one in wants]
        if then == now:
            return
        names = [", ".join(name for name, _ in one) for one in (then, now)]
        what = f"asked {names[0]}; now it asks {names[1] or 'nothing more'}"
        if names[0] == names[1]:
            what = f"asked {names[0]} with other arguments"
        raise FlowError(
            f"the workflow goes another way than its log: then it {what}. A workflow must come to the same calls "
            "from the same results: start a new run, or put what changes (time, chance, files) into a step"
        )

    def _value(self, result: Result) -> Any:
        """A value, a `Failure`, or a `Stopped`."""
        text = _text(result.parts)
        if result.outcome in _NOT_BEGUN:
            return Stopped(result.outcome, text)
        try:
            return self._script.readers[result.name](result.outcome, text)
        except ValueError as error:
            return Failure(StageFailed(result.name, result.outcome, f"its value cannot be read: {error}"))


_NOT_BEGUN = ("not_executed", "cancelled")
"""Outcomes of calls that took no effect because the run was stopped: they are facts of the run and not of the call."""


def _as_error(stopped: Stopped) -> Exception:
    """What ends the run of the workflow: at a limit of steps as such, else as what it was."""
    text = f"a stage stopped: {stopped.status}: {stopped.reason}"
    return OutOfMoves(text) if stopped.status == "max_steps" else FlowError(text)


def _arguments(message: Message) -> Mapping[str, Any]:
    given = message.parts[0] if isinstance(message, User) else None
    return given.value if isinstance(given, Json) and isinstance(given.value, dict) else {}


def _text(parts: tuple[Part, ...]) -> str:
    """What a result says; a value is its JSON."""
    return "".join(
        one.text if isinstance(one, Text) else msgspec.json.encode(one.value).decode()
        for one in parts
        if isinstance(one, Text | Json)
    )
