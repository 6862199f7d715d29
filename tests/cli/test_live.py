"""The live view, fed with events."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from tenlines.cli.live import LiveView
from tenlines.core import events as ev
from tenlines.core.limits import Limits, Reservation
from tenlines.core.transcript import Reply, Text, ToolCall, Usage, User
from tenlines.ports import Delta

TOOLS = (
    ev.ToolSpec("look", parameters={"type": "object"}, read_only=True),
    ev.ToolSpec("act", undoable=True),
    ev.ToolSpec("pay", approve=True),
)
HOSTILE = "[bold]b[/bold] \x1b[2J \u202etxet"


class Clock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def wait(self, event: Any, seconds: float) -> None: ...

    async def sleep(self, seconds: float) -> None: ...


class Stage:
    """Feeds a view with events that are numbered and stamped."""

    def __init__(
        self, width: int = 100, *, color: bool = False, stream: bool = True, begin: Any = None, **limits: Any
    ) -> None:
        self.out, self.clock, self.seq = io.StringIO(), Clock(), -1
        system: Any = "truecolor" if color else None
        self.console = Console(
            file=self.out, force_terminal=True, width=width, height=20, color_system=system,
            markup=False, emoji=False, highlight=False, no_color=not color,
        )  # fmt: skip
        self.view = LiveView(self.console, self.clock, stream=stream)
        settings = ev.Settings(limits=Limits(**limits))
        said = (User((Text("task"),)),)
        self.feed(
            ev.RunStarted,
            run_id="r1",
            agent="a",
            model="m",
            messages=said,
            tools=TOOLS,
            settings=settings,
            **(begin or {}),
        )

    def feed(self, make: Callable[..., Any], after: float = 0.0, /, **fields: Any) -> None:
        self.seq += 1
        self.clock.time += after
        self.view.on_event(make(seq=self.seq, at=self.clock.time, **fields))

    def ask(self, step: int = 1, attempt: int = 1) -> None:
        self.feed(ev.StepStarted, step=step, attempt=attempt, reserved=Reservation())

    def reply(self, text: str = "", *calls: tuple[str, str], step: int = 1, after: float = 0.0, **more: Any) -> None:
        asked = tuple(ToolCall(f"c{n}", name, arguments) for n, (name, arguments) in enumerate(calls))
        stop: Any = "tool_calls" if asked else "end"
        self.feed(ev.ModelReplied, after, step=step, reply=Reply(text, asked, stop, **more))

    def start(self, position: int = 0, step: int = 1) -> None:
        self.feed(ev.CallStarted, step=step, position=position, key=f"r1:{step}:{position}")

    def question(self, kind: Any, **fields: Any) -> None:
        """What the machine asks about the first call, answered in this way."""
        effect: Any = self.view.story.machine.next(self.clock.time)
        digest = effect.questions[0].digest if hasattr(effect, "questions") else self.digest
        self.digest = digest
        self.feed(kind, step=1, position=0, digest=digest, **fields)

    def returned(self, text: str, position: int = 0, step: int = 1, after: float = 0.0) -> None:
        self.feed(ev.CallReturned, after, step=step, position=position, parts=(Text(text),))

    @property
    def shown(self) -> str:
        return self.out.getvalue()

    def moving(self) -> str:
        with self.console.capture() as capture:
            self.console.print(self.view.draw())
        return capture.get()


def test_a_step_says_how_long_it_took_its_tokens_and_what_is_left() -> None:
    stage = Stage(steps=5, dollars=None, seconds=60)
    stage.ask()
    stage.reply("Looking.", ("look", '{"id": "7"}'), after=4.25, usage=Usage(1000, 20, 850))
    assert "step 1 · 4.2 s · 1,000 tokens in (85% cached), 20 out · left: 4 steps, 55.8 s" in stage.shown
    assert "Looking." in stage.shown


def test_a_call_shows_its_arguments_its_time_and_its_result_in_one_line() -> None:
    stage = Stage()
    stage.ask()
    stage.reply("", ("look", '{"id": "7"}'))
    stage.start()
    stage.returned("one\ntwo", after=0.012)
    assert '  ✓ look(id="7") · 12 ms\n    one two\n' in stage.shown


def test_parallel_calls_each_have_a_line_that_moves() -> None:
    stage = Stage()
    stage.ask()
    stage.reply("", ("look", '{"id": "7"}'), ("look", '{"id": "8"}'))
    stage.start(0)
    stage.start(1)
    stage.clock.time += 1.5
    assert 'look(id="7") · 1.5 s' in stage.moving()
    assert 'look(id="8") · 1.5 s' in stage.moving()
    stage.returned("x", 1)
    assert 'look(id="8")' not in stage.moving()
    assert 'look(id="7")' in stage.moving()


def test_the_same_call_twice_ends_once_at_a_time() -> None:
    stage = Stage()
    stage.ask()
    stage.reply("", ("look", "{}"), ("look", "{}"))
    stage.start(0)
    stage.start(1)
    stage.returned("x", 0)
    assert stage.moving().count("look()") == 1


def test_an_outcome_that_is_not_ok_is_named_and_coloured() -> None:
    stage = Stage(color=True)
    stage.ask()
    stage.reply("", ("look", "{}"))
    stage.start()
    stage.feed(ev.CallFailed, step=1, position=0, outcome="tool_error", text="it broke")
    assert "\x1b[31m" in stage.shown
    assert "tool_error" in stage.shown
    assert "it broke" in stage.shown


def test_little_left_is_yellow() -> None:
    stage = Stage(color=True, steps=10)
    for step in range(1, 10):
        stage.ask(step)
        stage.reply("", ("act", "{}"), step=step)
        stage.feed(ev.CallStarted, step=step, position=0, key=f"r1:{step}:0")
        stage.returned(str(step), step=step)
    assert "\x1b[33m · left: 1 step" in stage.shown
    assert "\x1b[2m · left: 9 steps" in stage.shown


def test_while_the_model_thinks_and_writes_there_is_something_to_see() -> None:
    stage = Stage()
    stage.ask()
    stage.clock.time += 3.14
    assert "step 1: the model is thinking · 3.1 s" in stage.moving()
    stage.view.on_delta(Delta(1, reasoning="hmm"))
    assert "hmm" in stage.moving()
    stage.view.on_delta(Delta(1, "Once upon "))
    stage.view.on_delta(Delta(1, "a time"))
    assert "Once upon a time" in stage.moving()
    assert "writing" in stage.moving()
    stage.reply("Once upon a time")
    assert stage.moving().strip() == ""


def test_a_long_reply_shows_its_end_in_half_the_screen() -> None:
    stage = Stage(width=40)
    stage.ask()
    stage.view.on_delta(Delta(1, "\n".join(f"line {n}" for n in range(500))))
    assert "line 499" in stage.moving()
    assert len(stage.moving().splitlines()) <= 12


def test_a_wait_says_why_and_how_long() -> None:
    stage = Stage()
    stage.ask()
    stage.feed(
        ev.ModelFailed, step=1, attempt=1, kind="RateLimited", message="429: slow down", retryable=True,
        retry_after_s=12.0, status=429,
    )  # fmt: skip
    assert "429: slow down" in stage.shown
    assert "asking again in 12" in stage.shown
    assert "(attempt 2 of 4)" in stage.shown
    stage.clock.time += 2
    assert "left" in stage.moving()


def test_notes_to_the_model_are_shown_once() -> None:
    stage = Stage()
    for step in range(1, 4):
        stage.ask(step)
        stage.reply("", ("act", "{}"), step=step)
        stage.feed(ev.CallStarted, step=step, position=0, key=f"r1:{step}:0")
        stage.returned("same", step=step)
    assert stage.shown.count("told the model") == 1
    assert "warning" not in stage.shown


def test_what_a_person_says_and_new_limits_are_shown() -> None:
    stage = Stage()
    stage.feed(ev.MessageQueued, parts=(Text("hurry up"),))
    stage.feed(ev.LimitsRaised, limits=Limits(steps=7))
    assert "you: hurry up" in stage.shown
    assert "limits from now on: 7 steps" in stage.shown


def test_a_late_result_is_said() -> None:
    stage = Stage()
    stage.ask()
    stage.reply("", ("act", "{}"))
    stage.start()
    stage.feed(ev.CallTimedOut, step=1, position=0, after_s=1, text="gave up")
    stage.feed(ev.LateResultArrived, step=1, position=0, outcome="ok", text="done after all")
    assert "act came back late: ok: done after all" in stage.shown


def test_a_question_and_its_answer_are_shown_with_the_call() -> None:
    stage = Stage()
    stage.ask()
    stage.reply("", ("pay", '{"to": "Ann"}'))
    stage.question(ev.ApprovalAsked, reason=HOSTILE)
    assert 'pay(to="Ann") · somebody has to allow it: [bold]b[/bold]' in stage.shown
    end = stage.view.story.machine.next(stage.clock.time)
    stage.feed(ev.RunEnded, status=end.status, reason=end.reason)
    stage.question(ev.ApprovalGiven, verdict="allow", by=HOSTILE, arguments='{"to":"Bob"}')
    assert 'with other arguments: {"to":"Bob"}' in stage.shown
    assert "\x1b[2J" not in stage.shown


def test_what_the_policy_allowed_is_not_worth_a_line() -> None:
    stage = Stage()
    stage.ask()
    stage.reply("", ("pay", "{}"))
    stage.question(ev.ApprovalGiven, verdict="allow", by="policy")
    assert "policy" not in stage.shown


def test_undoing_is_shown_while_it_goes_on_and_when_it_is_done() -> None:
    stage = Stage()
    stage.ask()
    stage.reply("", ("act", "{}"))
    stage.start()
    stage.returned("x")
    stage.ask(2)
    stage.reply("done", step=2)
    stage.feed(ev.RunEnded, status="answered", answer="done")
    stage.feed(ev.UndoRequested, tools=TOOLS, by="carla")
    stage.feed(ev.UndoStarted, step=1, position=0, key="r1:1:0")
    assert "undoing act()" in stage.moving()
    stage.feed(ev.CallUndone, step=1, position=0, outcome="tool_error", text=HOSTILE)
    assert "act() · could not be undone, tool_error: [bold]b[/bold]" in stage.shown
    assert "\x1b[2J" not in stage.shown
    assert stage.moving().strip() == ""


def test_a_fork_and_a_session_are_told_at_the_beginning() -> None:
    stage = Stage(begin={"origin": "k2v9@3", "session": "trip", "turn": 2})
    assert "session trip, turn 2" in stage.shown
    assert "forked from run k2v9 at step 3" in stage.shown


def test_hostile_text_never_reaches_the_terminal_as_it_is() -> None:
    stage = Stage()
    stage.ask()
    stage.view.on_delta(Delta(1, HOSTILE, HOSTILE))
    moving = stage.moving()
    stage.reply(HOSTILE, ("look", '{"q": "[red]\\u001b[2J\\u202e"}'), (HOSTILE, "{" + HOSTILE), remarks=(HOSTILE,))
    stage.start()
    stage.returned(HOSTILE)
    stage.feed(ev.CallFailed, step=1, position=1, outcome="unknown_tool", text=HOSTILE)
    stage.feed(ev.MessageQueued, parts=(Text(HOSTILE),))
    for shown in (stage.shown, moving):
        assert "[bold]b[/bold]" in shown
        assert "\x1b[2J" not in shown
        assert "\u202e" not in shown
        assert "\\x1b[2J" in shown


@pytest.mark.parametrize("width", [20, 40, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    stage = Stage(width=width)
    stage.ask()
    stage.reply("word " * 50 + "x" * 300, ("look", '{"q": "' + "y" * 300 + '"}'), usage=Usage(10**9, 10**9))
    stage.start()
    stage.returned("z" * 3000)
    assert max(len(line) for line in stage.shown.splitlines()) <= width


def test_without_stream_the_view_is_no_listener_of_deltas() -> None:
    assert not hasattr(Stage(stream=False).view, "on_delta")


def test_it_starts_and_stops_and_leaves_nothing_moving() -> None:
    stage = Stage()
    with stage.view:
        stage.ask()
        stage.reply("answer")
        stage.feed(ev.RunEnded, status="answered", answer="answer")
    assert stage.shown.rstrip("\r").endswith("\x1b[?25h")  # the cursor is back
