"""Places of queues: never more than there are, whoever dies, and none of them is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cutting_proxy import CuttingProxy
from limited import processes
from postgres_server import PostgresServer

from tenlines.errors import ConfigError, ConnectionFailed, JournalError
from tenlines.fleet import postgres_places
from tenlines.fleet.places import LocalPlaces, Places, Queue
from tenlines.fleet.postgres_places import PostgresPlaces

ONE, THREE = Queue("reports", at_once=1), Queue("reports", at_once=3)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in less time."""
    for name, value in (("POLL_S", (0.01, 0.03)), ("WATCH_S", 0.05), ("SETTLE_S", 0.3), ("KEPT_S", 0.2)):
        monkeypatch.setattr(postgres_places, name, value)


@pytest.fixture
def make(postgres_address: str) -> Iterator[Callable[..., PostgresPlaces]]:
    """Makes the places of one more worker."""
    made: list[PostgresPlaces] = []

    def make(address: str = postgres_address, **options: Any) -> PostgresPlaces:
        made.append(PostgresPlaces(address, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def held(address: str) -> int:
    """How many places the server knows of."""
    with psycopg.connect(address, autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND datname = current_database() "
            "WHERE locktype = 'advisory' AND objsubid = 2"
        ).fetchone()
    assert row is not None
    return int(row[0])


def cut_all(address: str) -> None:
    """End all connections but our own, as a restart does."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")


async def until(is_so: Callable[[], bool], seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


class Crowd:
    """Runs that enter a queue, are there for a moment and leave it."""

    def __init__(self) -> None:
        self.here = self.most = self.done = 0

    async def visit(self, places: Places, queue: Queue, seconds: float = 0.002) -> None:
        async with places.of(queue):
            self.here += 1
            self.most = max(self.most, self.here)
            try:
                await asyncio.sleep(seconds)
            finally:
                self.here -= 1
        self.done += 1


# --- both kinds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["local", "postgres"])
def test_a_queue_is_full_and_never_more(kind: str, make: Callable[..., PostgresPlaces]) -> None:
    async def work() -> None:
        places: Places = LocalPlaces() if kind == "local" else make()
        crowd = Crowd()
        await asyncio.gather(*(crowd.visit(places, THREE) for _ in range(30)))
        assert (crowd.most, crowd.done) == (3, 30)

    asyncio.run(work())


@pytest.mark.parametrize("kind", ["local", "postgres"])
def test_a_queue_without_a_limit_asks_nobody(kind: str) -> None:
    async def work() -> None:
        places: Places = LocalPlaces() if kind == "local" else PostgresPlaces("postgresql://127.0.0.1:1/nowhere")
        crowd = Crowd()
        await asyncio.gather(*(crowd.visit(places, Queue("default")) for _ in range(30)))
        assert crowd.most == 30

    asyncio.run(work())


@pytest.mark.parametrize("kind", ["local", "postgres"])
def test_a_run_that_fails_or_is_cancelled_leaves_its_place(
    kind: str, make: Callable[..., PostgresPlaces], postgres_address: str
) -> None:
    async def work() -> None:
        places: Places = LocalPlaces() if kind == "local" else make()
        with pytest.raises(ZeroDivisionError):
            async with places.of(ONE):
                raise ZeroDivisionError
        crowd = Crowd()
        inside = asyncio.create_task(crowd.visit(places, ONE, 60.0))
        await until(lambda: crowd.here == 1)
        waiting = [asyncio.create_task(crowd.visit(places, ONE, 60.0)) for _ in range(3)]
        for pause in (0.0, 0.001, 0.02):  # before it asks, while it asks, and while it waits
            await asyncio.sleep(pause)
            waiting.pop().cancel()
        inside.cancel()
        await asyncio.gather(inside, return_exceptions=True)
        await asyncio.wait_for(Crowd().visit(places, ONE), 5)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": " "}, "' ' is no name of a queue"),
        ({"name": "a/b"}, "without /"),
        ({"name": "a", "at_once": 0}, r"Queue\('a'\): at_once must be a whole number from 1 up"),
        ({"name": "a", "at_once": 2.5}, "got 2.5"),
    ],
)
def test_a_queue_that_makes_no_sense_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Queue(**fields)


# --- several workers ------------------------------------------------------------------------------------


def test_workers_share_the_places_of_a_queue_and_no_others(
    make: Callable[..., PostgresPlaces], postgres_server: PostgresServer
) -> None:
    async def work() -> None:
        one, two, elsewhere = make(), make(), make(postgres_server.new_schema())
        async with one.of(ONE):
            await asyncio.wait_for(Crowd().visit(elsewhere, ONE), 5)  # a fleet in another schema
            await asyncio.wait_for(Crowd().visit(two, Queue("other", at_once=1)), 5)
            crowd = Crowd()
            waiting = asyncio.create_task(crowd.visit(two, ONE))
            await asyncio.sleep(0.1)
            assert crowd.most == 0
        await asyncio.wait_for(waiting, 5)

    asyncio.run(work())


@pytest.mark.slow
def test_a_worker_does_not_keep_a_place_from_the_others_for_good(make: Callable[..., PostgresPlaces]) -> None:
    async def work() -> None:
        one, two, crowd = make(), make(), Crowd()
        many = [asyncio.create_task(crowd.visit(one, ONE, 0.02)) for _ in range(200)]
        await until(lambda: crowd.done > 0)
        await asyncio.wait_for(Crowd().visit(two, ONE), 3)
        assert crowd.done < 150
        for task in many:
            task.cancel()

    asyncio.run(work())


def test_nothing_is_left_of_those_who_were_cancelled_while_they_asked(
    make: Callable[..., PostgresPlaces], postgres_address: str
) -> None:
    async def work() -> None:
        places, crowd = make(), Crowd()
        await crowd.visit(places, THREE)
        for pause in [0.0, 0.0005, 0.001, 0.002, 0.004] * 8:
            task = asyncio.create_task(crowd.visit(places, THREE, 60.0))
            await asyncio.sleep(pause)
            task.cancel()
        await until(lambda: held(postgres_address) == 0)
        await asyncio.gather(*(crowd.visit(places, THREE) for _ in range(3)))

    asyncio.run(work())


def test_a_place_that_was_left_to_somebody_who_is_cancelled_is_given_back(
    make: Callable[..., PostgresPlaces], postgres_address: str
) -> None:
    async def work() -> None:
        places, crowd = make(), Crowd()
        inside = asyncio.create_task(crowd.visit(places, ONE, 60.0))
        await until(lambda: crowd.here == 1)
        waiting = asyncio.create_task(crowd.visit(places, ONE, 60.0))
        await asyncio.sleep(0.03)
        inside.cancel()
        waiting.cancel()
        await asyncio.gather(inside, waiting, return_exceptions=True)
        await until(lambda: held(postgres_address) == 0)

    asyncio.run(work())


# --- a line that is lost ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_places_are_taken_anew_before_anybody_else_can_have_them(
    make: Callable[..., PostgresPlaces], postgres_address: str
) -> None:
    async def work() -> None:
        one, two, crowd = make(), make(), Crowd()
        inside = [asyncio.create_task(crowd.visit(one, THREE, 60.0)) for _ in range(3)]
        await until(lambda: crowd.here == 3)
        waiting = [asyncio.create_task(crowd.visit(two, THREE, 60.0)) for _ in range(3)]
        await asyncio.sleep(0.1)
        for _ in range(3):
            cut_all(postgres_address)
            await asyncio.sleep(0.2)
        assert crowd.most == 3
        assert held(postgres_address) == 3
        inside[0].cancel()
        await asyncio.gather(inside[0], return_exceptions=True)
        await until(lambda: crowd.here == 3 and held(postgres_address) == 3)
        for task in inside + waiting:
            task.cancel()

    asyncio.run(work())


@pytest.mark.slow
def test_a_run_that_lost_its_place_goes_on_and_the_next_waits_for_it(
    make: Callable[..., PostgresPlaces], postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        one, two = make(), make()
        ours, theirs, after = Crowd(), Crowd(), Crowd()
        monkeypatch.setattr(postgres_places, "WATCH_S", 0.2)
        inside = asyncio.create_task(ours.visit(one, ONE, 60.0))
        await until(lambda: ours.here == 1)
        waiting = asyncio.create_task(after.visit(one, ONE, 60.0))
        with one._keeper._using:  # its line is down, and stays down for the moment
            cut_all(postgres_address)
            other = asyncio.create_task(theirs.visit(two, ONE, 60.0))
            await until(lambda: theirs.here == 1)
        await asyncio.sleep(0.5)
        assert (ours.here, after.here) == (1, 0), "what is under way goes on, and nothing new begins"
        other.cancel()
        await until(lambda: [place.slot for place in one._keeper._places] == [0])
        await asyncio.sleep(0.1)
        assert (ours.here, after.here) == (1, 0), "the place that was free is that of the run under way"
        inside.cancel()
        await until(lambda: after.here == 1)
        waiting.cancel()
        await asyncio.gather(inside, other, waiting, return_exceptions=True)
        await until(lambda: held(postgres_address) == 0)

    asyncio.run(work())


@pytest.mark.slow
def test_a_connection_that_the_server_still_believes_in_does_not_keep_its_places(
    make: Callable[..., PostgresPlaces], postgres_address: str
) -> None:
    async def work() -> None:
        places, crowd = make(), Crowd()
        inside = asyncio.create_task(crowd.visit(places, ONE, 60.0))
        await until(lambda: crowd.here == 1)
        with places._keeper._using:  # what a cut line leaves: one that only the server knows of
            silent, places._keeper._connection = places._keeper._connection, None
        assert silent is not None
        await until(lambda: places._keeper._connection is not None)
        assert {one.slot for one in places._keeper._places} == {0}
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            silent.execute("SELECT 1")
        silent.close()
        inside.cancel()

    asyncio.run(work())


def test_a_server_that_is_lost_for_long_is_said_to_be(
    make: Callable[..., PostgresPlaces], postgres_address: str, postgres_server: PostgresServer
) -> None:
    async def work(proxy: CuttingProxy) -> None:
        address = postgres_server.address(postgres_address.rpartition("/")[2], port=proxy.port)
        places = make(address, patience_s=0.1)
        proxy.is_deaf = True
        with pytest.raises(ConnectionFailed, match=r"could not be asked for a place: .*tried for 0.1 s"):
            await Crowd().visit(places, ONE)
        proxy.is_deaf = False
        await Crowd().visit(places, ONE)
        places.close()
        with pytest.raises(JournalError, match="are closed"):
            await Crowd().visit(places, ONE)

    with CuttingProxy(postgres_server.port) as proxy:
        asyncio.run(work(proxy))


# --- real processes ---------------------------------------------------------------------------------------


def read(file: Path) -> list[tuple[str, str, str, float]]:
    """Process, run, in or out, and when."""
    lines = (line.split() for line in file.read_text().splitlines())
    return sorted(((pid, f"{pid} {run}", way, float(at)) for pid, run, way, at in lines), key=lambda line: line[3])


def most_at_once(file: Path, killed: dict[str, float]) -> int:
    """The most runs that were in the queue at once. What was killed was out of it then."""
    inside: set[str] = set()
    ends = [(pid, "", "killed", at) for pid, at in killed.items()]
    most = 0
    for pid, run, way, _ in sorted(read(file) + ends, key=lambda line: line[3]):
        if way == "killed":
            inside = {one for one in inside if not one.startswith(f"{pid} ")}
        elif way == "+":
            inside.add(run)
        else:
            inside.discard(run)
        most = max(most, len(inside))
    return most


@pytest.mark.slow
def test_places_hold_while_processes_are_killed_and_the_server_is_restarted(
    tmp_path: Path, postgres_address: str, postgres_server: PostgresServer, say: Callable[[str], None]
) -> None:
    at_once, file, killed = 5, tmp_path / "log", dict[str, float]()
    with processes(4, "places", postgres_address, str(file), str(at_once)) as four:
        time.sleep(0.9)
        for one in four[:2]:
            killed[str(one.pid)] = time.monotonic()
            one.kill()
            one.wait()
            time.sleep(0.3)
        restarted = time.monotonic()
        postgres_server.restart(hard=True)
        back = time.monotonic()
        time.sleep(1.8)
        held_at_last = held(postgres_address)
    entries = [line for line in read(file) if line[2] == "+"]
    per_process = [sum(pid == str(one.pid) for pid, *_ in entries) for one in four]
    say(
        f"{at_once} places, 4 processes x 8 runs, 2 killed, Postgres killed and restarted in {back - restarted:.1f} s: "
        f"at most {most_at_once(file, killed)} at once, {len(entries)} entries {per_process}, "
        f"{sum(line[3] > back for line in entries)} after the restart"
    )
    assert most_at_once(file, killed) == at_once
    assert all(per_process)
    assert 0 < held_at_last <= at_once
    assert sum(line[3] > back for line in entries) > at_once, "all places are in use again"


def test_threads_are_gone_when_it_is_closed(make: Callable[..., PostgresPlaces]) -> None:
    async def work() -> None:
        places = make()
        await Crowd().visit(places, ONE)
        places.close()
        watch = places._keeper._watch
        assert watch is not None
        await until(lambda: not watch.is_alive())

    asyncio.run(work())
    assert not any(one.name == "tenlines-places" and one.is_alive() for one in threading.enumerate())
