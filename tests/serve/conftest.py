"""A server in a process of its own, a journal with runs, and processes that work on runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # what the tests of this folder share
sys.path.insert(0, str(Path(__file__).parent.parent))  # the browser

from serve_world import SHOP, WORKER, Site, ended_run, until

from tenlines.journal.sqlite import SqliteJournal


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a journal and a file of tools."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(SHOP)
    return folder


@pytest.fixture(scope="session")
def journal(shop: Path) -> Iterator[SqliteJournal]:
    """The journal that is served, with a run in it."""
    made = SqliteJournal(shop / "journal.db")
    ended_run(made)
    yield made
    made.close()


@pytest.fixture(scope="session")
def server(shop: Path, journal: SqliteJournal) -> Iterator[Site]:
    """The server, with `pay` loaded; Carla decides."""
    made = Site(shop, "--by", "Carla", "--tools", "shop.py")
    yield made
    made.close()


@pytest.fixture
def site(server: Site) -> Iterator[Site]:
    """The same, without streams that an earlier test has left."""
    yield server
    server.forget_streams()


@pytest.fixture
def worker(shop: Path, journal: SqliteJournal) -> Iterator[Callable[..., Any]]:
    """Starts a process that works on a run, and goes on with it when its calls are decided."""
    started: list[subprocess.Popen[str]] = []

    def start(task: str, moves: list[Any]) -> tuple[subprocess.Popen[str], str]:
        words = [sys.executable, "-c", WORKER, str(shop / "journal.db"), task, repr(moves)]
        started.append(
            subprocess.Popen(words, cwd=shop, stdout=subprocess.PIPE, text=True, start_new_session=True, env=os.environ)
        )
        found = until(lambda: [one for one in journal.runs() if one.task == task], f"the run {task}")
        return started[-1], found[0].run_id

    yield start
    for one in started:
        if one.poll() is None:
            one.kill()
        one.wait()
        if one.stdout is not None:
            one.stdout.close()
