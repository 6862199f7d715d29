"""`approve`, `deny`, `pending`, and a run that waits, without a terminal."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shopping import SHOP, done_in, events_of, starter

from tenlines.core import codec
from tenlines.core import events as ev

Tenlines = Callable[..., Any]

Start = Callable[..., Any]
BIG, HUGE = ("pay", {"amount": 500}), ("pay", {"amount": 9000, "to": "Bob"})


@pytest.fixture(autouse=True)
def shop(home: Path) -> None:
    (home / "shop.py").write_text(SHOP)


@pytest.fixture
def start(tenlines: Tenlines, server: Any) -> Start:
    return starter(tenlines, server)


# --- a run that waits ---------------------------------------------------------------------------------


def test_a_run_that_waits_ends_with_5_and_says_what_waits_and_how_to_answer(start: Start, home: Path) -> None:
    done = start(BIG)
    assert (done.code, done.out) == (5, "")
    assert done_in(home) == []
    for piece in ("awaiting_approval", "1.1  pay", '"amount": 500', "--resume", "tenlines deny"):
        assert piece in done.err, piece
    assert re.search(r"tenlines approve \w{12} --resume", done.err)


def test_what_needs_no_leave_runs_meanwhile(start: Start, home: Path) -> None:
    start(("pay", {"amount": 5}), BIG, ("mail", {"text": "later"}))
    assert done_in(home) == ["paid 5 to Ann"]


def test_json_of_a_run_that_waits_ends_with_the_pause(start: Start) -> None:
    done = start(BIG, options=("--json",))
    last = codec.decode(done.out.splitlines()[-1])
    assert isinstance(last, ev.RunEnded)
    assert last.status == "awaiting_approval"
    assert done.code == 5


def test_resuming_without_a_decision_only_says_what_waits(start: Start, tenlines: Tenlines, home: Path) -> None:
    start(BIG)
    (home / "shop.py").unlink()  # neither its tools nor its model are needed for that
    before = len(events_of())
    done = tenlines("resume", "last")
    assert done.code == 5
    assert "1.1  pay" in done.err
    assert len(events_of()) == before


def test_hostile_arguments_are_made_harmless_and_cannot_fake_a_line(start: Start, tenlines: Tenlines) -> None:
    done = start(("pay", {"amount": 500, "to": "x\n  2.2  safe \x1b[2J\u202e"}))
    shown = done.err + tenlines("pending").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert not re.search(r"^\s*2\.2", shown, re.MULTILINE)
    assert r"\n  2.2  safe" in shown


# --- pending ------------------------------------------------------------------------------------------


def test_pending_lists_every_run_that_waits_with_whole_arguments(start: Start, tenlines: Tenlines) -> None:
    start(("pay", {"amount": 500, "to": "A" * 500}))
    start(HUGE, BIG)
    out = tenlines("pending").out
    assert out.count("run ") == 2
    assert "A" * 500 in out
    assert out.index("A" * 500) < out.index("Bob")  # the oldest first
    rows = [json.loads(line) for line in tenlines("pending", "--json").out.splitlines()]
    assert [(row["place"], row["name"], row["arguments"].get("to")) for row in rows] == [
        ("1.1", "pay", "A" * 500), ("1.1", "pay", "Bob"), ("1.2", "pay", None),
    ]  # fmt: skip
    assert all(len(row["digest"]) == 32 and row["run_id"] for row in rows)
    assert len(tenlines("pending", "last", "--json").out.splitlines()) == 2


def test_pending_of_nothing_says_so(tenlines: Tenlines, home: Path) -> None:
    done = tenlines("pending")
    assert (done.code, done.out) == (0, "")
    assert "no call waits" in done.err
    assert not (home / "journal.db").exists()


def test_pending_says_how_long_a_question_holds(start: Start, tenlines: Tenlines) -> None:
    done = start(BIG, options=("--approval-expires", "300"))
    assert re.search(r"holds for (5 min 00 s|4 min 5\d s) more", done.err)


# --- approve ------------------------------------------------------------------------------------------


def test_approved_and_resumed_the_call_runs(start: Start, tenlines: Tenlines, home: Path) -> None:
    start(BIG)
    done = tenlines("approve", "last", "--by", "Carla")
    assert done.code == 0
    assert "allowed by Carla: 1.1  pay(amount=500)" in done.out
    assert re.search(r"go on: tenlines resume \w{12}", done.out)
    assert done_in(home) == []
    assert tenlines("resume", "last").out == "all done\n"
    assert done_in(home) == ["paid 500 to Ann"]
    assert "allowed by Carla" in tenlines("show", "last").out


def test_approve_can_go_on_at_once(start: Start, tenlines: Tenlines, home: Path) -> None:
    start(BIG)
    done = tenlines("approve", "last", "--resume")
    assert (done.code, done.out) == (0, "all done\n")
    assert "allowed by" in done.err
    assert done_in(home) == ["paid 500 to Ann"]


def test_who_decides_is_the_login_name_unless_said_otherwise(
    start: Start, tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "dora")
    start(BIG)
    tenlines("approve", "last")
    assert [event.by for event in events_of() if isinstance(event, ev.ApprovalGiven)] == ["dora"]


def test_of_several_one_must_be_named_and_the_message_lists_them(start: Start, tenlines: Tenlines, home: Path) -> None:
    start(BIG, HUGE)
    done = tenlines("approve", "last")
    assert done.code == 2
    assert "2 calls" in done.err
    assert "1.1  pay(amount=500)" in done.err
    assert '1.2  pay(amount=9000, to="Bob")' in done.err
    assert "--all" in done.err
    first = tenlines("approve", "last", "1.2")
    assert first.code == 0
    assert "1 call of the run still waits" in first.out
    assert "1.1  pay" in first.out
    done = tenlines("deny", "last", "1.1", "--reason", "too much", "--resume")
    assert (done.code, done.out) == (0, "all done\n")
    assert done_in(home) == ["paid 9000 to Bob"]


def test_all_of_them_at_once(start: Start, tenlines: Tenlines, home: Path) -> None:
    start(BIG, HUGE)
    assert tenlines("approve", "last", "--all", "--resume").out == "all done\n"
    assert done_in(home) == ["paid 500 to Ann", "paid 9000 to Bob"]


def test_json_is_one_object_with_what_was_decided_what_waits_and_the_next_command(
    start: Start, tenlines: Tenlines
) -> None:
    start(BIG, HUGE)
    done = tenlines("approve", "last", "1.1", "--by", "Carla", "--json")
    report = json.loads(done.out)
    assert report["decided"][0]["place"] == "1.1"
    assert report["decided"][0]["decision"] == {"verdict": "allow", "by": "Carla", "reason": "", "arguments": None}
    assert [one["place"] for one in report["waiting"]] == ["1.2"]
    assert report["next"] == f"tenlines resume {report['run_id']}"


def test_json_with_resume_is_the_object_and_the_events_behind_it(start: Start, tenlines: Tenlines) -> None:
    start(BIG)
    first, *events = tenlines("approve", "last", "--resume", "--json").out.splitlines()
    assert json.loads(first)["waiting"] == []
    assert isinstance(codec.decode(events[0]), ev.RunResumed)
    assert isinstance(codec.decode(events[-1]), ev.RunEnded)


def test_other_arguments_are_what_runs_and_the_model_is_told(
    start: Start, tenlines: Tenlines, server: Any, home: Path
) -> None:
    start(BIG)
    done = tenlines("approve", "last", "--edit", '{"amount": 50, "to": "Eve"}', "--resume")
    assert done.code == 0
    assert "with other arguments" in done.err
    assert done_in(home) == ["paid 50 to Eve"]
    assert "changed the arguments" in json.dumps(server.requests[-1]["messages"])


def test_other_arguments_come_from_a_file_or_standard_input(
    start: Start, tenlines: Tenlines, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "new.json").write_text('{"amount": 1}')
    start(BIG)
    assert tenlines("approve", "last", "--edit", "@new.json", "--resume").code == 0
    start(BIG)
    monkeypatch.setattr("sys.stdin", io.StringIO('{"amount": 2}\n'))
    assert tenlines("approve", "last", "--edit", "-", "--resume").code == 0
    assert done_in(home) == ["paid 1 to Ann", "paid 2 to Ann"]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ('{"amount": "much"}', "cannot be put in place"),
        ('{"sum": 5}', "cannot be put in place"),
        ("[1]", "one JSON object"),
        ("amount=5", "not valid JSON"),
        ("", "are empty"),
        ("@none.json", "cannot be read"),
    ],
)
def test_arguments_that_do_not_fit_are_a_mistake_and_nothing_is_decided(
    start: Start, tenlines: Tenlines, typed: str, says: str
) -> None:
    start(BIG)
    done = tenlines("approve", "last", "--edit", typed)
    assert done.code == 2
    assert says in done.err
    assert not any(isinstance(event, ev.ApprovalGiven) for event in events_of())


def test_arguments_that_cannot_be_checked_are_taken_and_that_is_said(
    start: Start, tenlines: Tenlines, home: Path
) -> None:
    start(BIG)
    (home / "shop.py").rename(home / "moved.py")
    done = tenlines("approve", "last", "--edit", '{"amount": 1}')
    assert done.code == 0
    assert "could not be checked" in done.err
    assert tenlines("approve", "last", "--edit", '{"amount": 1}').code == 2  # it is decided


def test_a_digest_of_another_call_is_refused(start: Start, tenlines: Tenlines) -> None:
    start(BIG)
    digest = json.loads(tenlines("pending", "--json").out)["digest"]
    done = tenlines("approve", "last", "--digest", "0" * 32)
    assert done.code == 2
    assert "another call" in done.err
    assert tenlines("approve", "last", "--digest", digest).code == 0


def test_what_does_not_wait_cannot_be_decided(start: Start, tenlines: Tenlines) -> None:
    start(("look", {}))
    done = tenlines("approve", "last")
    assert done.code == 2
    assert "has ended as answered" in done.err
    start(BIG)
    done = tenlines("deny", "last", "7.1")
    assert done.code == 2
    assert "waiting: 1.1 (pay)" in done.err


def test_a_question_whose_time_is_over_is_asked_anew(start: Start, tenlines: Tenlines, home: Path) -> None:
    start(BIG, options=("--approval-expires", "0.001"))
    done = tenlines("approve", "last")
    assert done.code == 2
    assert "resume" in done.err
    again = tenlines("resume", "last")
    assert again.code == 5
    asked = [event for event in events_of() if isinstance(event, ev.ApprovalAsked)]
    assert len(asked) == 2
    assert done_in(home) == []


# --- --ask and --deny ---------------------------------------------------------------------------------


def test_ask_marks_the_tools_that_it_names_and_no_other(start: Start, tenlines: Tenlines, home: Path) -> None:
    done = start(("look", {}), ("mail", {"text": "a"}), options=("--ask", "ma*"))
    assert done.code == 5
    assert "why: --ask ma*" in done.err
    first = events_of()[0]
    assert {spec.name for spec in first.tools if spec.approve} == {"mail", "pay"}  # pay speaks for itself
    assert done_in(home) == []
    assert tenlines("approve", "last", "--resume").out == "all done\n"
    assert done_in(home) == ["mailed a"]


def test_a_tool_that_was_asked_about_is_asked_about_after_every_resume(
    start: Start, tenlines: Tenlines, server: Any, home: Path
) -> None:
    start(("mail", {"text": "a"}), options=("--ask", "mail"))
    for text in ("b", "c"):
        server.replies = [server.calls(("mail", {"text": text}), ("look", {}))]
        done = tenlines("approve", "last", "--resume")
        assert done.code == 5
        assert "mail" in done.err
    assert done_in(home) == ["mailed a", "mailed b"]
    asked = [event for event in events_of() if isinstance(event, ev.ApprovalAsked)]
    assert len(asked) == 3


def test_deny_is_told_to_the_model_and_wins_over_ask(start: Start, server: Any, home: Path) -> None:
    done = start(("mail", {"text": "a"}), ("pay", {"amount": 5}), options=("--deny", "mail", "--ask", "mail"))
    assert (done.code, done.out) == (0, "all done\n")
    assert done_in(home) == ["paid 5 to Ann"]
    assert "did not allow it" in json.dumps(server.requests[-1]["messages"])


def test_what_was_denied_is_asked_about_on_resume_unless_it_is_denied_again(
    start: Start, tenlines: Tenlines, server: Any, home: Path
) -> None:
    start(("mail", {"text": "a"}), options=("--deny", "mail", "--max-steps", "1"))
    server.replies = [server.calls(("mail", {"text": "b"})), server.says("no mail then")]
    done = tenlines("resume", "last", "--max-steps", "5", "--deny", "mail")
    assert (done.code, done.out) == (0, "no mail then\n")
    start(("mail", {"text": "a"}), options=("--deny", "mail", "--max-steps", "1"))
    server.replies = [server.calls(("mail", {"text": "b"}))]
    assert tenlines("resume", "last", "--max-steps", "5").code == 5
    assert done_in(home) == []


# --- show ---------------------------------------------------------------------------------------------


def test_show_tells_who_was_asked_and_what_waits(start: Start, tenlines: Tenlines) -> None:
    start(BIG, HUGE)
    tenlines("deny", "last", "1.2", "--by", "Carla", "--reason", "too much")
    text = tenlines("show", "last").out
    for piece in (
        "· awaiting_approval ·", "waits pay(amount=500)", "somebody has to allow it", "denied by Carla: too much",
        "decide and go on:", "tenlines approve ",
    ):  # fmt: skip
        assert piece in text, piece
    assert "no result was recorded" not in text
    tenlines("approve", "last", "--by", "Dora", "--edit", '{"amount": 7}', "--resume")
    text = tenlines("show", "last").out
    assert 'allowed by Dora, with other arguments: {"amount":7}' in text
    assert "resumed by process" in text


def test_what_the_policy_allowed_is_told_in_full_only(start: Start, tenlines: Tenlines) -> None:
    start(("pay", {"amount": 5}))
    assert "allowed by policy" not in tenlines("show", "last").out
    assert "allowed by policy" in tenlines("show", "last", "--full").out
