"""The machines of the test of network cuts: Postgres, Temporal, and workers, each in a network namespace of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cut_app import EFFECTS, Done, Place
from hosts import Hosts
from postgres_server import PostgresServer
from temporal_server import TemporalServer

HERE = Path(__file__).parent
APP = HERE / "cut_app.py"
TENLINES = Path(sys.executable).with_name("tenlines")


class Ground:
    """Workers, the servers that they share, and the world that they act on.

    Args:
        folder: For what they write.
    """

    def __init__(self, hosts: Hosts, postgres: PostgresServer, temporal: TemporalServer, folder: Path) -> None:
        self._hosts, self._folder = hosts, folder
        store = postgres.new_database().rpartition("/")[2]
        self._shared = [postgres.address(store), temporal.address]
        self._environment = {**os.environ, "PYTHONPATH": str(HERE), EFFECTS: str(folder / "effects")}
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self.store = postgres.address_here(store)
        self.place = Place(folder / "effects")

    def start(self, host: str, parallel: int) -> None:
        """Start a worker there."""
        journal, temporal = self._shared
        command = [str(TENLINES), "worker", "--app", str(APP), "--journal", journal, "--temporal", temporal, "--json"]
        with self._file(host, "out").open("wb") as out, self._file(host, "err").open("wb") as err:
            self._workers[host] = self._hosts.run(
                host,
                [*command, "--parallel", str(parallel)],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def submit(self, host: str, *tasks: str) -> None:
        """Submit tasks from there."""
        command = [sys.executable, str(APP), *self._shared, *tasks]
        sent = self._hosts.run(host, command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = sent.communicate(timeout=60)
        assert sent.returncode == 0, said.decode()

    def pid(self, host: str) -> int:
        """Of the worker there."""
        return self._workers[host].pid

    def done_by(self, host: str, since: float = 0.0, until: float = float("inf")) -> list[Done]:
        """What the worker there did in that time."""
        return [one for one in self.place.all() if one.pid == self.pid(host) and since <= one.at <= until]

    def said(self, host: str) -> list[dict[str, Any]]:
        """What the worker there has told so far."""
        return [json.loads(line) for line in self._file(host, "out").read_text().splitlines()]

    def last_words(self) -> str:
        """Of all workers, for whoever wonders."""
        ends = [(host, self._file(host, "out"), self._file(host, "err")) for host in self._workers]
        return "\n".join(f"{host}: {out.read_text()[-1500:]}{err.read_text()[-1500:]}" for host, out, err in ends)

    def within(self, seconds: float, is_so: Callable[[], bool]) -> None:
        """Wait until it is so."""
        until = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < until, self.last_words()
            time.sleep(0.1)

    def drain(self) -> dict[str, int]:
        """Have all workers leave. Returns how each ended."""
        for worker in self._workers.values():
            worker.send_signal(signal.SIGTERM)
        return {host: worker.wait(30) for host, worker in self._workers.items()}

    def close(self) -> None:
        """Kill what is left of the workers."""
        for worker in self._workers.values():
            worker.kill()
            worker.wait()

    def _file(self, host: str, name: str) -> Path:
        return self._folder / f"{host}.{name}"
