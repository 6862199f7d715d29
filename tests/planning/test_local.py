"""The real local model makes a small plan, and follows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenlines import Agent, tool
from tenlines.errors import ConfigError
from tenlines.models import weights
from tenlines.planning import Plan, Planner


@tool(read_only=True)
def get_order(order_id: str) -> str:
    """Look an order up by its number."""
    return "a rain coat" if order_id == "1042" else "there is no such order"


@pytest.mark.slow
@pytest.mark.local_model
def test_the_local_model_makes_a_plan_and_follows_it(say: Callable[[str], None]) -> None:
    from tenlines.models.local import LocalModel

    try:
        weights.fetch(weights.KNOWN["local"])
    except ConfigError as error:
        pytest.skip(f"THE REAL LOCAL MODEL WAS NOT TESTED: {error}")
    agent = Agent(LocalModel(threads=1), [get_order], journal="memory")
    planner = Planner(agent)
    made = planner.plan_sync("What was ordered with order 1042?")
    assert made.steps[0].tools == ("get_order",)
    shorter = Plan(task=made.task, steps=made.steps[:1])  # what a person does who looks at it
    result = planner.run_sync(shorter)
    assert "rain coat" in str(result.answer)
    assert [one.outcome for one in result.calls] == ["ok", "ok", "ok"]
    tokens = f"{result.usage.input:,} tokens in ({result.usage.cache_read:,} cached), {result.usage.output:,} out"
    say(f"plans: the local model made one of {len(made.steps)} steps and followed the first: {tokens}")
