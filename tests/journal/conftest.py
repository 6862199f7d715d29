"""What the tests of journals share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one

from journal_world import Store, memory_store, postgres_store, sqlite_store
from postgres_server import postgres_address, postgres_server

__all__ = ["postgres_address", "postgres_server"]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each kind of store, empty."""
    if request.param == "postgres":
        store = postgres_store(request.getfixturevalue("postgres_address"))
    else:
        store = memory_store() if request.param == "memory" else sqlite_store(tmp_path)
    yield store
    store.close()
