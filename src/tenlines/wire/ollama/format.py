"""Ollama's native endpoint, `/api/chat`, as a wire format."""

from __future__ import annotations

from tenlines.wire.format import Format
from tenlines.wire.ollama import turns
from tenlines.wire.ollama.rules import REJECTIONS, RULES, profile
from tenlines.wire.ollama.talk import Talk
from tenlines.wire.openai_chat import turns as chat

FORMAT = Format(
    name="ollama",
    title="Ollama native",
    rules=RULES,
    rejections=REJECTIONS,
    profile_for=profile,
    talk=Talk,
    frame=chat.frame,
    unfold=turns.unfold,
    fold=turns.fold,
    fold_frame=chat.fold_frame,
)
"""The format itself."""
