"""Makes the doubles importable, and the arithmetic of money; runs a test once for each driver."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "crash"))

from driver_doubles import WAYS, Way


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    """A driver."""
    way: Way = request.param
    return way
