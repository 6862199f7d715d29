"""Who works on a run: a text that names this process, and whether the process of such a text is alive.

It stands in `RunStarted` and `RunResumed`. What fences an owner is the uniqueness of `(run_id, seq)`, never this: it
only says whom to leave alone.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
import socket
from pathlib import Path

PROC = Path("/proc")
HIDDEN = "0"
"""In place of a start time that cannot be seen."""
_OWNER = re.compile(r"(?P<host>[^/]+)/(?P<boot>[^/]+)/(?P<pid>[1-9][0-9]{0,8})/(?P<start>[0-9]+)/[^/]+")


def new_owner() -> str:
    """A text for taking up a run: `HOST/BOOT/PID/START/NONCE`, never given twice."""
    return f"{_machine()}/{os.getpid()}/{_started(os.getpid())}/{secrets.token_hex(4)}"


def is_alive(owner: str) -> bool | None:
    """Whether the process that took up the run still lives; None where that cannot be known from here.

    A process on this machine lives if its id is in use and began when the owner's did. A machine that was booted since
    has none of its old processes. Of another machine nothing is known, and of a process that this one may not look at
    only that its id is in use.
    """
    named = _OWNER.fullmatch(owner)
    if named is None:
        return None
    here, booted = _machine().split("/")
    if named["host"] != here:
        return None
    if named["boot"] != booted:
        return False
    started = _started(int(named["pid"]))
    if started == named["start"]:
        return True
    return None if started == HIDDEN else False


@functools.cache
def _machine() -> str:
    """Host name and the id of this boot."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()[:8]
    except OSError:  # not Linux: restarts are not noticed, but a process id with its start time still is
        boot = "boot"
    return f"{socket.gethostname().replace('/', '_')}/{boot}"


def _started(pid: int) -> str:
    """When a process began, in its machine's own count; "" where there is none, `HIDDEN` where it cannot be seen
    (another user's, or not on Linux)."""
    try:
        # after the name, which may hold anything: state is field 3, the start time field 22
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return HIDDEN if _exists(pid) else ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
