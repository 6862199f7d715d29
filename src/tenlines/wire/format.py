"""What a wire format is: the two ways through it (a run's requests and replies; a body unfolded), and its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply, Usage
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.rules import Change, Diagnostic, Rule
from tenlines.wire.turns import Tool, Turn

# --- a run's requests and replies -------------------------------------------------------------------


class Piece(NamedTuple):
    """What a chunk of a stream adds, for eyes only."""

    text: str = ""
    reasoning: str = ""
    usage: Usage | None = None
    """Everything that was used so far, when the chunk says so: what a stream that breaks off has cost."""


class StreamDecoder(Protocol):
    """Assembles a streamed reply. Nothing of it may be used before `finish` has returned."""

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one chunk (for formats with named events: the data of one event).

        Raises:
            MalformedReply: It is not a chunk of this format.
            RemoteError: It is an error object; what came before it is void.
        """
        ...

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying why, so it was cut.
            MalformedReply: What came is no reply.
        """
        ...


class Talk(Protocol):
    """One run's conversation in one format: how its requests are written and its replies are read."""

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request. O(what is new); the lists in it belong to the talk and are not kept."""
        ...

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response. Total: any JSON gives a `Reply` or an error.

        Raises:
            MalformedReply: It is not a response of this format.
            RemoteError: It is an error object under a status of 200.
        """
        ...

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        ...


# --- a body, unfolded -------------------------------------------------------------------------------


class Inspector(Protocol):
    """The rules of one format that no situation of `profile.Situation` covers; one inspector for one check.

    Everything comes in order, each thing once, so that a long file is checked in bounded memory.
    """

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """Everything beside the messages: tools, parameters. Called first, and once."""
        ...

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """The next turn."""
        ...

    def close(self) -> Iterator[Diagnostic]:
        """The end of the messages."""
        ...


class Frame(NamedTuple):
    """What stands beside the messages of a body, unfolded."""

    system: tuple[Turn, ...] = ()
    """System prompts at the top level."""
    tools: tuple[Tool, ...] = ()


class Format(Protocol):
    """One provider's wire format."""

    @property
    def name(self) -> str:
        """As users write it: `anthropic`."""
        ...

    @property
    def title(self) -> str:
        """As people call it: `Anthropic Messages`."""
        ...

    @property
    def list_field(self) -> str:
        """The field of a body that holds the messages: `messages`, `input`, `contents`."""
        ...

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All its rules, in the order of their ids."""
        ...

    @property
    def rejections(self) -> tuple[tuple[str, str], ...]:
        """(Regular expression, id of the rule) for the texts with which the provider refuses a request: the first
        that is found in the text, whatever the case of its letters, names the rule that it looks like."""
        ...

    def profile(self, context: Mapping[str, str | bool] | None = None) -> Profile:
        """The profile for what is known of the target; without anything, the conservative one.

        Args:
            context: Any of `model` (its name), `model_family`, `server`, `version`, `tokenizer`, `beta` (names), and
                `thinking`, `enable_thinking` (yes or no). What a format does not know is ignored.
        """
        ...

    def talk(self, target: Target) -> Talk:
        """A conversation for one run."""
        ...

    def frame(self, body: JsonObject) -> Frame:
        """Unfold what stands beside the messages. Total: what is no tool and no system prompt is left out."""
        ...

    def unfold(self, message: JsonValue, path: str) -> Turn:
        """One message as a turn. Total: what is not understood becomes an `other` block or an `unknown` role."""
        ...

    def fold(self, turn: Turn) -> JsonValue:
        """A turn as a message. Where the turn and all its blocks have their `raw`, and `turn.blocks` are those that
        `unfold` gave, the result equals `turn.raw`. Blocks without `raw` are written from their fields."""
        ...

    def fold_frame(self, body: JsonObject, system: Sequence[Turn], tools: Sequence[Tool]) -> JsonObject:
        """The body with these system prompts and tools at its top level; the rest of it stays as it is. Tools and
        turns with `raw` go back verbatim; without, they are written from their fields."""
        ...

    def inspector(self, profile: Profile, artefacts: Sequence[Artefact] = ()) -> Inspector:
        """A new inspector for one check."""
        ...

    def amend_frame(self, body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
        """Cure what the inspector's `frame` finds. Idempotent; the body itself is not changed."""
        ...

    def amend(
        self, turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
    ) -> tuple[list[Turn], list[Change]]:
        """Cure what the inspector finds in turns.

        Idempotent. Called once for each stretch from one user turn (without results) up to the next, in order, after
        all general repairs; `is_last` says that it is the last stretch, the one in which a reply is due.
        """
        ...
