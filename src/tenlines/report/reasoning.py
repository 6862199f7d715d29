"""What can be read of a model's reasoning. Each provider keeps it in another shape, signed or encrypted parts beside
it; only words are taken."""

from __future__ import annotations

from tenlines.core.transcript import JsonValue, Reply

_HOMES = frozenset(
    {"thinking", "reasoning", "reasoning_content", "reasoning_text", "reasoningContent", "reasoningText", "thought"}
)
_WORDS = frozenset({"text", "summary", "content"})
"""Inside a home of reasoning: what holds the words, or the pieces that do."""


def reasoning_of(reply: Reply) -> str:
    """The readable reasoning of a reply, or ""."""
    found: list[str] = []
    for one in reply.opaque:
        _collect(one.payload, found, inside=False)
    return "\n\n".join(dict.fromkeys(text for text in found if text.strip()))


def _collect(value: JsonValue, found: list[str], *, inside: bool) -> None:
    if isinstance(value, str):
        if inside:
            found.append(value)
    elif isinstance(value, list):
        for one in value:
            _collect(one, found, inside=inside)
    elif isinstance(value, dict):
        is_home = inside or value.get("type") in _HOMES or value.get("thought") is True
        for key, one in value.items():
            if key in _HOMES or (is_home and key in _WORDS) or isinstance(one, list | dict):
                _collect(one, found, inside=key in _HOMES or (is_home and key in _WORDS))
