"""Steps, calls and remarks as lines of a terminal, for the live view and for `show`. All text is made harmless here."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from tenlines.cli.screen import Signs
from tenlines.core.limits import Left, Limits
from tenlines.trace import words
from tenlines.trace.story import ALLOWED_BY_POLICY, CallView, Remark, StepView
from tenlines.trace.text import clean, one_line

OUTCOME_STYLE = {"ok": "green", "tool_error": "red", "timeout": "red", "in_doubt": "bold red"}
"""All other outcomes are yellow: nothing ran, and the model was told."""

REMARK_STYLE = {
    "note": "magenta",
    "warning": "yellow",
    "failed": "yellow",
    "cancel": "yellow",
    "cut": "cyan",
    "cache": "yellow",
}
REMARK_WORD = {
    "note": "told the model",
    "warning": "warning",
    "said": "you",
    "failed": "no reply",
    "limits": "limits from now on",
    "cancel": "cancel",
    "resumed": "resumed",
    "undo": "undo requested",
    "cut": "transcript cut",
    "cache": "not in the provider's cache any more",
}
LOW = 0.25
"""A limit of which less than this part is left is shown in yellow."""


def step_heading(step: StepView, dot: str) -> Text:
    """`step 2 · 4.2 s · 1,203 tokens in (85% cached), 33 out`."""
    line = Text().append(f"step {step.number}", "bold")
    facts = [] if step.seconds is None else [words.duration(step.seconds)]
    if step.reply is not None:
        facts.append(words.tokens(step.reply.usage))
        if step.dollars:
            facts.append(words.dollars(step.dollars))
    return line.append("".join(f" {dot} {fact}" for fact in facts), "dim")


def what_is_left(left: Left, limits: Limits, dot: str) -> Text:
    """` · left: 11 steps, $0.49`, yellow where it is little."""
    sentence = words.left(left)
    if not sentence:
        return Text()
    names = ("steps", "tool_calls", "tokens", "dollars", "seconds")
    pairs = [(getattr(left, name), getattr(limits, name)) for name in names]
    is_low = any(now is not None and full and now < LOW * full for now, full in pairs)
    return Text(f" {dot} left: {sentence}", "yellow" if is_low else "dim")


def call_heading(view: CallView, signs: Signs, *, full: bool = False) -> Text:
    """`✓ get_order(order_id="1042") · 12 ms`, with the outcome where it is not ok."""
    style = OUTCOME_STYLE.get(view.outcome, "yellow")
    sign = (signs.ok if view.outcome == "ok" else signs.bad) if view.outcome else signs.dot
    line = Text().append(f"{sign} ", style)
    if view.outcome != "ok":
        line.append(f"{view.standing} ", style)
    line.append(words.call(view.name, view.arguments, full=full), "cyan")
    if view.seconds is not None:
        line.append(f" {signs.dot} {words.duration(view.seconds)}", "dim")
    return line


def call_result(view: CallView) -> Text:
    """The result in one line."""
    return Text(one_line(view.text, 400) or "(nothing)", "dim" if view.outcome == "ok" else "")


def call_notes(view: CallView, *, full: bool = False) -> list[Text]:
    """Who allowed it, what became of it. That the policy allowed it is told where everything is."""
    told = [note for note in view.notes if full or note != ALLOWED_BY_POLICY]
    return [Text(clean(note) if full else one_line(note, 400), "cyan") for note in told]


def remark_line(remark: Remark, *, full: bool = False) -> Text:
    """`told the model: ...`."""
    word = REMARK_WORD[remark.kind]
    if remark.by:
        word = f"{one_line(remark.by, 60)} said" if remark.kind == "said" else f"{word} by {one_line(remark.by, 60)}"
    line = Text().append(word, REMARK_STYLE.get(remark.kind, "bold"))
    if remark.text:
        text = clean(remark.text) if full else one_line(remark.text, 400)
        line.append(" " if text.startswith("by ") and remark.kind in ("resumed", "undo") else ": ").append(text)
    return line


def block(text: str, most: int | None) -> tuple[str, int]:
    """The first `most` lines of a text, made harmless, and how many lines are left out."""
    lines = text.strip("\n").split("\n")
    shown = lines if most is None else lines[:most]
    return clean("\n".join(shown)), len(lines) - len(shown)


def put(console: Console, text: Text, indent: int = 0, *, wrap: bool = False) -> None:
    """Print with an indent. On a terminal a long line is wrapped or ends in an ellipsis; elsewhere it stays whole."""
    room = max(10, console.width - indent)
    if not console.is_terminal:
        pieces = list(text.split("\n"))
    elif wrap:
        pieces = list(text.wrap(console, room, overflow="fold"))
    else:
        text.truncate(room, overflow="ellipsis")
        pieces = [text]
    for piece in pieces:
        piece.rstrip()
        console.print(Text(" " * indent).append_text(piece), soft_wrap=True)
