"""OpenAI Responses as a wire format."""

from __future__ import annotations

from tenlines.wire.format import Format
from tenlines.wire.openai_responses import amending, turns
from tenlines.wire.openai_responses.inspecting import Inspector
from tenlines.wire.openai_responses.profiles import profile
from tenlines.wire.openai_responses.rules import REJECTIONS, RULES
from tenlines.wire.openai_responses.talk import Talk

FORMAT = Format(
    name="openai_responses",
    title="OpenAI Responses",
    list_field="input",
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
