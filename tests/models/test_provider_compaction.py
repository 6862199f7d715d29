"""Runs in which the provider summarises the conversation by itself, over the official packages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scenarios import Call, FormatServer, Said, sse
from speakers import AnthropicSpeaker, ResponsesSpeaker, _block_events

from tenlines import Agent, RunResult
from tenlines.cli import main
from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.models.anthropic import Anthropic
from tenlines.models.openai_compatible import OpenAICompatible
from tenlines.ports import Model
from tenlines.testing import FakeClock, RecordingObserver

AT = 100_000
SUMMED = "Summed."
"""What a reply says that came behind a summary."""
BLOCK = {"type": "compaction", "content": "So far ...", "encrypted_content": "opaque=="}
ITEM = {"type": "compaction", "encrypted_content": "gAAAAABsummary"}
SUMMING = {"input_tokens": 4_000, "output_tokens": 300, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


class SummingAnthropic(AnthropicSpeaker):
    """It summarises before it says `SUMMED`, and instead of saying nothing."""

    summary = BLOCK

    def model(self, url: str) -> Model:
        return Anthropic("claude-opus-5", base_url=url, profile=self.profile, compact_at=AT)

    def whole(self, said: Said) -> Any:
        message = super().whole(said)
        if said.text not in (SUMMED, ""):
            return message
        usage = {**message["usage"], "iterations": [{"type": "compaction", **SUMMING}]}
        if said.text:
            return {**message, "content": [BLOCK, *message["content"]], "usage": usage}
        return {**message, "content": [BLOCK], "usage": usage, "stop_reason": "compaction"}

    def events(self, said: Said) -> list[bytes]:
        whole = self.whole(said)
        begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "iterations": None}}
        events: list[Any] = [{"type": "message_start", "message": begun}]
        for index, block in enumerate(whole["content"]):
            events += _summary_events(index) if block is BLOCK else _block_events(block, index)
        ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events += [{"type": "message_delta", "delta": ending, "usage": whole["usage"]}, {"type": "message_stop"}]
        return [sse(event, event["type"]) for event in events]

    def asked(self, body: Any) -> bool:
        """Whether a request asks for it."""
        trigger = {"type": "input_tokens", "value": AT}
        edits = [{"type": "compact_20260112", "trigger": trigger}]
        return bool(body["context_management"] == {"edits": edits})

    def before(self, body: Any) -> tuple[list[Any], list[Any]]:
        """What stands before the last summary of a request, and what from there on, without marks."""
        blocks = [block for message in body["messages"] for block in message["content"]]
        plain = [{key: one for key, one in block.items() if key != "cache_control"} for block in blocks]
        at = max(index for index, block in enumerate(plain) if block["type"] == "compaction")
        return plain[:at], plain[at:]


def _summary_events(index: int) -> list[Any]:
    empty = {"type": "compaction", "content": None, "encrypted_content": None}
    delta = {**BLOCK, "type": "compaction_delta"}
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        {"type": "content_block_delta", "index": index, "delta": delta},
        {"type": "content_block_stop", "index": index},
    ]


class SummingResponses(ResponsesSpeaker):
    """The same in the other format."""

    summary = ITEM

    def model(self, url: str) -> Model:
        return OpenAICompatible("gpt-5.6", f"{url}/v1", api="responses", profile=self.profile, compact_at=AT)

    def whole(self, said: Said) -> Any:
        response = super().whole(said)
        items = response["output"] if said.text else []
        if said.text in (SUMMED, ""):
            items = [{**ITEM, "id": "cmp_"}, *items]
        name = said.calls[0].id if said.calls else f"end_{said.input_tokens}"
        return {**response, "output": [{**item, "id": f"{item['id']}{name}"} for item in items]}

    def events(self, said: Said) -> list[bytes]:
        whole = self.whole(said)
        events: list[Any] = [{"type": "response.created", "response": {**whole, "output": [], "usage": None}}]
        for index, item in enumerate(whole["output"]):
            at = {"output_index": index, "item": item}
            events += [{"type": f"response.output_item.{when}", **at} for when in ("added", "done")]
        events.append({"type": "response.completed", "response": whole})
        return [sse(event, event["type"]) for event in events]

    def asked(self, body: Any) -> bool:
        """Whether a request asks for it."""
        return bool(body["context_management"] == [{"type": "compaction", "compact_threshold": AT}])

    def before(self, body: Any) -> tuple[list[Any], list[Any]]:
        """What stands before the last summary of a request, and what from there on, without ids."""
        listed = [{key: one for key, one in item.items() if key != "id"} for item in body["input"]]
        at = max(index for index, item in enumerate(listed) if item.get("type") == "compaction")
        return listed[:at], listed[at:]


@pytest.fixture(params=[SummingAnthropic(), SummingResponses()], ids=["anthropic", "responses"])
def speaker(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=["sync", "aio"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def watched(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class Run:
    """One run with a tool that returns much."""

    def __init__(self, server: FormatServer, way: str, watched: bool, **how: Any) -> None:
        def read(page: int) -> str:
            """Read a page."""
            return f"page {page} " + "zebra crossing " * 500

        observers = [RecordingObserver()] if watched else []
        model = server.speaker.model(server.url)
        self.agent = Agent(model, [read], journal="memory", observers=observers, clock=FakeClock(), **how)
        self.result = self._run(way)
        self.events = list(self.agent.journal.read(self.result.run_id))

    def _run(self, way: str) -> RunResult:
        if way == "aio":
            return asyncio.run(self.agent.run("Read it all.", raise_on_stop=False))
        return self.agent.run_sync("Read it all.", raise_on_stop=False)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of a kind."""
        return [event for event in self.events if isinstance(event, kind)]


@contextmanager
def serving(speaker: Any, *script: Said) -> Iterator[FormatServer]:
    server = FormatServer(speaker, list(script))
    try:
        yield server
    finally:
        server.close()


def page(number: int, text: str = "Let me read.", tokens: int = 100) -> Said:
    return Said(text, (Call(f"call_{number}", "read", {"page": number}),), tokens, 0)


def test_a_summary_in_the_middle_of_a_run(speaker: Any, way: str, watched: bool) -> None:
    with serving(speaker, page(1), page(2, SUMMED), Said("All read.")) as server:
        run = Run(server, way, watched)
    assert (run.result.status, run.result.answer, run.result.warnings) == ("answered", "All read.", ())
    assert server.streams == [watched] * 3
    assert not server.diagnostics
    assert all(speaker.asked(body) for body in server.bodies)
    before, behind = speaker.before(server.bodies[2])
    assert behind[0] == speaker.summary
    assert "zebra" in json.dumps(before)  # what it stands for is kept, and goes along
    assert len(json.dumps(before)) > len(json.dumps(behind)) * 0.5


def test_a_reply_of_nothing_but_a_summary_is_followed_by_the_rest(speaker: Any, way: str, watched: bool) -> None:
    with serving(speaker, page(1), Said(""), page(2), Said("All read.")) as server:
        run = Run(server, way, watched)
    assert (run.result.status, run.result.answer, run.result.warnings) == ("answered", "All read.", ())
    assert not server.diagnostics
    assert speaker.before(server.bodies[2])[1] == [speaker.summary]
    assert len(speaker.before(server.bodies[3])[1]) > 2
    notes = [one for one in run.of(ev.ModelReplied) if one.reply.stop == "pause"]
    assert len(notes) == 1


def test_what_the_summary_cost_is_in_the_usage(way: str, watched: bool) -> None:
    with serving(SummingAnthropic(), page(1), page(2, SUMMED), Said("All read.", cached_tokens=0)) as server:
        run = Run(server, way, watched)
    assert run.result.usage.input == 3 * 100 + SUMMING["input_tokens"]
    assert run.result.usage.output == 3 * 7 + SUMMING["output_tokens"]


def test_what_is_reserved_behind_it_is_enough_and_not_for_what_is_read_no_more(way: str) -> None:
    """A page is some 2,000 tokens; the summary takes the place of two."""
    counts = [500, 2_500, 300, 2_300, 4_300, 6_300]
    script = [page(number, SUMMED if number == 3 else "Next.", tokens) for number, tokens in enumerate(counts, 1)]
    with serving(SummingAnthropic(), *script, Said("All read.", input_tokens=8_300, cached_tokens=0)) as server:
        run = Run(server, way, watched=False)
    reserved = [one.reserved.input_tokens for one in run.of(ev.StepStarted)]
    assert len(reserved) == 7
    for step, reported in enumerate([*counts[4:], 8_300], 5):
        assert reported <= reserved[step - 1] <= 2 * reported, (step, reserved)


def test_the_header_of_the_beta_goes_along() -> None:
    with serving(SummingAnthropic(), page(1), Said("All read.")) as server:
        Run(server, "sync", watched=False)
    assert [headers["anthropic-beta"] for headers in server.headers] == ["compact-2026-01-12"] * 2


def test_the_checker_takes_every_request(speaker: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = [page(1), page(2, SUMMED), Said(""), page(3), page(4, SUMMED), Said("All read.")]
    with serving(speaker, *script) as server:
        Run(server, "sync", watched=True)
    files = [tmp_path / f"{number}.json" for number in range(len(server.bodies))]
    for file, body in zip(files, server.bodies, strict=True):
        file.write_text(json.dumps(body))
    with pytest.raises(SystemExit) as ended:
        main(["check", *map(str, files)])
    assert (ended.value.code or 0, "6" in capsys.readouterr().out) == (0, True)


def test_a_cut_of_ours_behind_it_keeps_it_and_what_is_sent_is_valid(speaker: Any, way: str) -> None:
    script = [
        page(1),
        page(2, SUMMED),
        *(page(number, tokens=2_000 * number) for number in range(3, 7)),
        Said("All read."),
    ]
    with serving(speaker, *script) as server:
        run = Run(server, way, watched=False, compaction=Compaction(strategies=("elide",), keep=1, at=7_000))
    cuts = run.of(ev.ContextCompacted)
    assert run.result.status == "answered"
    assert cuts
    assert cuts[0].seq > run.of(ev.ModelReplied)[1].seq
    assert not server.diagnostics
    assert speaker.before(server.bodies[-1])[1][0] == speaker.summary
