"""What a page shows of runs, as plain data. Every text in it is harmless already: redacted, and cleaned of what turns
or hides text. Whoever renders it has only to escape.

Ids are those of elements: `step-7`, `call-7-2` (step, number of the call, both from 1), `remark-3`, `start`, `end`,
behind the key of the run where a page has several (`r2-step-7`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Tone: TypeAlias = Literal["good", "bad", "warn", "info", "idle"]
"""How something is coloured; a word always says the same."""


class Fact(msgspec.Struct, frozen=True, gc=False):
    """A name and what is known of it."""

    name: str
    value: str
    note: str = ""
    """More, where somebody asks for it."""


class Link(msgspec.Struct, frozen=True, gc=False):
    """A place on the page."""

    id: str
    text: str


class Flag(msgspec.Struct, frozen=True, gc=False):
    """Something to look at first."""

    tone: Tone
    text: str
    links: tuple[Link, ...] = ()


class Move(msgspec.Struct, frozen=True, gc=False):
    """What can be done next, and the command that does it, or ""."""

    why: str
    command: str = ""


class Limit(msgspec.Struct, frozen=True, gc=False):
    """One limit of a run, and what was left of it."""

    name: str
    total: str
    left: str
    used: float
    """Part that was used, 0 to 1."""


class Head(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The run in one look."""

    key: str
    """What its ids begin with; "" where the page has one run."""
    run_id: str
    task: str
    status: str
    tone: Tone
    words: str
    """The status in plain words."""
    why: str
    """The reason that the run gave."""
    answer: str
    partial: str
    moves: tuple[Move, ...]
    flags: tuple[Flag, ...]
    totals: tuple[Fact, ...]
    limits: tuple[Limit, ...]
    facts: tuple[Fact, ...]
    """Where it ran, with what, from what."""
    steps: int
    calls: int
    tokens: int
    dollars: float | None
    seconds: float
    started_at: float


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message that a run began with, or that is new to the model."""

    role: str
    text: str


class Tool(msgspec.Struct, frozen=True, gc=False):
    """A tool that the model was offered."""

    name: str
    description: str
    risk: str
    """`read only`, `idempotent`, ..., or ""."""
    parameters: str
    """JSON Schema, as text."""


class StartItem(msgspec.Struct, frozen=True, gc=False):
    """What the run began with."""

    id: str
    at: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    settings: tuple[Fact, ...]
    repairs: tuple[str, ...]


class ChildRef(msgspec.Struct, frozen=True, gc=False):
    """A run that served a call."""

    key: str
    """Of its own page part; "" where it is not on the page."""
    run_id: str
    summary: str


class CallItem(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One call, and what became of it."""

    id: str
    place: str
    name: str
    line: str
    """As one would write it, shortened."""
    brief: str
    """The beginning of its result."""
    standing: str
    """Its outcome, or `open`, or `waits`."""
    tone: Tone
    facts: tuple[Fact, ...]
    arguments: str
    result: str
    """What the model was told."""
    full: str
    """The whole result, where the model was told a part of it."""
    detail: str
    """For people: a traceback."""
    notes: tuple[str, ...]
    remarks: tuple[str, ...]
    late: str
    children: tuple[ChildRef, ...] = ()


class StepItem(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One request to the model, its reply, and the calls in it."""

    id: str
    number: int
    at: str
    """Since the run began."""
    standing: str
    """`answers`, `calls`, `waits for the reply`, ..."""
    tone: Tone
    facts: tuple[Fact, ...]
    sent: tuple[Link, ...]
    """What of the request the model had not seen before."""
    changed: str
    """What of the beginning of the request was not as before, so that no cache had it."""
    reasoning: str
    text: str
    remarks: tuple[str, ...]
    calls: tuple[CallItem, ...]


class RemarkItem(msgspec.Struct, frozen=True, gc=False):
    """Something beside the steps."""

    id: str
    kind: str
    word: str
    tone: Tone
    at: str
    text: str


class EndItem(msgspec.Struct, frozen=True, gc=False):
    """How the run ended, or that it has not."""

    id: str
    status: str
    tone: Tone
    at: str
    words: str
    why: str
    answer: str


Item: TypeAlias = StartItem | StepItem | RemarkItem | EndItem


class Span(msgspec.Struct, frozen=True, gc=False):
    """Something that took time, in seconds since the run began."""

    start: float
    end: float
    kind: Literal["model", "call"]
    tone: Tone
    place: str
    name: str


class Point(msgspec.Struct, frozen=True, gc=False):
    """What one step used. None: nobody said."""

    step: int
    input: int | None
    cached: int | None
    output: int | None
    dollars: float | None
    seconds: float | None


class Series(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The numbers that are drawn."""

    points: tuple[Point, ...]
    spans: tuple[Span, ...]
    sums: tuple[float, ...]
    """Input tokens of all requests up to each step."""
    linear: tuple[float, ...]
    """The same if each request held as much as the first one."""
    closed: tuple[float, ...]
    """The same by the closed form: each step adds as much as these did on average, and nothing is cut."""
    costs: tuple[float | None, ...]
    """Dollars up to each step; None from where a price is not known."""


class RunView(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Everything of one run."""

    head: Head
    items: tuple[Item, ...]
    series: Series
    parent: str = ""
    """Id of the call that it serves, on this page."""
