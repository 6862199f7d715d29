"""Token counts in the normal form. The one place that knows that providers count cached tokens in two ways.

OpenAI, Gemini, Mistral and most others count cached tokens as part of the input; Anthropic and Bedrock beside it.
"""

from __future__ import annotations

from tenlines.core.transcript import JsonValue, Usage


def count(value: JsonValue) -> int | None:
    """A token count, or None for anything that is not one."""
    return value if type(value) is int and value >= 0 else None


def total(*counts: int | None) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


def inclusive(
    input_total: int | None,
    output_total: int | None,
    remarks: list[str],
    *,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Usage | None:
    """Usage of a provider that counts cached tokens as part of the input. What cannot be true is dropped, and said."""
    if input_total is not None and (cache_read or 0) + (cache_write or 0) > input_total:
        remarks.append(
            f"inconsistent usage: {cache_read} cached and {cache_write} written of {input_total} input tokens; "
            "not counted"
        )
        cache_read = cache_write = None
    usage = Usage(input_total, output_total, cache_read, cache_write, reasoning)
    return None if usage == Usage() else usage


def exclusive(
    input_uncached: int | None,
    output_total: int | None,
    remarks: list[str],
    *,
    cache_read: int | None = None,
    cache_write: int | None = None,
    reasoning: int | None = None,
) -> Usage | None:
    """Usage of a provider that counts cached tokens beside the input."""
    input_total = total(input_uncached, cache_read, cache_write)
    return inclusive(
        input_total, output_total, remarks, cache_read=cache_read, cache_write=cache_write, reasoning=reasoning
    )
