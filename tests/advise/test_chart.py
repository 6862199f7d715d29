"""The flowchart in characters: as wide as a terminal, with every stage, in the order in which they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenlines.advise.chart import ASCII, GAP, UNICODE, WIDTH, Box, Chart, Column, cells, chart_of, ends, text_of
from tenlines.advise.workflow import Argument, Stage, Way, Workflow

TEXT = st.text(max_size=60) | st.sampled_from(("get_order", "\x1b[2J", "\u202etxet", "注文を探す", "a\nb", "<b>"))
NOTES = st.lists(TEXT, max_size=3).map(tuple)
BOXES = st.lists(st.builds(Box, TEXT, NOTES), min_size=1, max_size=3).map(tuple)
COLUMNS = st.lists(st.builds(Column, st.just("40%"), BOXES | st.just(())), min_size=2, max_size=3).map(tuple)


def argument(name: str, source: str = "task", stage: int | None = None, value: object = None) -> Argument:
    words = {"task": "from the task", "result": f"from the result of stage {(stage or 0) + 1}"}.get(
        source, "by the model"
    )
    return Argument(tool="t", name=name, type="string", source=source, stage=stage, value=value, words=words)  # type: ignore[arg-type]


def stage(*tools: str, most: int = 1, arguments: tuple[Argument, ...] = ()) -> Stage:
    return Stage(
        tools=tools,
        fewest=1,
        most=most,
        arguments=arguments,
        asks=bool(arguments),
        input_tokens=10,
        output_tokens=1,
        result_tokens=5,
    )


def workflow(*ways: tuple[int, tuple[Stage, ...]], loops: tuple[tuple[int, int], ...] = ()) -> Workflow:
    runs = sum(runs for runs, _ in ways)
    return Workflow(
        group="support",
        answered=runs,
        covered=runs,
        entropy=0.0,
        ways=tuple(
            Way(runs=runs, stages=stages, loops=loops, input_tokens=10, output_tokens=1) for runs, stages in ways
        ),
        agent_tokens=100,
        flow_tokens=11,
        is_measured=True,
        agent_dollars=None,
        flow_dollars=None,
        runs=("a",),
    )


def test_one_path_is_one_column() -> None:
    flow = workflow((40, (stage("search", arguments=(argument("q"),)), stage("read", most=4))))
    assert text_of(chart_of(flow), ASCII) == (
        "+------------------+\n"
        "| the task         |\n"
        "+------------------+\n"
        "          v\n"
        "+------------------+\n"
        "| 1. search        |\n"
        "| q: from the task |\n"
        "+------------------+\n"
        "          v\n"
        "+------------------+\n"
        "| 2. read          |\n"
        "| 1 to 4 calls     |\n"
        "+------------------+\n"
        "          v\n"
        "+------------------+\n"
        "| the answer       |\n"
        "| one model call   |\n"
        "+------------------+"
    )


def test_paths_part_and_meet_again() -> None:
    flow = workflow(
        (30, (stage("search"), stage("read"), stage("send"))),
        (10, (stage("search"), stage("send"))),
    )
    rows = text_of(chart_of(flow)).splitlines()
    assert rows[8:16] == [
        "         ┌─────────┴─────────┐",
        "       75%                 25%",
        "┌────────────────┐           │",
        "│ 2. read        │           │",
        "└────────────────┘           │",
        "         └─────────┬─────────┘",
        "                   ▼",
        "┌────────────────────────────────────┐",
    ]
    assert [sum(name in row for row in rows) for name in ("search", "send", "the answer")] == [1, 1, 1]


def test_loops_over_several_stages_and_constants_are_noted() -> None:
    stages = (stage("a"), stage("b", arguments=(argument("lang", "constant", value="en"),)), stage("c"))
    text = text_of(chart_of(workflow((40, stages), loops=((0, 1),))))
    assert "in some runs again from stage 1" in text
    assert "lang: always 'en'" in text


def test_the_ends_that_paths_share() -> None:
    assert ends(["abcd", "abd"]) == (2, 1)
    assert ends(["ab", "ab"]) == (2, 0)
    assert ends(["ab", "cd"]) == (0, 0)
    assert ends(["aba", "a"]) == (1, 0)
    assert ends([""]) == (0, 0)


@given(BOXES, st.just(()) | COLUMNS, BOXES)
def test_no_row_is_too_wide_and_no_line_is_broken(
    before: tuple[Box, ...], columns: tuple[Column, ...], after: tuple[Box, ...]
) -> None:
    chart = Chart(before, columns, after if columns else ())
    for lines in (UNICODE, ASCII):
        rows = text_of(chart, lines).splitlines()
        assert all(cells(row) <= WIDTH + GAP for row in rows)
        assert all(row == row.rstrip() for row in rows)
        boxes = [row for row in rows if lines.down in row]
        assert boxes


def test_cells() -> None:
    assert [cells("abc"), cells("注文"), cells("e\u0301")] == [3, 4, 1]
