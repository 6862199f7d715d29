"""Names of tools: what servers call them, and what models call them.

Providers take `[A-Za-z0-9_-]{1,64}`, some only with a letter or `_` first; servers take anything. A name that fits is
kept. Where two clash, both get the name of their server in front; where that does not fit or clashes too, a short form
with a part of a digest. The same tools always get the same names, in whatever order they come.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

LONGEST = 64
_FITS = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_DIGITS = (8, 16, 40)
"""Of the digest: a few are enough, unless somebody wants two names to clash."""


class Origin(NamedTuple):
    """A tool as its server has it."""

    server: str
    name: str
    is_ours: bool = False
    """It is none of its tools, but asks for something else that it has; it may have a tool of that name too."""


def wire_names(tools: Sequence[Origin], taken: Collection[str] = ()) -> dict[Origin, str]:
    """The name that each tool has for the model: valid, and different for each.

    Args:
        tools: What the servers have; the same one twice counts once.
        taken: Names that are in use.
    """
    level = dict.fromkeys(tools, 0)
    while True:
        names = {one: _forms(one)[at] for one, at in level.items()}
        uses = Counter([*names.values(), *set(taken)])
        clashing = [one for one, name in names.items() if uses[name] > 1 and level[one] < len(_forms(one)) - 1]
        if not clashing:
            return names
        for one in clashing:
            level[one] += 1


def _forms(tool: Origin) -> list[str]:
    """What a tool may be called, the best first."""
    prefixed = f"{tool.server}_{tool.name}"
    whole = f"{tool.server}\0{tool.name}{chr(0) if tool.is_ours else ''}"
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
    short = [f"{_stem(tool.name)[: LONGEST - digits - 1]}_{digest[:digits]}" for digits in _DIGITS]
    return [*(one for one in (tool.name, prefixed) if _FITS.fullmatch(one)), *short]


def _stem(name: str) -> str:
    stem = _OTHER.sub("_", name).strip("_") or "tool"
    return stem if stem[0].isalpha() else f"_{stem}"
