"""placeholder"""

from __future__ import annotations

from collections.abc import Mapping

from tenlines.wire.openai_chat.rules import openai_profile
from tenlines.wire.profile import Profile
from tenlines.wire.rules import Rule

RULES: tuple[Rule, ...] = ()
REJECTIONS: tuple[tuple[str, str], ...] = ()


def profile(context: Mapping[str, str | bool]) -> Profile:
    """"""
    return openai_profile(context)
