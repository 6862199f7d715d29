"""What the machine does, by example. The laws over random logs are in `tests/property`."""

from __future__ import annotations

from typing import Any

import pytest

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Finish, Sleep
from tenlines.core.history import first_fault
from tenlines.core.limits import Limits, Price, Reservation, Retry
from tenlines.core.machine import Machine
from tenlines.core.replay import fold
from tenlines.core.transcript import Assistant, Note, Opaque, Reply, Result, Text, ToolCall, Usage, User
from tenlines.errors import InvalidEvent

TOOLS = (
    ev.ToolSpec("look", read_only=True),
    ev.ToolSpec("send"),
    ev.ToolSpec("put", idempotent=True),
    ev.ToolSpec("finish", final=True),
    ev.ToolSpec("tell", read_only=True, final=True),
)


class Run:
    """A machine and the log that it was fed, with a word for each thing that can happen."""

    def __init__(self, tools: tuple[ev.ToolSpec, ...] = TOOLS, **settings: Any) -> None:
        self.machine, self.log, self.at = Machine(), list[ev.AnyEvent](), 100.0
        messages = (User((Text("task"),)),)
        configured = ev.Settings(**settings)
        self.tell(ev.RunStarted, run_id="r", agent="a", model="m", messages=messages, tools=tools, settings=configured)

    def tell(self, kind: type[ev.AnyEvent], /, **fields: Any) -> Run:
        event = kind(seq=len(self.log), at=self.at, **fields)
        self.machine.apply(event)
        self.log.append(event)
        return self

    @property
    def effect(self) -> Any:
        return self.machine.next(self.at)

    def ask(self) -> Run:
        effect = self.effect
        assert isinstance(effect, CallModel)
        return self.tell(ev.StepStarted, step=effect.step, attempt=effect.attempt, reserved=effect.reserved)

    def reply(self, text: str = "", *calls: ToolCall, **fields: Any) -> Run:
        step = self.machine.state.account.steps + 1
        return self.ask().tell(ev.ModelReplied, step=step, reply=Reply(text, calls, **fields))

    def call(self, *names: str) -> Run:
        return self.reply("", *(ToolCall(f"{len(self.log)}-{i}", name, "{}") for i, name in enumerate(names)))

    def start(self, position: int = 0) -> Run:
        step = self.machine.state.account.steps
        return self.tell(ev.CallStarted, step=step, position=position, key=f"r:{step}:{position}")

    def returned(self, position: int = 0, text: str = "done") -> Run:
        step = self.machine.state.account.steps
        return self.tell(ev.CallReturned, step=step, position=position, parts=(Text(text),))

    def failed(self, position: int, outcome: str, text: str = "no") -> Run:
        step = self.machine.state.account.steps
        return self.tell(ev.CallFailed, step=step, position=position, outcome=outcome, text=text)

    def say(self, text: str) -> Run:
        return self.tell(ev.MessageQueued, parts=(Text(text),))

    def cancel(self, mode: str) -> Run:
        return self.tell(ev.CancelRequested, mode=mode)

    def resume(self, tools: tuple[ev.ToolSpec, ...] = TOOLS) -> Run:
        return self.tell(ev.RunResumed, tools=tools)

    def finish(self) -> Finish:
        effect = self.effect
        assert isinstance(effect, Finish)
        self.tell(ev.RunEnded, status=effect.status, reason=effect.reason, answer=effect.answer)
        return effect

    @property
    def messages(self) -> list[Any]:
        return self.machine.state.messages

    def refuses(self, kind: type[ev.AnyEvent], /, **fields: Any) -> str:
        before = codec.encode(self.machine.state.start), repr(self.machine.state)  # type: ignore[arg-type]
        with pytest.raises(InvalidEvent) as caught:
            self.tell(kind, **fields)
        assert (codec.encode(self.machine.state.start), repr(self.machine.state)) == before  # type: ignore[arg-type]
        return str(caught.value)


# --- the shape of a run -------------------------------------------------------------------------------


def test_a_reply_without_calls_is_the_answer() -> None:
    end = Run().reply("42").finish()
    assert (end.status, end.answer) == ("answered", "42")


def test_results_follow_their_message_in_call_order_whatever_came_back_first() -> None:
    run = Run().call("look", "look").start(0).start(1).returned(1, "second").returned(0, "first")
    assert [message.text for message in run.messages[-2:]] == ["first", "second"]


def test_what_a_person_says_waits_until_the_exchange_is_closed() -> None:
    run = Run().call("look").start().say("hurry").returned()
    assert [type(message) for message in run.messages] == [User, Assistant, Result, User]


def test_no_steps_allowed_means_that_no_model_is_asked() -> None:
    run = Run(limits=Limits(steps=0, last_words=True))
    assert run.finish().status == "max_steps"


def test_the_last_allowed_reply_is_looked_at() -> None:
    run = Run(limits=Limits(steps=1)).reply("just in time")
    assert run.finish().answer == "just in time"


def test_a_final_tool_gives_the_answer_and_stops_its_siblings() -> None:
    run = Run().call("send", "finish").start(1).returned(1, "the answer")
    (refusal,) = run.effect.refusals
    assert (refusal.position, refusal.outcome) == (0, "not_executed")
    run.failed(0, refusal.outcome, refusal.text)
    assert run.finish().answer == "the answer"


def test_running_out_of_scripted_moves_ends_like_the_step_limit() -> None:
    run = Run().ask().tell(ev.ModelFailed, step=1, attempt=1, kind="OutOfMoves", message="no more")
    assert run.finish().status == "max_steps"


def test_a_failed_request_is_repeated_after_a_pause_and_only_so_often() -> None:
    run = Run(retry=Retry(attempts=2)).ask()
    run.tell(ev.ModelFailed, step=1, attempt=1, kind="E", message="busy", retryable=True, retry_after_s=7.0)
    assert isinstance(run.effect, Sleep)
    assert run.effect.until >= 107.0
    run.at = run.effect.until
    run.ask().tell(ev.ModelFailed, step=1, attempt=2, kind="E", message="busy", retryable=True)
    assert run.finish().status == "model_error"


def refuse(run: Run, violation: str, rule: str = "X-1") -> Run:
    """The provider refuses the request that is under way for a violation of its format."""
    step, attempt = run.machine.state.account.steps + 1, run.machine.state.attempt + 1
    failure = {"kind": "ProtocolRejected", "message": "refused", "rule": rule, "violation": violation}
    return run.tell(ev.ModelFailed, step=step, attempt=attempt, **failure)


def test_refused_reasoning_is_left_out_once_and_stays_in_the_log() -> None:
    signed = (Opaque("p", "m", {"blocks": []}),)
    run = Run().reply("", ToolCall("c", "look", "{}"), opaque=signed).start().returned()
    refuse(run.ask(), "RSN-PREFIX", "ANT-25")
    effect = run.effect
    assert isinstance(effect, CallModel), "it is asked again, at once"
    assert effect.new_from == 0, "and told everything anew"
    assert effect.messages[1] == Assistant("", (ToolCall("c", "look", "{}"),))
    assert run.messages[1].opaque == signed
    assert any("ANT-25" in warning for warning in run.machine.result().warnings)
    refuse(run.ask(), "RSN-FOREIGN")
    assert run.finish().status == "model_error", "the cure did not help; it is not tried again"
    again = fold(run.log).next(run.at)
    assert again == run.effect


def test_what_was_left_out_stays_out_after_a_resume() -> None:
    run = Run().reply("hm", stop="pause", opaque=(Opaque("p", "m", 1),))
    refuse(refuse(run.ask(), "RSN-EDITED").ask(), "")
    assert run.finish().status == "model_error"
    run.resume()
    assert run.effect.messages[-1] == Assistant("hm")


def test_a_refusal_without_a_cure_ends_the_run() -> None:
    assert refuse(Run().ask(), "PAIR-MISSING").finish().status == "model_error"


def test_a_used_up_tool_budget_refuses_the_rest_and_ends_the_run() -> None:
    run = Run(limits=Limits(tool_calls=1)).call("look", "look")
    assert len(run.effect.calls) == 1
    run.start(0).returned(0)
    (refusal,) = run.effect.refusals
    run.failed(1, refusal.outcome, refusal.text)
    assert run.finish().status == "tool_limit"


def test_a_run_asked_for_last_words_gives_them_as_a_partial_answer() -> None:
    run = Run(limits=Limits(steps=1, last_words=True)).call("look").start().returned()
    assert run.effect.tool_choice == "none"
    run.reply("as far as I know")
    assert run.finish().status == "max_steps"
    assert run.machine.result().partial_answer == "as far as I know"


def test_a_late_result_is_recorded_once_and_stays_out_of_the_transcript() -> None:
    run = Run().call("send").start().tell(ev.CallTimedOut, step=1, position=0, after_s=1.0, text="given up")
    before = list(run.messages)
    run.tell(ev.LateResultArrived, step=1, position=0, outcome="ok", text="late")
    assert run.messages == before
    assert "not given up" in run.refuses(ev.LateResultArrived, step=1, position=0, outcome="ok", text="late")


# --- faults that the laws found -------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    "reply", [Reply("x", usage=Usage(-1, 5)), Reply("x", usage=Usage(1, -5)), Reply("x", dollars=-1)]
)
def test_a_reply_cannot_give_back_what_was_used(reply: Reply) -> None:
    assert "less than nothing" in Run().ask().refuses(ev.ModelReplied, step=1, reply=reply)


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


def test_a_step_past_the_limit_is_refused_even_if_a_driver_starts_it() -> None:
    run = Run(limits=Limits(steps=0))
    assert "max_steps" in run.refuses(ev.StepStarted, step=1, attempt=1, reserved=Reservation())


def test_a_step_without_budget_is_refused_even_if_a_driver_starts_it() -> None:
    run = Run(limits=Limits(dollars=1.0))
    assert "budget" in run.refuses(ev.StepStarted, step=1, attempt=1, reserved=Reservation())


def test_two_tools_of_one_name_are_refused_on_resume_as_at_the_start() -> None:
    assert "'look'" in Run().refuses(ev.RunResumed, tools=(TOOLS[0], TOOLS[0]))


def test_an_empty_reply_taken_for_an_answer_leaves_no_empty_message_behind() -> None:
    run = Run(empty_is_answer=True).reply("")
    assert first_fault(run.messages) == ""
    assert run.finish().answer == ""


def test_a_paused_reply_without_words_is_kept_for_its_maker_and_gone_on_with() -> None:
    kept = (Opaque("p", "m", {"server_tool": 1}),)
    run = Run().reply("", stop="pause", opaque=kept)
    assert run.messages[-1] == Assistant("", (), kept)
    assert isinstance(run.effect, CallModel)


def test_what_was_said_while_the_model_wrote_survives_a_crash_in_order() -> None:
    run = Run().ask().say("first").resume().say("second")
    assert [message.text for message in run.messages] == ["task", "first", "second"]


@pytest.mark.parametrize("stop", ["refusal", "length", "context_overflow"])
def test_what_was_said_while_the_model_wrote_is_not_lost_when_the_reply_ends_the_run(stop: str) -> None:
    run = Run().ask().say("wait").tell(ev.ModelReplied, step=1, reply=Reply("no", stop=stop))  # type: ignore[arg-type]
    assert run.messages[-1] == User((Text("wait"),))


def test_a_cancelled_run_does_not_go_on_because_somebody_speaks_after_the_answer() -> None:
    run = Run().ask().cancel("drain").tell(ev.ModelReplied, step=1, reply=Reply("42")).say("and?")
    assert run.finish().status == "cancelled"


def test_a_call_that_acts_waits_for_the_reading_calls_before_it() -> None:
    run = Run().call("look", "send").start(0)
    assert run.effect.calls == ()
    run.returned(0)
    assert [call.position for call in run.effect.calls] == [1]


def test_a_driver_cannot_start_a_call_that_acts_beside_another() -> None:
    run = Run().call("send", "send", "look").start(0)
    for position in (1, 2):
        why = run.refuses(ev.CallStarted, step=1, position=position, key=f"r:1:{position}")
        assert "under way" in why
    run.returned(0).start(1)


def test_a_final_tool_runs_alone_even_if_it_only_reads() -> None:
    run = Run().call("look", "tell", "look")
    assert [call.name for call in run.effect.calls] == ["tell"]


def test_a_drain_lets_what_runs_finish() -> None:
    run = Run().call("look", "look", "send").start(0).start(1).cancel("drain")
    assert [refusal.position for refusal in run.effect.refusals] == [2]
    run.returned(0).returned(1)
    run.failed(2, "not_executed", run.effect.refusals[0].text)
    assert run.finish().status == "cancelled"


@pytest.mark.parametrize("name", ["put", "look"])
def test_a_call_that_started_before_a_crash_is_never_told_as_not_executed(name: str) -> None:
    run = Run().call(name).start().resume().cancel("now")
    (refusal,) = run.effect.refusals
    assert refusal.outcome == ("in_doubt" if name == "put" else "cancelled")
    run.tell(ev.CallAbandoned, step=1, position=0, outcome=refusal.outcome, text=refusal.text)
    assert run.finish().status == "cancelled"


def test_a_call_that_crashed_twice_before_it_ran_again_is_still_in_doubt() -> None:
    run = Run().call("put").start().resume().resume(())
    (refusal,) = run.effect.refusals
    assert (refusal.outcome, "may have" in refusal.text) == ("in_doubt", True)


def test_a_call_is_not_run_again_by_a_tool_that_lost_its_promise() -> None:
    run = Run().call("put").start().resume((ev.ToolSpec("put"),))
    assert (run.effect.calls, run.effect.refusals[0].outcome) == ((), "in_doubt")


def test_the_weaker_promise_holds_for_what_has_run() -> None:
    run = Run().call("put").start().resume((ev.ToolSpec("put", read_only=True),)).cancel("now")
    assert run.effect.refusals[0].outcome == "in_doubt"


def test_arguments_that_no_longer_fit_after_a_crash_do_not_undo_what_the_call_did() -> None:
    run = Run().call("put").start().resume().failed(0, "invalid_arguments", "put did not run")
    assert run.messages[-1].outcome == "in_doubt"
    assert "did not run" not in run.messages[-1].text


def test_crashes_do_not_buy_more_last_words() -> None:
    run = Run(limits=Limits(steps=1, last_words=True)).call("look").start().returned()
    run.call("look").resume()
    (refusal,) = run.effect.refusals
    run.failed(0, refusal.outcome, refusal.text)
    assert run.finish().status == "max_steps"


def test_a_failed_request_for_last_words_is_not_repeated_under_limits_that_do_not_ask_for_them() -> None:
    run = Run(limits=Limits(steps=1, last_words=True)).call("look").start().returned().ask()
    run.tell(ev.LimitsRaised, limits=Limits(steps=1))
    run.tell(ev.ModelFailed, step=2, attempt=1, kind="E", message="busy", retryable=True)
    assert run.finish().status == "max_steps"


def test_raising_another_limit_does_not_cost_the_last_words() -> None:
    run = Run(limits=Limits(steps=1, last_words=True)).call("look").start().returned()
    run.tell(ev.LimitsRaised, limits=Limits(steps=1, last_words=True, dollars=None, tokens=9_000))
    assert isinstance(run.effect, CallModel)


def test_a_new_cancel_does_not_give_the_reason_of_the_old_one() -> None:
    run = Run().tell(ev.CancelRequested, mode="now", reason="lunch")
    run.finish()
    assert run.resume().cancel("now").finish().reason == "the run was cancelled"


def test_a_dear_cache_read_is_reserved_for() -> None:
    price = Price(input=1, output=1, cache_read=9)
    assert price.worst(100, 0) >= price.of(Usage(100, 0, cache_read=100))


def test_a_note_of_the_loop_is_no_message_of_a_person() -> None:
    run = Run(tell_left=True).call("look").start().returned()
    assert run.messages[-1] == Note("Left for this task: 19 steps.")
