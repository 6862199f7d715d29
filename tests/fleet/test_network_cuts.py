"""Three workers on machines of their own. One loses Postgres, another one Temporal, each for half a minute and without
a word; the third is well. Nothing is lost, nothing is done twice, and whoever was given up stops."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import NamedTuple

import pytest
from cut_app import KINDS, MODEL_S, TOOL_S, Done
from cut_ground import Ground
from hosts import hosts_or_skip
from postgres_server import PostgresServer
from temporal_server import TemporalServer

from tenlines.core import events as ev
from tenlines.core.children import derived_id
from tenlines.core.replay import fold
from tenlines.core.transcript import Result
from tenlines.journal import open_journal

pytestmark = pytest.mark.slow

HOSTS = NO_POSTGRES, NO_TEMPORAL, WELL = "no-postgres", "no-temporal", "well"
CUT_S = 30.0
EACH, MORE = 6, 3
"""Runs of each worker that is going to be cut off, and of the other one meanwhile."""
STEPS = 13
"""About a second each: the runs outlast the silence after which a worker counts as dead."""
THROUGH_S = 60.0
"""After the mending everything that had been begun is through, at the latest."""
LATE_S = 2.0
"""So late may something come that was due, on a machine that has much to do."""
FIRST = [f"first{number}-{STEPS}" for number in range(2 * EACH)]
MEANWHILE = [f"more{number}-{STEPS}" for number in range(MORE)]
WAVES = [[f"late{wave}.{number}-1" for number in range(12)] for wave in range(5)]
"""New runs that come afterwards, until each worker had one of them."""


class Takeover(NamedTuple):
    """A run changed hands."""

    run_id: str
    task: str
    from_pid: int
    at: float
    started: frozenset[str]
    """The keys of the calls that had been begun by then."""


class Story(NamedTuple):
    """All that happened."""

    ground: Ground
    logs: dict[str, list[ev.AnyEvent]]
    """By task."""
    cut_at: float
    mended_at: float
    seconds: float
    exits: dict[str, int]

    def takeovers(self, host: str) -> list[Takeover]:
        """The runs that others took from a worker."""
        found = [one for task, log in self.logs.items() for one in takeovers_of(task, log)]
        return [one for one in found if one.from_pid == self.ground.pid(host)]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with ExitStack() as held:
        hosts = held.enter_context(hosts_or_skip(HOSTS))
        postgres = held.enter_context(PostgresServer(hosts.ip("postgres"), hosts.inside("postgres")))
        temporal = held.enter_context(TemporalServer(hosts.ip("temporal"), inside=hosts.inside("temporal")))
        ground = Ground(hosts, postgres, temporal, tmp_path_factory.mktemp("cuts"))
        held.enter_context(closing(ground))

        # Both have their hands full before there is a third one.
        ground.start(NO_POSTGRES, EACH)
        ground.start(NO_TEMPORAL, EACH)
        ground.submit(WELL, *FIRST)
        ground.within(30, lambda: all(len(tasks(ground.done_by(one))) == EACH for one in (NO_POSTGRES, NO_TEMPORAL)))
        ground.start(WELL, 3 * EACH)
        ground.submit(WELL, *MEANWHILE)

        cut_at, began = time.time(), time.monotonic()
        hosts.cut(NO_POSTGRES, "postgres")
        hosts.cut(NO_TEMPORAL, "temporal")
        time.sleep(CUT_S)
        mended_at = time.time()
        hosts.mend(NO_POSTGRES, "postgres")
        hosts.mend(NO_TEMPORAL, "temporal")

        with closing(open_journal(ground.store)) as journal:

            def is_all_through() -> bool:
                return all(one.status == "answered" for one in journal.runs())

            ground.within(THROUGH_S, is_all_through)
            submitted = [*FIRST, *MEANWHILE]
            for wave in WAVES:
                ground.submit(WELL, *wave)
                submitted += wave
                ground.within(20, is_all_through)
                if all(news_of(ground, host) for host in HOSTS):
                    break
            seconds = time.monotonic() - began
            logs = {one: list(journal.read(derived_id(f"cut {one}"))) for one in submitted}
        yield Story(ground, logs, cut_at, mended_at, seconds, ground.drain())


def test_no_run_is_lost_and_nothing_is_done_twice(story: Story, say: Callable[[str], None]) -> None:
    keys: dict[str, list[str]] = {}
    for one in story.ground.place.all():
        keys.setdefault(one.item, []).append(one.key)
    counts = Counter(effects=sum(map(len, keys.values())))
    for task, log in story.logs.items():
        state = fold(log).state
        assert state.ended is not None
        assert state.ended.status == "answered", (task, state.ended)
        results = {one.call_id: one for one in state.messages if isinstance(one, Result)}
        for step in range(1, int(task.rpartition("-")[2]) + 1):
            what, result = KINDS[step % len(KINDS)], results[f"c{step}0"]
            assert result.name == what
            done = keys.get(f"{task}/{step}", [])
            counts["in doubt"] += result.outcome == "in_doubt"
            counts["again with the same key"] += len(done) - len(set(done))
            if result.outcome != "in_doubt":
                assert done, f"{what} {task}/{step} is said to be {result.outcome}, and was not done"
            assert len(set(done) if what == "put" else done) <= 1, f"{what} {task}/{step} was done twice: {done}"
    taken = {one: len(story.takeovers(one)) for one in (NO_POSTGRES, NO_TEMPORAL)}
    say(
        f"cut off from Postgres and from Temporal for {CUT_S:.0f} s: {len(story.logs)} runs are through in "
        f"{story.seconds:.0f} s, {dict(counts)}, taken over {taken}"
    )


def test_who_cannot_reach_temporal_is_given_up_and_stops(story: Story) -> None:
    taken = story.takeovers(NO_TEMPORAL)
    assert len(taken) >= EACH // 2
    assert all(story.cut_at < one.at < story.mended_at for one in taken)
    for run_id, _, _, at, _ in taken:
        notice = next(one for one in story.ground.said(NO_TEMPORAL) if one.get("run_id") == run_id)
        assert (notice["what"], notice["text"]) == ("taken", "another worker took it over")
        assert notice["at"] < at + MODEL_S + 2 * TOOL_S + LATE_S  # no later than at its next step


def test_who_cannot_reach_postgres_does_nothing_and_then_goes_on(story: Story) -> None:
    assert story.ground.done_by(NO_POSTGRES, story.cut_at + TOOL_S + LATE_S, story.mended_at) == []
    after = tasks(story.ground.done_by(NO_POSTGRES, since=story.mended_at)) & set(FIRST)
    given_up = {one.run_id for one in story.takeovers(NO_POSTGRES)}
    said = {one["run_id"] for one in story.ground.said(NO_POSTGRES) if one["what"] == "failed"}
    assert given_up <= said  # Temporal saw all the time that it was alive: what others took, it had said that it cannot
    assert len(after) + len(given_up) >= EACH


@pytest.mark.parametrize("host", [NO_POSTGRES, NO_TEMPORAL])
def test_who_was_given_up_begins_nothing_more_for_the_run(story: Story, host: str) -> None:
    for _, task, _, at, started in story.takeovers(host):
        later = [one for one in story.ground.done_by(host, since=at) if one.item.startswith(f"{task}/")]
        # A call that had been begun comes to its end: for the new owner it is in doubt, or its key says that it was.
        assert {one.key for one in later} <= started, later
        assert all(one.at < at + TOOL_S + LATE_S for one in later)


def test_the_third_one_has_noticed_nothing(story: Story) -> None:
    for task in MEANWHILE:
        owners = [one.owner for one in story.logs[task] if isinstance(one, ev.RunResumed)]
        assert [pid_of(one) for one in owners] == [story.ground.pid(WELL)]
        assert story.logs[task][-1].at < story.mended_at


def test_all_go_on_with_new_runs(story: Story) -> None:
    assert all(news_of(story.ground, host) for host in HOSTS)
    assert story.exits == dict.fromkeys(HOSTS, 0)


def tasks(done: list[Done]) -> set[str]:
    """For which runs it was done."""
    return {one.item.partition("/")[0] for one in done}


def news_of(ground: Ground, host: str) -> set[str]:
    """What came afterwards and was worked on there."""
    return {one for one in tasks(ground.done_by(host)) if one.startswith("late")}


def pid_of(owner: str) -> int:
    """The process that an owner is."""
    return int(owner.split("/")[2])


def takeovers_of(task: str, log: list[ev.AnyEvent]) -> Iterator[Takeover]:
    """Each time that a run changed hands."""
    first = log[0]
    assert isinstance(first, ev.RunStarted)
    owner, started = 0, set[str]()
    for event in log:
        if isinstance(event, ev.CallStarted):
            started.add(event.key)
        if isinstance(event, ev.RunResumed):
            if owner not in (0, pid_of(event.owner)):
                yield Takeover(first.run_id, task, owner, event.at, frozenset(started))
            owner = pid_of(event.owner)
