"""One line an event, with its facts as fields."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, get_args

import pytest

from tenlines import Agent, Limits, Reply, ToolCall, Usage, tool
from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.transcript import Text
from tenlines.trace.logs import LOGGER, EventLog, facts, wanted
from tenlines.trace.redaction import Redaction

VECTORS = Path(__file__).parent.parent / "vectors" / "events"
KEY = "sk-demo-1111222233334444"
OWN = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What a record has already."""


@tool(read_only=True)
def look(token: str) -> str:
    """Looks."""
    raise RuntimeError(f"401 for {token}\nsecond line")


def script() -> list[Reply]:
    call = ToolCall("a", "look", json.dumps({"token": KEY}))
    return [Reply("I look.", (call,), usage=Usage(100, 10, 50)), Reply("done", usage=Usage(120, 5))]


def every_kind() -> list[ev.AnyEvent]:
    found: dict[type, ev.AnyEvent] = {}
    for file in sorted(VECTORS.glob("schema-*.jsonl")):
        for line in file.read_text().splitlines():
            event = codec.decode(line, int(file.stem.removeprefix("schema-")))
            found[type(event)] = event
    return list(found.values())


def test_every_kind_of_event_is_one_line_whose_fields_are_plain(caplog: pytest.LogCaptureFixture) -> None:
    events = every_kind()
    assert {type(one) for one in events} == set(get_args(ev.AnyEvent))
    caplog.set_level(logging.DEBUG, LOGGER)
    log = EventLog().for_run("k2v9", ())
    for event in events:
        log.on_event(event)
        record: Any = caplog.records[-1]
        assert (record.run_id, record.seq, record.event) == ("k2v9", event.seq, type(event).__name__)
        line = record.getMessage()
        assert line.startswith(f"run k2v9 #{event.seq} {type(event).__name__}")
        assert "\n" not in line
        added = {name: value for name, value in vars(record).items() if name not in OWN}
        assert all(isinstance(value, str | int | float) for value in added.values())
        assert added.keys() >= facts(event).keys()
    assert len(caplog.records) == len(events)


def test_an_agent_logs_where_the_logger_wants_to_know(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)
    result = Agent(script(), [look], journal="memory").run_sync("go")
    records: list[Any] = [one for one in caplog.records if one.name == LOGGER]
    assert [one.seq for one in records] == list(range(len(records)))
    assert {one.run_id for one in records} == {result.run_id}
    assert records[0].event == "RunStarted"
    replied = next(one for one in records if one.event == "ModelReplied")
    assert (replied.text, replied.calls, replied.tokens_input, replied.tokens_cache_read) == (
        "I look.",
        "look",
        100,
        50,
    )
    assert (records[-1].event, records[-1].status) == ("RunEnded", "answered")


def test_where_it_does_not_nobody_watches(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    assert wanted() == ()
    Agent(script(), [look], journal="memory").run_sync("go")
    assert caplog.records == []


def test_secrets_are_in_no_line_and_no_field(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)
    Agent(script(), [look], journal="memory").run_sync("go")
    everything = "\n".join(f"{one.getMessage()} {vars(one)}" for one in caplog.records)
    assert "[redacted]" in everything
    assert KEY not in everything


def test_a_run_that_is_taken_up_is_known_by_its_id_and_its_old_secrets(caplog: pytest.LogCaptureFixture) -> None:
    stopped = Agent(script(), [look], journal="memory", limits=Limits(steps=1))
    result = stopped.run_sync("go", raise_on_stop=False)
    caplog.set_level(logging.DEBUG, LOGGER)
    again = Agent([Reply(f"it was {KEY}")], [look], journal=stopped.journal)
    again.resume_sync(result.run_id, limits=Limits(steps=3))
    records: list[Any] = caplog.records
    assert {one.run_id for one in records} == {result.run_id}
    assert not any(KEY in one.getMessage() for one in records)


def test_a_logger_and_a_filter_of_ones_own(caplog: pytest.LogCaptureFixture) -> None:
    mine = logging.getLogger("mine")
    caplog.set_level(logging.INFO, "mine")
    hide = Redaction((), lambda text: text.replace("go", "**"))
    watching = EventLog(hide, mine, logging.INFO)
    Agent([Reply("let it go")], journal="memory", observers=[watching]).run_sync("go")
    assert any("let it **" in one.getMessage() for one in caplog.records)


def test_a_long_text_is_short_and_harmless() -> None:
    event = ev.CallReturned(seq=1, at=0.0, step=1, position=0, parts=(Text("\x1b[2J\u202e" + "x" * 10_000_000),))
    assert len(facts(event)["text"]) == 200
    assert facts(event)["text"].startswith("\\x1b[2J\\u202e")
