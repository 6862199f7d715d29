"""Ids of calls and names of tools, as formats take them: deterministic, and two different ones never become one."""

from __future__ import annotations

import hashlib
import re
import string

_ALPHABET = string.digits + string.ascii_letters


def short_hash(text: str, length: int) -> str:
    """`length` letters and digits that stand for a text."""
    number = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=24).digest(), "big")
    letters = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        letters.append(_ALPHABET[digit])
    return "".join(letters)


class Ids:
    """Maps ids of one transcript into a format; the same id always gives the same one.

    Args:
        pattern: What an id must fully match to go as it is.
        length: Characters of an id that is made; prefix included.
        prefix: How ids that are made begin. What already begins so is mapped as well, so that an id that was
            given can never equal one that was made.
    """

    def __init__(self, pattern: str, length: int, prefix: str = "") -> None:
        self._fits, self._length, self._prefix = re.compile(pattern), length, prefix

    def wire(self, call_id: str) -> str:
        """The id as the format takes it."""
        if self._fits.fullmatch(call_id) and not (self._prefix and call_id.startswith(self._prefix)):
            return call_id
        return self._prefix + short_hash(call_id, self._length - len(self._prefix))


class Names:
    """Maps names of tools into a format and back, for one set of tools.

    A name that the format takes goes as it is; any other gets its bad characters replaced and a hash at the end.
    """

    def __init__(self, pattern: str = r"[a-zA-Z_][a-zA-Z0-9_-]*", longest: int = 64) -> None:
        self._fits, self._longest = re.compile(pattern), longest
        self._given: dict[str, str] = {}

    def wire(self, name: str) -> str:
        """The name as the format takes it."""
        if self._fits.fullmatch(name) and len(name) <= self._longest:
            return name
        mapped = f"{re.sub(r'[^a-zA-Z0-9_-]', '_', name)[: self._longest - 10] or 'tool'}_{short_hash(name, 8)}"
        if not self._fits.fullmatch(mapped):
            mapped = f"t_{mapped}"[: self._longest]
        self._given[mapped] = name
        return mapped

    def own(self, wire_name: str) -> str:
        """The name that was mapped to this one; anything else as it is."""
        return self._given.get(wire_name, wire_name)
