"""What one provider, server or model demands, as data: dated, with its evidence, and overridable.

A profile tells the checker which situations are faults and under which rule, and the few facts on which the answer
depends. A new server is a new profile, not new code.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

Situation: TypeAlias = Literal[
    # roles
    "role.unknown",  # a role that the format does not have
    "role.system",  # a system message where none may stand (see `system`)
    "role.first",  # the conversation begins with another role than `first` allows
    "role.last",  # it ends with another role than `last` allows
    "role.follows",  # a role directly after one that it may not follow (see `followers`)
    "role.call",  # a call outside an assistant turn
    "role.result",  # a result in a turn where results may not stand
    # ids
    "id.missing",  # a call or a result without an id
    "id.pattern",  # an id that does not fully match `id_pattern`
    "id.length",  # an id longer than `id_max`
    "id.repeated",  # two calls with one id: in one assistant turn, or in the whole history (see `unique_ids`)
    # pairing
    "pair.missing",  # a call without a result where the format wants it
    "pair.gap",  # a result that exists, but with something between the call and it
    "pair.split",  # results of one assistant turn in several messages
    "pair.order",  # something before the results in the message that holds them
    "pair.beside",  # something else than results in the message that holds them
    "pair.repeated",  # two results for one call
    "pair.orphan",  # a result with no calls directly before it
    "pair.stranger",  # a result after calls, for an id that is none of theirs
    "pair.name",  # a result without a name, or with another name than its call
    # arguments
    "args.type",  # text where an object is wanted, or the reverse (see `arguments`)
    "args.json",  # text that is not the JSON of an object
    # names of tools, declared or called
    "name.pattern",
    "name.length",
    # tools
    "tools.absent",  # calls or results in the history, and no tools declared
    "tools.empty",  # an empty list of tools
    # content
    "text.empty",  # an empty text block
    "text.blank",  # a message whose only text is whitespace
    "message.empty",  # a message with nothing in it
    "message.none",  # no messages at all
    "result.empty",  # a result whose content is missing altogether
    "result.silent",  # an error result without text
    "media.result",  # an image or a file in a result
    "media.role",  # an image or a file in another message than a user's
    # reasoning
    "reasoning.unsigned",
    "reasoning.foreign",  # made by another provider or model family (needs artefacts)
    "reasoning.edited",  # not as it was made (needs artefacts)
    "reasoning.prefix",  # bound to another beginning than the one it stands behind (needs artefacts)
]
"""What the checker can find in any format. Whether it is a fault, and under which rule, is the profile's."""

TurnRole: TypeAlias = Literal["system", "user", "assistant", "tool"]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One target of requests.

    Attributes:
        name: As a user writes it: `anthropic`, `mistral:v13`, `vllm`.
        format: Name of the wire format.
        provider: Whose reasoning artefacts it takes (`Opaque.provider`).
        as_of: Date on which the facts were gathered, ISO 8601.
        sources: Where they come from, in a few words.
        model: The model, where the profile is for one; "" for any.
        faults: Situation -> id of the rule that forbids it. A situation that is not here is allowed.
        unique_ids: Whether the id of a call must be new in its assistant turn or in the whole history.
        id_pattern: Ids fully match it; "" for any.
        id_max: Most characters of an id.
        results: Where results stand: in the run of messages directly behind the assistant turn (`run`), in the very
            next message (`next`), or anywhere behind it (`anywhere`).
        results_in: Role of the turns that hold results.
        pairs_by: Whether a result names its call by id, or by its position when ids are missing.
        arguments: How arguments of calls stand.
        name_pattern: Names of tools fully match it.
        name_max: Most characters of a name.
        system: Where system text stands: top level only (`aside`), at the front of the list (`first`), anywhere
            in the list (`anywhere`), or anywhere but between calls and results (`outside`).
        first: Roles with which a conversation may begin, system messages aside. Empty for any.
        last: Roles with which a request may end. Empty for any. An assistant turn with calls is never an end.
        followers: Role -> roles that may follow it directly. A role that is not here may be followed by any.
        merges: Whether neighbours of one role are one message to the provider, so that a repair joins them.
        traits: Yes-or-no facts that a format's own rules look at; each format's `rules.py` lists its own. How the
            schema of an answer goes out is said the same in all (`wire.answers`): `answer.beside` tools, or
            `answer.alone`. The checker itself knows three: `empty_final` (an assistant message with nothing in it may
            be the last one), `optional_arguments` (a call may have none), and `history` (what is looked at is no
            request: a reply may come last).
        carries: What of a transcript has a place in this format: `errors` (a result is marked as one), `names` (a
            result names its tool), `images` (in user messages), `files` (in user messages), `result_images`,
            `result_files`, `result_json`, `reasoning` (opaque, of its own provider).
    """

    name: str
    format: str
    provider: str
    as_of: str
    sources: str = ""
    model: str = ""
    faults: dict[Situation, str] = {}
    unique_ids: Literal["turn", "history"] = "turn"
    id_pattern: str = ""
    id_max: int = 1_000_000
    results: Literal["run", "next", "anywhere"] = "run"
    results_in: Literal["user", "tool"] = "tool"
    pairs_by: Literal["id", "position"] = "id"
    arguments: Literal["text", "object", "either"] = "text"
    name_pattern: str = r"[a-zA-Z0-9_-]+"
    name_max: int = 64
    system: Literal["aside", "first", "anywhere", "outside"] = "anywhere"
    first: tuple[TurnRole, ...] = ()
    last: tuple[TurnRole, ...] = ()
    followers: dict[TurnRole, tuple[TurnRole, ...]] = {}
    merges: bool = False
    traits: frozenset[str] = frozenset()
    carries: frozenset[str] = frozenset()

    def has(self, trait: str) -> bool:
        """Whether a trait is set."""
        return trait in self.traits


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the requests of a run go to, and what is the same in each of them.

    Attributes:
        profile: What the other side demands.
        model: Name of the model, as the other side knows it.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        temperature: Sampling temperature; None leaves it to the server.
        effort: How much the model shall think (`low`, `high`, ...), for formats that have such a word; None leaves
            it to the server.
        compact_at: Input tokens from which on the provider summarises what stands before by itself, where its profile
            says that it can (`compacts`); None lets it leave everything as it is.
    """

    profile: Profile
    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    effort: str | None = None
    compact_at: int | None = None

    def limit(self, asked: int | None) -> int | None:
        """Most output tokens of a request: as many as the run asks for, else as many as are set here."""
        return self.max_tokens if asked is None else asked


class Artefact(msgspec.Struct, frozen=True):
    """Where a piece of opaque reasoning came from: what no check can see in the bytes alone.

    Attributes:
        mark: The signature, the encrypted content, or the id that identifies it, verbatim.
        provider: Who made it.
        model: Which model.
        digest: `digest` of the block as it was made, or "" when that is not known.
        prefix: `digest` of everything that stood before it (system, tools, messages), or "" when not known.
        partners: Ids of the items that were made together with it and must stand beside it.
    """

    mark: str
    provider: str = ""
    model: str = ""
    digest: str = ""
    prefix: str = ""
    partners: tuple[str, ...] = ()


_DATED = re.compile(r"([-@](20\d{2}-?\d{2}-?\d{2}|\d{4}|latest|preview|exp|\d{3}))+$")


def family(model: str) -> str:
    """The model without its date or edition: artefacts are taken back by the family that made them."""
    return _DATED.sub("", model.rsplit("/", 1)[-1].lower())
