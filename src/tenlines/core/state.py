"""What the machine knows: the fold of the events so far. Plain data, changed by `machine` alone."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec

from tenlines.core.context import Compaction
from tenlines.core.events import (
    CallUndone,
    ChildPaused,
    ChildRun,
    RunEnded,
    RunStarted,
    Settings,
    Status,
    ToolSpec,
)
from tenlines.core.leaving import Leavable
from tenlines.core.limits import Account, Counting, Left, Limits, Reservation
from tenlines.core.repeats import RepeatTracker
from tenlines.core.transcript import Assistant, JsonObject, Message, Outcome, Part, ToolCall, User


class Phase(Enum):
    """What the run waits for."""

    NEW = "new"
    READY = "ready"
    AWAITING_MODEL = "awaiting_model"
    AWAITING_TOOLS = "awaiting_tools"
    SUMMARISING = "summarising"
    UNDOING = "undoing"
    ENDED = "ended"


class Stop(msgspec.Struct, frozen=True):
    """Why the run ends as soon as nothing is open any more."""

    status: Status
    reason: str


class OpenCall(msgspec.Struct, gc=False):
    """One call of the open exchange."""

    call: ToolCall
    """As it stands in the transcript: unique id, usable name, arguments that are an object's text."""
    asked: ToolCall
    """As the provider sent it."""
    spec: ToolSpec | None
    arguments: JsonObject | None
    refusal: Outcome | None = None
    refusal_text: str = ""
    started: bool = False
    starts: int = 0
    """How often it has started: more than once only after crashes."""
    counted: bool = False
    """Entered into the account; a call that runs again after a crash is not counted twice."""
    doubt: Literal["", "reconcile", "ask"] = ""
    """It had started when a process died: whether its tool, or a person, says what is to become of it. It is in doubt
    until it starts again."""
    permission: Literal["", "asked", "allowed"] = ""
    digest: str = ""
    """What the question, or the permission, was bound to."""
    expires_at: float | None = None
    """Until when the question, or the permission, holds."""
    why_asked: str = ""
    edited_by: str | None = None
    """Who put other arguments in place of what the model wrote; None where nobody did."""
    allowance: Left | None = None
    """What is set aside for it, where it may spend on its own and has not said what it did."""
    paused: ChildPaused | None = None
    """The run under it waits for somebody's decision, and so does the call, until its own run is resumed."""
    child: ChildRun | None = None
    """How the run under it ended."""
    outcome: Outcome | None = None
    parts: tuple[Part, ...] = ()
    truncated: bool = False
    original_chars: int | None = None
    remarks: tuple[str, ...] = ()


class Exchange(msgspec.Struct, gc=False):
    """The open exchange: an assistant message whose calls are being answered."""

    step: int
    message: Assistant
    calls: list[OpenCall]
    order: list[int]
    """Positions in the order in which they run: a final tool first, else as asked."""
    unanswered: int
    cursor: int = 0
    """Index into `order`: everything before it is answered."""
    under_way: int = 0
    """Calls that have started and have not ended, in the hands of the present owner."""
    alone: bool = False
    """The call that is under way lets no other run beside it."""
    blank: str = ""
    """The provider marked the reply as malformed: why the model must try again."""
    final: str | None = None
    """The answer that a final tool gave."""
    over_limit: bool = False
    """A call was refused because of `Limits.tool_calls`."""
    stop: Stop | None = None
    """How the run ends once this exchange is closed."""
    guarded: dict[int, OpenCall] = {}
    """Open calls that somebody has to allow, or whose outcome somebody has to say, by position."""
    asking: dict[int, OpenCall] = {}
    """Those of them about which somebody is to be asked now."""


class CutState(msgspec.Struct):
    """What is remembered for decisions on cuts."""

    look_at: float = 0.0
    """Tokens of a request from which on it is looked again whether a cut pays."""
    look_at_step: float = 0.0
    """Steps that are done when it is looked again in any case."""
    floor: float = 0.0
    """Tokens below which `Compaction.at` asks for nothing: a cut that did not help is not made again at once."""
    window: float | None = None
    """Tokens that the model takes in, as far as it is known or was learnt from refusals."""
    summarising: tuple[int, int] | None = None
    """The stretch for which a summary was asked."""
    summary: tuple[int, int, str] | None = None
    """A summary that can be put in the place of its stretch."""
    failures: int = 0
    """Summaries in a row that came to nothing."""
    tried_at: int = -1
    """Steps that were done when a summary was last asked for."""
    is_fresh: bool = False
    """The transcript was cut, and the model has not been asked since."""


class State(msgspec.Struct):
    """The whole state of a run."""

    phase: Phase = Phase.NEW
    seq: int = -1
    at: float = 0.0
    start: RunStarted | None = None
    settings: Settings = Settings()
    limits: Limits = Limits()
    tools: dict[str, ToolSpec] = {}
    specs: tuple[ToolSpec, ...] = ()
    marked: set[str] = set()
    """Names of the tools whose calls somebody has to allow, now and from now on."""
    has_spending: bool = False
    """Whether any tool spends on its own."""
    has_final: bool = False
    """Whether any tool's result ends the run."""
    finish: ToolSpec | None = None
    """The tool that takes the answer, where words are none (`ToolSpec.answer`)."""
    finish_due: bool = False
    """The model answered in words instead: the next request forces that tool."""
    tools_tokens: int = 0
    """Estimate of what the tools themselves take in each request."""
    messages: list[Message] = []
    estimated_tokens: int = 0
    """Estimate of everything the next request holds."""
    known_tokens: float = 0.0
    """What the provider counted for the last request that it took."""
    known_estimate: int = 0
    """What was estimated for that."""
    rate: float = 1.0
    """Tokens for each estimated one of what the provider has not counted yet."""
    margin: float = Counting().margin
    appended_tokens: int = 0
    """Estimate of all that was ever appended since the run began; a cut takes nothing away from it."""
    changed: str = ""
    """What of the beginning of the next request, but for tools, is not as in the last one that was answered."""
    tools_changed: str = ""
    """How the tools differ from those of that one."""
    last_specs: tuple[ToolSpec, ...] = ()
    """The tools of the last request that was answered."""
    last_choice: str = ""
    """Its tool choice; "" where there was none."""
    asked_choice: str = ""
    """The tool choice of the request under way."""
    compaction: Compaction | None = None
    cuts: CutState = msgspec.field(default_factory=CutState)
    sent: int = 0
    """How many messages the model has been sent or wrote itself."""
    account: Account = msgspec.field(default_factory=Account)
    reserved: Reservation = Reservation()
    """What was set aside for the last request."""
    attempt: int = 0
    """Failed requests for the step at hand."""
    retry_at: float | None = None
    left_out: frozenset[Leavable] = frozenset()
    """What the provider refused and is sent no more."""
    last_error: str = ""
    exchange: Exchange | None = None
    queue: list[User] = []
    """What people said while an exchange was open."""
    mail: int = 0
    """Number of the last letter from the run's mailbox that was heard."""
    repeats: RepeatTracker = msgspec.field(default_factory=RepeatTracker)
    ids: set[str] = set()
    records: list[tuple[int, int, OpenCall]] = []
    """Closed calls with their step and position, for the result."""
    given_up: dict[tuple[int, int], OpenCall] = {}
    """Calls that were given up and may still report late."""
    returned: dict[tuple[int, int], int] = {}
    """Where the log has the value of a call, for the tool that reads it again."""
    acted: dict[tuple[int, int], OpenCall] = {}
    """Calls that started and may have had effect, in the order in which they started."""
    undo: list[tuple[int, int]] = []
    """What is still to be undone, the next one last."""
    undo_under_way: bool = False
    undo_since: int = -1
    """Number of the event with which the undoing began."""
    undone: dict[tuple[int, int], CallUndone] = {}
    """What came of undoing, the last attempt of each call."""
    undone_told: set[tuple[int, int]] = set()
    """Those of them that the model has been told of."""
    blanks: int = 0
    choice_met: bool = False
    last_words: Literal["", "due", "asked"] = ""
    partial: str = ""
    answer: str | None = None
    stop: Stop | None = None
    cancel: Literal["", "drain", "now"] = ""
    cancel_reason: str = ""
    session_began: float = 0.0
    worked_s: float = 0.0
    """Time that earlier owners worked on the run."""
    warnings: list[str] = []
    ended: RunEnded | None = None


# --- looked up in it --------------------------------------------------------------------------------------


def call_key(state: State, step: int, position: int) -> str:
    """The idempotency key: the runtime's own, the same over retry, crash and resume."""
    assert state.start is not None
    return f"{state.start.run_id}:{step}:{position}"


def deadline_at(state: State) -> float | None:
    """When the time of the run is over (Unix seconds), or None."""
    seconds = state.limits.seconds
    return None if seconds is None else state.session_began + seconds - state.worked_s


def open_exchange(state: State) -> Exchange:
    """The exchange that is open; there must be one."""
    assert state.exchange is not None
    return state.exchange


def is_unsettled(one: OpenCall) -> bool:
    """Whether the call is in doubt, and neither its tool nor a person has said what is to become of it."""
    return one.doubt == "reconcile" or (one.doubt == "ask" and one.permission != "allowed")


def seconds_left(state: State, now: float) -> float | None:
    """What is left of the time limit, or None where there is none."""
    deadline = deadline_at(state)
    return None if deadline is None else deadline - now


def is_undone(state: State, place: tuple[int, int]) -> bool:
    """Whether the call is known to be taken back."""
    return place in state.undone and state.undone[place].outcome == "ok"
