"""Servers that others wrote, from the registries, each in an environment of its own in the user's cache."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from environments import node_environment, python_environment

TIME = "mcp-server-time==2026.10.19"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
UP_S = 20.0


def time_server() -> list[str]:
    """The command of a server from PyPI.

    Raises:
        CannotBeHad: With what the installer said.
    """
    folder = python_environment("mcp-time-2026.10.19", TIME)
    return [str(folder / "bin" / "mcp-server-time")]


def everything_server() -> list[str]:
    """The command of a server from npm.

    Raises:
        CannotBeHad: With what the installer said.
    """
    folder = node_environment("mcp-everything-2026.8.31", EVERYTHING)
    return [str(folder / "node_modules" / ".bin" / "mcp-server-everything")]


@contextmanager
def over_http(command: Sequence[str]) -> Iterator[str]:
    """The address of a server that is started over HTTP on loopback, as long as it is entered."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = subprocess.Popen(
        [*command, "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + UP_S
        while time.monotonic() < until and not _answers(port):
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        child.kill()
        child.wait()


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
