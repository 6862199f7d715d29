"""Runs that wait in vain for a worker: no agent, another version, another queue. `tenlines worker` says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from tenlines.cli.fleets import lane_of
from tenlines.drivers.threads import in_thread
from tenlines.errors import JournalError
from tenlines.ports import Engine, Journal, Lane
from tenlines.trace.words import count

LOOKED_AT = 200
"""Open runs that are looked at at a time, the newest."""


class Strays:
    """Looks for runs that this worker does not take. Each lane is told once.

    Args:
        lanes: What the worker takes.
    """

    def __init__(self, store: Journal, engine: Engine, lanes: Collection[Lane]) -> None:
        self._store, self._engine, self._lanes = store, engine, lanes
        self._known: dict[str, Lane | None] = {}
        self._told: set[Lane] = set()

    async def look(self) -> list[str]:
        """What is new to say.

        Raises:
            JournalError: The journal cannot be read.
            EngineError: The engine cannot be reached.
        """
        said: list[str] = []
        for lane, (number, is_untouched) in (await in_thread(self._foreign)).items():
            others = await self._engine.workers(lane)
            if others and not is_untouched:
                continue  # they are at work on it
            self._told.add(lane)
            if not others or lane.queue in {one.queue for one in self._lanes}:
                said.append(self._words(lane, number, others))
        return said

    def _foreign(self) -> dict[Lane, tuple[int, bool]]:
        """How many runs are open in each lane that is not ours and was not told, and whether nobody has begun some."""
        found = self._store.runs(LOOKED_AT, status="open")
        self._known = {one.run_id: self._lane(one.run_id) for one in found}
        numbers = Counter(self._known.values())
        untouched = {self._known[one.run_id] for one in found if not one.owner}
        return {
            lane: (number, lane in untouched)
            for lane, number in numbers.items()
            if lane is not None and lane not in self._lanes and lane not in self._told
        }

    def _lane(self, run_id: str) -> Lane | None:
        if run_id in self._known:
            return self._known[run_id]
        try:
            return lane_of(self._store, run_id)
        except JournalError:  # it is damaged, or gone by now
            return None

    def _words(self, lane: Lane, number: int, others: int) -> str:
        waits = f"{count(number, 'run')} wait{'s' * (number == 1)}"
        who = lane.who
        if lane in {one._replace(queue=lane.queue) for one in self._lanes}:
            queues = ", ".join(dict.fromkeys(one.queue for one in self._lanes))
            return f"{waits} for {who} in the queue {lane.queue}, which no worker takes (this one takes {queues})"
        here = dict.fromkeys(one.who for one in self._lanes if one.agent == lane.agent)
        has = f" (it has {', '.join(here)})" if here else ""
        elsewhere = f"; {count(others, 'other worker')} ha{'s' if others == 1 else 've'} it" if others else ""
        return f"{waits} for {who}, which this worker does not have{has}{elsewhere}"
