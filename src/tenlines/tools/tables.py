"""Tables of other libraries as lists of rows, which JSON can hold. No such library is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def rows_of(table: Any, most: int) -> Any:
    """The rows of a table, with a note behind them where it has more than `most` values; None for what is no table.

    A table is known by what its class can do, which is a lot to have by chance: those of pandas, polars and pyarrow,
    and what is derived from them. Labels that pandas keeps beside the columns stay, unless they just count the rows.
    """
    read = _reader(type(table))
    if read is None:
        return None
    count, kept = len(table), max(0, most // (_width(table) + 1) - 1)
    rows = read(table, min(count, kept))
    if count > kept and isinstance(rows, list):
        rows.append(f"(more than {most:,} values: {count - kept:,} of {count:,} rows were left out)")
    return rows


def _width(table: Any) -> int:
    return int(table.shape[1]) if len(table.shape) > 1 else 1


def _reader(kind: type) -> Callable[[Any, int], Any] | None:
    for names, read in _READERS:
        if all(hasattr(kind, name) for name in (*names, "shape", "__len__")):
            return read
    return None


def _pandas(table: Any, count: int) -> Any:
    table = table.iloc[:count]
    labels = table.index.tolist()
    if not table.columns.is_unique:  # rows as dicts would lose columns
        return {"columns": table.columns.tolist(), "index": labels, "rows": table.to_numpy().tolist()}
    if labels == list(range(count)):
        return table.to_dict("records")
    name = table.index.name or "index"
    return [{str(name): label, **row} for label, row in zip(labels, table.to_dict("records"), strict=True)]


def _pandas_series(series: Any, count: int) -> Any:
    series = series.iloc[:count]
    labels, values = series.index.tolist(), series.tolist()
    if labels == list(range(count)):
        return values
    return [[label, value] for label, value in zip(labels, values, strict=True)]


_READERS: tuple[tuple[tuple[str, ...], Callable[[Any, int], Any]], ...] = (
    (("to_dict", "iloc", "index", "columns"), _pandas),
    (("to_dict", "iloc", "index", "tolist"), _pandas_series),
    (("to_dicts", "slice", "columns"), lambda table, count: table.slice(0, count).to_dicts()),  # polars
    (("to_pylist", "slice", "column_names"), lambda table, count: table.slice(0, count).to_pylist()),  # pyarrow
)
