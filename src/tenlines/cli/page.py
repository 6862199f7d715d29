"""A whole run as a page of text: what `tenlines show` prints."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tenlines.cli import ending, lines, moves
from tenlines.cli.mcp_tools import origin
from tenlines.cli.owners import is_gone, open_status
from tenlines.cli.screen import signs
from tenlines.core.transcript import System
from tenlines.ports import SystemClock
from tenlines.trace import words
from tenlines.trace.story import CallView, Remark, StepView, Story, task_of
from tenlines.trace.text import clean, one_line

RESULT_LINES = 6
TEXT_LINES = 12
LINE_CHARS = 2000
"""A single line longer than this is folded too: a result of one line may have megabytes."""


class Page:
    """Prints parts of a story.

    Args:
        full: Fold nothing.
        journal: The journal as it was named, for the commands that are suggested.
    """

    def __init__(self, console: Console, story: Story, *, full: bool, journal: str | None) -> None:
        self.console, self.story, self.full, self.journal = console, story, full, journal
        self.signs = signs(console)

    def whole(self) -> bool:
        """The head, everything that happened, the end. There is always something."""
        self._head()
        for item in self.story.items:
            if isinstance(item, StepView):
                self.console.print()
                self._step(item)
            else:
                self._remark(item)
        self.end()
        return True

    def step(self, number: int) -> bool:
        """One step; False when there is none of this number."""
        found = [one for one in self.story.items if isinstance(one, StepView) and one.number == number]
        for one in found:
            self._step(one)
        return bool(found)

    def calls(self, number: int | None) -> bool:
        """The calls alone, of one step or of all; False when there is no such step."""
        steps = [one for one in self.story.items if isinstance(one, StepView) and number in (None, one.number)]
        views = [view for step in steps for view in step.calls]
        for view in views:
            took = "" if view.seconds is None else words.duration(view.seconds)
            style = lines.OUTCOME_STYLE.get(view.outcome, "yellow")
            line = (
                Text().append(f"{view.place:<6}").append(f"{view.standing:<18}", style).append(f"{took:>12}  ", "dim")
            )
            line.append(words.call(view.name, view.arguments, full=self.full), "cyan")
            if view.outcome:
                line.append(f" {self.signs.back} {one_line(view.text, 400) or '(nothing)'}", "dim")
            self._line(line)
        if not views and (steps or number is None):
            self._line(Text("no calls", "dim"))
        return bool(steps) or number is None

    # --- the head -----------------------------------------------------------------------------------

    def _head(self) -> None:
        start, state = self.story.start, self.story.machine.state
        assert start is not None
        status = "open" if self.story.end is None else self.story.end.status
        when = words.ago(SystemClock().now() - start.at)
        self._line(
            Text()
            .append(f"run {start.run_id}", "bold")
            .append(f" {self.signs.dot} {status} {self.signs.dot} {when}", "")
        )
        self._field("task", task_of(start))
        if len(start.messages) > 1 + isinstance(start.messages[0], System):
            self._field("before", f"{words.count(len(start.messages) - 1, 'earlier message')}")
        if isinstance(start.messages[0], System):
            self._field("told", start.messages[0].text)
        if start.session:
            self._field("session", f"{start.session}, turn {start.turn}")
        if start.origin:
            self._field("from", words.origin(start.origin))
        if start.parent:
            self._field("call of", words.parent(start.parent))
        self._field("model", start.model)
        self._field("tools", self._tools())
        self._field("limits", words.limits_words(state.limits))
        for repair in start.repairs:
            self._field("mended", repair)

    def _tools(self) -> str:
        by_file: dict[str, list[str]] = {}
        for spec in self.story.redaction.of(self.story.machine.state.specs):
            by_file.setdefault(origin(spec.source), []).append(spec.name)
        named = [", ".join(names) + (f" ({file})" if file else "") for file, names in by_file.items()]
        return "; ".join(named) or "none"

    def _field(self, name: str, text: str) -> None:
        shown = clean(text.strip()) if self.full else one_line(text, 400)
        first, *more = shown.split("\n")
        self._line(Text().append(f"{name:<8}", "dim").append(first), wrap=True)
        for line in more:
            self._line(Text(line), 8, wrap=True)

    # --- what happened ------------------------------------------------------------------------------

    def _step(self, step: StepView) -> None:
        self._line(lines.step_heading(step, self.signs.dot), wrap=True)
        if step.reply is None:
            if not step.failed:
                self._line(Text("no reply was recorded", "yellow"), 2)
            return
        if step.reply.text.strip():
            self._block(step.reply.text, 2, TEXT_LINES, "" if not step.calls else "italic")
        for remark in step.reply.remarks:
            self._line(Text(clean(remark), "yellow"), 2, wrap=True)
        for view in step.calls:
            self._call(view)

    def _call(self, view: CallView) -> None:
        self._line(lines.call_heading(view, self.signs, full=self.full), 2, wrap=True)
        if view.outcome:
            whole = view.full if self.full and view.full else view.text
            self._block(whole or "(nothing)", 4, RESULT_LINES, "dim" if view.outcome == "ok" else "")
        elif not view.waits and not view.notes:
            what = "it has not started" if view.started_at is None else "no result was recorded"
            self._line(Text(what, "yellow"), 4)
        if view.child:
            command = moves.command("show", [view.child], self.journal)
            self._line(Text().append("its run: ", "dim").append(clean(command)), 4, wrap=True)
        for note in lines.call_notes(view, full=self.full):
            self._line(note, 4, wrap=True)
        for remark in view.remarks:
            self._line(Text(clean(remark), "dim italic"), 4, wrap=True)
        if view.full and not self.full:
            self._line(Text(f"the model saw a part of {len(view.full):,} characters", "dim italic"), 4)
        if view.late:
            self._line(Text(f"came back late, {clean(view.late)}", "yellow"), 4, wrap=True)
        if self.full and view.detail:
            self._block(view.detail, 4, None, "dim")

    def _remark(self, remark: Remark) -> None:
        if remark.kind in ("resumed", "limits"):
            self.console.print()
        self._line(lines.remark_line(remark, full=self.full), 2, wrap=True)

    def _block(self, text: str, indent: int, most: int | None, style: str) -> None:
        """Some text, folded to its first lines unless everything is wanted."""
        shown, more = lines.block(text, None if self.full else most)
        if not self.full and len(shown) > LINE_CHARS:
            shown, more = shown[: LINE_CHARS - 1] + "…", max(more, 1)
        self._line(Text(shown, style), indent, wrap=True)
        if more:
            self._line(Text(f"… {words.count(more, 'more line')} (--full)", "dim italic"), indent)

    # --- the end ------------------------------------------------------------------------------------

    def answer(self) -> None:
        """The answer, where there is one, whole."""
        if self.story.end is not None and self.story.end.answer is not None:
            self.console.print()
            self._line(Text(clean(self.story.end.answer)), wrap=True)

    def end(self) -> None:
        """How it ended, or that it has not; what it used."""
        result, state = self.story.result(), self.story.machine.state
        self.console.print()
        if self.story.end is None:
            self._open(result.run_id)
        elif result.status == "answered":
            ending.answered(self.console, result, self.story.worked_s)
            ending.undone(self.console, result)
            return
        else:
            ending.stopped(self.console, result, state.limits, self.journal, is_of_fleet=self._is_of_fleet)
        self._line(Text(words.totals(result, self.story.worked_s).replace("·", self.signs.dot), "dim"), wrap=True)

    def _open(self, run_id: str) -> None:
        """Who works on it; the command that goes on, unless somebody does."""
        self._line(Text(clean(open_status(self.story.owner, is_of_fleet=self._is_of_fleet)), "bold cyan"))
        gone = is_gone(self.story.owner)
        if self._is_of_fleet:
            command = moves.command("wait", [run_id], self.journal)
            self._line(Text().append("its fleet works on it: ", "dim").append(clean(command), "bold"), wrap=True)
        elif gone is not False:
            command = moves.command("resume", [run_id], self.journal)
            about = "go on: " if gone else "if that process died, go on: "
            self._line(Text().append(about, "dim").append(clean(command), "bold"), wrap=True)

    @property
    def _is_of_fleet(self) -> bool:
        return self.story.start is not None and bool(self.story.start.queue)

    def _line(self, text: Text, indent: int = 0, *, wrap: bool = False) -> None:
        lines.put(self.console, text, indent, wrap=wrap)
