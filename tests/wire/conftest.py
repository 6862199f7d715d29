"""Makes what the tests of the formats share importable (`from transcripts import transcripts`), and counts."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

JUDGED: Counter[str] = Counter()
"""What the independent judges were shown and what they refused, for the summary."""


@pytest.fixture(scope="session")
def judged() -> Counter[str]:
    """Where a test adds up what was judged."""
    return JUDGED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was judged."""
    for what, number in sorted(JUDGED.items()):
        terminalreporter.write_line(f"{what}: {number:,}")
