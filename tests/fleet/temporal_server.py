"""A real Temporal server for tests: with a file in a temporary folder, on a free port of loopback, killed when it is
done with.

    with TemporalServer() as server:
        server.restart(hard=True)  # the same port, the same file

Clients that live while it is killed belong into a process of their own: theirs may crash at its end.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pytest
from postgres_server import LOOPBACK, free_port

from tenlines.fleet.dev_server import answers, program, server_command, watch

SECONDS = 30.0
"""After which starting or stopping has failed."""


class TemporalServer:
    """One server with a folder of its own. Started when it is made.

    Args:
        ip: Where clients find it. It talks with itself on loopback, so elsewhere it listens on all that there is.
        port: None for any that is free.
        inside: What goes before its command, and before those that ask it: leads into the namespace that has `ip`.

    Attributes:
        address: `IP:PORT`; the same after each restart.
    """

    def __init__(self, ip: str = LOOPBACK, port: int | None = None, inside: Sequence[str] = ()) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="tenlines-temporal-"))
        self._ip, self._port, self._inside = ip, port or free_port(), tuple(inside)
        self._log = self._home / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self.address = f"{ip}:{self._port}"
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> TemporalServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        ip = LOOPBACK if self._ip == LOOPBACK else "0.0.0.0"
        command = server_command(program(), self._home / "temporal.db", self._port, ip)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._inside, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._watcher = watch(self._process.pid)
        until = time.monotonic() + SECONDS
        while not answers(program(), self.address, self._inside):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"Temporal did not start: {self._log.read_text()[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it (-9), as if its machine had gone down. `start` brings it back."""
        if self._watcher is not None:
            self._watcher.kill()  # before the id of the server can be that of somebody else
            self._watcher.communicate()
        if self._process is not None:
            self._process.kill()
            self._process.wait(SECONDS)
        self._process = self._watcher = None

    def stop(self) -> None:
        """End it as an administrator would."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(SECONDS)
        self.kill()

    def restart(self, *, hard: bool = False) -> None:
        """Stop or kill it, and start it on the same port with the same file."""
        if hard:
            self.kill()
        else:
            self.stop()
        self.start()

    def close(self) -> None:
        """Have it drop everything, and remove its folder."""
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)


@pytest.fixture(scope="module")
def temporal_server() -> Iterator[TemporalServer]:
    """One server for the tests of a module. A test that stops it starts it again."""
    with TemporalServer() as server:
        yield server
