"""The repair engine: makes a body that the other side takes of one that it would refuse, and says what it changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.checking import check, messages_of_body
from tenlines.wire.finding.provenance import Prefix, Provenance
from tenlines.wire.finding.situations import for_body
from tenlines.wire.format import Format
from tenlines.wire.mending.exchanges import ExchangeMender
from tenlines.wire.mending.order import OrderMender
from tenlines.wire.mending.turns import Log, TurnMender, is_user_start
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Change, Diagnostic
from tenlines.wire.turns import Tool, Turn

ROUNDS = 3
"""How often a body is looked at again: what cures one fault may uncover another."""


class Repaired(NamedTuple):
    """A body without errors, and what was done to make it one."""

    body: JsonObject
    changes: tuple[Change, ...]
    left: tuple[Diagnostic, ...] = ()
    """What a check still finds in it."""


def repair(
    body: JsonObject,
    format: Format,
    profile: Profile,
    artefacts: Sequence[Artefact] = (),
    *,
    warnings: bool = False,
) -> Repaired:
    """Cure everything for which the other side would refuse a request.

    A body without errors comes back as it is. What is not at fault is not touched; nothing that a user meant is
    made up; a result that nobody recorded is filled in and says so. Repairing twice changes nothing more.

    Args:
        body: The whole request; it is not changed.
        format: Its wire format.
        profile: What the other side demands.
        artefacts: Where its opaque reasoning came from, as far as that is known.
        warnings: Whether what is accepted but does harm is cured as well.

    Raises:
        ConfigError: The body has no list of messages.
    """
    changes: list[Change] = []
    left = check(body, format, profile, artefacts)
    # errors that are left when all errors were cured may come from what only does harm
    for with_warnings in (False, True):
        curing = curable(format, profile, warnings=with_warnings)
        for _ in range(ROUNDS):
            if not any(warnings or one.severity == "error" for one in left):
                return Repaired(body, tuple(changes), tuple(left))
            body, new = _repaired(body, format, curing, artefacts)
            if not new:
                break
            changes += new
            left = check(body, format, profile, artefacts)
    return Repaired(body, tuple(changes), tuple(left))


def curable(format: Format, profile: Profile, *, warnings: bool) -> Profile:
    """The profile with those faults alone that are to be cured: errors, and what only does harm if `warnings`."""
    severities = ("error", "warning") if warnings else ("error",)
    known = {rule.id: rule.severity for rule in format.rules}
    faults = {what: rule for what, rule in profile.faults.items() if known.get(rule) in severities}
    return replace(profile, faults=faults)


def _repaired(
    body: JsonObject, format: Format, profile: Profile, artefacts: Sequence[Artefact]
) -> tuple[JsonObject, list[Change]]:
    messages = messages_of_body(body, format)
    originals = [format.unfold(message, f"{format.list_field}[{index}]") for index, message in enumerate(messages)]
    promised = Counter(block.id for turn in originals for block in turn.of("result"))
    repairer = Repairer(format, profile, artefacts, body=body, promised=promised)
    turns = [done for turn in originals for done in repairer.take(turn)]
    turns += repairer.close()
    raws = {id(turn): message for turn, message in zip(originals, messages, strict=True)}
    folded: list[JsonValue] = [raws[id(turn)] if id(turn) in raws else format.fold(turn) for turn in turns]
    whole = repairer.framed(folded)
    return (whole, repairer.changes) if repairer.changes else (body, [])


class Repairer:
    """Repairs messages one at a time, in order; gives those that are finished.

    It holds what may still change: from one thing that a user said up to the next. With a `body`, what stands beside
    the messages is repaired too (`framed`, after `close`); without one, nothing is known of it, and system messages
    that belong there become user text.

    Attributes:
        changes: What was done so far. May be emptied by whoever reads it.
    """

    def __init__(
        self,
        format: Format,
        profile: Profile,
        artefacts: Sequence[Artefact] = (),
        *,
        body: JsonObject | None = None,
        promised: Counter[str] | None = None,
    ) -> None:
        profile = profile if body is None else for_body(profile, body)
        self._format, self._profile, self._artefacts, self._body = format, profile, artefacts, body
        self._log = Log()
        provenance = Provenance(profile, artefacts)
        self._prefix = Prefix(body, format) if body is not None and provenance.needs_prefix else None
        self._turns = TurnMender(profile, provenance, self._log, has_frame=body is not None)
        self._exchanges = ExchangeMender(profile, self._log, promised)
        self._order = OrderMender(profile, self._log)
        self._stretch: list[Turn] = []
        self._called: dict[str, None] = {}

    @property
    def changes(self) -> list[Change]:
        """What was done so far."""
        return self._log.changes

    def take(self, turn: Turn) -> Iterator[Turn]:
        """The next message."""
        for known in self._turns.take(turn, self._prefix.value if self._prefix else ""):
            for closed in self._exchanges.take(known):
                for ordered in self._order.take(closed):
                    yield from self._gather(ordered)
        if self._prefix is not None:
            self._prefix.add(turn)

    def close(self) -> Iterator[Turn]:
        """The end of the messages."""
        for closed in self._exchanges.close():
            for ordered in self._order.take(closed):
                yield from self._gather(ordered)
        for ordered in self._order.close():
            yield from self._gather(ordered)
        yield from self._finish(is_last=True)

    def framed(self, messages: list[JsonValue]) -> JsonObject:
        """The body as it was given, with these messages in it and everything beside them repaired. Called after
        `close`: some of what stands beside depends on what became of the messages."""
        body = self._body if self._body is not None else {}
        frame = self._format.frame(body)
        tools = tuple(self._renamed(tool) for tool in frame.tools)
        if not tools and self._called and "tools.absent" in self._profile.faults:
            tools = tuple(self._stub(name) for name in self._called)
        system = tuple(mended for turn in (*frame.system, *self._turns.systems) if (mended := self._mended(turn)))
        if tools != frame.tools or system != frame.system:
            body = self._format.fold_frame(body, system, tools)
        if body.get("tools") == [] and "tools.empty" in self._profile.faults:
            self._log.say("tools.empty", "tools", "left out the empty list of tools")
            body = {key: value for key, value in body.items() if key != "tools"}
        body, changes = self._format.amend_frame({**body, self._format.list_field: messages}, self._profile)
        self._log.changes.extend(changes)
        return body

    def _renamed(self, tool: Tool) -> Tool:
        name = self._turns.name(tool.name, tool.path)
        return tool if name == tool.name else replace(tool, name=name, raw=None)

    def _stub(self, name: str) -> Tool:
        self._log.say("tools.absent", "tools", f"declared the tool {name!r}, which the history calls")
        description = "Was used earlier in this conversation. Its description was not kept."
        return Tool(name, "tools", description, {"type": "object", "properties": {}})

    def _mended(self, turn: Turn) -> Turn | None:
        mended = self._turns.texts(turn)
        return mended if mended.blocks or not turn.blocks else None

    def _gather(self, turn: Turn) -> Iterator[Turn]:
        if is_user_start(turn) and self._stretch:
            yield from self._finish(is_last=False)
        self._stretch.append(turn)
        for block in turn.of("call"):
            self._called[block.name] = None

    def _finish(self, *, is_last: bool) -> Iterator[Turn]:
        turns, changes = self._format.amend(self._stretch, self._profile, self._artefacts, is_last=is_last)
        self._log.changes.extend(changes)
        self._stretch = []
        yield from turns
