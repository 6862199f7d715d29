"""Who watches a run: observers are shown what happens, and whatever they do, the run goes on."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

from tenlines.core.events import AnyEvent
from tenlines.ports import CallContext, Delta, Observer, OnDelta

_log = logging.getLogger("tenlines")

Around: TypeAlias = Callable[..., AbstractContextManager[object]]


class Watchers:
    """The observers of one run. What they raise is counted, and logged once.

    Args:
        observers: As they were given to the agent.
        run_id: The run.
        past: Reads what happened in it before.
    """

    def __init__(self, observers: Sequence[Observer], run_id: str, past: Callable[[], Iterable[AnyEvent]]) -> None:
        self.errors = 0
        self._failures: set[tuple[int, str]] = set()
        """Who failed with what: each is logged once, however often it comes."""
        self._counting = threading.Lock()  # tools run in threads of their own
        self._observers = [own for one in observers if (own := self._own(one, run_id, past)) is not None]
        self._shows = [one.on_event for one in self._observers]
        self._calls: list[Around] = [one.around_call for one in self._observers if hasattr(one, "around_call")]
        self._requests: list[Around] = [one.around_request for one in self._observers if hasattr(one, "around_request")]
        self.on_delta = self._watched()
        """Where pieces of a reply go; None when nobody watches, so that nothing is streamed for nobody."""

    def show(self, event: AnyEvent) -> None:
        """An event that was recorded."""
        for show in self._shows:
            self._try(show, event)

    def around_call(self, call: Callable[[], Any], ctx: CallContext, is_async: bool) -> Callable[[], Any]:
        """The code of a tool, with those around it who want to be; the code itself where nobody does."""
        return self._inside(call, self._calls, (ctx,), is_async) if self._calls else call

    def around_request(self, ask: Callable[..., Any], is_async: bool) -> Callable[..., Any]:
        """The same for what asks a model."""
        return self._inside(ask, self._requests, (), is_async) if self._requests else ask

    def _inside(
        self, call: Callable[..., Any], arounds: Sequence[Around], told: tuple[Any, ...], is_async: bool
    ) -> Callable[..., Any]:
        async def task(*args: Any) -> Any:
            with self._entered(arounds, told):
                return await call(*args)

        def function(*args: Any) -> Any:
            with self._entered(arounds, told):
                value = call(*args)
            if isinstance(value, Coroutine):  # what undoes may be one; nothing of it has run yet
                return self._inside(lambda: value, arounds, told, True)()
            return value

        return task if is_async else function

    @contextmanager
    def _entered(self, arounds: Sequence[Around], told: tuple[Any, ...]) -> Iterator[None]:
        """Everybody who is around something. None of them learns what it raises, so none can swallow it."""
        inside: list[AbstractContextManager[object]] = []
        for around in arounds:
            self._try(lambda around=around: inside.append(_entered(around(*told))), whose=around)
        try:
            yield
        finally:
            for manager in reversed(inside):
                self._try(manager.__exit__, None, None, None)

    def _own(self, observer: Observer, run_id: str, past: Callable[[], Iterable[AnyEvent]]) -> Observer | None:
        """The observer for this run alone, where there is one; None where it could not be had."""
        if not hasattr(observer, "for_run"):
            return observer
        made: list[Observer] = []
        self._try(lambda: made.append(observer.for_run(run_id, past())), whose=observer.for_run)
        return made[0] if made else None

    def _watched(self) -> OnDelta | None:
        shows: list[OnDelta] = [observer.on_delta for observer in self._observers if hasattr(observer, "on_delta")]
        if not shows:
            return None

        def show(delta: Delta) -> None:
            for one in shows:
                self._try(one, delta)

        return show

    def _try(self, show: Callable[..., Any], *what: Any, whose: Callable[..., Any] | None = None) -> None:
        try:
            show(*what)
        except Exception as error:  # noqa: BLE001  # an observer is foreign code; it can never break a run
            self._note(whose or show, error)

    def _note(self, show: Callable[..., Any], error: Exception) -> None:
        failure = (id(getattr(show, "__self__", show)), "".join(traceback.format_exception_only(error)))
        with self._counting:
            self.errors += 1
            is_known = failure in self._failures
            self._failures.add(failure)
        if not is_known:
            _log.warning("an observer failed; the run goes on", exc_info=error)


def _entered(manager: AbstractContextManager[object]) -> AbstractContextManager[object]:
    manager.__enter__()
    return manager
