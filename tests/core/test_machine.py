"""What the machine does, by example. The laws over random logs are in `tests/property`."""

from __future__ import annotations

from typing import Any

import pytest
from told_run import Run

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.effects import Sleep
from tenlines.core.limits import Limits
from tenlines.core.replay import fold
from tenlines.core.transcript import Reply, Text, ToolCall
from tenlines.errors import InvalidEvent


def test_a_reply_without_calls_is_the_answer() -> None:
    end = Run().reply("42").finish()
    assert (end.status, end.answer) == ("answered", "42")


def test_no_steps_allowed_means_that_no_model_is_asked() -> None:
    run = Run(limits=Limits(steps=0, last_words=True))
    assert run.finish().status == "max_steps"


def test_the_last_allowed_reply_is_looked_at() -> None:
    run = Run(limits=Limits(steps=1)).reply("just in time")
    assert run.finish().answer == "just in time"


@pytest.mark.parametrize("seq", [1.0, True, "1", None])
def test_a_sequence_number_is_a_whole_number(seq: Any) -> None:
    run = Run()
    with pytest.raises(InvalidEvent):
        run.machine.apply(ev.CancelRequested(seq=seq, at=1.0, mode="now"))


@pytest.mark.parametrize("parts", [None, "text", (object(),), ("text",), (Text(None),)])  # type: ignore[arg-type]
def test_a_message_of_wrong_parts_is_refused_before_anything_changes(parts: Any) -> None:
    Run().refuses(ev.MessageQueued, parts=parts)


@pytest.mark.parametrize(
    "reply",
    [None, "text", Reply(None), Reply("x", (ToolCall("a", "look", "{}"),), "nonsense"), Reply("", ("look",))],  # type: ignore[arg-type]
)
def test_a_reply_of_wrong_types_is_refused_before_anything_changes(reply: Any) -> None:
    Run().ask().refuses(ev.ModelReplied, step=1, reply=reply)


@pytest.mark.parametrize("wait", [float("nan"), float("inf")])
def test_the_live_run_waits_as_long_as_the_replayed_one(wait: float) -> None:
    run = Run().ask()
    run.tell(ev.ModelFailed, step=1, attempt=1, kind="E", message="x", retryable=True, retry_after_s=wait)
    replayed = fold(codec.decode(codec.encode(event)) for event in run.log)
    assert isinstance(run.effect, Sleep)
    assert replayed.next(run.at) == run.effect


def test_text_that_the_journal_has_to_mend_is_mended_for_the_live_run_too() -> None:
    run = Run().say("half a pair \ud83d")
    assert run.messages == fold(codec.decode(codec.encode(event)) for event in run.log).state.messages


def test_a_cancelled_run_does_not_go_on_because_somebody_speaks_after_the_answer() -> None:
    run = Run().ask().cancel("drain").tell(ev.ModelReplied, step=1, reply=Reply("42")).say("and?")
    assert run.finish().status == "cancelled"


# --- letters --------------------------------------------------------------------------------------------


def test_a_letter_is_heard_once_and_in_order() -> None:
    run = Run().tell(ev.MessageQueued, parts=(Text("first"),), mail=2, by="ann")
    assert run.machine.state.mail == 2
    for number in (2, 1, -1):
        run.refuses(ev.MessageQueued, parts=(Text("again"),), mail=number)
        run.refuses(ev.CancelRequested, mode="now", mail=number)
    run.tell(ev.MessageQueued, parts=(Text("said here"),))
    assert run.machine.state.mail == 2
    assert run.tell(ev.CancelRequested, mode="drain", mail=5).finish().status == "cancelled"
    assert run.machine.state.mail == 5


def test_a_message_that_is_refused_takes_no_letter() -> None:
    run = Run()
    run.refuses(ev.MessageQueued, parts=("text",), mail=1)
    run.refuses(ev.CancelRequested, mode="perhaps", mail=1)
    assert run.machine.state.mail == 0
