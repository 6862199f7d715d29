"""Cases of long transcripts: a model that counts tokens like a provider, and that is asked for summaries."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from case_laws import asks_for_summary, encoded
from case_world import CaseModel, Played, World

from tenlines import Reply, Usage
from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.core.effects import CallModel


def compaction_of(world: World, **other: Any) -> Compaction:
    """The case's options, and what else is given."""
    opts = world.input.get("opts", {})
    given: dict[str, Any] = {"window": opts.get("context window (tokens)")}
    if opts.get("compaction") == "forced":
        given["at"] = 1
    return Compaction(**{**given, **other})


def tokens_of(request: CallModel) -> int:
    """What a provider counts: a token for every four characters of a request. Nothing here is taken from the library's
    own estimates."""
    tools = [(spec.name, spec.description, spec.parameters) for spec in request.tools]
    return (len(json.dumps(encoded(request.messages))) + len(json.dumps(tools))) // 4


def counting(moves: list[Any] | Callable[[CallModel], Any], summariser: Any = None) -> CaseModel:
    """A model that reports what it really read; asked for a summary it says `summariser`: a move, or a rule."""

    def rule(request: CallModel) -> Any:
        is_summary = asks_for_summary(request)
        given = summariser if is_summary else moves
        move = given(request) if callable(given) else given if is_summary else given[request.step - 1]
        usage = Usage(input=tokens_of(request), output=20)
        if isinstance(move, Reply):
            return msgspec.structs.replace(move, usage=usage)
        return move if "raise" in move else {"usage": usage, **move}

    return CaseModel(rule)


def summary_requests(run: Played) -> list[CallModel]:
    """What was asked for summaries."""
    return [request for request in run.model.requests if asks_for_summary(request)]


def cuts(run: Played) -> list[ev.ContextCompacted]:
    """The cuts that were made."""
    return run.events(ev.ContextCompacted)
