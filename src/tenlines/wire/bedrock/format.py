"""AWS Bedrock Converse as a wire format."""

from __future__ import annotations

from tenlines.wire.bedrock import amending, turns
from tenlines.wire.bedrock.inspecting import Inspector
from tenlines.wire.bedrock.rules import REJECTIONS, RULES, profile
from tenlines.wire.bedrock.talk import Talk
from tenlines.wire.format import Format

FORMAT = Format(
    name="bedrock",
    title="AWS Bedrock Converse",
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
