"""A real Chromium for tests: the one of the system, installed where it is missing and that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def chromium() -> str:
    """Where Chromium is. The test is skipped, loudly, where there is none and none can be installed."""
    for name in (CHROMIUM, shutil.which("chromium"), shutil.which("chromium-browser"), shutil.which("google-chrome")):
        if name is not None and Path(name).exists():
            return name
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet: dict[str, Any] = {"check": False, "capture_output": True, "env": os.environ | _QUIET}
        subprocess.run(["apt-get", "-qq", "update"], **quiet, timeout=120)
        subprocess.run(["apt-get", "-qq", "-y", "install", "chromium"], **quiet, timeout=280)
        if Path(CHROMIUM).exists():
            return CHROMIUM
    pytest.skip("NO BROWSER: pages were NOT looked at; install Chromium (Debian: apt-get install chromium)")


_QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


@contextmanager
def browser() -> Iterator[Browser]:
    """One Chromium, closed at the end. Each context of it has a profile of its own.

    For the tests of one module: as long as it is open, this thread has a running event loop, and nothing else can begin
    one here.
    """
    path = chromium()
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield one
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                one.close()
