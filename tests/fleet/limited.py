"""Processes that keep to limits together, and the laws by which they are judged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROCESS = Path(__file__).with_name("limited_process.py")


@contextmanager
def processes(count: int, *told: str) -> Iterator[list[subprocess.Popen[str]]]:
    """So many of them, begun at the same time. What is left of them is killed at the end."""
    command = [sys.executable, str(PROCESS), *told]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    try:
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in started:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        yield started
    finally:
        for one in started:
            one.kill()
            one.communicate()


def most_in(window: float, sent: Sequence[tuple[float, float]]) -> float:
    """The most that was sent in any stretch of that length, its end not included.

    Args:
        sent: When, in order, and how much.
    """
    most = total = 0.0
    first = 0
    for at, weight in sent:
        total += weight
        while sent[first][0] <= at - window + 1e-6:  # the grain of a time of day in a float
            total -= sent[first][1]
            first += 1
        most = max(most, total)
    return most
