"""Makes this folder's modules importable, and those that start a Postgres; says how much was killed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "journal"))

from postgres_server import postgres_address, postgres_server

__all__ = ["postgres_address", "postgres_server"]

_FIGURES: list[str] = []


@pytest.fixture(scope="session")
def figures() -> list[str]:
    """Where a test leaves a line for the summary."""
    return _FIGURES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was tried."""
    for line in _FIGURES:
        terminalreporter.write_line(line)
