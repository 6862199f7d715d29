"""Journals with known causes: logs that the real machine made, from scripts of what models and tools did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from random import Random
from typing import Any, NamedTuple

from tenlines.advise import Advisor, Run, read_run
from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.effects import CallModel, Finish, RunTools
from tenlines.core.limits import Limits, Price, Repeats
from tenlines.core.machine import Machine
from tenlines.core.transcript import Reply, System, Text, ToolCall, Usage, User

PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
INSTRUCTIONS = "You are the help desk of a shop. Answer in one sentence. " * 60


class Call(NamedTuple):
    """What a model asked for, and what came of it."""

    tool: str
    arguments: str = "{}"
    result: str = "done"
    outcome: str = "ok"


Step = Sequence[Call]


class Script(NamedTuple):
    """A run that is to be made."""

    steps: Sequence[Step] = ()
    """Before the answer."""
    answer: str | None = "It is on its way."
    """None: the process dies after the last step."""
    task: str = "Where is order 1042?"
    agent: str = "support"
    model: str = "openai:gpt-5"
    instructions: str = INSTRUCTIONS
    tools: tuple[ev.ToolSpec, ...] = ()
    cap: int | None = 20
    price: Price | None = PRICE
    cached: int = 0
    """Tokens of the first request that were in the cache."""
    origin: str = ""
    session: str = ""
    turn: int = 0
    changed: str = ""
    is_counted: bool = True
    """Whether the provider says what was used."""


def spec(name: str, **properties: str) -> ev.ToolSpec:
    """A tool that only reads."""
    schema = {"type": "object", "properties": {one: {"type": kind} for one, kind in properties.items()}}
    return ev.ToolSpec(name, f"The tool {name}.", schema, read_only=True)


def specs(steps: Iterable[Step]) -> tuple[ev.ToolSpec, ...]:
    """The tools that some steps use."""
    names = dict.fromkeys(call.tool for step in steps for call in step if call.outcome != "unknown_tool")
    return tuple(spec(name) for name in names)


class Log:
    """A machine and its log."""

    def __init__(self, run_id: str, script: Script, at: float) -> None:
        self.machine, self.events, self.at, self.script = Machine(), list[ev.AnyEvent](), at, script
        self.held = script.cached
        said = (System(script.instructions), User((Text(script.task),)))
        limits, repeats = Limits(steps=script.cap), Repeats(told_after=None, invalid_in_a_row=None)
        self.tell(
            ev.RunStarted,
            run_id=run_id,
            agent=script.agent,
            model=script.model,
            messages=said,
            tools=script.tools or specs(script.steps),
            settings=ev.Settings(limits=limits, repeats=repeats, price=script.price),
            origin=script.origin,
            session=script.session,
            turn=script.turn,
            changed=script.changed,
        )
        self.go()

    def tell(self, kind: Any, **fields: Any) -> None:
        event = kind(seq=len(self.events), at=self.at, **fields)
        self.machine.replay(event)
        self.events.append(event)
        self.at += 0.1

    def go(self) -> None:
        """To the end, or to where the process dies."""
        step: Step | None = None
        moves = chain(self.script.steps, repeat(None))
        while not isinstance(effect := self.machine.next(self.at), Finish):
            if isinstance(effect, RunTools):
                self.call(effect, step)
                continue
            assert isinstance(effect, CallModel)
            step = next(moves)
            if step is None and self.script.answer is None:
                return
            self.ask(effect, step)
        self.tell(ev.RunEnded, status=effect.status, reason=effect.reason, answer=effect.answer)

    def ask(self, effect: CallModel, step: Step | None) -> None:
        taken = self.machine.state.estimated_tokens
        self.tell(ev.StepStarted, step=effect.step, attempt=1, reserved=effect.reserved, changed=effect.changed)
        usage = Usage(taken, 40, min(self.held, taken), 0, 0)
        self.held = taken
        calls = [ToolCall(f"{effect.step}-{place}", one.tool, one.arguments) for place, one in enumerate(step or ())]
        text, said = "" if step else self.script.answer or "", usage if self.script.is_counted else None
        self.tell(ev.ModelReplied, step=effect.step, reply=Reply(text, tuple(calls), usage=said))

    def call(self, effect: RunTools, step: Step | None) -> None:
        assert step is not None
        for one in effect.refusals:
            self.tell(ev.CallFailed, step=one.step, position=one.position, outcome=one.outcome, text=one.text)
        for one in effect.calls:
            place, made = {"step": one.step, "position": one.position}, step[one.position]
            self.tell(ev.CallStarted, **place, key=one.key)
            if made.outcome == "ok":
                self.tell(ev.CallReturned, **place, parts=(Text(made.result),))
            elif made.outcome == "timeout":
                self.tell(ev.CallTimedOut, **place, after_s=1.0, text=made.result)
            else:
                self.tell(ev.CallFailed, **place, outcome=made.outcome, text=made.result)


def logs(scripts: Iterable[Script], apart: float = 60.0) -> Iterator[list[ev.AnyEvent]]:
    """The logs of runs that begin one after the other."""
    for number, script in enumerate(scripts):
        yield Log(f"run{number:05}", script, 1_000_000.0 + apart * number).events


def read(scripts: Iterable[Script], apart: float = 60.0) -> Iterator[Run]:
    """The same, as the advice reads them."""
    return (read_run(map(codec.as_read, log)) for log in logs(scripts, apart))


def advise(scripts: Iterable[Script], apart: float = 60.0, **how: Any) -> Any:
    """What these runs teach."""
    advisor = Advisor(**how)
    for run in read(scripts, apart):
        advisor.take(run)
    return advisor.advice()


# --- kinds of runs --------------------------------------------------------------------------------------

TOOLS = ("search", "read", "list", "count")


def aimless(random: Random, **fields: Any) -> Script:
    """A run as they come: some tools in some order, each call another, small results, the same beginning as all."""
    length = random.choice((1, 2, 2, 3, 3, 4, 5, 6, 8))
    steps = [[step_of(random, random.choice(TOOLS), at)] for at in range(length)]
    tools = tuple(spec(name) for name in TOOLS)
    return Script(steps, task=f"Task {random.randrange(10**6)}", tools=tools, cached=2_000)._replace(**fields)


def step_of(random: Random, tool: str, at: int, words: int = 30) -> Call:
    """A call like no other."""
    return Call(tool, f'{{"q": "{at}-{random.randrange(10**9)}"}}', f"{random.randrange(10**9)} " + "so it is " * words)


def shipping(random: Random, **fields: Any) -> Script:
    """A run of a planted workflow: order -> tracking -> what the carrier says."""
    order, code = random.randrange(1000, 9999), f"TRK{random.randrange(10**6, 10**7)}"
    steps = [
        [Call("get_order", f'{{"order_id": "{order}"}}', f"order {order}: shipped as {code}. " + "so it is " * 60)],
        [Call("get_tracking", f'{{"code": "{code}", "lang": "en"}}', f"{code} is in Hamburg. " + "so it is " * 60)],
        [Call("notes", f'{{"text": "about {random.randrange(10**9)}"}}', f"{random.randrange(10**9)} kept")],
    ]
    tools = (
        spec("get_order", order_id="string"),
        spec("get_tracking", code="string", lang="string"),
        spec("notes", text="string"),
    )
    made = Script(steps, task=f"Where is order {order} now?", tools=tools, agent="shipping", cached=2_000)
    return made._replace(**fields)


def flooded(random: Random, **fields: Any) -> Script:
    """A run in which one tool, `dump`, returns 5,000 tokens."""
    script = aimless(random, agent="flooded", **fields)
    at = random.randrange(len(script.steps) + 1)
    flood = [step_of(random, "dump", at, 2_500)]
    return script._replace(steps=[*script.steps[:at], flood, *script.steps[at:]], tools=(*script.tools, spec("dump")))


def repeating(random: Random, **fields: Any) -> Script:
    """A run in which a call is made again, every third time."""
    script = aimless(random, agent="repeating", **fields)
    if random.random() > 0.3:
        return script
    again, kept = [step_of(random, "search", 99)], list(script.steps)
    for _ in range(2):
        kept.insert(random.randrange(len(kept) + 1), again)
    return script._replace(steps=kept)


def clocked(random: Random, number: int, **fields: Any) -> Script:
    """A run whose instructions hold the time."""
    minute = f"2026-11-{1 + number // 1440:02} {number // 60 % 24:02}:{number % 60:02}"
    script = aimless(random, agent="clocked", **fields)
    return script._replace(instructions=f"It is {minute}. {INSTRUCTIONS}", cached=0)


def shuffled(random: Random, **fields: Any) -> Script:
    """A run whose tools come in any order."""
    script = aimless(random, agent="shuffled", **fields)
    tools = list(script.tools)
    random.shuffle(tools)
    return script._replace(tools=tuple(tools), cached=0)


def planted(random: Random, runs: int = 60) -> list[Script]:
    """A journal with one of everything, and an agent without anything."""
    made = [
        script
        for number in range(runs)
        for script in (
            shipping(random),
            flooded(random),
            repeating(random),
            clocked(random, number),
            aimless(random),
        )
    ]
    return made
