"""A workflow as rounds: the function runs until nothing in it can go on without a result; what it wants is a round.

Pure: nothing is waited for here. An awaited stage stands in the function as a `Want`; whoever has the results gives
them all at once, and the next round follows. The same results lead to the same wants, so a function that is begun anew
and given what is known already comes to where it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tenlines.core.transcript import JsonObject
from tenlines.errors import FlowError

T = TypeVar("T")


class Want(Generic[T]):
    """One call of a stage or step, to be awaited in a workflow.

    Attributes:
        name: Of the stage or step.
        arguments: As JSON.
    """

    def __init__(self, name: str, arguments: JsonObject) -> None:
        self.name, self.arguments = name, arguments

    def __await__(self) -> Generator[Any, Any, T]:
        value: T = yield self
        return value


class Together(Generic[T]):
    """Several at once, to be awaited in a workflow: `together`."""

    def __init__(self, parts: Sequence[Awaitable[T]]) -> None:
        self.parts = parts

    def __await__(self) -> Generator[Any, Any, list[T]]:
        values: list[T] = yield self
        return values


def together(*parts: Awaitable[T]) -> Together[T]:
    """Do several things that do not need one another: `a, b = await together(look(x), look(y))`.

    Args:
        parts: Calls of stages and steps, or of async functions that await some.

    Returns:
        To be awaited: their values, in the order of `parts`. Where some fail, the others are finished first; then the
        first error is raised.
    """
    return Together(parts)


async def map_over(
    function: Callable[[Any], Awaitable[T]], items: Iterable[Any], *, at_once: int | None = None
) -> list[T]:
    """Do the same with each of many: `lines = await map_over(sum_up, articles)`.

    Args:
        function: A stage, a step, or an async function that awaits some; it takes one item.
        items: What it is given.
        at_once: At most so many are begun before all of these are done; None for all. How many stages of one round
            really run beside one another is said by `Flow(parallel=...)`.

    Returns:
        The values, in the order of the items.
    """
    given, values = list(items), list[T]()
    size = len(given) if at_once is None else at_once
    for first in range(0, len(given), max(1, size)):
        values += await together(*(function(one) for one in given[first : first + size]))
    return values


class Failure(NamedTuple):
    """What came instead of a value."""

    error: Exception


class _Group:
    """Tasks that somebody waits for together."""

    def __init__(self, waiting: _Task, size: int) -> None:
        self.waiting, self.missing = waiting, size
        self.values: list[Any] = [None] * size


class _Task(NamedTuple):
    """A coroutine of the function, and where its value goes."""

    coroutine: Coroutine[Any, Any, Any]
    group: _Group | None = None
    place: int = 0


class Rounds:
    """A function of a workflow that is under way.

    Args:
        main: The coroutine.
    """

    def __init__(self, main: Coroutine[Any, Any, Any]) -> None:
        self._main = _Task(main)
        self._ready: deque[tuple[_Task, Any]] = deque([(self._main, None)])
        self._waiting: list[tuple[_Task, Want[Any]]] = []
        self._open: list[Coroutine[Any, Any, Any]] = [main]
        self.is_done = False
        self.value: Any = None
        """What the function returned."""

    def advance(self) -> list[Want[Any]]:
        """Go on as far as it goes.

        Returns:
            What is wanted now, in the order in which it was asked for; nothing when the function has returned.

        Raises:
            FlowError: It waits for something that is no part of the workflow.
            Exception: What the function raises.
        """
        while self._ready:
            task, value = self._ready.popleft()
            try:
                self._step(task, value)
            except RuntimeError as error:
                if "no running event loop" not in str(error):
                    raise
                raise FlowError(_FOREIGN.format(what="asyncio")) from error
        return [want for _, want in self._waiting]

    def answer(self, values: Sequence[Any]) -> None:
        """Give what was wanted, in that order; a `Failure` is raised where its value was awaited."""
        waiting, self._waiting = self._waiting, []
        self._ready.extend((task, value) for (task, _), value in zip(waiting, values, strict=True))

    def close(self) -> None:
        """Give the function up."""
        for coroutine in reversed(self._open):
            coroutine.close()

    def _step(self, task: _Task, value: Any) -> None:
        try:
            run, throw = task.coroutine.send, task.coroutine.throw
            yielded = throw(value.error) if isinstance(value, Failure) else run(value)
        except StopIteration as end:
            self._end(task, end.value)
        except Exception as error:
            if task.group is None:
                raise
            self._end(task, Failure(error))
        else:
            self._wait(task, yielded)

    def _wait(self, task: _Task, yielded: Any) -> None:
        if isinstance(yielded, Want):
            self._waiting.append((task, yielded))
        elif isinstance(yielded, Together):
            self._spread(task, yielded.parts)
        else:
            self._ready.append((task, Failure(FlowError(_FOREIGN.format(what=type(yielded).__name__)))))

    def _spread(self, task: _Task, parts: Sequence[Awaitable[Any]]) -> None:
        group = _Group(task, len(parts))
        for place, part in enumerate(parts):
            coroutine = _awaited(part)
            self._open.append(coroutine)
            self._ready.append((_Task(coroutine, group, place), None))
        if not parts:
            self._ready.append((task, []))

    def _end(self, task: _Task, value: Any) -> None:
        if task.group is None:
            self.is_done, self.value = True, value
            return
        group = task.group
        group.values[task.place] = value
        group.missing -= 1
        if not group.missing:
            failed = next((one for one in group.values if isinstance(one, Failure)), None)
            self._ready.append((group.waiting, failed or group.values))


_FOREIGN = (
    "a workflow waited for {what}: it may await its stages, its steps and `together` of them, nothing else. Put what "
    "waits for anything outside into a step (`@tool`), so that it is recorded"
)


async def _awaited(part: Awaitable[T]) -> T:
    return await part
