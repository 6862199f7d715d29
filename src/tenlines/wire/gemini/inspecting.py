"""What no general situation covers: parts, the order of calls, responses, signatures of the current turn, schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.format import Inspector as BaseInspector
from tenlines.wire.gemini.fields import field, kinds_of
from tenlines.wire.gemini.rules import RULES
from tenlines.wire.gemini.turns import declarations
from tenlines.wire.json_values import string
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Diagnostic, Rule
from tenlines.wire.schemas import problems
from tenlines.wire.turns import Block, Turn

_BY_ID = {rule.id: rule for rule in RULES}
_VERTEX = ("additionalProperties", "additional_properties", "defs", "ref")
"""Fields of `parameters` that Vertex AI takes beside the others."""


def found(rule_id: str, path: str, message: str, kind: str = "") -> Diagnostic:
    """A violation of one of our rules."""
    rule = _BY_ID[rule_id]
    return Diagnostic(rule.id, kind or rule.kinds[0], rule.severity, path, message, rule.evidence, rule.fix)


class Inspector(BaseInspector):
    """One check of one body."""

    def __init__(self, profile: Profile, rules: Mapping[str, Rule], artefacts: Sequence[Artefact] = ()) -> None:
        super().__init__(profile, rules, artefacts)
        self._last: Turn | None = None
        self._unsigned: list[Diagnostic] = []

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """The declarations."""
        for path, one in declarations(body):
            parameters = one.get("parameters")
            name = string(one.get("name"))
            if parameters is not None and field(one, "parametersJsonSchema") is not None:
                yield found(
                    "GEM-16", path, f"{name} has both parameters and parametersJsonSchema; only one may be there"
                )
            if parameters is not None:
                for place, what in schema_problems(parameters, self._profile):
                    where = f"{path}.parameters{'.' if place else ''}{place}"
                    yield found("GEM-17", where, f"the parameters of {name} are outside of the dialect: {what}")

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """The next content."""
        for block in turn.blocks:
            yield from _part(block)
        calls = turn.of("call")
        if calls and turn.role == "assistant":
            yield from self._order(turn)
        if self._profile.has("signatures"):
            self._signatures(turn, calls)
        self._last = turn

    def _order(self, turn: Turn) -> Iterator[Diagnostic]:
        if self._last is None:
            yield found("GEM-4", turn.path, "the conversation begins with calls; a user content must stand before them")
        elif self._last.role == "assistant":
            yield found(
                "GEM-4", turn.path, f"calls come directly after another content of the model, {self._last.path}"
            )

    def _signatures(self, turn: Turn, calls: tuple[Block, ...]) -> None:
        if begins_turn(turn):
            self._unsigned.clear()
        elif calls and turn.role == "assistant" and not calls[0].signature:
            what = (
                f"the call of {calls[0].name} is the first of its step in the current turn and has no thoughtSignature"
            )
            self._unsigned.append(found("GEM-10", calls[0].path, what))

    def close(self) -> Iterator[Diagnostic]:
        """What the current turn lacks: now it is known which one that is."""
        yield from self._unsigned


def begins_turn(turn: Turn) -> bool:
    """Whether a content of the user holds more than results: the turns before it are not looked at any more."""
    return turn.role == "user" and any(block.kind != "result" for block in turn.blocks)


def schema_problems(parameters: JsonValue, profile: Profile) -> list[tuple[str, str]]:
    """Where `parameters` are outside of their dialect."""
    if parameters == {}:
        return []
    known = _VERTEX if profile.has("vertex") else ()
    listed = problems(parameters, "gemini")
    return [one for one in listed if one[0].rsplit(".", 1)[-1] not in known]


def is_malformed(block: Block) -> bool:
    """Whether a part is no part: not an object, or with more than one thing in it."""
    if not isinstance(block.raw, dict):
        return block.kind == "other"
    return len(kinds_of(block.raw)) > 1


def has_bad_response(block: Block) -> bool:
    """Whether the response of a result is there and is no object."""
    if block.kind != "result" or not isinstance(block.raw, dict):
        return False
    response = field(block.raw, "functionResponse")
    said = response.get("response") if isinstance(response, dict) else None
    return said is not None and not isinstance(said, dict)


def _part(block: Block) -> Iterator[Diagnostic]:
    if is_malformed(block):
        if isinstance(block.raw, dict):
            what = f"this part holds several things: {', '.join(kinds_of(block.raw))}"
        else:
            what = "this part is no object"
        yield found("GEM-3", block.path, what)
    if has_bad_response(block):
        yield found("GEM-8", block.path, f"the response of {block.name} is no object")
