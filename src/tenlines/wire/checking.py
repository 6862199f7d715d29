"""The checker: finds every situation of `profile.Situation` in any format, in one pass and bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tenlines.core.outcomes import quote
from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import ConfigError
from tenlines.wire.finding.forking import Seen, fork
from tenlines.wire.finding.pairing import Group, Match, Window
from tenlines.wire.finding.provenance import Prefix, Provenance
from tenlines.wire.finding.situations import (
    KINDS,
    for_body,
    has_media,
    is_blank,
    is_object_text,
    is_opaque,
    is_silent,
    lacks_content,
)
from tenlines.wire.format import Format, Frame
from tenlines.wire.profile import Artefact, Profile, Situation
from tenlines.wire.rules import Diagnostic
from tenlines.wire.turns import Block, Turn

_SHOWN = 80
_NUMBER = re.compile(r"\d+")


def messages_of_body(body: JsonObject, format: Format) -> list[JsonValue]:
    """The messages of a body.

    Raises:
        ConfigError: The body has none: it is no request in this format.
    """
    found = body.get(format.list_field)
    if isinstance(found, list):
        return found
    if isinstance(found, str) and format.list_field == "input":
        return [{"role": "user", "content": found}]
    what = "is missing" if found is None else f"is {type(found).__name__}"
    raise ConfigError(
        f"this is no request in the format {format.name!r}: the field {format.list_field!r}, a list of messages, {what}"
    )


def turns_of_body(body: JsonObject, format: Format) -> Iterator[Turn]:
    """The messages of a body as turns.

    Raises:
        ConfigError: The body has no list of messages.
    """
    for index, message in enumerate(messages_of_body(body, format)):
        yield format.unfold(message, f"{format.list_field}[{index}]")


def check(body: JsonObject, format: Format, profile: Profile, artefacts: Sequence[Artefact] = ()) -> list[Diagnostic]:
    """All violations in a request body, by position.

    Args:
        body: The whole request, or the part of it that matters.
        format: Its wire format.
        profile: What the other side demands.
        artefacts: Where its opaque reasoning came from, as far as that is known.

    Raises:
        ConfigError: The body has no list of messages.
    """
    checker = Checker(format, profile, artefacts)
    turns = turns_of_body(body, format)
    found = list(checker.frame(body))
    for turn in turns:
        found.extend(checker.take(turn))
    found.extend(checker.close())
    return sorted(found, key=lambda one: _place(one.path, format.list_field))


def _place(path: str, list_field: str) -> tuple[bool, list[int]]:
    return path.startswith(list_field), [int(number) for number in _NUMBER.findall(path)]


class Found(NamedTuple):
    """A situation, before the profile says whether it is a fault."""

    situation: Situation
    path: str
    message: str


class Checker:
    """Checks messages one at a time.

    Memory: the exchange that is open, and for formats whose ids are unique over the history (or whose results may
    come at any time) the ids. `frame` is called first, and once; without it nothing is known of the tools, and
    nothing is said about them.
    """

    def __init__(self, format: Format, profile: Profile, artefacts: Sequence[Artefact] = ()) -> None:
        self._format, self._profile, self._faults = format, profile, profile.faults
        self._rules = {rule.id: rule for rule in format.rules}
        self._inspector = format.inspector(profile, artefacts)
        self._provenance = Provenance(profile, artefacts)
        self._prefix: Prefix | None = None
        self._tools: tuple[str, ...] | None = None
        self._contents = Contents(profile)
        self._order = Order(profile)
        self._pairs: Pairs | PairsAnywhere = PairsAnywhere(profile) if profile.results == "anywhere" else Pairs(profile)

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """What stands beside the messages."""
        frame = self._format.frame(body)
        self._faults = for_body(self._profile, body).faults
        self._tools = tuple(tool.name for tool in frame.tools)
        if self._provenance.needs_prefix:
            self._prefix = Prefix(body, self._format)
        yield from self._said(self._frame(body, frame))
        yield from self._inspector.frame(body)

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """The next message."""
        yield from self._said(self._turn(turn))
        yield from self._inspector.take(turn)
        if self._prefix is not None:
            self._prefix.add(turn)

    def close(self) -> Iterator[Diagnostic]:
        """The end of the messages."""
        yield from self._said(self._pairs.close())
        yield from self._said(self._order.close())
        yield from self._inspector.close()

    def fork(self) -> Checker:
        """A checker that goes on from here by itself."""
        return fork(self, shared=("_format", "_rules"))

    def _frame(self, body: JsonObject, frame: Frame) -> Iterator[Found]:
        if body.get("tools") == []:
            yield Found("tools.empty", "tools", "the list of tools is empty: leave the field out")
        for tool in frame.tools:
            yield from self._contents.name(tool.name, tool.path)
        for turn in frame.system:
            yield from self._contents.texts(turn)

    def _turn(self, turn: Turn) -> Iterator[Found]:
        yield from self._order.take(turn)
        yield from self._contents.take(turn)
        yield from self._pairs.take(turn)
        if self._tools is not None and not self._tools:
            yield from self._tools_absent(turn)
        if self._provenance:
            for situation, block, artefact in self._provenance.doubts(turn, self._prefix.value if self._prefix else ""):
                yield Found(situation, block.path, _DOUBTS[situation].format(maker=artefact.model or artefact.provider))

    def _tools_absent(self, turn: Turn) -> Iterator[Found]:
        for block in turn.blocks:
            if block.kind in ("call", "result"):
                self._tools = None  # once is enough
                what = f"a {block.kind} of {block.name!r}" if block.name else f"a {block.kind}"
                yield Found("tools.absent", block.path, f"here is {what}, and the request declares no tools")
                return

    def _said(self, found: Iterable[Found]) -> Iterator[Diagnostic]:
        for situation, path, message in found:
            rule_id = self._faults.get(situation)
            rule = self._rules.get(rule_id) if rule_id is not None else None
            if rule is not None and rule.severity != "info":
                yield Diagnostic(rule.id, KINDS[situation], rule.severity, path, message, rule.evidence, rule.fix)


_DOUBTS = {
    "reasoning.foreign": "this reasoning was made by {maker}, and no other model takes it back",
    "reasoning.edited": "this reasoning is not as {maker} made it: its signature does not fit",
    "reasoning.prefix": "this reasoning is bound to what stood before it when {maker} made it, and that has changed",
}


class Order:
    """Roles: which there are, which come first and last, and which follow which."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._previous: Turn | None = None
        self._has_begun = False
        self._is_owed = False
        self._empty: Turn | None = None

    def take(self, turn: Turn) -> Iterator[Found]:
        """The next turn."""
        role, known = turn.role, self._profile
        if self._empty is not None:
            yield _empty(self._empty)
            self._empty = None
        if role == "unknown" and not (is_opaque(turn) and not turn.wire_role):
            named = f"the role {quote(turn.wire_role, _SHOWN)}" if turn.wire_role else "a message without a role"
            yield Found("role.unknown", turn.path, f"{named} is none of this format")
        if role == "system":
            yield from self._system(turn)
        elif not self._has_begun:
            self._has_begun = True
            if known.first and role != "unknown" and role not in known.first and not is_opaque(turn):
                expected = " or ".join(known.first)
                yield Found("role.first", turn.path, f"the conversation begins with {role}, not with {expected}")
        previous = self._previous
        if previous is not None and previous.role != "unknown" and role != "unknown":
            allowed = known.followers.get(previous.role)
            if allowed is not None and role not in allowed:
                may = " or ".join(allowed) or "nothing"
                yield Found("role.follows", turn.path, f"{role} comes after {previous.role}, where {may} may follow")
        if not turn.blocks:
            self._empty = turn
        self._previous = turn
        self._is_owed = any(block.kind == "call" for block in turn.blocks) or (
            self._is_owed and role == "system" and not turn.of("result")
        )

    def _system(self, turn: Turn) -> Iterator[Found]:
        where = self._profile.system
        if where == "aside":
            yield Found(
                "role.system", turn.path, "a system message stands among the messages; its place is beside them"
            )
        elif where == "first" and self._has_begun:
            yield Found("role.system", turn.path, "a system message comes after the conversation has begun")
        elif where == "outside" and self._is_owed:
            yield Found("role.system", turn.path, "a system message stands between calls and their results")

    def close(self) -> Iterator[Found]:
        """The end."""
        last, allowed = self._previous, self._profile.last
        if last is None:
            yield Found("message.none", "", "there are no messages")
            return
        if self._empty is not None and not (last.role == "assistant" and self._profile.has("empty_final")):
            yield _empty(self._empty)
        is_open = bool(last.blocks) and last.blocks[-1].kind == "other"  # a server tool at work, an item of its own
        is_fine = is_open or last.of("call") or self._profile.has("history")
        if allowed and last.role not in (*allowed, "unknown") and not is_fine:
            expected = " or ".join(allowed)
            yield Found("role.last", last.path, f"the request ends with {last.role}, not with {expected}")


def _empty(turn: Turn) -> Found:
    return Found("message.empty", turn.path, f"this {turn.wire_role or turn.role} message has nothing in it")


class Contents:
    """What one block says by itself."""

    def __init__(self, profile: Profile) -> None:
        self._profile, self._faults = profile, profile.faults
        self._names = re.compile(profile.name_pattern) if profile.name_pattern else None

    def take(self, turn: Turn) -> Iterator[Found]:
        """All blocks of a turn."""
        yield from self.texts(turn)
        for block in turn.blocks:
            match block.kind:
                case "call":
                    yield from self._call(block, turn)
                case "result":
                    yield from self._result(block, turn)
                case "media":
                    if turn.role != "user":
                        yield Found("media.role", block.path, f"an image or a file stands in {_article(turn.role)}")
                case "reasoning":
                    if not block.signature:
                        yield Found("reasoning.unsigned", block.path, "this reasoning carries no signature")
                case _:
                    pass

    def texts(self, turn: Turn) -> Iterator[Found]:
        """Text that is none."""
        for block in turn.blocks:
            if block.kind == "text" and not block.text:
                yield Found("text.empty", block.path, "this text is empty")
        if "text.blank" in self._faults and is_blank(turn):
            yield Found("text.blank", turn.path, "the only text of this message is whitespace")

    def name(self, name: str, path: str) -> Iterator[Found]:
        """The name of a tool."""
        if self._names is not None and self._names.fullmatch(name) is None:
            expected = self._profile.name_pattern
            yield Found("name.pattern", path, f"the tool name {quote(name, _SHOWN)} does not match {expected}")
        if len(name) > self._profile.name_max:
            expected = f"at most {self._profile.name_max} are taken"
            yield Found(
                "name.length", path, f"the tool name {quote(name, _SHOWN)} has {len(name)} characters; {expected}"
            )

    def _call(self, block: Block, turn: Turn) -> Iterator[Found]:
        if turn.role not in ("assistant", "unknown"):
            yield Found("role.call", block.path, f"the call {_named(block)} stands in {_article(turn.role)}")
        yield from self.name(block.name, block.path)
        if has_wrong_arguments(block, self._profile):
            wanted = "text" if self._profile.arguments == "text" else "an object"
            what = f"are {_type(block.arguments)}, not {wanted}"
            yield Found("args.type", block.path, f"the arguments of the call {_named(block)} {what}")
        elif "args.json" in self._faults and isinstance(block.arguments, str) and not is_object_text(block.arguments):
            what = f"are not the JSON of an object: {quote(block.arguments, _SHOWN)}"
            yield Found("args.json", block.path, f"the arguments of the call {_named(block)} {what}")

    def _result(self, block: Block, turn: Turn) -> Iterator[Found]:
        if turn.role not in (self._profile.results_in, "unknown"):
            where = f"{_article(turn.role)}; its place is {_article(self._profile.results_in)}"
            yield Found("role.result", block.path, f"the result for {_named(block)} stands in {where}")
        if "result.empty" in self._faults and lacks_content(block, turn):
            yield Found("result.empty", block.path, f"the result for {_named(block)} has no content")
        if block.is_error and is_silent(block):
            yield Found(
                "result.silent", block.path, f"the result for {_named(block)} is an error and does not say which"
            )
        if has_media(block):
            yield Found("media.result", block.path, f"the result for {_named(block)} holds an image or a file")


def has_wrong_arguments(call: Block, profile: Profile) -> bool:
    """Whether the arguments of a call are of a type that the format does not take."""
    if call.arguments is None:
        return not profile.has("optional_arguments")
    if isinstance(call.arguments, str):
        return profile.arguments == "object"
    return not isinstance(call.arguments, dict) or profile.arguments == "text"


class IdRules:
    """Ids of calls and results, each by itself."""

    def __init__(self, profile: Profile) -> None:
        self._pattern = re.compile(profile.id_pattern) if profile.id_pattern else None
        self._most, self._shown = profile.id_max, profile.id_pattern

    def problems(self, block: Block) -> Iterator[Found]:
        """What is wrong with the id of a call or a result."""
        if not block.id:
            whose = f"the {block.kind} of {block.name!r}" if block.name else f"this {block.kind}"
            yield Found("id.missing", block.path, f"{whose} has no id")
            return
        if self._pattern is not None and self._pattern.fullmatch(block.id) is None:
            yield Found("id.pattern", block.path, f"the id {quote(block.id, _SHOWN)} does not match {self._shown}")
        if len(block.id) > self._most:
            found = f"has {len(block.id)} characters; at most {self._most} are taken"
            yield Found("id.length", block.path, f"the id {quote(block.id, _SHOWN)} {found}")


class Pairs:
    """Calls and results, where results stand directly behind their calls."""

    def __init__(self, profile: Profile) -> None:
        self._profile, self._ids, self._window = profile, IdRules(profile), Window(profile)
        self._history = Seen()

    def take(self, turn: Turn) -> Iterator[Found]:
        """The next turn."""
        calls = turn.of("call")
        results = turn.of("result") if _may_answer(turn, self._profile) else ()
        if self._window.is_over(turn, calls, bool(results)):
            yield from self.close()
        if results:
            yield from self._results(turn, results)
        if calls:
            yield from self._calls(turn, calls)
        elif not results and not self._window.continues(turn, calls):
            self._window.interrupt(turn)

    def close(self) -> Iterator[Found]:
        """The exchange is over: what is still owed?"""
        for group in self._window.groups:
            for call in group.open.values():
                yield _missing(call, self._profile)
        self._window.clear()

    def _calls(self, turn: Turn, calls: tuple[Block, ...]) -> Iterator[Found]:
        held = self._window.groups[-1].known if self._window.continues(turn, calls) else ()
        seen: Seen | set[str] = self._history if self._profile.unique_ids == "history" else set(held)
        for call in calls:
            yield from self._ids.problems(call)
            if call.id and call.id in seen:
                yield _repeated(call, self._profile)
            seen.add(call.id)
        self._window.call(turn, calls)

    def _results(self, turn: Turn, results: tuple[Block, ...]) -> Iterator[Found]:
        is_split = False
        for result in results:
            match = self._window.match(result)
            if match.call is None or match.call.id != result.id:
                yield from self._ids.problems(result)
            if match.state == "answers" and match.group is not None and match.call is not None:
                yield from _name(match.call, result)
                yield from self._place(match.group, match.call, result, turn)
                is_split = is_split or match.group.answered_in not in ("", turn.path)
                match.group.answered_in = match.group.answered_in or turn.path
            else:
                yield _unmatched(match, result)
        if is_split and self._profile.results == "next":
            yield Found("pair.split", turn.path, "the results of one assistant message are split over several messages")
        if self._window.groups:
            yield from _neighbours(turn)

    def _place(self, group: Group, call: Block, result: Block, turn: Turn) -> Iterator[Found]:
        if group.interrupted or group is not self._window.groups[-1]:
            between = group.interrupted or "other calls"
            what = f"does not come directly after its call at {call.path}: {between} stands between"
            yield Found("pair.gap", result.path, f"the result for {_named(call)} {what}")


class PairsAnywhere:
    """Calls and results, where a result may come at any time after its call."""

    def __init__(self, profile: Profile) -> None:
        self._profile, self._ids, self._group = profile, IdRules(profile), Group()

    def take(self, turn: Turn) -> Iterator[Found]:
        """The next turn."""
        for block in turn.blocks:
            if block.kind == "call":
                yield from self._call(block)
            elif block.kind == "result" and _may_answer(turn, self._profile):
                yield from self._result(block)

    def close(self) -> Iterator[Found]:
        """The end."""
        for call in self._group.open.values():
            yield _missing(call, self._profile)

    def _call(self, call: Block) -> Iterator[Found]:
        yield from self._ids.problems(call)
        is_used = self._group.waits_for(call.id) or (
            self._profile.unique_ids == "history" and call.id in self._group.known
        )
        if call.id and is_used:
            yield _repeated(call, self._profile)
        self._group.add(call)

    def _result(self, result: Block) -> Iterator[Found]:
        position = self._group.by_id(result)
        if position is None and result.id in self._group.known and result.id:
            yield _unmatched(Match("repeats"), result)
            return
        if position is None:
            position = self._group.by_place(result)
        call = None if position is None else self._group.answer(position)
        if call is None or call.id != result.id:
            yield from self._ids.problems(result)
        if call is None:
            yield _unmatched(Match("stranger"), result)
        else:
            yield from _name(call, result)


def _may_answer(turn: Turn, profile: Profile) -> bool:
    return turn.role in (profile.results_in, "unknown") or "role.result" not in profile.faults


def _missing(call: Block, profile: Profile) -> Found:
    where = {"run": "directly behind it", "next": "in the next message", "anywhere": "behind it"}[profile.results]
    return Found("pair.missing", call.path, f"the call {_named(call)} has no result {where}")


def _repeated(call: Block, profile: Profile) -> Found:
    where = "in the conversation" if profile.unique_ids == "history" else "in this assistant message"
    return Found("id.repeated", call.path, f"the id {quote(call.id, _SHOWN)} was given to another call {where}")


def _unmatched(match: Match, result: Block) -> Found:
    named = _named(result)
    if match.state == "repeats" and not (match.group is not None and match.group.interrupted):
        return Found("pair.repeated", result.path, f"this is a second result for {named}; each call has exactly one")
    if match.group is None or match.group.interrupted:
        return Found("pair.orphan", result.path, f"the result for {named} does not come after the call that it answers")
    expected = ", ".join(quote(one, 40) for one in sorted(match.group.known)[:3])
    return Found(
        "pair.stranger", result.path, f"the result for {named} answers none of the calls before it: {expected}"
    )


def _name(call: Block, result: Block) -> Iterator[Found]:
    if result.name != call.name:
        found = f"says {quote(result.name, _SHOWN)}" if result.name else "does not say of which tool it is"
        yield Found("pair.name", result.path, f"the result for {_named(call)} {found}")


def _neighbours(turn: Turn) -> Iterator[Found]:
    """What stands beside results in their message."""
    last = max(index for index, block in enumerate(turn.blocks) if block.kind == "result")
    others = [index for index, block in enumerate(turn.blocks) if block.kind in ("text", "media", "reasoning")]
    if others and others[0] < last:
        path = turn.blocks[others[0]].path
        yield Found("pair.order", path, f"{turn.blocks[others[0]].kind} stands before results in their message")
    if others:
        path = turn.blocks[others[0]].path
        yield Found("pair.beside", path, f"{turn.blocks[others[0]].kind} stands beside results in their message")


def _named(block: Block) -> str:
    call_id, name = (quote(block.id, _SHOWN) if block.id else ""), (quote(block.name, _SHOWN) if block.name else "")
    if call_id and name:
        return f"{call_id} of {name}"
    return call_id or (f"of {name}" if name else "without id and name")


def _article(role: str) -> str:
    return {"assistant": "an assistant message", "user": "a user message"}.get(role, f"a {role} message")


def _type(value: JsonValue) -> str:
    if value is None:
        return "missing"
    return {str: "text", dict: "an object", list: "a list", bool: "true or false"}.get(type(value), "a number")
