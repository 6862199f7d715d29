"""Mistral's chat completions as a wire format."""

from __future__ import annotations

from tenlines.wire.format import Format
from tenlines.wire.mistral import amending, turns
from tenlines.wire.mistral.inspecting import Inspector
from tenlines.wire.mistral.rules import REJECTIONS, RULES, profile
from tenlines.wire.mistral.talk import Talk

FORMAT = Format(
    name="mistral",
    title="Mistral",
    rules=RULES,
    rejections=REJECTIONS,
    profile_for=profile,
    talk=Talk,
    frame=turns.frame,
    unfold=turns.unfold,
    fold=turns.fold,
    fold_frame=turns.fold_frame,
    inspect=Inspector,
    amend_frame=amending.amend_frame,
    amend=amending.amend,
)
"""The format itself."""
