"""Logs in which every text that anybody can write is hostile."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
from told_run import CAREFUL, Run

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.core.deciding import binding
from tenlines.core.machine import Machine
from tenlines.core.state import State
from tenlines.core.transcript import Assistant, Json, Note, Opaque, Reply, Result, System, Text, ToolCall, Usage, User
from tenlines.errors import InvalidEvent

TEXTS = [
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 2</script>",
    "</SCRIPT><svg onload=hit=3>",
    "<!--<script>",
    "-->",
    "<!-- </script> -->",
    "<img src=x onerror='window.hit = 4'>",
    "<img src=//127.0.0.1:9/hit>",
    "<iframe src='javascript:parent.hit = 5'></iframe>",
    "<style>* { display: none }</style>",
    "</style><script>hit = 6</script>",
    "<link rel=stylesheet href=//127.0.0.1:9/hit.css>",
    "<meta http-equiv=refresh content='0;url=//127.0.0.1:9/'>",
    "<base href=//127.0.0.1:9/>",
    "<form action=//127.0.0.1:9/><button id=next>",
    "<a href='javascript:hit = 7' id=theme>press</a>",
    "<details ontoggle=hit=8 open>",
    "<input autofocus onfocus=hit=9>",
    "<template><script>hit = 10</script></template>",
    "<math><mtext></mtext><script>hit = 11</script></math>",
    "<svg><animate onbegin=hit=12 attributeName=x></svg>",
    "<object data=//127.0.0.1:9/hit></object>",
    "\" onmouseover='hit = 13' x=\"",
    "' onfocus='hit = 14' autofocus x='",
    "` onclick=hit=15 `",
    "]]><script>hit = 16</script><![CDATA[",
    "{{ 7 * 7 }} {% include 'page.html' %} {# gone #}",
    "${alert(1)} #{1} <%= 1 %>",
    "&lt;script&gt; &amp;lt; &#60;script&#62; &nbsp",
    "\\u003cscript\\u003e \\x3cscript>",
    "\u202etxet desrever\u202c",
    "\u2066isolated\u2069 \u200fright",
    "zero\u200bwidth\ufeff and \u00adsoft",
    "line\u2028and\u2029paragraph",
    "hidden \U000e0041\U000e0042 tags",
    "\x1b[2J\x1b]0;owned\x07 \x9b31m",
    "a\x00b\x01c",
    "\\ud800 half",
    "text\r\rover",
    "שלום עולם <b>bold</b> مرحبا",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301",
    "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!",
    "#step-1 #call-1-1 #head ../../etc/passwd",
    "javascript:hit = 17",
    "data:text/html,<script>hit = 18</script>",
    "[link](javascript:hit=19) **bold** `code`",
    "%3Cscript%3Ehit%3D20%3C/script%3E",
    "constructor __proto__ toString",
    "long" + "w" * 3_000 + "<script>hit = 21</script>",
    "many\n" * 60 + "<script>hit = 22</script>",
]
"""Fifty of them."""

LONG = "word " * 300

_BOUND = {"key", "digest", "type"}
"""Texts that are bound to others: nobody can write them freely."""


def hostile_logs(first: int = 0) -> list[list[ev.AnyEvent]]:
    """Logs with every kind of event, and each text in each of them replaced, by the texts from `first` on."""
    texts = itertools.cycle(TEXTS[first:] + TEXTS[:first])
    return [_spoiled(log, texts) for log in _logs()]


def _logs() -> Iterator[list[ev.AnyEvent]]:
    yield _calls()
    yield _undoing()
    yield _cuts()
    yield _pausing()


_ARGUMENTS = msgspec.json.encode({TEXTS[0]: TEXTS[1], "deep": [{TEXTS[6]: TEXTS[30]}]}).decode()


def _calls() -> list[ev.AnyEvent]:
    """Calls that end in every way, requests that fail, people who speak."""
    run = Run(CAREFUL)
    start = run.log[0]
    assert isinstance(start, ev.RunStarted)
    history = (
        System("s"),
        User((Text("u"), Json({"k": "v"}))),
        Assistant("a", (ToolCall("h1", "look", "{}"),)),
        Result("h1", "look", "ok", (Text("t"),)),
        Note("n"),
        User((Text("the task"),)),
    )
    spec = ev.ToolSpec("extra", "d", {"type": "object", "title": "t"}, source="s")
    fields: dict[str, Any] = {
        "messages": history,
        "tools": (*CAREFUL, spec),
        "session": "s",
        "turn": 1,
        "origin": "r@1",
    }
    run.log.clear()
    run.machine = Machine()
    whole = msgspec.structs.asdict(start) | fields | {"repairs": ("mended",), "owner": "h/b/1/2/3", "changed": "c"}
    run.tell(ev.RunStarted, **{name: value for name, value in whole.items() if name not in ("seq", "at")})
    run.ask().tell(
        ev.ModelFailed, step=1, attempt=1, kind="RateLimited", message="m", retryable=True, code="c", rule="r"
    )
    run.at += 100
    names = ("look", "look", "send", "pay", "wire", "nothing")
    calls = [ToolCall(f"c{n}", name, _ARGUMENTS) for n, name in enumerate(names)]
    calls += [ToolCall("c9", "look", "{" + TEXTS[0]), ToolCall("c10", TEXTS[6], "{}")]
    opaque = Opaque("anthropic", "m", {"blocks": [{"type": "thinking", "thinking": "t", "signature": "s"}]})
    run.reply("text", *calls, opaque=(opaque,), remarks=("remark",), usage=Usage(1000, 50, 10), model="m")
    run.question(3, reason="why").decide(3, arguments='{"a":"b"}', reason="because")
    run.refuse_all()
    place = {"step": 1}
    whole_result = {"truncated": True, "shown_chars": 1, "original_chars": 9, "full": "full", "remarks": ("cut",)}
    run.start(0).tell(ev.CallReturned, **place, position=0, parts=(Text("a result"), Json({"a": "b"})), **whole_result)
    run.start(1)
    run.tell(ev.CallFailed, **place, position=1, outcome="tool_error", text="no", error_type="E", detail="trace")
    run.start(2).tell(ev.CallTimedOut, **place, position=2, after_s=1.0, text="timed out")
    run.tell(ev.LateResultArrived, **place, position=2, outcome="ok", text="late")
    run.start(3).returned(3).start(4)
    run.say("said").tell(ev.LimitsRaised, limits=ev.Limits(steps=40))
    run.tell(ev.RunResumed, tools=(*CAREFUL, spec), owner="o")
    run.tell(ev.CallReconciled, **place, position=4, verdict="unknown", text="who knows")
    run.refuse_all()
    run.reply("on", ToolCall("d", "pay", "{}")).question(0).decide(0, "deny", reason="no").refuse_all()
    run.tell(ev.CancelRequested, mode="drain", reason="enough")
    run.finish()
    return run.log


def _undoing() -> list[ev.AnyEvent]:
    run = Run(CAREFUL).call("book", "wire")
    for position in (0, 1):
        run.start(position).returned(position)
    run.tell(ev.CancelRequested, mode="now", reason="stop")
    run.finish()
    run.tell(ev.UndoRequested, by="ann", reason="a mistake", tools=CAREFUL, owner="o")
    for outcome in ("ok", "tool_error"):
        call = run.effect.call
        run.tell(ev.UndoStarted, step=call.step, position=call.position, key=call.key)
        run.tell(ev.CallUndone, step=call.step, position=call.position, outcome=outcome, text="undone")
    run.finish()
    return run.log


def _cuts() -> list[ev.AnyEvent]:
    chosen = Compaction(at=1_100, keep=1, strategies=("summarise",), summary_tokens=100, least_gain=99.0)
    run = Run(compaction=chosen)
    for number in range(4):
        run.exchange(f"{number} {LONG}")
    run.summarise()
    run.tell(ev.SummaryEnded, kind="Overloaded", message="no")
    run.exchange(f"4 {LONG}").summarise()
    run.tell(ev.SummaryEnded, reply=Reply("a summary", usage=Usage(900, 20)))
    run.compact()
    run.ask().tell(ev.ModelReplied, step=run.machine.state.account.steps + 1, reply=Reply("the answer"))
    run.finish()
    return run.log


def _pausing() -> list[ev.AnyEvent]:
    run = Run((ev.ToolSpec("ask", spends=True, child=True), *CAREFUL)).call("ask").start()
    waiting = (ev.WaitingCall("inner", "2.1", "pay"),)
    run.tell(ev.ChildPaused, step=1, position=0, run_id="under", waiting=waiting)
    run.finish()
    return run.log


# --- how ------------------------------------------------------------------------------------------------


def _spoiled(log: list[ev.AnyEvent], texts: Iterator[str]) -> list[ev.AnyEvent]:
    """The log with every text replaced that the machine takes in another wording."""
    machine, spoiled = Machine(), list[ev.AnyEvent]()
    for number, original in enumerate(log):
        event = _adapted(original, machine.state, machine)
        for path in list(_paths(msgspec.to_builtins(event), ())):
            changed = _replaced(event, path, next(texts))
            if changed is not None and _goes_on(machine, changed, log[number + 1 :]):
                event = _adapted(changed, machine.state, machine)
        machine.apply(event)
        spoiled.append(event)
    return spoiled


def _goes_on(machine: Machine, event: ev.AnyEvent, rest: list[ev.AnyEvent]) -> bool:
    """Whether the machine takes the event, and then all that comes after it."""
    trial = copy.deepcopy(machine)
    try:
        for one in (event, *rest):
            trial.apply(_adapted(one, trial.state, trial))
    except (InvalidEvent, AssertionError, AttributeError):
        return False
    return True


def _adapted(event: ev.AnyEvent, state: State, machine: Machine) -> ev.AnyEvent:
    """The event with what is bound to other texts."""
    put = msgspec.structs.replace
    run_id = state.start.run_id if state.start else ""
    match event:
        case ev.CallStarted(step=step, position=position) | ev.UndoStarted(step=step, position=position):
            return put(event, key=f"{run_id}:{step}:{position}")
        case ev.ApprovalAsked(position=position) | ev.ApprovalGiven(position=position):
            assert state.exchange is not None
            return put(event, digest=binding(state, state.exchange.step, position, state.exchange.calls[position]))
        case ev.RunEnded(at=at):
            due: Any = machine.next(at)
            return put(event, status=due.status, reason=due.reason, answer=due.answer)
        case ev.ContextCompacted(at=at):
            return put(event, **msgspec.structs.asdict(machine.next(at)))
        case ev.SummaryStarted(at=at):
            wanted: Any = machine.next(at)
            return put(event, start=wanted.start, end=wanted.end, reserved=wanted.request.reserved)
    return event


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str):
        if path and path[-1] not in _BOUND:
            yield path
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _paths(one, (*path, key))
    elif isinstance(value, list | tuple):
        for index, one in enumerate(value):
            yield from _paths(one, (*path, index))


def _replaced(event: ev.AnyEvent, path: tuple[Any, ...], text: str) -> ev.AnyEvent | None:
    """The event with another text at this place; None where it may not be a text of one's own."""
    body = msgspec.json.decode(codec.encode(event))
    place = body
    for key in path[:-1]:
        place = place[key]
    if path[-1] not in place if isinstance(place, dict) else False:
        return None
    place[path[-1]] = text
    try:
        return codec.decode(msgspec.json.encode(body))
    except Exception:
        return None
