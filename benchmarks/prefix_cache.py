"""What a real server evaluates of each request of a run, when the requests only grow at their end and when they do not.

    python benchmarks/prefix_cache.py [--quick] [--steps N] [--model FILE.gguf] [--out FILE.json]

An `Agent` works with the local model (`tenlines[local,anthropic]`, psutil). A proxy on loopback stands between its
client and llama.cpp: it passes every byte on as it is and notes what the server says it used. So every count of tokens
is the server's own. *New* tokens of a step are those of its request, less those of the request before, less those of
the model's own reply to that one, whose words the server has in its cache since it wrote them. Six minutes of one core.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import psutil
from rich.console import Console
from rich.table import Column, Table

from tenlines import Agent, Limits, Reply, Settings, ToolCall, tool
from tenlines.core.context import Compaction
from tenlines.core.effects import CallModel
from tenlines.core.events import ContextCompacted
from tenlines.core.limits import Repeats
from tenlines.core.transcript import Message, Result, System, Text, TranscriptView
from tenlines.journal.memory import MemoryJournal
from tenlines.models.anthropic import Anthropic
from tenlines.models.local import LocalModel
from tenlines.models.openai_compatible import OpenAICompatible
from tenlines.ports import Model

STEPS = 12
MOST_OVER_NEW = 1.05
"""Tokens that a step may have evaluated for each token that is new in it."""
LEAST_BEHIND_EDIT = 0.95
"""Part of what stands behind an edit that has to be seen to be evaluated again; else nothing is proved."""
KEEP = 2
"""The newest results, which are not elided."""
WINDOW = 4

# --- the task -------------------------------------------------------------------------------------------

TASK = "How many crates were damaged, over all reports?"
PLACES = ("hall", "yard", "dock", "loft", "cellar", "office", "workshop", "kitchen", "garden", "gate", "roof", "lift")


@tool(read_only=True)
def read_report(number: int) -> str:
    """Read one report of the inspector; there is one for each number from 1."""
    place = PLACES[number % len(PLACES)]
    return (
        f"Report {number}, {place}. The inspector came at {7 + number % 9}:{10 + number % 50} and found "
        f"{number * 3 % 17 + 2} crates, {number * 7 % 11 + 1} of them damaged on one side. The lamp was out; a spare "
        f"lamp with the serial number {number * 7919 % 90000 + 10000} was put in its place. Temperature "
        f"{number * 5 % 20 + 4} degrees, humidity {number * 11 % 50 + 30} per cent. The door was locked again at "
        f"{9 + number % 9}:{10 + number * 3 % 50}, the key went to shift {number % 4 + 1}. The windows were shut, and "
        f"water was found in {number % 3} places. Nothing else was noticed."
    )


# --- what the server says ---------------------------------------------------------------------------------


class Request(NamedTuple):
    """One request, in the server's own numbers."""

    tokens: int
    evaluated: int
    reply: str
    """Text of the reply."""
    seconds: float


class Proxy(ThreadingHTTPServer):
    """Passes requests on to a server, unchanged, and notes what comes back."""

    daemon_threads = True

    def __init__(self, address: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.behind = urlsplit(address)
        self.address = f"http://127.0.0.1:{self.server_port}{self.behind.path}"
        self.requests: list[Request] = []


class _Passing(BaseHTTPRequestHandler):
    server: Proxy

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Ask the server behind."""
        body = self.rfile.read(int(self.headers["content-length"]))
        begin = time.perf_counter()
        status, data = post(f"{self.server.behind.scheme}://{self.server.behind.netloc}{self.path}", body)
        if status == http.HTTPStatus.OK:
            self.server.requests.append(as_request(json.loads(data), time.perf_counter() - begin))
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def post(address: str, body: bytes) -> tuple[int, bytes]:
    """Status and body of the answer."""
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.netloc)
    try:
        connection.request("POST", url.path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def as_request(answer: Any, seconds: float) -> Request:
    """What the server says of a request, in any of the three formats."""
    usage = answer["usage"]
    if "cache_read_input_tokens" in usage:  # Messages: what was cached is counted apart
        return Request(usage["input_tokens"] + usage["cache_read_input_tokens"], usage["input_tokens"], "", seconds)
    if "input_tokens" in usage:
        cached = usage["input_tokens_details"]["cached_tokens"]
        return Request(usage["input_tokens"], usage["input_tokens"] - cached, "", seconds)
    text = answer["choices"][0]["message"]["content"] or ""
    return Request(usage["prompt_tokens"], answer["timings"]["prompt_n"], text, seconds)


def tokens_of(text: str, address: str) -> int:
    """Tokens of a text, by the server's own tokenizer."""
    root = address.removesuffix("/v1")
    _, answer = post(f"{root}/tokenize", json.dumps({"content": text, "add_special": False}).encode())
    return len(json.loads(answer)["tokens"])


@contextmanager
def proxy_to(address: str) -> Iterator[Proxy]:
    """A proxy for one run."""
    proxy = Proxy(address)
    threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()


# --- ways to send a run -----------------------------------------------------------------------------------

Change = Callable[[list[Message], int], list[Message]]
"""What is sent in place of the transcript at a step."""


class Changing:
    """A model that is sent another transcript than the run's, built anew at each step."""

    name = "changing"

    def __init__(self, model: Model, change: Change) -> None:
        self._model, self._change = model, change

    def session(self) -> Changing:
        """Nothing is kept from one step to the next."""
        return self

    def complete(self, request: CallModel, on_delta: Any) -> Reply:
        """Ask with the other transcript."""
        messages = self._change(list(request.messages), request.step)
        view = TranscriptView(messages, len(messages))
        return self._model.session().complete(msgspec.structs.replace(request, messages=view, new_from=0), on_delta)


class Steered:
    """A model that is really asked, for one token, and whose reply is replaced: the small one is no good at a server's
    own tool calls. The words of the call are then new to the server in the next request."""

    name = "steered"

    def __init__(self, model: Model) -> None:
        self._inner = model.session()

    def session(self) -> Steered:
        """The one conversation."""
        return self

    def complete(self, request: CallModel, on_delta: Any) -> Reply:
        """Ask, and say something else."""
        self._inner.complete(msgspec.structs.replace(request, max_output_tokens=1, tool_choice="auto"), on_delta)
        arguments = json.dumps({"number": request.step})
        return Reply(calls=(ToolCall(f"call_{request.step}", "read_report", arguments),), stop="tool_calls")


def with_clock(messages: list[Message], step: int) -> list[Message]:
    """The time of the step in the system prompt."""
    system = messages[0]
    assert isinstance(system, System)
    return [System(f"It is 12:{step:02}. {system.text}"), *messages[1:]]


def with_edit(messages: list[Message], step: int, *, at: int) -> list[Message]:
    """A word put before the first result, from step `at` on."""
    if step < at:
        return messages
    return [prefixed(one) if index == 3 else one for index, one in enumerate(messages)]


def prefixed(message: Message) -> Message:
    """A result, marked as corrected."""
    assert isinstance(message, Result)
    return msgspec.structs.replace(message, parts=(Text("Corrected. "), *message.parts))


def with_elided(messages: list[Message], step: int) -> list[Message]:
    """All results but the newest become a line."""
    old = max(0, step - 1 - KEEP)
    return [
        elided(one) if isinstance(one, Result) and index < 2 + 2 * old else one for index, one in enumerate(messages)
    ]


def elided(result: Result) -> Result:
    """The line that stands for a result."""
    return msgspec.structs.replace(result, parts=(Text(f"({len(result.text)} characters, left out)"),))


def with_window(messages: list[Message], step: int) -> list[Message]:
    """Only the newest exchanges, behind the instructions and the task."""
    return messages[:2] + messages[2:][-2 * WINDOW :]


class Way(NamedTuple):
    """How a run is sent."""

    name: str
    model: Callable[[LocalModel, str], Any]
    """Made for the address of the proxy."""
    is_stable: bool = False
    """Whether each request begins as the one before (but for the cuts of a compaction)."""
    is_steered: bool = False
    compaction: Compaction | None = None


def own(local: LocalModel, address: str) -> Any:
    """The local model as it is: replies held to a schema, in the model's own words."""
    return local.connect(address)


def changing(change: Change) -> Callable[[LocalModel, str], Any]:
    """The local model, with another transcript."""
    return lambda local, address: Changing(local.connect(address), change)


def edit_step(steps: int) -> int:
    """In the middle of the run."""
    return steps // 2 + 1


def ways(steps: int) -> list[Way]:
    """All of them; the first two are the short version."""

    def native(make: Callable[..., Model], **options: Any) -> Callable[[LocalModel, str], Any]:
        return lambda _, address: Steered(make("local", base_url=address, temperature=0.0, **options))

    once = Compaction(strategies=("drop",), at=100 * steps)
    return [
        Way("append-only", own, is_stable=True),
        Way("first result edited", changing(partial(with_edit, at=edit_step(steps)))),
        Way("clock in the system prompt", changing(with_clock)),
        Way("old results elided at every step", changing(with_elided)),
        Way("compaction, old exchanges dropped", own, is_stable=True, compaction=once),
        Way(f"window of {WINDOW} exchanges", changing(with_window)),
        Way("append-only, Chat Completions", native(OpenAICompatible, api="chat"), is_stable=True, is_steered=True),
        Way("append-only, Responses", native(OpenAICompatible, api="responses"), is_stable=True, is_steered=True),
        Way("append-only, Messages", native(Anthropic), is_stable=True, is_steered=True),
    ]


# --- measuring ------------------------------------------------------------------------------------------


def measure(way: Way, number: int, local: LocalModel, steps: int) -> dict[str, Any]:
    """One run. Its number is its first word, so that nothing of another run is found in the cache."""
    address = local.address()
    settings = Settings(
        limits=Limits(steps=steps),
        tool_choice="required",
        keep_tool_choice=True,
        max_output_tokens=64,
        repeats=Repeats(told_after=None),
        compaction=way.compaction,
    )
    instructions = f"{number}. You are a clerk. Read all reports, one after another."
    before = server_cpu()
    with proxy_to(address) as proxy:
        model = way.model(local, proxy.address)
        agent = Agent(
            model,
            [read_report],
            instructions=instructions,
            settings=settings,
            journal=MemoryJournal(),
            read_results=False,  # the same tools in all runs
        )
        result = agent.run_sync(TASK, raise_on_stop=False)
    if len(proxy.requests) != steps or result.status != "max_steps":
        sys.exit(f"{way.name}: {len(proxy.requests)} of {steps} requests were answered; {result.reason}")
    cpu = server_cpu() - before
    cuts = sum(isinstance(event, ContextCompacted) for event in agent.journal.read(result.run_id))
    replies = [0 if way.is_steered else tokens_of(one.reply, address) for one in proxy.requests]
    return {
        "way": way.name,
        "sent": sum(one.tokens for one in proxy.requests),
        "evaluated": sum(one.evaluated for one in proxy.requests),
        "wall s": sum(one.seconds for one in proxy.requests),
        "CPU s": cpu,
        "steps": as_rows(proxy.requests, replies),
        "cuts": cuts,
        "is_stable": way.is_stable,
    }


def server_cpu() -> float:
    """CPU seconds of this process's children, of which the server is the only one: what no neighbour can slow down."""
    return sum(sum(one.cpu_times()[:2]) for one in psutil.Process().children())


def as_rows(requests: list[Request], replies: list[int]) -> list[dict[str, Any]]:
    """A line for each step."""
    known = [0, *(one.tokens + reply for one, reply in zip(requests, replies, strict=True))]
    return [
        {
            "step": step,
            "tokens": one.tokens,
            "known": before,
            "new": one.tokens - before,
            "evaluated": one.evaluated,
            "evaluated / new": one.evaluated / (one.tokens - before) if one.tokens > before else None,
        }
        for step, one, before in zip(itertools.count(1), requests, known, strict=False)
    ]


def worst_step(rows: list[dict[str, Any]]) -> float:
    """The most that was evaluated for each new token; where a cut made the request smaller, there are none."""
    return max(row["evaluated / new"] for row in rows if row["new"] > 0)


def behind_edit(rows: list[dict[str, Any]]) -> float:
    """What was evaluated at the edit, as a part of all that stands behind the model's first call."""
    row = rows[edit_step(len(rows)) - 1]
    return float(row["evaluated"] / (row["tokens"] - rows[1]["known"]))


# --- showing --------------------------------------------------------------------------------------------


def verdicts(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures that have a target."""
    found = []
    for run in runs:
        if run["is_stable"]:
            worst = worst_step(run["steps"])
            figure, target = f"{run['way']}: evaluated / new, worst step", f"<= {MOST_OVER_NEW}"
            found.append({"figure": figure, "measured": worst, "target": target, "ok": worst <= MOST_OVER_NEW})
    edited = runs[1]["steps"]
    part, target = behind_edit(edited), f">= {LEAST_BEHIND_EDIT}"
    figure = f"edited at step {edit_step(len(edited))}: evaluated again, of all behind the edit"
    return [*found, {"figure": figure, "measured": part, "target": target, "ok": part >= LEAST_BEHIND_EDIT}]


def cell(value: Any) -> str:
    """A figure of a table."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "ok" if value else "FAILED"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if value < 10 else f"{value:.0f}"


def show_table(console: Console, title: str, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """Print the columns that are named."""
    table = Table(
        *(Column(name, justify="right" if name not in ("way", "figure") else "left") for name in columns), title=title
    )
    for row in rows:
        table.add_row(*(cell(row[column]) for column in columns))
    console.print(table)


def show(report: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console(width=110)
    for run in report["runs"][:2]:
        show_table(console, run["way"], run["steps"], ("step", "tokens", "new", "evaluated", "evaluated / new"))
    show_table(console, "whole runs", report["runs"], ("way", "cuts", "sent", "evaluated", "wall s", "CPU s"))
    show_table(console, "against the targets", report["verdicts"], ("figure", "measured", "target", "ok"))


def main() -> None:
    """Measure, print, write; exit code 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only append-only and edited")
    parser.add_argument("--steps", type=int, default=STEPS, help="requests of a run, from 6")
    parser.add_argument("--model", default="small", help="a GGUF file; by default the built-in one of 0.5B parameters")
    default = Path(__file__).parent / "out" / "prefix_cache.json"
    parser.add_argument("--out", default=str(default), help="where the JSON goes")
    options = parser.parse_args()
    local = LocalModel(options.model, threads=1)
    chosen = ways(options.steps)[: 2 if options.quick else None]
    runs = [measure(way, number, local, options.steps) for number, way in enumerate(chosen, 1)]
    report = {"python": platform.python_version(), "runs": runs, "verdicts": verdicts(runs)}
    show(report)
    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=2) + "\n")
    sys.exit(0 if all(row["ok"] for row in report["verdicts"]) else 1)


if __name__ == "__main__":
    main()
