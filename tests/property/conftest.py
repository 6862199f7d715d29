"""Makes this folder's own modules importable, sets the profiles, and counts what ran."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
settings.register_profile("ci", max_examples=200, derandomize=True, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("soak", max_examples=5000, deadline=None, suppress_health_check=_QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

COUNTS: Counter[str] = Counter()
"""What the tests did, for the summary."""


@pytest.fixture(scope="session")
def counts() -> Counter[str]:
    """Where a test adds up what it did."""
    return COUNTS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was tried; a law is worth what it was tried against."""
    if seeded := COUNTS.pop("faults seeded", 0):
        terminalreporter.write_line(f"faults caught: {COUNTS.pop('faults caught', 0)} of {seeded}")
    for what, number in sorted(COUNTS.items()):
        terminalreporter.write_line(f"{what}: {number:,}")
