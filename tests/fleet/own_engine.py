"""An engine of one's own, in one process and without a memory: what the port asks of one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress

import msgspec

from tenlines.errors import TenlinesError
from tenlines.ports import Crew, Lane, News, Order, SystemClock, Timetable

_FAILED_S = 0.05


class OwnEngine:
    """Orders wait in one heap for each lane; those that sleep are looked at when they are due, or woken."""

    def __init__(self) -> None:
        self.orders: dict[str, Order] = {}
        self.timetables: list[Timetable] = []
        self.heard: dict[str, dict[str, int]] = {}
        self._crews: dict[Lane, int] = {}
        self._due: dict[str, float] = {}
        self._under_way: set[str] = set()

    async def start(self, order: Order) -> bool:
        """Keep the order."""
        if order.run_id in self.orders:
            return False
        self.orders[order.run_id] = order
        self._due[order.run_id] = SystemClock.now() + order.delay_s
        return True

    async def wake(self, run_id: str, news: News) -> bool:
        """It is due at once."""
        if run_id not in self.orders:
            return False
        heard = self.heard.setdefault(run_id, {})
        if heard.get(news.run_id, -1) < news.mark:
            heard[news.run_id] = news.mark
            self._due[run_id] = 0.0
        return True

    async def plan(self, timetables: Sequence[Timetable]) -> None:
        """Keep them: whoever tests says when one is due."""
        self.timetables += timetables

    async def workers(self, lane: Lane) -> int:
        """Those that are at work."""
        return self._crews.get(lane, 0)

    async def work(self, crew: Crew, lanes: Mapping[Lane, int], leaving: Awaitable[object]) -> None:
        """As many at once as there are places in the lanes."""
        for lane in lanes:
            self._crews[lane] = self._crews.get(lane, 0) + 1
        stop = asyncio.ensure_future(leaving)
        await asyncio.gather(*(self._serve(crew, lane, stop) for lane, places in lanes.items() for _ in range(places)))
        for lane in lanes:
            self._crews[lane] -= 1

    async def _serve(self, crew: Crew, lane: Lane, stop: asyncio.Future[object]) -> None:
        while not stop.done():
            order = self._next(lane)
            if order is None:
                await asyncio.sleep(0.005)
                continue
            self._under_way.add(order.run_id)
            try:
                await self._advance(crew, order)
            finally:
                self._under_way.discard(order.run_id)

    def _next(self, lane: Lane) -> Order | None:
        now = SystemClock.now()
        ready = [
            order
            for run_id, order in self.orders.items()
            if order.lane == lane and run_id not in self._under_way and self._due[run_id] <= now
        ]
        return min(ready, key=lambda order: order.priority, default=None)

    async def _advance(self, crew: Crew, order: Order) -> None:
        self._due[order.run_id] = SystemClock.now() + _FAILED_S
        heard = dict(self.heard.get(order.run_id, {}))
        with suppress(TenlinesError):
            back = await crew.advance(order, lambda steps: None)
            if back.why in ("ended", "taken"):
                del self.orders[order.run_id]
                return
            self.orders[order.run_id] = msgspec.structs.replace(order, again=False)
            heard[order.run_id] = max(back.mark, heard.get(order.run_id, -1))
            now = self.heard.setdefault(order.run_id, {})
            is_news = any(mark > heard.get(about, -1) for about, mark in now.items())
            now[order.run_id] = max(back.mark, now.get(order.run_id, -1))
            until = {"left": 0.0, "absent": self._due[order.run_id]}.get(back.why, back.until or float("inf"))
            self._due[order.run_id] = 0.0 if is_news else until
