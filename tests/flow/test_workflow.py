"""Workflows as runs."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tenlines import Agent, CallContext, Limits, tool
from tenlines.core.transcript import Reply, Usage
from tenlines.errors import ConfigError, ModelFailure, RunStopped, StageFailed
from tenlines.flow import Flow, map_over, stage, step, together
from tenlines.journal.memory import MemoryJournal
from tenlines.testing import SimulatedCrash, crash_after

asked: list[str] = []
saved: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    asked.clear()
    saved.clear()


def model(messages: list[dict[str, Any]]) -> Reply:
    text = messages[-1]["content"]
    asked.append(text)
    return Reply(f"<{text}>", usage=Usage(100, 10))


@stage
async def sum_up(article: str) -> str:
    """Sum the article up."""


@stage
async def compare(first: str, second: str) -> str:
    """Say what differs."""


@step
def save(text: str, ctx: CallContext) -> int:
    """Save a text, once."""
    saved.append(f"{ctx.key.partition(':')[2]} {text}")
    return len(text)


@step(read_only=True)
def fail(text: str) -> str:
    """Fail."""
    raise ValueError(f"cannot {text}")


async def digest(articles: list[str], title: str = "News") -> dict[str, int]:
    lines = await map_over(sum_up, articles)
    return {title: await save("|".join(lines))}


def flow_of(function: Any, *stages: Any, **options: Any) -> Flow[Any]:
    options = {"model": model, "journal": "memory", **options}
    return Flow(function, stages or (sum_up, compare, save, fail), **options)


Play = Callable[..., Any]


@pytest.fixture(params=["sync", "asyncio"])
def play(request: pytest.FixtureRequest) -> Play:
    """Runs a workflow with both drivers."""
    if request.param == "sync":
        return lambda flow, *args, **kwargs: flow.run_sync(*args, **kwargs)
    return lambda flow, *args, **kwargs: asyncio.run(flow.run(*args, **kwargs))


def test_a_workflow_is_a_run_with_a_child_for_each_stage(play: Play) -> None:
    flow = flow_of(digest)
    result = play(flow, ["a", "b"], title="Today")
    assert result.status == "answered"
    assert result.answer == '{"Today":7}'
    assert sorted(asked) == ["a", "b"]
    assert saved == ["2:0 <a>|<b>"]
    assert (result.usage.input, result.usage.output) == (200, 20)
    runs = {one.agent for one in flow.agent.journal.runs()}
    assert runs == {"digest", "digest.sum_up"}
    assert len(result.children.runs) == 2


def test_a_stage_sees_its_instructions_and_its_arguments_alone() -> None:
    seen: list[Any] = []

    def watch(messages: list[dict[str, Any]]) -> str:
        seen.append([dict(one) for one in messages])
        return "ok"

    async def both() -> str:
        await sum_up("the first")
        return await compare("x", second="y")

    flow_of(both, model=watch).run_sync()
    assert seen == [
        [{"role": "system", "content": "Sum the article up."}, {"role": "user", "content": "the first"}],
        [
            {"role": "system", "content": "Say what differs."},
            {"role": "user", "content": '{"first":"x","second":"y"}'},
        ],
    ]


def test_stages_of_one_round_run_at_once_and_at_most_so_many() -> None:
    running, most = 0, 0

    async def slow(messages: Any) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "ok"

    async def many() -> int:
        return len(await map_over(sum_up, [str(n) for n in range(9)]))

    assert asyncio.run(flow_of(many, model=slow, parallel=3).run()).answer == "9"
    assert most == 3


def test_a_stage_may_have_a_model_of_its_own() -> None:
    @stage(model=lambda messages: "mine")
    async def special(text: str) -> str:
        """Do it."""

    async def use() -> list[str]:
        return await together(special("x"), sum_up("y"))

    assert flow_of(use, special, sum_up).run_sync().answer == '["mine","<y>"]'


# --- what fails ---------------------------------------------------------------------------------------------


def test_a_step_that_fails_can_be_caught(play: Play) -> None:
    async def careful() -> str:
        try:
            return str(await fail("fly"))
        except StageFailed as error:
            return f"{error.name} {error.outcome}"

    assert play(flow_of(careful)).answer == '"fail tool_error"'


def test_one_that_is_not_caught_ends_the_run_with_its_words(play: Play) -> None:
    async def careless() -> str:
        return str(await fail("fly"))

    with pytest.raises(ModelFailure, match="cannot fly"):
        play(flow_of(careless))


def test_a_stage_that_comes_to_no_answer_is_a_failure_of_it() -> None:
    def refuses(messages: Any) -> Reply:
        return Reply("", stop="refusal")

    async def use() -> str:
        return await sum_up("x")

    with pytest.raises(ModelFailure, match=r"sum_up: refused: .*declined"):
        flow_of(use, model=refuses).run_sync()


def test_an_error_of_the_function_is_told() -> None:
    async def broken() -> str:
        await sum_up("x")
        raise KeyError("mine")

    with pytest.raises(ModelFailure, match="mine"):
        flow_of(broken).run_sync()


def test_what_is_not_listed_is_named() -> None:
    async def use() -> str:
        return await compare("x", "y")

    with pytest.raises(ModelFailure, match=r"add it to Flow\(\.\.\., \[compare\]\)"):
        flow_of(use, sum_up).run_sync()


def test_a_foreign_wait_is_named() -> None:
    async def use() -> str:
        await asyncio.sleep(1)
        return ""

    with pytest.raises(ModelFailure, match="may await its stages"):
        flow_of(use).run_sync()


def test_limits_hold_over_all_stages(play: Play) -> None:
    async def many() -> int:
        return len([await sum_up(str(n)) for n in range(9)])

    with pytest.raises(RunStopped) as stopped:
        play(flow_of(many, limits=Limits(steps=8)))
    assert stopped.value.result.status == "max_steps"
    assert len(asked) == 3  # each takes a step of the workflow and one of its own; the last step is kept for an end


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: flow_of(lambda: None), "is an async function"),
        (lambda: flow_of(digest, sum_up, sum_up), "the same name"),
        (lambda: flow_of(digest, model=None), "has no model"),
        (lambda: flow_of(digest).run_sync("a"), "the arguments do not fit the workflow digest"),
    ],
)
def test_what_cannot_be_is_said(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make()


def test_a_stage_needs_words_for_the_model_and_names_for_its_parameters() -> None:
    async def silent(x: str) -> str: ...

    async def any_number(*x: str) -> str:
        """Do."""
        return ""

    with pytest.raises(ConfigError, match="needs a docstring"):
        stage(silent)
    with pytest.raises(ConfigError, match="name its parameters"):
        stage(any_number)


# --- taken up -----------------------------------------------------------------------------------------------


async def long_way(words: list[str]) -> str:
    first = await together(*(sum_up(one) for one in words))
    await save(first[0])
    last = await compare(*first)
    await save(last)
    return last


@pytest.mark.parametrize("driver", ["sync", "asyncio"])
def test_after_a_crash_at_any_record_nothing_finished_is_done_again(driver: str) -> None:
    def go(flow: Flow[Any]) -> Any:
        return flow.run_sync(["a", "b"]) if driver == "sync" else asyncio.run(flow.run(["a", "b"]))

    whole = flow_of(long_way)
    expected = go(whole)
    records = max(one.events for one in whole.agent.journal.runs())
    doubtful = 0
    for record in range(1, records):
        saved.clear()
        journal = crash_after(record=record)
        with pytest.raises(SimulatedCrash):
            go(flow_of(long_way, journal=journal))
        again = flow_of(long_way, journal=journal.survivor)
        main = next(one.run_id for one in journal.survivor.runs() if one.agent == "long_way")
        result = again.agent.resume_sync(main, raise_on_stop=False)
        if result.answer is None:  # a step that may have taken effect is never repeated
            assert "save: in_doubt" in result.reason
            doubtful += 1
        else:
            assert result.answer == expected.answer
        assert len(saved) == len(set(saved))
        assert len(saved) <= 2
    assert doubtful


def test_a_run_that_stopped_at_a_limit_goes_on_where_it_was() -> None:
    flow = flow_of(long_way, limits=Limits(steps=5))
    with pytest.raises(RunStopped) as stopped:
        flow.run_sync(["a", "b"])
    before = len(asked)
    assert flow.resume_sync(stopped.value.result.run_id, limits=Limits(steps=50)).answer
    assert asked[before:] == ['{"first":"<a>","second":"<b>"}']


def test_a_function_that_has_changed_meanwhile_is_refused_with_what_differs() -> None:
    journal = MemoryJournal()
    with pytest.raises(RunStopped) as stopped:
        flow_of(long_way, journal=journal, limits=Limits(steps=5)).run_sync(["a", "b"])

    async def other_way(words: list[str]) -> str:
        return await sum_up(words[0])

    with pytest.raises(ModelFailure, match="then it asked sum_up, sum_up; now it asks sum_up"):
        flow_of(other_way, journal=journal).resume_sync(stopped.value.result.run_id, limits=Limits(steps=50))


def test_chance_in_the_function_is_found() -> None:
    journal = MemoryJournal()

    async def dice(words: list[str]) -> str:
        return await sum_up(await sum_up(str(random.random())))

    with pytest.raises(RunStopped) as stopped:
        flow_of(dice, journal=journal, limits=Limits(steps=2)).run_sync([])
    with pytest.raises(ModelFailure, match="asked sum_up with other arguments"):
        flow_of(dice, journal=journal).resume_sync(stopped.value.result.run_id, limits=Limits(steps=50))


def test_a_value_is_never_cut(tmp_path: Path) -> None:
    @step(read_only=True)
    def large() -> list[int]:
        """Many numbers."""
        return list(range(50_000))

    async def count() -> int:
        return len(await large())

    assert flow_of(count, large).run_sync().answer == "50000"


def test_a_tool_serves_as_a_step() -> None:
    @tool(read_only=True)
    def look(order_id: int) -> dict[str, int]:
        """Look an order up."""
        return {"order": order_id}

    look_up = step(look)

    async def use() -> int:
        return int((await look_up(7))["order"])

    assert flow_of(use, look_up).run_sync().answer == "7"
    assert isinstance(flow_of(use, look_up).agent, Agent)


# --- typed --------------------------------------------------------------------------------------------------


@dataclass
class Topic:
    name: str
    weight: int


@stage
async def topic_of(article: str) -> Topic:
    """Name the topic, and its weight from 1 to 5."""


@stage
async def is_news(article: str) -> bool:
    """Whether it is news."""


def typed_model(*replies: Any) -> Callable[..., Any]:
    given = iter(replies)
    return lambda messages: next(given)


def finish(**arguments: Any) -> dict[str, Any]:
    call = {"id": "f", "type": "function", "function": {"name": "finish", "arguments": json.dumps(arguments)}}
    return {"content": None, "tool_calls": [call]}


async def topics(articles: list[str]) -> list[Topic]:
    return [await topic_of(one) for one in articles]


def test_values_have_the_types_that_are_written(play: Play) -> None:
    answers = typed_model(finish(name="ships", weight=3), '{"name": "tides", "weight": 1}')
    result = play(flow_of(topics, topic_of, model=answers), ["a", "b"])
    assert result.output == [Topic("ships", 3), Topic("tides", 1)]
    assert [one["name"] for one in json.loads(result.answer)] == ["ships", "tides"]


def test_an_answer_of_the_wrong_type_goes_back_and_in_the_end_is_a_failure() -> None:
    answers = typed_model(finish(name="ships", weight="three"), finish(name="ships", weight=3))
    assert flow_of(topics, topic_of, model=answers).run_sync(["a"]).output == [Topic("ships", 3)]
    wrong = typed_model(*[finish(name="ships", weight="three")] * 9)
    with pytest.raises(ModelFailure, match="topic_of: max_steps"):
        flow_of(topics, topic_of, model=wrong).run_sync(["a"])


@pytest.mark.parametrize("value", ["text", "", 7, None, ["a", {"b": 1.5}]])
def test_whatever_the_function_returns_comes_out(value: Any) -> None:
    async def give():  # type: ignore[no-untyped-def]
        return value

    assert flow_of(give).run_sync().output == value


def test_an_answer_may_be_a_plain_value() -> None:
    async def both() -> list[bool]:
        return [await is_news("a"), await is_news("b")]

    answers = typed_model(finish(answer=True), finish(answer=False))
    assert flow_of(both, is_news, model=answers).run_sync().output == [True, False]
