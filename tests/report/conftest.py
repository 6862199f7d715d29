"""What the tests of the report share: runs that were told what happens, and one browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent.parent
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(TESTS / "core"))  # runs that are told what happens
sys.path.insert(0, str(TESTS))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests of pages."""
    from browser import browser

    with browser() as one:
        yield one
