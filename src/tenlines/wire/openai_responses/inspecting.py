"""The rules of this format that no general situation covers: reasoning, ids of items, outputs, parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tenlines.core.outcomes import quote
from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.finding.forking import Seen
from tenlines.wire.format import Inspector as BaseInspector
from tenlines.wire.json_values import obj, string
from tenlines.wire.openai_responses.encoding import CUSTOM_CALL, is_message
from tenlines.wire.openai_responses.rules import ENCRYPTED, MOST_OUTPUT, PREFIXES
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Diagnostic, Rule
from tenlines.wire.turns import Turn

CALLS = ("function_call", CUSTOM_CALL)
OUTPUTS = ("function_call_output", "custom_tool_call_output")


class Inspector(BaseInspector):
    """One check of one body."""

    def __init__(self, profile: Profile, rules: Mapping[str, Rule], artefacts: Sequence[Artefact] = ()) -> None:
        super().__init__(profile, rules, artefacts)
        self._is_stateless = False
        self._ids = Seen()
        self._trigger = ""
        self._before: tuple[str, JsonObject] | None = None
        self._batch = Batch()
        self._company = Company(artefacts)

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """Parameters."""
        self._is_stateless = body.get("store") is False
        if body.get("previous_response_id") is not None and body.get("conversation") is not None:
            said = "the request continues a response and a conversation; only one of them can be continued"
            yield from self._say("OAI-R-16", "PARAM-COMBO", "conversation", said)

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """The next item."""
        item = obj(turn.raw)
        if self._trigger:
            said = "this asks for compaction, and other items come behind it"
            yield from self._say("OAI-R-15", "ROLE-ORDER", self._trigger, said)
        self._trigger = turn.path if item.get("type") == "compaction_trigger" else ""
        yield from self._follows(item)
        yield from self._id(item, turn.path)
        kind = kind_of(item)
        if kind == "reasoning":
            yield from self._reasoning(item, turn.path)
        elif kind in OUTPUTS:
            yield from self._output(item, turn.path)
        elif kind == "item_reference" and self._is_stateless:
            yield from self._say("OAI-R-10", "RSN-MISSING", turn.path, "a reference to an item that is not stored")
        if self._batch.take(kind):
            said = "this call comes behind outputs of calls that belong to the same reasoning"
            yield from self._say("DSK-4", "PAIR-GAP", turn.path, said)
        self._company.take(item, turn.path)
        self._before = (turn.path, item)

    def close(self) -> Iterator[Diagnostic]:
        """The end of the items."""
        yield from self._follows({})
        for _, path, said in self._company.lonely():
            yield from self._say("OAI-R-9", "RSN-MISSING", path, said)

    def _follows(self, item: JsonObject) -> Iterator[Diagnostic]:
        """Whether the item before this one is reasoning that led to nothing."""
        if self._before is None or is_dangling(self._before[1], item) is False:
            return
        said = "this reasoning has no item of the model behind it, to which it led"
        yield from self._say("OAI-R-9", "RSN-MISSING", self._before[0], said)

    def _id(self, item: JsonObject, path: str) -> Iterator[Diagnostic]:
        item_id, prefix = item.get("id"), PREFIXES.get(kind_of(item))
        if not isinstance(item_id, str):
            return
        if prefix is not None and not item_id.startswith(prefix):
            said = f"the id {quote(item_id, 80)} of a {kind_of(item)} does not begin with {prefix!r}"
            yield from self._say("OAI-R-8", "ID-PREFIX", f"{path}.id", said)
        if item_id in self._ids:
            yield from self._say(
                "OAI-R-7", "ID-DUP", path, f"an item with the id {quote(item_id, 80)} stands here twice"
            )
        self._ids.add(item_id)

    def _reasoning(self, item: JsonObject, path: str) -> Iterator[Diagnostic]:
        encrypted = item.get("encrypted_content")
        if not isinstance(item.get("summary"), list):
            yield from self._say(
                "OAI-R-12", "RSN-EDITED", path, "this reasoning has no summary, not even an empty list"
            )
        if not encrypted and self._is_stateless:
            said = "nothing is stored, and this reasoning has no encrypted_content"
            yield from self._say("OAI-R-10", "RSN-MISSING", path, said)
        if is_forged(item):
            said = f"this encrypted_content was changed, or OpenAI did not make it: {quote(str(encrypted), 40)}"
            yield from self._say("OAI-R-11", "RSN-EDITED", path, said)

    def _output(self, item: JsonObject, path: str) -> Iterator[Diagnostic]:
        problem = output_problem(item.get("output"))
        if problem:
            yield from self._say("OAI-R-13", "ARGS-TYPE", f"{path}.output", problem)

    def _say(self, rule_id: str, kind: str, path: str, message: str) -> Iterator[Diagnostic]:
        if self._profile.has(rule_id):
            rule = self._rules[rule_id]
            yield Diagnostic(rule_id, kind, rule.severity, path, message, rule.evidence, rule.fix)


# --- questions about items, which the cures ask as well ------------------------------------------------


def kind_of(item: JsonObject) -> str:
    """The type of an item, also where it may be left out."""
    if is_message(item):
        return "message"
    kind = item.get("type")
    if kind is None and "id" in item:
        return "item_reference"
    return string(kind)


def marks_of(item: JsonObject) -> list[str]:
    """By what an item may be known."""
    fields = ("id", "encrypted_content") if kind_of(item) == "reasoning" else ("id",)
    return [mark for field in fields if isinstance(mark := item.get(field), str)]


def is_models(item: JsonObject) -> bool:
    """Whether an item is one that a model makes: what is not known may be."""
    kind = kind_of(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return bool(kind) and not kind.endswith("_output") and kind not in ("compaction_trigger", "mcp_approval_response")


def is_dangling(item: JsonObject, behind: JsonObject) -> bool:
    """Whether an item is reasoning with an id of the server, and what stands behind is not the model's."""
    return kind_of(item) == "reasoning" and isinstance(item.get("id"), str) and not is_models(behind)


def is_forged(item: JsonObject) -> bool:
    """Whether the encrypted content of reasoning cannot be OpenAI's."""
    encrypted = item.get("encrypted_content")
    return isinstance(encrypted, str) and bool(encrypted) and not encrypted.startswith(ENCRYPTED)


def is_unstored(item: JsonObject) -> bool:
    """Whether an item can only be looked up by its id."""
    kind = kind_of(item)
    return kind == "item_reference" or (kind == "reasoning" and not item.get("encrypted_content"))


def output_problem(output: JsonValue) -> str:
    """What is wrong with the output of a call; "" when nothing is. A missing one is another matter."""
    if output is None:
        return ""
    if isinstance(output, str):
        return f"this output has {len(output):,} characters" if len(output) > MOST_OUTPUT else ""
    if not isinstance(output, list):
        what = "an object" if isinstance(output, dict) else "true or false" if isinstance(output, bool) else "a number"
        return f"this output is {what}; expected text or a list of parts"
    parts = ("input_text", "input_image", "input_file")
    bad = next((one for one in output if not isinstance(one, dict) or one.get("type") not in parts), "")
    if bad == "":
        return ""
    what = f"a part of type {quote(str(bad.get('type')), 40)}" if isinstance(bad, dict) else "something that is no part"
    return f"this output holds {what}; expected {', '.join(parts)}"


class Batch:
    """Follows the calls behind one reasoning item."""

    def __init__(self) -> None:
        self._state = ""

    def take(self, kind: str) -> bool:
        """The next item; whether it is a call that comes too late for its batch."""
        is_call, is_output = kind in CALLS, kind in OUTPUTS
        is_late = is_call and self._state == "outputs"
        if kind == "reasoning":
            self._state = "reasoning"
        elif is_output and self._state in ("calls", "outputs"):
            self._state = "outputs"
        elif is_call and self._state in ("reasoning", "calls", "outputs"):
            self._state = "outputs" if is_late else "calls"
        elif not (kind == "message" and self._state == "reasoning"):
            self._state = ""
        return is_late


class Company:
    """Which items were made together, by what is known of them, and which of them are here."""

    def __init__(self, artefacts: Sequence[Artefact]) -> None:
        self._artefacts = [artefact for artefact in artefacts if artefact.partners]
        self._wanted = {mark for one in self._artefacts for mark in (one.mark, *one.partners)}
        self._here: dict[str, tuple[str, str]] = {}

    def take(self, item: JsonObject, path: str) -> None:
        """The next item."""
        for mark in marks_of(item):
            if mark in self._wanted:
                self._here[mark] = (path, kind_of(item))

    def lonely(self) -> Iterator[tuple[str, str, str]]:
        """Mark and path of an item without its company, and what is missing."""
        for artefact in self._artefacts:
            here = [partner for partner in artefact.partners if partner in self._here]
            path, kind = self._here.get(artefact.mark, ("", ""))
            if not kind:
                for partner in here:
                    yield partner, self._here[partner][0], _without(partner, artefact.mark)
            elif kind == "reasoning" and not here:
                yield artefact.mark, path, _without(artefact.mark, artefact.partners[0])
            elif kind != "reasoning" and len(here) < len(artefact.partners):
                missing = next(partner for partner in artefact.partners if partner not in here)
                yield artefact.mark, path, _without(artefact.mark, missing)


def _without(one: str, other: str) -> str:
    return f"the item {quote(one, 60)} was made together with {quote(other, 60)}, which is not here"
