"""What is said of a run in its spans: attributes, from events and from what the machine knows behind them."""

from __future__ import annotations

from typing import TypeAlias

from tenlines.core import events as ev
from tenlines.core import metering
from tenlines.core.limits import Account, Spent
from tenlines.core.machine import Machine
from tenlines.core.outcomes import encodable
from tenlines.core.state import OpenCall, seconds_left
from tenlines.core.transcript import JsonValue, Usage, text_of
from tenlines.trace import content
from tenlines.trace.changes import Attributes, Value
from tenlines.trace.conventions import Name, Vintage, spellings
from tenlines.trace.redaction import Redaction
from tenlines.trace.text import one_line

Given: TypeAlias = dict[Name, Value | None]
OfCall: TypeAlias = (
    ev.CallReturned | ev.CallFailed | ev.CallTimedOut | ev.CallAbandoned | ev.ChildPaused | ev.CallUndone
)

_UNREAD_CHARS = 20_000
"""A longer result is not searched for secrets that an error might repeat. It is not exported either."""


class Facts:
    """Makes attributes. Every text goes through the redaction, and comes out as one harmless line.

    Args:
        vintage: Which names are used.
        content: Whether what was said is exported too.
        redaction: What is taken out of every text.
    """

    def __init__(self, vintage: Vintage, content: bool, redaction: Redaction) -> None:
        self.names, self.content, self.redaction = spellings(vintage), content, redaction
        self.machine = Machine()
        self._calls: list[OpenCall] = []
        self._step = 0
        """The newest exchange, open or closed: its calls and its step."""
        self._unread: list[object] = []
        """What may name secrets that an error repeats. It is looked at when there is one."""
        self._described: dict[str, str] = {}

    def replay(self, event: ev.AnyEvent) -> None:
        """Take the next event.

        Raises:
            InvalidEvent: It does not belong to the log.
        """
        self.machine.replay(event)
        self._hear(event)
        exchange = self.machine.state.exchange
        if exchange is not None and exchange.step != self._step:
            self._step, self._calls = exchange.step, exchange.calls

    def _hear(self, event: ev.AnyEvent) -> None:
        """Keep what may name a secret. It is in the transcript too, so it takes no room; the whole of a result that was
        cut would."""
        match event:
            case ev.RunStarted(messages=messages):
                self._unread.append(messages)
            case ev.ModelReplied(reply=reply):
                self._unread.append(reply)
            case ev.CallReturned(parts=parts) if len(text_of(parts)) <= _UNREAD_CHARS:
                self._unread.append(parts)
            case ev.MessageQueued(parts=parts):
                self._unread.append(parts)
            case _:
                pass

    def named(self, given: Given) -> Attributes:
        """With the names of the vintage; without what it has no name for, and what there is nothing to say of."""
        names = self.names
        return {
            names[name]: value for name, value in given.items() if value is not None and value != "" and name in names
        }

    # --- numbers --------------------------------------------------------------------------------------

    def usage(self, usage: Usage | None, said: float | None) -> Given:
        """What one request used."""
        if usage is None and said is None:
            return {}
        given = usage or Usage()
        return {
            Name.INPUT_TOKENS: given.input,
            Name.OUTPUT_TOKENS: given.output,
            Name.CACHE_READ: given.cache_read,
            Name.CACHE_WRITE: given.cache_write,
            Name.REASONING: given.reasoning,
            Name.DOLLARS: metering.dollars(self.machine.state, usage, said),
        }

    def used(self, then: Account) -> Given:
        """What the run used since, its children apart."""
        now = self.machine.state.account
        tokens = (now.input_tokens - then.input_tokens, now.output_tokens - then.output_tokens)
        is_metered, is_priced = now.unmetered == then.unmetered, now.unpriced == then.unpriced
        return {
            Name.STEPS: now.steps - then.steps,
            Name.CALLS: now.tool_calls - then.tool_calls,
            Name.RETRIES: (now.retries - then.retries) or None,
            Name.INPUT_TOKENS: tokens[0] if is_metered or tokens[0] else None,
            Name.OUTPUT_TOKENS: tokens[1] if is_metered or tokens[1] else None,
            Name.AGENT_CACHE_READ: (now.cache_read - then.cache_read) or None,
            Name.AGENT_CACHE_WRITE: (now.cache_write - then.cache_write) or None,
            Name.DOLLARS: now.dollars - then.dollars if is_priced else None,
            Name.CHILD_TOKENS: (now.children.tokens - then.children.tokens) or None,
            Name.CHILD_DOLLARS: (now.children.dollars - then.children.dollars) or None,
        }

    def left(self, at: float) -> Given:
        """What is left of the limits that there are."""
        state = self.machine.state
        left = state.account.left(state.limits, seconds_left(state, at))
        return {
            Name.LEFT_STEPS: left.steps,
            Name.LEFT_CALLS: left.tool_calls,
            Name.LEFT_TOKENS: left.tokens,
            Name.LEFT_DOLLARS: left.dollars,
            Name.LEFT_SECONDS: left.seconds,
        }

    # --- calls ----------------------------------------------------------------------------------------

    def call(self, step: int, position: int) -> OpenCall | None:
        """A call of the newest exchange, or one that had effect or was given up."""
        if step == self._step and 0 <= position < len(self._calls):
            return self._calls[position]
        state = self.machine.state
        return state.acted.get((step, position)) or state.given_up.get((step, position))

    def of_call(self, step: int, position: int) -> Given:
        """Which call it is."""
        one = self.call(step, position)
        if one is None:
            return {Name.STEP: step}
        names = {Name.TOOL_NAME: self.label(one.call.name), Name.TOOL_CALL_ID: self.label(one.call.id)}
        return {Name.STEP: step, **names}

    def tool(self, one: OpenCall) -> Given:
        """What is known of its tool."""
        if one.spec is None:
            return {}
        text = one.spec.description
        if text not in self._described:
            self._described[text] = self.label(text, 500)
        return {Name.TOOL_DESCRIPTION: self._described[text], Name.READ_ONLY: one.spec.read_only}

    def outcome(self, event: OfCall) -> tuple[Given, str | None, str]:
        """What became of a call: attributes, the type of what went wrong, and what was said about it."""
        match event:
            case ev.CallReturned():
                given: Given = {Name.OUTCOME: "ok", Name.TRUNCATED: event.truncated or None}
                given |= {Name.RESULT_CHARS: event.original_chars, **_spent(event.spent)}
                if self.content:
                    given[Name.TOOL_RESULT] = self.exported(content.result(event.parts))
                return given, None, ""
            case ev.CallFailed(outcome=outcome):
                fault = self.label(event.error_type) or outcome
                return {Name.OUTCOME: outcome, **_spent(event.spent)}, fault, event.text
            case ev.ChildPaused(run_id=run_id):
                return {Name.OUTCOME: "paused", Name.CHILD_RUNS: (self.label(run_id),)}, None, ""
            case ev.CallTimedOut():
                return {Name.OUTCOME: "timeout"}, "timeout", event.text
            case ev.CallAbandoned(outcome=outcome) | ev.CallUndone(outcome=outcome):
                return {Name.OUTCOME: outcome}, None if outcome == "ok" else outcome, event.text

    # --- what is marked -------------------------------------------------------------------------------

    def of(self, event: ev.AnyEvent) -> Given:
        """What an event says that is no span by itself."""
        match event:
            case ev.ApprovalAsked(about=about, reason=reason):
                return self._about(event) | {Name.ABOUT: about, Name.REASON: self.said(reason)}
            case ev.ApprovalGiven(verdict=verdict, by=by, reason=reason):
                given: Given = {Name.VERDICT: verdict, Name.BY: self.label(by), Name.REASON: self.said(reason)}
                return self._about(event) | given
            case ev.CallReconciled(verdict=verdict, text=text):
                return self._about(event) | {Name.VERDICT: verdict, Name.REASON: self.said(text)}
            case ev.LateResultArrived(outcome=outcome, spent=spent):
                return self._about(event) | {Name.OUTCOME: outcome, **_spent(spent)}
            case ev.CancelRequested(mode=mode, by=by, reason=reason):
                return {Name.MODE: mode, Name.BY: self.label(by), Name.REASON: self.said(reason)}
            case ev.MessageQueued(parts=parts, by=by):
                return {Name.BY: self.label(by), Name.SAID: self.said(text_of(parts)) if self.content else None}
            case ev.ContextCompacted():
                return _cut(event)
            case _:
                return self.left(event.at)  # of limits that were raised

    def _about(self, event: ev.ApprovalAsked | ev.ApprovalGiven | ev.CallReconciled | ev.LateResultArrived) -> Given:
        return self.of_call(event.step, event.position)

    # --- texts ----------------------------------------------------------------------------------------

    def said(self, text: str) -> str:
        """What somebody wrote, in one line. It may repeat secrets that were named elsewhere in the run."""
        if not text:
            return ""
        for heard in self._unread:
            self.redaction.of(heard)
        self._unread.clear()
        return self.label(text, 1000)

    def label(self, text: str, width: int = 200) -> str:
        """A name, in one line."""
        return one_line(self.redaction.text(encodable(text)), width) if text else ""

    def exported(self, value: JsonValue) -> str | None:
        """Content, as the text of JSON; None where there is none."""
        return content.exported(value, self.redaction) if value or value == 0 else None


def _spent(spent: Spent | None) -> Given:
    """What runs under a call used."""
    if spent is None or not spent.runs:
        return {}
    dollars = None if spent.unpriced else spent.dollars
    return {Name.CHILD_RUNS: spent.runs, Name.CHILD_TOKENS: spent.tokens, Name.CHILD_DOLLARS: dollars}


def _cut(event: ev.ContextCompacted) -> Given:
    sums = event.arithmetic
    return {
        Name.STRATEGY: event.strategy,
        Name.CUT_WHY: sums.why,
        Name.TOKENS_BEFORE: sums.tokens_before,
        Name.TOKENS_AFTER: sums.tokens_after,
        Name.CUT_SAVES: sums.saves,
        Name.CUT_COSTS: sums.costs,
        Name.CUT_UNIT: sums.unit,
    }
