"""Anthropic Messages as a wire format."""

from __future__ import annotations

from tenlines.wire.anthropic import amending, turns
from tenlines.wire.anthropic.inspecting import Inspector
from tenlines.wire.anthropic.profiles import profile
from tenlines.wire.anthropic.rules import REJECTIONS, RULES
from tenlines.wire.anthropic.talk import Talk
from tenlines.wire.format import Format

FORMAT = Format(
    name="anthropic",
    title="Anthropic Messages",
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
