"""A secret that is planted everywhere in a run is in nothing that people see, once its name is known."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tenlines import Agent, Limits, Reply, Text, ToolCall, Usage, tool
from tenlines.errors import RateLimited
from tenlines.trace.logs import LOGGER
from tenlines.trace.otel import Tracing
from tenlines.trace.redaction import SECRET_NAMES, Redaction

KEY, PASSWORD = "zq-planted-1111222233334444", "planted-hunter-22"
NAMES = "access-code,pass"
"""What they are called here; nothing that is taken out where nobody names it."""


@tool
def call_api(access_code: str, body: dict[str, str]) -> dict[str, Any]:
    """Call it."""
    if body["pass"] == "again":
        raise RuntimeError(f"401; request headers: Access-Code: {access_code}, accept: json")
    headers = {"Access-Code": access_code, "note": "keep me"}
    return {"headers": headers, "text": f"signed in with {body['pass']}", "large": "x" * 100_000 + access_code}


@tool(read_only=True)
def echo(text: str) -> str:
    """Say it again."""
    return f"you said {text}"


def script() -> Iterator[Any]:
    def api(password: str) -> str:
        return json.dumps({"access_code": KEY, "body": {"pass": password, "note": "keep me"}})

    use = Usage(1000, 10, 500)
    yield Reply(f"I sign in with access_code={KEY}.", (ToolCall("a", "call_api", api(PASSWORD)),), usage=use)
    yield Reply(
        "", (ToolCall("b", "call_api", api("again")), ToolCall("c", "echo", json.dumps({"text": KEY}))), usage=use
    )
    yield RateLimited(f"status 429, sent headers: access-code: {KEY}")
    yield Reply("", (ToolCall("d", "sign_in", json.dumps({"text": PASSWORD})),), usage=use)
    yield Reply(f"I used {KEY} and {PASSWORD}.", usage=use)


class Planted:
    def __init__(self, trace: str, log: str, run_id: str) -> None:
        self.trace, self.log, self.run_id = trace, log, run_id


@pytest.fixture
def planted(caplog: pytest.LogCaptureFixture, home: Path) -> Planted:
    """The run, as it was traced and logged while it went on."""
    from tenlines.testing import FakeClock
    from tenlines.trace.logs import EventLog

    hide = Redaction([*SECRET_NAMES, *NAMES.split(",")])
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    own = logging.getLogger("mine")
    caplog.set_level(logging.DEBUG, "mine")
    agent = Agent(
        list(script()),
        [call_api, echo],
        instructions=f"The access code: {KEY}",
        limits=Limits(steps=9),
        journal=os.environ["TENLINES_JOURNAL"],
        observers=[Tracing(tracer_provider=provider, content=True, redaction=hide), EventLog(hide, own)],
        clock=FakeClock(),
    )
    result = agent.run_sync([Text(f"Sign in: pass='{PASSWORD}'.")], raise_on_stop=False)
    assert KEY in str(result.messages)
    assert caplog.records
    assert LOGGER not in {one.name for one in caplog.records}
    trace = "\n".join(one.to_json() for one in kept.get_finished_spans())
    return Planted(trace, "\n".join(f"{one.getMessage()} {vars(one)}" for one in caplog.records), result.run_id)


def clean(shown: str) -> bool:
    return KEY not in shown and PASSWORD not in shown


def test_neither_spans_nor_logs_of_the_run_as_it_goes_on(planted: Planted) -> None:
    assert "keep me" in planted.trace
    assert "[redacted]" in planted.trace
    assert clean(planted.trace)
    assert "[redacted]" in planted.log
    assert clean(planted.log)


VIEWS = (
    *(("show", "RUN"), ("show", "RUN", "--full"), ("show", "RUN", "--raw"), ("show", "RUN", "--calls")),
    *(("show", "RUN", "--json"), ("show", "RUN", "--follow"), ("show", "RUN", "--step", "2")),
    *(("trace", "RUN", "--json", "--content"), ("trace", "RUN", "--json"), ("report", "RUN", "-o", "-"), ("advise",)),
)


@pytest.mark.parametrize("words", VIEWS, ids=" ".join)
def test_no_view_of_it_afterwards(planted: Planted, tenlines: Callable[..., Any], words: tuple[str, ...]) -> None:
    named = [planted.run_id if one == "RUN" else one for one in words]
    done = tenlines(*named, "--redact", NAMES)
    assert done.code == 0
    assert len(done.out) > 100
    assert clean(done.out)
    assert clean(done.err)
    assert clean(json.dumps(done.out))


@pytest.mark.parametrize("words", [("show", "RUN", "--full"), ("report", "RUN", "-o", "-")], ids=" ".join)
def test_where_nobody_names_it_it_is_shown(
    planted: Planted, tenlines: Callable[..., Any], words: tuple[str, ...]
) -> None:
    done = tenlines(*[planted.run_id if one == "RUN" else one for one in words])
    assert not clean(done.out)
