"""One reader for each thing that is watched, however many watch it, and none while nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tenlines.errors import RunNotFound
from tenlines.report import Fragment
from tenlines.serve import tails
from tenlines.serve.boards import NOWHERE, Board, Mark
from tenlines.serve.tails import News, Tail, Tails


class Counter:
    """Something that changes whenever it is told to."""

    def __init__(self) -> None:
        self.board, self.count, self.looks = Board("e"), 0, 0
        self.is_due, self.is_gone = False, False

    def look(self) -> bool:
        self.looks += 1
        if self.is_gone:
            raise RunNotFound("it is gone")
        if not self.is_due:
            return False
        self.is_due = False
        self.count += 1
        return self.board.touch(["count"])

    def changes(self, mark: Mark) -> tuple[Mark, list[Fragment]]:
        return self.board.mark, [Fragment(id, str(self.count)) for id in self.board.since(mark)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "FIRST_WAIT_S", 0.005)
    monkeypatch.setattr(tails, "LONGEST_WAIT_S", 0.01)


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 10))


async def change(sight: Counter) -> None:
    """Have it change, and wait until that was seen."""
    before, sight.is_due = sight.count, True
    for _ in range(5000):
        if sight.count > before:
            return
        await asyncio.sleep(0.002)
    raise AssertionError("nobody looked")


async def told(news: Any) -> str:
    """The next piece that a viewer is told."""
    while not (pieces := (await anext(news)).pieces):
        pass
    return pieces[0].html


def test_all_viewers_are_told_by_one_reader() -> None:
    async def work() -> None:
        sight = Counter()
        tail = Tail(sight)
        viewers = [tail.follow(NOWHERE) for _ in range(5)]
        firsts = [asyncio.create_task(told(viewer)) for viewer in viewers]
        await asyncio.sleep(0.05)
        looks = sight.looks
        await asyncio.sleep(0.2)
        assert sight.looks - looks < 45  # one every 10 ms at most, not one for each viewer
        await change(sight)
        assert await asyncio.gather(*firsts) == ["1"] * 5
        for viewer in viewers:
            await viewer.aclose()

    run(work)


def test_a_slow_viewer_holds_nobody_up_and_gets_the_last_state_alone() -> None:
    async def work() -> None:
        sight = Counter()
        tail = Tail(sight)
        slow, quick = tail.follow(NOWHERE), tail.follow(NOWHERE)
        first = asyncio.create_task(told(slow))
        await change(sight)
        assert await first == "1"  # and now it does not come back for a while
        for number in range(2, 30):
            await change(sight)
            assert int(await told(quick)) <= number
        assert await told(slow) == "29"
        await slow.aclose()
        await quick.aclose()

    run(work)


def test_nobody_looks_while_nobody_watches() -> None:
    async def work() -> None:
        sight = Counter()
        tail = Tail(sight)
        viewer = tail.follow(NOWHERE)
        first = asyncio.create_task(told(viewer))
        await change(sight)
        await first
        await viewer.aclose()
        assert tail.viewers == 0
        await asyncio.sleep(0.05)
        looks = sight.looks
        await asyncio.sleep(0.05)
        assert sight.looks == looks
        again = tail.follow(sight.board.mark)
        first = asyncio.create_task(told(again))
        await change(sight)
        assert await first == "2"
        await again.aclose()

    run(work)


def test_after_a_while_without_news_a_viewer_hears_that_it_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "HEARTBEAT_S", 0.01)

    async def work() -> None:
        tail = Tail(Counter())
        viewer = tail.follow(tail.sight.board.mark)
        assert await anext(viewer) == News(tail.sight.board.mark, [])
        await viewer.aclose()

    run(work)


def test_what_cannot_be_looked_at_any_more_lets_its_viewers_go_and_says_why() -> None:
    async def work() -> None:
        sight, kept = Counter(), Tails[Counter]()
        tail = kept.keep("x", Tail(sight))
        watching = asyncio.create_task(_all(tail.follow(NOWHERE)))
        await change(sight)
        sight.is_gone = True
        assert len(await watching) == 1
        assert tail.failure == "it is gone"
        assert kept.find("x") is None
        with pytest.raises(RunNotFound):
            await Tail(sight).look()

    run(work)


async def _all(news: Any) -> list[News]:
    return [one async for one in news if one.pieces]


def test_at_the_end_all_are_let_go_at_once_also_who_comes_late() -> None:
    async def work() -> None:
        kept = Tails[Counter]()
        watching = [asyncio.create_task(_all(kept.keep(name, Tail(Counter())).follow(NOWHERE))) for name in "abc"]
        await asyncio.sleep(0.02)
        kept.end()
        assert await asyncio.gather(*watching) == [[], [], []]
        assert await _all(kept.keep("d", Tail(Counter())).follow(NOWHERE)) == []

    run(work)


def test_of_what_nobody_watches_only_the_last_are_kept() -> None:
    async def work() -> None:
        kept = Tails[Counter]()
        watched = kept.keep("watched", Tail(Counter()))
        viewer = watched.follow(NOWHERE)
        first = asyncio.create_task(anext(viewer))
        await asyncio.sleep(0.02)
        for number in range(100):
            kept.keep(str(number), Tail(Counter()))
        assert kept.find("watched") is watched
        assert kept.find("0") is None
        assert kept.find("99") is not None
        assert len(kept._kept) <= tails.MOST_KEPT + 2
        mine = Tail(Counter())
        assert kept.keep("99", mine) is not mine  # somebody else was quicker
        first.cancel()

    run(work)
