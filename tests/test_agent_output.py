"""`Agent(output=)`: answers with a type, from the first request to a resume; watched, replayed, crashed."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, model_validator

from tenlines import Agent, Limits, Session, tool
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Note, Reply, ToolCall
from tenlines.errors import ConfigError, MissingExtra, RunStopped
from tenlines.journal.memory import MemoryJournal
from tenlines.ports import Allow, Delta, OnDelta
from tenlines.testing import CrashReport, ScriptedModel, crash_everywhere, replay
from tenlines.tools.finish import partial


@dataclass
class Weather:
    city: str
    celsius: int


GOOD = '{"city": "Oslo", "celsius": 3}'
OSLO = Weather("Oslo", 3)


@tool(read_only=True)
def look(city: str) -> str:
    """Look at the sky."""
    return f"3 C in {city}"


def call(name: str, arguments: str, *more: tuple[str, str]) -> Reply:
    calls = [ToolCall("c", name, arguments)] + [ToolCall(f"d{n}", *one) for n, one in enumerate(more)]
    return Reply("", tuple(calls), "tool_calls")


def agent(*replies: Any, **options: Any) -> Agent:
    given = {"output": Weather, "journal": "memory", "tools": [look], **options}
    return Agent(ScriptedModel(list(replies)), **given)


def notes(result: Any) -> list[str]:
    return [one.text for one in result.messages if isinstance(one, Note)]


def test_an_answer_has_its_type_and_its_text() -> None:
    one = agent(call("look", '{"city": "Oslo"}'), call("finish", GOOD))
    result = one.run_sync("Weather in Oslo?")
    assert result.output == OSLO
    assert result.answer == '{"celsius":3,"city":"Oslo"}'
    assert (result.steps, result.tool_calls) == (2, 1)
    assert [spec.name for spec in one.model.requests[0].tools] == ["look", "finish"]  # type: ignore[attr-defined]  # a double


def test_without_a_type_there_is_no_output() -> None:
    result = agent("3 C", output=None).run_sync("Weather?")
    assert (result.answer, result.output) == ("3 C", None)


def test_a_wrong_answer_goes_back_and_the_next_may_be_right() -> None:
    result = agent(call("finish", '{"city": "Oslo", "celsius": "three"}'), call("finish", GOOD)).run_sync("Weather?")
    assert result.output == OSLO
    assert [one.outcome for one in result.calls] == ["invalid_arguments", "ok"]
    assert "celsius: expected an integer" in result.calls[0].text


def test_wrong_answers_for_ever_end_as_other_invalid_calls_do() -> None:
    model = [call("finish", f'{{"city": {n}, "celsius": 1}}') for n in range(20)]
    with pytest.raises(RunStopped) as caught:
        agent(*model).run_sync("Weather?")
    assert caught.value.result.status == "stuck"
    assert caught.value.result.output is None


def test_a_validator_that_fails_is_told_and_breaks_nothing() -> None:
    class Odd(BaseModel):
        n: int

        @model_validator(mode="after")
        def _fail(self) -> Odd:
            if self.n:
                raise KeyError("no")
            return self

    result = agent(call("finish", '{"n": 1}'), call("finish", '{"n": 0}'), output=Odd).run_sync("x")
    assert result.output == Odd(n=0)
    assert "KeyError" in result.calls[0].text


def test_words_go_back_and_the_tool_is_forced() -> None:
    one = agent("It is 3 C.", call("finish", GOOD))
    result = one.run_sync("Weather?")
    assert result.output == OSLO
    assert [request.tool_choice for request in one.model.requests] == ["auto", "finish"]  # type: ignore[attr-defined]
    assert "Call finish with the answer" in notes(result)[0]


def test_words_for_ever_end_honestly() -> None:
    with pytest.raises(RunStopped) as caught:
        agent(*["It is 3 C."] * 9).run_sync("Weather?")
    result = caught.value.result
    assert (result.status, result.answer, result.output, result.steps) == ("stuck", None, None, 3)
    assert result.partial_answer == "It is 3 C."
    assert "words instead of calling finish" in str(caught.value)


def test_a_reply_that_is_one_object_is_the_answer_and_checked_as_one() -> None:
    result = agent('{"city": "Oslo"}', f" {GOOD}\n").run_sync("Weather?")
    assert result.output == OSLO
    assert [(one.name, one.outcome) for one in result.calls] == [("finish", "invalid_arguments"), ("finish", "ok")]


def test_calls_beside_the_answer_do_not_run() -> None:
    ran: list[str] = []

    @tool
    def send(text: str) -> str:
        """Send."""
        ran.append(text)
        return "sent"

    result = agent(call("send", '{"text": "x"}', ("finish", GOOD)), tools=[send]).run_sync("Weather?")
    assert result.output == OSLO
    assert [(one.name, one.outcome) for one in result.calls] == [("send", "not_executed"), ("finish", "ok")]
    assert ran == []


def test_beside_a_wrong_answer_they_do() -> None:
    one = agent(call("look", '{"city": "Oslo"}', ("finish", "{}")), call("finish", GOOD))
    assert [record.outcome for record in one.run_sync("Weather?").calls] == ["ok", "invalid_arguments", "ok"]


def test_last_words_and_the_limit_of_tool_calls() -> None:
    looks = [call("look", f'{{"city": "{n}"}}') for n in "abc"]
    with pytest.raises(RunStopped) as caught:
        agent(*looks[:2], call("finish", GOOD), limits=Limits(steps=2, last_words=True)).run_sync("Weather?")
    assert caught.value.result.status == "max_steps"
    assert caught.value.result.partial_answer == '{"celsius":3,"city":"Oslo"}'
    spent = agent(*looks[:2], call("finish", GOOD), limits=Limits(tool_calls=1, on_tool_limit="continue"))
    assert spent.run_sync("Weather?").output == OSLO


def test_a_policy_is_not_asked_about_the_answer() -> None:
    asked: list[str] = []

    def policy(guarded: Any) -> Any:
        asked.append(guarded.name)
        return Allow()

    one = agent(call("look", '{"city": "Oslo"}'), call("finish", GOOD), policy=policy)
    assert one.run_sync("Weather?").output == OSLO
    assert asked == ["look"]


def test_what_does_not_fit_together_is_said_at_once() -> None:
    @tool
    def finish() -> str:
        """Mine."""
        return ""

    @tool(final=True)
    def submit() -> str:
        """Mine too."""
        return ""

    with pytest.raises(ConfigError, match="a tool is called finish"):
        agent(tools=[finish])
    with pytest.raises(ConfigError, match="the tool submit ends a run"):
        agent(tools=[submit])
    with pytest.raises(ConfigError, match="tool_choice='none'"):
        agent(settings=ev.Settings(tool_choice="none"))
    assert agent(call("finish", "{}"), output=None, tools=[finish]).run_sync("x", raise_on_stop=False).output is None


# --- what comes after ---------------------------------------------------------------------------------


def test_a_resumed_run_has_its_output_whether_the_type_is_known_or_not() -> None:
    journal = MemoryJournal()
    one = agent(call("look", '{"city": "Oslo"}'), journal=journal)
    run_id = one.run_sync("Weather?", raise_on_stop=False).run_id
    stranger = Agent(ScriptedModel(["words", call("finish", GOOD)]), [look], journal=journal)
    result = stranger.resume_sync(run_id)
    assert result.output == {"city": "Oslo", "celsius": 3}, "plain values, by the schema in the log"
    assert agent(journal=journal).resume_sync(run_id).output == OSLO
    with pytest.raises(ConfigError, match="given for another type"):
        agent(journal=journal, output=list[int]).resume_sync(run_id)


def test_a_crash_anywhere_loses_no_answer() -> None:
    reports: list[CrashReport] = []

    def make() -> Agent:
        return agent(call("look", '{"city": "Oslo"}'), "words", call("finish", "{}"), call("finish", GOOD))

    def check(report: CrashReport) -> None:
        reports.append(report)
        assert report.result.output == OSLO
        assert report.in_doubt == ()

    crash_everywhere(make, "Weather?", check=check)
    assert len(reports) > 20


def test_a_replay_has_the_same_output() -> None:
    one = agent("words", call("finish", GOOD))
    run_id = one.run_sync("Weather?").run_id
    assert replay(agent(journal=one.journal), one.journal, run_id).output == OSLO


def test_in_a_session_the_next_turn_can_build_on_it() -> None:
    def model(messages: Any) -> Any:
        return call("finish", GOOD) if len(messages) < 3 else GOOD.replace("3", "4")

    talk = Session(Agent(model, [look], output=Weather, journal="memory"), "s")
    assert talk.run_sync("Weather?").output == OSLO
    later = talk.run_sync("And tomorrow?")
    assert later.output == Weather("Oslo", 4)
    assert later.repairs == ()


def test_a_child_answers_in_json() -> None:
    child = agent(call("finish", GOOD), name="child")
    parent = Agent(
        ScriptedModel([call("child", '{"task": "Weather?"}'), "3 C"]), [child.as_tool()], journal=child.journal
    )
    assert parent.run_sync("Ask.").calls[0].text == '{"celsius":3,"city":"Oslo"}'


# --- watched ------------------------------------------------------------------------------------------


class Writing:
    """A model that writes its answer in three pieces where somebody watches."""

    name = "writing"

    def session(self) -> Writing:
        return self

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        for start in range(0, len(GOOD), 12) if on_delta else ():
            on_delta(Delta(request.step, answer=GOOD[start : start + 12]))  # type: ignore[misc]  # it is there
        return call("finish", GOOD)

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        return self.complete(request, on_delta)


class Seen:
    def __init__(self) -> None:
        self.answer, self.values = "", list[Any]()

    def on_event(self, event: ev.AnyEvent) -> None:
        pass

    def on_delta(self, delta: Delta) -> None:
        self.answer += delta.answer
        self.values.append(partial(self.answer))


def test_who_watches_sees_the_answer_grow_and_the_run_is_the_same() -> None:
    seen = Seen()
    watched = Agent(Writing(), output=Weather, journal="memory", observers=[seen]).run_sync("Weather?")
    plain = Agent(Writing(), output=Weather, journal="memory").run_sync("Weather?")
    assert seen.values == [{"city": "Os"}, {"city": "Oslo"}, {"city": "Oslo", "celsius": 3}]
    assert watched.output == plain.output == OSLO
    assert watched.messages == plain.messages


def test_a_stream_gives_pieces_and_then_the_output() -> None:
    async def go() -> tuple[str, Any]:
        run = Agent(Writing(), output=Weather, journal="memory").stream("Weather?")
        answer = "".join([one.answer async for one in run if isinstance(one, Delta)])
        return answer, (await run).output

    assert asyncio.run(go()) == (GOOD, OSLO)


@pytest.fixture(params=["sync", "asyncio"])
def ran(request: pytest.FixtureRequest) -> Callable[[Agent], Any]:
    return lambda one: one.run_sync("x") if request.param == "sync" else asyncio.run(one.run("x"))


def test_both_drivers_read_the_answer(ran: Callable[[Agent], Any]) -> None:
    assert ran(agent("words", call("finish", GOOD))).output == OSLO


def test_a_run_can_be_undone_where_its_answers_cannot_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    undone: list[str] = []

    def unsend(text: str) -> None:
        undone.append(text)

    @tool(undo=unsend)
    def send(text: str) -> str:
        """Send."""
        return "sent"

    journal = MemoryJournal()
    replies = [call("send", '{"text": "x"}'), call("finish", GOOD)]
    run_id = agent(*replies, tools=[send], journal=journal).run_sync("Send.").run_id
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    stranger = Agent(ScriptedModel([]), [send], journal=journal)
    with pytest.raises(MissingExtra):
        stranger.resume_sync(run_id)
    result = stranger.undo_sync(run_id)
    assert undone == ["x"]
    assert (result.status, result.output) == ("answered", {"city": "Oslo", "celsius": 3})
