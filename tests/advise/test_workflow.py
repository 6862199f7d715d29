"""Workflows: what they consist of, and what they would cost beside the agent."""

from __future__ import annotations

from random import Random

import pytest
from journals import PRICE, Script, aimless, read, shipping

from tenlines.advise.paths import Paths
from tenlines.advise.workflow import FRAME, Workflow, description, finding, path_words, workflow_of
from tenlines.core.limits import Price
from tenlines.core.transcript import Usage
from tenlines.trace.redaction import REDACTED, Redaction


def flow_of(scripts: list[Script], redaction: Redaction | None = None) -> Workflow:
    paths = Paths()
    for run in read(scripts):
        paths.take(run)
    found = workflow_of("shipping", paths, Redaction() if redaction is None else redaction)
    assert found is not None
    return found


def shipped(runs: int = 40, **fields: object) -> list[Script]:
    random = Random(5)
    return [shipping(random, **fields) for _ in range(runs)]


def test_a_stage_asks_the_model_only_for_what_stands_nowhere_or_in_the_task() -> None:
    (way,) = flow_of(shipped()).ways
    assert [stage.asks for stage in way.stages] == [True, False, True]
    assert [[(one.name, one.source) for one in stage.arguments] for stage in way.stages] == [
        [("order_id", "task")],
        [("code", "result"), ("lang", "constant")],
        [("text", "model")],
    ]
    assert [one.type for one in way.stages[1].arguments] == ["string", "string"]


def test_the_agents_cost_is_measured_and_the_workflows_is_the_sum_of_what_its_stages_need() -> None:
    scripts = shipped()
    flow, runs = flow_of(scripts), list(read(scripts))
    assert flow.agent_tokens == round(sum(run.spent.tokens for run in runs) / 40)
    assert flow.agent_dollars == pytest.approx(sum(run.spent.dollars or 0 for run in runs) / 40)
    (way,) = flow.ways
    one, two, three = way.stages
    task = (way.input_tokens - 3 * FRAME - two.result_tokens - sum(s.result_tokens for s in way.stages)) / 3
    assert 3 < task < 15
    assert one.input_tokens == pytest.approx(FRAME + task, abs=1)
    assert (two.input_tokens, two.output_tokens) == (0, 0)
    assert three.input_tokens == pytest.approx(FRAME + task + two.result_tokens, abs=1)
    assert flow.flow_tokens == way.input_tokens + way.output_tokens
    answer = (way.input_tokens - one.input_tokens - three.input_tokens, 40)
    calls = [(one.input_tokens, one.output_tokens), (three.input_tokens, three.output_tokens), answer]
    dollars = sum(PRICE.of(Usage(taken, written)) for taken, written in calls)
    assert flow.flow_dollars == pytest.approx(dollars, rel=1e-6)
    assert flow.flow_tokens < flow.agent_tokens / 3


def test_what_it_saves_is_said_as_it_is() -> None:
    said = finding(flow_of(shipped(price=Price(input=3, output=15), cached=0)))
    assert said.tokens > 0
    assert (said.dollars or 0) > 0
    assert "less); for all of them" in said.saves
    cached = finding(flow_of(shipped(price=Price(input=3, output=15, cache_read=0.003))))
    assert cached.dollars == 0
    assert "no dollars, because a cache" in cached.saves
    assert finding(flow_of(shipped(price=None))).dollars is None


def test_how_sure_it_is_grows_with_the_runs() -> None:
    assert "at least 89% of such runs" in finding(flow_of(shipped(30))).sure
    assert "at least 98% of such runs" in finding(flow_of(shipped(200))).sure


def test_the_second_way_is_weighed_by_its_runs() -> None:
    short = [script._replace(steps=script.steps[:2]) for script in shipped(10)]
    flow = flow_of([*shipped(30), *short])
    assert [(way.runs, len(way.stages)) for way in flow.ways] == [(30, 3), (10, 2)]
    tokens = [way.input_tokens + way.output_tokens for way in flow.ways]
    assert flow.flow_tokens == pytest.approx((30 * tokens[0] + 10 * tokens[1]) / 40, abs=4)
    assert flow.covered == 40
    assert "2 paths: get_order, get_tracking, notes, ..." in finding(flow).seen


def test_constants_are_shown_without_secrets() -> None:
    def script(number: int) -> Script:
        made = shipped(1)[0]
        second = made.steps[1][0]._replace(arguments=f'{{"code": "x{number}", "api_key": "sk-12345678"}}')
        return made._replace(steps=[made.steps[0], [second], made.steps[2]])

    scripts = [script(number) for number in range(30)]
    values = {one.name: one.value for stage in flow_of(scripts).ways[0].stages for one in stage.arguments}
    assert values["api_key"] == REDACTED
    shown = flow_of(scripts, Redaction(())).ways[0].stages[1].arguments[0]
    assert (shown.name, shown.value) == ("api_key", "sk-12345678")


def test_no_path_no_workflow() -> None:
    random, paths = Random(1), Paths()
    for run in read([aimless(random) for _ in range(80)]):
        paths.take(run)
    assert workflow_of("a", paths, Redaction()) is None


def test_in_words() -> None:
    assert path_words((("a",), ("b", "c"))) == "a, b + c"
    assert path_words(()) == "no tool"
    assert description(flow_of(shipped())).startswith("40 of 40 answered runs: the task, then get_order")
