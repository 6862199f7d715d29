"""Google Gemini's `generateContent` as a wire format."""

from __future__ import annotations

from tenlines.wire.format import Format
from tenlines.wire.gemini import amending, turns
from tenlines.wire.gemini.inspecting import Inspector
from tenlines.wire.gemini.rules import REJECTIONS, RULES, profile
from tenlines.wire.gemini.talk import Talk

FORMAT = Format(
    name="gemini",
    title="Google Gemini generateContent",
    list_field="contents",
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
