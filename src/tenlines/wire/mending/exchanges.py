"""Repairs of calls and results: every call gets an id and exactly one result, in the place where results stand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from tenlines.core import outcomes
from tenlines.core.transcript import File, Image, Text
from tenlines.wire.finding.pairing import Group, Window
from tenlines.wire.finding.situations import has_media
from tenlines.wire.ids import short_hash
from tenlines.wire.mending.layout import Batch, Call, Layout, Place, Plan
from tenlines.wire.mending.turns import Log, with_text
from tenlines.wire.parts import plain_text
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.turns import Block, Turn

_QUOTED = 200


class ExchangeMender:
    """Holds an exchange until it is over, then gives its turns back.

    An exchange without a fault comes back as it was. `promised` counts the results of the whole conversation by the
    id that they name, when that is known: where results may come at any time, a call is only filled in when no
    result for it is still to come.
    """

    def __init__(self, profile: Profile, log: Log, promised: Counter[str] | None = None) -> None:
        self._profile, self._faults, self._log, self._promised = profile, profile.faults, log, promised
        self._window = Window(profile)
        self._ids = _IdMaker(profile)
        self._held: list[Turn] = []
        self._batches: list[Batch] = []
        self._strays: list[tuple[Place, Block]] = []
        self._rebound: list[Block] = []
        self._history: set[str] = set()
        self._far, self._far_ids = Group(), dict[int, str]()

    def take(self, turn: Turn) -> Iterator[Turn]:
        """The next turn; gives what is finished."""
        calls = turn.of("call")
        has_results = bool(turn.of("result")) and self._may_answer(turn)
        if self._window.is_over(turn, calls, has_results):
            yield from self.close()
        if not self._window.groups and not calls and not has_results:
            yield turn
            return
        index = len(self._held)
        self._held.append(turn)
        if has_results:
            self._take_results(index, turn)
        if calls:
            self._take_calls(index, turn, calls)
        elif not has_results and not self._window.continues(turn, calls):
            self._window.interrupt(turn)
        if not self._window.groups:
            yield from self.close()

    def close(self) -> Iterator[Turn]:
        """The exchange is over."""
        held = self._held
        plan = Plan()
        self._drop_strays(plan)
        for number, batch in enumerate(self._batches):
            self._settle(number, batch, plan)
        yield from Layout(self._profile, self._log, held, self._batches, plan).turns()
        self._window.clear()
        self._held, self._batches, self._strays, self._rebound = [], [], [], []
        self._log.unreadable.clear()

    def _may_answer(self, turn: Turn) -> bool:
        return turn.role in (self._profile.results_in, "unknown") or "role.result" not in self._faults

    # --- taking in ---

    def _take_calls(self, index: int, turn: Turn, calls: tuple[Block, ...]) -> None:
        continued = self._window.continues(turn, calls)
        seen = set(self._batches[-1].group.known) if continued and self._batches else set()
        repeated = []
        for call in calls:
            repeated.append(bool(call.id) and (call.id in seen or self._is_taken(call.id)))
            seen.add(call.id)
        group = self._window.call(turn, calls)
        if not self._batches or self._batches[-1].group is not group:
            self._batches.append(Batch(group))
        batch = self._batches[-1]
        batch.heads.append(index)
        flags = iter(repeated)
        for position, block in enumerate(turn.blocks):
            if block.kind == "call":
                batch.calls.append(Call((index, position), block, next(flags)))
        if self._profile.unique_ids == "history":
            self._history |= seen

    def _is_taken(self, call_id: str) -> bool:
        if call_id in self._history:
            return True
        if self._profile.results != "anywhere":
            return False
        return self._far.waits_for(call_id) or any(group.waits_for(call_id) for group in self._window.groups)

    def _take_results(self, index: int, turn: Turn) -> None:
        for position, block in enumerate(turn.blocks):
            if block.kind != "result":
                continue
            if self._promised is not None:
                self._promised[block.id] -= 1
            match = self._window.match(block)
            place = (index, position)
            if match.state == "answers" and match.group is not None:
                match.group.answered_in = match.group.answered_in or turn.path
                self._batch(match.group).calls[match.position].answers.append((place, block))
            elif match.state == "repeats" and match.group is not None and not match.group.interrupted:
                self._named(match.group, block.id).answers.append((place, block))
            else:
                self._strays.append((place, block))

    def _batch(self, group: Group) -> Batch:
        return next(batch for batch in self._batches if batch.group is group)

    def _named(self, group: Group, call_id: str) -> Call:
        """The call to which a further result of one id goes: of several with that id, the one answered last."""
        calls = [call for call in self._batch(group).calls if call.block.id == call_id]
        return [call for call in calls if call.answers][-1] if any(call.answers for call in calls) else calls[0]

    # --- deciding ---

    def _drop_strays(self, plan: Plan) -> None:
        """Results that belong to no call: given to the one call that has none, when there is no doubt; else dropped."""
        owed = [call for batch in self._batches for call in batch.calls if not call.answers]
        for place, block in self._strays:
            if self._is_far(place, block, plan):
                continue
            if not {"pair.stranger", "pair.orphan"} & self._faults.keys():
                continue
            if len(owed) == 1 and len(self._strays) == 1 and block.name in ("", owed[0].block.name):
                owed[0].answers.append((place, block))
                self._rebound.append(block)
                said = f"gave the result for {block.id!r} to the only call that had none, {owed[0].block.id!r}"
                self._log.say("pair.stranger", block.path, said)
                continue
            plan.edits[place] = None
            text = outcomes.quote(block.text, _QUOTED)
            self._log.say("pair.orphan", block.path, f"dropped a result for {block.id!r}, which is no call's: {text}")

    def _is_far(self, place: Place, block: Block, plan: Plan) -> bool:
        position = self._far.by_id(block)
        if position is None:
            return False
        call = self._far.answer(position)
        wire_id = self._far_ids.pop(position)
        plan.edits[place] = self._fitted(block, replace(call, id=wire_id))
        return True

    def _settle(self, number: int, batch: Batch, plan: Plan) -> None:
        for call in batch.calls:
            block = self._call_block(call)
            if block is not call.block:
                plan.edits[call.place] = block
            kept = self._kept(call, plan)
            if kept is not None:
                place, result = kept
                named = self._fitted(result, block)
                if result.id not in (named.id, call.block.id) and result not in self._rebound:
                    said = (
                        f"the result of {block.name or 'a tool'} had {result.id!r} and now names its call, {block.id!r}"
                    )
                    self._log.say("id.missing", result.path, said)
                fitted = self._shown(number, named, plan)
                if fitted is not result:
                    plan.edits[place] = fitted
            elif not self._is_promised(call, block) and "pair.missing" in self._faults:
                call.made = self._made(block)

    def _call_block(self, call: Call) -> Block:
        situation = self._ids.fault(call.block, call.is_repeated)
        if situation is None:
            return call.block
        new = self._ids.make(call.block, self._history)
        if self._profile.unique_ids == "history":
            self._history.add(new)
        old = f"the id {outcomes.quote(call.block.id, 80)} became" if call.block.id else "the call got the id"
        self._log.say(situation, call.block.path, f"{old} {new!r}, in its result as well")
        return replace(call.block, id=new, raw=None)

    def _kept(self, call: Call, plan: Plan) -> tuple[Place, Block] | None:
        """The one result of a call: the last that a tool gave, else the last."""
        if not call.answers:
            return None
        if len(call.answers) == 1 or "pair.repeated" not in self._faults:
            return call.answers[0]
        told = outcomes.unrecorded(call.block.name)
        real = [answer for answer in call.answers if not answer[1].is_synthetic and answer[1].text != told]
        kept = (real or call.answers)[-1]
        for place, block in call.answers:
            if place != kept[0]:
                plan.edits[place] = None
                said = f"dropped another result for {call.block.id!r}: {outcomes.quote(block.text, _QUOTED)}"
                self._log.say("pair.repeated", block.path, said)
        call.answers = [kept]
        return kept

    def _fitted(self, result: Block, call: Block) -> Block:
        """A result that names its call."""
        wants_id = result.id != call.id and (bool(result.id) or "id.missing" in self._faults)
        if wants_id and (call.id or "id.missing" in self._faults):
            result = replace(result, id=call.id, raw=None)
        if result.name != call.name and "pair.name" in self._faults:
            self._log.say("pair.name", result.path, f"the result for {call.id!r} now names its tool, {call.name!r}")
            result = replace(result, name=call.name, raw=None)
        return result

    def _shown(self, number: int, result: Block, plan: Plan) -> Block:
        """A result without images and files, which then stand in a user message behind the results."""
        if "media.result" not in self._faults or not has_media(result):
            return result
        media = [part for part in result.parts if isinstance(part, Image | File)]
        texts = [part if not isinstance(part, Image | File) else Text(plain_text((part,))) for part in result.parts]
        named = f" of {result.name}" if result.name else ""
        blocks = [Block("text", result.path, text=f"(what the result{named} for {result.id or 'this call'} shows:)")]
        blocks += [Block("media", result.path, parts=(part,)) for part in media]
        plan.shown.setdefault(number, []).append(Turn("user", tuple(blocks), result.path))
        said = f"moved {len(media)} images or files out of the result for {result.id!r} into a user message behind it"
        self._log.say("media.result", result.path, said)
        return with_text(result, plain_text(tuple(texts)))

    def _is_promised(self, call: Call, block: Block) -> bool:
        if self._profile.results != "anywhere" or self._promised is None or self._promised[call.block.id] <= 0:
            return False
        self._far_ids[self._far.add(call.block)] = block.id
        return True

    def _made(self, block: Block) -> Block:
        text = outcomes.unrecorded(block.name)
        raw = self._log.unreadable.get(block.path)
        if raw is not None:
            text += f" The arguments could not be read and are not shown as they were: {outcomes.quote(raw)}"
        self._log.say(
            "pair.missing", block.path, f"filled in a result for {block.id!r} that says that none was recorded"
        )
        return Block(
            "result",
            block.path,
            id=block.id,
            name=block.name,
            text=text,
            parts=(Text(text),),
            is_error=True,
            is_synthetic=True,
        )


class _IdMaker:
    """Ids for calls that have none, or one that the other side does not take."""

    def __init__(self, profile: Profile) -> None:
        self._fits = re.compile(profile.id_pattern) if profile.id_pattern else None
        self._most, self._faults = profile.id_max, profile.faults

    def fault(self, call: Block, is_repeated: bool) -> Situation | None:
        """The first thing that is wrong with an id."""
        found: list[Situation] = []
        if not call.id:
            found.append("id.missing")
        else:
            if self._fits is not None and not self._fits.fullmatch(call.id):
                found.append("id.pattern")
            if len(call.id) > self._most:
                found.append("id.length")
            if is_repeated:
                found.append("id.repeated")
        return next((one for one in found if one in self._faults), None)

    def make(self, call: Block, taken: set[str]) -> str:
        """An id from the place of a call, so that it is the same whenever the same history is repaired."""
        attempt = 0
        while True:
            made = self._shaped(f"{call.path} {call.id} {attempt}")
            if made not in taken:
                return made
            attempt += 1

    def _shaped(self, seed: str) -> str:
        shapes = (f"call_{short_hash(seed, 20)}", short_hash(seed, 9), short_hash(seed, 24), short_hash(seed, 8))
        for shape in shapes:
            if len(shape) <= self._most and (self._fits is None or self._fits.fullmatch(shape)):
                return shape
        return shapes[1]
