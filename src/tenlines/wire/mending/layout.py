"""Where the calls and results of one exchange stand after its repair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec.structs import replace

from tenlines.wire.finding.pairing import Group
from tenlines.wire.mending.turns import Log
from tenlines.wire.profile import Profile
from tenlines.wire.turns import Block, Turn

Place: TypeAlias = tuple[int, int]
"""Index of a turn in its exchange, and of a block in that turn."""


class Call:
    """A call of an exchange, what came for it, and what was made for it because nothing came."""

    def __init__(self, place: Place, block: Block, is_repeated: bool) -> None:
        self.place, self.block, self.is_repeated = place, block, is_repeated
        self.answers: list[tuple[Place, Block]] = []
        self.made: Block | None = None


class Batch:
    """The calls of one assistant turn (which may be several items), and the indices of the turns that hold them."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.calls: list[Call] = []
        self.heads: list[int] = []

    @property
    def answered_at(self) -> list[int]:
        """Indices of the turns that hold its results, in order."""
        return sorted({place[0] for call in self.calls for place, _ in call.answers})

    @property
    def made(self) -> list[Block]:
        """Results that were made."""
        return [call.made for call in self.calls if call.made is not None]


class Plan:
    """What becomes of blocks (None: dropped), and what user messages are put behind the results of a batch."""

    def __init__(self) -> None:
        self.edits: dict[Place, Block | None] = {}
        self.shown: dict[int, list[Turn]] = {}


class Layout:
    """Writes the turns of one exchange: where they stood, or in the order that the profile wants."""

    def __init__(self, profile: Profile, log: Log, held: list[Turn], batches: list[Batch], plan: Plan) -> None:
        self._profile, self._faults, self._log = profile, profile.faults, log
        self._held, self._batches, self._plan = held, batches, plan
        edited: dict[int, list[Block | None]] = {}
        for (index, position), block in plan.edits.items():
            edited.setdefault(index, list(held[index].blocks))[position] = block
        self._blocks: list[list[Block | None]] = [
            edited.get(index, list(turn.blocks)) for index, turn in enumerate(held)
        ]
        self._turns = [self._edited(index) for index in range(len(held))]

    def turns(self) -> Iterator[Turn]:
        """The turns, repaired."""
        misplaced = [self._is_misplaced(batch) for batch in self._batches]
        return self._rebuilt() if any(misplaced) else self._in_place()

    def _edited(self, index: int) -> Turn | None:
        turn, blocks = self._held[index], self._blocks[index]
        if all(new is old for new, old in zip(blocks, turn.blocks, strict=True)):
            return turn
        left = tuple(block for block in blocks if block is not None)
        return replace(turn, blocks=left) if left else None

    # --- what is not in its place ---

    def _is_misplaced(self, batch: Batch) -> bool:
        if not batch.answered_at:
            return False
        path = self._held[batch.answered_at[0]].path
        is_split = self._profile.results == "next" and len(batch.answered_at) > 1
        is_gapped = batch.answered_at[0] < batch.heads[-1] or self._has_gap(batch)
        is_crowded = any(self._is_crowded(index) for index in batch.answered_at)
        if not (is_gapped or is_crowded or (is_split and "pair.split" in self._faults)):
            return False
        if is_gapped:
            self._log.say(
                "pair.gap", path, "moved results directly behind their calls, and what stood between elsewhere"
            )
        if is_split:
            self._log.say("pair.split", path, "put the results of one assistant message into one message")
        if is_crowded:
            self._log.say("pair.order", path, "put the results before everything else, or by themselves")
        return True

    def _has_gap(self, batch: Batch) -> bool:
        start, end = batch.heads[-1] + 1, batch.answered_at[-1]
        between = [turn for turn in self._turns[start:end] if turn is not None and not turn.of("result")]
        if not between:
            return False
        if "pair.gap" in self._faults:
            return True
        splits_by_system = "role.system" in self._faults and self._profile.system == "outside"
        return splits_by_system and any(turn.role == "system" for turn in between)

    def _is_crowded(self, index: int) -> bool:
        turn = self._turns[index]
        if turn is None:
            return False
        others = [place for place, block in enumerate(turn.blocks) if block.kind in ("text", "media", "reasoning")]
        results = [place for place, block in enumerate(turn.blocks) if block.kind == "result"]
        if not others or not results:
            return False
        return "pair.beside" in self._faults or ("pair.order" in self._faults and others[0] < results[-1])

    # --- in place ---

    def _in_place(self) -> Iterator[Turn]:
        behind: dict[int, list[Turn]] = {}
        for number, batch in enumerate(self._batches):
            self._add_made(batch, behind)
            last = max([batch.heads[-1], *batch.answered_at])
            behind.setdefault(last, []).extend(self._plan.shown.get(number, ()))
        for index, turn in enumerate(self._turns):
            if turn is not None:
                yield turn
            yield from behind.get(index, ())

    def _add_made(self, batch: Batch, behind: dict[int, list[Turn]]) -> None:
        made = batch.made
        if not made:
            return
        last, answered = batch.heads[-1], set(batch.answered_at)
        while last + 1 in answered:
            last += 1
        turn = self._turns[last]
        if self._profile.results != "next":
            behind.setdefault(last, []).extend(Turn(self._profile.results_in, (one,), one.path) for one in made)
        elif last > batch.heads[-1] and turn is not None:
            cut = 1 + max(place for place, block in enumerate(turn.blocks) if block.kind == "result")
            self._turns[last] = replace(turn, blocks=(*turn.blocks[:cut], *made, *turn.blocks[cut:]))
        else:
            behind.setdefault(last, []).append(Turn(self._profile.results_in, tuple(made), made[0].path))

    # --- in the order that is wanted ---

    def _rebuilt(self) -> Iterator[Turn]:
        starts = [batch.heads[0] for batch in self._batches]
        ends = [*starts[1:], len(self._held)]
        yield from (turn for turn in self._turns[: starts[0]] if turn is not None)
        for number, batch in enumerate(self._batches):
            yield from self._exchange(number, batch, ends[number])

    def _exchange(self, number: int, batch: Batch, end: int) -> Iterator[Turn]:
        last = batch.answered_at[-1] if batch.answered_at else -1
        results = {place[0] for one in self._batches for call in one.calls for place, _ in call.answers}
        before: list[Turn] = []
        speech: list[Turn] = []
        behind: list[Turn] = []
        beside: list[Block] = []
        for index in range(batch.heads[0], end):
            turn = self._turns[index]
            if turn is None:
                continue
            if index in batch.heads or (turn.role == "assistant" and index < batch.heads[-1]):
                speech.append(turn)  # words between two items of calls are part of the same message
            elif index in results:
                rest = tuple(block for block in turn.blocks if block.kind != "result")
                self._put_rest(turn, rest, beside, behind)
            elif turn.role == "assistant" and index < last:
                before.append(turn)
            else:
                behind.append(turn)
        yield from before
        yield from speech
        yield from self._results(batch, beside)
        yield from self._plan.shown.get(number, ())
        yield from behind

    def _put_rest(self, turn: Turn, rest: tuple[Block, ...], beside: list[Block], behind: list[Turn]) -> None:
        if not rest:
            return
        if self._profile.results == "next" and "pair.beside" not in self._faults and not behind:
            beside.extend(rest)
        else:
            behind.append(Turn(turn.role, rest, turn.path, wire_role=turn.wire_role))

    def _results(self, batch: Batch, beside: list[Block]) -> Iterator[Turn]:
        found: list[tuple[int, Block]] = []
        for call in batch.calls:
            for (index, position), _ in call.answers:
                block = self._blocks[index][position]
                if block is not None:
                    found.append((index, block))
            if call.made is not None:
                found.append((-1, call.made))
        blocks = tuple(block for _, block in found)
        if self._profile.results == "next":
            if blocks or beside:
                yield Turn(self._profile.results_in, (*blocks, *beside), (blocks or tuple(beside))[0].path)
            return
        for index, block in found:
            turn = self._turns[index] if index >= 0 else None
            if turn is not None and turn.blocks == (block,):
                yield turn
            else:
                yield Turn(self._profile.results_in, (block,), block.path)
