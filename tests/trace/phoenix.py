"""A real consumer of traces: Phoenix, in an environment of its own, on loopback."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from environments import python_environment

VERSION = "20.26"
PACKAGE = f"arize-phoenix=={VERSION}.*"
UP_S = 120.0
"""How long it is waited for. It takes 14 s where nothing else runs."""


def installed() -> Path:
    """Its environment, made once and kept in the user's cache.

    Raises:
        CannotBeHad: With what the installer said.
    """
    return python_environment(f"phoenix-{VERSION}", PACKAGE)


class Phoenix:
    """The server, from start to stop.

    Args:
        folder: Where it keeps what it is sent.
    """

    def __init__(self, folder: Path) -> None:
        begin = time.perf_counter()
        script = installed() / "bin" / "phoenix"
        self.install_s = time.perf_counter() - begin
        port, grpc = _free_port(), _free_port()
        self.url = f"http://127.0.0.1:{port}"
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PHOENIX_"))},
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(grpc),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        self._output = (folder / "output").open("w")
        self._process = subprocess.Popen(
            [str(script), "serve"], env=environment, cwd=folder, stdout=self._output, stderr=subprocess.STDOUT
        )
        begin = time.perf_counter()
        self._until(lambda: self._get("/healthz") is not None, UP_S)
        self.start_s = time.perf_counter() - begin

    def spans(self, many: int) -> list[dict[str, Any]]:
        """What it has, once it has so many."""
        found: list[dict[str, Any]] = []

        def has_them() -> bool:
            answer = self._get("/v1/projects/default/spans?limit=1000")
            found[:] = json.loads(answer)["data"] if answer else []
            return len(found) >= many

        self._until(has_them, 20.0)
        return found

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        self._output.close()

    def _get(self, path: str) -> bytes | None:
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                body: bytes = answer.read()
                return body
        except OSError:
            return None

    def _until(self, happened: Callable[[], bool], seconds: float) -> None:
        end = time.monotonic() + seconds
        while not happened():
            assert self._process.poll() is None, "Phoenix died"
            assert time.monotonic() < end, "Phoenix did not answer in time"
            time.sleep(0.1)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
