"""The messages of one run in one format: each is encoded once and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Assistant, JsonObject, JsonValue, Message
from tenlines.wire.json_values import obj, string
from tenlines.wire.profile import Target, family


class _Mark(NamedTuple):
    """How much there was before a message was added."""

    entries: int
    blocks: int


class Encoder:
    """Grows a list of wire messages with a transcript, and keeps the tools beside it.

    Most formats join what several messages of a transcript say into one message of theirs, and give some messages
    no place in the list at all (a system prompt). A format overrides `add` and there uses `append` and `join`; both
    can be taken back, as a retry or an edited transcript demands. It overrides `tool` too.

    What was written never changes when more is added, but for blocks that are joined to the last entry: so the JSON
    of one request, without the brackets that close it, is the beginning of the next one's.
    """

    blocks_field = "content"
    """The field of an entry that holds its list of blocks: `content`, `parts`."""

    def __init__(self, target: Target) -> None:
        self._target, self._profile = target, target.profile
        self._entries: list[JsonValue] = []
        self._marks: list[_Mark] = []
        self._specs: tuple[ToolSpec, ...] | None = None
        self._tools: list[JsonValue] = []

    @property
    def entries(self) -> list[JsonValue]:
        """All encoded messages: the list that is kept, not a copy."""
        return self._entries

    @property
    def index(self) -> int:
        """Where the message that is being written stands in the transcript."""
        return len(self._marks) - 1

    @property
    def last_role(self) -> str:
        """The role of the last entry; "" before the first."""
        return string(self._last().get("role"))

    def tools(self, specs: tuple[ToolSpec, ...]) -> list[JsonValue]:
        """The tools in this format, encoded once for the same specs: the list that is kept, not a copy."""
        if specs is not self._specs:
            self._specs, self._tools = specs, [self.tool(spec) for spec in specs]
        return self._tools

    def tool(self, spec: ToolSpec) -> JsonObject:
        """One tool."""
        raise NotImplementedError

    def extend(self, view: Sequence[Message], new_from: int | None = None) -> list[JsonValue]:
        """Take in what is new; O(new).

        Args:
            view: The whole transcript.
            new_from: Index of the first message that was not sent. What was kept from there on is encoded again
                (it is new after a retry, and changed after the transcript was edited). None: the view only grew.

        Returns:
            All encoded messages: the list that is kept, not a copy.
        """
        keep = len(view) if new_from is None else new_from
        if keep < len(self._marks):
            self._cut(keep)
        for index in range(len(self._marks), len(view)):
            self._marks.append(_Mark(len(self._entries), self._last_length()))
            self.add(view[index])
        return self._entries

    def add(self, message: Message) -> None:
        """Write one message."""
        raise NotImplementedError

    def cut(self, kept: int) -> None:
        """Called after everything from message `kept` on was taken back, for state that a format keeps beside."""

    def append(self, entry: JsonObject) -> None:
        """Add a message of its own to the list."""
        self._entries.append(entry)

    def join(self, role: str, blocks: list[JsonValue]) -> None:
        """Add blocks to the last entry when it has this role and a list of blocks, else as a new entry."""
        held = self._last().get(self.blocks_field)
        if self.last_role == role and isinstance(held, list):
            held.extend(blocks)
            return
        self._entries.append({"role": role, self.blocks_field: list(blocks)})

    def _last(self) -> JsonObject:
        """The last entry; an empty one before the first."""
        return obj(self._entries[-1]) if self._entries else {}

    def _last_length(self) -> int:
        held = self._last().get(self.blocks_field)
        return len(held) if isinstance(held, list) else 0

    def _cut(self, keep: int) -> None:
        mark = self._marks[keep]
        del self._marks[keep:], self._entries[mark.entries :]
        held = self._last().get(self.blocks_field)
        if isinstance(held, list):
            del held[mark.blocks :]
        self.cut(keep)


def own_payloads(message: Assistant, target: Target, same: Callable[[str], str] = family) -> list[JsonObject]:
    """What the provider and the family of models that are asked once kept beside a message, and want back with it."""
    provider, model = target.profile.provider, same(target.model)
    own = [one.payload for one in message.opaque if one.provider == provider and same(one.model) == model]
    return [payload for payload in own if isinstance(payload, dict)]
