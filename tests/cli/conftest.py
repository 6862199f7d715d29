"""A model server on loopback that speaks OpenAI's format, and the command in its own process."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # what the tests of the commands share: `import spoiled`
sys.path.insert(0, str(Path(__file__).parent.parent / "journal"))  # runs to put into journals, and a Postgres
sys.path.insert(0, str(Path(__file__).parent.parent / "fleet"))  # a Temporal

from postgres_server import postgres_server
from temporal_server import temporal_server

__all__ = ["postgres_server", "temporal_server"]

TOOLS = '''
import os, pathlib, time
from tenlines import tool

@tool(read_only=True)
def get_order(order_id: str) -> str:
    """One order."""
    return f"order {order_id}: shipped as TRK77"

@tool(read_only=True)
def evil() -> str:
    """Returns what terminals obey."""
    return "[bold]red[/bold] \\x1b[2J\\x1b]0;owned\\x07 \\u202etxet"

@tool
def wait(for_file: str) -> str:
    """Waits until there is a file."""
    pathlib.Path(for_file + ".started").touch()
    while not os.path.exists(for_file):
        time.sleep(0.01)
    return "waited"

@tool
def talk() -> str:
    """Prints."""
    print("printed by the tool")
    os.system("echo printed by a program")
    return "talked"

@tool
def fail() -> str:
    """Raises."""
    raise ValueError("no [red]such[/red] thing")
'''


FLEET = ("TENLINES_APP", "TENLINES_TEMPORAL", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE")


class Server:
    """Answers each request with the next reply. A reply is a message, a status (int), or an Event to wait for."""

    def __init__(self) -> None:
        self.replies: list[Any] = []
        self.requests: list[dict[str, Any]] = []
        self.asked = threading.Event()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"server_": self}))
        self.http.daemon_threads = True
        self.model = f"http://127.0.0.1:{self.http.server_port}/v1#x"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    @staticmethod
    def says(text: str) -> dict[str, Any]:
        """A reply in words."""
        return {"content": text}

    @staticmethod
    def calls(*asked: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
        """A reply with calls."""
        listed = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(asked)
        ]
        return {"content": text or None, "tool_calls": listed}

    def next(self, request: dict[str, Any]) -> Any:
        self.requests.append(request)
        self.asked.set()
        reply = self.replies.pop(0) if self.replies else 500
        if isinstance(reply, threading.Event):
            reply.wait(20)
            return self.says("late")
        return reply

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


class Handler(BaseHTTPRequestHandler):
    server_: Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server_.next(request)
        if isinstance(reply, int):
            self.send(reply, {"error": {"message": f"status {reply}"}})
        elif request.get("stream"):
            self.stream(reply)
        else:
            stop = "tool_calls" if reply.get("tool_calls") else "stop"
            message = {"role": "assistant", **reply}
            body = {"model": "x", "choices": [{"index": 0, "message": message, "finish_reason": stop}]}
            self.send(200, {**body, "usage": USAGE})

    def stream(self, reply: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in re.findall(r"\S+\s*", reply.get("content") or ""):
            self.chunk({"content": piece})
        listed = [{"index": n, **call} for n, call in enumerate(reply.get("tool_calls", ()))]
        if listed:
            self.chunk({"tool_calls": listed})
        self.chunk({}, "tool_calls" if listed else "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, delta: dict[str, Any], stop: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": stop}
        body = {"id": "r", "object": "chat.completion.chunk", "model": "x", "choices": [choice]}
        if stop:
            body["usage"] = USAGE
        self.wfile.write(b"data: " + json.dumps(body).encode() + b"\n\n")
        self.wfile.flush()

    def send(self, status: int, body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(ConnectionError):  # the command was told to stop
            super().handle()


USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 400}}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tools and a journal of its own; nothing of the machine's environment leaks in."""
    (tmp_path / "tools.py").write_text(TOOLS)
    monkeypatch.setenv("TENLINES_JOURNAL", str(tmp_path / "journal.db"))
    for name in ("TENLINES_MODEL", "TENLINES_DEBUG", "NO_COLOR", "FORCE_COLOR", "OPENAI_API_KEY", "COLUMNS", *FLEET):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Done:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def tenlines(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """The command in this process, without a terminal."""
    from tenlines.cli import main

    def run(*words: str) -> Done:
        capsys.readouterr()
        try:
            main(words)
        except SystemExit as end:
            out, err = capsys.readouterr()
            return Done(end.code if isinstance(end.code, int) else 1, out, err)
        raise AssertionError("main always ends with SystemExit")

    return run


class Process:
    """The command in a process of its own. With `terminal`, standard error is a terminal, and on request
    standard output is the same one."""

    def __init__(
        self,
        words: Sequence[str],
        terminal: bool,
        tty_out: bool,
        env: dict[str, str] | None,
        stdout: int | None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.seen, self._past, self._master, self.has_terminal = "", 0, -1, terminal
        slave = -1
        if terminal:
            self._master, slave = pty.openpty()
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "tenlines", *words],
            stdin=slave if terminal else subprocess.DEVNULL,
            stdout=slave if tty_out else subprocess.PIPE if stdout is None else stdout,
            stderr=slave if terminal else subprocess.PIPE,
            env={**os.environ, **(env or {})},
            start_new_session=True,
            pass_fds=pass_fds,
        )
        if terminal:
            os.close(slave)

    def wait_for(self, text: str) -> None:
        """Read the terminal until it has shown a text that was not waited for yet."""
        end = time.monotonic() + 20
        while (found := self.seen.find(text, self._past)) < 0:
            assert time.monotonic() < end, f"{text!r} never came; seen:\n{self.seen}"
            assert self._read(), f"the command ended without {text!r}; seen:\n{self.seen}"
        self._past = found + len(text)

    def type(self, keys: str) -> None:
        """Press keys at the terminal."""
        os.write(self._master, keys.encode())

    def answer(self, question: str, line: str) -> None:
        """Wait for a question and answer it with a line."""
        self.wait_for(question)
        self.type(line + "\n")

    def interrupt(self, number: int = signal.SIGINT) -> None:
        self.popen.send_signal(number)

    def end(self) -> Done:
        """Wait for the end."""
        while self._master >= 0 and self._read():
            pass
        out, err = self.popen.communicate(timeout=20)
        if self._master >= 0:
            os.close(self._master)
            self._master = -1
        return Done(self.popen.returncode, (out or b"").decode(), self.seen or (err or b"").decode())

    def _read(self) -> bool:
        if not select.select([self._master], [], [], 20)[0]:
            return False
        try:
            piece = os.read(self._master, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += piece.decode(errors="replace")
        return bool(piece)


@pytest.fixture
def process() -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def start(
        *words: str,
        terminal: bool = False,
        tty_out: bool = False,
        env: dict[str, str] | None = None,
        stdout: int | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Process:
        made.append(Process(words, terminal, tty_out, env, stdout, pass_fds))
        return made[-1]

    yield start
    for one in made:
        if one.popen.poll() is None:
            one.popen.kill()
            one.popen.wait()
        for pipe in (one.popen.stdout, one.popen.stderr):
            if pipe is not None:
                pipe.close()
