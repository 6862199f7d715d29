"""Where reasoning came from: what has to be remembered of it so that a change can be noticed later.

A block of reasoning is signed, and nobody but its maker can check the signature. Two digests, taken when the block
comes from the provider, stand in for that:

- `digest`: of the block itself. Another digest later: the block was edited (ANT-22).
- `prefix`: of everything that stood before its message, as `provenance.Prefix` chains it: system prompt, tools, and
  each message, without cache marks and without reasoning, which may both come and go. On the models that bind
  reasoning to its beginning, another digest later means that the provider refuses the block (ANT-25).
"""

from __future__ import annotations

from tenlines.core.transcript import JsonObject
from tenlines.wire.digest import digest
from tenlines.wire.finding.provenance import Prefix
from tenlines.wire.format import Format
from tenlines.wire.json_values import items
from tenlines.wire.profile import Artefact


def artefacts_of(body: JsonObject, format: Format, provider: str = "", model: str = "") -> tuple[Artefact, ...]:
    """What is to be remembered of the reasoning in a body, taken while everything is as the provider took and made it.

    Args:
        body: A request body whose last message may be the reply that just came.
        format: Its format.
        provider: Who made the reasoning; "" for whom the format is of.
        model: Which model did; "" when it is not known.
    """
    found = []
    prefix = Prefix(body, format)
    messages = body.get(format.list_field)
    for index, message in enumerate(items(messages)):
        turn = format.unfold(message, f"{format.list_field}[{index}]")
        for block in turn.of("reasoning"):
            if block.signature:
                maker = provider or format.profile().provider
                found.append(Artefact(block.signature, maker, model, digest(block.raw), prefix.value))
        prefix.add(turn)
    return tuple(found)
