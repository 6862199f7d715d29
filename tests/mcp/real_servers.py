"""Servers that others wrote, from the registries, each in an environment of its own in the user's cache."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

TIME = "mcp-server-time==2026.10.19"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
UP_S = 20.0


class CannotBeHad(Exception):
    """A package could not be installed."""


def time_server() -> list[str]:
    """The command of a server from PyPI.

    Raises:
        CannotBeHad: With what the installer said.
    """
    folder = _folder("time", TIME)
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        raise CannotBeHad("there is no uv")
    python = str(folder / "bin" / "python")
    venv = [uv, "venv", "--clear", "--python", sys.executable, str(folder)]
    _install(folder, [venv, [uv, "pip", "install", "--python", python, TIME]])
    return [str(folder / "bin" / "mcp-server-time")]


def everything_server() -> list[str]:
    """The command of a server from npm. Debian's npm is installed where there is none and that is allowed.

    Raises:
        CannotBeHad: With what the installer said.
    """
    folder = _folder("everything", EVERYTHING)
    if shutil.which("npm") is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        subprocess.run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", "npm"], check=False, timeout=250)
    npm = shutil.which("npm")
    if npm is None:
        raise CannotBeHad("there is no npm")
    words = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), EVERYTHING]
    _install(folder, [words])
    return [str(folder / "node_modules" / ".bin" / "mcp-server-everything")]


def _folder(name: str, package: str) -> Path:
    from tenlines.models.weights import cache_dir

    version = package.rpartition("@" if package.startswith("@") else "==")[2]
    return cache_dir() / f"mcp-{name}-{version}-py{sys.version_info.minor}"


def _install(folder: Path, commands: Sequence[list[str]]) -> None:
    if (folder / "complete").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for words in commands:
        done = subprocess.run(words, capture_output=True, text=True, timeout=250, check=False)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise CannotBeHad(f"{' '.join(words)}: {done.stderr[-500:]}")
    (folder / "complete").touch()


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
