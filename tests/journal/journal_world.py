"""Runs to put into journals, and stores to put them into."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tenlines import Agent, Reply, ToolCall, tool
from tenlines.core import events as ev
from tenlines.core.events import AnyEvent
from tenlines.core.transcript import Text, User
from tenlines.journal.memory import MemoryJournal
from tenlines.journal.sqlite import SqliteJournal
from tenlines.models.plain import ScriptedModel

PATIENCE_S = 30.0
"""How long something that must happen is waited for."""


def start(run_id: str, *, seq: int = 0, **fields: Any) -> ev.RunStarted:
    """The first event of a run."""
    given = {"agent": "a", "model": "m", "messages": (User((Text("do it"),)),), **fields}
    return ev.RunStarted(seq=seq, at=1.0, run_id=run_id, **given)


def said(seq: int, text: str = "more") -> ev.MessageQueued:
    """A later event."""
    return ev.MessageQueued(seq=seq, at=1.0 + seq, parts=(Text(text),))


def log(run_id: str, count: int = 3, **fields: Any) -> list[AnyEvent]:
    """A run in which somebody goes on talking."""
    return [start(run_id, **fields), *(said(seq, f"{run_id} {seq}") for seq in range(1, count))]


def put(journal: Any, run_id: str, *events: AnyEvent) -> None:
    """Append, then commit."""
    for event in events:
        journal.append(run_id, event)
    journal.commit(run_id)


def live(journal: Any, large: str = "", steps: int = 3) -> str:
    """A real run of an agent, which ended with an answer. Returns its id."""

    @tool(read_only=True, max_result=10**6)
    def look(number: int) -> str:
        """Look a number up."""
        return f"row {number} {large}"

    moves = [Reply(calls=(ToolCall(f"c{n}", "look", f'{{"number": {n}}}'),)) for n in range(steps - 1)]
    agent = Agent(ScriptedModel([*moves, Reply("done")]), [look], journal=journal)
    return agent.run_sync("look all rows up").run_id


class Store:
    """A place that keeps runs, which can be opened more than once."""

    def __init__(self, name: str, opened: Callable[[], Any]) -> None:
        self.name, self._opened = name, opened
        self.journals: list[Any] = []

    def open(self) -> Any:
        """Another journal on the same place, as another process would have it."""
        self.journals.append(self._opened())
        return self.journals[-1]

    def close(self) -> None:
        for journal in self.journals:
            journal.close()


def memory_store() -> Store:
    journal = MemoryJournal()
    return Store("memory", lambda: journal)


def sqlite_store(folder: Path) -> Store:
    return Store("sqlite", lambda: SqliteJournal(folder / "journal.db"))


def postgres_store(address: str) -> Store:
    from tenlines.journal.postgres import PostgresJournal

    return Store("postgres", lambda: PostgresJournal(address))


def together(works: list[Callable[[], None]]) -> list[BaseException]:
    """Run them in threads. Returns what they raised."""
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    return raised
