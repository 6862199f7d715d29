"""Repairs that neighbours decide: who comes first and last, who follows whom, which messages are one."""

from __future__ import annotations

from collections.abc import Iterator

from tenlines.core.outcomes import quote
from tenlines.wire.finding.situations import is_opaque
from tenlines.wire.mending.turns import Log, as_user_text
from tenlines.wire.parts import CONTINUE, START, json_text
from tenlines.wire.profile import Profile, TurnRole
from tenlines.wire.turns import Block, Turn

SEPARATOR = "(continued)"
"""What the assistant says where it has to say something between two messages that may not follow one another."""


class OrderMender:
    """Puts turns into an order that the other side takes; one turn is held back, to be joined with the next."""

    def __init__(self, profile: Profile, log: Log) -> None:
        self._profile, self._faults, self._log = profile, profile.faults, log
        self._held: Turn | None = None
        self._has_begun = False

    def take(self, turn: Turn) -> Iterator[Turn]:
        """The next turn; gives what is finished."""
        self._drop_empty()
        if turn.role != "system" and not self._has_begun:
            yield from self._begin(turn)
        yield from self._add(turn)

    def close(self) -> Iterator[Turn]:
        """The end."""
        held = self._held
        may_be_empty = held is not None and held.role == "assistant" and self._profile.has("empty_final")
        if not (may_be_empty and self._has_begun):
            self._drop_empty()
        last = self._held
        if last is None:
            if not self._has_begun and "message.none" in self._faults:
                self._log.say("message.none", "", f"began the conversation with {START!r}, as there were no messages")
                yield _text("user", START, "")
            return
        if self._is_bad_end(last):
            self._log.say(
                "role.last", last.path, f"ended the request with {CONTINUE!r}, as it may not end with {last.role}"
            )
            yield from self._add(_text("user", CONTINUE, last.path))
        if self._held is not None:
            yield self._held
        self._held = None

    def _drop_empty(self) -> None:
        held = self._held
        if held is not None and not held.blocks and "message.empty" in self._faults:
            rest = (
                {key: value for key, value in held.raw.items() if key != "role"} if isinstance(held.raw, dict) else {}
            )
            what = f", only {quote(json_text(rest), 200)}" if any(rest.values()) else ""
            said = f"dropped a message of the {held.role} with nothing in it{what}"
            self._log.say("message.empty", held.path, said)
            self._held = None

    def _begin(self, turn: Turn) -> Iterator[Turn]:
        self._has_begun = True
        if not turn.blocks and "message.empty" in self._faults:
            self._has_begun = False  # it will be dropped
            return
        allowed = self._profile.first
        if "role.first" not in self._faults or not allowed or turn.role in (*allowed, "unknown") or is_opaque(turn):
            return
        self._log.say(
            "role.first", turn.path, f"began the conversation with {START!r}, as {turn.role} may not begin it"
        )
        yield from self._add(_text("user", START, turn.path))

    def _is_bad_end(self, last: Turn) -> bool:
        if "role.last" not in self._faults or not self._profile.last or self._profile.has("history"):
            return False
        is_open = bool(last.blocks) and last.blocks[-1].kind == "other"
        return not (is_open or last.of("call")) and last.role not in (*self._profile.last, "unknown")

    def _add(self, turn: Turn) -> Iterator[Turn]:
        held = self._held
        if held is None:
            self._held = turn
            return
        may_follow = self._may_follow(held, turn)
        if not may_follow and turn.role == "system":
            self._log.say("role.follows", turn.path, "turned a system message into user text, as it may not stand here")
            turn = as_user_text(turn)
            may_follow = self._may_follow(held, turn)
        if self._can_join(held, turn) and (not may_follow or self._is_fresh(held, turn)):
            if not may_follow:
                self._log.say("role.follows", turn.path, f"joined two {turn.role} messages in a row")
            self._held = Turn(held.role, held.blocks + turn.blocks, held.path, wire_role=held.wire_role)
            return
        yield held
        bridge = None if may_follow else self._bridge(held, turn)
        if bridge is not None:
            said = f"put {bridge.blocks[0].text!r} of the {bridge.role} between {held.role} and {turn.role}"
            self._log.say("role.follows", turn.path, said)
            yield bridge
        self._held = turn

    def _may_follow(self, first: Turn, second: Turn) -> bool:
        if "role.follows" not in self._faults or "unknown" in (first.role, second.role) or first.role == "unknown":
            return True
        allowed = self._profile.followers.get(_role(first))
        return allowed is None or second.role in allowed

    def _can_join(self, first: Turn, second: Turn) -> bool:
        if first.role != second.role or first.role not in ("user", "assistant"):
            return False
        if first.of("call") and not self._profile.merges:
            return False  # its results have to follow it
        kinds = {bool(turn.of("result")) for turn in (first, second)}
        return len(kinds) == 1 or ("pair.beside" not in self._faults and not second.of("result"))

    def _is_fresh(self, first: Turn, second: Turn) -> bool:
        """Whether the neighbours are one message to the other side, and a repair made one of them."""
        return self._profile.merges and (_is_made(first) or _is_made(second))

    def _bridge(self, first: Turn, second: Turn) -> Turn | None:
        following = self._profile.followers
        between: tuple[TurnRole, ...] = ("assistant", "user")
        for role in between:
            before, after = following.get(_role(first)), following.get(role)
            if (before is None or role in before) and (after is None or second.role in after):
                return _text(role, SEPARATOR if role == "assistant" else CONTINUE, second.path)
        return None


def _role(turn: Turn) -> TurnRole:
    return "user" if turn.role == "unknown" else turn.role


def _is_made(turn: Turn) -> bool:
    return turn.raw is None or any(block.raw is None for block in turn.blocks)


def _text(role: TurnRole, text: str, path: str) -> Turn:
    return Turn(role, (Block("text", path, text=text),), path)
