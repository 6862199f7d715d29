"""A recorded run goes the same way again without its model and its tools; a changed agent is told what it changed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator
from recorded_runs import DRIVERS, Office, Unreachable, asks, log_of, refuse_to_run, run

from tenlines import (
    Agent,
    Control,
    Deny,
    Edit,
    Limits,
    Reply,
    RunStopped,
    Session,
    Settings,
    tool,
)
from tenlines.core import events as ev
from tenlines.core.limits import Retry
from tenlines.errors import (
    JournalDamaged,
    MisuseError,
    Overloaded,
    ProtocolRejected,
    RateLimited,
    RunNotFound,
)
from tenlines.journal.files import write_run
from tenlines.journal.memory import MemoryJournal
from tenlines.testing import (
    FakeClock,
    RecordingObserver,
    ReplayMismatch,
    ScriptedModel,
    SimulatedCrash,
    crash_after,
    replay,
)

VECTORS = Path(__file__).parent.parent / "vectors" / "agent_loop.jsonl"
SCRIPT = [
    asks(("look", '{"city":"Oslo"}'), ("look", '{"city":"Bergen"}')),
    asks(("send", '{"to":"me"}'), ("send", '{"whom":"me"}'), ("nobody", "{}"), ("send", "{broken")),
    asks(("fail", '{"why":"no"}')),
    "All is done.",
]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def recorded_agent(office: Office, script: Any = SCRIPT, **options: Any) -> Agent:
    return Agent(script, office.tools, journal=MemoryJournal(), **{"instructions": "Be brief.", **options})


def todays_agent(office: Office, tools: Any = None, **options: Any) -> Agent:
    """Its model and tools must not be used."""
    sealed = refuse_to_run(office.tools if tools is None else tools)
    return Agent(Unreachable(), sealed, **{"instructions": "Be brief.", **options})


def replayed(agent: Agent, office: Office, **options: Any) -> Any:
    """Replay the newest run of an agent, which must do nothing to the office."""
    before, run_id = office.done, agent.journal.runs(1)[0].run_id
    result = replay(todays_agent(office, **options), agent.journal, run_id)
    assert office.done == before
    return result


def mismatch(recorded: Agent, today: Agent, **options: Any) -> ReplayMismatch:
    with pytest.raises(ReplayMismatch) as caught:
        replay(today, recorded.journal, recorded.journal.runs(1)[0].run_id, **options)
    text = str(caught.value)
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) < 250
    return caught.value


# --- the same way again -------------------------------------------------------------------------------


def test_a_replay_comes_to_the_same_result_without_model_and_tools(office: Office, driver: str) -> None:
    agent = recorded_agent(office)
    live = run(driver, agent)
    assert sorted(office.done) == ["look:Bergen", "look:Oslo", "send:me"]
    assert replayed(agent, office) == live
    assert [call.outcome for call in live.calls] == [
        *("ok", "ok"),
        *("ok", "invalid_arguments", "unknown_tool", "invalid_arguments"),
        "tool_error",
    ]


def test_observers_see_a_replay_as_they_saw_the_run(office: Office) -> None:
    agent, seen = recorded_agent(office), RecordingObserver()
    agent.run_sync("go")
    replayed(agent, office, observers=[seen])
    assert seen.events == log_of(agent)


def test_the_agents_own_journal_is_not_touched_by_a_replay(office: Office) -> None:
    agent, journal = recorded_agent(office), MemoryJournal()
    agent.run_sync("go")
    replayed(agent, office, journal=journal)
    assert journal.runs() == []


def test_failed_requests_are_repeated_in_no_time(office: Office, driver: str) -> None:
    failures = [RateLimited("slow", retry_after_s=90), Overloaded("busy"), ProtocolRejected("odd", rule="X")]
    clock = FakeClock()
    agent = recorded_agent(office, [*failures[:2], *SCRIPT[1:2], failures[2]], clock=clock)
    live = run(driver, agent)
    assert live.status == "model_error"
    assert clock.waits[0] >= 90
    assert replayed(agent, office) == live
    assert replayed(agent, office, settings=Settings(retry=Retry(first_wait_s=50))) == live


def test_calls_that_ended_in_another_order_are_replayed_in_that_order(office: Office, driver: str) -> None:
    second_is_done = threading.Event()

    class Watch:
        def on_event(self, event: Any) -> None:
            if isinstance(event, ev.CallReturned):
                second_is_done.set()

    @tool(read_only=True)
    def look(city: str) -> str:
        """Look at a city."""
        assert city == "Bergen" or second_is_done.wait(5)
        return office.note(city)

    agent = Agent([SCRIPT[0], "done"], [look], journal=MemoryJournal(), observers=[Watch()])
    live = run(driver, agent)
    ends = [event.position for event in log_of(agent) if isinstance(event, ev.CallReturned)]
    assert ends == [1, 0]
    assert replayed(agent, office, tools=[look], instructions="") == live


@pytest.mark.slow
def test_time_limits_of_tools_and_of_the_run_are_replayed(office: Office, driver: str) -> None:
    forever = threading.Event()

    @tool(read_only=True, timeout_s=0.05)
    def look(city: str) -> str:
        """Look at a city."""
        return f"{forever.wait(20)}"

    @tool
    def send(to: str) -> str:
        """Send a letter."""
        return f"{forever.wait(20)}"

    limits, script = Limits(seconds=0.3), [asks(("send", '{"to":"me"}'), ("send", '{"to":"you"}')), "never"]
    for replies, bounds, status in ((SCRIPT[:1], None, "max_steps"), (script, limits, "deadline")):
        agent = Agent(replies, [look, send], journal=MemoryJournal(), limits=bounds)
        live = run(driver, agent)
        assert live.status == status
        assert replayed(agent, office, tools=[look, send], instructions="", limits=bounds) == live
        if bounds is None:
            assert [call.outcome for call in live.calls] == ["timeout", "timeout"]
    forever.set()
    assert mismatch(agent, Agent(Unreachable(), [look, send])).changed == ("limits.seconds 0.3 -> None",)


class Ticking(FakeClock):
    """Every look at it takes half a second."""

    def now(self) -> float:
        self.advance(0.5)
        return self.time


def test_a_decision_that_was_made_just_before_its_time_was_over_is_replayed_so(office: Office) -> None:
    @tool
    def send(to: str) -> str:
        """Send a letter."""
        return f"sent to {to}"

    script, statuses = [asks(("send", '{"to":"me"}'), ("send", '{"to":"you"}')), "done"], []
    for half_seconds in range(1, 50):
        limits = Limits(seconds=half_seconds / 2)
        agent = Agent(script, [send], journal=MemoryJournal(), clock=Ticking(), limits=limits)
        live = run("sync", agent)
        statuses.append(live.status)
        assert replayed(agent, office, tools=[send], instructions="", limits=limits) == live, limits
    assert set(statuses) == {"deadline", "answered"}


@pytest.mark.parametrize("now", [False, True])
def test_what_people_say_and_a_cancel_are_replayed_where_they_came(office: Office, driver: str, now: bool) -> None:
    control = Control()

    @tool
    def send(to: str) -> str:
        """Send a letter."""
        done = office.note(to)
        if to == "me":
            control.say("hurry")
            control.raise_limits(Limits(steps=7))
        else:
            control.cancel(now=now, reason="enough")
        return done

    script = [asks(("send", '{"to":"me"}')), asks(("send", '{"to":"you"}'), ("send", '{"to":"all"}')), "never"]
    agent = Agent(script, [send], journal=MemoryJournal())
    live = run(driver, agent, control=control)
    assert live.status == "cancelled"
    assert "all" not in office.done
    assert "hurry" in str(live.messages)
    assert replayed(agent, office, tools=[send], instructions="") == live


def test_an_interrupted_run_is_replayed_to_its_end(office: Office, driver: str) -> None:
    @tool
    def send(to: str) -> str:
        """Send a letter."""
        raise KeyboardInterrupt

    agent = Agent([asks(("send", '{"to":"me"}'))], [send], journal=MemoryJournal())
    with pytest.raises(KeyboardInterrupt):
        run(driver, agent)
    result = replayed(agent, office, tools=[send], instructions="")
    assert (result.status, result.calls[0].outcome) == ("cancelled", "in_doubt")


# --- people and undo ----------------------------------------------------------------------------------


def by_recipient(call: Any) -> Any:
    verdicts = {"me": "allow", "boss": Edit({"to": "nobody"}, "not the boss"), "all": Deny("never all")}
    return verdicts.get(call.arguments.get("to"), "ask")


ASKING = [
    asks(*(("send", f'{{"to":"{to}"}}') for to in ("me", "boss", "all", "x", "y", "z")), ("send", "{}")),
    "done",
]


def decided(office: Office, driver: str) -> tuple[Agent, Any]:
    agent = recorded_agent(office, ASKING, policy=by_recipient)
    live = run(driver, agent)
    assert live.status == "awaiting_approval"
    agent.approve(live.run_id, "1.4", by="ann")
    agent.approve(live.run_id, "1.5", by="ann", arguments={"to": "why"})
    agent.deny(live.run_id, "1.6", by="bob", reason="no z")
    after = Agent(["done"], office.tools, journal=agent.journal, policy=by_recipient)
    live = after.resume_sync(live.run_id) if driver == "sync" else asyncio.run(after.resume(live.run_id))
    return agent, live


def test_decisions_of_the_policy_are_made_anew_and_those_of_people_are_fed(office: Office, driver: str) -> None:
    agent, live = decided(office, driver)
    assert office.done == ["send:me", "send:nobody", "send:x", "send:why"]
    assert replayed(agent, office, policy=by_recipient) == live


def test_a_decision_holds_for_a_tool_that_changed_where_nobody_sees_it(office: Office) -> None:
    agent, live = decided(office, "sync")
    look, send, *others = office.tools
    assert replayed(agent, office, policy=by_recipient, tools=[look, tool(send, timeout_s=9), *others]) == live


def test_a_policy_that_decides_otherwise_is_a_mismatch(office: Office) -> None:
    agent, _ = decided(office, "sync")

    def strict(call: Any) -> Any:
        return "ask" if call.arguments.get("to") == "boss" else by_recipient(call)

    error = mismatch(agent, todays_agent(office, policy=strict))
    assert error.part == "call 1.2 (send)"
    assert error.recorded.startswith("allow of call 1.2 (send), by policy")
    assert error.now == "a person is asked about call 1.2 (send)"
    without = mismatch(agent, todays_agent(office))
    assert "tool send: approve True -> False" in without.changed


def test_a_pause_is_an_end_that_can_be_replayed(office: Office) -> None:
    agent = recorded_agent(office, ASKING, policy={"*": "ask"})
    live = agent.run_sync("go")
    again = replayed(agent, office, policy={"*": "ask"})
    assert again == live
    assert [call.place for call in again.pending] == ["1.1", "1.2", "1.3", "1.4", "1.5", "1.6"]


BOOKING = [asks(("book", '{"to":"Oslo"}'), ("book", '{"to":"Bergen"}')), RateLimited("no", is_retryable=False)]


def test_undo_is_replayed_without_undoing_anything(office: Office, driver: str) -> None:
    agent = recorded_agent(office, BOOKING)
    live = run(driver, agent)
    undone = agent.undo_sync(live.run_id) if driver == "sync" else asyncio.run(agent.undo(live.run_id))
    assert office.done[2:] == ["cancel:Bergen", "cancel:Oslo"]
    again = replayed(agent, office)
    assert again == undone
    assert len(again.undone) == 2
    *others, book, fail = office.tools
    error = mismatch(agent, todays_agent(office, tools=[*others, tool(book, undo=None), fail]))
    assert error.recorded == "call 1.2 (book) is undone"
    assert error.now.startswith("the run ends as model_error")
    assert error.changed == ("tool book: undoable True -> False",)


def test_a_run_that_undoes_itself_is_replayed_and_one_that_would_not_any_more_is_a_mismatch(office: Office) -> None:
    agent = recorded_agent(office, BOOKING, settings=Settings(on_stop="undo"))
    live = run("sync", agent)
    assert office.done[2:] == ["cancel:Bergen", "cancel:Oslo"]
    assert replayed(agent, office, settings=Settings(on_stop="undo")) == live
    error = mismatch(agent, todays_agent(office))
    assert error.recorded == "call 1.2 (book) is undone"
    assert error.now.startswith("the run ends as model_error")
    assert error.changed == ("on_stop undo -> keep",)


# --- crashes, sessions, forks -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["send", "put", "book"])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_run_that_was_resumed_after_a_crash_is_replayed(
    office: Office, driver: str, name: str, at_once: bool
) -> None:
    argument = '{"key":"k"}' if name == "put" else '{"to":"me"}'
    script = [asks((name, argument)), "done"]
    dying = crash_after(record=4, at_once=at_once)
    agent = Agent(script, office.tools, journal=dying, instructions="Be brief.")
    with pytest.raises(SimulatedCrash):
        run(driver, agent)
    started = dying.runs()[0].run_id
    survivor = Agent(script[1:], office.tools, journal=dying.survivor)
    if driver == "sync":
        live = survivor.resume_sync(started, limits=Limits(steps=9))
    else:
        live = asyncio.run(survivor.resume(started, limits=Limits(steps=9)))
    assert live.calls[0].outcome == ("in_doubt" if name == "send" else "ok")
    kinds = [type(event).__name__ for event in log_of(survivor)]
    assert "RunResumed" in kinds
    assert "LimitsRaised" in kinds
    assert ("CallReconciled" in kinds) == (name == "book" and at_once)
    assert replayed(survivor, office) == live


def test_a_run_that_was_resumed_twice_is_replayed(office: Office) -> None:
    agent = recorded_agent(office, limits=Limits(steps=1))
    first = run("sync", agent)
    for script in (SCRIPT[1:2], SCRIPT[2:]):
        agent = Agent(script, office.tools, journal=agent.journal)
        steps = Limits(steps=2 if script is SCRIPT[1:2] else 9)
        live = agent.resume_sync(first.run_id, limits=steps, raise_on_stop=False)
    assert live.answer == "All is done."
    assert replayed(agent, office, limits=Limits(steps=1)) == live


def test_tools_that_came_with_a_resume_are_those_of_today_too(office: Office) -> None:
    dying = crash_after(record=1)
    with pytest.raises(SimulatedCrash):
        Agent(SCRIPT, office.tools, journal=dying, instructions="Be brief.").run_sync("go")
    look, *others = office.tools
    changed = [tool(look, description="See it."), *others]
    survivor = Agent(SCRIPT, changed, journal=dying.survivor)
    live = survivor.resume_sync(dying.runs()[0].run_id)
    assert replayed(survivor, office, tools=changed) == live
    assert mismatch(survivor, todays_agent(office)).part == "the description of tool look"


def test_the_turns_of_a_session_and_a_fork_are_replayed_with_the_history_that_they_had(office: Office) -> None:
    agent = Agent(ScriptedModel(["hello"]), office.tools, instructions="Be brief.", journal=MemoryJournal())
    session = Session(agent, "talk")
    for task in ("one", "two"):
        live = session.run_sync(task)
        assert replayed(agent, office) == live
    assert replayed(agent, office, instructions="Only for new conversations.") == live
    fork = agent.fork_sync(live.run_id, 1, "or rather three")
    assert replayed(agent, office) == fork


def test_the_vectors_of_the_loop_are_recorded_and_replayed() -> None:
    for line in VECTORS.read_text().splitlines():
        vector = json.loads(line)
        agent = Agent(
            [_reply(move) for move in vector["model_outputs"]],
            {name: _looking_up(table) for name, table in vector["tools"].items()},
            limits=Limits(steps=max(0, vector["max_steps"])),
            journal=MemoryJournal(),
        )
        live = agent.run_sync("go", raise_on_stop=False)
        today = Agent(Unreachable(), refuse_to_run([*agent.tools.values()]), limits=agent.settings.limits)
        assert replay(today, agent.journal, live.run_id) == live, vector["name"]


def _reply(move: Any) -> Any:
    if move["type"] == "final":
        return str(move["text"])
    return asks((str(move["name"]), json.dumps({"arg": move["arg"]})))


def _looking_up(table: Any) -> Any:
    def look(arg: Any) -> str:
        return str(table.get(arg, "unknown_arg"))

    return look


@pytest.mark.slow
def test_many_random_runs_are_replayed(office: Office) -> None:
    for seed in range(120):
        pick = Random(seed).choice
        script = [_random_reply(pick) for _ in range(pick((2, 4, 6)))]
        options = {
            "limits": Limits(
                steps=pick((2, 9)),
                tool_calls=pick((None, None, 2)),
                last_words=pick((True, False)),
                on_tool_limit=pick(("stop", "continue")),
                tokens=pick((None, None, 3000)),
            ),
            "settings": Settings(tell_left=pick((True, False)), max_parallel=pick((1, 8)), blank_replies=1),
            "policy": pick((None, None, {"send": "deny", "l*": "allow", "b*": Edit({"to": "you"})})),
        }
        agent = recorded_agent(office, script, clock=FakeClock(), **options)
        live = run(DRIVERS[seed % 2], agent)
        assert replayed(agent, office, **options) == live, f"seed {seed}"


def _random_reply(pick: Any) -> Any:
    arguments = ('{"city":"a"}', '{"to":"b"}', '{"key":"c"}', '{"why":"d"}', "{}", "[]", "{")
    names = ("look", "look", "send", "put", "book", "fail", "nobody")
    calls = [(pick(names), pick(arguments)) for _ in range(pick((1, 2, 3)))]
    return pick((asks(*calls), asks(*calls), asks(*calls), "", Overloaded("busy"), "fine", Reply("cut", stop="length")))


# --- another way --------------------------------------------------------------------------------------


def test_another_instruction_is_a_mismatch_of_the_first_message(office: Office) -> None:
    agent = recorded_agent(office)
    agent.run_sync("go")
    error = mismatch(agent, todays_agent(office, instructions="Be verbose."))
    assert (error.step, error.part) == (1, "message 1 of the request (system)")
    assert "-Be brief.\n+Be verbose." in str(error)
    gone = mismatch(agent, todays_agent(office, instructions=""))
    assert gone.part == "message 1 of the request (system / user)"


def test_another_task_is_a_mismatch(office: Office) -> None:
    agent = recorded_agent(office)
    agent.run_sync("go")
    assert mismatch(agent, todays_agent(office), task="stay").part == "message 2 of the request (user)"
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]
    assert mismatch(agent, todays_agent(office), task="go", messages=said).now == "user:\nhi"
    replay(todays_agent(office), agent.journal, agent.journal.runs(1)[0].run_id, task="go")


def test_another_description_or_parameter_of_a_tool_is_a_mismatch(office: Office) -> None:
    agent = recorded_agent(office)
    agent.run_sync("go")
    look, *others = office.tools
    error = mismatch(agent, todays_agent(office, tools=[tool(look, description="See it."), *others]))
    assert (error.step, error.part) == (1, "the description of tool look")
    assert "-Look at a city.\n+See it." in str(error)

    @tool(name="look", read_only=True)
    def renamed(town: str) -> str:
        """Look at a city."""
        return town

    error = mismatch(agent, todays_agent(office, tools=[renamed, *others]))
    assert (error.step, error.part) == (1, "the parameters of tool look")
    assert '-    "city": {' in str(error)
    assert '+    "town": {' in str(error)
    assert mismatch(agent, todays_agent(office, tools=others)).part == "the tools of the request"


def test_a_check_that_the_schema_does_not_show_is_run_and_noticed(office: Office) -> None:
    def never_bergen(city: str) -> str:
        if city == "Bergen":
            raise ValueError("it always rains there")
        return city

    @tool(read_only=True)
    def look(city: Annotated[str, AfterValidator(never_bergen)]) -> str:
        """Look at a city."""
        return city

    agent = recorded_agent(office)
    agent.run_sync("go")
    error = mismatch(agent, todays_agent(office, tools=[look, *office.tools[1:]]))
    assert (error.step, error.part, error.recorded) == (1, "call 1.2 (look)", "call 1.2 (look) starts")
    assert "it always rains there" in error.now

    strict = Agent(SCRIPT, [look, *office.tools[1:]], instructions="Be brief.", journal=MemoryJournal())
    strict.run_sync("go")
    error = mismatch(strict, todays_agent(office))
    assert (error.part, error.now) == ("call 1.2 (look)", "call 1.2 (look) starts")


def test_limits_and_settings_are_a_mismatch_where_they_change_what_happens_and_only_there(office: Office) -> None:
    agent = recorded_agent(office)
    live = agent.run_sync("go")
    assert replayed(agent, office, limits=Limits(steps=50)).messages == live.messages
    error = mismatch(agent, todays_agent(office, limits=Limits(steps=2)))
    assert error.step == 3
    assert error.now.startswith("the run ends as max_steps")
    assert error.changed == ("limits.steps 20 -> 2",)
    calls = mismatch(agent, todays_agent(office, limits=Limits(tool_calls=1)))
    assert (calls.step, calls.part) == (1, "call 1.2 (look)")
    output = mismatch(agent, todays_agent(office, settings=Settings(max_output_tokens=9)))
    assert (output.part, output.recorded, output.now) == ("max_output_tokens of the request", "None", "9")
    choice = mismatch(agent, todays_agent(office, settings=Settings(tool_choice="required")))
    assert choice.part == "tool_choice of the request"


def test_a_note_that_is_new_is_a_mismatch_of_the_step_that_has_it(office: Office) -> None:
    agent = recorded_agent(office)
    agent.run_sync("go")
    error = mismatch(agent, todays_agent(office, settings=Settings(tell_left=True)))
    assert (error.step, error.part) == (2, "message 6 of the request (note)")
    assert error.recorded == "(none)"


def test_calls_that_may_not_stand_side_by_side_any_more_are_a_mismatch(office: Office) -> None:
    agent = recorded_agent(office)
    agent.run_sync("go")
    look, *others = office.tools
    error = mismatch(agent, todays_agent(office, tools=[tool(look, read_only=False), *others]))
    assert (error.part, error.now) == ("call 1.2 (look)", "call 1.2 (look) has to wait")
    assert error.changed == ("tool look: read_only True -> False",)


def test_a_tool_that_needs_leave_now_is_a_mismatch(office: Office) -> None:
    agent = recorded_agent(office)
    agent.run_sync("go")
    look, send, *others = office.tools
    error = mismatch(agent, todays_agent(office, tools=[look, tool(send, approve=True), *others]))
    assert (error.step, error.now) == (2, "a person is asked about call 2.1 (send)")


def test_another_model_is_a_mismatch(office: Office) -> None:
    agent = recorded_agent(office)
    agent.run_sync("go")
    today = Agent(Unreachable("other"), refuse_to_run(office.tools), instructions="Be brief.")
    error = mismatch(agent, today)
    assert (error.step, error.part, error.recorded, error.now) == (0, "the model", "scripted", "other")


def test_a_long_text_is_shown_where_it_differs(office: Office) -> None:
    agent = recorded_agent(office, instructions=f"{'a' * 5000} b {'c' * 5000}")
    agent.run_sync("go")
    text = str(mismatch(agent, todays_agent(office, instructions=f"{'a' * 5000} d {'c' * 5000}")))
    assert "a b c" in text
    assert "a d c" in text
    lines = "\n".join(f"line {n}" for n in range(1000))
    assert "... and more" in str(mismatch(agent, todays_agent(office, instructions=lines)))


# --- what cannot be replayed --------------------------------------------------------------------------


def test_a_run_that_has_not_ended_is_refused(office: Office) -> None:
    dying = crash_after(record=5)
    with contextlib.suppress(SimulatedCrash):
        Agent(SCRIPT, office.tools, journal=dying).run_sync("go")
    run_id = dying.runs()[0].run_id
    with pytest.raises(MisuseError, match=f"run {run_id} has not ended: resume it"):
        replay(todays_agent(office), dying, run_id)
    with pytest.raises(MisuseError, match="say which run"):
        replay(todays_agent(office), dying)
    with pytest.raises(RunNotFound):
        replay(todays_agent(office), dying, "nobody")


def test_a_run_that_ended_and_was_taken_up_again_has_not_ended(office: Office) -> None:
    agent = recorded_agent(office, limits=Limits(steps=1))
    run_id = run("sync", agent).run_id
    dying = crash_after(record=2, journal=agent.journal)
    with pytest.raises(SimulatedCrash):
        Agent(SCRIPT[1:], office.tools, journal=dying).resume_sync(run_id, limits=Limits(steps=5))
    with pytest.raises(MisuseError, match="has not ended"):
        replay(todays_agent(office), agent.journal, run_id)


def test_a_file_of_a_run_is_replayed_and_a_cut_one_is_refused(office: Office, tmp_path: Path) -> None:
    agent = recorded_agent(office)
    live = agent.run_sync("go")
    lines = [*write_run(agent.journal, live.run_id)]
    file = tmp_path / "run.jsonl"
    file.write_bytes(b"".join(lines))
    assert replay(todays_agent(office), file) == live
    assert replay(todays_agent(office), str(file)) == live
    file.write_bytes(b"".join(lines[1:-1]))  # the events alone
    assert replay(todays_agent(office), file) == live
    file.write_bytes(b"".join(lines[:-3]))
    with pytest.raises(JournalDamaged, match=r"cannot be replayed: .* events are missing"):
        replay(todays_agent(office), file)


def test_a_run_that_stopped_without_an_answer_is_no_error_in_a_replay(office: Office) -> None:
    agent = recorded_agent(office, limits=Limits(steps=1))
    with pytest.raises(RunStopped):
        agent.run_sync("go")
    assert replayed(agent, office, limits=Limits(steps=1)).status == "max_steps"
