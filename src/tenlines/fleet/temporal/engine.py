"""`Temporal`: the engine over the official SDK.

A run is one workflow, found by the run's id. It waits in the task queue of its lane, and so does its work: a worker
that lacks the agent never sees it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import copy_context
from datetime import timedelta
from functools import cache
from typing import Any

import msgspec

from tenlines.errors import EngineError, MissingExtra
from tenlines.ports import HEARTBEAT_S, Crew, Handback, Lane, News, Order, SystemClock, Timetable

try:
    from temporalio import activity
    from temporalio.api.enums.v1 import TaskQueueType
    from temporalio.api.taskqueue.v1 import TaskQueue
    from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
    from temporalio.client import (
        Client,
        Schedule,
        ScheduleActionStartWorkflow,
        ScheduleAlreadyRunningError,
        ScheduleOverlapPolicy,
        SchedulePolicy,
        ScheduleSpec,
        ScheduleUpdate,
    )
    from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
    from temporalio.envconfig import ClientConfigProfile
    from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
    from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
    from temporalio.service import KeepAliveConfig, RPCError, RPCStatusCode
    from temporalio.worker import PollerBehaviorSimpleMaximum, UnsandboxedWorkflowRunner, Worker

    from tenlines.fleet.temporal import workflows as wf
except ImportError as error:
    raise MissingExtra("a fleet on Temporal", "fleet") from error

PREFIX = "tenlines-"
CONNECT_S, CALL_S = 5.0, 10.0
ALIVE = KeepAliveConfig(interval_millis=10_000, timeout_millis=5_000)
"""A connection on which nothing comes through any more is made anew after so long."""
THROTTLE_S = 0.2
"""How often the SDK lets heartbeats out. How often they are worth it is said here (`_Heart`)."""
POLLERS, ONE_POLLER = PollerBehaviorSimpleMaximum(2), PollerBehaviorSimpleMaximum(1)
RECENT_S = 120.0
"""A worker that asked for work within this is there: it asks at least once a minute."""
_log = logging.getLogger("tenlines.fleet.temporal")


class Temporal:
    """A Temporal server, or Temporal Cloud.

    Args:
        address: `HOST:PORT`; None for what the environment or the configuration file of Temporal says
            (`TEMPORAL_ADDRESS`; keys and certificates come from there in any case), else `127.0.0.1:7233`.
        namespace: None for what is configured, else `default`.
        heartbeat_s: Silence after which a worker counts as dead.
        tries: Workers that may die under a run before it is set aside.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        namespace: str | None = None,
        heartbeat_s: float = HEARTBEAT_S,
        tries: int = 5,
    ) -> None:
        configured = ClientConfigProfile.load().to_client_connect_config()
        self._options: dict[str, Any] = {"target_host": "127.0.0.1:7233", "keep_alive_config": ALIVE, **configured}
        if address is not None:
            self._options["target_host"] = address
        if namespace is not None:
            self._options["namespace"] = namespace
        self._care = {"heartbeat_s": heartbeat_s, "tries": tries}
        self._client: tuple[asyncio.AbstractEventLoop, Client] | None = None

    def __repr__(self) -> str:
        return f"<Temporal at {self.address}>"

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return str(self._options["target_host"])

    async def client(self) -> Client:
        """The connection of this event loop.

        Raises:
            EngineError: There is no Temporal at the address.
        """
        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            try:
                wait = timedelta(seconds=CONNECT_S)
                client = await Client.connect(**self._options, connect_timeout=wait, runtime=_runtime(os.getpid()))
            except (RuntimeError, RPCError) as error:
                why = "" if "ConnectError" in str(error) else f" ({_short(error)})"
                raise EngineError(
                    f"there is no Temporal at {self.address}: start it, name another one, or have "
                    f"`tenlines worker --dev` bring one up{why}"
                ) from error
            self._client = (loop, client)
        return self._client[1]

    # --- for whoever submits --------------------------------------------------------------------------

    async def start(self, order: Order) -> bool:
        """See to it that a run is worked on."""
        client = await self.client()
        with _told(self.address):
            try:
                await client.start_workflow(
                    wf.RUN,
                    args=[msgspec.to_builtins(order), self._care],
                    id=PREFIX + order.run_id,
                    task_queue=str(order.lane),
                    id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                    id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                    priority=Priority(priority_key=order.priority),
                    start_delay=timedelta(seconds=order.delay_s) if order.delay_s else None,
                    rpc_timeout=timedelta(seconds=CALL_S),
                )
            except WorkflowAlreadyStartedError:
                return False
        return True

    async def wake(self, run_id: str, news: News) -> bool:
        """Something is new about a run that sleeps."""
        handle = (await self.client()).get_workflow_handle(PREFIX + run_id)
        with _told(self.address):
            try:
                await handle.signal(wf.WAKE, args=[news.run_id, news.mark], rpc_timeout=timedelta(seconds=CALL_S))
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return False
                raise
        return True

    async def plan(self, timetables: Sequence[Timetable]) -> None:
        """See to it that schedules are kept."""
        client = await self.client()
        for one in timetables:
            schedule, name = _schedule(one), PREFIX + one.name

            def replaced(_: object, by: Schedule = schedule) -> ScheduleUpdate:
                return ScheduleUpdate(by)

            with _told(self.address):
                try:
                    await client.create_schedule(name, schedule)
                except ScheduleAlreadyRunningError:
                    await client.get_schedule_handle(name).update(replaced)

    async def workers(self, lane: Lane) -> int:
        """How many workers take runs from a lane."""
        client = await self.client()
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=str(lane)),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        with _told(self.address):
            answer = await client.workflow_service.describe_task_queue(request, timeout=timedelta(seconds=CALL_S))
        since = SystemClock().now() - RECENT_S
        return len({one.identity for one in answer.pollers if one.last_access_time.ToMicroseconds() / 1e6 > since})

    # --- for workers ----------------------------------------------------------------------------------

    async def work(self, crew: Crew, lanes: Mapping[Lane, int], leaving: Awaitable[object]) -> None:
        """Have `crew` work on what waits in these lanes until `leaving` is over."""
        client = await self.client()
        workers = [self._worker(client, crew, str(lane), at_once) for lane, at_once in lanes.items()]
        workers += [self._worker(client, crew, str(lane) + wf.CAREFUL, 1, is_careful=True) for lane in lanes]
        running = [asyncio.ensure_future(one.run()) for one in workers]
        try:
            await asyncio.wait([*running, asyncio.ensure_future(leaving)], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping = [asyncio.ensure_future(one.shutdown()) for one in workers]
            await asyncio.wait(running)
            for one in stopping:
                one.cancel()  # it would wait for ever for a worker that was cancelled
            for one in running:
                one.result()

    def _worker(self, client: Client, crew: Crew, queue: str, at_once: int, is_careful: bool = False) -> Worker:
        return Worker(
            client,
            task_queue=queue,
            workflows=[] if is_careful else [wf.RunWorkflow, wf.ScheduleWorkflow],
            activities=activities_of(crew),
            workflow_runner=UnsandboxedWorkflowRunner(),
            max_cached_workflows=0,
            max_concurrent_activities=at_once,
            workflow_task_poller_behavior=POLLERS,
            activity_task_poller_behavior=ONE_POLLER if is_careful else POLLERS,
            max_heartbeat_throttle_interval=timedelta(seconds=THROTTLE_S),
            graceful_shutdown_timeout=timedelta(days=1),
        )


@cache
def _runtime(pid: int) -> Runtime:
    """What the SDK runs in, one for each process. It would write warnings to standard output, where results go."""
    forwarding = LogForwardingConfig(_log, append_target_to_name=False)
    logging_ = LoggingConfig(TelemetryFilter(core_level="WARN", other_level="ERROR"), forwarding)
    return Runtime(telemetry=TelemetryConfig(logging=logging_))


def activities_of(crew: Crew) -> list[Callable[..., Any]]:
    """What workflows ask of a worker."""

    @activity.defn(name=wf.ADVANCE)
    async def advance(order: wf.Payload) -> wf.Payload:
        turn = asyncio.ensure_future(crew.advance(_order(order), _Heart().beat))
        return _payload(await _to_its_end(turn))

    @activity.defn(name=wf.SET_ASIDE)
    async def set_aside(order: wf.Payload, reason: str) -> None:
        await crew.set_aside(_order(order), reason)

    @activity.defn(name=wf.SUBMIT_DUE)
    async def submit_due(schedule: str, due: str) -> str:
        return await crew.submit_due(schedule, due.removeprefix(PREFIX))

    return [advance, set_aside, submit_due]


class _Heart:
    """Tells the server that a run is worked on: at first, when that begins, and three times in the silence that is
    allowed."""

    def __init__(self) -> None:
        self._here = copy_context()  # a heartbeat is that of the activity in whose context it is sent
        timeout = activity.info().heartbeat_timeout
        self._every_s = timeout.total_seconds() / 3 if timeout else 0.0
        self._sent: int | None = None
        self._sent_at = 0.0

    def beat(self, steps: int) -> None:
        """As `ports.Beat`."""
        now = asyncio.get_running_loop().time()
        has_begun = self._sent is None or (self._sent < 0 <= steps)
        if has_begun or now - self._sent_at >= self._every_s:
            self._sent, self._sent_at = steps, now
            self._here.run(activity.heartbeat, steps)


async def _to_its_end(turn: asyncio.Future[Handback]) -> Handback:
    """A turn is never cut off: cancelling would end the run. Where the server gave this worker up, another one takes
    the run over, and the journal refuses this one's next commit."""
    while True:
        try:
            return await asyncio.shield(turn)
        except asyncio.CancelledError:
            if turn.cancelled():
                raise
        except Exception as error:
            raise ApplicationError(str(error), type=type(error).__name__) from error


class _told:
    """Errors of the server in our words."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RPCError):
            raise EngineError(f"Temporal at {self._address} did not do it: {_short(error)}") from error


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _schedule(one: Timetable) -> Schedule:
    action = ScheduleActionStartWorkflow(wf.SCHEDULE, one.name, id=f"{PREFIX}due-{one.name}", task_queue=str(one.lane))
    spec = ScheduleSpec(cron_expressions=list(one.cron), time_zone_name=one.time_zone)
    return Schedule(action=action, spec=spec, policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.ALLOW_ALL))


def _order(payload: wf.Payload) -> Order:
    return msgspec.convert(payload, Order)


def _payload(handback: Handback) -> wf.Payload:
    built: wf.Payload = msgspec.to_builtins(handback)
    return built
