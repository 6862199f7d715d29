"""Two processes that want the same run, or the next turn of the same session, at the same moment."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crash_races import Race
from crash_world import Case
from postgres_server import PostgresServer

PROGRAM = Path(__file__).with_name("crash_races.py")
ACTING = (("send", "put"), ("mail", "look"), ("send",))
LOOKING = (("look",),)


def raced(what: str, *races: Race) -> list[dict[str, Any]]:
    """What came of each race."""
    command = [sys.executable, "-W", "error", str(PROGRAM), what]
    texts = [msgspec.json.encode(race).decode() for race in races]
    done = subprocess.run([*command, *texts], stdout=subprocess.PIPE, text=True, check=True)
    return [msgspec.json.decode(line) for line in done.stdout.splitlines()]


class Stores:
    """Makes an empty store for each race."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._server, self._folder = server, folder

    def race(self, driver: str, store: str, rounds: int, replies: Any) -> Race:
        """A race of so many rounds."""
        name = f"{driver}-{store}"
        address = self._server.new_database() if store == "postgres" else str(self._folder / f"{name}.db")
        return Race(Case(name, replies, driver, address, str(self._folder / f"{name}.effects")), rounds)


@pytest.fixture
def stores(postgres_server: PostgresServer, tmp_path: Path) -> Stores:
    return Stores(postgres_server, tmp_path)


def summed(found: list[dict[str, Any]]) -> str:
    counts: Counter[str] = Counter()
    for one in found:
        counts.update(one["counts"])
    return ", ".join(f"{what} {number}" for what, number in counts.items())


@pytest.mark.slow
def test_of_two_that_take_up_the_same_run_one_ends_it_and_the_other_stops(
    stores: Stores, say: Callable[[str], None]
) -> None:
    found = raced(
        "owners",
        stores.race("sync", "sqlite", 100, ACTING),
        stores.race("sync", "postgres", 100, ACTING),
        stores.race("aio", "sqlite", 20, ACTING),
        stores.race("aio", "postgres", 20, ACTING),
    )
    say(f"two processes on one run, 240 times: the other one {summed(found)}")
    assert [one["wrong"] for one in found] == [[], [], [], []]
    assert sum(one["counts"].get("lost it", 0) for one in found) >= 20
    assert sum(one["counts"].get("taken from one that had acted", 0) for one in found) > 0


@pytest.mark.slow
def test_of_two_that_want_the_next_turn_of_a_session_one_has_it_and_the_other_is_told_at_once(
    stores: Stores, say: Callable[[str], None]
) -> None:
    found = raced(
        "sessions",
        stores.race("sync", "sqlite", 40, LOOKING),
        stores.race("sync", "postgres", 30, LOOKING),
        stores.race("aio", "sqlite", 20, LOOKING),
        stores.race("aio", "postgres", 10, LOOKING),
    )
    longest = max(one["longest_s"] for one in found)
    told = f"told after {longest * 1000:.0f} ms at most"
    say(f"two processes on one session, 100 times: the other one {summed(found)}; {told}")
    assert [one["wrong"] for one in found] == [[], [], [], []]
    assert sum(one["counts"].get("lost the write", 0) for one in found) > 0
