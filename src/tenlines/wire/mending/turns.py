"""Repairs that one turn decides by itself: its role, its texts, its arguments, its names, its reasoning."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from tenlines.core.outcomes import encodable_value, quote
from tenlines.core.transcript import JsonValue, Part, Text
from tenlines.wire.checking import has_wrong_arguments
from tenlines.wire.finding.provenance import Provenance
from tenlines.wire.finding.situations import (
    KINDS,
    has_media,
    is_blank,
    is_object_text,
    is_opaque,
    is_silent,
    lacks_content,
)
from tenlines.wire.ids import Names
from tenlines.wire.parts import NO_OUTPUT, plain_text
from tenlines.wire.profile import Profile, Situation, TurnRole
from tenlines.wire.rules import Change
from tenlines.wire.turns import Block, Role, Turn

SYSTEM_PREFIX = "[system message] "
"""How a system message begins that has to go as user text."""
NO_MESSAGE = "(tool failed without a message)"

_QUOTED = 200
_TOO_DEEP = "(nested too deeply to be shown)"
_ROLES: dict[str, TurnRole] = {
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "user": "user",
    "human": "user",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_TEXT_FIELDS = ("content", "parts", "text")
_ID_FIELDS = ("tool_call_id", "call_id", "tool_use_id", "toolUseId", "id")
_NAME_FIELDS = ("name", "tool_name")


class Log:
    """What a repair did, in order."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.unreadable: dict[str, str] = {}
        """Path of a call -> its arguments that could not be read, as long as its exchange is open."""

    def say(self, situation: Situation, path: str, message: str) -> None:
        """One more change, in a sentence."""
        self.changes.append(Change(KINDS[situation], path, f"{message[:1].upper()}{message[1:]}."))


def is_user_start(turn: Turn) -> bool:
    """Whether a turn is something a user said, and not the results of tools."""
    return turn.role == "user" and not any(block.kind == "result" for block in turn.blocks)


class TurnMender:
    """Mends turns one at a time.

    Attributes:
        systems: System messages that were taken out from before the conversation, for the place beside it.
    """

    def __init__(self, profile: Profile, provenance: Provenance, log: Log, *, has_frame: bool) -> None:
        self._profile, self._faults, self._log = profile, profile.faults, log
        self._provenance, self._has_frame = provenance, has_frame
        self._names = Names(profile.name_pattern, profile.name_max)
        self._fits = re.compile(profile.name_pattern)
        self._maps_names = bool(profile.name_pattern) and bool({"name.pattern", "name.length"} & self._faults.keys())
        self._has_begun = False
        self._strips = False
        self.systems: list[Turn] = []

    def take(self, turn: Turn, prefix: str = "") -> list[Turn]:
        """The turns that stand in the place of one."""
        if is_user_start(turn):
            self._strips = False
        salvaged = self._salvaged(turn)
        known = self._role(salvaged)
        if known is None:
            return []
        if salvaged is not turn and known is salvaged:
            known = replace(salvaged, raw=None)
        mended = self._reasoning(known, prefix)
        mended = self._each(mended, "call", self._call)
        mended = self._each(mended, "result", lambda block: self._result(block, turn))
        mended = self.texts(self._media(mended))
        if not mended.blocks and known.blocks:
            self._log.say("message.empty", turn.path, f"dropped the message of the {turn.role}: nothing of it was left")
            return []
        return [one for part in self._split(mended) for one in self._system(part)]

    # --- roles ---

    def _role(self, turn: Turn) -> Turn | None:
        if turn.role != "unknown" or "role.unknown" not in self._faults or (is_opaque(turn) and not turn.wire_role):
            return turn
        known = known_role(turn, self._profile.results_in)
        if known is None:
            self._log.say("role.unknown", turn.path, f"dropped what is no message: {_quoted(turn.raw)}")
            return None
        named = f"the role {turn.wire_role!r}" if turn.wire_role else "a message without a role"
        lost = "" if known.blocks else f", and what it holds was dropped: {_quoted(turn.raw)}"
        self._log.say("role.unknown", turn.path, f"{named}, which is none here, was taken for {known.role!r}{lost}")
        return known

    def _salvaged(self, turn: Turn) -> Turn:
        """A message in the shape of another format, with the text that stands there."""
        situation: Situation = "role.unknown" if turn.role == "unknown" else "message.empty"
        if turn.blocks or situation not in self._faults or not isinstance(turn.raw, dict):
            return turn
        texts = [text for field in _TEXT_FIELDS for text in _texts(turn.raw.get(field))]
        if not any(text.strip() for text in texts):
            return turn
        self._log.say(situation, turn.path, "took over the text of a message in the shape of another format")
        return replace(turn, blocks=tuple(Block("text", turn.path, text=text) for text in texts if text.strip()))

    def _split(self, turn: Turn) -> list[Turn]:
        """Calls and results in messages of their own, where they may stand."""
        calls, results = turn.of("call"), turn.of("result")
        homes = self._profile.results_in
        moves_calls = bool(calls) and turn.role not in ("assistant", "unknown") and "role.call" in self._faults
        moves_results = bool(results) and turn.role not in (homes, "unknown") and "role.result" in self._faults
        if not moves_calls and not moves_results:
            return [turn]
        away = {"call"} if moves_calls else set()
        away |= {"result"} if moves_results else set()
        rest = tuple(block for block in turn.blocks if block.kind not in away)
        found = [replace(turn, blocks=rest)] if rest else []
        if moves_calls:
            self._log.say("role.call", turn.path, "moved the calls into an assistant message of their own")
            found.append(Turn("assistant", calls, turn.path))
        if moves_results:
            self._log.say("role.result", turn.path, f"moved the results into a {homes} message of their own")
            moved = Turn(homes, results, turn.path)
            found = [*found, moved] if turn.role == "assistant" else [moved, *found]
        return found

    def _system(self, turn: Turn) -> list[Turn]:
        if turn.role != "system":
            self._has_begun = True
            return [turn]
        where = self._profile.system
        if "role.system" not in self._faults or where in ("anywhere", "outside"):
            return [turn]
        if not self._has_begun and where == "first":
            return [turn]
        turn = self._only_text(turn)
        if not turn.blocks:
            return []
        if not self._has_begun and self._has_frame:
            self._log.say("role.system", turn.path, "moved the system message to its place beside the messages")
            self.systems.append(turn)
            return []
        self._log.say("role.system", turn.path, "turned the system message into user text, as it may not stand here")
        self._has_begun = True
        return [as_user_text(turn)]

    def _only_text(self, turn: Turn) -> Turn:
        """A system message that goes elsewhere takes nothing but text there."""
        kept = turn.of("text")
        for block in turn.blocks:
            if block.kind != "text":
                said = f"left out what is no text of a system message: {_quoted(block.raw)}"
                self._log.say("role.system", block.path, said)
        if not turn.blocks:
            self._log.say("role.system", turn.path, "dropped an empty system message")
        return turn if len(kept) == len(turn.blocks) else replace(turn, blocks=kept)

    # --- texts and media ---

    def texts(self, turn: Turn) -> Turn:
        """Without texts that are empty, or nothing but whitespace where that is all the text there is."""
        blocks = turn.blocks
        if "text.blank" in self._faults and is_blank(turn):
            self._log.say("text.blank", turn.path, "dropped the text, which was only whitespace")
            blocks = tuple(block for block in blocks if block.kind != "text")
        if "text.empty" in self._faults and any(block.kind == "text" and not block.text for block in blocks):
            self._log.say("text.empty", turn.path, "dropped an empty text")
            blocks = tuple(block for block in blocks if block.kind != "text" or block.text)
        return turn if blocks is turn.blocks else replace(turn, blocks=blocks)

    def _media(self, turn: Turn) -> Turn:
        if turn.role == "user" or "media.role" not in self._faults:
            return turn
        return self._each(turn, "media", self._stub)

    def _stub(self, block: Block) -> Block:
        text = plain_text(block.parts) or "(an image or a file, not shown)"
        self._log.say("media.role", block.path, f"replaced an image or a file by the text {text!r}")
        return Block("text", block.path, text=text)

    # --- calls and results ---

    def _each(self, turn: Turn, kind: str, mend: Callable[[Block], Block]) -> Turn:
        blocks = tuple(mend(block) if block.kind == kind else block for block in turn.blocks)
        same = all(new is old for new, old in zip(blocks, turn.blocks, strict=True))
        return turn if same else replace(turn, blocks=blocks)

    def name(self, name: str, path: str) -> str:
        """The name of a tool as the other side takes it; the same name always gives the same."""
        if not self._maps_names or (self._fits.fullmatch(name) and len(name) <= self._profile.name_max):
            return name
        mapped = self._names.wire(name)
        situation: Situation = "name.pattern" if not self._fits.fullmatch(name) else "name.length"
        self._log.say(situation, path, f"the tool name {quote(name, 80)} became {mapped!r}")
        return mapped

    def _call(self, block: Block) -> Block:
        name = self.name(block.name, block.path)
        if name != block.name:
            block = replace(block, name=name, raw=None)
        is_broken = isinstance(block.arguments, str) and "args.json" in self._faults
        if "args.type" in self._faults and has_wrong_arguments(block, self._profile):
            return self._retyped(block)
        if is_broken and not is_object_text(str(block.arguments)):
            return self._emptied(block, str(block.arguments))
        return block

    def _retyped(self, block: Block) -> Block:
        old, wants_text = block.arguments, self._profile.arguments == "text"
        if isinstance(old, dict) and (text := _json(old)) is not None:
            self._log.say("args.type", block.path, "wrote the arguments as JSON text instead of an object")
            return replace(block, arguments=text, raw=None)
        if isinstance(old, str) and is_object_text(old) and not wants_text:
            self._log.say("args.type", block.path, "wrote the arguments as an object instead of JSON text")
            return replace(block, arguments=msgspec.json.decode(old), raw=None)
        if old is None or (isinstance(old, str) and not old.strip()):
            self._log.say("args.type", block.path, "put an empty object where the arguments were missing")
            return replace(block, arguments="{}" if wants_text else {}, raw=None)
        return self._emptied(block, old if isinstance(old, str) else _json(old) or _TOO_DEEP)

    def _emptied(self, block: Block, old: str) -> Block:
        if old.strip() and old.strip() != "null":
            self._log.unreadable[block.path] = old
        said = f"put an empty object in the place of arguments that are not a JSON object: {quote(old, _QUOTED)}"
        self._log.say("args.json", block.path, said)
        return replace(block, arguments={} if self._profile.arguments == "object" else "{}", raw=None)

    def _result(self, block: Block, turn: Turn) -> Block:
        if block.name:
            name = self.name(block.name, block.path)
            block = block if name == block.name else replace(block, name=name, raw=None)
        if "result.empty" in self._faults and lacks_content(block, turn):
            self._log.say("result.empty", block.path, f"wrote {NO_OUTPUT!r} where the content of a result was missing")
            return with_text(block, NO_OUTPUT)
        if "result.silent" in self._faults and block.is_error and is_silent(block) and not has_media(block):
            self._log.say("result.silent", block.path, f"wrote {NO_MESSAGE!r} into an error result without text")
            return with_text(block, NO_MESSAGE)
        return block

    # --- reasoning ---

    def _reasoning(self, turn: Turn, prefix: str) -> Turn:
        dropped: set[str] = set()
        unsigned: set[str] = set()
        if "reasoning.unsigned" in self._faults:
            unsigned = {block.path for block in turn.blocks if block.kind == "reasoning" and not block.signature}
            dropped |= unsigned
        for situation, block, _ in self._provenance.doubts(turn, prefix) if self._provenance else ():
            if situation in self._faults:
                dropped.add(block.path)
                self._strips = self._strips or situation != "reasoning.foreign"
                self._log.say(situation, block.path, "took out reasoning that would be refused here")
        if self._strips:
            dropped |= {block.path for block in turn.blocks if block.kind == "reasoning"}
        if not dropped:
            return turn
        for path in unsigned:
            self._log.say("reasoning.unsigned", path, "dropped reasoning without a signature")
        blocks = (_unsigned(block) if block.path in dropped else block for block in turn.blocks)
        return replace(turn, blocks=tuple(block for block in blocks if block is not None))


def known_role(turn: Turn, results_in: TurnRole) -> Turn | None:
    """A message with a role of another format, as what it is in this one; None when it is no message at all."""
    if not isinstance(turn.raw, dict):
        return None
    spoken: Role = "assistant" if turn.of("call") else "tool" if turn.of("result") else "user"
    role = _ROLES.get(turn.wire_role.lower()) or spoken
    if role != "tool":
        return Turn(role, turn.blocks, turn.path)
    return Turn(results_in, turn.of("result") or (_foreign_result(turn),), turn.path)


def _texts(content: JsonValue) -> list[str]:
    if isinstance(content, str):
        return [content]
    pieces = content if isinstance(content, list) else [content]
    found = [piece.get("text") if isinstance(piece, dict) else piece for piece in pieces]
    return [text for text in found if isinstance(text, str)]


def _unsigned(block: Block) -> Block | None:
    return None if block.kind == "reasoning" else replace(block, signature="", raw=None)


def with_text(result: Block, text: str) -> Block:
    """A result with another content."""
    return replace(result, text=text, parts=(Text(text),), raw=None)


def as_user_text(turn: Turn) -> Turn:
    """A system message as something a user's message may hold."""
    text = "\n\n".join(block.text for block in turn.blocks if block.kind == "text")
    return Turn("user", (Block("text", turn.path, text=SYSTEM_PREFIX + text),), turn.path)


def _foreign_result(turn: Turn) -> Block:
    """A message of another format that holds a result, as a result."""
    raw = turn.raw if isinstance(turn.raw, dict) else {}
    parts: list[Part] = []
    for block in turn.blocks:
        parts += block.parts or ((Text(block.text),) if block.text else ())
    text = plain_text(tuple(parts))
    return Block(
        "result", turn.path, id=_field(raw, _ID_FIELDS), name=_field(raw, _NAME_FIELDS), text=text, parts=tuple(parts)
    )


def _field(raw: dict[str, JsonValue], names: tuple[str, ...]) -> str:
    return next((value for name in names if isinstance(value := raw.get(name), str) and value), "")


def _quoted(value: JsonValue) -> str:
    return quote(value if isinstance(value, str) else _json(value) or _TOO_DEEP, _QUOTED)


def _json(value: JsonValue) -> str | None:
    """A value as JSON text; None when it is nested too deeply."""
    try:
        return msgspec.json.encode(encodable_value(value)).decode()
    except RecursionError:
        return None
