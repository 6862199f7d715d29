"""What a page shows, piece by piece, and when each piece changed.

A viewer is one number: the revision up to which he has seen everything. What he is owed is what changed after it, each
piece once and as it is now, however long he took. So nothing is queued for a slow one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Mark(NamedTuple):
    """Up to where a viewer has seen a board."""

    epoch: str
    """Names the board: of another one, its number says nothing."""
    revision: int

    def __str__(self) -> str:
        return f"{self.epoch}-{self.revision}"


NOWHERE = Mark("", 0)
"""The mark of somebody who has seen nothing."""


def read_mark(text: str) -> Mark:
    """A mark as a browser sends it back. What is none has seen nothing."""
    epoch, _, number = text.rpartition("-")
    return Mark(epoch, int(number)) if number.isascii() and number.isdigit() and len(number) < 16 else NOWHERE


class Board:
    """The ids of pieces, in the order of their last change.

    Args:
        epoch: A name that no board had before.
    """

    def __init__(self, epoch: str) -> None:
        self._epoch = epoch
        self._revision = 0
        self._changed: dict[str, int] = {}

    @property
    def mark(self) -> Mark:
        """Where somebody is who has seen it all."""
        return Mark(self._epoch, self._revision)

    def touch(self, ids: Iterable[str]) -> bool:
        """Note that these pieces are new, or not as they were. Returns whether there were any."""
        touched = list(ids)
        self._revision += bool(touched)
        for id in touched:
            self._changed.pop(id, None)
            self._changed[id] = self._revision
        return bool(touched)

    def touch_all(self) -> None:
        """Note that nothing is as it was."""
        self.touch(list(self._changed))

    def revision_of(self, id: str) -> int:
        """When a piece changed last."""
        return self._changed[id]

    def since(self, mark: Mark) -> list[str]:
        """The pieces that changed after a mark, the oldest change first."""
        seen = mark.revision if mark.epoch == self._epoch else 0
        found: list[str] = []
        for id in reversed(self._changed):
            if self._changed[id] <= seen:
                break
            found.append(id)
        return found[::-1]
