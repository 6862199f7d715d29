"""Makes the doubles importable, the arithmetic of money, and a Postgres; runs a test once for each driver."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "crash"))
sys.path.insert(0, str(Path(__file__).parent.parent / "journal"))

from driver_doubles import WAYS, Way
from postgres_server import postgres_address, postgres_server

__all__ = ["postgres_address", "postgres_server"]


@pytest.fixture(params=WAYS, ids=str)
def way(request: pytest.FixtureRequest) -> Way:
    """A driver."""
    way: Way = request.param
    return way
