"""One reader for each thing that is watched, however many watch it, and none while nobody does."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from tenlines.drivers.threads import in_thread
from tenlines.errors import TenlinesError
from tenlines.report import Fragment
from tenlines.serve.boards import Mark
from tenlines.serve.sights import Sight

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 1.0
"""Seconds between two looks: short where much happens, longer where nothing does."""
HEARTBEAT_S = 15.0
"""After so long without news something is sent all the same, so that a viewer who went away is noticed."""
MOST_KEPT = 16
"""Things that nobody watches and that are kept for whoever looks again."""

S = TypeVar("S", bound=Sight)


class News(NamedTuple):
    """What a viewer is owed: pieces, or nothing for a heartbeat."""

    mark: Mark
    pieces: list[Fragment]


class Tail(Generic[S]):
    """Looks at something again and again while somebody watches."""

    def __init__(self, sight: S) -> None:
        self.sight = sight
        self.viewers = 0
        self.failure = ""
        """Why it cannot be looked at any more."""
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._is_over = False

    async def look(self) -> None:
        """Look once.

        Raises:
            JournalError: It is not there, or cannot be read.
        """
        await in_thread(self.sight.look)

    async def follow(self, mark: Mark) -> AsyncGenerator[News, None]:
        """What changed after a mark, and what changes from now on, as fast as the viewer takes it."""
        self.viewers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_looking())
        try:
            while not self._is_over and not self.failure:
                news = self._news  # before looking: what comes in between is not missed
                reached, pieces = await in_thread(partial(self.sight.changes, mark))
                if pieces or reached != mark:
                    mark = reached
                    yield News(mark, pieces)
                elif not await _within(HEARTBEAT_S, news):
                    yield News(mark, [])
        finally:
            self.viewers -= 1

    def end(self) -> None:
        """Let all viewers go."""
        self._is_over = True
        if self._task is not None:
            self._task.cancel()
        self._announce()

    def _announce(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _keep_looking(self) -> None:
        wait = FIRST_WAIT_S
        while self.viewers and not self._is_over:
            try:
                has_changed = await in_thread(self.sight.look)
            except TenlinesError as error:
                self.failure = str(error)
                self._announce()
                return
            if has_changed:
                self._announce()
            wait = FIRST_WAIT_S if has_changed else min(LONGEST_WAIT_S, 1.5 * wait)
            await asyncio.sleep(wait)


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for an event; whether it came in time."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


class Tails(Generic[S]):
    """The tails by name; of those that nobody watches, the ones that were looked at last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Tail[S]] = OrderedDict()
        self._is_over = False

    def find(self, name: str) -> Tail[S] | None:
        """The tail of that name, unless there is none or it failed."""
        tail = self._kept.get(name)
        if tail is None or tail.failure:
            return None
        self._kept.move_to_end(name)
        return tail

    def keep(self, name: str, tail: Tail[S]) -> Tail[S]:
        """Add one. Returns the one that was added by somebody else meanwhile, if there is one."""
        if found := self.find(name):
            return found
        self._kept[name] = tail
        for other in [one for one, it in self._kept.items() if not it.viewers and one != name][:-MOST_KEPT]:
            del self._kept[other]
        if self._is_over:
            tail.end()
        return tail

    def end(self) -> None:
        """Let everybody go who watches anything."""
        self._is_over = True
        for tail in self._kept.values():
            tail.end()
