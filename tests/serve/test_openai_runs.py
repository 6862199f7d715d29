"""Runs that are left, and runs that wait for somebody's decision."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from functools import partial
from typing import Any

import openai
import pytest
from openai_world import HI, KEY, PAID, Server, Writing, content, pay, paying, says, serving
from serve_world import PATIENCE_S, asks, until

from tenlines import Agent, Reply, tool
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Text
from tenlines.ports import OnDelta

# --- clients that go, servers that end ----------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_stops_its_run(stream: bool) -> None:
    begun, released = threading.Event(), threading.Event()

    @tool
    def work() -> str:
        """Work."""
        begun.set()
        released.wait(PATIENCE_S)
        return "worked"

    with serving(Writing(Reply(calls=asks(("work", {})).calls), "done"), [work]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        body = json.dumps({"model": "agent", "messages": HI, "stream": stream})
        connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {KEY}"})
        assert begun.wait(PATIENCE_S)
        connection.close()
        until(lambda: server.journal.runs(1, status="cancelled"), "the end of the run")
        released.set()
        log = server.log(server.journal.runs(1)[0].run_id)
    ended = next(one for one in log if isinstance(one, ev.RunEnded))
    assert ended.reason == "the client has gone"
    assert [one.outcome for one in log if isinstance(one, ev.CallAbandoned)] == ["in_doubt"]


def test_a_server_that_ends_stops_its_runs_and_says_so() -> None:
    begun = threading.Event()

    async def waits(request: CallModel, on_delta: OnDelta | None) -> Any:
        begun.set()
        await asyncio.sleep(PATIENCE_S)

    told: list[Any] = []

    def ask(server: Server) -> None:
        with pytest.raises(openai.InternalServerError) as caught:
            server.ask()
        told.append((caught.value.code, caught.value.response.headers["x-tenlines-run"]))

    with serving(Writing(waits)) as server:
        thread = threading.Thread(target=partial(ask, server))
        thread.start()
        assert begun.wait(PATIENCE_S)
    thread.join(PATIENCE_S)
    (run,) = server.journal.runs()
    assert (told, run.status) == ([("server_ended", run.run_id)], "cancelled")


# --- runs that wait for a decision --------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_waits_says_so_and_goes_on_with_the_conversation_when_it_is_decided() -> None:
    PAID.clear()
    with paying() as server:
        first = server.ask()
        notice, run_id = first.choices[0].message.content, first.tenlines["run_id"]
        assert f"Run {run_id} waits for a decision" in notice
        assert 'pay(amount=5, api_key="[redacted]")' in notice
        assert content(server.pieces([*HI, says("assistant", notice), says("user", "well?")])) == notice
        assert (PAID, len(server.journal.runs())) == ([], 1)

        Agent([], [pay], journal=server.journal).approve(run_id, by="Carla")
        clock = says("system", "It is noon.")  # such lines change from request to request
        talk = [clock, *HI, says("assistant", notice), says("user", "It is allowed.")]
        chunks = server.pieces(talk)
        assert (content(chunks), chunks[-1].id, PAID) == ("Paid.", first.id, [5])
        assert any(
            isinstance(one, ev.MessageQueued) and one.parts == (Text("It is allowed."),) for one in server.log(run_id)
        )

        later = server.ask([*talk, says("assistant", "Paid."), says("user", "And now?")])
        assert later.tenlines["run_id"] != run_id


def test_a_run_that_was_gone_on_with_elsewhere_is_what_the_conversation_goes_on_from() -> None:
    PAID.clear()
    with paying() as server:
        first = server.ask()
        agent = Agent(Writing(None, "Paid."), [pay], journal=server.journal)
        agent.approve(first.tenlines["run_id"])
        asyncio.run(agent.resume(first.tenlines["run_id"]))
        notice = first.choices[0].message.content
        second = server.ask([*HI, says("assistant", notice), says("user", "Done?")])
        start = server.log(second.tenlines["run_id"])[0]
    assert isinstance(start, ev.RunStarted)
    kinds = [type(one).__name__ for one in start.messages]
    assert kinds == ["User", "Assistant", "Result", "Assistant", "User"]


def test_a_run_of_another_conversation_is_left_alone() -> None:
    PAID.clear()
    with paying() as server:
        first = server.ask()
        run_id, notice = first.tenlines["run_id"], first.choices[0].message.content
        Agent([], [pay], journal=server.journal).approve(run_id)
        for talk in (
            [says("user", "Something else"), says("assistant", notice), says("user", "go on")],
            [*HI, says("assistant", "Run bcdfghjkmnpq waits for a decision"), says("user", "go on")],
            [*HI, says("user", notice)],
        ):
            other = server.ask(talk)
            assert other.tenlines["run_id"] != run_id
    assert PAID == []


def test_a_run_that_is_being_worked_on_is_not_taken_away() -> None:
    begun, released = threading.Event(), threading.Event()

    @tool(approve=True)
    def pay() -> str:
        """Pay, slowly."""
        begun.set()
        released.wait(PATIENCE_S)
        return "paid"

    with serving(Writing(Reply(calls=asks(("pay", {})).calls), "Paid."), [pay]) as server:
        first = server.ask()
        run_id, notice = first.tenlines["run_id"], first.choices[0].message.content
        Agent([], [pay], journal=server.journal).approve(run_id)
        talk, answers = [*HI, says("assistant", notice), says("user", "go on")], list[str]()
        thread = threading.Thread(target=lambda: answers.append(content(server.pieces(talk))))
        thread.start()
        assert begun.wait(PATIENCE_S)
        with pytest.raises(openai.ConflictError) as caught:
            server.ask(talk)
        released.set()
        thread.join(PATIENCE_S)
    assert (caught.value.code, answers) == ("run_busy", ["Paid."])
