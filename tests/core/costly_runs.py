"""Random runs in which requests fail, transcripts are cut, calls spend on their own, and processes die."""

from __future__ import annotations

from random import Random
from typing import Any

from told_run import Run

from tenlines.core import context
from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.core.effects import CallModel, Compact, Finish, RunTools, Sleep, Summarise
from tenlines.core.limits import Limits, Price, Repeats, Spent
from tenlines.core.machine import Machine
from tenlines.core.state import Phase
from tenlines.core.transcript import Reply, Result, Text, ToolCall, Usage, estimate_tokens

TOOLS = (
    ev.ToolSpec("look", "Look at it.", read_only=True),
    ev.ToolSpec("send"),
    ev.ToolSpec("ask", spends=True, read_only=True),
    ev.ToolSpec("sell", spends=True),
)
PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)


class CostlyRun(Run):
    """A run that goes on by chance, from a seed. `log` is what happened."""

    def __init__(self, seed: int, moves: int = 60) -> None:
        self.random = Random(seed)
        pick = self.random.choice
        compaction = Compaction(
            strategies=pick((("elide", "summarise"), ("drop",), ("summarise",), ("elide",))),
            window=pick((None, None, 2_500, 4_000)),
            at=pick((None, 300, 900)),
            summary_tokens=60,
            keep=1,
        )
        super().__init__(
            TOOLS,
            limits=Limits(
                steps=pick((None, 30, 60)), tokens=pick((None, None, 90_000)), seconds=pick((None, None, 900))
            ),
            repeats=Repeats(told_after=None, invalid_in_a_row=None),
            price=pick((None, PRICE, PRICE)),
            compaction=pick((None, compaction, compaction)),
            read_results=pick((False, True)),
        )
        self.counted = pick((True, True, False))
        """Whether the provider always says what was used."""
        self.running: set[int] = set()
        for _ in range(moves):
            if self.machine.state.phase is Phase.ENDED and not self.go_on():
                break
            self.move()

    # --- what happens ---

    def move(self) -> None:
        """One thing."""
        self.at += self.random.choice((0.0, 0.5, 2.0))
        chance, phase = self.random.random(), self.machine.state.phase
        if chance < 0.03:
            self.crash()
        elif chance < 0.06 and phase is not Phase.ENDED:
            self.say("something else " * self.random.randrange(20))
        elif chance < 0.075 and phase is not Phase.ENDED:
            self.cancel(self.random.choice(("now", "drain")))
        elif chance < 0.1 and self.machine.state.given_up:
            step, position = self.random.choice(sorted(self.machine.state.given_up))
            spends = self.machine.state.given_up[step, position].spec.spends
            spent = self.spent() if spends else None
            self.tell(ev.LateResultArrived, step=step, position=position, outcome="ok", text="late", spent=spent)
        elif phase is Phase.AWAITING_MODEL:
            self.answer_step()
        elif phase is Phase.SUMMARISING:
            self.answer_summary()
        elif phase is not Phase.ENDED:
            self.drive()

    def go_on(self) -> bool:
        """Of a run that has ended."""
        ended = self.machine.state.ended
        if ended is None or ended.status == "answered" or self.random.random() < 0.5:
            return False
        self.crash()
        return True

    def crash(self) -> None:
        """Another process takes the run over."""
        ended = self.machine.state.ended
        if ended is None or ended.status != "answered":
            self.at += 50.0
            self.running.clear()
            self.resume(TOOLS)

    def drive(self) -> None:
        """What the machine asks for."""
        effect = self.effect
        match effect:
            case CallModel():
                self.ask()
            case Summarise(start, end, request):
                self.tell(ev.SummaryStarted, start=start, end=end, reserved=request.reserved)
            case Compact():
                fields = {name: getattr(effect, name) for name in effect.__struct_fields__}
                self.tell(ev.ContextCompacted, **fields)
            case Sleep(until):
                self.at = until
            case RunTools():
                self.run_tools(effect)
            case Finish():
                self.finish()

    def answer_step(self) -> None:
        """A reply, or none."""
        started = next(one for one in reversed(self.log) if isinstance(one, ev.StepStarted))
        usage = self.usage(0)
        if self.random.random() < 0.12:
            kind = self.random.choice(("RateLimited", "RateLimited", "ContextTooLong"))
            usage = self.random.choice((None, usage))
            fields = {"kind": kind, "message": "no", "retryable": kind == "RateLimited", "usage": usage}
            self.tell(ev.ModelFailed, step=started.step, attempt=started.attempt, **fields)
            return
        names = self.random.choices(("look", "send", "ask", "sell", "nope"), (8, 2, 2, 1, 0.5), k=3)
        calls = [ToolCall(f"c{len(self.log)}-{n}", name, "{}") for n, name in enumerate(names)]
        kept = calls[: self.random.choice((1, 1, 2, 3))] if self.random.random() < 0.97 else []
        said = self.random.choice((None, None, None, 0.01))
        self.tell(ev.ModelReplied, step=started.step, reply=Reply("so", tuple(kept), usage=usage, dollars=said))

    def answer_summary(self) -> None:
        """A summary, or none."""
        state = self.machine.state
        assert state.compaction is not None
        usage = self.usage(estimate_tokens(context.question(state.compaction.summary_tokens)))
        if self.random.random() < 0.7:
            self.tell(ev.SummaryEnded, reply=Reply(self.random.choice(("It went well.", "")), usage=usage))
        else:
            self.tell(ev.SummaryEnded, kind="E", message="no", usage=self.random.choice((None, usage)))

    def run_tools(self, effect: RunTools) -> None:
        """One call is refused, starts, or ends."""
        exchange = self.machine.state.exchange
        assert exchange is not None
        self.running = {one for one in self.running if exchange.calls[one].outcome is None}
        if effect.refusals:
            one = effect.refusals[0]
            kind = ev.CallAbandoned if one.outcome in ("in_doubt", "cancelled") else ev.CallFailed
            self.tell(kind, step=one.step, position=one.position, outcome=one.outcome, text=one.text)
            return
        options = [("start", call) for call in effect.calls] + [("end", one) for one in sorted(self.running)]
        what, one = self.random.choice(options)
        if what == "start":
            place = {"step": one.step, "position": one.position}
            self.tell(ev.CallStarted, **place, key=one.key, allowance=one.allowance)
            self.running.add(one.position)
        else:
            self.end_call(exchange.step, one)

    def end_call(self, step: int, position: int) -> None:
        """It returns, raises, or is given up."""
        exchange = self.machine.state.exchange
        assert exchange is not None
        self.running.discard(position)
        spec = exchange.calls[position].spec
        spent = self.spent() if spec is not None and spec.spends and self.random.random() < 0.8 else None
        place = {"step": step, "position": position}
        how = self.random.choice(("ok", "ok", "ok", "error", "timeout"))
        if how == "ok":
            parts = (Text("row of a table, " * self.random.choice((1, 20, 100))),)
            self.tell(ev.CallReturned, **place, parts=parts, spent=spent, truncated=self.random.random() < 0.3)
        elif how == "error":
            self.tell(ev.CallFailed, **place, outcome="tool_error", text="it raised", spent=spent)
        else:
            self.tell(ev.CallTimedOut, **place, after_s=1.0, text="it took too long")

    # --- what it uses ---

    def usage(self, beside: int) -> Usage | None:
        """What the provider says of a request: about what was estimated."""
        taken = round(1.2 * (self.machine.state.estimated_tokens + beside)) + self.random.randrange(9)
        usage = Usage(taken, self.random.randrange(90), taken // 2, taken // 4, self.random.randrange(9))
        return usage if self.counted else self.random.choice((usage, usage, Usage(taken), None))

    def spent(self) -> Spent:
        """What a call says."""
        some = self.random.randrange
        return Spent(
            steps=some(2),
            input_tokens=some(200),
            output_tokens=some(20),
            cache_read=some(9),
            dollars=some(100) / 9e6,
            unpriced=int(some(4) == 0),
            runs=(f"run{len(self.log)}",),
        )


def carried(log: list[ev.AnyEvent]) -> dict[str, float]:
    """Id of each call -> the input tokens that its result was in all requests: each request is looked at anew, and what
    was reported for it is shared out among its messages."""
    machine, shares, estimate, sizes = Machine(), dict[str, float](), 0, dict[str, int]()
    for event in log:
        beside = 0
        if isinstance(event, ev.StepStarted | ev.SummaryStarted):
            estimate = machine.state.estimated_tokens
            sizes = {one.call_id: estimate_tokens(one) for one in machine.state.messages if isinstance(one, Result)}
        if isinstance(event, ev.SummaryEnded):
            assert machine.state.compaction is not None
            beside = estimate_tokens(context.question(machine.state.compaction.summary_tokens))
        machine.replay(event)
        usage = _reported(event)
        if usage is not None:
            for call_id, size in sizes.items():
                rate = machine.state.rate if usage.input is None else usage.input / (estimate + beside)
                shares[call_id] = shares.get(call_id, 0.0) + size * rate
    return shares


def _reported(event: Any) -> Usage | None:
    """The usage of a request that was taken."""
    if isinstance(event, ev.ModelReplied):
        return event.reply.usage or Usage()
    if isinstance(event, ev.SummaryEnded) and event.reply is not None:
        return event.reply.usage or Usage()
    return event.usage if isinstance(event, ev.ModelFailed | ev.SummaryEnded) else None
