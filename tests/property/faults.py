"""Deliberate faults, and the quick version of the laws that has to catch each of them.

A test-suite is worth what it catches. Each fault is a small change to the source of the core, of the kind that a
tired person makes. `test_faults.py` seeds them one at a time into a copy and runs this file against it.
"""

from __future__ import annotations

import sys

from faults_of_leave import LEAVE
from faults_of_the_loop import LOOP

FAULTS = LOOP + LEAVE


def quick_check(walks: int = 700, depth: int = 3) -> None:
    """A short version of every test here: the first law that is broken raises."""
    from alphabet import Seeded
    from exhaustive import CASES, STARTS, enumerate_all, scene
    from work import check_work
    from world import World, walk

    for seed in range(walks // 10):
        world = World(Seeded(seed))
        for event in world.hostile():
            world.run.refuse(event)
        world.begin()
        for _ in range(6):
            for event in world.hostile():
                world.run.refuse(event)
            world.drive()
    check_work(20, 200)
    for seed in range(walks):
        walk(seed)
    for name, settings, _ in CASES:
        for _ in enumerate_all(scene(name, STARTS[settings]), depth):
            pass
    for seed in range(walks, 8 * walks):
        walk(seed)


if __name__ == "__main__":
    try:
        quick_check()
    except Exception as caught:
        sys.exit(f"caught: {type(caught).__name__}: {caught}"[:300])
