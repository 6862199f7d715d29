"""Deliberate faults, and the quick version of the laws that has to catch each of them.

A test-suite is worth what it catches. Each fault is a small change to the source of the core, of the kind that a
tired person makes. `test_faults.py` seeds them one at a time into a copy and runs this file against it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from faults_of_answers import ANSWERS
from faults_of_children import CHILDREN
from faults_of_cuts import CUTS
from faults_of_leave import LEAVE
from faults_of_money import MONEY
from faults_of_the_loop import LOOP

FAULTS = LOOP + LEAVE + MONEY + CUTS + CHILDREN + ANSWERS


ROUNDS = ((2, 30, 1), (15, 150, 2), (40, 600, 0), (60, 1_200, 3), (60, 5_600, 0))
"""Worlds in which everything hostile is tried, random logs, and the depth of all short logs: a little of each first,
because most faults show at once. A third as many logs about money, and a sixth about cuts, which are longer."""


Stage: TypeAlias = "tuple[str, Callable[[], object]]"
"""A small part of the quick version, by its name."""


def stages() -> Iterator[Stage]:
    """A short version of every test here, in the order in which it is tried. Each stage raises where a law is broken,
    whatever ran before it."""
    from exhaustive import CASES
    from work import check_work
    from world import KINDS_OF_WORLD, LONGER, walk

    worlds = walks = 0
    for to_world, to_walk, depth in ROUNDS:
        for seed in range(worlds, to_world):
            for kind in KINDS_OF_WORLD:
                moves = 30 if kind == "long" and not seed % 5 else 6
                yield f"hostile {seed} {kind}", partial(refuse_everything_hostile, seed, kind, moves)
        yield f"work {depth}", partial(check_work, 20, 200)
        for seed in range(walks, to_walk):
            yield f"walk {seed}", partial(walk, seed)
            if not seed % 3:
                yield f"walk {seed} money", partial(walk, seed, LONGER, "money")
            if not seed % 6:
                yield f"walk {seed} long", partial(walk, seed, LONGER, "long")
        for name, settings, _ in CASES:
            yield f"every {name} {settings} {depth}", partial(try_every_log, name, settings, depth)
        worlds, walks = to_world, to_walk


def quick_check(first: str = "") -> None:
    """The first law that is broken raises, with a note of the stage.

    Args:
        first: A stage that is tried before all others, since it found the fault when it was looked for last.
    """
    ordered = [one for one in stages() if one[0] == first] if first else []
    for name, check in chain(ordered, stages()):
        try:
            check()
        except Exception as error:
            error.add_note(name)
            raise


def try_every_log(name: str, settings: str, depth: int) -> None:
    """All short logs of a case."""
    from exhaustive import STARTS, enumerate_all, scene

    for _ in enumerate_all(scene(name, STARTS[settings]), depth):
        pass


def refuse_everything_hostile(seed: int, kind: Any, moves: int) -> None:
    """Not a sample: all that the hostile world knows, at every place of a short log."""
    from alphabet import Seeded
    from world import World

    world = World(Seeded(seed), kind)
    for event in world.hostile():
        world.run.refuse(event)
    world.begin()
    for _ in range(moves):
        for event in world.hostile():
            world.run.refuse(event)
        world.drive()


if __name__ == "__main__":
    try:
        quick_check(*sys.argv[1:])
    except Exception as caught:
        sys.exit(f"caught: {caught.__notes__[-1]}: {type(caught).__name__}: {caught}"[:300])
