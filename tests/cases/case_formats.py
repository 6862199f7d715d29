"""What requests of a run are in each provider's format, and what the provider would refuse of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tenlines.core.effects import CallModel
from tenlines.wire.checking import check
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Target

TALKING = [one for one in FORMATS.values() if one.name not in ("cohere", "ollama")]


def bodies(requests: Iterable[CallModel], format: Format, model: str = "m") -> list[dict[str, Any]]:
    """Requests of one run in a format, as JSON that was written and read."""
    talk = format.talk(Target(profile=format.profile({"model": model}), model=model))
    return [json.loads(json.dumps(talk.request(one, stream=False))) for one in requests]


def errors(body: dict[str, Any], format: Format) -> list[str]:
    """What the provider would refuse."""
    return [f"{one.rule} {one.message}" for one in check(body, format, format.profile()) if one.severity == "error"]
