"""What thinking is, and what can be seen of whether its maker signed it."""

from __future__ import annotations

from tenlines.core.transcript import JsonValue
from tenlines.wire.anthropic.blocks import REASONING

_ABBREVIATED = ("\N{HORIZONTAL ELLIPSIS}", "...")
_LEAST_SIGNED = 12


def is_thinking(block: JsonValue) -> bool:
    """Whether a block is thinking, readable or not."""
    return isinstance(block, dict) and block.get("type") in REASONING


def looks_signed(block: JsonValue) -> bool:
    """Whether thinking may be genuine. Real signatures are long and base64; what is short, or has other characters, was
    made up. Documents and logs cut them off with an ellipsis, which is not held against them."""
    if not isinstance(block, dict):
        return False
    if block.get("type") == "redacted_thinking":
        return isinstance(block.get("data"), str) and bool(block["data"])
    signature = block.get("signature")
    if not isinstance(signature, str):
        return False
    for ending in _ABBREVIATED:
        signature = signature.removesuffix(ending)
    is_base64 = all(letter.isascii() and (letter.isalnum() or letter in "+/=_-") for letter in signature)
    return is_base64 and len(signature) >= _LEAST_SIGNED
