"""Chat Completions as a wire format: OpenAI's own, and that of the many servers that speak like it."""

from __future__ import annotations

from tenlines.wire.format import Format
from tenlines.wire.openai_chat import amending, compatible, turns
from tenlines.wire.openai_chat.inspecting import Inspector
from tenlines.wire.openai_chat.rules import REJECTIONS, RULES
from tenlines.wire.openai_chat.talk import Talk

FORMAT = Format(
    name="openai_chat",
    title="OpenAI Chat Completions",
    rules=RULES + compatible.RULES,
    rejections=compatible.REJECTIONS + REJECTIONS,
    profile_for=compatible.profile,
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
