"""Who works on a run: a text that names this process, and whether the process of such a text is alive.

It stands in `RunStarted` and `RunResumed`. What fences an owner is the uniqueness of `(run_id, seq)`, never this: it
only says whom to leave alone.
"""

from __future__ import annotations

import functools
import os
import secrets
import socket
from pathlib import Path


def new_owner() -> str:
    """A text for taking up a run: `HOST/BOOT/PID/START/NONCE`, never given twice."""
    return f"{_machine()}/{os.getpid()}/{_started(os.getpid())}/{secrets.token_hex(4)}"


def is_alive(owner: str) -> bool | None:
    """Whether the process that took up the run still lives; None where that cannot be known from here.

    A process on this machine lives if its id is in use and began when the owner's did. A machine that was booted since
    has none of its old processes. Of another machine nothing is known.
    """
    parts = owner.split("/")
    if len(parts) != 5 or not parts[2].isdigit():
        return None
    host, boot, pid, start, _ = parts
    here, booted = _machine().split("/")
    if host != here:
        return None
    return boot == booted and _started(int(pid)) == start != ""


@functools.cache
def _machine() -> str:
    """Host name and the id of this boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8]
    except OSError:  # not Linux: restarts are not noticed, but a process id with its start time still is
        boot = "boot"
    return f"{socket.gethostname().replace('/', '_')}/{boot}"


def _started(pid: int) -> str:
    """When a process began, in its machine's own count; "" where there is no such process."""
    try:
        # after the name, which may hold anything: state is field 3, the start time field 22
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if Path("/proc/self/stat").exists() or not _exists(pid) else "0"
    return "" if fields[0] in ("Z", "X") else fields[19]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
