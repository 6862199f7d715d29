"""Whether a worker is well, and what it counted, over real HTTP; its page read by Prometheus' own parser."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tenlines.errors import ConfigError, EngineError, JournalError
from tenlines.fleet import health as module
from tenlines.fleet.health import Health, Look, looks_at, serving
from tenlines.fleet.metrics import METER, Instruments, Metrics
from tenlines.fleet.worker import Turn
from tenlines.journal import open_journal
from tenlines.ports import Handback, Lane, Order
from tenlines.testing import FakeClock

ORDER = Order("r1", "support", "2", "reports")
WHO = {"agent": "support", "version": "2", "queue": "reports"}


async def well() -> None:
    pass


def raising(error: Exception) -> Look:
    async def look() -> None:
        raise error

    return look


@asynccontextmanager
async def worker(
    looks: Mapping[str, Look] | None = None, is_leaving: Callable[[], bool] = lambda: False
) -> AsyncIterator[tuple[httpx.AsyncClient, Metrics, Health]]:
    """A server and somebody who asks it, once everybody was looked at."""
    health = Health({"journal": well, "engine": well} if looks is None else looks, is_leaving)
    metrics = Metrics(health, FakeClock())
    async with serving(health, metrics, "127.0.0.1", 0) as url, httpx.AsyncClient(base_url=url, verify=False) as client:
        await asyncio.sleep(0)
        yield client, metrics, health


def told(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 10))  # type: ignore[arg-type]


def samples(page: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found = [one for family in text_string_to_metric_families(page) for one in family.samples]
    return {(one.name, frozenset(one.labels.items())): one.value for one in found}


def value(page: str, name: str, **labels: str) -> float | None:
    return samples(page).get((name, frozenset(labels.items())))


# --- health ---------------------------------------------------------------------------------------------


def test_a_worker_that_is_well_is_alive_and_ready() -> None:
    async def test() -> None:
        async with worker() as (client, _, _):
            alive, ready = await client.get("/livez"), await client.get("/readyz")
            assert (alive.status_code, alive.text) == (200, "ok\n")
            assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": {}})

    told(test)


def test_who_does_not_answer_is_named_with_the_reason_and_the_worker_lives_on() -> None:
    looks = {"journal": raising(JournalError("no connection\nto \x1b[1mit")), "engine": raising(EngineError("gone"))}

    async def test() -> None:
        async with worker(looks) as (client, _, health):
            ready = await client.get("/readyz")
            assert ready.status_code == 503
            assert ready.headers["content-type"] == "application/json"
            assert ready.json() == {
                "ready": False,
                "reasons": {"journal": "no connection to \\x1b[1mit", "engine": "gone"},
            }
            assert (await client.get("/livez")).status_code == 200
            assert [one.missed for one in health.answering.values()] == [1, 1]

    told(test)


def test_it_is_ready_again_when_all_answer_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.01)
    fails = [True]

    async def flaky() -> None:
        if fails:
            raise JournalError("restarting")

    async def test() -> None:
        async with worker({"journal": flaky}) as (client, _, _):
            assert (await client.get("/readyz")).status_code == 503
            fails.clear()
            await asyncio.sleep(0.05)
            assert (await client.get("/readyz")).status_code == 200

    told(test)


def test_a_look_that_hangs_is_a_fault_after_a_while_and_keeps_no_other_look_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    asked: list[str] = []

    async def hangs() -> None:
        asked.append("journal")
        if len(asked) > 1:
            await asyncio.Event().wait()

    async def test() -> None:
        async with worker({"journal": hangs, "engine": well}) as (client, _, _):
            assert (await client.get("/readyz")).status_code == 200
            await asyncio.sleep(0.2)
            ready = await client.get("/readyz")
            assert ready.json()["reasons"] == {"journal": "no answer for 0 s"}
            page = (await client.get("/metrics")).text
            assert value(page, "tenlines_fleet_answering", of="journal") == 0
            assert value(page, "tenlines_fleet_answering", of="engine") == 1
            assert len(asked) == 2

    told(test)


def test_nobody_counts_as_answering_before_the_first_answer() -> None:
    async def test() -> None:
        async with worker({"engine": asyncio.Event().wait}) as (client, _, _):
            assert (await client.get("/readyz")).json()["reasons"] == {"engine": "it was not asked yet"}

    told(test)


def test_a_worker_that_leaves_is_alive_and_not_ready() -> None:
    async def test() -> None:
        async with worker(is_leaving=lambda: True) as (client, _, _):
            ready = await client.get("/readyz")
            assert ready.status_code == 503
            assert ready.json()["reasons"] == {
                "worker": "it is leaving: its runs are handed back, and it takes no more"
            }
            assert (await client.get("/livez")).status_code == 200
            assert value((await client.get("/metrics")).text, "tenlines_fleet_draining") == 1

    told(test)


def test_the_journal_and_the_engine_are_asked_for_something_small() -> None:
    lane, asked = Lane("default", "support"), list[Lane]()

    class Engine:
        async def workers(self, lane: Lane) -> int:
            asked.append(lane)
            return 1

    async def test() -> None:
        engine: Any = Engine()
        async with worker(looks_at(open_journal("memory"), engine, lane)) as (client, _, health):
            for one in health.answering.values():
                await one.ask()
            assert (await client.get("/readyz")).status_code == 200

    told(test)
    assert set(asked) == {lane}


def test_what_it_does_not_have_it_does_not_answer() -> None:
    async def test() -> None:
        async with worker() as (client, _, _):
            assert [(await client.get(path)).status_code for path in ("/", "/runs", "/livez/x")] == [404, 404, 404]
            assert (await client.post("/metrics")).status_code == 405
            assert (await client.head("/livez")).status_code == 200

    told(test)


def test_a_port_that_is_taken_or_a_host_that_is_none_is_said() -> None:
    async def test() -> None:
        async with worker() as (client, metrics, health):
            port = client.base_url.port or 0
            with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is in use: name another"):
                async with serving(health, metrics, "127.0.0.1", port):
                    pass
            with pytest.raises(ConfigError, match=r"--metrics: 203\.0\.113\.1:0 cannot be listened on"):
                async with serving(health, metrics, "203.0.113.1", 0):
                    pass

    told(test)


def test_the_server_leaves_signals_alone_and_frees_its_port() -> None:
    def handlers() -> tuple[object, object]:
        return signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    async def test() -> None:
        before = handlers()
        async with worker() as (client, _, _):
            assert (await client.get("/livez")).status_code == 200
            assert handlers() == before
        (await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", client.base_url.port)).close()

    told(test)


# --- metrics --------------------------------------------------------------------------------------------


def test_turns_are_counted_by_agent_queue_and_how_they_ended() -> None:
    ended, paused = Handback("ended", "answered"), Handback("paused", "awaiting_approval", 5.0)

    async def test() -> None:
        async with worker() as (client, metrics, _):
            clock: Any = metrics._clock
            metrics(Turn("began", ORDER))
            page = (await client.get("/metrics")).text
            assert value(page, "tenlines_fleet_under_way", **WHO) == 1
            clock.advance(2.0)
            metrics(Turn("handed back", ORDER, ended, "", 5, 0.3))
            for turn in (Turn("began", ORDER), Turn("handed back", ORDER, paused, "", 1)):
                metrics(turn)
            for turn in (Turn("began", ORDER), Turn("failed", ORDER, None, "the disk is full")):
                metrics(turn)
            metrics(Turn("set aside", ORDER, why="five died"))
            metrics(Turn("submitted", ORDER))
            page = (await client.get("/metrics")).text
        handed_back = "tenlines_fleet_handed_back_total"
        assert value(page, handed_back, **WHO, why="ended", status="answered") == 1
        assert value(page, handed_back, **WHO, why="paused", status="awaiting_approval") == 1
        assert value(page, "tenlines_fleet_under_way", **WHO) == 0
        assert value(page, "tenlines_fleet_failed_total", **WHO) == 1
        assert value(page, "tenlines_fleet_set_aside_total", **WHO) == 1
        assert value(page, "tenlines_fleet_submitted_total", **WHO) == 1
        assert value(page, "tenlines_fleet_turn_seconds_sum", **WHO) == 2.0
        assert value(page, "tenlines_fleet_turn_seconds_count", **WHO) == 3
        assert value(page, "tenlines_fleet_turn_seconds_bucket", **WHO, le="1.0") == 2
        assert value(page, "tenlines_fleet_turn_seconds_bucket", **WHO, le="2.5") == 3
        assert value(page, "tenlines_fleet_wait_seconds_count", **WHO) == 1
        assert value(page, "tenlines_fleet_wait_seconds_bucket", **WHO, le="0.25") == 0
        assert value(page, "tenlines_fleet_turn_steps_sum", **WHO) == 6

    told(test)


def test_health_is_on_the_page_and_so_is_the_process() -> None:
    async def test() -> None:
        async with worker({"journal": raising(JournalError("gone")), "engine": well}) as (client, _, _):
            answer = await client.get("/metrics")
            page = answer.text
            assert answer.headers["content-type"].startswith("text/plain; version=")
            assert value(page, "tenlines_fleet_answering", of="journal") == 0
            assert value(page, "tenlines_fleet_answering", of="engine") == 1
            assert value(page, "tenlines_fleet_missed_total", of="journal") == 1
            assert value(page, "tenlines_fleet_draining") == 0
            assert (value(page, "process_resident_memory_bytes") or 0) > 1e6

    told(test)


def test_names_of_any_kind_are_read_back_as_they_were() -> None:
    hostile = 'a"b\\n\n{x="y"}\u202e😀'

    async def test() -> None:
        async with worker() as (client, metrics, _):
            metrics(Turn("submitted", Order("r", hostile, queue="q")))
            page = (await client.get("/metrics")).text
            assert value(page, "tenlines_fleet_submitted_total", agent=hostile, version="", queue="q") == 1

    told(test)


def test_whoever_reads_openmetrics_gets_that() -> None:
    async def test() -> None:
        async with worker() as (client, metrics, _):
            metrics(Turn("submitted", ORDER))
            answer = await client.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
            assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
            found = {one.name for one in openmetrics.text_string_to_metric_families(answer.text)}
            assert "tenlines_fleet_submitted" in found

    told(test)


def test_other_providers_get_the_same() -> None:
    """So they go out with `--otel`, which sets up the global one."""
    reader = InMemoryMetricReader()
    counted = Instruments(MeterProvider([reader], shutdown_on_exit=False), Health({"engine": well}, lambda: False))
    counted.count(Turn("began", ORDER))
    data = reader.get_metrics_data()
    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    assert scope.scope.name == METER == "tenlines.fleet"
    assert {one.name for one in scope.metrics} >= {"tenlines.fleet.under_way", "tenlines.fleet.draining"}
