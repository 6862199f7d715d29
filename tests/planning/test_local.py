"""The real local model makes a small plan, and follows it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tenlines import Agent, tool
from tenlines.errors import ConfigError
from tenlines.models import weights
from tenlines.planning import Planner


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
    result = Planner(agent, review="never").run_sync("What was ordered with order 1042?")
    assert "rain coat" in str(result.answer)
    used = next(one for one in result.calls if one.name == "use_plan")
    steps = (used.arguments or {})["steps"]
    assert isinstance(steps, list)
    assert steps
    assert all(one.outcome == "ok" for one in result.calls)
    tokens = f"{result.usage.input:,} tokens in ({result.usage.cache_read:,} cached), {result.usage.output:,} out"
    say(f"plans: the local model made one of {len(steps)} steps and followed it: {tokens}")
