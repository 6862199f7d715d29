"""`tenlines trace`, and `--otel` of the commands that do runs."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tenlines import Agent, Reply, ToolCall, tool
from tenlines.cli.telemetry import FLUSH_S, Target, read_target
from tenlines.core import events as ev
from tenlines.core.surroundings import span_id
from tenlines.errors import ConfigError
from tenlines.journal import open_journal

SECRET = "sk-demo-1111222233334444"


class Collector:
    """Takes spans and metrics over HTTP, as a collector does."""

    def __init__(self, status: int = 200) -> None:
        self.spans: list[Any] = []
        self.metrics: list[str] = []
        self.services: set[str] = set()
        self.headers: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if status == 200:
                    collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                    collector.take(self.path, body)
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *words: Any) -> None:
                """Nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def take(self, path: str, body: bytes) -> None:
        """What was sent."""
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                named = {one.key: one.value.string_value for one in resource.resource.attributes}
                self.services.add(named["service.name"])
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        else:
            assert path == "/v1/metrics"
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics += [one.name for scope in measured.scope_metrics for one in scope.metrics]

    @property
    def names(self) -> list[str]:
        """Of the spans."""
        return sorted(one.name for one in self.spans)

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the variables name."""
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    yield made
    made.close()


@tool(read_only=True)
def look(token: str = "") -> str:
    """Look."""
    raise RuntimeError(f"401 for {token}")


@pytest.fixture
def run_id(home: Any) -> str:
    """A run in the journal, with a secret in it."""
    call = ToolCall("c1", "look", json.dumps({"token": SECRET}))
    journal = open_journal(None)
    return Agent([Reply(calls=(call,)), "keep me"], [look], journal=journal).run_sync("go").run_id


def lines(out: str) -> list[dict[str, Any]]:
    """What was printed."""
    return [json.loads(line) for line in out.splitlines()]


# --- printed ----------------------------------------------------------------------------------------------


def test_the_spans_of_a_run_are_printed(tenlines: Callable[..., Any], run_id: str) -> None:
    done = tenlines("trace", "last", "--json")
    spans = lines(done.out)
    assert (done.code, done.err) == (0, "")
    assert [one["name"] for one in spans] == [
        "chat scripted",
        "execute_tool look",
        "chat scripted",
        "invoke_agent agent",
    ]
    assert spans[-1]["span_id"] == span_id(run_id, 0)
    assert SECRET not in done.out
    assert "keep me" not in done.out
    assert spans[1]["fault"] == "look failed: RuntimeError: 401 for [redacted]"


def test_content_is_printed_where_it_is_asked_for(
    tenlines: Callable[..., Any], run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "keep me" in tenlines("trace", run_id, "--json", "--content").out
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    assert "keep me" in tenlines("trace", run_id, "--json").out
    assert "keep me" not in tenlines("trace", run_id, "--json", "--no-content").out
    assert SECRET not in tenlines("trace", run_id, "--json").out
    assert SECRET in tenlines("trace", run_id, "--json", "--no-redact").out


def test_several_runs_are_printed_each_once(tenlines: Callable[..., Any], run_id: str) -> None:
    assert len(lines(tenlines("trace", run_id, "last", run_id[:6], "--json").out)) == 4


def test_printing_needs_no_sdk(tenlines: Callable[..., Any], run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, name, None)
    assert tenlines("trace", "last", "--json").code == 0


def test_a_run_that_is_not_there(tenlines: Callable[..., Any], run_id: str) -> None:
    done = tenlines("trace", "nope", "--json")
    assert done.code == 2
    assert "no run begins with 'nope'" in done.err


def test_of_an_open_run_there_is_what_there_is(tenlines: Callable[..., Any], run_id: str) -> None:
    journal = open_journal(None)
    for event in list(journal.read(run_id))[:2]:
        started = isinstance(event, ev.RunStarted)
        journal.append("open", msgspec.structs.replace(event, run_id="open") if started else event)
    journal.commit("open")
    done = tenlines("trace", "open", "--json")
    assert done.err == "run open is open; what there is of it so far\n"
    assert [(one["name"], one["attributes"]["error.type"]) for one in lines(done.out)] == [
        ("chat scripted", "interrupted"),
        ("invoke_agent agent", "interrupted"),
    ]


def test_what_is_no_log_is_damage(tenlines: Callable[..., Any], run_id: str, collector: Collector) -> None:
    journal = open_journal(None)
    journal.append("broken", ev.RunStarted(seq=0, at=1.0, run_id="broken", agent="a", model="m", messages=()))
    journal.append("broken", ev.RunEnded(seq=1, at=1.0, status="answered"))
    journal.commit("broken")
    for words in (["--json"], []):
        done = tenlines("trace", "broken", *words)
        assert done.code == 4
        assert "is not the log of a run" in done.err


# --- sent -------------------------------------------------------------------------------------------------


def test_past_runs_are_sent(
    tenlines: Callable[..., Any], run_id: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=shop")
    done = tenlines("trace", "last")
    assert (done.code, done.out, done.err) == (0, "", f"4 spans were sent to {collector.url}\n")
    assert collector.names == ["chat scripted", "chat scripted", "execute_tool look", "invoke_agent agent"]
    assert {one.span_id.hex() for one in collector.spans} >= {span_id(run_id, 0), span_id(run_id, 1)}
    assert SECRET not in str(collector.spans)
    assert collector.headers[0]["x-team"] == "shop"
    assert collector.services == {"tenlines"}


def test_who_sends_is_what_the_variables_say(
    tenlines: Callable[..., Any], run_id: str, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    assert tenlines("trace", "last").code == 0
    assert collector.services == {"shop"}


def test_where_nobody_listens_nothing_is_sent_and_that_is_said(
    tenlines: Callable[..., Any], run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://me:secret@127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    begin = time.perf_counter()
    done = tenlines("trace", "last")
    assert time.perf_counter() - begin < 2
    assert done.code == 1
    assert "nobody can be reached at http://127.0.0.1:" in done.err
    assert "secret" not in done.err


def test_a_collector_that_refuses_is_named_with_what_it_said(
    tenlines: Callable[..., Any], run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = Collector(status=403)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", refusing.url)
    done = tenlines("trace", "last")
    refusing.close()
    assert done.code == 1
    assert f"4 spans were not sent to {refusing.url}" in done.err
    assert "403" in done.err


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_SDK_DISABLED", "true", "OTEL_SDK_DISABLED is set"),
        ("OTEL_TRACES_EXPORTER", "none", "OTEL_TRACES_EXPORTER=none"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "otlp, console or none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "http://host:port"),
    ],
)
def test_variables_that_do_not_fit(
    tenlines: Callable[..., Any], run_id: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    done = tenlines("trace", "last")
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize(
    "words", [("trace", "last"), ("run", "go", "--model", "local", "--otel")], ids=["trace", "run"]
)
def test_without_the_sdk_it_says_what_to_install(
    tenlines: Callable[..., Any], run_id: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    done = tenlines(*words)
    assert done.code == 2
    assert "pip install 'tenlines[otel]'" in done.err


def test_where_to() -> None:
    assert read_target({}) == Target("http://localhost:4318", "otlp", "otlp")
    said = {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://a:b@host/base", "OTEL_METRICS_EXPORTER": "none"}
    assert read_target(said) == Target("https://host/base", "otlp", "none")
    said["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = "http://other:1/v1/traces"
    assert read_target(said).address == "http://other:1/v1/traces"
    with pytest.raises(ConfigError, match="otlp, console or none"):
        read_target({"OTEL_METRICS_EXPORTER": "prometheus"})


# --- while a run goes on ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_is_sent_while_it_goes_on_and_its_later_part_when_it_is_resumed(
    process: Callable[..., Any], server: Any, collector: Collector
) -> None:
    server.replies = [server.calls(("get_order", {"order_id": "1042"})), server.says("shipped")]
    words = ["--model", server.model, "--otel"]
    done = process("run", "where?", "--tools", "tools.py", "--max-steps", "1", *words).end()
    assert done.code == 1, done.err
    assert collector.names == ["chat x", "execute_tool get_order", "invoke_agent agent"]
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= set(collector.metrics)
    first = {one.trace_id for one in collector.spans}
    done = process("resume", "last", "--max-steps", "5", *words).end()
    assert (done.code, done.out, done.err) == (0, "shipped\n", "")
    assert collector.names == ["chat x", "chat x", "execute_tool get_order", "invoke_agent agent", "invoke_agent agent"]
    assert {one.trace_id for one in collector.spans} == first, "it stays one trace"


@pytest.mark.slow
def test_a_collector_that_never_answers_costs_no_more_than_is_stated(
    process: Callable[..., Any], server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [server.says("done")]
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        begin = time.monotonic()
        done = process("run", "go", "--model", server.model, "--otel").end()
        took = time.monotonic() - begin
    assert (done.code, done.out) == (0, "done\n")
    assert f"it took longer than {FLUSH_S:g} s" in done.err
    assert "later: tenlines trace last" in done.err
    assert FLUSH_S <= took < FLUSH_S + 10


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_a_collector(
    process: Callable[..., Any], server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [server.says("done")]
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        command = process("run", "go", "--model", server.model, "--otel")
        assert command.popen.stdout.readline() == b"done\n"
        time.sleep(0.2)  # it is at the end, and waits
        command.interrupt(signal.SIGINT)
        done = command.end()
    assert done.code == 0, "the run was answered"
    assert "it was not waited for" in done.err


@pytest.mark.slow
def test_where_nobody_listens_the_run_goes_on_and_that_is_said(
    process: Callable[..., Any], server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [server.says("done")]
    with socket.create_server(("127.0.0.1", 0)) as free:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free.getsockname()[1]}")
    done = process("run", "go", "--model", server.model, "--otel").end()
    assert (done.code, done.out) == (0, "done\n")
    assert "spans were not sent to http://127.0.0.1:" in done.err
    assert "Connection refused" in done.err
