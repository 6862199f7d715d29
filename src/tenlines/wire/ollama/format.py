"""Ollama's native endpoint, `/api/chat`, as a wire format."""

from __future__ import annotations

from tenlines.wire.format import Format
from tenlines.wire.ollama import turns
from tenlines.wire.ollama.rules import REJECTIONS, RULES, profile
from tenlines.wire.ollama.talk import Talk

FORMAT = Format(
    name="ollama",
    title="Ollama native",
    rules=RULES,
    rejections=REJECTIONS,
    profile_for=profile,
    talk=Talk,
    frame=turns.frame,
    unfold=turns.unfold,
    fold=turns.fold,
    fold_frame=turns.fold_frame,
)
"""The format itself."""
