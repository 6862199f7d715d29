"""What a wire format is: the two ways through it (a run's requests and replies; a body unfolded), and its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply, Usage
from tenlines.wire.profile import Artefact, Profile, Target
from tenlines.wire.rules import Change, Diagnostic, Rule
from tenlines.wire.turns import Tool, Turn

# --- a run's requests and replies -------------------------------------------------------------------


class Written(NamedTuple):
    """A piece of the arguments of a call: text of a JSON object that is not whole yet."""

    name: str
    """The tool, as far as its name is known."""
    text: str


class Piece(NamedTuple):
    """What a chunk of a stream adds, for eyes only."""

    text: str = ""
    reasoning: str = ""
    usage: Usage | None = None
    """Everything that was used so far, when the chunk says so: what a stream that breaks off has cost."""
    written: tuple[Written, ...] = ()
    """What was written of the arguments of calls."""


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


class Inspector:
    """The rules of one format that no situation of `profile.Situation` covers; one inspector for one check.

    Everything comes in order, each thing once, so that a long file is checked in bounded memory. A format overrides
    what it has rules for.
    """

    def __init__(self, profile: Profile, rules: Mapping[str, Rule], artefacts: Sequence[Artefact] = ()) -> None:
        self._profile, self._rules = profile, rules

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """Everything beside the messages: tools, parameters. Called first, and once."""
        return iter(())

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """The next turn."""
        return iter(())

    def close(self) -> Iterator[Diagnostic]:
        """The end of the messages."""
        return iter(())

    def _found(self, rule_id: str, path: str, message: str, kind: str = "") -> Diagnostic:
        rule = self._rules[rule_id]
        return Diagnostic(rule_id, kind or rule.kinds[0], rule.severity, path, message, rule.evidence, rule.fix)


class Frame(NamedTuple):
    """What stands beside the messages of a body, unfolded."""

    system: tuple[Turn, ...] = ()
    """System prompts at the top level."""
    tools: tuple[Tool, ...] = ()


Context: TypeAlias = Mapping[str, str | bool]
"""What is known of a target: any of `model` (its name), `model_family`, `server`, `version`, `tokenizer`, `beta`
(names), and `thinking`, `enable_thinking` (yes or no). What a format does not know is ignored."""


class Amend(Protocol):
    """Cures what the inspector finds in turns.

    Idempotent. Called once for each stretch from one user turn (without results) up to the next, in order, after all
    general repairs; `is_last` says that it is the last stretch, the one in which a reply is due.
    """

    def __call__(
        self, turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
    ) -> tuple[list[Turn], list[Change]]: ...


def amend_nothing(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
) -> tuple[list[Turn], list[Change]]:
    """For formats whose turns need no cure beside the general ones."""
    return turns, []


def amend_no_frame(body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
    """For formats without rules beside their messages."""
    return body, []


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's wire format: its words, its rules, and the functions that know it.

    Attributes:
        name: As users write it: `anthropic`.
        title: As people call it: `Anthropic Messages`.
        list_field: The field of a body that holds the messages: `messages`, `input`, `contents`.
        rules: All its rules, in the order of their ids.
        rejections: (Regular expression, id of the rule) for the texts with which the provider refuses a request: the
            first that is found in the text, whatever the case of its letters, names the rule that it looks like.
        profile_for: The profile for what is known of the target; for nothing, the conservative one.
        talk: A conversation for one run.
        frame: Unfolds what stands beside the messages. Total: what is no tool and no system prompt is left out.
        unfold: One message, at a path, as a turn. Total: what is not understood becomes an `other` block or an
            `unknown` role.
        fold: A turn as a message. Where the turn and all its blocks have their `raw`, and its blocks are those that
            `unfold` gave, the result equals `turn.raw`. Blocks without `raw` are written from their fields.
        fold_frame: The body with these system prompts and tools at its top level; the rest of it stays as it is.
            Tools and turns with `raw` go back verbatim; without, they are written from their fields.
        inspect: Makes an inspector for one check.
        amend_frame: Cures what the inspector finds beside the messages. Idempotent; the body itself is not changed.
        amend: Cures what it finds in turns.
    """

    name: str
    title: str
    list_field: str = "messages"
    rules: tuple[Rule, ...]
    rejections: tuple[tuple[str, str], ...]
    profile_for: Callable[[Context], Profile]
    talk: Callable[[Target], Talk]
    frame: Callable[[JsonObject], Frame]
    unfold: Callable[[JsonValue, str], Turn]
    fold: Callable[[Turn], JsonValue]
    fold_frame: Callable[[JsonObject, Sequence[Turn], Sequence[Tool]], JsonObject]
    inspect: Callable[[Profile, Mapping[str, Rule], Sequence[Artefact]], Inspector] = Inspector
    amend_frame: Callable[[JsonObject, Profile], tuple[JsonObject, list[Change]]] = amend_no_frame
    amend: Amend = amend_nothing

    def profile(self, context: Context | None = None) -> Profile:
        """The profile for what is known of the target; without anything, the conservative one."""
        return self.profile_for(context or {})

    def inspector(self, profile: Profile, artefacts: Sequence[Artefact] = ()) -> Inspector:
        """A new inspector for one check."""
        return self.inspect(profile, {rule.id: rule for rule in self.rules}, artefacts)
