"""The spans of a run, as a view of its log.

    invoke_agent            one for each time that the run is taken up
      chat                  one for each request: those that failed and those for summaries too
      execute_tool          one for each call that started; and one for each undo
        invoke_agent        a run under the call

Nothing is looked up and nothing asked: names, times and ids all come from events, so that a run that is exported from
its journal has the spans that it had when it was watched. The work for an event is bounded by the event.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from tenlines.core import events as ev
from tenlines.core.limits import Account
from tenlines.core.state import Phase, open_exchange
from tenlines.core.surroundings import read_traceparent, span_id, trace_id
from tenlines.core.transcript import Reply
from tenlines.trace import content
from tenlines.trace.changes import TABLE, Attributes, Begun, Change, Ended, Kind, Marked
from tenlines.trace.conventions import ModelNames, Name, Vintage, model_names
from tenlines.trace.facts import Facts, Given, OfCall
from tenlines.trace.redaction import Redaction

INTERRUPTED = "interrupted"
"""`error.type` of what was under way when a process died."""
_UNKNOWN = "no end of it was recorded"

_Key: TypeAlias = tuple[str, int, int]
"""What an open span belongs to: `chat`; or `call` or `undo` with the place of the call."""
_CHAT: _Key = ("chat", 0, 0)
_Requested: TypeAlias = ev.StepStarted | ev.SummaryStarted
_TakenUp: TypeAlias = ev.RunResumed | ev.UndoRequested


class Spans:
    """Takes the events of one run in their order and says what they change.

    Args:
        vintage: Which names are used.
        content: Whether what was said is exported too.
        redaction: What is taken out of every text; by default what is a secret nearly always.
    """

    def __init__(
        self, vintage: Vintage = "released", *, content: bool = False, redaction: Redaction | None = None
    ) -> None:
        self._facts = Facts(vintage, content, Redaction() if redaction is None else redaction)
        self._run = self._shown = self._trace = self._around = self._flags = ""
        self._model = ModelNames("", "")
        self._shared: Attributes = {}
        """What every span of the run has."""
        self._agent = self._before = ""
        """The `invoke_agent` that is open, and the one before."""
        self._open: dict[_Key, str] = {}
        """The spans that are open beside it."""
        self._pending: list[Marked] = []
        """What happened while nobody had the run."""
        self._then = Account()
        """What the run had used when it was taken up."""
        self._requests = 0
        """Requests since then, failed ones and those for summaries too."""
        self._finish: tuple[str, ...] = ()
        self._at = 0.0

    def take(self, event: ev.AnyEvent) -> list[Change]:
        """Take one event.

        Raises:
            InvalidEvent: It does not belong to the log.
        """
        state, last = self._facts.machine.state, self._at
        sent, was_cut = state.sent, state.cuts.is_fresh
        self._facts.replay(event)
        self._at = max(last, event.at)
        match event:
            case ev.RunStarted() | ev.RunResumed() | ev.UndoRequested() | ev.RunEnded():
                return self._take_run(event, last)
            case ev.StepStarted():
                return [self._begin_step(event, sent, was_cut)]
            case ev.SummaryStarted():
                return [self._begin_request(event, {Name.SUMMARY: True})]
            case ev.ModelReplied() | ev.ModelFailed() | ev.SummaryEnded():
                return [self._end_request(event)]
            case ev.CallStarted() | ev.UndoStarted():
                return [self._begin_call(event)]
            case ev.CallReturned() | ev.CallFailed() | ev.CallTimedOut() | ev.CallAbandoned():
                return self._end_call(event)
            case ev.ChildPaused() | ev.CallUndone():
                return self._end_call(event)
            case _:
                return [*self._mark(event, self._facts.of(event)), *self._break_off()]

    def close(self) -> list[Change]:
        """End what the log leaves open: whoever had the run died, or is still at work on it."""
        changes = self._interrupt()
        if self._agent:
            changes.append(self._end(self._agent, self._used(), INTERRUPTED, _UNKNOWN))
            self._before, self._agent = self._agent, ""
        return changes

    def call_span(self, key: str) -> str:
        """The id of the span of a call, or of its undo, that is under way; "" where there is none."""
        step, position = (int(one) for one in key.rsplit(":", 2)[1:])
        return self._open.get(("undo", step, position)) or self._open.get(("call", step, position), "")

    @property
    def request_span(self) -> str:
        """The id of the span of the request that is under way, or ""."""
        return self._open.get(_CHAT, "")

    # --- the run --------------------------------------------------------------------------------------

    def _take_run(self, event: ev.RunStarted | _TakenUp | ev.RunEnded, last: float) -> list[Change]:
        match event:
            case ev.RunStarted():
                self._know(event)
                return [self._begin_run(event, self._started(event))]
            case ev.RunResumed() | ev.UndoRequested():
                return self._take_up(event, last)
            case ev.RunEnded():
                return self._end_run(event)

    def _know(self, start: ev.RunStarted) -> None:
        """What holds for every span of the run."""
        label, around = self._facts.label, read_traceparent(start.traceparent)
        self._run, self._shown = start.run_id, label(start.run_id)
        self._trace = trace_id(start.run_id, start.traceparent)
        self._around, self._flags = ("", "") if around is None else (around.span_id, around.flags)
        model = model_names(start.model)
        self._model = ModelNames(label(model.provider), label(model.model), label(model.address), model.port)
        conversation = label(start.session) or self._shown
        self._shared = self._facts.named({Name.RUN_ID: self._shown, Name.CONVERSATION: conversation})

    def _begin_run(self, event: ev.RunStarted | _TakenUp, more: Given) -> Begun:
        state, label = self._facts.machine.state, self._facts.label
        start = state.start
        assert start is not None
        self._then, self._requests = msgspec.structs.replace(state.account), 0
        agent = label(start.agent)
        given: Given = {
            Name.OPERATION: "invoke_agent",
            Name.AGENT_NAME: agent,
            Name.AGENT_PROVIDER: self._model.provider,
            Name.REQUEST_MODEL: self._model.model,
            Name.TURN: start.turn or None,
            Name.ORIGIN: label(start.origin),
            Name.PARENT_CALL: label(start.parent),
        }
        self._agent = span_id(self._run, event.seq)
        attributes = self._shared | self._facts.named(given | more)
        place = (self._trace, self._agent, self._around, self._flags)
        return Begun(*place, f"invoke_agent {agent}".rstrip(), "internal", self._at, attributes, self._before)

    def _started(self, event: ev.RunStarted) -> Given:
        facts = self._facts
        given: Given = {Name.CHANGED: facts.label(event.changed)}
        if facts.content:
            given |= {
                Name.SYSTEM_INSTRUCTIONS: facts.exported(content.instructions(event.messages)),
                Name.INPUT_MESSAGES: facts.exported(content.messages(event.messages)),
                Name.TOOL_DEFINITIONS: content.definitions(event.tools, facts.redaction) if event.tools else None,
            }
        return given

    def _take_up(self, event: _TakenUp, last: float) -> list[Change]:
        """Whoever had the run is gone; what it had under way ends with the last that is known of it."""
        now, self._at = self._at, last
        changes, self._at = self.close(), now
        given: Given = {Name.TAKEN_UP: True}
        if isinstance(event, ev.UndoRequested):
            reason = self._facts.said(event.reason)
            given |= {Name.UNDO: True, Name.BY: self._facts.label(event.by), Name.REASON: reason}
        changes.append(self._begin_run(event, given))
        changes += [one._replace(span_id=self._agent) for one in self._pending]
        self._pending.clear()
        return changes

    def _end_run(self, event: ev.RunEnded) -> list[Change]:
        changes, facts = self._interrupt(), self._facts
        more: Given = {Name.STATUS: event.status}
        if facts.content and event.answer is not None:
            more[Name.OUTPUT_MESSAGES] = facts.exported(content.answer(event.answer))
        is_fine = event.status in ("answered", "awaiting_approval")
        if self._agent:
            attributes = self._used() | facts.named(more)
            changes.append(self._end(self._agent, attributes, None if is_fine else event.status, event.reason))
            self._before, self._agent = self._agent, ""
        return changes

    def _used(self) -> Attributes:
        """What the run used since it was taken up; and what is left."""
        given = self._facts.used(self._then) | self._facts.left(self._at)
        return self._facts.named({**given, Name.REQUESTS: self._requests, Name.FINISH_REASONS: self._finish or None})

    # --- requests -------------------------------------------------------------------------------------

    def _begin_step(self, event: ev.StepStarted, sent: int, was_cut: bool) -> Begun:
        facts = self._facts
        more: Given = {
            Name.STEP: event.step,
            Name.ATTEMPT: event.attempt,
            Name.CHANGED: facts.label(event.changed),
            Name.COMPACTED: was_cut or None,
        }
        if facts.content:  # what is new of the request; the spans before have the rest
            new = facts.machine.state.messages[sent:]
            more[Name.SYSTEM_INSTRUCTIONS] = facts.exported(content.instructions(new))
            more[Name.INPUT_MESSAGES] = facts.exported(content.messages(new))
        return self._begin_request(event, more)

    def _begin_request(self, event: _Requested, more: Given) -> Begun:
        model, self._requests = self._model, self._requests + 1
        given: Given = {
            Name.OPERATION: "chat",
            Name.PROVIDER: model.provider,
            Name.REQUEST_MODEL: model.model,
            Name.MAX_TOKENS: event.reserved.output_tokens,
            Name.SERVER_ADDRESS: model.address,
            Name.SERVER_PORT: model.port,
        }
        return self._begin(event.seq, _CHAT, f"chat {model.model}", given | more)

    def _end_request(self, event: ev.ModelReplied | ev.ModelFailed | ev.SummaryEnded) -> Change:
        facts = self._facts
        if isinstance(event, ev.ModelReplied):
            self._finish = (content.finish_reason(event.reply.stop),)
            return self._end_open(_CHAT, self._replied(event.reply))
        if isinstance(event, ev.SummaryEnded) and event.reply is not None:
            return self._end_open(_CHAT, self._replied(event.reply))
        given = facts.usage(event.usage, None)
        if isinstance(event, ev.ModelFailed):
            given |= {Name.RETRYABLE: event.retryable, Name.HTTP_STATUS: event.status, Name.RULE: event.rule}
        return self._end_open(_CHAT, given, facts.label(event.kind) or "_OTHER", event.message)

    def _replied(self, reply: Reply) -> Given:
        facts = self._facts
        given: Given = {
            Name.RESPONSE_MODEL: facts.label(reply.model),
            Name.FINISH_REASONS: (content.finish_reason(reply.stop),),
            **facts.usage(reply.usage, reply.dollars),
            **facts.left(self._at),
        }
        if facts.content:
            given[Name.OUTPUT_MESSAGES] = facts.exported(content.reply(reply))
        return given

    def _break_off(self) -> list[Change]:
        """A request that is not waited for any more, because the run was cancelled."""
        is_asking = self._facts.machine.state.phase in (Phase.AWAITING_MODEL, Phase.SUMMARISING)
        if _CHAT not in self._open or is_asking:
            return []
        return [self._end_open(_CHAT, {}, "cancelled", "the run was cancelled")]

    # --- calls ----------------------------------------------------------------------------------------

    def _begin_call(self, event: ev.CallStarted | ev.UndoStarted) -> Begun:
        facts, is_undo = self._facts, isinstance(event, ev.UndoStarted)
        state, step, position = facts.machine.state, event.step, event.position
        one = state.acted[step, position] if is_undo else open_exchange(state).calls[position]
        given: Given = {
            Name.OPERATION: "execute_tool",
            Name.TOOL_TYPE: "function",
            Name.CALL: f"{self._shown}:{step}:{position}",
            Name.UNDO: is_undo or None,
            Name.STARTS: one.starts if one.starts > 1 and not is_undo else None,
            Name.TOOL_ARGUMENTS: facts.exported(one.arguments) if facts.content else None,
            **facts.of_call(step, position),
            **facts.tool(one),
        }
        name = f"execute_tool {facts.label(one.call.name)}"
        return self._begin(event.seq, ("undo" if is_undo else "call", step, position), name, given)

    def _end_call(self, event: OfCall) -> list[Change]:
        key = ("undo" if isinstance(event, ev.CallUndone) else "call", event.step, event.position)
        given, fault, text = self._facts.outcome(event)
        if key in self._open:
            return [self._end_open(key, given, fault, text)]
        which = self._facts.of_call(event.step, event.position)
        return self._mark(event, {**which, **given, Name.REASON: self._facts.said(text)})

    # --- spans ----------------------------------------------------------------------------------------

    def _mark(self, event: ev.AnyEvent, given: Given) -> list[Change]:
        """Something that is no span by itself: on the `invoke_agent` that is open; where none is, on the next one."""
        marked = Marked(self._agent, TABLE[type(event)].mark, event.at, self._facts.named(given))
        if self._agent:
            return [marked]
        self._pending.append(marked)
        return []

    def _begin(self, seq: int, key: _Key, name: str, given: Given) -> Begun:
        own = self._open[key] = span_id(self._run, seq)
        attributes = self._shared | self._facts.named(given)
        kind: Kind = "client" if key is _CHAT else "internal"
        return Begun(self._trace, own, self._agent, "", name, kind, self._at, attributes)

    def _end_open(self, key: _Key, given: Given, fault: str | None = None, text: str = "") -> Ended:
        return self._end(self._open.pop(key), self._facts.named(given), fault, text)

    def _end(self, span: str, attributes: Attributes, fault: str | None, text: str) -> Ended:
        if fault is None:
            return Ended(span, self._at, attributes)
        named = self._facts.named({Name.ERROR_TYPE: fault})
        return Ended(span, self._at, attributes | named, self._facts.said(text) or fault)

    def _interrupt(self) -> list[Change]:
        """Nobody says any more how what is open ended."""
        changes: list[Change] = [self._end(one, {}, INTERRUPTED, _UNKNOWN) for one in self._open.values()]
        self._open.clear()
        return changes
