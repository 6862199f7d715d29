"""An agent and money: what is looked up before a run starts, what it cost, and what becomes of a transcript that was
cut when it is resumed, forked, or goes on in a session."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tenlines import Agent, Compaction, Limits, Reply, Session, Settings, ToolCall, tool
from tenlines.core import events as ev
from tenlines.core.context import SUMMARY_HEADING
from tenlines.core.effects import CallModel
from tenlines.core.limits import Counting, Price
from tenlines.core.transcript import Assistant, Note, Opaque, Result, System, Usage, User
from tenlines.counting import first_count
from tenlines.errors import BudgetExceeded, ConfigError, ContextOverflow, ContextTooLong, JournalError, StepLimitReached
from tenlines.journal.memory import MemoryJournal
from tenlines.models.plain import ScriptedModel
from tenlines.prices import price_of, window_of

GPT_5 = "openai:gpt-5"
NEITHER = "anthropic:claude-nobody"
"""No price, no window and no tokenizer are known of it."""
LONG = " ".join(f"word{number}" for number in range(2_000))
ELIDES = Compaction(strategies=("elide",), keep=1, at=1_000)
SUMMARISES = Compaction(strategies=("summarise",), keep=1, at=1_000)


def asks(name: str, arguments: str = "{}", usage: Usage | None = None) -> Reply:
    return Reply(calls=(ToolCall(f"{name}-1", name, arguments),), usage=usage)


def scripted(*replies: Any, name: str = GPT_5) -> ScriptedModel:
    return ScriptedModel(replies, name)


@tool(read_only=True, repeatable=True, max_result=20_000)
def read() -> str:
    """Returns much."""
    return LONG


@tool(read_only=True, repeatable=True)
def look() -> str:
    """Returns little."""
    return "nothing"


TOOLS = [read, look]


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file of prices, which is not there yet."""
    file = tmp_path / "prices.toml"
    monkeypatch.setenv("TENLINES_PRICES", str(file))
    return file


def start_of(journal: MemoryJournal, run_id: str) -> ev.RunStarted:
    start = next(iter(journal.read(run_id)))
    assert isinstance(start, ev.RunStarted)
    return start


def newest(journal: MemoryJournal) -> ev.RunStarted:
    return start_of(journal, journal.runs(1)[0].run_id)


def events(journal: MemoryJournal, run_id: str, kind: type[Any]) -> list[Any]:
    return [event for event in journal.read(run_id) if isinstance(event, kind)]


def text_of(request: CallModel) -> str:
    return str(list(request.messages))


# --- prices -------------------------------------------------------------------------------------------


def test_the_price_is_looked_up_by_the_models_name_and_recorded(journal: MemoryJournal) -> None:
    usages = [Usage(10_000, 500, cache_read=4_000), Usage(12_000, 100, cache_read=10_000)]
    agent = Agent(scripted(asks("look", usage=usages[0]), Reply("done", usage=usages[1])), TOOLS, journal=journal)
    result = agent.run_sync("go")
    start = start_of(journal, result.run_id)
    price = start.settings.price
    assert price is not None
    assert price == price_of(GPT_5, start.at)
    assert (price.input, price.output) == (1.25, 10)
    assert result.dollars == pytest.approx(sum(map(price.of, usages)))
    assert result.dollars == pytest.approx((8_000 * 1.25 + 14_000 * 0.125 + 600 * 10) / 1e6)
    assert result.left.dollars is None


def test_a_price_that_is_stated_is_not_looked_up(journal: MemoryJournal) -> None:
    stated = Settings(price=Price(input=3, output=3))
    result = Agent(scripted(Reply("done", usage=Usage(1_000, 0))), journal=journal, settings=stated).run_sync("go")
    assert result.dollars == pytest.approx(0.003)


def test_the_users_own_prices_win_over_the_list(journal: MemoryJournal, prices: Path) -> None:
    prices.write_text('["openai:gpt-*"]\ninput = 2\noutput = 4\nwindow = 5000\n')
    model = scripted(Reply("done", usage=Usage(1_000, 1_000)))
    result = Agent(model, journal=journal, compaction=True).run_sync("go")
    assert result.dollars == pytest.approx(0.006)
    settings = start_of(journal, result.run_id).settings
    assert settings.price == Price(input=2, output=4)
    assert settings.compaction is not None
    assert settings.compaction.window == 5_000


def test_a_file_of_prices_that_makes_no_sense_stops_the_run_before_it_starts(
    journal: MemoryJournal, prices: Path
) -> None:
    prices.write_text('["openai:gpt-5"]\ninput = "much"\noutput = 4\n')
    agent = Agent(scripted("never"), journal=journal)
    with pytest.raises(ConfigError, match=r"prices\.toml"):
        agent.run_sync("go")
    assert journal.runs() == []


def test_an_unknown_price_under_a_dollar_limit_stops_the_run_before_the_first_request(journal: MemoryJournal) -> None:
    model = scripted("never", name=NEITHER)
    agent = Agent(model, journal=journal, limits=Limits(dollars=1.0))
    with pytest.raises(BudgetExceeded) as caught:
        agent.run_sync("go")
    assert model.requests == []
    assert "price of this model is not known" in str(caught.value)
    for way in ("Settings.price", "--price", "file of prices", "limit tokens"):
        assert way in str(caught.value)
    stated = Agent(
        scripted(Reply("done"), name=NEITHER), journal=journal, settings=Settings(price=Price(input=1, output=1))
    )
    assert stated.run_sync("go", limits=Limits(dollars=1.0)).answer == "done"


def test_without_a_dollar_limit_an_unknown_price_is_unknown_and_not_nothing(journal: MemoryJournal) -> None:
    result = Agent(scripted(Reply("done", usage=Usage(10, 10)), name=NEITHER), journal=journal).run_sync("go")
    assert result.dollars is None


def test_what_runs_on_this_machine_is_free(journal: MemoryJournal) -> None:
    model = scripted(Reply("done", usage=Usage(10_000, 500)), name="local")
    result = Agent(model, journal=journal, limits=Limits(dollars=0.0)).run_sync("go")
    assert (result.answer, result.dollars) == ("done", 0.0)


def test_a_dollar_limit_holds_by_what_is_reserved(journal: MemoryJournal) -> None:
    replies = [asks("look", usage=Usage(40_000, 100)) for _ in range(9)]
    model = scripted(*replies)
    with pytest.raises(BudgetExceeded, match=r"\$0\.\d+ of \$0\.2000 are spent"):
        Agent(model, TOOLS, journal=journal, limits=Limits(dollars=0.2)).run_sync("go")
    assert len(model.requests) == 3
    assert all(one.max_output_tokens is not None for one in model.requests)


# --- windows, steps to expect --------------------------------------------------------------------------


def answered(journal: MemoryJournal, steps: int, **options: Any) -> None:
    """An earlier run of so many steps."""
    model = scripted(*[asks("look")] * (steps - 1), "done")
    Agent(model, TOOLS, journal=journal, **options).run_sync("go")


def test_the_window_and_the_steps_to_expect_are_filled_in(journal: MemoryJournal) -> None:
    for steps in (3, 1, 4):
        answered(journal, steps)
    answered(journal, 7, name="another")
    with pytest.raises(StepLimitReached):
        Agent(scripted(asks("look")), TOOLS, journal=journal).run_sync("go")
    result = Agent(scripted("done"), TOOLS, journal=journal, compaction=True).run_sync("go")
    compaction = start_of(journal, result.run_id).settings.compaction
    assert compaction is not None
    assert compaction.expected_steps == (1, 3, 4)
    assert compaction.window == window_of(GPT_5)
    assert compaction.window is not None


def test_what_is_stated_of_a_window_or_of_steps_stays(journal: MemoryJournal) -> None:
    answered(journal, 3)
    stated = Compaction(window=9_000, expected_steps=(5, 6))
    result = Agent(scripted("done"), journal=journal, compaction=stated).run_sync("go")
    assert start_of(journal, result.run_id).settings.compaction == stated


def test_a_window_that_is_known_is_kept_to(journal: MemoryJournal, prices: Path) -> None:
    prices.write_text('["openai:gpt-5"]\nwindow = 8000\n')
    model = scripted(*[asks("read")] * 6, "done")
    agent = Agent(model, TOOLS, journal=journal, compaction=Compaction(strategies=("elide",), keep=1))
    result = agent.run_sync("go")
    assert result.answer == "done"
    cuts = events(journal, result.run_id, ev.ContextCompacted)
    assert cuts
    assert all(text_of(one).count(LONG) <= 2 for one in model.requests)


def test_what_no_journal_can_say_is_not_missed(journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal that does not work is reported by the run, not by what looks for earlier ones."""

    def runs(*args: Any, **kwargs: Any) -> Any:
        raise JournalError("away")

    monkeypatch.setattr(journal, "runs", runs)
    result = Agent(scripted("done", name=NEITHER), journal=journal, compaction=True).run_sync("go")
    compaction = start_of(journal, result.run_id).settings.compaction
    assert compaction is not None
    assert (result.answer, compaction.expected_steps, compaction.window) == ("done", (), None)


# --- how tokens are counted -----------------------------------------------------------------------------


def test_a_first_request_is_counted_by_the_models_own_tokenizer(journal: MemoryJournal) -> None:
    pytest.importorskip("quicktok")
    agent = Agent(
        scripted("done"), TOOLS, journal=journal, instructions="Sei kurz. " * 50, limits=Limits(tokens=90_000)
    )
    result = agent.run_sync("Grüße aus Köln! " * 50)
    start = start_of(journal, result.run_id)
    assert (start.counting.source, start.counting.margin) == ("o200k_base", 1.1)
    found = first_count(GPT_5, start.messages, start.tools)
    assert found is not None
    (step,) = events(journal, result.run_id, ev.StepStarted)
    assert found[0] <= step.reserved.input_tokens <= found[0] * 1.1 + 2


@pytest.mark.parametrize(
    "settings",
    [
        Settings(limits=Limits(tokens=100_000)),
        Settings(limits=Limits(dollars=1.0), price=Price(input=1, output=2)),
        Settings(compaction=ELIDES),
    ],
)
def test_earlier_runs_are_not_read_in_the_event_loop(settings: Settings) -> None:
    readers: list[int] = []

    class Watched(MemoryJournal):
        def runs(self, *args: Any, **options: Any) -> Any:
            readers.append(threading.get_ident())
            return super().runs(*args, **options)

    model = scripted("done", name=NEITHER)
    asyncio.run(Agent(model, journal=Watched(), settings=settings).run("go"))
    assert readers
    assert threading.get_ident() not in readers


def test_without_a_tokenizer_the_newest_run_of_the_model_says_how_tokens_count(journal: MemoryJournal) -> None:
    def once(usage: Usage | None, **options: Any) -> Counting:
        model = scripted(Reply("done", usage=usage), name=NEITHER)
        result = Agent(model, journal=journal, **options).run_sync("go " * 300)
        return start_of(journal, result.run_id).counting

    limits = {"limits": Limits(tokens=90_000)}
    assert once(None, **limits) == Counting(), "nobody has said anything yet"
    assert once(Usage(600, 5)) == Counting(), "without limits and cuts nobody needs to know"
    learnt = once(Usage(300, 5), **limits)
    assert learnt.source == f"run {journal.runs()[1].run_id}"
    assert learnt.margin == 1.25
    assert once(Usage(300, 5), **limits).rate == pytest.approx(learnt.rate / 2), "it is the newest that counts"
    other = Agent(scripted("done", name="anthropic:claude-other"), journal=journal, **limits).run_sync("go")  # type: ignore[arg-type]
    assert start_of(journal, other.run_id).counting == Counting()


# --- resume ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "aio"])
@pytest.mark.parametrize(("window", "why"), [(None, "window"), (100_000, "pays")], ids=["unknown", "known by now"])
def test_a_run_that_overflowed_goes_on_when_it_is_resumed_with_compaction(
    journal: MemoryJournal, prices: Path, is_async: bool, window: int | None, why: str
) -> None:
    prices.write_text(f'["{NEITHER}"]\nwindow = {window}\n' if window else "")
    too_long = scripted(asks("read"), asks("look"), ContextTooLong("too long"), name=NEITHER)
    with pytest.raises(ContextOverflow) as caught:
        Agent(too_long, TOOLS, journal=journal).run_sync("go")
    run_id = caught.value.result.run_id
    model = scripted("done", name=NEITHER)
    again, how = Agent(model, TOOLS, journal=journal), Compaction(strategies=("elide",), keep=1)
    if is_async:
        result = asyncio.run(again.resume(run_id, compaction=how))
    else:
        result = again.resume_sync(run_id, compaction=how)
    assert result.answer == "done"
    (resumed,) = events(journal, run_id, ev.RunResumed)
    assert resumed.compaction.window == window
    (request,) = model.requests
    assert LONG not in text_of(request)
    assert "left out to save room" in text_of(request)
    (cut,) = events(journal, run_id, ev.ContextCompacted)
    assert cut.arithmetic.why == why


def test_resuming_without_compaction_says_the_same_again(journal: MemoryJournal) -> None:
    replies = [asks("read"), ContextTooLong("too long")]
    with pytest.raises(ContextOverflow) as caught:
        Agent(scripted(*replies), TOOLS, journal=journal).run_sync("go")
    again = Agent(scripted(ContextTooLong("still too long")), TOOLS, journal=journal)
    result = again.resume_sync(caught.value.result.run_id, compaction=False, raise_on_stop=False)
    assert (result.status, result.reason) == ("context_overflow", "still too long")


def test_a_run_keeps_how_it_is_cut_whatever_agent_resumes_it(journal: MemoryJournal) -> None:
    with pytest.raises(StepLimitReached) as caught:
        Agent(scripted(asks("read"), asks("look")), TOOLS, journal=journal, compaction=ELIDES).run_sync("go")
    model = scripted("done")
    result = Agent(model, TOOLS, journal=journal).resume_sync(caught.value.result.run_id)
    assert result.answer == "done"
    assert LONG not in text_of(model.requests[0])


# --- forks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compaction", [ELIDES, SUMMARISES], ids=lambda one: one.strategies[0])
def test_a_fork_begins_from_the_transcript_as_it_was_before_that_step(
    journal: MemoryJournal, compaction: Compaction
) -> None:
    summary = [Reply("It was read.")] if compaction is SUMMARISES else []
    first = Agent(
        scripted(asks("read"), asks("look"), *summary, asks("look"), "done"),
        TOOLS,
        journal=journal,
        compaction=compaction,
    )
    run_id = first.run_sync("go").run_id
    (cut,) = events(journal, run_id, ev.ContextCompacted)
    (third,) = [one for one in events(journal, run_id, ev.StepStarted) if one.step == 3]
    assert cut.seq < third.seq
    for at, has_all in ((1, False), (2, True), (3, False), (4, False), (5, False)):
        model = scripted("forked")
        fork = Agent(model, TOOLS, journal=journal).fork_sync(run_id, at, "otherwise")
        (request,) = model.requests
        assert (LONG in text_of(request)) == has_all, at
        assert fork.answer == "forked"
        start = start_of(journal, fork.run_id)
        assert (start.origin, start.changed) == (f"{run_id}@{at}", "")
        whole = [one.text for one in request.messages if isinstance(one, Note) and one.summary]
        assert len(whole) == (at > 2 and compaction is SUMMARISES)
        assert [one.text for one in request.messages if isinstance(one, User)] == ["go", "otherwise"]


# --- sessions -------------------------------------------------------------------------------------------


def test_the_next_turn_goes_on_from_the_transcript_that_was_cut(journal: MemoryJournal) -> None:
    model = scripted(asks("read"), asks("look"), Reply("It was read."), "done")
    first = Agent(model, TOOLS, journal=journal, compaction=SUMMARISES, instructions="Be brief.")
    Session(first, "talk").run_sync("go")
    model = scripted("yes")
    second = Agent(model, TOOLS, journal=journal, compaction=SUMMARISES, instructions="Be brief.")
    result = Session(second, "talk").run_sync("and?")
    (request,) = model.requests
    kinds = [type(one).__name__ for one in request.messages]
    assert kinds == ["System", "User", "Note", "Assistant", "Result", "Assistant", "User"]
    assert request.messages[2].text == f"{SUMMARY_HEADING}It was read."  # type: ignore[union-attr]
    start = start_of(journal, result.run_id)
    assert (start.turn, start.changed) == (2, "")
    assert events(journal, result.run_id, ev.StepStarted)[0].changed == ""


def turn(
    journal: MemoryJournal, instructions: str = "", tools: Sequence[Any] = TOOLS, name: str = GPT_5
) -> ev.RunStarted:
    """One more turn of a conversation."""
    agent = Agent(scripted("done", name=name), tools, journal=journal, instructions=instructions)
    Session(agent, "talk").run_sync("go")
    return newest(journal)


def test_what_changed_at_the_beginning_of_the_next_turn_is_named(journal: MemoryJournal) -> None:
    assert turn(journal).changed == ""
    assert turn(journal).changed == ""
    assert turn(journal, tools=TOOLS[::-1]).changed == "the order of the tools"
    assert turn(journal, tools=TOOLS[:1]).changed == "the tools: look gone"
    assert turn(journal, name="openai:gpt-5-mini").changed == f"the model: openai:gpt-5-mini, was {GPT_5}"
    late = turn(journal, name="openai:gpt-5-mini", instructions="Be brief.")
    assert late.changed.startswith("the instructions, from character 0 on: 'Be brief.'")
    (step,) = events(journal, late.run_id, ev.StepStarted)
    assert step.changed == late.changed, "it is said with the request that it makes new"


def test_a_clock_in_the_instructions_of_the_next_turn_is_sent_and_named(journal: MemoryJournal) -> None:
    turn(journal, instructions="It is 2026-01-01 10:00. Be brief.")
    second = turn(journal, instructions="It is 2026-01-01 10:07. Be brief.")
    assert second.changed.startswith("the instructions: a date or time in them")
    assert [one.text for one in second.messages if isinstance(one, System)] == ["It is 2026-01-01 10:07. Be brief."]


def test_the_next_turn_of_an_agent_without_instructions_keeps_those_of_the_first(journal: MemoryJournal) -> None:
    turn(journal, instructions="Be brief.")
    second = turn(journal, instructions="")
    assert second.changed == ""
    assert [one.text for one in second.messages if isinstance(one, System)] == ["Be brief."]


def test_reasoning_that_was_signed_under_other_instructions_is_marked(journal: MemoryJournal) -> None:
    thought = Reply("Hm.", opaque=(Opaque("anthropic", "claude", {"content": []}),))
    Session(Agent([thought], instructions="Be brief.", journal=journal), "talk").run_sync("Hello")
    Session(Agent([Reply("ok")], instructions="Be long.", journal=journal), "talk").run_sync("And?")
    start = next(iter(journal.read(journal.runs(1)[0].run_id)))
    assert isinstance(start, ev.RunStarted)
    assert [one.rebased for one in start.messages if isinstance(one, Assistant)] == [True]


# --- read_result ----------------------------------------------------------------------------------------


@tool(read_only=True, max_result=100)
def fetch() -> str:
    """Returns more than is shown."""
    return LONG


def read_again(key: str, **arguments: str) -> Reply:
    return asks("read_result", json.dumps({"key": key, **arguments}))


def test_a_result_that_was_left_out_is_read_again_in_the_same_run(journal: MemoryJournal) -> None:
    def model(messages: list[Any], request: CallModel) -> Reply:
        results = [one for one in request.messages if isinstance(one, Result)]
        if request.step < 3:
            return asks("read" if request.step == 1 else "look")
        if request.step == 3:
            seen.append(results[0].parts[0].text)  # type: ignore[union-attr]
            return read_again(f"{journal.runs(1)[0].run_id}:1:0", find="word1999")
        seen.append(results[-1].parts[0].text)  # type: ignore[union-attr]
        return Reply("done")

    seen: list[str] = []
    result = Agent(model, TOOLS, journal=journal, compaction=ELIDES).run_sync("go")
    assert f'read_result(key="{result.run_id}:1:0") shows it again' in seen[0]
    assert "word1999" not in seen[0]
    assert "'word1999' occurs 1 time" in seen[1]
    assert result.calls[-1].outcome == "ok"


def test_a_result_is_read_on_in_a_later_turn_of_its_session_and_in_no_other(journal: MemoryJournal) -> None:
    def talk(name: str, *replies: Any) -> Any:
        return Session(Agent(scripted(*replies), [fetch], journal=journal, read_results=True), name).run_sync("go")

    first = talk("ours", asks("fetch"), "done")
    key = f"{first.run_id}:1:0"
    assert key in first.messages[2].parts[-1].text
    assert "word1000" not in str(first.messages)
    again = talk("ours", read_again(key, find="word1000"), "done")
    assert again.calls[0].outcome == "ok"
    assert "word1000" in again.calls[0].text
    for name in ("theirs", "also theirs"):
        refused = talk(name, read_again(key), "done")
        assert (refused.calls[0].outcome, LONG[:20] in refused.calls[0].text) == ("tool_error", False)
        assert f"there is no result of a call {key!r} here" in refused.calls[0].text
    alone = Agent(scripted(read_again(key), "done"), [fetch], journal=journal, read_results=True).run_sync("go")
    assert alone.calls[0].outcome == "tool_error", "a run without a session sees its own results alone"
    for wrong in ("", "nobody", f"{first.run_id}:9:0", f"{first.run_id}:1", "nobody:1:0", f"{first.run_id}:x:y"):
        assert talk("ours", read_again(wrong), "done").calls[0].outcome == "tool_error"


def test_that_results_can_be_read_is_recorded_so_that_whoever_resumes_offers_it(journal: MemoryJournal) -> None:
    with pytest.raises(StepLimitReached) as caught:
        Agent(scripted(asks("fetch")), [fetch], journal=journal, read_results=True).run_sync("go")
    run_id = caught.value.result.run_id
    assert start_of(journal, run_id).settings.read_results
    model = scripted(read_again(f"{run_id}:1:0", find="word1000"), "done")
    result = Agent(model, [fetch], journal=journal).resume_sync(run_id)
    (resumed,) = events(journal, run_id, ev.RunResumed)
    assert [spec.name for spec in resumed.tools] == ["fetch", "read_result"]
    assert "word1000" in result.calls[-1].text
    assert model.requests[0].changed == "", "the tools are the same, so the beginning is"


def test_a_run_that_had_no_such_tool_is_not_given_one_by_who_resumes_it(journal: MemoryJournal) -> None:
    with pytest.raises(StepLimitReached) as caught:
        Agent(scripted(asks("fetch")), [fetch], journal=journal).run_sync("go")
    model = scripted("done")
    Agent(model, [fetch], journal=journal, compaction=True).resume_sync(caught.value.result.run_id)
    assert [spec.name for spec in model.requests[0].tools] == ["fetch"]


def test_where_a_transcript_may_be_cut_results_can_be_read_again_unless_that_is_not_wanted(
    journal: MemoryJournal,
) -> None:
    def offered(**options: Any) -> list[str]:
        model = scripted("done")
        Agent(model, [look], journal=journal, **options).run_sync("go")
        return [spec.name for spec in model.requests[0].tools]

    assert offered() == ["look"]
    assert offered(compaction=True) == ["look", "read_result"]
    assert offered(compaction=True, read_results=False) == ["look"]
    assert offered(read_results=True) == ["look", "read_result"]
    assert offered(compaction=True, policy={"*": "deny"}) == ["look", "read_result"]


def test_no_leave_is_needed_to_read_what_was_seen_before(journal: MemoryJournal) -> None:
    def model(messages: list[Any], request: CallModel) -> Reply:
        if request.step == 1:
            return asks("fetch")
        return read_again(f"{journal.runs(1)[0].run_id}:1:0") if request.step == 2 else Reply("done")

    policy = {"fetch": "allow", "*": "deny"}
    result = Agent(model, [fetch], journal=journal, read_results=True, policy=policy).run_sync("go")
    assert [record.outcome for record in result.calls] == ["ok", "ok"]


def test_a_tool_of_the_same_name_is_refused() -> None:
    mine = tool(lambda: "x", name="read_result")
    with pytest.raises(ConfigError, match="give yours another name"):
        Agent(scripted("never"), [mine], read_results=True)
