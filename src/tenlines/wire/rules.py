"""What a rule is, what a check finds and what a repair changes. The rules themselves stand with their formats."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from tenlines.core.outcomes import encodable

Severity: TypeAlias = Literal["error", "warning", "info"]
"""`error`: the provider refuses the request. `warning`: it is accepted and does harm. `info`: good to know."""

Evidence: TypeAlias = Literal["documented", "source", "reported", "secondary", "inferred", "uncertain"]
"""How a rule is known: the provider's own documents or types; code of a server or validator; errors that people
quoted; what others wrote about it; reasoning; or contradictory signs."""


class Rule(msgspec.Struct, frozen=True):
    """What one provider's format demands.

    Attributes:
        id: Stable: `ANT-13`.
        kinds: Canonical kinds of violation (`PAIR-MISSING`), the same in every format. Empty for mere facts.
        severity: What happens when it is broken.
        text: What is demanded, in one or two sentences.
        answer: What the provider says when it is broken; the stable part of it. "" when it says nothing.
        evidence: How the rule is known.
        fix: What to do about a violation, in one sentence.
        example: A small request body, as JSON text, that breaks the rule; "" where no body can show it.
        context: The target that the example needs, as `Format.profile` takes it: `{"model": "claude-opus-5"}`.
        needs: What decides it: the body alone (`static`), the model or server as well (`profile`), where an opaque
            artefact came from (`provenance`), or nothing that a check can see (`none`).
    """

    id: str
    kinds: tuple[str, ...]
    severity: Severity
    text: str
    answer: str = ""
    evidence: Evidence = "documented"
    fix: str = ""
    example: str = ""
    context: dict[str, str | bool] = {}
    needs: Literal["static", "profile", "provenance", "none"] = "static"


class _Told(msgspec.Struct, frozen=True):
    """Something that is shown and stored, about a body that may hold what is no Unicode text: halves of characters,
    in names, roles and keys. What is told of them is Unicode text always."""

    def __post_init__(self) -> None:
        for field in ("path", "message"):
            text = getattr(self, field)
            if not text.isascii():
                force_setattr(self, field, encodable(text))


class Diagnostic(_Told, frozen=True):
    """One violation that a check found.

    Attributes:
        rule: Id of the rule.
        kind: Canonical kind: `PAIR-MISSING`.
        severity: As the rule's, unless the profile knows better.
        path: Where in the body: `messages[3].content[1]`; "" for the body as a whole.
        message: One sentence that names the thing, what was found and what was expected.
        evidence: How the rule is known.
        fix: What to do, in one sentence.
    """

    rule: str
    kind: str
    severity: Severity
    path: str
    message: str
    evidence: Evidence
    fix: str


class Change(_Told, frozen=True):
    """One thing that a repair did.

    Attributes:
        kind: Canonical kind of the violation that it cures.
        path: Where, in the body as it was given.
        message: One sentence, in the past tense, that names the thing and what became of it.
    """

    kind: str
    path: str
    message: str
