"""Cures for what the inspector finds: parameters, reasoning, ids of items, outputs. All of them idempotent."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tenlines.core.outcomes import bounded
from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.openai_responses.inspecting import (
    CALLS,
    OUTPUTS,
    Batch,
    Company,
    is_dangling,
    is_forged,
    is_models,
    is_unstored,
    kind_of,
    marks_of,
    output_problem,
)
from tenlines.wire.openai_responses.rules import MOST_OUTPUT, PREFIXES
from tenlines.wire.openai_responses.turns import fold, unfold
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Change
from tenlines.wire.turns import Block, Turn

# --- what needs the whole body ------------------------------------------------------------------------


def amend_frame(body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
    """Cure parameters, and items whose cure depends on parameters or on items far away; the body is not changed."""
    body, changes = dict(body), list[Change]()
    if profile.has("OAI-R-16") and None not in (body.get("previous_response_id"), body.get("conversation")):
        del body["conversation"]
        changes.append(
            Change("PARAM-COMBO", "conversation", "Left conversation out: the request continues a response.")
        )
    items = body.get("input")
    if isinstance(items, list):
        walk = _Walk(profile, is_stateless=body.get("store") is False)
        kept = [cured for index, item in enumerate(items) for cured in walk.take(item, f"input[{index}]")]
        if walk.changes:
            body["input"] = kept
            changes += walk.changes
    return body, changes


class _Walk:
    """Takes out items that stand there twice, and those that cannot be looked up."""

    def __init__(self, profile: Profile, *, is_stateless: bool) -> None:
        self.changes: list[Change] = []
        self._profile, self._is_stateless = profile, is_stateless
        self._seen: dict[str, JsonObject] = {}
        self._strips = False

    def take(self, item: JsonValue, path: str) -> list[JsonValue]:
        """The item, as it goes on: none, or one."""
        if not isinstance(item, dict):
            return [item]
        if self._is_stateless and self._profile.has("OAI-R-10") and is_unstored(item):
            self._strips = True
            what = "reasoning without encrypted_content" if kind_of(item) == "reasoning" else "a reference to an item"
            self.changes.append(Change("RSN-MISSING", path, f"Took {what} out, as nothing is stored."))
            return []
        self._strips = self._strips and is_models(item)
        if self._strips and isinstance(item.get("id"), str) and kind_of(item) in PREFIXES:
            self.changes.append(Change("RSN-MISSING", path, f"Took the id {item['id']} off, whose reasoning is gone."))
            item = _stripped(item)
        return self._once(item, path)

    def _once(self, item: JsonObject, path: str) -> list[JsonValue]:
        item_id = item.get("id")
        if not isinstance(item_id, str) or not self._profile.has("OAI-R-7"):
            return [item]
        first = self._seen.get(item_id)
        if first is None:  # the very same object may stand there twice, so `is` would not tell
            self._seen[item_id] = item
            return [item]
        if _nature(first) == _nature(item) and kind_of(item) in CALLS:
            return [item]  # what becomes of its output is seen in its stretch
        if _nature(first) == _nature(item) or kind_of(item) not in PREFIXES:
            self.changes.append(Change("ID-DUP", path, f"Took out the item {item_id}, which stood there before."))
            return []
        self.changes.append(Change("ID-DUP", path, f"Took the id {item_id} off, which another item has."))
        return [_stripped(item)]


def _nature(item: JsonObject) -> list[str]:
    return [value if isinstance(value := item.get(field), str) else "" for field in ("type", "call_id", "role")]


def _stripped(item: JsonObject) -> JsonObject:
    return {key: value for key, value in item.items() if key != "id"}


# --- what is seen in a stretch ------------------------------------------------------------------------


def amend(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
) -> tuple[list[Turn], list[Change]]:
    """Cure one stretch of items."""
    changes: list[Change] = []
    for cure in (_cure_twins, _cure_nameless, _cure_items, _cure_reasoning, _cure_company, _cure_batches):
        turns = cure(turns, profile, artefacts, changes)
    return _cure_triggers(turns, profile, changes, is_last=is_last), changes


def _item(turn: Turn) -> JsonObject:
    item = fold(turn)
    return dict(item) if isinstance(item, dict) else {}


def _cure_twins(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], changes: list[Change]
) -> list[Turn]:
    """Take out calls that stood there twice as the very same item: nobody made them twice.

    The second one has got an id and an output of its own by now; its output goes too, if it says nothing new.
    """
    if not profile.has("OAI-R-7"):
        return turns
    outputs = {block.id: block for turn in turns for block in turn.of("result")}
    first: dict[tuple[str, ...], Block] = {}
    gone: set[str] = set()
    for turn in turns:
        twin = (*marks_of(turn.raw), *_nature(turn.raw)) if isinstance(turn.raw, dict) and "id" in turn.raw else ()
        for block in turn.of("call") if twin else ():
            kept = first.setdefault(twin, block)
            if (
                kept is not block
                and block.raw is None
                and _says_nothing_new(outputs.get(block.id), outputs.get(kept.id))
            ):
                gone.add(block.id)
                changes.append(Change("ID-DUP", turn.path, f"Took out a call that stood there twice, {kept.id!r}."))
    return [turn for turn in turns if not any(block.id in gone for block in turn.blocks if block.id)] if gone else turns


def _says_nothing_new(output: Block | None, first: Block | None) -> bool:
    return output is None or output.is_synthetic or (first is not None and output.parts == first.parts)


def _cure_nameless(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], changes: list[Change]
) -> list[Turn]:
    """Take out results that can be no call's, stored ones included: those of a call that is here fit it by now."""
    kept = []
    for turn in turns:
        ids = [block.id for block in turn.of("result")]
        if "id.missing" in profile.faults and not all(0 < len(one) <= profile.id_max for one in ids):
            changes.append(Change("ID-MISSING", turn.path, "Took out a result whose call_id can be no call's."))
        else:
            kept.append(turn)
    return kept


def _cure_items(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], changes: list[Change]
) -> list[Turn]:
    """What is wrong with an item by itself."""
    cured = []
    for turn in turns:
        item = _item(turn)
        found = [change for cure in _CURES for change in cure(item, turn.path, profile)]
        changes += found
        cured.append(unfold(item, turn.path) if found else turn)
    return cured


def _cure_summary(item: JsonObject, path: str, profile: Profile) -> list[Change]:
    if kind_of(item) != "reasoning" or isinstance(item.get("summary"), list) or not profile.has("OAI-R-12"):
        return []
    item["summary"] = []
    return [Change("RSN-EDITED", path, "Gave reasoning an empty summary.")]


def _cure_output(item: JsonObject, path: str, profile: Profile) -> list[Change]:
    is_output = kind_of(item) in OUTPUTS
    if not is_output or not output_problem(item.get("output")) or not profile.has("OAI-R-13"):
        return []
    item["output"] = _as_text(item["output"])
    return [Change("ARGS-TYPE", f"{path}.output", "Wrote an output as text.")]


def _cure_id(item: JsonObject, path: str, profile: Profile) -> list[Change]:
    """Not that of reasoning: without an id of the server it is none, and goes altogether."""
    kind, item_id = kind_of(item), item.get("id")
    if kind == "reasoning" or not isinstance(item_id, str) or not profile.has("OAI-R-8"):
        return []
    if item_id.startswith(PREFIXES.get(kind, "")):
        return []
    del item["id"]
    return [Change("ID-PREFIX", f"{path}.id", f"Took the id {item_id} off, which is none of a {kind}.")]


_CURES = (_cure_summary, _cure_output, _cure_id)


def _as_text(output: JsonValue) -> str:
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return bounded(text, MOST_OUTPUT - 100)


def _cure_reasoning(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], changes: list[Change]
) -> list[Turn]:
    """Take out reasoning that cannot go back, and the ids of the items that it led to."""
    kept: list[Turn] = []
    gone: set[int] = set()
    for position, turn in reversed(list(enumerate(turns))):
        why = _unusable(_item(turn), _item(kept[-1]) if kept else {}, profile)
        if why:
            gone.add(position)
            kind = "RSN-MISSING" if why == _DANGLING else "RSN-FOREIGN"
            changes.append(Change(kind, turn.path, f"Took out reasoning that {why}."))
        else:
            kept.append(turn)
    return _bereft(turns, gone) if gone else turns


def _bereft(turns: list[Turn], gone: set[int]) -> list[Turn]:
    """Without some turns of reasoning, and without the ids of the items behind each."""
    cured = []
    strips = False
    for position, turn in enumerate(turns):
        item = _item(turn)
        strips = position in gone or (strips and is_models(item) and kind_of(item) != "reasoning")
        if position not in gone:
            cured.append(unfold(_stripped(item), turn.path) if strips and _has_own_id(item) else turn)
    return cured


_DANGLING = "led to nothing"


def _has_own_id(item: JsonObject) -> bool:
    return isinstance(item.get("id"), str) and kind_of(item) in ("message", *CALLS)


def _unusable(item: JsonObject, behind: JsonObject, profile: Profile) -> str:
    if kind_of(item) != "reasoning":
        return ""
    if (
        profile.has("OAI-R-8")
        and isinstance(item.get("id"), str)
        and not str(item["id"]).startswith(PREFIXES["reasoning"])
    ):
        return "has no id of the server"
    if profile.has("OAI-R-11") and is_forged(item):
        return "was changed or made elsewhere"
    return _DANGLING if profile.has("OAI-R-9") and is_dangling(item, behind) else ""


def _cure_company(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], changes: list[Change]
) -> list[Turn]:
    """Part what was made together with something that is gone: reasoning goes as well, other items lose their ids."""
    if not artefacts or not profile.has("OAI-R-9"):
        return turns
    while True:
        company = Company(artefacts)
        for turn in turns:
            company.take(_item(turn), turn.path)
        lonely = {mark for mark, _, _ in company.lonely()}
        cured = [kept for turn in turns for kept in _parted(turn, lonely, changes)]
        if len(cured) == len(turns) and all(one is other for one, other in zip(cured, turns, strict=True)):
            return turns
        turns = cured


def _parted(turn: Turn, lonely: set[str], changes: list[Change]) -> list[Turn]:
    item = _item(turn)
    marks = marks_of(item)
    if kind_of(item) == "reasoning" and not lonely.isdisjoint(marks):
        changes.append(Change("RSN-MISSING", turn.path, "Took out reasoning whose item is gone."))
        return []
    if not lonely.isdisjoint(marks) and item.pop("id", None) is not None:
        changes.append(Change("RSN-MISSING", turn.path, "Took the id off an item whose reasoning is gone."))
        return [unfold(item, turn.path)]
    return [turn]


def _cure_batches(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], changes: list[Change]
) -> list[Turn]:
    """Move calls up that come behind outputs of the same reasoning."""
    if not profile.has("DSK-4"):
        return turns
    batch, cured = Batch(), list[Turn]()
    for turn in turns:
        kind = kind_of(_item(turn))
        if batch.take(kind):
            place = len(cured)
            while place and kind_of(_item(cured[place - 1])).endswith("_output"):
                place -= 1
            changes.append(Change("PAIR-GAP", turn.path, "Moved a call up to the others of its reasoning."))
            cured.insert(place, turn)
        else:
            cured.append(turn)
    return cured


def _cure_triggers(turns: list[Turn], profile: Profile, changes: list[Change], *, is_last: bool) -> list[Turn]:
    """Take out requests for compaction that are not the last item."""
    if not profile.has("OAI-R-15"):
        return turns
    cured = []
    for index, turn in enumerate(turns):
        is_end = is_last and index == len(turns) - 1
        if kind_of(_item(turn)) == "compaction_trigger" and not is_end:
            changes.append(
                Change("ROLE-ORDER", turn.path, "Took out a request for compaction that was not the last item.")
            )
        else:
            cured.append(turn)
    return cured
