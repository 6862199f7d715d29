"""What the tests of MCP share: servers, runs that call them, a model that says what it is told to."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tenlines import Agent
from tenlines.core.result import RunResult
from tenlines.core.transcript import Reply, Result, ToolCall
from tenlines.tools.mcp import McpServers

HERE = Path(__file__).parent
RAW = [sys.executable, "-S", str(HERE / "raw_server.py")]
"""Up in 30 ms, since it imports nothing."""
SMALL = [sys.executable, str(HERE / "small_server.py")]


def calls(*asked: tuple[str, dict[str, Any]]) -> Reply:
    """A reply with calls."""
    listed = [ToolCall(f"c{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(asked)]
    return Reply("", tuple(listed))


def run_calls(servers: McpServers, *asked: tuple[str, dict[str, Any]], **more: Any) -> RunResult:
    """A run that makes these calls, one a step, and answers."""
    replies = [*(calls(one) for one in asked), Reply("done")]
    return Agent(replies, tools=[servers], journal="memory", **more).run_sync("go")


def results(run: RunResult) -> list[Result]:
    """The results in a run, in order."""
    return [message for message in run.messages if isinstance(message, Result)]


class Model:
    """A model's server on loopback: a text is an answer, `(tool, arguments)` a call."""

    def __init__(self) -> None:
        self.replies: list[str | tuple[str, dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"model": self}))
        self.http.daemon_threads = True
        self.name = f"http://127.0.0.1:{self.http.server_port}/v1#x"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        reply = self.replies.pop(0)
        message: dict[str, Any] = {"role": "assistant", "content": reply}
        if not isinstance(reply, str):
            function = {"name": reply[0], "arguments": json.dumps(reply[1])}
            call = {"id": f"c{len(self.requests)}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        stop = "stop" if isinstance(reply, str) else "tool_calls"
        return {"model": "x", "choices": [{"index": 0, "message": message, "finish_reason": stop}]}

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


class _Handler(BaseHTTPRequestHandler):
    model: Model

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.dumps(self.model.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
