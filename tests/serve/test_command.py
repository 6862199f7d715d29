"""`tenlines serve` as a command: what it refuses, what it needs, what it brings in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from serve_world import PATIENCE_S, ended_run, waiting_run

from tenlines.cli import serve as command
from tenlines.core.replay import fold
from tenlines.journal.sqlite import SqliteJournal
from tenlines.trace.redaction import Redaction
from tenlines.trace.story import read_story


def run(folder: Path, *words: str, prepare: str = "") -> Any:
    code = f"import sys\n{prepare}\nfrom tenlines.cli import main\nmain({list(words)!r})"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=PATIENCE_S, cwd=folder
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    journal = SqliteJournal(tmp_path / "journal.db")
    ended_run(journal)
    journal.close()
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["starlette", "jinja2"])
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(folder: Path, missing: str) -> None:
    done = run(folder, "serve", "--journal", "journal.db", prepare=f"sys.modules[{missing!r}] = None")
    assert (done.returncode, done.stdout) == (2, "")
    assert "tenlines[serve]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_help_brings_in_none_of_what_it_needs(folder: Path) -> None:
    told = (
        "import atexit; atexit.register(lambda: print(sorted({'starlette', 'uvicorn', 'jinja2'} & set(sys.modules))))"
    )
    done = run(folder, "serve", "--help", prepare=told)
    assert done.stdout.endswith("[]\n")
    assert "--port" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--no-redact", "--redact", "x"), "--no-redact takes nothing out"),
        (("--tools", "none.py"), "none.py"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_served(folder: Path, words: Any, said: str) -> None:
    done = run(folder, "serve", "--journal", "journal.db", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_of_a_run_that_is_not_over_the_desk_says_what_can_be_done_not_the_report(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    waiting, ended = waiting_run(journal), ended_run(journal, steps=1)
    assert command._moves(None, read_story(journal.read(waiting))) == ()
    ((why, how),) = command._moves("x.db", read_story(journal.read(ended)))
    assert why
    assert how == f"tenlines resume {ended} --journal x.db --max-steps 2"
    assert fold(journal.read(ended)).result().status == "max_steps"
    journal.close()


def test_a_password_of_the_journal_is_on_no_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tenlines.cli import options

    store = SqliteJournal(folder / "journal.db")
    monkeypatch.setattr(options, "open_existing", lambda name: store)
    setup = command._setup("postgresql://me:secret@host/agents", None, None, Redaction)
    run_id = store.runs()[0].run_id
    assert setup.hands.go_on(run_id) == f"tenlines resume {run_id} --journal postgresql://me@host/agents"
    store.close()
