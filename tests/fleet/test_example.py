"""From nothing: the two commands of the page bring up a whole fleet and ask it something; a worker dies meanwhile."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil
import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 60.0
"""After which something has failed."""


class Named(NamedTuple):
    """A worker, as `up` names it."""

    number: str
    pid: int
    metrics: str


def commands() -> list[str]:
    """The commands of the page, and those of the README, which are the same."""
    found = [
        re.findall(r"^\$ (\./examples/fleet/\S.*)$", (ROOT / page).read_text(), re.MULTILINE)
        for page in ("docs/fleet.md", "README.md")
    ]
    assert found[0] == [one.partition("  #")[0].strip() for one in found[1]]
    return found[0]


class Up:
    """What the first command brings up, with what it said so far."""

    def __init__(self, command: str, state: Path) -> None:
        self.environment = {**os.environ, "FLEET_STATE": str(state)}
        self.log = state / "said"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command.split(),
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def hears(self, pattern: str) -> None:
        """Wait until it says that."""
        until = time.monotonic() + SECONDS
        while not re.search(pattern, self.log.read_text(), re.MULTILINE):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def workers(self) -> list[Named]:
        """Those that it named."""
        named = re.findall(r"^worker (\d) +process (\d+), (\S+)$", self.log.read_text(), re.MULTILINE)
        return [Named(number, int(pid), url) for number, pid, url in named]

    def at_work(self) -> Named:
        """Who has a run."""
        until = time.monotonic() + SECONDS
        while True:
            for one in self.workers():
                page = httpx.get(one.metrics, verify=False).text
                if re.search(r"^tenlines_fleet_under_way\{.*\} 1\.0$", page, re.MULTILINE):
                    return one
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """As Ctrl-C does it."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(SECONDS)


@pytest.fixture
def up() -> Iterator[Up]:
    state = Path(tempfile.mkdtemp(prefix="tenlines-fleet-"))
    state.chmod(0o755)  # Postgres does not run as root
    one = Up(commands()[0], state)
    try:
        yield one
    finally:
        one.stop()
        shutil.rmtree(state)


@pytest.mark.slow
def test_two_commands_bring_a_fleet_up_and_ask_it_and_a_worker_may_die(up: Up) -> None:
    up.hears(r"^up\. In another terminal")
    family = psutil.Process(up.process.pid).children(recursive=True)
    asked = subprocess.Popen(
        ["bash", "-c", commands()[1]], cwd=ROOT, env=up.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    dies = up.at_work()
    time.sleep(1.2)  # its first reply takes a second
    os.kill(dies.pid, signal.SIGKILL)
    up.hears(rf"^worker {dies.number} is gone \(-9\)")
    answer, remarks = asked.communicate(timeout=SECONDS)
    assert asked.returncode == 0, remarks
    assert answer.decode() == "Order 1042 (rain coat, umbrella) is in transit: Hamburg sorting centre.\n"
    up.hears(r"worker \d \| .* answered.*support@1")
    up.stop()
    assert up.log.read_text().endswith("all is stopped; it goes on with ./examples/fleet/up\n")
    _, alive = psutil.wait_procs(family, timeout=5)
    assert alive == []


def test_a_question_without_a_fleet_says_what_to_start(tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", commands()[1]],
        cwd=ROOT,
        env={**os.environ, "FLEET_STATE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "no fleet is up: start one in another terminal with ./examples/fleet/up\n"
