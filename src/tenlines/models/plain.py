"""Models without a network: a plain function, and a list of scripted replies."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from tenlines.core.effects import CallModel
from tenlines.core.transcript import Reply
from tenlines.drivers.threads import in_thread, loop_thread
from tenlines.errors import ConfigError, OutOfMoves
from tenlines.ports import OnDelta
from tenlines.wire.openai_chat.encoding import Encoder, plain_target
from tenlines.wire.plain import read_reply


class FunctionModel:
    """A function of the messages, sync or async.

    It is given the messages as dicts (OpenAI Chat's shape): the same list at every step of a run, growing, so it
    is for reading. It returns text, a dict with `content` and/or `tool_calls`, or a `Reply`. When it takes a
    second parameter, that is the whole request (`tenlines.core.effects.CallModel`).
    """

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        own = getattr(function, "__name__", type(function).__name__)
        self.name = name or f"function:{own}"
        self.function = function
        target = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
        self.is_async = inspect.iscoroutinefunction(target)
        try:
            inspect.signature(function).bind([])
            self.wants_request = False
        except TypeError:
            self.wants_request = True
        except ValueError:  # a builtin without a signature
            self.wants_request = False

    def session(self) -> _FunctionSession:
        """One run's list of messages."""
        return _FunctionSession(self)


class _FunctionSession:
    def __init__(self, model: FunctionModel) -> None:
        self.model, self.encoder = model, Encoder(plain_target())

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """Call the function; an async one runs in an event loop of another thread."""
        value = self._call(request)
        if inspect.isawaitable(value):
            value = loop_thread.wait_for(value)
        return read_reply(value)

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """Call the function; a blocking one runs in a thread, which is left behind when the run is cancelled."""
        if self.model.is_async:
            return read_reply(await self._call(request))
        value = await in_thread(partial(self._call, request))
        return read_reply(await value if inspect.isawaitable(value) else value)

    def _call(self, request: CallModel) -> Any:
        messages = self.encoder.extend(request.messages, request.new_from)
        return self.model.function(messages, request) if self.model.wants_request else self.model.function(messages)


class ScriptedModel:
    """Replies from a list, in order: text, dicts, `Reply` objects, or exceptions to be raised.

    When the list is used up the run ends as it does at the step limit. `requests` holds every request that was
    made over all runs; the list starts anew with each run.
    """

    def __init__(self, replies: Iterable[Any], name: str = "scripted") -> None:
        if isinstance(replies, str | bytes | dict):
            raise ConfigError("scripted replies must be a list, not a single one; put it into [ ]")
        self.replies, self.name = tuple(replies), name
        self.requests: list[CallModel] = []

    def session(self) -> _ScriptedSession:
        """Start at the first reply."""
        return _ScriptedSession(self)


class _ScriptedSession:
    def __init__(self, model: ScriptedModel) -> None:
        self.model, self.moves = model, iter(model.replies)
        self.used = 0

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The next reply."""
        self.model.requests.append(request)
        if self.used >= len(self.model.replies):
            raise OutOfMoves(f"the script has no more than {self.used} replies")
        move = self.model.replies[self.used]
        self.used += 1
        if isinstance(move, BaseException):
            raise move
        return read_reply(move)

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The next reply."""
        return self.complete(request, on_delta)
