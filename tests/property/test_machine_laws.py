"""The laws of the machine, at every prefix of many logs: honest, interrupted, and hostile ones."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest
from alphabet import Seeded
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from laws import Checked
from msgspec import Struct
from stills import still
from work import check_work, work_of_calls, work_of_leave, work_of_spending
from world import KINDS_OF_WORLD, LONGER, Kind, World, walk

from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.state import Phase
from tenlines.core.transcript import Text, User

WALKS = 9_000
BLOCK = 3_000


def told(world: World | None) -> str:
    """A log as code, to be pasted into a test."""
    return "" if world is None else "\n".join(f"machine.apply(ev.{event!r})" for event in world.log)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, WALKS, BLOCK))
def test_every_law_holds_at_every_prefix_of_random_logs(first: int, counts: Counter[str]) -> None:
    for seed in range(first, first + BLOCK):
        try:
            world = walk(seed)
        except AssertionError as error:
            pytest.fail(f"walk({seed}): {error or 'a law was broken'}\n{told(last_world(error))}")
        counts["random event sequences"] += 1
        counts["events in random sequences"] += len(world.log)


def last_world(error: BaseException) -> World | None:
    """The world in which a walk failed, found in the frames of its error."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is walk.__code__:
            found = trace.tb_frame.f_locals.get("world")
        trace = trace.tb_next
    return found


def test_a_walk_that_fails_can_be_told_as_code() -> None:
    assert "machine.apply(ev.RunStarted(" in told(walk(0))


def test_the_same_seed_walks_the_same_way() -> None:
    assert walk(7).log == walk(7).log


def changing(value: Any, found: dict[int, Any]) -> dict[int, Any]:
    """All that may change in a value, and whatever is in it."""
    if isinstance(value, dict | list | set) or (isinstance(value, Struct) and not value.__struct_config__.frozen):
        if id(value) in found:
            return found
        found[id(value)] = value
    inner: Any = value.values() if isinstance(value, dict) else value if isinstance(value, list | set | tuple) else ()
    if id(value) in found and isinstance(value, Struct):
        inner = [getattr(value, name) for name in value.__struct_fields__]
    for one in inner:
        changing(one, found)
    return found


@pytest.mark.parametrize("kind", KINDS_OF_WORLD)
def test_a_copy_of_a_machine_knows_the_same_and_shares_nothing_that_changes(kind: Kind) -> None:
    for seed in range(15):
        machine = walk(seed, LONGER, kind).run.machine
        twin = still(machine)
        assert twin.state == machine.state
        ours, its = changing(machine.state, {}), changing(twin.state, {})
        assert not ours.keys() & its.keys()
        one_thing_each = [sum(isinstance(one, Struct) for one in found.values()) for found in (ours, its)]
        assert one_thing_each[0] == one_thing_each[1], "what stood in several places has become several things"


# --- the same world in the hands of hypothesis ------------------------------------------------------------


class Drawn:
    """A chooser that hypothesis can shrink."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def pick(self, options: Any) -> Any:
        return options[self.data.draw(st.integers(0, len(options) - 1))]


class MachineRules(RuleBasedStateMachine):
    """Every rule is something that the outside world may do. The laws are checked inside, after each event."""

    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.world = World(Seeded(0))

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.world.chooser = Drawn(data)
        self.world.begin()
        self.counts["random event sequences"] += 1

    def _on(self, data: st.DataObject) -> World:
        self.world.chooser = Drawn(data)
        return self.world

    def _is(self, *phases: Phase) -> bool:
        return self.world.run.phase in phases

    @precondition(lambda self: self._is(Phase.READY))
    @rule(data=st.data())
    def the_driver_asks_waits_or_ends(self, data: st.DataObject) -> None:
        self._on(data).drive()

    @precondition(lambda self: self._is(Phase.AWAITING_MODEL))
    @rule(data=st.data())
    def the_model_replies_or_fails(self, data: st.DataObject) -> None:
        self._on(data).answer_request()

    @precondition(lambda self: self._is(Phase.AWAITING_TOOLS))
    @rule(data=st.data())
    def a_call_starts_ends_or_is_refused(self, data: st.DataObject) -> None:
        self._on(data).drive()

    @rule(data=st.data())
    def time_passes(self, data: st.DataObject) -> None:
        self._on(data).pass_time()

    @rule(data=st.data())
    def somebody_speaks_cancels_or_raises_a_limit(self, data: st.DataObject) -> None:
        self._on(data).speak()

    @rule(data=st.data())
    def the_process_dies_and_another_takes_over(self, data: st.DataObject) -> None:
        self._on(data).restart()

    @precondition(lambda self: self.world.run.facts.owed)
    @rule(data=st.data())
    def a_call_that_was_given_up_reports_late(self, data: st.DataObject) -> None:
        self._on(data).arrive_late()

    @rule(data=st.data())
    def somebody_hostile_tells_what_cannot_be(self, data: st.DataObject) -> None:
        self._on(data).be_hostile()

    @invariant()
    def every_law_holds(self) -> None:
        self.world.run.check()


@pytest.mark.slow
def test_every_law_holds_in_what_hypothesis_finds(counts: Counter[str]) -> None:
    MachineRules.counts = counts
    profile = settings.get_profile(settings.get_current_profile_name())
    MachineRules.TestCase.settings = settings(profile, max_examples=profile.max_examples, stateful_step_count=25)
    MachineRules.TestCase().runTest()


def test_everything_hostile_is_refused_in_every_phase(counts: Counter[str]) -> None:
    """Not a sample: all that the hostile world knows, at many places."""
    phases: set[Phase] = set()
    worlds = [World(Seeded(seed)) for seed in range(40)]
    worlds += [World(Seeded(seed), kind) for kind in KINDS_OF_WORLD[1:] for seed in range(20)]
    for world in worlds:
        for event in world.hostile():
            world.run.refuse(event)
        world.begin()
        for _ in range(40 if world.kind == "long" else 12):
            phases.add(world.run.phase)
            for event in world.hostile():
                world.run.refuse(event)
                counts["hostile events refused"] += 1
            world.drive()
    assert phases == set(Phase) - {Phase.NEW}


# --- law 11: work is bounded by the event, not by the history ---------------------------------------------


def test_law_11_an_event_costs_the_same_after_2000_steps_as_after_20() -> None:
    check_work(20, 2_000)


def test_law_11_taking_the_transcript_for_a_request_costs_nothing() -> None:
    run = Checked()
    run.take(ev.RunStarted(seq=0, at=1.0, run_id="r", agent="a", model="m", messages=(User((Text("x"),)),)))
    effect = run.machine.next(1.0)
    assert isinstance(effect, CallModel)
    assert effect.messages[0] is run.machine.state.messages[0]


def test_law_11_answering_many_calls_of_one_message_is_not_quadratic() -> None:
    assert work_of_calls(400) < 11 * work_of_calls(40)


def test_law_11_what_many_calls_of_one_message_may_spend_is_not_quadratic() -> None:
    assert work_of_spending(400) < 11 * work_of_spending(40)


@pytest.mark.parametrize("by_whom", ["policy", "ann"])
def test_law_11_leave_for_many_calls_of_one_message_is_not_quadratic(by_whom: str) -> None:
    assert work_of_leave(400, by_whom) < 11 * work_of_leave(40, by_whom)
