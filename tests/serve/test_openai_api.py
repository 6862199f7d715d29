"""The endpoint, asked by the clients that people use: OpenAI's own, and LiteLLM."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from openai_world import ANSWER, HI, KEY, Server, Writing, content, serving, step
from serve_world import PATIENCE_S, asks

from tenlines import Limits, Reply, tool
from tenlines.cli import endpoint
from tenlines.core import events as ev
from tenlines.core.effects import CallModel
from tenlines.errors import ConfigError, ConnectionFailed
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import Delta, OnDelta
from tenlines.serve import openai_api


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """An agent that makes two calls and answers."""
    with serving(Writing(step(), step(n=2), ANSWER), instructions="Be brief.") as made:
        yield made


# --- the official client ------------------------------------------------------------------------------


def test_a_whole_answer_is_one_run_in_the_journal(server: Server) -> None:
    done = server.ask()
    choice = done.choices[0]
    assert (choice.message.content, choice.message.role, choice.finish_reason) == (ANSWER, "assistant", "stop")
    assert done.usage.model_dump(exclude_none=True) == {
        "prompt_tokens": 300,
        "completion_tokens": 60,
        "total_tokens": 360,
        "prompt_tokens_details": {"cached_tokens": 180},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    run_id = done.id.removeprefix("chatcmpl-")
    assert (done.model, done.object, done._request_id) == ("agent", "chat.completion", run_id)
    assert done.tenlines["status"] == "answered"
    log = server.log(run_id)
    assert [type(one).__name__ for one in log].count("CallReturned") == 2
    assert done.created == int(log[0].at)


def test_a_streamed_answer_comes_in_the_pieces_of_the_last_reply_alone(server: Server) -> None:
    chunks = server.pieces(stream_options={"include_usage": True})
    assert content(chunks) == ANSWER
    assert [one.choices[0].delta.content for one in chunks[:5]] == ["", "It i", "s in", " Bas", "el. "]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [one.choices[0].finish_reason for one in chunks[:-1]] == [*[None] * (len(chunks) - 2), "stop"]
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 360)
    assert all(one.usage is None for one in chunks[:-1])
    assert len({(one.id, one.created, one.object) for one in chunks}) == 1


def test_without_being_asked_for_there_is_no_usage_in_a_stream(server: Server) -> None:
    chunks = server.pieces()
    assert all(one.choices and one.usage is None for one in chunks)
    assert "usage" not in chunks[0].model_dump(exclude_unset=True)


def test_the_asynchronous_client_and_two_conversations_at_once(server: Server) -> None:
    async def both() -> tuple[Any, str]:
        async with openai.AsyncOpenAI(base_url=server.url, api_key=KEY, max_retries=0) as client:
            create = client.chat.completions.create

            async def streamed() -> str:
                stream = await create(model="agent", messages=HI, stream=True)
                return "".join([one.choices[0].delta.content or "" async for one in stream])

            return await asyncio.gather(create(model="agent", messages=HI), streamed())

    whole, streamed = asyncio.run(both())
    assert (whole.choices[0].message.content, streamed) == (ANSWER, ANSWER)


@pytest.mark.slow
def test_conversations_go_on_beside_one_another() -> None:
    together = threading.Barrier(3, timeout=PATIENCE_S)

    @tool(read_only=True)
    def meet() -> str:
        """Wait for the others."""
        together.wait()
        return "met"

    def model(messages: Any) -> Any:
        said = [one["content"] for one in messages if one["role"] == "user"]
        return f"for {said[0]}" if messages[-1]["role"] == "tool" else {"tool_calls": [{"id": "c", "name": "meet"}]}

    with serving(model, [meet]) as server:
        answers: dict[int, str] = {}

        def ask(number: int) -> None:
            answers[number] = server.ask([{"role": "user", "content": str(number)}]).choices[0].message.content

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(PATIENCE_S)
    assert answers == {0: "for 0", 1: "for 1", 2: "for 2"}


def test_the_models_are_the_agent(server: Server) -> None:
    with server.client as client:
        assert [one.id for one in client.models.list()] == ["agent"]
        assert client.models.retrieve("agent").owned_by == "tenlines"
        with pytest.raises(openai.NotFoundError, match="'agent'"):
            client.models.retrieve("gpt-5")
        with pytest.raises(openai.NotFoundError) as caught:
            client.chat.completions.create(model="gpt-5", messages=HI)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


LITELLM = """
import os, sys
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
import litellm
url, key = sys.argv[1:]
how = dict(model="openai/agent", api_base=url, api_key=key, messages=[{"role": "user", "content": "Where?"}])
done = litellm.completion(**how)
print(done.choices[0].message.content, done.usage.total_tokens)
print("".join(one.choices[0].delta.content or "" for one in litellm.completion(stream=True, **how)))
"""


@pytest.mark.slow
def test_litellm_asks_it_too(server: Server) -> None:
    words = [sys.executable, "-W", "ignore", "-c", LITELLM, server.url, KEY]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{ANSWER} 360", ANSWER], done.stderr[-2000:]


# --- what is said, and when ---------------------------------------------------------------------------


def test_with_its_steps_shown_text_comes_as_it_is_written_and_calls_beside_it() -> None:
    with serving(Writing(step(), ANSWER), shows_steps=True) as server:
        chunks, whole = server.pieces(), server.ask().choices[0].message
    assert content(chunks) == whole.content == f"Let me look.\n\n{ANSWER}"
    beside = "".join(getattr(one.choices[0].delta, "reasoning_content", "") for one in chunks)
    assert beside == whole.reasoning_content == "→ look(n=1)\n← look: ok\n"
    assert [one.choices[0].delta.content for one in chunks[1:4]] == ["Let ", "me l", "ook."]


def test_without_tools_an_answer_comes_as_it_is_written() -> None:
    go_on = threading.Event()

    async def slowly(request: CallModel, on_delta: OnDelta | None) -> Reply:
        assert on_delta is not None
        on_delta(Delta(1, "It is "))
        await asyncio.to_thread(go_on.wait, PATIENCE_S)
        on_delta(Delta(1, "so."))
        return Reply("It is so.")

    with serving(Writing(slowly), []) as server, server.client as client:
        stream = iter(client.chat.completions.create(model="agent", messages=HI, stream=True))
        first = [next(stream).choices[0].delta.content for _ in range(2)]
        go_on.set()
        assert (first, content(list(stream))) == (["", "It is "], "so.")


def test_while_tools_run_the_stream_stays_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_api, "ALIVE_S", 0.01)
    go_on = threading.Event()

    @tool(read_only=True)
    def wait() -> str:
        """Wait."""
        go_on.wait(PATIENCE_S)
        return "waited"

    with serving(Writing(Reply(calls=asks(("wait", {})).calls), "done"), [wait]) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        body = json.dumps({"model": "agent", "messages": HI, "stream": True})
        connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {KEY}"})
        answer = connection.getresponse()
        seen = b""
        while seen.count(b": at work\n\n") < 3:
            seen += answer.readline()
        go_on.set()
        rest = answer.read().decode()
        connection.close()
    assert answer.headers["x-tenlines-run"] in seen.decode()
    assert rest.endswith("data: [DONE]\n\n")


@pytest.mark.slow
def test_a_reply_that_breaks_off_and_begins_again_is_told_as_one() -> None:
    async def breaks(request: CallModel, on_delta: OnDelta | None) -> Any:
        if request.attempt == 1 and on_delta is not None:
            on_delta(Delta(1, "It is in"))
            return ConnectionFailed("cut")
        return ANSWER

    quick = ev.Settings(retry=ev.Retry(first_wait_s=0.001))
    with serving(Writing(breaks), settings=quick) as server:
        assert content(server.pieces()) == ANSWER
    with serving(Writing(breaks), [], settings=quick) as server:
        assert content(server.pieces()) == f"It is in\n\n(The reply broke off, and begins again.)\n\n{ANSWER}"


def test_hostile_text_arrives_as_text() -> None:
    hostile = "\ufffd <script>\x1b[2J\u202e \r\n\r\ndata: [DONE]\n\n</script>"
    with serving(Writing(hostile), []) as server:
        assert content(server.pieces()) == server.ask().choices[0].message.content == hostile


def test_the_clients_bound_on_tokens_holds_for_each_reply() -> None:
    model = Writing(ANSWER)
    with serving(model, limits=Limits(steps=3)) as server:
        server.ask(max_completion_tokens=50)
        server.ask()
    assert [one.max_output_tokens for one in model.requests] == [50, None]


def test_addresses_that_are_not_there_are_told_in_openais_shape(server: Server) -> None:
    for method, path, status, code in (
        ("POST", "/chat/completions", 404, "unknown_url"),
        ("POST", "/v1/embeddings", 404, "unknown_url"),
        ("GET", "/v1/chat/completions", 405, None),
    ):
        got, _, body = server.raw(method, path, {})
        assert (got, body["error"]["code"]) == (status, code)
    assert "ends in /v1" in server.raw("POST", "/chat/completions")[2]["error"]["message"]


def test_a_request_that_is_too_large_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_api, "LARGEST_BODY", 1000)
    with server.client as client, pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="agent", messages=[{"role": "user", "content": "x" * 2000}])
    assert caught.value.status_code == 413


# --- the command --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_says_where_the_agent_is_and_ends_at_ctrl_c(tmp_path: Path, server: Server) -> None:
    """Its model is the agent of another server: that speaks the format too."""
    words = ["serve", "--openai", "--model", f"{server.url}#agent", "--name", "second", "--journal", "runs.db"]
    with command(tmp_path, *words) as popen:
        assert popen.stdout is not None
        where = dict(popen.stdout.readline().strip().split("=", 1) for _ in range(3))
        assert list(where) == ["OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"]
        with openai.OpenAI(base_url=where["OPENAI_BASE_URL"], api_key=where["OPENAI_API_KEY"]) as client:
            done = client.chat.completions.create(model="second", messages=HI)
        assert done.choices[0].message.content == ANSWER
        popen.send_signal(signal.SIGINT)
        assert (popen.wait(PATIENCE_S), popen.stdout.read()) == (0, "")
    journal = SqliteJournal(tmp_path / "runs.db")
    assert [(f"chatcmpl-{one.run_id}", one.agent, one.status) for one in journal.runs()] == [
        (done.id, "second", "answered")
    ]
    journal.close()


@contextmanager
def command(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own."""
    start = [sys.executable, "-m", "tenlines", *words]
    env = {**os.environ, "TENLINES_API_KEY": KEY}
    popen = subprocess.Popen(start, stdout=subprocess.PIPE, text=True, cwd=folder, start_new_session=True, env=env)
    try:
        yield popen
    finally:
        popen.kill()
        popen.wait()
        if popen.stdout is not None:
            popen.stdout.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "x"], "--model is for an agent: add --openai"),
        (["--max-steps", "3"], "--max-steps is for an agent"),
        (["--openai", "--open"], "--open is for the pages"),
        (["--openai", "--allow-origin", "localhost:3000"], "http://localhost:3000"),
        (["--openai", "--journal", "memory"], "name a file"),
        (["--openai", "--name", "a b"], "--name a b"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    from tenlines.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["serve", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_key_of_ones_own_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(endpoint.KEY_VARIABLE, "k" * 16)
    assert endpoint._own_key() == "k" * 16
    for bad in ("short", "k" * 15 + " k", "é" * 20):
        monkeypatch.setenv(endpoint.KEY_VARIABLE, bad)
        with pytest.raises(ConfigError, match="16 characters"):
            endpoint._own_key()
