"""The mailboxes of runs in Postgres.

Whoever posts holds a lock on the number that comes next. It is not one on the line of the run: a process that hangs
while it posts must not keep the run's owner from writing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection

_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_KNOWN = "SELECT number FROM tenlines_letters WHERE run_id = %s AND at = %s AND body = %s"
_POST = """
INSERT INTO tenlines_letters (run_id, number, at, body)
SELECT r.run_id, 1 + greatest(%(above)s::bigint, (SELECT max(number) FROM tenlines_letters WHERE run_id = r.run_id)),
    %(at)s::float8, %(body)s::text
FROM tenlines_runs r WHERE r.run_id = %(run_id)s
RETURNING number
"""
LETTERS = """
SELECT l.run_id, l.number, l.at, l.body FROM unnest(%s::text[], %s::bigint[]) AS w (run_id, above)
JOIN tenlines_letters l ON l.run_id = w.run_id AND l.number > w.above
ORDER BY l.run_id, l.number
"""
"""The letters of runs, each above what is stated for it."""
NEWS = """
SELECT r.run_id, r.events + coalesce(max(l.number), 0)
FROM tenlines_runs r LEFT JOIN tenlines_letters l ON l.run_id = r.run_id
WHERE r.status = 'awaiting_approval' GROUP BY r.number
HAVING greatest(r.last_at, max(l.at)) >= %s
"""
"""The runs that wait, about which something is new since a time, and a number that grows with what is new."""


def post(connection: Connection[tuple[Any, ...]], run_id: str, body: str, at: float, above: int) -> int | None:
    """Store a letter, within a transaction. Returns its number; None where there is no such run.

    Where the answer to the commit was lost, it is done again: the same words at the same moment are the same letter.
    """
    connection.execute(_ALONE, (f"tenlines letters {run_id}",))
    known = connection.execute(_KNOWN, (run_id, at, body)).fetchone()
    given = {"run_id": run_id, "at": at, "body": body, "above": above}
    stored = known or connection.execute(_POST, given).fetchone()
    return None if stored is None else int(stored[0])
