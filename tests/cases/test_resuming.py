"""Processes that die in the middle of a run, and others that go on with it."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import Any

import pytest
from case_processes import KILLED, Effects, die, dies_once_stored, in_process
from case_world import World, calls, says

from tenlines import CallContext, Limits
from tenlines.core import events as ev
from tenlines.core.limits import Price
from tenlines.journal.sqlite import SqliteJournal


def test_res_01_a_call_that_was_cut_off_by_a_crash_is_in_doubt_and_never_repeated(world: World) -> None:
    """It is known from the disk alone that it had started."""
    store, effects, on_disk = world.store(), Effects(world.folder), Effects(world.folder / "..")

    @world.tool
    def send(to: str, ctx: CallContext) -> str:
        """Send."""
        reader = SqliteJournal(store.path)
        for event in reader.read(ctx.run_id):
            on_disk.add(type(event).__name__)
        effects.add(to)
        die()

    assert in_process(world.play) == KILLED
    assert on_disk.all[-1] == "CallStarted"
    assert effects.all == ["acct-9"]
    said = "I cannot tell whether it was sent."
    run = world.play(resume=world.newest, model=[says(said)])
    run.expect(tool_runs={"send": 0})  # in this process; the deliveries are those of both
    assert effects.all == ["acct-9"]
    assert run.result.answer == said
    assert "Whether it took effect is not known" in run.call("a").text
    assert "Check before you do it again" in run.call("a").text
    assert run.sent[0][-1]["content"] == run.call("a").text


def test_res_02_a_stored_result_is_used_and_not_computed_again(world: World) -> None:
    store, effects = world.store(), Effects(world.folder)

    @world.tool
    def t() -> str:
        """T."""
        effects.add("t")
        return "r"

    def until_it_is_stored() -> None:
        world.store(dies_once_stored(1))
        world.play()

    assert in_process(until_it_is_stored) == KILLED
    run_id = world.newest
    assert [type(event) for event in store.read(run_id)].count(ev.CallReturned) == 1
    second = world.play(resume=run_id, model=[says("r")])
    second.expect(model_calls=1, tool_runs={"t": 0})  # one was before, in the other process
    assert effects.all == ["t"]
    assert [message["content"] for message in second.sent[0] if message["role"] == "tool"] == ["r"]
    before = list(store.read(run_id))
    third = world.play(resume=run_id, model=[says("never")]).expect(model_calls=0, tool_runs={"t": 0})
    assert third.result.answer == second.result.answer == "r"
    assert list(store.read(run_id)) == before
    assert effects.all == ["t"]


def test_res_05_limits_and_sums_go_on_and_a_tool_that_is_gone_stays_in_the_history(world: World) -> None:
    world.store()
    price = Price(input=1.0, output=10.0)
    world.tool(lambda: "r", name="t")
    world.tool(lambda: "x", name="old")

    def until_the_third_request(request: Any) -> Any:
        if request.step == 3:
            die()
        return world.input["model"][request.step - 1]

    dying = partial(world.play, model=until_the_third_request, limits=Limits(steps=4), price=price)
    assert in_process(dying) == KILLED
    del world.tools["old"]
    run_id = world.newest
    ts = lambda request: calls((f"n{request.step}", "t", "{}"))  # noqa: E731
    run = world.play(resume=run_id, model=ts).expect(model_calls=2)
    assert run.result.steps == 4
    assert (run.result.usage.input, run.result.usage.output) == (400, 40)
    assert run.result.dollars == pytest.approx(4 * (100 * 1.0 + 10 * 10.0) / 1_000_000)
    assert run.result.usage.unmetered == 1, "what the request used that was cut off, nobody will ever say"
    assert run.sent[0][1]["tool_calls"][0]["function"]["name"] == "old"
    assert run.sent[0][2]["content"] == "x"
    assert [spec.name for spec in run.model.requests[0].tools] == ["t"]
    more = [calls(("again", "old", "{}")), says("so be it")]
    after = world.play(resume=run_id, model=more, limits=Limits(steps=6)).expect(status="completed", model_calls=2)
    assert after.call("again").outcome == "unknown_tool"
    assert after.result.usage.input == 600


# --- several calls at once ------------------------------------------------------------------------------

NAMES = ("x", "y", "z")


def _add_tools(world: World, effects: Effects, waits: dict[str, float], read_only: bool) -> None:
    def make(name: str) -> Any:
        async def work() -> str:
            """Work."""
            effects.add(name)
            await asyncio.sleep(waits[name])
            return f"r{name}"

        return work

    for name in NAMES:
        world.tool(make(name), name=name, read_only=read_only)


def _until_two_are_stored(world: World, effects: Effects, waits: dict[str, float], read_only: bool) -> None:
    _add_tools(world, effects, waits, read_only)
    world.store(dies_once_stored(2))
    world.play()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "promised", "kept"),
    [(25, True, False), (6, True, True), (3, False, False)],
    ids=["side by side, then they no longer say that they only read", "side by side", "one after another"],
)
def test_res_06_results_are_matched_by_call_in_whatever_order_they_came(
    world: World, seeds: int, promised: bool, kept: bool
) -> None:
    """Only tools that say that they only read run side by side, and only those run again. 100 times in all."""
    world.store()
    effects, orders, chance = Effects(world.folder), set(), random.Random(6)
    for _ in range(seeds):
        order = random_order(chance) if promised else NAMES
        waits = {name: chance.uniform(0, 0.05) for name in NAMES}
        waits = dict(zip(order, sorted(waits.values()), strict=True)) | {order[2]: 60.0}
        before = len(effects.all)
        assert in_process(partial(_until_two_are_stored, world, effects, waits, promised)) == KILLED
        assert sorted(effects.all[before:]) == [*NAMES[: 3 if promised else 2]], (
            "the third had started, or was about to"
        )
        before = len(effects.all)
        _add_tools(world, effects, dict.fromkeys(NAMES, 0.0), kept)
        run = world.play(resume=world.newest, model=[says("ok")]).expect()
        assert effects.all[before:] == ([order[2]] if kept else [])
        assert [run.call(_id_of(name)).outcome for name in order] == ["ok", "ok", "ok" if kept else "in_doubt"]
        assert list(run.results()) == ["1", "2", "3"]
        assert all(run.call(_id_of(name)).text == f"r{name}" for name in order[: 3 if kept else 2])
        orders.add(order)
    assert len(orders) == 6 or seeds < 25


def random_order(chance: random.Random) -> tuple[str, ...]:
    """The order in which calls end."""
    return tuple(chance.sample(NAMES, 3))


def _id_of(name: str) -> str:
    return str(NAMES.index(name) + 1)
