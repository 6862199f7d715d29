"""Children of one process that has everything imported: made in milliseconds, and each may kill itself.

The process that forks has one thread and opens no journal.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

SECONDS = 60
"""After which a child that hangs is ended by the alarm, which counts as a failure."""
Tell = Callable[[Any], None]


class Reaper:
    """Counts the places where a process may die, and kills it at one of them.

    Attributes:
        places: Those that were passed.
    """

    def __init__(self, die_at: int | None, tell: Tell) -> None:
        self._die_at, self._tell = die_at, tell
        self._count = itertools.count()
        self.places: list[str] = []

    def __call__(self, place: str) -> None:
        self.places.append(place)
        if next(self._count) == self._die_at:
            self._tell({"died": place})
            os.kill(os.getpid(), signal.SIGKILL)


class Child:
    """A process that does one piece of work, and what it says meanwhile: one JSON value for each line of a pipe."""

    def __init__(self, work: Callable[[Tell], None]) -> None:
        self._pipe, end = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._pipe)
            _live(work, end)
        os.close(end)
        self._text = b""

    def lines(self) -> Iterator[Any]:
        """What it says, until it ends."""
        while True:
            line, found, rest = self._text.partition(b"\n")
            if found:
                self._text = rest
                yield json.loads(line)
            elif more := os.read(self._pipe, 1 << 16):
                self._text += more
            else:
                return

    def hear(self) -> Any:
        """The next thing that it says; {} when it has ended."""
        return next(self.lines(), {})

    def kill(self) -> None:
        """As `kill -9` does."""
        os.kill(self.pid, signal.SIGKILL)

    def end(self) -> tuple[int, list[Any]]:
        """Wait for its end: the signal that ended it, or 0, and what else it had to say."""
        said = list(self.lines())
        os.close(self._pipe)
        _, status = os.waitpid(self.pid, 0)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, said


def _live(work: Callable[[Tell], None], end: int) -> None:
    signal.alarm(SECONDS)

    def tell(what: Any) -> None:
        os.write(end, json.dumps(what).encode() + b"\n")

    try:
        work(tell)
    except BaseException:
        tell({"error": traceback.format_exc()})
    finally:
        os._exit(0)


def say(**what: Any) -> None:
    """Tell the test, which reads what this process prints."""
    print(json.dumps(what), flush=True)


def ready_to_fork() -> None:
    """What is here by now stays: children need not look at it, and so share it."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(0.0005)  # threads take turns often, so that more orders are seen
