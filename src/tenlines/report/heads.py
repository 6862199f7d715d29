"""The run in one look: how it ended and why, what can be done, what to look at first, what it used, what was left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenlines.core.costs import Ledger
from tenlines.core.limits import Limits
from tenlines.core.outcomes import parse_arguments
from tenlines.core.result import RunResult
from tenlines.report.model import Fact, Flag, Head, Limit, Link, Move, Tone
from tenlines.report.starts import when
from tenlines.trace import words
from tenlines.trace.story import CallView, Remark, StepView, Story, task_of
from tenlines.trace.text import clean, one_line

STATUS_WORDS = {
    "open": "It has not ended: a process works on it, or died.",
    "answered": "The model gave its answer.",
    "max_steps": "The limit on steps was reached before there was an answer.",
    "tool_limit": "The limit on tool calls was reached before there was an answer.",
    "budget": "The next request did not fit into what was left of the tokens or dollars, so it was not made.",
    "deadline": "The time was over before there was an answer.",
    "stuck": "The model did the same thing again and again, was told so, and went on.",
    "cancelled": "Somebody stopped it.",
    "awaiting_approval": "It waits for a person's decision.",
    "refused": "The model refused.",
    "empty_reply": "The model's replies were empty.",
    "truncated_reply": "The model's reply was cut off, so it is no answer.",
    "context_overflow": "The transcript does not fit into the model's window.",
    "model_error": "The model could not be reached, or failed.",
    "journal_error": "The journal could not be written, so nothing more was done.",
}
_TONES: dict[str, Tone] = {"open": "info", "answered": "good", "awaiting_approval": "warn", "cancelled": "warn"}
"""All other ends are `bad`."""
_SHOWN = 8
"""So many places are named where something happened often."""


def status_of(story: Story) -> tuple[str, Tone]:
    """How the run ended, or `open`, and how that is coloured."""
    status = "open" if story.end is None else story.end.status
    return status, _TONES.get(status, "bad")


def head_of(story: Story, ledger: Ledger, key: str, moves: Iterable[tuple[str, str]]) -> Head:
    """The head of a run. `moves` are harmless already."""
    start, result = story.start, story.machine.result()

    def shown(text: str | None) -> str:
        return clean(story.redaction.text(text or ""))

    status, tone = status_of(story)
    return Head(
        key=key,
        run_id=clean(start.run_id) if start is not None else "",
        task=clean(task_of(start)) if start is not None else "",
        status=status,
        tone=tone,
        words=STATUS_WORDS[status],
        why="" if story.end is None else shown(result.reason),
        answer=shown(result.answer),
        partial=shown(result.partial_answer),
        moves=tuple(Move(*move) for move in moves),
        flags=tuple(_flags(story, ledger, key)),
        totals=tuple(_totals(ledger, story.worked_s, result)),
        limits=tuple(_limits(story.machine.state.limits, result, story.worked_s)),
        facts=tuple(_facts(story)),
        steps=ledger.all.steps,
        calls=ledger.all.tool_calls,
        tokens=ledger.all.tokens,
        dollars=ledger.dollars,
        seconds=story.worked_s,
        started_at=start.at if start is not None else 0.0,
    )


# --- what it used -----------------------------------------------------------------------------------------


def _totals(ledger: Ledger, seconds: float, result: RunResult) -> Iterable[Fact]:
    used = ledger.all
    yield Fact("steps", f"{used.steps:,}", _of_children(ledger.children.steps))
    yield Fact("calls", f"{used.tool_calls:,}", _of_children(ledger.children.tool_calls))
    share = "" if not used.cache_read or not used.input_tokens else f"{100 * used.cache_read / used.input_tokens:.0f}% "
    yield Fact("tokens in", f"{used.input_tokens:,}", f"{share}from the provider's cache" if share else "")
    reasoning = f"{used.reasoning:,} of it reasoning" if used.reasoning else ""
    yield Fact("tokens out", f"{used.output_tokens:,}", reasoning)
    yield Fact("cost", "unknown" if ledger.dollars is None else words.money(ledger.dollars), _about_cost(ledger))
    retried = f"{words.count(result.retries, 'request')} made again" if result.retries else ""
    yield Fact("time", words.duration(seconds), retried)


def _of_children(count: int) -> str:
    return f"{count:,} in the runs under it" if count else ""


def _about_cost(ledger: Ledger) -> str:
    if ledger.dollars is None:
        if ledger.holders:
            return "calls may still spend what is held"
        return "price not known" if ledger.price is None else "not everything was reported"
    if ledger.priced == "given":
        return "by a price of today: the run recorded none"
    return f"{words.money(ledger.children.dollars)} in the runs under it" if ledger.children.dollars else ""


def _limits(limits: Limits, result: RunResult, seconds: float) -> Iterable[Limit]:
    left = result.left
    rows = (
        ("steps", limits.steps, left.steps, "{:,.0f}".format),
        ("tool calls", limits.tool_calls, left.tool_calls, "{:,.0f}".format),
        ("tokens", limits.tokens, left.tokens, "{:,.0f}".format),
        ("dollars", limits.dollars, left.dollars, words.money),
        ("time", limits.seconds, left.seconds, words.duration),
    )
    for name, total, rest, say in rows:
        if total is not None:
            left_over = total if rest is None else rest
            part = 1.0 if not total else min(1.0, max(0.0, 1 - left_over / total))
            yield Limit(name, say(total), say(left_over), part)


def _facts(story: Story) -> Iterable[Fact]:
    start = story.start
    if start is None:
        return
    yield Fact("run", clean(start.run_id))
    yield Fact("model", clean(start.model))
    yield Fact("agent", clean(start.agent))
    yield Fact("started", when(start.at))
    if start.session:
        yield Fact("session", f"{clean(start.session)}, turn {start.turn}")
    if start.origin:
        yield Fact("from", clean(words.origin(start.origin)))
    if start.parent:
        yield Fact("serves the call", clean(start.parent))
    if who := words.owner(story.owner):
        yield Fact("worked on by", clean(who))


# --- what to look at first --------------------------------------------------------------------------------


def _flags(story: Story, ledger: Ledger, key: str) -> Iterable[Flag]:
    calls = [call for item in story.items if isinstance(item, StepView) for call in item.calls]
    in_doubt = [call for call in calls if call.outcome == "in_doubt"]
    if in_doubt:
        what = f"{words.count(len(in_doubt), 'call')} in doubt: what was begun may have taken effect"
        yield Flag("bad", what, _links(in_doubt, key))
    if waiting := [call for call in calls if call.waits]:
        yield Flag("warn", f"{words.count(len(waiting), 'call')} waiting for a decision", _links(waiting, key))
    may_repeat = {spec.name for spec in story.machine.state.specs if spec.repeatable}
    for same in _repeats([call for call in calls if call.name not in may_repeat]):
        what = f"{words.call(same[0].name, same[0].arguments)}: the same result {len(same)} times"
        yield Flag("warn", what, _links(same, key))
    for outcome, said in _BAD.items():
        if found := [call for call in calls if call.outcome == outcome]:
            yield Flag("warn", f"{words.count(len(found), 'call')} {said}", _links(found, key))
    if late := [call for call in calls if call.late]:
        yield Flag("warn", f"{words.count(len(late), 'call')} came back after being given up", _links(late, key))
    yield from _about_requests(story, ledger, key)


_BAD = {
    "tool_error": "failed",
    "timeout": "timed out",
    "denied": "denied",
    "unknown_tool": "to a tool that does not exist",
    "invalid_arguments": "with arguments that the tool does not take",
}


def _links(calls: Sequence[CallView], key: str) -> tuple[Link, ...]:
    before = f"{key}-" if key else ""
    shown = [Link(f"{before}call-{call.step}-{call.position + 1}", call.place) for call in calls[:_SHOWN]]
    if len(calls) > _SHOWN:
        last = calls[-1]
        where = f"{before}call-{last.step}-{last.position + 1}"
        shown.append(Link(where, f"and {len(calls) - _SHOWN:,} more, the last {last.place}"))
    return tuple(shown)


def _repeats(calls: Sequence[CallView]) -> Iterable[list[CallView]]:
    """Calls that were made again and had the same result again, the most repeated first."""
    same: dict[tuple[str, str, str], list[CallView]] = {}
    for call in calls:
        if call.outcome:
            same.setdefault((call.name, _canonical(call.arguments), call.text), []).append(call)
    found = [group for group in same.values() if len(group) > 1]
    return sorted(found, key=len, reverse=True)[:_REPEATS]


_REPEATS = 3


def _canonical(arguments: str) -> str:
    parsed = parse_arguments(arguments).value
    return arguments if parsed is None else repr(sorted(parsed.items()))


def _about_requests(story: Story, ledger: Ledger, key: str) -> Iterable[Flag]:
    if lost := ledger.all.unmetered:
        yield Flag("warn", f"{words.count(lost, 'request')} came without token counts: not in the sums")
    if broken := [line.step for line in ledger.steps if line.changed]:
        before = f"{key}-" if key else ""
        links = tuple(Link(f"{before}step-{step}", f"step {step}") for step in broken[:_SHOWN])
        times = words.count(len(broken), "time")
        yield Flag("warn", f"the beginning of the request changed {times}, so that no cache had it", links)
    for item in story.items:
        if isinstance(item, Remark) and item.kind == "warning":
            yield Flag("warn", one_line(item.text, 300))
            return
