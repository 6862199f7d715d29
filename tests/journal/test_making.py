"""A file that several threads and processes make at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tenlines import Agent
from tenlines.journal.sqlite import SqliteJournal

OPEN_AND_CLOSE = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM runs'); c.close()"


@pytest.mark.slow
def test_what_is_written_while_another_thread_makes_the_file_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To close a file takes from the process all locks that it has on it, those of other threads too. A journal without
    its locks writes into a log that the next process takes away when it closes the file."""
    path, opened = tmp_path / "new.db", list[SqliteJournal]()
    really_open = os.open

    def slow_open(*args: Any) -> int:
        file = really_open(*args)
        other = threading.Thread(target=lambda: opened.append(SqliteJournal(path)))
        others.append(other)
        other.start()
        other.join(0.2)  # it is here by then, unless it is kept waiting, as it should be
        return file

    others: list[threading.Thread] = []
    monkeypatch.setattr("tenlines.journal.sqlite_file.os.open", slow_open)
    first = SqliteJournal(path)
    others[0].join()
    monkeypatch.undo()
    (second,) = opened
    assert Agent(["ok"], journal=second).run_sync("before").answer == "ok"
    first.close()
    subprocess.run([sys.executable, "-c", OPEN_AND_CLOSE, str(path)], check=True, timeout=60)
    run_id = Agent(["ok"], journal=second).run_sync("after").run_id
    fresh = SqliteJournal(path)
    assert [one.run_id for one in fresh.runs()][:1] == [run_id]
    fresh.close()
    second.close()
