"""The server in a process of its own, runs to show, and what a process does that works on a run."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tenlines import Agent, Limits, Reply, ToolCall, tool
from tenlines.core.outcomes import parse_arguments

PATIENCE_S = 30.0
SECRET = "sk-planted-0123456789"

SHOP = '''
from tenlines import tool

@tool(approve=True)
def pay(amount: int, to: str = "Ann", api_key: str = "") -> str:
    """Pay somebody."""
    with open("paid.txt", "a") as out:
        out.write(f"{amount} {to} {api_key}\\n")
    return f"paid {amount} to {to}"
'''


def until(ready: Callable[[], Any], what: str = "it") -> Any:
    """Wait for a condition; returns what it gave."""
    end = time.monotonic() + PATIENCE_S
    while not (found := ready()):
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.02)
    return found


def asks(*calls: tuple[str, dict[str, Any]]) -> Reply:
    """A reply with calls."""
    return Reply(calls=tuple(ToolCall(f"c{n}", name, json.dumps(given)) for n, (name, given) in enumerate(calls)))


@tool(approve=True)
def pay(amount: int, to: str = "Ann", api_key: str = "") -> str:
    """Pay somebody."""
    return f"paid {amount} to {to}"


@tool(read_only=True)
def look(n: int = 0) -> str:
    """Look."""
    return f"row {n}"


def waiting_run(journal: Any, *calls: dict[str, Any], task: str = "Pay Bob") -> str:
    """A run that waits for a decision about each of these payments."""
    given = calls or ({"amount": 500, "to": "Bob"},)
    agent = Agent([asks(*(("pay", one) for one in given)), Reply("all paid")], [pay], journal=journal)
    return agent.run_sync(task).run_id


def ended_run(journal: Any, task: str = "Look", answer: str = "row 1", steps: int = 20) -> str:
    """A run that has ended."""
    agent = Agent([asks(("look", {"n": 1})), Reply(answer)], [look], journal=journal)
    return agent.run_sync(task, limits=Limits(steps=steps), raise_on_stop=False).run_id


def arguments_of(text: str) -> Any:
    return parse_arguments(text).value


class Answer(NamedTuple):
    """What the server said."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Stream:
    """Server-sent events, as they come."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection, self._response = connection, response

    def next(self) -> dict[str, str]:
        """The next event, comments left out."""
        fields: dict[str, str] = {}
        while True:
            line = self._response.readline().decode()
            assert line, "the stream has ended"
            if line == "\n":
                if fields:
                    return fields
            elif not line.startswith(":"):
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value

    def pieces(self) -> dict[str, Any]:
        """The pieces up to the next mark, by their ids; under `mark`, that."""
        found: dict[str, Any] = {}
        while (event := self.next())["event"] == "piece":
            piece = json.loads(event["data"])
            found[piece["id"]] = piece["html"]
        return {**found, event["event"]: event["data"]}

    def until(self, text: str) -> str:
        """Read until a piece holds a text; returns the mark behind it."""
        while True:
            found = self.pieces()
            if any(text in html for html in found.values()):
                return str(found.get("mark", ""))

    def close(self) -> None:
        self._response.close()
        self._connection.close()


class Site:
    """The command `tenlines serve` in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        words = [sys.executable, "-m", "tenlines", "serve", "--journal", str(folder / "journal.db"), *options]
        self.popen = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, start_new_session=True
        )
        assert self.popen.stdout is not None
        self.url = self.popen.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{20,})", self.url)
        assert found, (
            self.url,
            self.popen.poll(),
            self.popen.stderr.read() if self.popen.stderr and not self.url else "",
        )
        self.port, self.token = int(found[1]), found[2]
        self.origin = f"http://127.0.0.1:{self.port}"
        entered = self.ask("GET", f"/?token={self.token}", cookie="")
        self.cookie = entered.headers["set-cookie"].partition(";")[0]
        self._csrf = ""
        self._streams: list[Stream] = []

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str | None] | None = None,
        body: Any = None,
        cookie: str | None = None,
    ) -> Answer:
        """One request. A header that is None is left out."""
        given = {"Cookie": self.cookie if cookie is None else cookie, **(headers or {})}
        connection = self.connect()
        try:
            kept = {name: value for name, value in given.items() if value is not None}
            connection.putrequest(method, path, skip_host="Host" in given)
            if body is not None:
                kept.setdefault("Content-Length", str(len(body)))
            for name, value in kept.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read().decode())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers)

    @property
    def csrf(self) -> str:
        """The token that stands in our pages."""
        if not self._csrf:
            run_id = re.search(r'href="(/runs/[^"]+)"', self.get("/").text)
            assert run_id is not None, "no run is listed"
            found = re.search(r'data-page="([^"]+)"', self.get(run_id[1]).text)
            assert found is not None
            self._csrf = found[1]
        return self._csrf

    def post(self, path: str, fields: Mapping[str, str], headers: Mapping[str, str | None] | None = None) -> Answer:
        """What a page of ours would send, but for these headers."""
        ours = {
            "Origin": self.origin,
            "Sec-Fetch-Site": "same-origin",
            "X-Tenlines-Page": self.csrf,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        return self.ask("POST", path, {**ours, **(headers or {})}, urlencode(fields).encode())

    def stream(self, path: str, **headers: str) -> Stream:
        """Server-sent events."""
        connection = self.connect()
        connection.request("GET", path, headers={"Cookie": self.cookie, **headers})
        response = connection.getresponse()
        assert (response.status, response.getheader("content-type")) == (200, "text/event-stream; charset=utf-8")
        self._streams.append(Stream(connection, response))
        return self._streams[-1]

    def forget_streams(self) -> None:
        """Close all that were opened."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def close(self, number: int = signal.SIGINT) -> int:
        """End it as a person does."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        try:
            return self.popen.wait(PATIENCE_S)
        finally:
            self.popen.kill()
            for pipe in (self.popen.stdout, self.popen.stderr):
                if pipe is not None:
                    pipe.close()


WORKER = """
import sys, time
from pathlib import Path
from tenlines import Agent, Control, tool
sys.path.insert(0, ".")
import shop
path, task = sys.argv[1:3]

@tool(read_only=True, repeatable=True)
def step_on(n: int) -> str:
    "Waits for a file."
    while not Path(f"{task}.{n}").exists():
        time.sleep(0.01)
    return f"stepped on {n}"

moves = eval(sys.argv[3])
agent = Agent(moves, [step_on, shop.pay], journal=path)
result = agent.run_sync(task, control=Control(), raise_on_stop=False)
while result.status == "awaiting_approval":
    if agent.pending(result.run_id):
        time.sleep(0.05)
        continue
    rest = Agent(moves[1:], [step_on, shop.pay], journal=path)
    result = rest.resume_sync(result.run_id, control=Control(), raise_on_stop=False)
print(result.status, result.answer)
"""


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A scripted reply with one call."""
    return {"tool_calls": [{"id": "c1", "name": name, "arguments": arguments}]}
