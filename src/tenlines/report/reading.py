"""Events in, a view out: folds the log of one run, once, into what a page shows of it.

The story and the ledger fold the events as they are; what is shown comes from the redacted ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from tenlines.core import events as ev
from tenlines.core.costs import Ledger, StepLine
from tenlines.core.events import AnyEvent
from tenlines.core.ledger import LedgerKeeper
from tenlines.core.limits import Price
from tenlines.core.outcomes import parse_arguments
from tenlines.report import heads, starts
from tenlines.report.model import (
    CallItem,
    ChildRef,
    EndItem,
    Fact,
    Head,
    Item,
    Link,
    RemarkItem,
    RunView,
    StepItem,
    Tone,
)
from tenlines.report.reasoning import reasoning_of
from tenlines.report.series import series_of
from tenlines.trace import words
from tenlines.trace.redaction import NONE, Redaction
from tenlines.trace.story import CallView, Remark, StepView, Story
from tenlines.trace.text import clean, one_line

NextMoves: TypeAlias = Callable[[Story], Sequence[tuple[str, str]]]
"""What can be done about a run: why, and the command. Made by whoever knows the commands."""


def no_moves(story: Story) -> Sequence[tuple[str, str]]:
    """Nothing can be done from here."""
    return ()


class Reading:
    """Takes the events of one run in their order, as a journal gives them back.

    Args:
        redaction: What is taken out of all that is shown. It has learnt the log, where secrets are to be taken out that
            are named as such only later in it.
        key: What all ids begin with, where a page has several runs.
        price: Of requests whose price the log does not know.
        moves: What can be done about the run.
        children: The runs that served its calls, by the key of the call (`RUN:STEP:POSITION`).
        parent: The element of the call that it serves, on the same page.
    """

    def __init__(
        self,
        redaction: Redaction = NONE,
        *,
        key: str = "",
        price: Price | None = None,
        moves: NextMoves = no_moves,
        children: Mapping[str, Sequence[ChildRef]] | None = None,
        parent: str = "",
    ) -> None:
        self.story, self.keeper = Story(redaction), LedgerKeeper(price)
        self.redaction, self.key, self.parent = redaction, key, parent
        self._moves, self._children = moves, children or {}
        self._ids: list[str] = []
        """Of the items of the story."""
        self._places: dict[str, int] = {}
        """Where in the story an id is."""
        self._newest: dict[int, str] = {}
        """The id of each step."""
        self._latest = ""
        """The id of the step that was asked for last."""
        self._remarks = 0

    def take(self, event: AnyEvent) -> tuple[str, ...]:
        """Add one event.

        Returns:
            The ids of the items that are new, or not as they were. The head and the charts change with every event.

        Raises:
            InvalidEvent: The log is not the log of a run.
        """
        newest = self._latest
        self.story.take(event)
        self.keeper.take(event)
        changed = [self._name(at) for at in range(len(self._ids), len(self.story.items))]
        step = getattr(event, "step", None)
        if isinstance(step, int) and step in self._newest:
            changed.append(self._newest[step])
        if isinstance(event, ev.RunEnded | ev.RunResumed | ev.UndoRequested | ev.StepStarted) and newest:
            changed.append(newest)  # it may wait no more, or be asked for again
        match event:
            case ev.RunStarted():
                changed = [self._id("start"), *changed, self._id("end")]
            case ev.RunEnded() | ev.RunResumed() | ev.UndoRequested():
                changed.append(self._id("end"))
        return tuple(dict.fromkeys(changed))

    def view(self) -> RunView:
        """The run as it stands."""
        ledger = self.keeper.ledger()
        series = series_of(self.story, ledger)
        return RunView(head=self.head(ledger), items=self.items(), series=series, parent=self.parent)

    def head(self, ledger: Ledger | None = None) -> Head:
        """The head alone; its figures are those of the ledger."""
        ledger = ledger or self.keeper.ledger()
        moves = [(clean(why), clean(self.redaction.text(how))) for why, how in self._moves(self.story)]
        return heads.head_of(self.story, ledger, self.key, moves)

    def items(self) -> tuple[Item, ...]:
        """Everything that happened, in its order."""
        if self.story.start is None:
            return ()
        told = [self._item(at) for at in range(len(self._ids))]
        return (starts.start_item(self._id("start"), self.story.start), *told, self._end())

    def item(self, id: str) -> Item:
        """The item with this id.

        Raises:
            KeyError: There is none.
        """
        if id == self._id("start") and self.story.start is not None:
            return starts.start_item(id, self.story.start)
        return self._end() if id == self._id("end") else self._item(self._places[id])

    # --- ids ---

    def _id(self, name: str) -> str:
        return f"{self.key}-{name}" if self.key else name

    def _name(self, at: int) -> str:
        """Name an item of the story. A step that is asked for again after a crash is another item."""
        item = self.story.items[at]
        if isinstance(item, StepView):
            name = self._id(f"step-{item.number}")
            while name in self._places:
                name += "-again"
            self._newest[item.number] = self._latest = name
        else:
            self._remarks += 1
            name = self._id(f"remark-{self._remarks}")
        self._ids.append(name)
        self._places[name] = at
        return name

    def _call_id(self, view: CallView) -> str:
        return self._id(f"call-{view.step}-{view.position + 1}")

    # --- items ---

    def _item(self, at: int) -> Item:
        item, id = self.story.items[at], self._ids[at]
        return self._step(item, id, at) if isinstance(item, StepView) else self._remark(item, id)

    def _since(self, at: float) -> str:
        start = self.story.start
        away = 0.0 if start is None else max(0.0, at - start.at)
        return f"+{words.duration(away)}" if away >= 0.0005 else "+0 ms"

    def _remark(self, remark: Remark, id: str) -> RemarkItem:
        word, tone = REMARKS[remark.kind]
        if remark.by:
            word = (
                f"{one_line(remark.by, 60)} said" if remark.kind == "said" else f"{word} by {one_line(remark.by, 60)}"
            )
        return RemarkItem(id, remark.kind, word, tone, self._since(remark.at), clean(remark.text))

    def _step(self, step: StepView, id: str, at: int) -> StepItem:
        line = self.keeper.step_line(step.number) if self._newest[step.number] == id else None
        reply = step.reply
        standing, tone = self._standing(step)
        return StepItem(
            id=id,
            number=step.number,
            at=self._since(step.asked_at),
            standing=standing,
            tone=tone,
            facts=_step_facts(step, line) if line is not None else (),
            sent=self._sent(at),
            changed=clean(self.redaction.text(line.changed)) if line is not None else "",
            reasoning=clean(reasoning_of(reply)) if reply is not None else "",
            text=clean(reply.text) if reply is not None else "",
            remarks=tuple(map(clean, reply.remarks)) if reply is not None else (),
            calls=tuple(map(self._call, step.calls)),
        )

    def _standing(self, step: StepView) -> tuple[str, Tone]:
        if step.reply is None:
            is_open = self.story.end is None and step is self.story.step
            return ("waits for the reply", "info") if is_open and not step.failed else ("no reply", "warn")
        if step.calls:
            tones = [call_tone(call) for call in step.calls]
            worst: Tone = next((tone for tone in _WORST if tone in tones), "good")
            return words.count(len(step.calls), "call"), worst
        return ("answers", "good") if step.reply.stop == "end" else (f"stops: {step.reply.stop}", "warn")

    def _sent(self, at: int) -> tuple[Link, ...]:
        """What the request held that the one before did not: results, and what was said meanwhile."""
        found: list[Link] = []
        for before in range(at - 1, -1, -1):
            item = self.story.items[before]
            if isinstance(item, StepView) and item.reply is not None:
                calls = [Link(self._call_id(call), f"result {call.place}") for call in item.calls]
                return (*_few(calls), *reversed(found))
            if isinstance(item, Remark) and item.kind in _SENT:
                found.append(Link(self._ids[before], _SENT[item.kind]))
        return (Link(self._id("start"), "the beginning"), *reversed(found))

    def _call(self, view: CallView) -> CallItem:
        start = self.story.start
        key = f"{start.run_id if start else ''}:{view.step}:{view.position}"
        return CallItem(
            id=self._call_id(view),
            place=view.place,
            name=one_line(view.name, 80),
            line=words.call(view.name, view.arguments),
            brief=one_line(view.text, 160),
            standing=view.standing,
            tone=call_tone(view),
            facts=self._call_facts(view),
            arguments=clean(_pretty(view.arguments)),
            result=clean(view.text),
            full=clean(view.full),
            detail=clean(view.detail),
            notes=tuple(map(clean, view.notes)),
            remarks=tuple(map(clean, view.remarks)),
            late=clean(view.late),
            children=tuple(self._children.get(key, ())),
        )

    def _call_facts(self, view: CallView) -> tuple[Fact, ...]:
        line = self.keeper.call_line(view.step, view.position)
        facts = [] if view.seconds is None else [Fact("time", words.duration(view.seconds))]
        if view.started_at is not None:
            facts.append(Fact("started", self._since(view.started_at)))
        if line.tokens:
            facts.append(Fact("result", f"~{line.tokens:,} tokens", "an estimate"))
        if line.sent:
            held = f"in {words.count(line.sent, 'request')}: ~{line.carried:,} tokens"
            facts.append(Fact("carried", held, "input tokens that the result was in all requests that held it"))
        if line.spent is not None and line.spent.tokens:
            facts.append(Fact("spent", f"{line.spent.tokens:,} tokens", "what the runs under the call used"))
        return tuple(facts)

    def _end(self) -> EndItem:
        status, tone = heads.status_of(self.story)
        end = self.story.end
        at = self._since(self.story.last_at if end is None else end.at)
        why, answer = ("", "") if end is None else (clean(end.reason), clean(end.answer or ""))
        return EndItem(self._id("end"), status, tone, at, heads.STATUS_WORDS[status], why, answer)


def read_run(events: Iterable[AnyEvent], reading: Reading | None = None) -> RunView:
    """The view of a whole log.

    Raises:
        InvalidEvent: The log is not the log of a run.
    """
    reading = reading or Reading()
    kept = list(events)
    reading.redaction.learn(kept)
    for event in kept:
        reading.take(event)
    return reading.view()


def call_tone(view: CallView) -> Tone:
    """How a call is coloured."""
    return _TONES.get(view.standing, "warn")


_TONES: dict[str, Tone] = {"ok": "good", "tool_error": "bad", "timeout": "bad", "in_doubt": "bad", "open": "info"}
"""All others are `warn`: nothing ran, and the model was told."""
_WORST: tuple[Tone, ...] = ("bad", "warn", "info", "good")
_SENT = {"note": "a note", "said": "what was said", "cut": "a shorter transcript"}

REMARKS: dict[str, tuple[str, Tone]] = {
    "note": ("told the model", "info"),
    "warning": ("warning", "warn"),
    "said": ("somebody said", "info"),
    "failed": ("no reply", "warn"),
    "limits": ("limits from now on", "info"),
    "cancel": ("cancel", "warn"),
    "resumed": ("resumed", "info"),
    "undo": ("undo requested", "warn"),
    "cut": ("transcript cut", "info"),
    "cache": ("not in the provider's cache any more", "warn"),
}
"""The word for each kind of remark, and how it is coloured."""

_LISTED = 6


def _few(links: list[Link]) -> list[Link]:
    """The first of many."""
    if len(links) <= _LISTED:
        return links
    return [*links[:_LISTED], Link(links[_LISTED].id, f"and {len(links) - _LISTED:,} more results")]


def _pretty(arguments: str) -> str:
    """Arguments in lines. What cannot be read is shown as it came."""
    parsed = parse_arguments(arguments).value
    if not parsed:
        return arguments
    return json.dumps(parsed, ensure_ascii=False, indent=2)


def _step_facts(step: StepView, line: StepLine) -> tuple[Fact, ...]:
    facts = [] if line.latency_s is None else [Fact("time", words.duration(line.latency_s))]
    usage = line.usage
    if usage is not None and usage.input is not None:
        cached = f" ({100 * (usage.cache_read or 0) / usage.input:.0f}% cached)" if usage.cache_read else ""
        new = "" if line.new is None else f"{line.new:+,} to the step before"
        facts.append(Fact("in", f"{usage.input:,}{cached}", new))
    if usage is not None and usage.output is not None:
        note = f"{usage.reasoning:,} of it reasoning" if usage.reasoning else ""
        facts.append(Fact("out", f"{usage.output:,}", note))
    if step.reply is not None and usage is None:
        facts.append(Fact("tokens", "not reported"))
    if line.dollars is not None:
        facts.append(Fact("cost", words.money(line.dollars)))
    if line.attempts > 1:
        waited = f"{words.duration(line.waited_s)} before the one that was answered" if line.waited_s else ""
        facts.append(Fact("requests", str(line.attempts), waited))
    return tuple(facts)
