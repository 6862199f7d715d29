"""What Temporal remembers of a run: that it is to be worked on, by whom it was lost, until when it sleeps.

Nothing that a model is sent, and nothing that it said: that is in the journal. A history is a dozen events for each
time that a run is handed back. Changing the order of commands here breaks workflows that are under way: that needs
`workflow.patched`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutError

RUN, SCHEDULE, WAKE = "tenlines.run", "tenlines.schedule", "wake"
ADVANCE, SET_ASIDE, SUBMIT_DUE = "tenlines.advance", "tenlines.set_aside", "tenlines.submit_due"

LONGEST = timedelta(days=7)
"""For one turn of one worker: no run is kept so long, but one call of a tool may take its time."""
FEW_STEPS = 10
"""Workers that die while a run makes so few steps may have died of it."""
SUSPECT = 2
"""So many, and it is gone on with carefully. Runs that were beside it come into the same suspicion, and out of it."""
ABSENT_FOR = timedelta(minutes=10)
"""How long an order is kept whose run is not in the journal: whoever submitted it died in between."""
ABSENT_PAUSE = timedelta(seconds=5)
LOOK_AGAIN = timedelta(hours=1)
"""A run that waits for people is looked at so often, should news of it have gone astray."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=1)
"""Between two attempts where a worker could not go on with a run: each is twice the one before."""

CAREFUL = "!"
"""What is added to the name of a task queue for runs that are gone on with carefully."""

_ONCE = RetryPolicy(maximum_attempts=1)
_ON_AND_ON = RetryPolicy(maximum_interval=LONGEST_PAUSE)
Payload = dict[str, Any]


@workflow.defn(name=RUN, sandboxed=False)
class RunWorkflow:
    """One run, from the order to its end.

    Args:
        order: As `ports.Order`.
        care: `heartbeat_s`: silence after which a worker counts as dead. `tries`: how many may die under the run.
    """

    def __init__(self) -> None:
        self._news: dict[str, int] = {}
        self._heard = 0  # news that were news
        self._lost: list[int] = []  # steps that the run had made when a worker died
        self._guilty = 0  # workers that died while they went on with it carefully
        self._failures = 0  # in a row

    @workflow.run
    async def run(self, order: Payload, care: Payload) -> str:
        absent_until = workflow.now() + timedelta(seconds=order["delay_s"]) + ABSENT_FOR
        while True:
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[order, care])
            heard = self._heard
            try:
                back = await self._advance(order, care)
            except ActivityError as error:
                if isinstance(error.cause, TimeoutError):
                    self._lose(error.cause, order)
                    if self._guilty >= max(1, care["tries"] - SUSPECT):
                        return await self._set_aside(order, care)
                    order = {**order, "careful": len(self._lost) >= SUSPECT}
                else:
                    await self._sleep(heard, self._pause())
                continue
            self._news[order["run_id"]] = max(back["mark"], self._news.get(order["run_id"], -1))
            if order["careful"]:
                self._lost.clear()
            self._failures, self._guilty, order = 0, 0, {**order, "again": False, "careful": False}
            is_lost_order = back["why"] == "absent" and workflow.now() > absent_until
            if back["why"] in ("ended", "taken") or is_lost_order:
                return str(back["status"] or back["why"])
            if back["why"] != "left":
                await self._sleep(heard, _until(back))

    @workflow.signal(name=WAKE)
    def wake(self, about: str, mark: int) -> None:
        """Something is new about the run, or about one under its calls."""
        if self._news.get(about, -1) < mark:
            self._news[about] = mark
            self._heard += 1

    async def _advance(self, order: Payload, care: Payload) -> Payload:
        back: Payload = await workflow.execute_activity(
            ADVANCE,
            order,
            task_queue=workflow.info().task_queue + CAREFUL * order["careful"],
            start_to_close_timeout=LONGEST,
            heartbeat_timeout=timedelta(seconds=care["heartbeat_s"]),
            retry_policy=_ONCE,
        )
        return back

    async def _sleep(self, heard: int, longest: timedelta) -> None:
        """Until something is new, or the time is over."""
        if longest > timedelta(0):
            with suppress(asyncio.TimeoutError):
                await workflow.wait_condition(lambda: self._heard > heard, timeout=longest)

    def _lose(self, error: TimeoutError, order: Payload) -> None:
        """A worker died, or nobody heard of it any more. If it had not begun with the run, that is nobody's fault."""
        steps = int([*error.last_heartbeat_details, *self._lost[-1:], 0][0])
        if steps >= 0:
            self._lost = [*(one for one in self._lost if steps - one < FEW_STEPS), steps]
            self._guilty += order["careful"]

    def _pause(self) -> timedelta:
        """How long to wait after a failure."""
        self._failures = min(self._failures + 1, 10)
        pause: timedelta = FIRST_PAUSE * 2 ** (self._failures - 1)
        return min(pause, LONGEST_PAUSE)

    async def _set_aside(self, order: Payload, care: Payload) -> str:
        reason = (
            f"set aside: {care['tries']} workers died while they worked on it, and it had made {self._lost[-1]} steps"
        )
        await workflow.execute_activity(
            SET_ASIDE,
            args=[order, reason],
            start_to_close_timeout=timedelta(minutes=10),
            retry_policy=RetryPolicy(maximum_interval=LONGEST_PAUSE, maximum_attempts=care["tries"]),
        )
        return reason


@workflow.defn(name=SCHEDULE, sandboxed=False)
class ScheduleWorkflow:
    """A schedule is due: its run is submitted, once."""

    @workflow.run
    async def run(self, schedule: str) -> str:
        due = workflow.info().workflow_id
        run_id: str = await workflow.execute_activity(
            SUBMIT_DUE,
            args=[schedule, due],
            start_to_close_timeout=timedelta(minutes=1),
            schedule_to_close_timeout=timedelta(days=1),
            retry_policy=_ON_AND_ON,
        )
        return run_id


def _until(back: Payload) -> timedelta:
    """How long the run need not be looked at."""
    if back["why"] == "absent":
        return ABSENT_PAUSE
    if back["until"] is None:
        return LOOK_AGAIN
    return min(timedelta(seconds=max(0.0, back["until"] - workflow.time())), LONGEST)
