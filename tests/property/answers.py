"""What a model answers in the worlds of these tests, and what providers say that it took."""

from __future__ import annotations

from typing import Any

import msgspec
from alphabet import LONG, SUMMARIES, USAGES, Chooser, long_reply, some_reply, spending_reply
from laws import Checked
from purses import Purses

from tenlines.core import events as ev
from tenlines.core.limits import Reservation
from tenlines.core.transcript import Reply, Text, ToolCall, Usage


class Model:
    """The other end of a request."""

    chooser: Chooser
    run: Checked
    purses: Purses
    kind: str
    careful: bool
    stubborn: str
    rate: float

    @property
    def log(self) -> list[ev.AnyEvent]:
        return self.run.facts.log

    def stamp(self) -> dict[str, Any]:
        """Number and time of the next event."""
        raise NotImplementedError

    def answer_request(self) -> None:
        """The model replies, or the request fails."""
        started = next(event for event in reversed(self.log) if isinstance(event, ev.StepStarted))
        if self.stubborn or self.chooser.pick((True,) * (15 if self.kind else 6) + (False,)):
            self.run.take(ev.ModelReplied(**self.stamp(), step=started.step, reply=self.reply(started.reserved)))
            return
        kinds = ("RateLimited",) * 4 + ("OutOfMoves", "ContextTooLong", "E") + ("ProtocolRejected",) * 3
        if self.kind:
            kinds = ("RateLimited",) * 4 + ("ContextTooLong",) * 3 + ("OutOfMoves", "E", "ProtocolRejected")
        kind = self.chooser.pick(kinds)
        if self.kind == "long" and self.chooser.pick((True, False)):  # it is longer when it is asked again
            self.run.take(ev.MessageQueued(**self.stamp(), parts=(Text(self.chooser.pick(LONG)),)))
        violations = ("RSN-EDITED", "RSN-PREFIX", "RSN-FOREIGN", "MEDIA-PLACE", "PAIR-MISSING")
        self.run.take(
            ev.ModelFailed(
                **self.stamp(),
                step=started.step,
                attempt=started.attempt,
                kind=kind,
                message="it failed",
                usage=self.chooser.pick((None, None, self.usage(started.reserved))),
                violation=self.chooser.pick(violations) if kind == "ProtocolRejected" else "",
                retryable=kind == "RateLimited",
                retry_after_s=self.chooser.pick((None, None, 0.0, 3.0)),
            )
        )

    def reply(self, reserved: Reservation) -> Reply:
        """What the model says."""
        if self.stubborn:
            return self.stubborn_reply()
        if not self.kind:
            return some_reply(self.chooser, self.careful)
        reply = (spending_reply if self.kind == "money" else long_reply)(self.chooser)
        usage, dollars = self.usage(reserved), reply.dollars
        if self.purses.honest and dollars is not None and reserved.dollars is not None:
            dollars = min(dollars, reserved.dollars)
        return msgspec.structs.replace(reply, usage=usage, dollars=dollars)

    def usage(self, reserved: Reservation) -> Usage | None:
        """What the provider counts; of an honest one no more than was reserved."""
        pick = self.chooser.pick
        if not self.kind:
            return pick(USAGES)
        tokens, output = int(self.run.words * self.rate), pick((0, 5, 90, 10_000))
        if self.purses.honest:
            tokens = min(tokens, reserved.input_tokens)
            output = output if reserved.output_tokens is None else min(output, reserved.output_tokens)
        elif pick((False,) * 6 + (True,)):
            return pick((None, Usage(), Usage(0, 0), Usage(1 << 40, 1 << 30), Usage(tokens, None), Usage(None, output)))
        read = pick((0, tokens // 2, tokens))
        return Usage(tokens, output, read, pick((0, tokens - read)))

    def answer_summary(self) -> None:
        """A summary comes, one that cannot be used, or none."""
        pick = self.chooser.pick
        started = next(event for event in reversed(self.log) if isinstance(event, ev.SummaryStarted))
        usage, how = self.usage(started.reserved), pick(("fine",) * 6 + ("calls", "stop", "fails", "fails", "nothing"))
        if how == "nothing":
            self.run.take(ev.SummaryEnded(**self.stamp()))
        elif how == "fails":
            self.run.take(ev.SummaryEnded(**self.stamp(), kind="RateLimited", message=pick(("", "no")), usage=usage))
        else:
            calls = (ToolCall("s", "look", "{}"),) if how == "calls" else ()
            stop: Any = pick(("length", "refusal", "pause", "context_overflow")) if how == "stop" else "end"
            reply = Reply(pick(SUMMARIES[:2] * 4 + SUMMARIES), calls, stop, usage)
            self.run.take(ev.SummaryEnded(**self.stamp(), reply=reply))

    def stubborn_reply(self) -> Reply:
        """The next of the round."""
        letter = self.stubborn[self.run.facts.replies % len(self.stubborn)]
        name = "poll" if letter == "P" else "look"
        return Reply("", (ToolCall("", name, f'{{"a":"{letter}"}}'),), "tool_calls", Usage(1, 1))
