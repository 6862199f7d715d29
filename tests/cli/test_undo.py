"""`undo`, without a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shopping import SHOP, done_in, events_of, starter

from tenlines.core import events as ev

Tenlines = Callable[..., Any]


@pytest.fixture
def shopped(home: Path, tenlines: Tenlines, server: Any) -> Path:
    """A run that paid twice and wrote a mail."""
    (home / "shop.py").write_text(SHOP)
    starter(tenlines, server)(("pay", {"amount": 5}), ("mail", {"text": "hello"}), ("pay", {"amount": 7}), ("look", {}))
    (home / "done.txt").unlink()
    return home


def test_dry_run_lists_what_would_be_undone_in_order_and_what_stands(shopped: Path, tenlines: Tenlines) -> None:
    done = tenlines("undo", "last", "--dry-run")
    assert done.code == 0
    assert done.out.index("1.3  pay(amount=7)") < done.out.index("1.1  pay(amount=5)")
    assert done.out.index("cannot be undone") < done.out.index('1.2  mail(text="hello")')
    assert "look" not in done.out
    assert done_in(shopped) == []
    assert isinstance(events_of()[-1], ev.RunEnded)
    plan = json.loads(tenlines("undo", "last", "--dry-run", "--json").out)
    assert [one["place"] for one in plan["would_undo"]] == ["1.3", "1.1"]
    assert [one["name"] for one in plan["standing"]] == ["mail"]


def test_without_a_terminal_yes_has_to_be_said(shopped: Path, tenlines: Tenlines) -> None:
    done = tenlines("undo", "last")
    assert done.code == 2
    assert "--yes" in done.err
    assert "--dry-run" in done.err
    assert done_in(shopped) == []


def test_it_undoes_the_last_call_first_and_reports(shopped: Path, tenlines: Tenlines) -> None:
    done = tenlines("undo", "last", "--yes", "--by", "Carla", "--reason", "by mistake")
    assert done.code == 0
    assert done_in(shopped) == ["took back 7 of 1:2", "took back 5 of 1:0"]
    assert done.out.splitlines() == ["undone  1.3  pay", "undone  1.1  pay", "stands  1.2  mail: it has no undo"]
    asked = next(event for event in events_of() if isinstance(event, ev.UndoRequested))
    assert (asked.by, asked.reason) == ("Carla", "by mistake")
    text = tenlines("show", "last").out
    assert "undo requested by Carla: by mistake" in text
    assert "2 calls undone; what still stands: mail" in text
    again = tenlines("undo", "last", "--yes")
    assert again.code == 0
    assert "is left to undo" in again.out
    assert len(done_in(shopped)) == 2


def test_what_fails_is_reported_and_tried_again_by_the_same_command(shopped: Path, tenlines: Tenlines) -> None:
    (shopped / "bank-is-closed").touch()
    done = tenlines("undo", "last", "--yes", "--json")
    report = json.loads(done.out)
    assert done.code == 1
    assert report["undone"] == []
    assert [(one["place"], one["outcome"]) for one in report["failed"]] == [
        ("1.3", "tool_error"),
        ("1.1", "tool_error"),
    ]
    assert "the bank is closed" in report["failed"][0]["error"]
    assert [one["name"] for one in report["standing"]] == ["mail"]
    assert "could not be undone" in tenlines("show", "last").out
    (shopped / "bank-is-closed").unlink()
    done = tenlines("undo", "last", "--yes")
    assert done.code == 0
    assert len(done_in(shopped)) == 2


def test_tools_whose_file_is_gone_are_asked_for(shopped: Path, tenlines: Tenlines) -> None:
    (shopped / "shop.py").rename(shopped / "moved.py")
    done = tenlines("undo", "last", "--yes")
    assert done.code == 2
    assert "--tools" in done.err
    assert tenlines("undo", "last", "--yes", "--tools", "moved.py").code == 0


def test_a_run_that_did_nothing_has_nothing_to_undo(home: Path, tenlines: Tenlines, server: Any) -> None:
    server.replies = [server.says("ok")]
    tenlines("run", "x", "--model", server.model)
    done = tenlines("undo", "last")
    assert done.code == 0
    assert "is left to undo" in done.out


def test_a_run_that_waits_is_cancelled_and_undone(home: Path, tenlines: Tenlines, server: Any) -> None:
    (home / "shop.py").write_text(SHOP)
    starter(tenlines, server)(("pay", {"amount": 5}), ("pay", {"amount": 500}))
    done = tenlines("undo", "last", "--yes")
    assert done.code == 0
    assert done_in(home) == ["paid 5 to Ann", "took back 5 of 1:0"]
    assert tenlines("approve", "last").code == 2


def test_on_stop_undo_takes_back_what_a_run_without_an_answer_did(home: Path, tenlines: Tenlines, server: Any) -> None:
    (home / "shop.py").write_text(SHOP)
    options = ("--on-stop", "undo", "--max-steps", "1")
    done = starter(tenlines, server)(("pay", {"amount": 5}), ("mail", {"text": "a"}), options=options)
    assert done.code == 1
    assert "1 call undone; what still stands: mail" in done.err
    assert done_in(home) == ["paid 5 to Ann", "mailed a", "took back 5 of 1:0"]
