"""`tenlines cost`: what a run cost, for people and for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from journal_world import put, start

from tenlines import Agent, CallContext, Limits, Reply, ToolCall, tool
from tenlines.core import events as ev
from tenlines.core.context import Arithmetic, Compaction
from tenlines.core.costs import Ledger
from tenlines.core.events import Settings
from tenlines.core.ledger import ledger_of
from tenlines.core.limits import Price, Reservation, Spent
from tenlines.core.transcript import Usage
from tenlines.journal import open_journal
from tenlines.journal.sqlite import SqliteJournal
from tenlines.models.plain import ScriptedModel

Tenlines = Callable[..., Any]
PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)


@tool(read_only=True)
def look(number: int) -> str:
    """Look a number up."""
    return f"row {number} of a table, " * 20


def grown(steps: int, **settings: Any) -> str:
    """A run whose first request holds 2,000 tokens, and each later one 1,000 more. Returns its id."""
    usages = [Usage(2_000 + 1_000 * n, 100, 1_000 + 1_000 * n if n else 0) for n in range(steps)]
    moves = [Reply(calls=(ToolCall(f"c{n}", "look", f'{{"number": {n}}}'),), usage=usages[n]) for n in range(steps - 1)]
    given = Settings(**{"limits": Limits(steps=None), "price": PRICE, **settings})
    with closing(open_journal()) as journal:  # type: ignore[type-var]
        agent = Agent(ScriptedModel([*moves, Reply("done", usage=usages[-1])]), [look], settings=given, journal=journal)
        return agent.run_sync("look all rows up").run_id


def told(run_id: str = "r1", *replies: Reply, model: str = "m", at: float = 1.0, **fields: Any) -> str:
    """A run of these replies that was recorded without a price."""
    replies = replies or (Reply("done", usage=Usage(1_000_000, 100_000, 0)),)
    log: list[Any] = [msgspec.structs.replace(start(run_id, model=model, **fields), at=at)]
    for number, reply in enumerate(replies, 1):
        log.append(ev.StepStarted(seq=len(log), at=at, step=number, attempt=1, reserved=Reservation()))
        log.append(ev.ModelReplied(seq=len(log), at=at + 1, step=number, reply=reply))
    with closing(SqliteJournal(Path("journal.db"))) as journal:
        put(journal, run_id, *log)
    return run_id


def squeezed(text: str) -> str:
    """The text with single blanks."""
    return "\n".join(" ".join(line.split()) for line in text.split("\n"))


# --- for people -------------------------------------------------------------------------------------------


def test_a_page_has_each_step_each_tool_the_sums_and_the_arithmetic_beside_the_truth(tenlines: Tenlines) -> None:
    run_id = grown(10)
    done = tenlines("cost", "last")
    page = squeezed(done.out)
    assert (done.code, done.err) == (0, "")
    assert f"run {run_id} · answered · 10 steps · scripted" in page
    assert "a million tokens cost $3 in, $15 out, $0.3 from the cache, $3.75 into it (recorded with the run)" in page
    assert "\n1 2,000 0% 100 ~" in page
    assert "\n10 11,000 1,000 91% 100 ~" in page
    assert "\nlook 9 9 ~" in page
    assert "its own 65,000 83% 1,000 $0.0642" in page
    assert "10 steps from 2,000 tokens, 1,000 more each, and nothing cut: 65,000 tokens in; it was 65,000" in page
    assert "83% of the input came from it; it can have had 83%" in page
    assert "* this run o nothing cut: the square . the prompt alone: a straight line" in page


def test_many_steps_are_folded_unless_everything_is_wanted(tenlines: Tenlines) -> None:
    grown(40)
    page, full = squeezed(tenlines("cost", "last").out), squeezed(tenlines("cost", "last", "--full").out)
    assert "\n15 16,000" in page
    assert "\n26 27,000" in page
    assert "\n20 21,000" not in page
    assert "… 10 more (--full)" in page
    assert "\n20 21,000" in full
    assert "\n20.1 look ok ~" in full
    assert "1.1 look" not in page


def test_a_run_that_has_not_even_asked_has_a_page(tenlines: Tenlines) -> None:
    with closing(SqliteJournal(Path("journal.db"))) as journal:
        put(journal, "r1", start("r1"))
    done = tenlines("cost", "r1")
    assert done.code == 0
    assert "run r1 · open · 0 steps · m" in done.out
    for form in ("--json", "--csv=steps"):
        assert tenlines("cost", "r1", form).code == 0


def test_requests_that_failed_or_were_never_heard_of_are_told(tenlines: Tenlines) -> None:
    told()
    with closing(SqliteJournal(Path("journal.db"))) as journal:
        asked = {"step": 1, "reserved": Reservation()}
        failed = {"kind": "E", "message": "no", "retryable": True, "usage": Usage(70, 7)}
        put(
            journal,
            "r2",
            start("r2"),
            ev.StepStarted(seq=1, at=2.0, attempt=1, **asked),
            ev.ModelFailed(seq=2, at=3.0, step=1, attempt=1, **failed),
            ev.StepStarted(seq=3, at=9.0, attempt=2, **asked),
            ev.RunResumed(seq=4, at=9.0),
        )
    page = squeezed(tenlines("cost", "r2").out)
    assert "\n1 ? ? ~0 ? 2 attempts, 77 tokens\n" in page
    assert "1 request came without token counts, or were never heard of: not in the sums" in page
    assert "its own 70 7 ?" in page


def test_a_cut_shows_both_numbers_and_what_broke_the_cache_is_named(tenlines: Tenlines) -> None:
    calls = [Reply(calls=(ToolCall(f"c{n}", "look", '{"number": 1}'),), usage=Usage(n, 9, 0)) for n in (900, 1_800)]
    replies = [*calls, Reply("done", usage=Usage(1_000, 9, 300))]
    compaction = Compaction(at=1_700, keep=1, strategies=("drop",))
    with closing(open_journal()) as journal:  # type: ignore[type-var]
        agent = Agent(
            ScriptedModel(replies), [look], settings=Settings(price=PRICE), compaction=compaction, journal=journal
        )
        agent.run_sync("look")
        (cut,) = (one for one in journal.read(journal.runs(1)[0].run_id) if isinstance(one, ev.ContextCompacted))
    page = squeezed(tenlines("cost", "last").out)
    how: Arithmetic = cut.arithmetic
    assert f"drop step 3 ~{how.tokens_before:,} ~{how.tokens_after:,} 1,000 ~$" in page
    assert "it was asked for" in page
    assert "broken at step 3: the transcript was cut (drop)" in page
    assert "\n3 1,000 -800 30% 9 ~" in page
    assert "cache broken" in page


# --- prices -----------------------------------------------------------------------------------------------


def test_a_price_that_nobody_knows_is_said_with_how_to_state_it(tenlines: Tenlines) -> None:
    told()
    done = tenlines("cost", "r1")
    assert done.code == 0
    assert "the price is not known: " in done.out
    assert "tenlines cost r1 --price IN/OUT, or in your file of prices" in done.out
    assert "$0" not in done.out
    stated = tenlines("cost", "r1", "--price", "2/5").out
    assert "a million tokens cost $2 in, $5 out (as you said; the run recorded none)" in stated
    assert "$2.50" in stated


def test_a_file_of_prices_and_the_list_price_a_run_as_of_its_start(tenlines: Tenlines) -> None:
    told("r1")
    told("r2", model="openai:gpt-5", at=1_796_040_000.0)
    Path("own.toml").write_text("[m]\ninput = 1\noutput = 10\n")
    page = tenlines("cost", "r1", "--prices", "own.toml").out
    assert '$1 in, $10 out (own.toml, ["m"]; the run recorded none)' in page
    assert "$2.00" in page
    listed = tenlines("cost", "r2").out
    assert "as of 2026-11-30 12:00 UTC; the run recorded none)" in listed
    assert json.loads(tenlines("cost", "r2", "--json").out)["priced"] == "given"


def test_a_price_that_was_recorded_stays_whatever_is_said_today(tenlines: Tenlines) -> None:
    grown(3)
    recorded = tenlines("cost", "last").out
    assert tenlines("cost", "last", "--price", "100/100").out == recorded


def test_what_the_provider_said_that_it_costs_is_taken(tenlines: Tenlines) -> None:
    told("r1", Reply("done", usage=Usage(1_000, 100), dollars=0.5))
    page = tenlines("cost", "r1", "--price", "100/100").out
    assert "of 1 request the provider said what it cost, and that is taken" in page
    assert "$0.5000" in page
    assert "not known" not in tenlines("cost", "r1").out


# --- runs under calls -------------------------------------------------------------------------------------


def with_children() -> str:
    """A run two of whose calls run another agent, whose second run fails."""
    hundred = Usage(100, 10)
    moves = [Reply(calls=(ToolCall("x", "look", '{"number": 1}'),), usage=hundred), Reply("done", usage=hundred)]
    models = [ScriptedModel(moves), ScriptedModel(moves[:1])]
    settings = Settings(price=PRICE)

    @tool(spends=True)
    def child(ctx: CallContext) -> str:
        """Run a child."""
        agent = Agent(models.pop(0), [look], settings=settings, journal=journal)
        return agent.run_sync("go", under=ctx).last

    calls = tuple(ToolCall(name, "child", "{}") for name in "ab")
    replies = [Reply(calls=calls, usage=Usage(50, 5)), Reply("ok", usage=Usage(60, 5))]
    with closing(open_journal()) as journal:  # type: ignore[type-var]
        return Agent(ScriptedModel(replies), [child], settings=settings, journal=journal).run_sync("go").run_id


def test_own_tokens_and_those_of_runs_under_calls_are_told_apart(tenlines: Tenlines) -> None:
    run_id = with_children()
    page = squeezed(tenlines("cost", run_id).out)
    told_of = json.loads(tenlines("cost", run_id, "--json").out)
    first, second = (one["run_id"] for one in told_of["runs"])
    assert f"{first} 1.1 answered 200 20 $" in page
    assert f"{second} 1.2 max_steps 100 10 $" in page
    assert "its own 110 10 $" in page
    assert "under its calls 300 30 $" in page
    assert "all 410 40 $" in page
    assert "child 2 1 ~" in page
    assert "330 tokens, $" in page
    assert [one["is_charged"] for one in told_of["runs"]] == [True, True]
    assert "it served the call " + f"{run_id}:1:0" in tenlines("cost", first).out


def test_a_run_that_served_a_call_and_that_nobody_was_charged_for_is_listed(tenlines: Tenlines) -> None:
    told("r1", Reply("done", usage=Usage(10, 1)), tools=(ev.ToolSpec("child", spends=True),))
    told("r2", Reply("done", usage=Usage(20, 2)), parent="r1:1:0")
    told("r3", Reply("done", usage=Usage(20, 2)), parent="r11:1:0")
    page = squeezed(tenlines("cost", "r1").out)
    assert "r2 1.1 open 20 2 ? not charged" in page
    assert "r3" not in page


def test_a_run_that_is_not_in_the_journal_any_more_is_named(tenlines: Tenlines) -> None:
    run_id = with_children()
    with closing(SqliteJournal(Path("journal.db"))) as journal:
        first = ledger_of(journal.read(run_id)).children.runs[0]
        journal.delete([first])
    assert f"{first} not in this journal" in squeezed(tenlines("cost", run_id).out)
    assert json.loads(tenlines("cost", run_id, "--json").out)["missing"] == [first]


# --- several runs -----------------------------------------------------------------------------------------


def test_several_runs_have_a_line_each_and_one_under_a_call_of_another_counts_once(tenlines: Tenlines) -> None:
    run_id, other = with_children(), grown(3)
    child = json.loads(tenlines("cost", run_id, "--json").out)["runs"][0]["run_id"]
    page = squeezed(tenlines("cost", child, run_id, other, "last").out)
    assert f"{child} answered scripted 2 200 20 $" in page
    assert f"{run_id} answered scripted 5 410 40 $" in page
    assert page.count(other) == 1
    assert "\nall 8 9,410 53% 340 $" in page
    assert "1 run of these served calls of others, and count once" in page


def test_the_sum_of_several_runs_is_unknown_where_that_of_one_is(tenlines: Tenlines) -> None:
    told("r1")
    grown(3)
    page = squeezed(tenlines("cost", "r1", "last").out)
    assert "\nall 4 1,009,000 " in page
    assert "100,300 ?\n" in page
    assert "r1: the price is not known" in page


# --- for programs -----------------------------------------------------------------------------------------

KEYS = {
    *("run_id", "agent", "model", "started_at", "parent", "status", "price", "priced", "price_source", "said"),
    *("steps", "summaries", "cuts", "calls", "tools", "own", "children", "all", "held", "holders", "dollars"),
    *("cached_share", "repeated", "closed_form", "runs", "missing"),
}


def test_json_has_one_object_for_each_run_with_the_figures_of_its_ledger(tenlines: Tenlines) -> None:
    run_ids = [grown(3), grown(4)]
    lines = [json.loads(line) for line in tenlines("cost", *run_ids, "--json").out.splitlines()]
    assert [one["run_id"] for one in lines] == run_ids
    with closing(open_journal()) as journal:  # type: ignore[type-var]
        for one in lines:
            ledger = ledger_of(journal.read(one["run_id"]))
            assert set(one) == KEYS
            assert msgspec.convert({name: one[name] for name in Ledger.__struct_fields__}, Ledger) == ledger
            assert one["dollars"] == ledger.dollars
            assert one["closed_form"]["total"] == ledger.own.input_tokens
    assert all(f"`{name}`" in page_about("cost") for name in KEYS)


def page_about(command: str) -> str:
    """What `docs/cli.md` says of a command."""
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    return page.partition(f"\n## tenlines {command}\n")[2].partition("\n## ")[0]


def rows_of(done: Any) -> list[dict[str, str]]:
    """What a CSV holds."""
    assert (done.code, done.err) == (0, "")
    return list(csv.DictReader(io.StringIO(done.out)))


def test_csv_has_a_line_for_each_request_call_or_tool_of_all_runs(tenlines: Tenlines) -> None:
    run_ids = [grown(3), with_children()]
    steps = rows_of(tenlines("cost", *run_ids, "--csv", "steps"))
    assert [(one["run_id"], one["step"], one["kind"]) for one in steps] == [
        (run_id, str(n), "step") for run_id, count in zip(run_ids, (3, 2), strict=True) for n in range(1, count + 1)
    ]
    assert sum(int(one["input"]) for one in steps) == 9_000 + 110
    assert (steps[0]["new"], steps[1]["new"], steps[3]["cache_read"]) == ("", "1000", "")
    calls = rows_of(tenlines("cost", *run_ids, "--csv", "calls"))
    assert [(one["tool"], one["outcome"]) for one in calls] == [("look", "ok")] * 2 + [
        ("child", "ok"),
        ("child", "tool_error"),
    ]
    assert [one["spent_input"] for one in calls] == ["", "", "200", "100"]
    tools = rows_of(tenlines("cost", *run_ids, "--csv", "tools"))
    assert [(one["tool"], one["calls"], one["ok"], one["spent_output"]) for one in tools] == [
        ("look", "2", "2", "0"),
        ("child", "2", "1", "30"),
    ]


def test_a_request_for_a_summary_is_a_line_of_the_csv(tenlines: Tenlines) -> None:
    from tenlines.cli.cost import _step_rows

    ledger = ledger_of([])
    summary = {"start": 1, "end": 3, "usage": Usage(50, 5), "dollars": 0.5, "latency_s": 1.0, "fault": ""}
    from tenlines.core.costs import SummaryLine

    line = SummaryLine(step=1, reserved=Reservation(9, 8, 0.7), **summary)
    (row,) = _step_rows(msgspec.structs.replace(ledger, summaries=(line,)))
    assert (row["kind"], row["step"], row["input"], row["output"], row["dollars"]) == ("summary", 1, 50, 5, 0.5)
    assert (row["reserved_input"], row["reserved_output"], row["reserved_dollars"]) == (9, 8, 0.7)
    assert Spent() == ledger.own


# --- mistakes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nope",), "no run begins with 'nope'"),
        (("r1", "--csv", "rows"), "--csv must be steps or calls or tools; got 'rows'"),
        (("r1", "--csv", "steps", "--json"), "--csv and --json: take one of them"),
        (("r1", "--price", "cheap"), "--price must be"),
        (("r1", "--prices", "none.toml"), "--prices none.toml: there is no such file"),
        (("r1", "--journal", "none.db"), "there is no journal none.db"),
    ],
    ids=["run", "csv", "both", "price", "file", "journal"],
)
def test_a_mistake_is_one_sentence(tenlines: Tenlines, words: tuple[str, ...], says: str) -> None:
    told()
    done = tenlines("cost", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_a_log_that_is_none_of_a_run_leads_to_the_doctor(tenlines: Tenlines) -> None:
    with closing(SqliteJournal(Path("journal.db"))) as journal:
        put(journal, "r1", start("r1"), ev.ModelReplied(seq=1, at=2.0, step=1, reply=Reply("done")))
    done = tenlines("cost", "r1")
    assert done.code == 4
    assert "run r1 cannot be reckoned" in done.err
    assert "tenlines doctor" in done.err


def test_what_does_something_to_a_terminal_is_spelled_out(tenlines: Tenlines) -> None:
    told("r1", model="m\x1b[2J")
    for words in (("r1",), ("r1", "r1"), ("r1", "--full")):
        assert "\x1b" not in tenlines("cost", *words).out
