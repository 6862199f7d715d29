"""Makes the harness importable and gives each case its world, once for every way to run an agent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from case_world import CASES, MODES, World, case_id


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every case runs through both drivers, watched and not watched."""
    if "world" in metafunc.fixturenames:
        only = {mark.args[0] for mark in metafunc.definition.iter_markers("driver")}
        modes = [mode for mode in MODES if not only or mode.driver in only]
        metafunc.parametrize("world", modes, indirect=True, ids=str)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of cases that only one driver can have."""
    config.addinivalue_line("markers", "driver(name): the case can only happen under this driver")


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """The case that the test is named after, in one mode."""
    name = case_id(request.node.function.__name__)
    assert name is not None
    world = World(CASES[name], request.param, tmp_path)
    yield world
    world.close()
