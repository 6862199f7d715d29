"""The mailboxes of runs in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_POST = """
INSERT INTO letters (run_id, number, at, body)
SELECT run_id, 1 + max(:above, coalesce((SELECT max(number) FROM letters WHERE run_id = :run_id), 0)), :at, :body
FROM runs WHERE run_id = :run_id
RETURNING number
"""
_LETTERS = """
SELECT l.run_id, l.number, l.at, l.body FROM json_each(?) w
JOIN letters l ON l.run_id = w.key AND l.number > w.value
ORDER BY l.run_id, l.number
"""
_NEWS = """
SELECT run_id, events + letters FROM (
    SELECT r.run_id, r.events, r.last_at, coalesce(max(l.number), 0) AS letters, coalesce(max(l.at), 0) AS letter_at
    FROM runs r LEFT JOIN letters l ON l.run_id = r.run_id WHERE r.status = 'awaiting_approval' GROUP BY r.run_id
) WHERE max(last_at, letter_at) >= ?
"""


def post(connection: sqlite3.Connection, run_id: str, body: str, at: float, above: int) -> int | None:
    """Store a letter, in one statement. Returns its number; None where there is no such run."""
    given = {"run_id": run_id, "body": body, "at": at, "above": above}
    stored = connection.execute(_POST, given).fetchall()  # all of it: only then is the statement over
    return stored[0][0] if stored else None


def letters(connection: sqlite3.Connection, above: Mapping[str, int]) -> Sequence[tuple[Any, ...]]:
    """The rows of the letters of these runs above what is stated for each."""
    return connection.execute(_LETTERS, (msgspec.json.encode(above).decode(),)).fetchall()


def news(connection: sqlite3.Connection, since: float) -> Sequence[tuple[Any, ...]]:
    """The runs that wait, about which something is new since then, and a number that grows with what is new."""
    return connection.execute(_NEWS, (since,)).fetchall()
