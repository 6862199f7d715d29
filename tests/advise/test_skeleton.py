"""The skeleton compiles whatever the tools are called, and runs once it is completed."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journals import shipping
from test_chart import argument, stage, workflow
from test_workflow import flow_of

from tenlines.advise.skeleton import skeleton_of
from tenlines.advise.workflow import Argument, Stage, Workflow

NAMES = st.text(max_size=20) | st.sampled_from(
    ("get-order", "class", "list", "1st", "a.b", 'x"""y', "{x}", "\\", "\ud800", "注文", "task", "flow", "match", "")
)
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES
SOURCES = st.sampled_from(("constant", "task", "model"))


@st.composite
def stages(draw: st.DrawFn, place: int) -> Stage:
    tools = tuple(sorted(draw(st.sets(NAMES, min_size=1, max_size=2))))
    arguments = []
    for tool in tools:
        for name in sorted(draw(st.sets(NAMES, max_size=3))):
            source = draw(SOURCES)
            at = draw(st.integers(0, place - 1)) if place and source == "model" and draw(st.booleans()) else None
            arguments.append(
                Argument(
                    tool=tool,
                    name=name,
                    type=draw(st.sampled_from(("string", "integer", "array", "object", "", "odd"))),
                    source="result" if at is not None else source,
                    stage=at,
                    value=draw(VALUES) if source == "constant" else None,
                    words="so",
                )
            )
    return stage(*tools, most=draw(st.sampled_from((1, 9))), arguments=tuple(arguments))


@st.composite
def flows(draw: st.DrawFn) -> Workflow:
    ways = [
        (runs, tuple(draw(stages(place)) for place in range(draw(st.integers(0, 4)))))
        for runs in draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    ]
    return workflow(*ways)


@given(flows())
def test_it_is_valid_python_whatever_the_names_are(flow: Workflow) -> None:
    text = skeleton_of(flow)
    tree = ast.parse(text.encode("utf-8", "surrogatepass").decode("utf-8", "replace"))
    compile(tree, "skeleton", "exec")
    names = [node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef | ast.ClassDef | ast.FunctionDef)]
    assert len(names) == len(set(names))
    assert names[-2:] == ["answer", "flow"]


def completed(flow: Workflow, **given: Any) -> tuple[str, list[Any], list[Any]]:
    """Run it, with what a reader has to write: its answer, the calls of its tools, what the model was asked."""
    names: dict[str, Any] = {"__name__": "skeleton"}
    exec(compile(skeleton_of(flow), "skeleton", "exec"), names)  # noqa: S102  # it is what is tested
    names.update(given)
    called: list[Any] = []
    asked: list[Any] = []

    def tool(name: str) -> Any:
        async def call(**arguments: Any) -> str:
            called.append((name, arguments))
            return f"{name} came back"

        return call

    async def ask(question: str, wanted: Any) -> Any:
        asked.append((question, wanted))
        if wanted is str:
            return "the answer"
        record = getattr(wanted, "__args__", (wanted,))[0]
        one = record(*(f"<{name}>" for name in record._fields))
        return one if record is wanted else [one, one]

    tools = {name: tool(name) for way in flow.ways for one in way.stages for name in one.tools}
    return asyncio.run(names["flow"]("the task", ask, tools)), called, asked


def test_once_completed_it_runs_from_the_task_to_the_answer() -> None:
    random = Random(1)
    flow = flow_of([shipping(random) for _ in range(40)])
    answer, called, asked = completed(flow, take=lambda name, result: f"{name} of {result}")
    assert answer == "the answer"
    assert called == [
        ("get_order", {"order_id": "<order_id>"}),
        ("get_tracking", {"code": "code of get_order came back", "lang": "en"}),
        ("notes", {"text": "<text>"}),
    ]
    assert len(asked) == 3
    assert "get_order came back" not in asked[1][0]
    assert "get_tracking came back" in asked[1][0]


def test_what_is_to_be_completed_says_so() -> None:
    random = Random(1)
    with pytest.raises(NotImplementedError, match="code: take it out of 'get_order came back'"):
        completed(flow_of([shipping(random) for _ in range(40)]))


def test_ways_that_part_are_branches_and_what_they_share_is_written_once() -> None:
    wanted = argument("id", "result", stage=0)
    flow = workflow(
        (30, (stage("search"), stage("read", arguments=(wanted,)), stage("send"))),
        (10, (stage("search"), stage("send"))),
    )
    take = lambda name, result: result  # noqa: E731
    for way, called in ((1, ["search", "read", "send"]), (2, ["search", "send"])):
        answer, calls, _ = completed(flow, choose=lambda task, results, way=way: way, take=take)
        assert (answer, [name for name, _ in calls]) == ("the answer", called)
    with pytest.raises(NotImplementedError, match="by what the ways part"):
        completed(flow)


def test_a_loop_asks_for_the_arguments_of_all_its_calls() -> None:
    looped = stage(
        "read", most=4, arguments=(argument("id", "result", stage=0), argument("lang", "constant", value="en"))
    )
    looped = Stage(**{name: getattr(looped, name) for name in looped.__struct_fields__})
    arguments = tuple(
        Argument(**{**{name: getattr(one, name) for name in one.__struct_fields__}, "tool": "read"})
        for one in looped.arguments
    )
    flow = workflow((30, (stage("list"), stage("read", most=4, arguments=arguments), stage("list", "read"))))
    _, called, asked = completed(flow)
    assert called[1:3] == [("read", {"id": "<id>", "lang": "en"})] * 2
    assert {name for name, _ in called[3:]} == {"list", "read"}
    assert "list came back" in asked[0][0]


@pytest.mark.slow
def test_it_passes_the_checkers_of_the_house(tmp_path: Path) -> None:
    random = Random(1)
    file = tmp_path / "flow.py"
    file.write_text(skeleton_of(flow_of([shipping(random) for _ in range(40)])))
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length=120", str(file)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
