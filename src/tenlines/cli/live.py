"""The live view: what a run does while it does it, on standard error.

Finished things scroll by as lines; what is under way stands below them and moves. The lines come from events,
the moving part from a snapshot that is replaced as a whole, so that the drawing thread never waits for the run.
"""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from tenlines.cli import lines
from tenlines.cli.screen import signs
from tenlines.core import events as ev
from tenlines.core.effects import Sleep
from tenlines.ports import Clock, Delta
from tenlines.trace import words
from tenlines.trace.story import ALLOWED_BY_POLICY, CallView, Remark, StepView, Story
from tenlines.trace.text import clean, one_line

FRAMES_PER_SECOND = 10
TAIL_CHARS = 4000
"""How much of a reply is kept while it is written; what is shown is less."""
TEXT_LINES = 3
"""Lines of a reply's text that are kept in view beside its calls."""


class Activity(NamedTuple):
    """Something that is under way: since when, or until when it waits."""

    label: str
    since: float
    until: float | None = None


class Picture(NamedTuple):
    """Everything that moves."""

    activities: tuple[Activity, ...] = ()
    writing: str = ""
    thinking: str = ""


class LiveView:
    """An observer that draws. Give it the story so far when a run is resumed."""

    def __init__(self, console: Console, clock: Clock, *, stream: bool = True, story: Story | None = None) -> None:
        self.console, self.clock, self.story = console, clock, story or Story()
        self.signs = signs(console)
        self.picture = Picture()
        self._live = Live(
            console=console,
            get_renderable=self.draw,
            refresh_per_second=FRAMES_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
            # What tools print appears above the moving part. `own_stdout` has standard output out of reach already.
            redirect_stdout=True,
            redirect_stderr=True,
        )
        if stream:
            self.on_delta = self._on_delta  # a driver streams only for observers that have it

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.picture = Picture()
        self._live.stop()

    # --- what happens -------------------------------------------------------------------------------

    def on_event(self, event: ev.AnyEvent) -> None:
        """Draw an event."""
        remarks = self.story.take(event)
        event = self.story.redaction.of(event)
        match event:
            case ev.RunStarted():
                self._started(event)
            case ev.RunResumed():
                self._resumed()
            case ev.StepStarted(step=step):
                self.picture = Picture((Activity(f"step {step}: the model is thinking", event.at),))
            case ev.ModelReplied():
                self._replied()
            case ev.CallStarted(step=step, position=position):
                view = self.story.call(step, position)
                self._begin(words.call(view.name, view.arguments), event.at)
            case ev.CallReturned() | ev.CallFailed() | ev.CallTimedOut() | ev.CallAbandoned():
                self._call_ended(event.step, event.position)
            case ev.RunEnded():
                self.picture = Picture()
            case _:
                self._aside(event)
        for remark in remarks:
            self._remark(remark)

    def _aside(self, event: ev.AnyEvent) -> None:
        """What is said of calls beside their start and end."""
        match event:
            case ev.LateResultArrived(step=step, position=position):
                view = self.story.call(step, position)
                self._line(Text(f"{one_line(view.name, 60)} came back late: {one_line(view.late)}", "yellow"), 2)
            case ev.ApprovalAsked() | ev.ApprovalGiven() | ev.CallReconciled() | ev.CallUndone():
                self._said_of_call(event)
            case ev.ChildPaused(step=step, position=position):
                self._no_longer(self.story.call(step, position))
                self._said_of_call(event)
            case ev.SummaryStarted():
                self.picture = Picture((Activity("the model is summing up what was done so far", event.at),))
            case ev.SummaryEnded():
                self.picture = Picture()
            case ev.UndoStarted(step=step, position=position):
                view = self.story.call(step, position)
                self.picture = Picture((Activity(f"undoing {words.call(view.name, view.arguments)}", event.at),))

    def _on_delta(self, delta: Delta) -> None:
        """Show a piece of the reply that is being written."""
        activities, writing, thinking = self.picture
        if delta.text or delta.answer:
            activities = tuple(one._replace(label=f"step {delta.step}: the model is writing") for one in activities)
        self.picture = Picture(
            activities, (writing + delta.text + delta.answer)[-TAIL_CHARS:], (thinking + delta.reasoning)[-TAIL_CHARS:]
        )

    def _started(self, event: ev.RunStarted) -> None:
        dot = self.signs.dot
        words_ = [f"run {event.run_id}", event.model, words.count(len(event.tools), "tool")]
        if event.session:
            words_.insert(1, f"session {event.session}, turn {event.turn}")
        limits = words.limits_words(event.settings.limits)
        line = f" {dot} ".join(one_line(word, 80) for word in [*words_, f"limits: {limits}"])
        self._line(Text(line, "dim"))
        if event.origin:
            self._line(Text(f"forked from {one_line(words.origin(event.origin))}", "dim"))

    def _resumed(self) -> None:
        account = self.story.machine.state.account
        assert self.story.start is not None
        so_far = f"{words.count(account.steps, 'step')} and {words.count(account.tool_calls, 'call')} so far"
        line = f"resuming run {self.story.start.run_id} {self.signs.dot} {so_far}"
        self._line(Text(line, "dim"))
        self.picture = Picture()

    def _replied(self) -> None:
        step = self.story.step
        assert step is not None
        assert step.reply is not None
        self.picture = Picture()
        heading = lines.step_heading(step, self.signs.dot)
        left = self.story.machine.result().left
        heading.append_text(lines.what_is_left(left, self.story.machine.state.limits, self.signs.dot))
        self._line(heading)
        if step.calls and step.reply.text.strip():
            self._said(step)
        for remark in step.reply.remarks:
            self._line(Text(one_line(remark), "yellow"), 2)

    def _said(self, step: StepView) -> None:
        assert step.reply is not None
        shown, more = lines.block(step.reply.text.strip(), TEXT_LINES)
        self._line(Text(shown + (" …" if more else ""), "italic"), 2, wrap=True)

    def _begin(self, label: str, at: float) -> None:
        self.picture = Picture((*self.picture.activities, Activity(label, at)))

    def _call_ended(self, step: int, position: int) -> None:
        view = self.story.call(step, position)
        self._no_longer(view)
        self._line(lines.call_heading(view, self.signs), 2)
        self._line(lines.call_result(view), 4)
        for remark in view.remarks:
            self._line(Text(one_line(remark), "dim"), 4)

    def _no_longer(self, view: CallView) -> None:
        """A call does not run any more."""
        label = words.call(view.name, view.arguments)
        running = list(self.picture.activities)
        done = next((one for one in running if one.label == label and one.since == view.started_at), None)
        if done is not None:
            running.remove(done)
        self.picture = Picture(tuple(running))

    def _said_of_call(
        self, event: ev.ApprovalAsked | ev.ApprovalGiven | ev.CallReconciled | ev.CallUndone | ev.ChildPaused
    ) -> None:
        view = self.story.call(event.step, event.position)
        if isinstance(event, ev.CallUndone):
            self.picture = Picture()
        said = view.notes[-1]
        if said != ALLOWED_BY_POLICY:
            line = Text().append(words.call(view.name, view.arguments), "cyan")
            self._line(line.append(f" {self.signs.dot} {one_line(said, 400)}"), 2, wrap=True)

    def _remark(self, remark: Remark) -> None:
        if remark.kind in ("resumed", "cancel"):
            return  # told in another way, by whoever resumed or cancelled
        self._line(lines.remark_line(remark), 2)
        if remark.kind == "failed":
            self._wait(remark.at)

    def _wait(self, at: float) -> None:
        """After a failed request: say how long nothing happens, and why."""
        state = self.story.machine.state
        effect = self.story.machine.next(at)  # asking changes nothing; the driver will hear the same
        self.picture = Picture()
        if isinstance(effect, Sleep):
            seconds, attempts = effect.until - at, state.settings.retry.attempts
            text = f"asking again in {words.duration(seconds)} (attempt {state.attempt + 1} of {attempts})"
            self._line(Text(text, "yellow"), 2)
            self.picture = Picture((Activity("waiting before the next attempt", at, effect.until),))

    def _line(self, text: Text, indent: int = 0, *, wrap: bool = False) -> None:
        lines.put(self.console, text, indent, wrap=wrap)

    # --- what moves ---------------------------------------------------------------------------------

    def draw(self) -> RenderableType:
        """The moving part, as it is now. Called by the drawing thread."""
        picture, now = self.picture, self.clock.now()
        rows: list[RenderableType] = []
        if picture.writing:
            rows.append(self._tail(picture.writing, max(3, self.console.height // 2), ""))
        elif picture.thinking:
            rows.append(self._tail(picture.thinking, 3, "dim italic"))
        sign = self.signs.spinner[int(now * FRAMES_PER_SECOND) % len(self.signs.spinner)]
        rows.extend(self._activity(one, sign, now) for one in picture.activities)
        return Group(*rows)

    def _tail(self, text: str, height: int, style: str) -> Text:
        """The last lines of a text, as the terminal breaks them."""
        width = max(10, self.console.width - 2)
        wrapped = Text(clean(text).lstrip("\n"), style).wrap(self.console, width)[-height:]
        return Text("\n").join(Text("  ").append_text(line) for line in wrapped)

    def _activity(self, one: Activity, sign: str, now: float) -> Text:
        seconds = now - one.since if one.until is None else max(0.0, one.until - now)
        # no milliseconds: this moves ten times a second, and the line should not jump
        clock = words.duration(seconds) if seconds >= 1 else f"{seconds:.1f} s"
        clock += "" if one.until is None else " left"
        line = Text(no_wrap=True, overflow="ellipsis").append(f"{sign} ", "cyan")
        room = max(10, self.console.width - len(clock) - 6)
        return line.append(one_line(one.label, room)).append(f" {self.signs.dot} {clock}", "dim")
