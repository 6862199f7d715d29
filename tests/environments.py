"""What others wrote, each in an environment of its own in the user's cache, installed once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

SECONDS = 280
"""How long one command of an installation may take."""
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""Those of the system on Debian. Clients that bring their own are told of them."""
Steps = Sequence[Sequence[str]]


class CannotBeHad(Exception):
    """It could not be installed."""


def python_environment(name: str, package: str) -> Path:
    """The folder of an environment with a package of Python.

    Raises:
        CannotBeHad: With what the installer said.
    """
    return _made(name, lambda folder: [_by_uv(folder, package), _by_pip(folder, package)])


def node_environment(name: str, package: str) -> Path:
    """The folder that a package of npm is installed in. Debian's npm is installed where there is none and that is
    allowed.

    Raises:
        CannotBeHad: With what the installer said.
    """
    if shutil.which("npm") is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        words = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", "npm"]
        subprocess.run(words, check=False, timeout=SECONDS, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    options = ("--silent", "--no-audit", "--no-fund", "--fetch-retries", "1")
    return _made(name, lambda folder: [[("npm", "install", *options, "--prefix", str(folder), package)]])


def _by_uv(folder: Path, package: str) -> Steps:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}") or "uv"
    install = (uv, "pip", "install", "--quiet", "--system-certs", "--python", str(folder / "bin" / "python"), package)
    return ((uv, "venv", "--clear", "--quiet", "--python", sys.executable, str(folder)), install)


def _by_pip(folder: Path, package: str) -> Steps:
    """Slower, and it reads the settings of pip."""
    install = (str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", package)
    return ((sys.executable, "-m", "venv", str(folder)), install)


def _made(name: str, ways: Callable[[Path], Sequence[Steps]]) -> Path:
    """The folder, made in one of the ways unless it is there as a whole."""
    from tenlines.models.weights import cache_dir

    folder = cache_dir() / f"{name}-py{sys.version_info.minor}"
    if (folder / "complete").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    failed = ""
    for steps in ways(folder):
        # scripts of an environment name its folder, so it is made in its place, and is there once it is complete
        shutil.rmtree(folder, ignore_errors=True)
        failed = next(filter(None, map(_failed, steps)), "")
        if not failed:
            (folder / "complete").touch()
            return folder
    shutil.rmtree(folder, ignore_errors=True)
    raise CannotBeHad(failed)


def _failed(words: Sequence[str]) -> str:
    """What a command said that failed; "" where it did not."""
    told = {"NODE_EXTRA_CA_CERTS": str(CERTIFICATES)} if CERTIFICATES.exists() else {}
    try:
        done = subprocess.run(
            words, env={**told, **os.environ}, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{words[0]}: {error}"
    return f"{' '.join(words)}: {done.stderr[-500:] or done.stdout[-500:]}" if done.returncode else ""
