"""Columns that line up."""

from __future__ import annotations

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], texts: int = 1) -> list[str]:
    """The rows as lines.

    Args:
        rows: Cells; all rows have as many. The first row is the heading.
        texts: How many columns, from the left, hold text; the others hold numbers, which end at the same place.

    Returns:
        A line for each row. Columns that are empty but for their heading are left out.
    """
    kept = [at for at in range(len(rows[0])) if any(row[at] for row in rows[1:])]
    widths = {at: max(len(row[at]) for row in rows) for at in kept}
    return [
        "  ".join(row[at].ljust(widths[at]) if at < texts else row[at].rjust(widths[at]) for at in kept).rstrip()
        for row in rows
    ]
