"""How many runs of a queue are under way at once in the whole fleet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import msgspec

from tenlines.errors import ConfigError
from tenlines.ports import check_queue


class Queue(msgspec.Struct, frozen=True):
    """What is to be known of a queue.

    Raises:
        ConfigError: It has no proper name, or a number makes no sense.
    """

    name: str
    at_once: int | None = None
    """Runs of it that are worked on at once in the whole fleet. None: as many as the workers take."""

    def __post_init__(self) -> None:
        check_queue(self.name)
        if self.at_once is not None and (not isinstance(self.at_once, int) or self.at_once < 1):
            raise ConfigError(
                f"Queue({self.name!r}): at_once must be a whole number from 1 up, or None for no limit; got "
                f"{self.at_once!r}"
            )


class Places(Protocol):
    """The places of queues, of which each run that is worked on has one."""

    def of(self, queue: Queue) -> AbstractAsyncContextManager[None]:
        """Wait for a place in a queue, and hold it within the block. A queue without a limit is entered at once.

        Raises:
            ConnectionFailed: Whoever keeps the places cannot be reached, and it was tried for long.
        """
        ...

    def close(self) -> None:
        """Let go of all places."""
        ...


class LocalPlaces:
    """Places that hold within this process alone: for a journal in SQLite, which one worker has to itself.

    For one event loop.
    """

    def __init__(self) -> None:
        self._queues: dict[Queue, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def of(self, queue: Queue) -> AsyncIterator[None]:
        """Wait for a place, and hold it."""
        if queue.at_once is None:
            yield
            return
        async with self._queues.setdefault(queue, asyncio.Semaphore(queue.at_once)):
            yield

    def close(self) -> None:
        """There is nothing to let go of."""
