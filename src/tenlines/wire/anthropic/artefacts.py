"""Where thinking came from: what has to be remembered of it so that a change can be noticed later.

A thinking block is signed, and nobody but its maker can check the signature. Two digests, taken when the block comes
from the provider, stand in for that:

- `digest`: of the block itself. Another digest later: the block was edited (ANT-22).
- `prefix`: of everything that stood before its message, as `provenance.Prefix` chains it: system prompt, tools, and
  each message, without cache marks and without thinking, which may both come and go. On the models that bind
  thinking to its beginning, another digest later means that the provider refuses the block (ANT-25).
"""

from __future__ import annotations

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.anthropic.blocks import PROVIDER, REASONING
from tenlines.wire.digest import digest
from tenlines.wire.finding.provenance import Prefix
from tenlines.wire.format import Format
from tenlines.wire.json_values import items
from tenlines.wire.profile import Artefact

_ABBREVIATED = ("\N{HORIZONTAL ELLIPSIS}", "...")
_LEAST_SIGNED = 12


def artefacts_of(body: JsonObject, format: Format, provider: str = PROVIDER, model: str = "") -> tuple[Artefact, ...]:
    """What is to be remembered of the thinking in a body, taken while everything is as the provider took and made it.

    Args:
        body: A request body whose last message may be the reply that just came.
        format: This format.
        provider: Who made the thinking.
        model: Which model did; "" when it is not known.
    """
    found = []
    prefix = Prefix(body, format)
    messages = body.get(format.list_field)
    for index, message in enumerate(items(messages)):
        turn = format.unfold(message, f"{format.list_field}[{index}]")
        for block in turn.of("reasoning"):
            if block.signature:
                found.append(Artefact(block.signature, provider, model, digest(block.raw), prefix.value))
        prefix.add(turn)
    return tuple(found)


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
