"""What a seeded fault is, and the files that faults are seeded into."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A change that no test may let pass. `old` must occur exactly once."""

    what: str
    file: str
    old: str
    new: str


A, C, D, E, G = "approvals.py", "calls.py", "deciding.py", "resume.py", "changes.py"
H, L, M, O, P = "history.py", "limits.py", "machine.py", "outcomes.py", "replies.py"  # noqa: E741
Q, R, S, T, U, V = "answers.py", "repeats.py", "state.py", "result.py", "undo.py", "leaving.py"
B, K, N, X, Y, Z = "prefix.py", "children.py", "context.py", "shrinking.py", "cutting.py", "metering.py"
