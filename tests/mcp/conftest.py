"""Servers of tools for the tests, and runs that call them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tenlines import Agent
from tenlines.core.result import RunResult
from tenlines.core.transcript import Reply, Result, ToolCall
from tenlines.tools.mcp import McpServers, mcp

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the servers themselves
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


@pytest.fixture
def raw() -> Iterator[Callable[..., McpServers]]:
    """Makes servers of the quick kind; they are ended with the test."""
    made: list[McpServers] = []

    def make(*words: str, **options: Any) -> McpServers:
        made.append(mcp([*RAW, *words], **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def small() -> Iterator[McpServers]:
    """The server that was made with the SDK, started once."""
    with mcp(SMALL) as servers:
        yield servers
