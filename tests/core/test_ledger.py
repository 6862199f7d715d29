"""The ledger of a run: its sums are those of the result, and its lines and its estimates add up to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from costly_runs import PRICE, CostlyRun, carried
from told_run import Run

from tenlines import Agent, CallContext, Limits, Reply, ToolCall, tool
from tenlines.core import events as ev
from tenlines.core.context import Arithmetic, Compaction
from tenlines.core.costs import NO_USE, Ledger
from tenlines.core.deciding import reservation
from tenlines.core.economics import forecast, total_input
from tenlines.core.ledger import LOST, ledger_of
from tenlines.core.limits import Reservation, Spent
from tenlines.core.replay import fold
from tenlines.core.transcript import Usage
from tenlines.errors import InvalidEvent
from tenlines.models.plain import ScriptedModel

SEEDS = 300


def sum_of(spents: Any) -> Spent:
    """All together."""
    whole = NO_USE
    for spent in spents:
        whole = whole.plus(spent)
    return whole


def of_reply(usage: Usage | None) -> Spent:
    """The tokens of one reply, as the ledger adds them up."""
    return NO_USE if usage is None else Spent(input_tokens=usage.input or 0, output_tokens=usage.output or 0)


# --- the sums ---------------------------------------------------------------------------------------------


def check_sums(log: list[ev.AnyEvent]) -> Ledger:
    """The ledger of a log, which agrees with the result in every figure and with its own lines."""
    result, ledger = fold(log).result(), ledger_of(log)
    whole, usage = ledger.all, result.usage
    assert (whole.input_tokens, whole.output_tokens) == (usage.input, usage.output)
    assert (whole.cache_read, whole.cache_write, whole.reasoning) == usage[2:5]
    assert whole.unmetered == usage.unmetered
    assert ledger.dollars == result.dollars
    assert ledger.children == result.children
    spent = sum_of(line.spent for line in ledger.calls if line.spent is not None)
    assert (spent.tokens, sorted(spent.runs)) == (ledger.children.tokens, sorted(ledger.children.runs))
    assert (ledger.own.steps, ledger.own.tool_calls) == (result.steps, result.tool_calls)

    lines = [of_reply(line.usage) for line in (*ledger.steps, *ledger.summaries)]
    tokens = sum_of([*lines, *(line.failed for line in ledger.steps)])
    assert (tokens.input_tokens, tokens.output_tokens) == (ledger.own.input_tokens, ledger.own.output_tokens)
    known = [line.dollars or 0.0 for line in (*ledger.steps, *ledger.summaries)]
    assert sum(known) + tokens.dollars == pytest.approx(ledger.own.dollars)
    assert [line.step for line in ledger.steps] == list(range(1, len(ledger.steps) + 1))
    assert [(line.place, line.outcome) for line in ledger.calls if line.outcome is not None][: len(result.calls)] == [
        (f"{call.step}.{call.position + 1}", call.outcome) for call in result.calls
    ]
    assert sum(line.carried for line in ledger.tools) == sum(line.carried for line in ledger.calls)
    return ledger


@pytest.mark.slow
def test_the_sums_are_those_of_the_result_and_the_lines_add_up_to_them(say: Callable[[str], None]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        log = CostlyRun(seed).log
        for length in {0, 1, len(log) // 3, 2 * len(log) // 3, len(log)}:
            check_sums(log[:length])
        seen.update(type(event).__name__ for event in log)
    say(f"ledgers: {SEEDS} random runs, {seen['ModelReplied']:,} replies, {seen['ContextCompacted']} cuts")
    assert min(seen[name] for name in ("SummaryEnded", "LateResultArrived", "ModelFailed", "ContextCompacted")) > 50


@pytest.mark.slow
def test_what_results_weigh_is_what_every_request_shared_out_among_its_messages_gives() -> None:
    for seed in range(SEEDS):
        run = CostlyRun(seed)
        shares = carried(run.log)
        ids = {(step, position): one.call.id for step, position, one in run.machine.state.records}
        ledger = ledger_of(run.log)
        for line in ledger.calls:
            share = shares.get(ids.get((line.step, line.position), ""), 0.0)
            assert line.carried == pytest.approx(share, abs=0.51), (seed, line)
            assert (line.sent > 0) == (share > 0)
        if not ledger.own.unmetered:
            assert sum(line.carried for line in ledger.calls) <= ledger.own.input_tokens + len(ledger.calls)


def test_a_log_that_is_none_has_no_ledger() -> None:
    empty = ledger_of([])
    assert (empty.run_id, empty.steps, empty.closed_form, empty.cached_share) == ("", (), None, None)
    with pytest.raises(InvalidEvent):
        ledger_of([ev.CancelRequested(seq=0, at=1.0, mode="now")])


# --- the closed form --------------------------------------------------------------------------------------

PROMPT, GROWTH = 2_000, 1_000


@tool(read_only=True)
def look(number: int) -> str:
    """Look a number up."""
    return f"row {number}"


def growing_run(steps: int) -> Ledger:
    """The ledger of an agent's run whose prompt grows by the same at every step."""
    usages = [Usage(PROMPT + GROWTH * n, 100, PROMPT + GROWTH * (n - 1) if n else 0) for n in range(steps)]
    moves = [Reply(calls=(ToolCall(f"c{n}", "look", f'{{"number": {n}}}'),), usage=usages[n]) for n in range(steps - 1)]
    agent = Agent(ScriptedModel([*moves, Reply("done", usage=usages[-1])]), [look], journal="memory")
    return ledger_of(agent.journal.read(agent.run_sync("look all rows up").run_id))


@pytest.mark.parametrize(("steps", "total"), [(10, 65_000), (20, 230_000)])
def test_a_run_that_grows_evenly_costs_what_the_closed_form_and_the_forecast_say(steps: int, total: int) -> None:
    ledger = growing_run(steps)
    foretold = forecast(PROMPT, GROWTH, steps, output=100)
    assert (
        ledger.own.input_tokens == total == total_input(PROMPT, GROWTH, steps) == foretold.without_cache[-1].total_input
    )
    form = ledger.closed_form
    assert form is not None
    assert (form.prompt, form.per_step, form.steps, form.total) == (PROMPT, GROWTH, steps, total)
    assert [line.new for line in ledger.steps] == [None] + [GROWTH] * (steps - 1)
    read = [row.cached for row in foretold.with_cache]
    assert [line.usage.cache_read for line in ledger.steps if line.usage] == read
    assert ledger.repeated == ledger.own.cache_read == sum(read)
    assert ledger.cached_share == sum(read) / total


# --- lines ------------------------------------------------------------------------------------------------

TABLE = "row of a table, " * 100
CUTTING = Compaction(summary_tokens=60, keep=1)
OLD = {"start": 1, "end": 5}
"""Where the two oldest of three exchanges stand."""
ARITHMETIC = Arithmetic(why="pays", tokens_before=9, tokens_after=5, steps=4.0, saves=2.0, costs=1.0, unit="tokens")


def ask(run: Run, **fields: Any) -> Run:
    """The next request goes out, whatever else the machine would do first."""
    state = run.machine.state
    reserved = reservation(state).reserved
    return run.tell(
        ev.StepStarted, step=state.account.steps + 1, attempt=state.attempt + 1, reserved=reserved, **fields
    )


def step(run: Run, taken: int, *, text: str = TABLE, name: str = "look") -> Run:
    """A step whose request held so many tokens and took a second, and its call, which took two."""
    ask(run)
    run.at += 1.0
    call = ToolCall(f"c{len(run.log)}", name, "{}")
    number = run.machine.state.account.steps + 1
    run.tell(ev.ModelReplied, step=number, reply=Reply("", (call,), usage=Usage(taken, 10, taken // 2)))
    run.start()
    run.at += 2.0
    return run.returned(text=text)


def three_steps(**settings: Any) -> Run:
    """A run that may be cut."""
    return step(step(step(Run(compaction=CUTTING, **settings), 400), 1_000), 1_600)


def cut(run: Run, strategy: str, summary: str = "") -> Run:
    """The two oldest exchanges are cut."""
    return run.tell(ev.ContextCompacted, strategy=strategy, **OLD, arithmetic=ARITHMETIC, summary=summary)


def test_a_step_has_what_was_reserved_and_expected_beside_what_was_reported() -> None:
    run = Run(price=PRICE, limits=Limits(dollars=1.0))
    step(step(run, 400), 1_000)
    first, second = ledger_of(run.log).steps
    assert (first.usage, first.new, first.latency_s, first.attempts) == (Usage(400, 10, 200), None, 1.0, 1)
    assert (second.usage, second.new) == (Usage(1_000, 10, 500), 600)
    assert second.dollars == pytest.approx((500 * 3 + 500 * 0.3 + 10 * 15) / 1e6)
    assert second.reserved == next(one for one in run.log if isinstance(one, ev.StepStarted) and one.step == 2).reserved
    assert 400 < second.expected < second.reserved.input_tokens
    assert second.reserved.dollars is not None
    assert second.reserved.dollars > second.dollars


def test_what_goes_before_a_reply_is_told_apart_from_how_long_it_took() -> None:
    run = Run(price=PRICE).ask()
    run.at += 3.0
    run.tell(ev.ModelFailed, step=1, attempt=1, kind="E", message="no", retryable=True, usage=Usage(100, 7))
    run.at = run.effect.until
    wait = run.at - run.log[-1].at
    run.ask()
    run.at += 5.0
    run.tell(ev.ModelReplied, step=1, reply=Reply("done", usage=Usage(120, 8)))
    (line,) = ledger_of(run.log).steps
    assert (line.attempts, line.latency_s, line.waited_s) == (2, 5.0, pytest.approx(3.0 + wait))
    assert (line.failed.input_tokens, line.failed.output_tokens) == (100, 7)
    assert line.failed.dollars == pytest.approx((100 * 3 + 7 * 15) / 1e6)
    assert ledger_of(run.log).own.input_tokens == 220


def test_the_time_until_somebody_took_the_run_up_is_nobodys_wait() -> None:
    run = Run().ask()
    run.tell(ev.ModelFailed, step=1, attempt=1, kind="E", message="no", retryable=True)
    run.at += 1_000
    run.resume().call("look").start()
    run.at += 1_000
    run.resume().start()
    run.at += 2.0
    run.returned()
    ledger = ledger_of(run.log)
    assert ledger.steps[0].waited_s == 0.0
    assert ledger.calls[0].latency_s == 2.0


def test_of_a_call_that_a_crash_cut_off_nobody_knows_how_long_it_took() -> None:
    run = Run().call("send").start()
    run.at += 1_000
    (line,) = ledger_of(run.resume().refuse_all().log).calls
    assert (line.outcome, line.latency_s) == ("in_doubt", None)


def test_behind_a_step_that_was_not_reported_nobody_knows_what_is_new() -> None:
    run = step(Run(), 400)
    ask(run).tell(ev.ModelReplied, step=2, reply=Reply("", (ToolCall("x", "look", "{}"),))).start().returned()
    assert [line.new for line in ledger_of(step(run, 900).log).steps] == [None, None, None]


def test_a_request_that_nobody_will_hear_of_is_not_counted_as_nothing() -> None:
    run = Run().ask().resume().ask().cancel("now")
    ledger = ledger_of(run.log)
    assert (ledger.own.unmetered, ledger.steps[0].failed.unmetered, ledger.steps[0].usage) == (2, 2, None)


def test_what_broke_the_beginning_stands_at_the_step_that_paid_for_it() -> None:
    run = step(Run(), 400).resume(tools=(ev.ToolSpec("look", "Otherwise.", read_only=True),))
    ask(run, changed=run.effect.changed)
    run.tell(ev.ModelFailed, step=2, attempt=1, kind="E", message="no", retryable=True)
    run.at = run.effect.until
    ask(run).tell(ev.ModelReplied, step=2, reply=Reply("done", usage=Usage(900, 1)))
    first, second = ledger_of(run.log).steps
    assert (first.changed, second.changed) == ("", "the tools: send, put, finish, tell gone, look described otherwise")
    assert ledger_of(run.log).repeated == 200  # what the first request found in the cache


def test_a_cut_stands_between_what_the_provider_counted_before_and_behind_it() -> None:
    ledger = ledger_of(step(cut(three_steps(), "elide"), 1_100).log)
    (line,) = ledger.cuts
    assert (line.step, line.strategy, line.input_before, line.input_after) == (4, "elide", 1_600, 1_100)
    assert (line.start, line.end, line.arithmetic) == (1, 5, ARITHMETIC)
    assert ledger.steps[3].new == -500
    assert ledger.closed_form is not None
    assert (ledger.closed_form.per_step, ledger.closed_form.total) == (600, total_input(400, 600, 4))  # as if not cut
    assert ledger_of(cut(three_steps(), "elide").log).cuts[0].input_after is None


def test_a_result_that_was_cut_counts_as_the_line_that_is_left_of_it() -> None:
    run = three_steps()
    before = ledger_of(run.log).calls[0]
    after = ledger_of(step(cut(run, "elide"), 1_100).log).calls[0]
    assert (before.sent, after.sent) == (2, 3)
    assert before.carried > before.tokens
    assert 0 < after.carried - before.carried < before.tokens / 4
    assert after.tokens == before.tokens


def test_a_result_that_is_gone_costs_nothing_any_more() -> None:
    run = three_steps()
    before = ledger_of(run.log).calls
    after = ledger_of(step(cut(run, "drop"), 700).log).calls
    assert [line.sent for line in before] == [2, 1, 0]
    assert [line.sent for line in after] == [2, 1, 1, 0]
    assert before[0] == after[0]


def test_a_result_that_no_request_has_held_is_sized_by_what_is_known_by_then() -> None:
    (line,) = ledger_of(step(Run(), 400).log).calls
    assert (line.sent, line.carried) == (0, 0)
    assert line.tokens > 100


def test_each_request_for_a_summary_has_a_line_of_its_own() -> None:
    run = three_steps(price=PRICE)
    reserved = Reservation(1_700, 60)
    run.tell(ev.SummaryStarted, **OLD, reserved=reserved).tell(ev.SummaryEnded, kind="E", message="overloaded")
    run.resume().tell(ev.SummaryStarted, **OLD, reserved=reserved)
    run.at += 4.0
    run.tell(ev.SummaryEnded, reply=Reply("It went well.", usage=Usage(2_000, 9, 1_600)))
    ledger = ledger_of(step(cut(run, "summarise", "It went well."), 700).log)
    failed, taken = ledger.summaries
    assert "overloaded" in failed.fault
    assert (failed.usage, failed.dollars, failed.latency_s) == (None, None, 0.0)
    assert (taken.step, taken.usage, taken.fault, taken.latency_s) == (4, Usage(2_000, 9, 1_600), "", 4.0)
    assert (taken.start, taken.end, taken.reserved) == (1, 5, reserved)
    assert taken.dollars == pytest.approx((400 * 3 + 1_600 * 0.3 + 9 * 15) / 1e6)
    assert ledger.own.input_tokens == 400 + 1_000 + 1_600 + 2_000 + 700
    assert ledger.own.steps == 4
    assert [line.sent for line in ledger.calls] == [3, 2, 2, 0]  # it held them all


def test_a_summary_that_was_broken_off_is_a_line_too() -> None:
    run = three_steps().tell(ev.SummaryStarted, **OLD, reserved=Reservation()).resume()
    ledger = ledger_of(run.log)
    assert [(line.fault, line.usage) for line in ledger.summaries] == [(LOST, None)]
    assert ledger.own.unmetered == 1


def test_tools_are_told_by_what_their_results_weighed() -> None:
    run = step(step(step(Run(), 400, text="x"), 1_000, name="put"), 1_700, name="put", text="y")
    run.reply("done", usage=Usage(1_800, 3)).finish()
    first, second = ledger_of(run.log).tools
    assert (first.tool, first.calls, first.ok, first.latency_s) == ("put", 2, 2, 4.0)
    assert (second.tool, second.calls) == ("look", 1)
    assert first.carried > second.carried > 0


# --- money ------------------------------------------------------------------------------------------------


def test_a_price_that_is_given_later_is_used_only_for_what_the_log_does_not_know() -> None:
    run = step(Run(), 1_000)
    run.ask().tell(ev.ModelReplied, step=2, reply=Reply("done", usage=Usage(1_000, 10), dollars=0.5))
    unknown, given = ledger_of(run.log), ledger_of(run.log, PRICE)
    assert (unknown.priced, unknown.dollars, unknown.steps[0].dollars, unknown.said) == ("unknown", None, None, 1)
    assert (given.priced, given.price, given.steps[1].dollars) == ("given", PRICE, 0.5)
    assert given.dollars == pytest.approx(0.5 + PRICE.of(Usage(1_000, 10, 500)))
    recorded = ledger_of(step(Run(price=PRICE), 1_000).log, None)
    assert (recorded.priced, recorded.dollars) == ("recorded", PRICE.of(Usage(1_000, 10, 500)))
    assert ledger_of(step(Run(price=PRICE), 1_000).log, PRICE.__class__(input=9, output=9)) == recorded


def test_a_given_price_does_not_make_up_what_was_not_counted() -> None:
    run = Run().ask().tell(ev.ModelReplied, step=1, reply=Reply("done", usage=Usage(1_000, None)))
    assert ledger_of(run.log, PRICE).dollars is None


def child_run() -> tuple[Ledger, list[Ledger]]:
    """An agent two of whose calls run another agent, whose second run fails: its ledger and theirs."""
    hundred = Usage(100, 10)
    moves = [Reply(calls=(ToolCall("x", "look", '{"number": 1}'),), usage=hundred), Reply("done", usage=hundred)]
    children = [ScriptedModel(moves), ScriptedModel(moves[:1])]

    @tool(spends=True)
    def child(ctx: CallContext) -> str:
        """Run a child."""
        agent = Agent(children.pop(0), [look], journal=journal)
        return agent.run_sync("go", under=ctx).last

    calls = tuple(ToolCall(name, "child", "{}") for name in "ab")
    parent = Agent(
        ScriptedModel([Reply(calls=calls, usage=Usage(50, 5)), Reply("ok", usage=Usage(60, 5))]),
        [child],
        journal="memory",
    )
    journal = parent.journal
    run_id = parent.run_sync("go").run_id
    ledger = ledger_of(journal.read(run_id))
    return ledger, [ledger_of(journal.read(one)) for one in ledger.children.runs]


def test_what_children_used_is_told_apart_and_one_that_failed_counts() -> None:
    ledger, children = child_run()
    assert (ledger.own.tokens, ledger.children.tokens, ledger.all.tokens) == (120, 330, 450)
    assert [(line.tool, line.outcome, line.spent.tokens) for line in ledger.calls if line.spent] == [
        ("child", "ok", 220),
        ("child", "tool_error", 110),
    ]
    assert [one.own.tokens for one in children] == [220, 110]
    assert [one.parent for one in children] == [f"{ledger.run_id}:1:0", f"{ledger.run_id}:1:1"]
    (line,) = ledger.tools
    assert (line.calls, line.ok, line.spent.tokens) == (2, 1, 330)
