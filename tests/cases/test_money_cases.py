"""What runs may spend, what they spent, and who of them spent it."""

from __future__ import annotations

from typing import Any

import pytest
from case_world import CaseModel, World, calls, gives, says

from tenlines import Agent, Limits, Price, Usage
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.ports import CallContext
from tenlines.wire.formats import FORMATS
from tenlines.wire.profile import Target


def _spends(_: CallModel) -> Any:
    return {**calls(("t", "t", "{}")), "usage": Usage(input=500, output=100)}


# --- limits ---------------------------------------------------------------------------------------------


def test_budget_01_a_run_never_passes_its_budget_and_leaves_no_call_open(world: World) -> None:
    """Stricter than the case, which lets the second request go out because 600 of 1,000 tokens are used: a request is
    refused before it is sent when what it holds does not fit any more. The provider has counted 500 for the first, the
    second holds those and more, and 600 + 500 is above 1,000. So the run stops at 600, where it would have ended at
    1,200. With room for it, the second is the last."""
    limit = world.input["opts"]["max total tokens"]
    world.tool(gives("r"), name="t", repeatable=True)
    strict = world.play(model=_spends, limits=Limits(tokens=limit)).expect(model_calls=1, tool_runs={"t": 1})
    assert strict.result.usage.total == 600
    assert "600 of 1,000 tokens are used" in strict.result.reason
    world.tool(gives("r"), name="t", repeatable=True)
    run = world.play(model=_spends, limits=Limits(tokens=1_500)).expect(tool_runs={"t": 2})
    assert run.result.usage.total == 1_200
    assert [record.outcome for record in run.result.calls] == ["ok", "ok"]
    assert run.result.left.tokens == 300
    started = run.events(ev.StepStarted)
    before = 600
    assert before + started[1].reserved.input_tokens + started[1].reserved.output_tokens <= 1_500
    assert run.model.requests[1].max_output_tokens == started[1].reserved.output_tokens


def test_budget_03_without_a_price_a_limit_in_dollars_stops_the_run_before_it_spends(world: World) -> None:
    """Nothing was spent then, and that is known: 0 is the truth. What was spent at no known price is None."""
    limits = Limits(dollars=world.input["opts"]["max cost usd"])
    refused = world.play(limits=limits).expect(status="budget", model_calls=0)
    assert "the price of this model is not known" in refused.result.reason
    assert refused.result.answer is None
    free = world.play().expect(status="completed", model_calls=1)
    assert free.result.dollars is None
    assert free.result.usage.total == 2_000
    priced = world.play(limits=limits, price=Price(input=1.0, output=2.0)).expect(status="completed")
    assert priced.result.dollars == pytest.approx(0.003)
    dear = world.play(limits=limits, price=Price(input=10_000.0, output=1.0)).expect(status="budget", model_calls=0)
    assert dear.result.dollars == 0.0


# --- prices ---------------------------------------------------------------------------------------------


def _decoded(name: str, response: dict[str, Any]) -> Usage:
    """The counts of a response, as the format reads them."""
    format = FORMATS[name]
    usage = format.talk(Target(profile=format.profile(), model="m")).decode(response).usage
    assert usage is not None
    return usage


def test_cost_01_what_was_cached_is_charged_once_where_it_is_part_of_the_input(world: World) -> None:
    said, price = world.input["usage"], Price(**world.input["prices per million usd"])
    counts = {
        "prompt_tokens": said["input_total"],
        "prompt_tokens_details": {"cached_tokens": said["cached_read"]},
        "completion_tokens": said["output"],
    }
    choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    usage = _decoded("openai_chat", {"choices": [choice], "usage": counts})
    run = world.play(model=[{**says("hi"), "usage": usage}], price=price).expect()
    assert run.result.dollars == pytest.approx(world.expected["cost_usd"])
    assert run.result.usage.total == 1_100
    assert run.result.usage.cache_read == 800


def test_cost_02_what_was_cached_is_charged_at_its_own_price_where_it_stands_beside_the_input(world: World) -> None:
    said, price = world.input["usage"], Price(**world.input["prices per million usd"])
    counts = {
        "input_tokens": said["input"],
        "cache_creation_input_tokens": said["cache_write"],
        "cache_read_input_tokens": said["cache_read"],
        "output_tokens": said["output"],
    }
    message = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    usage = _decoded("anthropic", {**message, "stop_reason": "end_turn", "usage": counts})
    run = world.play(task="go", model=[{**says("hi"), "usage": usage}], price=price).expect()
    assert run.result.dollars == pytest.approx(world.expected["cost_usd"])
    assert run.result.usage.input == 12_007
    assert run.result.usage.cache_write == 12_000


# --- children -------------------------------------------------------------------------------------------


def _child(world: World, children: list[str], **options: Any) -> None:
    """The tool of the case: the second child's provider breaks after one reply. With `options`, those of `@tool`."""

    @world.tool(spends=True, **options)
    def child(ctx: CallContext) -> str:
        """Have somebody else do it."""
        fails = ctx.position == 1
        ends = {"raise": {"status": 400}} if fails else says("did it")
        agent = Agent(CaseModel([calls(("c", "work", "{}")), ends]), {"work": gives("w")}, journal=world.journal)
        result = agent.run_sync("do it", under=ctx, raise_on_stop=fails)
        children.append(result.run_id)
        return result.last


@pytest.mark.parametrize("side_by_side", [False, True])
def test_cost_03_what_children_used_is_counted_once_and_can_be_told_apart(world: World, side_by_side: bool) -> None:
    children: list[str] = []
    _child(world, children, read_only=side_by_side)
    run = world.play(limits=Limits(tokens=50_000)).expect()
    assert [record.outcome for record in run.result.calls] == ["ok", "tool_error"]
    result = run.result
    assert result.usage.total == 450
    assert result.children.tokens == 330
    assert result.usage.total - result.children.tokens == 120
    assert result.children.steps == 3
    assert len(result.children.runs) == 2
    assert set(children) < set(result.children.runs)
    assert result.steps == 2
    assert result.left.tokens == 50_000 - 450
    own = [world.journal.read(run_id) for run_id in result.children.runs]
    parents = [first.parent for first in map(next, own) if isinstance(first, ev.RunStarted)]
    assert sorted(parents) == [f"{result.run_id}:1:{place}" for place in (0, 1)]
