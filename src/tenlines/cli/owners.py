"""Who works on a run, in words, and the refusal to take it away from somebody who is at work."""

from __future__ import annotations

from tenlines.errors import ConfigError
from tenlines.trace import words


def is_gone(owner: str) -> bool | None:
    """Whether the process that had the run last is dead; None where that cannot be known from here."""
    from tenlines.journal.owner import is_alive

    alive = is_alive(owner)
    return None if alive is None else not alive


def open_status(owner: str, *, is_of_fleet: bool = False) -> str:
    """What `open` means for a run: `open, process 4711`, `open, its process is gone`, `open, process 4711 on web-2`;
    of one that was handed to a fleet and not begun: `open, queued`."""
    if is_of_fleet and not owner:
        return "open, queued"
    gone, who = is_gone(owner), words.owner(owner)
    if gone:
        return "open, its process is gone"
    if gone is None:
        return f"open, {who}" if who else "open"
    return f"open, {who.partition(' on ')[0]}"


def refuse_if_alive(run_id: str, owner: str, take_over: bool) -> None:
    """Leave a run to the process that works on it.

    Raises:
        ConfigError: It is alive, and nobody said that the run is to be taken away from it.
    """
    if not take_over and is_gone(owner) is False:
        who = words.owner(owner).partition(" on ")[0]
        raise ConfigError(
            f"run {run_id} is being worked on by {who} on this machine; wait for it, or stop it. "
            "`--take-over` takes the run away from it"
        )
