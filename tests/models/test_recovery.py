"""A provider refuses signed reasoning: it is left out, once and for good, and the run goes on, after a resume too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from scenarios import SCRIPT, Fault, FormatServer, Raw, Said, _Run, well
from speakers import AnthropicSpeaker, ResponsesSpeaker

from tenlines.core import events as ev

REFUSALS = {
    AnthropicSpeaker: (
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to another conversation.",
        "ANT-2",
    ),
    ResponsesSpeaker: (
        "The encrypted content gAAA...Q== could not be verified. Reason: Encrypted content could not be decrypted.",
        "OAI-R-11",
    ),
}


def picky(speaker: Any, text: str, server: FormatServer) -> Fault:
    """Refuses every request that holds the artefact."""

    def fault(_: Any, said: Said, is_stream: bool) -> Raw:
        if speaker.artefact in json.dumps(server.bodies[-1]):
            return Raw([json.dumps(speaker.error(400, text)).encode()], 400)
        server.script.pop(0)
        return well(speaker, said, is_stream)

    return fault


@pytest.fixture(params=REFUSALS, ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest) -> Iterator[FormatServer]:
    """A server that takes no reasoning back."""
    speaker = request.param()
    made = FormatServer(speaker, SCRIPT)
    made.always = picky(speaker, REFUSALS[request.param][0], made)
    yield made
    made.close()


@pytest.mark.parametrize("way", ["sync", "aio"])
def test_refused_reasoning_is_left_out_and_the_run_goes_on(server: FormatServer, way: str) -> None:
    run = _Run(server, way, True)
    assert run.result.status == "answered", run.result.reason
    assert run.added == [(2, 3, "zebra")], "nothing ran twice"
    assert [server.speaker.artefact in json.dumps(body) for body in server.bodies] == [False, True, False]
    (failure,) = [event for event in run.seen_events() if isinstance(event, ev.ModelFailed)]
    assert failure.rule.startswith(REFUSALS[type(server.speaker)][1])
    assert failure.violation.startswith("RSN-")
    assert any(failure.rule in warning for warning in run.result.warnings)
    assert server.diagnostics == []
