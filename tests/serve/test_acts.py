"""What a person does on a page is what a command does: the same events, the same refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from serve_world import SECRET, ended_run, pay, waiting_run

from tenlines import Agent
from tenlines.core import events as ev
from tenlines.drivers import decisions
from tenlines.errors import ApprovalRefused, ConfigError
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import Saying, Stopping, SystemClock
from tenlines.serve import acts
from tenlines.serve.acts import Hands, restored
from tenlines.trace.redaction import REDACTED, Redaction


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    made = SqliteJournal(tmp_path / "journal.db")
    yield made
    made.close()


@pytest.fixture
def hands(journal: SqliteJournal) -> Hands:
    return Hands(journal, SystemClock(), "Carla", lambda run_id: f"tenlines resume {run_id}", {"pay": pay})


def shown(journal: SqliteJournal, run_id: str, place: str = "1.1") -> dict[str, str]:
    """What a page sends of a call that it showed."""
    one = decisions.find(decisions.pending(journal, run_id), run_id, place)
    return {"call": one.place, "digest": one.digest}


def given_leave(journal: SqliteJournal, run_id: str) -> list[ev.ApprovalGiven]:
    return [event for event in journal.read(run_id) if isinstance(event, ev.ApprovalGiven)]


def resumed(journal: SqliteJournal, run_id: str) -> Any:
    return Agent(["done"], [pay], journal=journal).resume_sync(run_id)


def test_what_is_approved_runs_when_the_run_is_resumed(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    told = acts.approve(hands, run_id, shown(journal, run_id))
    assert told == ("Allowed. The run goes on when it is resumed.", f"tenlines resume {run_id}")
    (leave,) = given_leave(journal, run_id)
    assert (leave.verdict, leave.by, leave.arguments) == ("allow", "Carla", None)
    assert resumed(journal, run_id).calls[0].text == "paid 500 to Bob"


def test_of_several_that_wait_it_is_said_how_many_still_do(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal, {"amount": 1}, {"amount": 2}, {"amount": 3})
    assert acts.approve(hands, run_id, shown(journal, run_id, "1.2")).text == "Allowed. 2 calls of the run still wait."
    told = acts.deny(hands, run_id, {**shown(journal, run_id), "reason": "too much"})
    assert told == ("Denied. 1 call of the run still waits.", "")
    assert given_leave(journal, run_id)[1].reason == "too much"


def test_another_call_than_was_shown_is_not_decided(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal, {"amount": 1}, {"amount": 2})
    other = {**shown(journal, run_id, "1.2"), "call": "1.1"}
    for act in (acts.approve, acts.deny):
        with pytest.raises(ApprovalRefused, match="another call waits"):
            act(hands, run_id, other)
    with pytest.raises(ConfigError, match="names no call that was shown"):
        acts.approve(hands, run_id, {"call": "1.1", "digest": ""})
    with pytest.raises(KeyError):
        acts.approve(hands, run_id, {"call": "1.1"})
    assert given_leave(journal, run_id) == []


def test_what_is_decided_already_is_not_decided_again(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    form = shown(journal, run_id)
    acts.deny(hands, run_id, form)
    with pytest.raises(ApprovalRefused, match="is decided: resume it"):
        acts.approve(hands, run_id, form)
    assert len(given_leave(journal, run_id)) == 1


# --- other arguments ------------------------------------------------------------------------------------------


def test_with_other_arguments_it_runs_with_these_and_the_model_is_told(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    form = {**shown(journal, run_id), "arguments": '{"amount": 5, "to": "Eve"}'}
    told = acts.edit(hands, run_id, form, Redaction())
    assert told.text == "Allowed, with other arguments. The run goes on when it is resumed."
    assert resumed(journal, run_id).calls[0].text == "paid 5 to Eve"


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "are empty"),
        ("[1]", "one JSON object"),
        ("{", "one JSON object"),
        ('{"amount": "5"}', "cannot be put in place"),
        ('{"to": "Eve"}', "cannot be put in place"),
    ],
)
def test_arguments_that_cannot_be_are_refused(hands: Hands, journal: SqliteJournal, typed: str, words: str) -> None:
    run_id = waiting_run(journal)
    with pytest.raises(ConfigError, match=words):
        acts.edit(hands, run_id, {**shown(journal, run_id), "arguments": typed}, Redaction())
    assert given_leave(journal, run_id) == []


def test_where_the_tool_is_not_loaded_it_is_said_that_nothing_was_checked(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    form = {**shown(journal, run_id), "arguments": '{"amount": "5"}'}
    told = acts.edit(hands._replace(tools={}), run_id, form, Redaction())
    assert told.text.endswith("The arguments were not checked: no tool pay is loaded here.")


def test_a_secret_that_was_hidden_stays_as_it_is(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal, {"amount": 500, "api_key": SECRET})
    form = {**shown(journal, run_id), "arguments": json.dumps({"amount": 5, "api_key": REDACTED})}
    acts.edit(hands, run_id, form, Redaction())
    assert json.loads(given_leave(journal, run_id)[0].arguments or "") == {"amount": 5, "api_key": SECRET}


def test_what_stands_for_a_secret_is_never_a_value(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal, {"amount": 500, "api_key": SECRET})
    form = {**shown(journal, run_id), "arguments": json.dumps({"amount": 5, "to": REDACTED})}
    with pytest.raises(ConfigError, match="where no secret was hidden"):
        acts.edit(hands, run_id, form, Redaction())


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=5)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "password", "c"]), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "token", "c"]), JSON, max_size=4)


@given(OBJECTS)
def test_what_is_sent_back_as_it_was_shown_is_what_it_was(real: dict[str, Any]) -> None:
    shown_ = Redaction().of(real)
    assert json.dumps(restored(json.loads(json.dumps(shown_)), shown_, real)) == json.dumps(real)


@given(OBJECTS, OBJECTS)
def test_without_secrets_what_is_written_is_what_is_meant(real: dict[str, Any], written: dict[str, Any]) -> None:
    assert json.dumps(restored(written, real, real)) == json.dumps(written)


# --- letters ----------------------------------------------------------------------------------------------------


def test_what_is_said_and_the_wish_to_stop_are_letters(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    said = acts.say(hands, run_id, {"text": "be quick"})
    assert said == ("Posted. The run hears it when it is resumed.", f"tenlines resume {run_id}")
    acts.cancel(hands, run_id, {"mode": "drain", "reason": "lunch"})
    acts.cancel(hands, run_id, {"mode": "now"})
    letters = [letter.what for letter in journal.letters({run_id: 0})]
    assert letters == [
        Saying("be quick", "Carla"),
        Stopping("drain", "lunch", "Carla"),
        Stopping("now", "", "Carla"),
    ]


def test_to_a_run_that_is_under_way_it_is_said_what_comes_then(hands: Hands, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    seq = len(list(journal.read(run_id)))
    journal.append(run_id, ev.RunResumed(seq=seq, at=SystemClock().now()))
    journal.commit(run_id)
    assert acts.say(hands, run_id, {"text": "x"}).text.startswith("Posted. The story shows it")
    assert acts.cancel(hands, run_id, {"mode": "now"}).text == "Posted. It stops at once."
    assert acts.cancel(hands, run_id, {"mode": "drain"}).text == "Posted. It stops after what is running."


def test_a_run_that_has_ended_takes_none(hands: Hands, journal: SqliteJournal) -> None:
    run_id = ended_run(journal)
    with pytest.raises(ConfigError, match="is answered"):
        acts.say(hands, run_id, {"text": "x"})
    with pytest.raises(ConfigError, match="there is nothing to stop"):
        acts.cancel(hands, run_id, {})
    with pytest.raises(ConfigError, match="nothing to say"):
        acts.say(hands, waiting_run(journal), {"text": " "})
