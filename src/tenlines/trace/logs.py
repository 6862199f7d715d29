"""The standard library's logging: one line for each event at DEBUG, with its facts as fields of the record.

    logging.basicConfig()
    logging.getLogger("tenlines.events").setLevel(logging.DEBUG)

An agent logs by itself when that logger wants it at the moment a run starts. A formatter that writes fields (JSON, say)
finds `run_id`, `seq`, `event` and what else the event has on the record.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from tenlines.core import events as ev
from tenlines.core.transcript import text_of
from tenlines.trace.redaction import Redaction
from tenlines.trace.text import one_line

LOGGER = "tenlines.events"
_log = logging.getLogger(LOGGER)

_TEXT_CHARS = 200
"""How much of a text is in a line."""
_WHOLE = {
    *("run_id", "agent", "model", "status", "outcome", "step", "attempt", "position", "key", "kind", "mode"),
    *("verdict", "about", "by", "strategy", "retryable", "owner", "session", "turn", "parent", "origin"),
}
"""Fields that are facts by themselves. Other texts are made shorter."""
_ELSEWHERE = {"seq", "at", "run_id"}
"""Fields that every record has."""
_NAMES = {"message": "error"}
"""A record has a `message` of its own."""


class EventLog:
    """An observer that logs each event.

    Args:
        redaction: What is taken out first; by default what is a secret nearly always.
        logger: Where to; by default `tenlines.events`.
        level: At which level.
    """

    def __init__(
        self,
        redaction: Redaction | None = None,
        logger: logging.Logger = _log,
        level: int = logging.DEBUG,
    ) -> None:
        self._redaction = Redaction() if redaction is None else redaction
        self._logger, self._level = logger, level

    def for_run(self, run_id: str, past: Iterable[ev.AnyEvent]) -> RunLog:
        """The log of one run. Secrets that were named in it before are known."""
        self._redaction.learn(past)
        return RunLog(run_id, self._redaction, self._logger, self._level)

    def on_event(self, event: ev.AnyEvent) -> None:
        """Never called: each run has a log of its own."""


class RunLog(NamedTuple):
    """Logs the events of one run."""

    run_id: str
    redaction: Redaction
    logger: logging.Logger
    level: int

    def on_event(self, event: ev.AnyEvent) -> None:
        """Log it."""
        if not self.logger.isEnabledFor(self.level):
            return
        told, kind = facts(self.redaction.of(event)), type(event).__name__
        written = "".join(f" {name}={_written(value)}" for name, value in told.items())
        fields = {"run_id": self.run_id, "seq": event.seq, "at": event.at, "event": kind}
        self.logger.log(self.level, "%s", f"run {self.run_id} #{event.seq} {kind}{written}", extra=told | fields)


def wanted() -> tuple[EventLog, ...]:
    """An observer for runs that start now, where the logger wants to know; else none, and nothing is computed."""
    return (EventLog(),) if _log.isEnabledFor(logging.DEBUG) else ()


def facts(event: ev.AnyEvent) -> dict[str, Any]:
    """What an event says, in plain values: names, numbers, and texts in one short line each."""
    found: dict[str, Any] = {}
    match event:
        case ev.RunStarted(messages=messages, tools=tools):
            found = {"messages": len(messages), "tools": ",".join(one.name for one in tools)}
        case ev.ModelReplied(reply=reply):
            found = {"text": reply.text, "calls": ",".join(one.name for one in reply.calls), "stop": reply.stop}
            found |= _usage(reply.usage) | {"dollars": reply.dollars}
        case ev.ModelFailed(usage=usage) | ev.SummaryEnded(usage=usage):
            found = _usage(usage)
        case ev.CallReturned(parts=parts) | ev.MessageQueued(parts=parts):
            found = {"text": text_of(parts)}
        case ev.StepStarted(reserved=reserved) | ev.SummaryStarted(reserved=reserved):
            found = {"reserved_input": reserved.input_tokens, "reserved_output": reserved.output_tokens}
        case ev.ContextCompacted(arithmetic=sums):
            found = {"tokens_before": sums.tokens_before, "tokens_after": sums.tokens_after, "why": sums.why}
        case ev.LimitsRaised(limits=limits):
            found = {name: getattr(limits, name) for name in ("steps", "tool_calls", "tokens", "dollars", "seconds")}
        case _:
            pass
    plain = {name: getattr(event, name) for name in event.__struct_fields__ if name not in _ELSEWHERE}
    told = {name: value for name, value in (plain | found).items() if isinstance(value, str | int | float)}
    return {_NAMES.get(name, name): _short(name, value) for name, value in told.items() if value != ""}


def _usage(usage: Any) -> dict[str, Any]:
    return {} if usage is None else {f"tokens_{name}": value for name, value in msgspec.structs.asdict(usage).items()}


def _short(name: str, value: Any) -> Any:
    return one_line(value, _TEXT_CHARS) if isinstance(value, str) and name not in _WHOLE else value


def _written(value: Any) -> str:
    """A value as it stands in the line: quoted where it would run into the next one."""
    text = one_line(str(value), _TEXT_CHARS)
    return msgspec.json.encode(text).decode() if any(one in text for one in ' "=') else text
