"""Cohere's chat endpoint, version 2, as a wire format."""

from __future__ import annotations

from tenlines.wire.cohere import turns
from tenlines.wire.cohere.rules import REJECTIONS, RULES, Inspector, amend_frame, profile
from tenlines.wire.cohere.talk import Talk
from tenlines.wire.format import Format
from tenlines.wire.openai_chat import turns as chat

FORMAT = Format(
    name="cohere",
    title="Cohere Chat v2",
    rules=RULES,
    rejections=REJECTIONS,
    profile_for=profile,
    talk=Talk,
    frame=chat.frame,
    unfold=turns.unfold,
    fold=turns.fold,
    fold_frame=chat.fold_frame,
    inspect=Inspector,
    amend_frame=amend_frame,
)
"""The format itself."""
