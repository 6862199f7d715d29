"""What is special to Mistral in a body: schemas, the end of the messages, prefixes, content beside calls, chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.format import Inspector as BaseInspector
from tenlines.wire.json_values import items
from tenlines.wire.mistral import fields
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Diagnostic, Rule
from tenlines.wire.schemas import problems
from tenlines.wire.turns import Turn


class Inspector(BaseInspector):
    """The rules that no general situation covers."""

    def __init__(self, profile: Profile, rules: Mapping[str, Rule], artefacts: Sequence[Artefact] = ()) -> None:
        super().__init__(profile, rules, artefacts)
        self._last: Turn | None = None
        self._count = 0

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """The schemas of the tools."""
        tools = body.get("tools")
        for index, entry in enumerate(items(tools)):
            function = entry.get("function") if isinstance(entry, dict) else None
            if isinstance(function, dict) and (problem := broken(function.get("parameters"))):
                yield self._found("MIS-9", f"tools[{index}].function.parameters", problem)

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """One turn."""
        if self._last is not None and is_prefix(self._last):
            yield self._found("MIS-3", self._last.path, "a message is a prefix, and it is not the last one")
        if not self._count and has_early_calls(turn):
            yield self._found("MIS-1", turn.path, "the first message has calls")
        self._last = turn
        self._count += 1
        if turn.role == "assistant":
            if self._profile.has("calls_alone") and has_content(turn) == bool(turn.of("call")):
                both = "both content and calls" if turn.of("call") else "neither content nor calls"
                yield self._found("MIS-7", turn.path, f"a message of the assistant has {both}")
        elif turn.role in ("system", "user") and lacks_content(turn):
            yield self._found("MIS-7", turn.path, f"a {turn.role} message has no content")
        yield from self._chunks(turn)
        for one in fields.problems(turn):
            yield self._found(one.rule, one.path, one.message, one.kind)

    def _chunks(self, turn: Turn) -> Iterator[Diagnostic]:
        for block in turn.blocks:
            if block.kind == "reasoning" and (turn.role != "assistant" or not self._profile.has("thinking")):
                yield self._found("MIS-11", block.path, "no thoughts are taken here", "RSN-FOREIGN")
            if block.kind == "media" and turn.role == "user" and self._profile.has("no_images"):
                yield self._found("MIS-11", block.path, "no images are taken here")

    def close(self) -> Iterator[Diagnostic]:
        """The end."""
        last = self._last
        if last is None or self._profile.has("history"):
            return
        if self._count == 1 and last.role in ("assistant", "tool") and not has_early_calls(last):
            yield self._found("MIS-1", last.path, f"the only message is of the role {last.role}")
        elif is_end_missing(last):
            yield self._found("MIS-3", last.path, "the last message is the assistant's, and no prefix")


# --- small questions --------------------------------------------------------------------------------


def broken(parameters: JsonValue) -> str:
    """What is wrong with a schema; "" when nothing is."""
    if not isinstance(parameters, dict):
        return "the tool has no parameters, which are an object"
    place, words = next(iter(problems(parameters, "mistral")), ("", ""))
    return f"{place}: {words}" if place else words


def is_prefix(turn: Turn) -> bool:
    """Whether a message is to be continued."""
    return turn.role == "assistant" and isinstance(turn.raw, dict) and turn.raw.get("prefix") is True


def is_end_missing(last: Turn) -> bool:
    """Whether the last message may not be the last one. Calls at the end lack something else: their results."""
    return last.role == "assistant" and not is_prefix(last) and not last.of("call")


def has_early_calls(first: Turn) -> bool:
    """Whether the very first message has calls."""
    return first.role == "assistant" and bool(first.of("call"))


def has_content(turn: Turn) -> bool:
    """Whether a message of the assistant says anything."""
    return any(block.kind not in ("call", "text") or block.text for block in turn.blocks)


def lacks_content(turn: Turn) -> bool:
    """Whether a message has no content at all; an empty text is some."""
    return not turn.blocks and not (isinstance(turn.raw, dict) and isinstance(turn.raw.get("content"), list))
