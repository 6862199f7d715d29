"""Servers over HTTP: headers, sessions that end, answers that do not come."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from mcp_world import results, run_calls

from tenlines.errors import ConfigError
from tenlines.tools.mcp import McpServers, mcp

pytestmark = pytest.mark.slow


INFO = {"name": "h", "version": "1"}


class Sessions:
    """A server of the older revision with sessions. It counts what it really did."""

    def __init__(self) -> None:
        self.session, self.done, self.token = 0, 0, ""
        self.status = 0
        """What it answers in place of doing a call."""
        self.hangs_up = self.broken = False
        self.headers: list[Any] = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"world": self}))
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/mcp"

    def forget(self) -> None:
        """Begin anew, as after a restart: sessions are not known any more."""
        self.session += 1

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


class Handler(BaseHTTPRequestHandler):
    world: Sessions

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.give(405, None)

    do_DELETE = do_GET

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.world.headers.append(self.headers)
        if self.world.broken:
            self.give(404, None)
        elif self.world.token and self.headers["authorization"] != f"Bearer {self.world.token}":
            self.give(401, None)
        elif message["method"] == "initialize":
            told = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "h", "version": "1"},
            }
            self.give(200, {"id": message["id"], "result": told}, {"mcp-session-id": str(self.world.session)})
        elif "id" not in message:
            self.give(202, None)
        elif message["method"] == "server/discover":
            self.give(200, {"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
        elif self.headers["mcp-session-id"] != str(self.world.session):
            self.give(404, None)
        elif message["method"] == "tools/list":
            tool = {"name": "pay", "inputSchema": {"type": "object"}}
            self.give(200, {"id": message["id"], "result": {"tools": [tool]}})
        else:
            self.call(message)

    def call(self, message: dict[str, Any]) -> None:
        if self.world.status:
            self.give(self.world.status, None)
            return
        self.world.done += 1
        if self.world.hangs_up:
            self.close_connection = True
            self.connection.close()
            return
        content = [{"type": "text", "text": f"paid {self.world.done}"}]
        self.give(200, {"id": message["id"], "result": {"content": content}})

    def give(self, status: int, message: dict[str, Any] | None, headers: dict[str, str] | None = None) -> None:
        body = b"" if message is None else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "content-type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def world() -> Iterator[Sessions]:
    made = Sessions()
    yield made
    made.close()


@pytest.fixture
def paying(world: Sessions) -> Iterator[McpServers]:
    with mcp(world.url) as servers:
        yield servers


def test_a_session_that_ended_is_begun_anew_and_the_call_is_done_once(world: Sessions, paying: McpServers) -> None:
    [first] = results(run_calls(paying, ("pay", {})))
    world.forget()
    [second] = results(run_calls(paying, ("pay", {})))
    assert (first.text, second.text) == ("paid 1", "paid 2")
    assert world.done == 2


def test_a_call_without_an_answer_is_in_doubt(world: Sessions, paying: McpServers) -> None:
    world.hangs_up = True
    [lost] = results(run_calls(paying, ("pay", {})))
    assert lost.outcome == "in_doubt"
    assert world.done == 1
    world.hangs_up = False
    assert results(run_calls(paying, ("pay", {})))[0].text == "paid 2"


@pytest.mark.parametrize(("status", "outcome"), [(502, "in_doubt"), (400, "tool_error")])
def test_a_gateway_that_fails_leaves_doubt(world: Sessions, paying: McpServers, status: int, outcome: str) -> None:
    world.status = status
    [failed] = results(run_calls(paying, ("pay", {})))
    assert failed.outcome == outcome


def test_a_server_that_is_gone_was_not_asked(
    world: Sessions, paying: McpServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenlines.tools.mcp.link.RESTARTS_S", (0.01, 0.01))
    run_calls(paying, ("pay", {}))
    world.close()
    [gone] = results(run_calls(paying, ("pay", {})))
    assert gone.outcome == "tool_error"
    assert "nothing was done" in gone.text
    assert world.done == 1


def test_headers_go_along(world: Sessions) -> None:
    world.token = "s3cret"
    with pytest.raises(ConfigError, match="refused us \\(HTTP 401\\): it wants a header") as error:
        mcp(world.url).tools()
    assert "s3cret" not in str(error.value)
    with mcp(world.url, headers={"Authorization": "Bearer s3cret"}) as servers:
        run = run_calls(servers, ("pay", {}))
        assert results(run)[0].text == "paid 1"
        assert "s3cret" not in str(servers.tools()[0].spec)


def test_what_is_no_endpoint_is_named(world: Sessions) -> None:
    world.broken = True
    with pytest.raises(ConfigError, match=r"does not speak MCP \(HTTP 404\): is it the address of an MCP endpoint"):
        mcp(world.url).tools()
