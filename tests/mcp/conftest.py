"""Servers of tools for the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenlines.tools.mcp import McpServers, mcp

sys.path.insert(0, str(Path(__file__).parent))  # for `mcp_world`
sys.path.insert(1, str(Path(__file__).parents[1]))  # for `environments`

from mcp_world import RAW, SMALL, Model


@pytest.fixture
def raw() -> Iterator[Callable[..., McpServers]]:
    """Makes servers of the quick kind; they are ended with the test."""
    made: list[McpServers] = []

    def make(*words: str, **options: object) -> McpServers:
        made.append(mcp([*RAW, *words], **options))  # type: ignore[arg-type]  # options as `mcp` has them
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def small() -> Iterator[McpServers]:
    """The server that was made with the SDK, started once."""
    with mcp(SMALL) as servers:
        yield servers


@pytest.fixture
def model() -> Iterator[Model]:
    """A model on loopback."""
    made = Model()
    yield made
    made.close()
