"""`tenlines advise`: from a journal to a page, an object, and files."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "advise"))

from journals import Call, Script, aimless, clocked, flooded, logs, shipping, spec

from tenlines.journal import open_journal

Command = Callable[..., Any]


def record(scripts: Iterable[Script], apart: float = 60.0) -> None:
    """Put runs into the journal of the test."""
    store: Any = open_journal(None)
    for log in logs(scripts, apart):
        run_id = log[0].run_id  # type: ignore[union-attr]
        for event in log:
            store.append(run_id, event)
        store.commit(run_id)
    store.close()


@pytest.fixture
def shipped() -> None:
    random = Random(1)
    record([script for _ in range(35) for script in (shipping(random), aimless(random, task="Count them #count"))])


def test_the_page_says_what_was_seen_what_to_do_and_how_sure_it_is(tenlines: Command, shipped: None) -> None:
    done = tenlines("advise")
    assert (done.code, done.err) == (0, "")
    for line in (
        "1 piece of advice, from 70 runs of 2 agents",
        "1. a workflow: get_order, get_tracking, notes · shipping",
        "seen  35 of 35 answered runs took one path: get_order, get_tracking, notes",
        "│ 2. get_tracking                  │",
        "as an agent (measured)",
        "nothing to say yet on the step cap: 35 answered runs, 72 are needed",
        "shipping · 35 runs · 35 answered",
    ):
        assert line in done.out
    assert "async def flow" not in done.out
    assert "async def flow" in tenlines("advise", "--code").out


def test_one_object_holds_everything(tenlines: Command, shipped: None) -> None:
    told = json.loads(tenlines("advise", "--json").out)
    assert set(told) == {"by", "runs", "findings", "groups", "skipped", "files"}
    (found,) = told["findings"]
    assert (found["kind"], found["group"], found["runs"][0]) == ("workflow", "shipping", "run00000")
    flow = next(one["workflow"] for one in told["groups"] if one["group"] == "shipping")
    ast.parse(flow["skeleton"])
    assert "get_tracking" in flow["flowchart"]


def test_which_runs_are_meant(tenlines: Command, shipped: None) -> None:
    def runs(*words: str) -> list[tuple[str, int]]:
        return [(one["group"], one["runs"]) for one in json.loads(tenlines("advise", "--json", *words).out)["groups"]]

    assert runs("--agent", "shipping") == [("shipping", 35)]
    assert runs("--last", "10") == [("shipping", 5), ("support", 5)]
    assert runs("--by", "tag") == [("#count", 35), ("(no tag)", 35)]
    assert runs("run00000", "run00001", "run00002") == [("shipping", 2), ("support", 1)]
    assert runs("run00000", "run00001", "--agent", "support") == [("support", 1)]


def test_charts_and_skeletons_are_written_and_a_completed_one_stays(
    tenlines: Command, shipped: None, tmp_path: Path
) -> None:
    folder = tmp_path / "charts"
    done = tenlines("advise", "--svg", str(folder))
    assert done.err.splitlines() == [f"written: {folder}/shipping.svg", f"written: {folder}/shipping.py"]
    ElementTree.parse(folder / "shipping.svg")
    compile((folder / "shipping.py").read_text(), "shipping.py", "exec")
    tenlines("advise", "--svg", str(folder))
    assert len(list(folder.iterdir())) == 2
    (folder / "shipping.py").write_text("# completed\n")
    assert json.loads(tenlines("advise", "--svg", str(folder), "--json").out)["files"][1] == f"{folder}/shipping-v2.py"
    tenlines("advise", "--svg", str(folder))
    assert (folder / "shipping.py").read_text() == "# completed\n"
    assert sorted(one.name for one in folder.iterdir()) == ["shipping-v2.py", "shipping.py", "shipping.svg"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--by", "colour"), "--by must be agent or model or tag; got 'colour'"),
        (("--since", "soon"), "--since must be a number of hours, days or weeks"),
        (("--since", "1h"), "none of the 70 runs in the journal is meant; their agents are: shipping, support"),
        (("--agent", "nobody"), "none of the 70 runs in the journal is meant"),
        (("zzz",), "no run begins with 'zzz'"),
        (("--price", "much"), "--price must be IN/OUT"),
        (("--svg", "tools.py/charts"), "--svg: tools.py/charts/shipping.svg cannot be written: Not a directory"),
    ],
)
def test_mistakes_are_said_in_a_sentence(tenlines: Command, shipped: None, words: tuple[str, ...], said: str) -> None:
    done = tenlines("advise", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_without_a_journal_it_says_how_to_make_one(tenlines: Command) -> None:
    done = tenlines("advise")
    assert done.code == 2
    assert "there is no journal" in done.err


def test_a_damaged_run_is_left_out_and_named(tenlines: Command, shipped: None, home: Path) -> None:
    import sqlite3

    link = sqlite3.connect(home / "journal.db")
    (table,) = [name for (name,) in link.execute("select name from sqlite_master where name='events'")]
    link.execute(f"delete from {table} where seq = 3 and run_id = 'run00000'")
    link.commit()
    link.close()
    done = tenlines("advise")
    assert done.code == 0
    assert "1 run could not be read (run00000)" in done.out
    assert json.loads(tenlines("advise", "--json").out)["skipped"][0]["run_id"] == "run00000"


def test_what_is_advised_first_is_worth_most(tenlines: Command) -> None:
    random = Random(4)
    record([script for n in range(30) for script in (flooded(random), clocked(random, n))])
    found = json.loads(tenlines("advise", "--json").out)["findings"]
    assert [one["kind"] for one in found] == ["flood", "cache"]
    assert found[0]["dollars"] > found[1]["dollars"]


def test_runs_without_a_price_take_the_stated_one(tenlines: Command) -> None:
    random = Random(4)
    record([flooded(random, price=None) for _ in range(30)])
    assert "(the price is not known)" in tenlines("advise").out
    assert json.loads(tenlines("advise", "--price", "3/15", "--json").out)["findings"][0]["dollars"] > 0


def test_nothing_hostile_reaches_the_terminal_and_no_secret_is_shown(tenlines: Command, tmp_path: Path) -> None:
    evil = "\x1b[2J\u202ex"
    steps = [
        [Call(evil, '{"api_key": "sk-live-1234567890", "q": "\\u001b[2J"}', "x" * 20_000)],
        [Call("look", '{"a": "b"}', "y")],
    ]
    tools = (spec(evil, api_key="string", q="string"), spec("look", a="string"))
    record([Script(steps, agent=evil, tools=tools) for _ in range(40)])
    done = tenlines("advise", "--code", "--svg", str(tmp_path / "out"))
    assert done.code == 0
    written = "".join(file.read_text() for file in (tmp_path / "out").iterdir())
    for text in (done.out, written):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "sk-live" not in text
        assert "[redacted]" in text
    assert "sk-live" in tenlines("advise", "--no-redact", "--code").out
    assert "sk-live" not in tenlines("advise", "--json").out


def test_on_a_terminal_it_says_how_far_it_is(process: Callable[..., Any], shipped: None) -> None:
    done = process("advise", terminal=True)
    ended = done.end()
    assert ended.code == 0
    assert "reading the journal" in ended.err
    assert "piece of advice" in ended.out
