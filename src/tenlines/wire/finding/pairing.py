"""Which result belongs to which call: the exchanges of a conversation, walked once and held one at a time."""

from __future__ import annotations

from collections import deque
from typing import Literal, NamedTuple

from tenlines.wire.finding.forking import Seen
from tenlines.wire.profile import Profile
from tenlines.wire.turns import Block, Turn

MOST_GROUPS = 8
"""Assistant turns that are waited for at once: results that come later than that belong to nobody."""


class Match(NamedTuple):
    """What a result is to the calls before it."""

    state: Literal["answers", "repeats", "stranger"]
    group: Group | None = None
    position: int = -1
    call: Block | None = None


class Group:
    """The calls of one assistant turn, and which of them are still open.

    Attributes:
        open: Position -> call, of those without a result. Answered ones are let go.
        size: How many calls there were.
        known: Ids of all of them.
        interrupted: Path of the first turn behind the calls that holds no results of theirs; "" when there is none.
        answered_in: Path of the turn with the first result; "" when there is none yet.
    """

    def __init__(self) -> None:
        self.open: dict[int, Block] = {}
        self.size = 0
        self.known = Seen()
        self.interrupted = ""
        self.answered_in = ""
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        self._order: deque[int] = deque()

    def add(self, call: Block) -> int:
        """One more call; its position."""
        position = self.size
        self.size += 1
        self.open[position] = call
        self.known.add(call.id)
        self._by_id.setdefault(call.id, deque()).append(position)
        self._by_name.setdefault(call.name, deque()).append(position)
        self._order.append(position)
        return position

    def waits_for(self, call_id: str) -> bool:
        """Whether a call of this id is open."""
        return self._first(self._by_id.get(call_id)) is not None

    def by_id(self, result: Block) -> int | None:
        """The open call that a result names. Calls that share an id are taken in order."""
        return self._first(self._by_id.get(result.id)) if result.id else None

    def by_place(self, result: Block) -> int | None:
        """The open call whose turn it is, for a result that names none: the next one of its tool, else the next.

        A result with an id can only belong to a call that has none.
        """
        if result.id:
            return self._first(self._by_id.get(""))
        named = self._first(self._by_name.get(result.name)) if result.name else None
        return self._first(self._order) if named is None else named

    def answer(self, position: int) -> Block:
        """Take a call from the open ones."""
        call = self.open.pop(position)
        if self._first(self._by_id.get(call.id)) is None:
            self._by_id.pop(call.id, None)
        if self._first(self._by_name.get(call.name)) is None:
            self._by_name.pop(call.name, None)
        self._first(self._order)
        return call

    def _first(self, queue: deque[int] | None) -> int | None:
        while queue and queue[0] not in self.open:
            queue.popleft()
        return queue[0] if queue else None


class Window:
    """The assistant turns whose results are being waited for: usually one, more when something came in between.

    An exchange is over when nothing is owed and another turn comes; when calls come and those before them are
    answered; or when something is owed and the conversation went on all the same (the assistant spoke, and the user
    after it).
    """

    def __init__(self, profile: Profile) -> None:
        self.groups: list[Group] = []
        self._merges = profile.merges
        self._spoke = False

    @property
    def is_owed(self) -> bool:
        """Whether a call is open."""
        return any(group.open for group in self.groups)

    def continues(self, turn: Turn, calls: tuple[Block, ...]) -> bool:
        """Whether a turn is the same assistant message to the provider: neighbours are joined, or it is an item."""
        if turn.role != "assistant" or not self.groups:
            return False
        last = self.groups[-1]
        if last.interrupted or last.answered_in:
            return False
        return self._merges or (bool(calls) and not turn.wire_role)

    def is_over(self, turn: Turn, calls: tuple[Block, ...], has_results: bool) -> bool:
        """Whether the exchange ends before this turn."""
        if has_results or not self.groups or self.continues(turn, calls):
            return False
        if calls:
            return not self.groups[-1].open or len(self.groups) >= MOST_GROUPS
        return not self.is_owed or (turn.role == "user" and self._spoke)

    def clear(self) -> None:
        """The exchange is over."""
        self.groups = []
        self._spoke = False

    def interrupt(self, turn: Turn) -> None:
        """A turn that holds no results and no calls came."""
        self._part(turn)
        self._spoke = self._spoke or turn.role == "assistant"

    def _part(self, turn: Turn) -> None:
        for group in self.groups:
            group.interrupted = group.interrupted or turn.path

    def call(self, turn: Turn, calls: tuple[Block, ...]) -> Group:
        """An assistant turn with calls came."""
        if not self.continues(turn, calls):
            self._part(turn)
            self.groups.append(Group())
        group = self.groups[-1]
        for block in calls:
            group.add(block)
        return group

    def match(self, result: Block) -> Match:
        """The call that a result answers; it is not open any more."""
        for group in reversed(self.groups):
            position = group.by_id(result)
            if position is not None:
                return Match("answers", group, position, group.answer(position))
        if result.id:
            for group in reversed(self.groups):
                if result.id in group.known:
                    return Match("repeats", group)
        for group in reversed(self.groups):
            position = group.by_place(result)
            if position is not None:
                return Match("answers", group, position, group.answer(position))
        return Match("stranger", self.groups[-1] if self.groups else None)
