"""Lines in a terminal, in plain characters: they need no colour, and look the same in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

MARKS = "*o.+x#"
"""How lines are drawn, in their order; beyond the last one it begins anew."""


def short(number: float) -> str:
    """A number in few characters: `230k`, `1.5M`, `0.25`."""
    for size, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.4g}{sign}"
    return f"{number:.4g}"


def lines(
    series: Mapping[str, Sequence[float]],
    width: int = 72,
    height: int = 15,
    *,
    across: str = "step",
    label: Callable[[float], str] = short,
) -> str:
    """One line for each series, over 1, 2, 3 and so on.

    Args:
        series: Name and numbers, from 0 up. Where lines meet, the first is seen.
        width: Characters of a row, at most.
        height: Rows of the drawing; the numbers below it and the names come in addition.
        across: What is counted from left to right.
        label: How numbers are written at the side.

    Returns:
        Rows without blanks at their ends; "" where there is nothing to draw.
    """
    longest = max((len(numbers) for numbers in series.values()), default=0)
    if not longest:
        return ""
    top = _round_up(max(max(numbers, default=0.0) for numbers in series.values()))
    height = max(height, 3)
    sides = [
        label(top) if row == height - 1 else label(top / 2) if 2 * row == height - 1 else "" for row in range(height)
    ]
    sides[0] = label(0)
    margin = max(map(len, sides))
    columns = max(width - margin - 2, 8)
    grid = [[" "] * columns for _ in range(height)]
    for mark, numbers in reversed(list(zip(_marks(len(series)), series.values(), strict=True))):
        for column, number in enumerate(_spread(numbers, longest, columns)):
            grid[int(number / top * (height - 1) + 0.5)][column] = mark
    rows = [f"{side:>{margin}} |{''.join(cells)}" for side, cells in zip(sides, grid, strict=True)]
    first, last = "1", str(longest)
    below = first + across.center(columns - len(first) - len(last)) + last if longest > 1 else first
    floor = f"{'':>{margin}} +{'-' * columns}"
    return "\n".join(
        row.rstrip() for row in (*reversed(rows), floor, f"{'':>{margin}}  {below}", *_names(series, width))
    )


def _marks(count: int) -> list[str]:
    return [MARKS[number % len(MARKS)] for number in range(count)]


def _round_up(number: float) -> float:
    """The next number that is easy to read, and to halve."""
    if number <= 0:
        return 1.0
    size = 1.0
    while size < number:
        size *= 10
    while size / 10 >= number:
        size /= 10
    return next(size * part for part in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0) if size * part >= number)


def _spread(numbers: Sequence[float], longest: int, columns: int) -> list[float]:
    """A number for each column that the line reaches, straight between two of the series."""
    if longest == 1 or len(numbers) < 2:
        return list(numbers)
    reached = 1 + round((len(numbers) - 1) * (columns - 1) / (longest - 1))
    spread = []
    for column in range(reached):
        place = column * (longest - 1) / (columns - 1)
        left = min(int(place), len(numbers) - 2)
        part = min(place - left, 1.0)
        spread.append(numbers[left] * (1 - part) + numbers[left + 1] * part)
    return spread


def _names(series: Mapping[str, Sequence[float]], width: int) -> list[str]:
    """What each mark stands for, in as few rows as they need."""
    rows = [""]
    for mark, name in zip(_marks(len(series)), series, strict=True):
        if rows[-1] and len(rows[-1]) + len(name) + 5 > width:
            rows.append("")
        rows[-1] += f"  {mark} {name}"
    return rows
