"""Any JSON at all, and JSON that is nearly right: what decoders and unfolders of every format have to live through."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st


def _json(floats: st.SearchStrategy[float]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers() | floats | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )


JSON = _json(st.floats())
"""Any value that a parser may give, NaN included."""
COMPARABLE = _json(st.floats(allow_nan=False))
"""The same without NaN, which equals nothing."""


def mostly(*good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The right kind most of the time, anything else at times."""
    return st.one_of(*good, JSON)


def objects(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object with some of these fields, or anything else."""
    return mostly(st.fixed_dictionaries({}, optional=fields))
