"""Processes that are forked off a test, that die when they are told to, and whose effects outlive them."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from tenlines.core import events as ev
from tenlines.core.events import AnyEvent
from tenlines.journal.sqlite import SqliteJournal

KILLED = 9
"""What a process ends with that died in the middle."""
PATIENCE_S = 60
"""Seconds after which a process that hangs is ended."""


def die() -> NoReturn:
    """End this process here and now: nothing is cleaned up or written."""
    os._exit(KILLED)


def start(work: Callable[[], Any]) -> int:
    """Have a process of its own do some work; its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE_S)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def end_of(child: int) -> int:
    """Wait for a process, and say what it ended with: 0 where its work was done."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_process(work: Callable[[], Any]) -> int:
    """Do some work in a process of its own, to its end."""
    return end_of(start(work))


class Effects:
    """What tools did to the world: lines in a file, whichever process they ran in."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "effects"
        self._path.touch()

    def add(self, what: str) -> None:
        """Something happens."""
        with self._path.open("a") as file:
            file.write(f"{what}\n")

    @property
    def all(self) -> list[str]:
        """What happened, in order."""
        return self._path.read_text().splitlines()


def dies_once_stored(results: int) -> type[SqliteJournal]:
    """A journal that ends the process as soon as this many results are on disk."""

    class Dying(SqliteJournal):
        left = results

        def append(self, run_id: str, event: AnyEvent) -> None:
            super().append(run_id, event)
            self.left -= isinstance(event, ev.CallReturned)

        def commit(self, run_id: str) -> None:
            super().commit(run_id)
            if self.left <= 0:
                die()

        async def acommit(self, run_id: str) -> None:
            await super().acommit(run_id)
            if self.left <= 0:
                die()

    return Dying
