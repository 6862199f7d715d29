"""Tools of a server in runs: what is sent, what comes back, what becomes of calls that fail."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp_world import calls, results, run_calls

from tenlines import Agent
from tenlines.core.transcript import File, Image, Json, Reply, Text
from tenlines.drivers.control import Control
from tenlines.tools.mcp import McpServers

pytestmark = pytest.mark.slow
Raw = Callable[..., McpServers]


# --- what comes back ------------------------------------------------------------------------------------


def test_every_kind_of_content_becomes_a_part(small: McpServers) -> None:
    run = run_calls(
        small, ("kinds", {}), ("structured", {}), ("fail", {"text": "out of paper"}), ("echo", {"text": "hi"})
    )
    kinds, structured, fail, echo = results(run)
    hello, png, broken, odd, audio, text, blob, link = kinds.parts
    assert hello == Text("hello")
    assert isinstance(png, Image)
    assert png.data.startswith(b"\x89PNG")
    assert broken == Text("(image, image/png: what came is not base64, so it cannot be shown)")
    assert isinstance(odd, File)
    assert odd.media_type == "application/octet-stream"
    assert isinstance(audio, File)
    assert audio.media_type == "audio/wav"
    assert text == Text("(resource x://a, text/plain)\nin it")
    assert isinstance(blob, Image)
    assert link == Text("(resource x://b (text/csv, 1,200 bytes), b: rows)")
    assert structured.parts == (Json({"a": "x", "b": [1, 2]}),)  # once, and whatever its schema says
    assert (fail.outcome, fail.text) == ("tool_error", "fail failed: McpError: out of paper")
    assert echo.parts == (Text("hi"),)


def test_the_key_and_the_span_go_along(small: McpServers) -> None:
    run = run_calls(small, ("meta", {}))
    [part] = results(run)[0].parts
    assert isinstance(part, Json)
    told: Any = part.value
    assert told["tenlines/key"] == f"{run.run_id}:1:0"
    assert told["traceparent"].startswith("00-")
    assert told["protocol"] == "2026-07-28"


def test_resources_and_prompts_are_reached(small: McpServers) -> None:
    listed, read, prompt = results(
        run_calls(
            small,
            ("list_resources", {}),
            ("read_resource", {"uri": "x://other"}),
            ("get_prompt", {"name": "greet", "arguments": {"whom": "Ann"}}),
        )
    )
    assert '"uri": "x://notes"' in listed.text
    assert "the notes of x://other" in read.text
    assert prompt.text == "user: Greet Ann."
    told = next(one.spec.description for one in small.tools() if one.spec.name == "get_prompt")
    assert "- greet(whom): Greets." in told


def test_arguments_are_checked_before_anything_is_sent(raw: Raw) -> None:
    [refused] = results(run_calls(raw(), ("echo", {"text": 3, "more": 1})))
    assert refused.outcome == "invalid_arguments"
    assert "text: 3 is not of type 'string'" in refused.text


def test_what_a_server_says_is_bounded_and_harmless(raw: Raw) -> None:
    servers = raw(max_result=200)
    many, junk, nothing, error, echo = results(
        run_calls(servers, *((name, {}) for name in ("many", "junk", "no_result", "error")), ("echo", {"text": "on"}))
    )
    assert many.outcome == "ok"
    assert len(many.text) < 1_000
    assert "\x1b" not in many.text
    assert junk.text == "after junk"
    assert "no result; it may have done what was asked" in nothing.text
    assert error.outcome == "tool_error"
    assert "\x1b" not in error.text
    assert echo.text == "on"  # none of it ended the connection


def test_tools_that_cannot_be_checked_are_left_out(raw: Raw) -> None:
    servers = raw()
    names = {one.spec.name for one in servers.tools()}
    assert not names & {"wrong", "huge"}
    assert [one.partition(":")[0] for one in servers.left_out] == [
        "wrong of raw_server is left out",
        "huge of raw_server is left out",
    ]


# --- hints ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trust", [False, True])
def test_hints_count_only_where_the_server_is_trusted(raw: Raw, trust: bool) -> None:
    specs = {one.spec.name: one.spec for one in raw(trust=trust).tools()}
    assert (specs["echo"].read_only, specs["die_repeatable"].idempotent) == (trust, trust)
    assert not specs["lies"].read_only  # it says that it reads, and that it destroys
    assert not specs["die"].read_only
    assert not specs["die"].idempotent
    assert specs["echo"].description == "Say it again."


# --- a server that dies ---------------------------------------------------------------------------------


def test_a_call_whose_server_dies_is_in_doubt_and_never_repeated(raw: Raw, tmp_path: Path) -> None:
    file = tmp_path / "log"
    run = run_calls(raw(), ("die", {"file": str(file)}), ("echo", {"text": "still here"}))
    died, after = results(run)
    assert died.outcome == "in_doubt"
    assert "it may have. Check before you do it again" in died.text
    assert "the disk is on fire" in died.text  # the server's last words
    assert file.read_text() == "die\n"
    assert after.text == "still here"
    assert [one.outcome for one in run.calls] == ["in_doubt", "ok"]


@pytest.mark.parametrize("name", ["die_reading", "die_repeatable"])
def test_a_trusted_hint_lets_a_call_be_repeated_once(raw: Raw, tmp_path: Path, name: str) -> None:
    file = tmp_path / "log"
    [lived] = results(run_calls(raw(trust=True), (name, {"file": str(file)})))
    assert (lived.outcome, lived.text) == ("ok", "lived")
    assert file.read_text() == f"{name}\n" * 2


def test_a_hint_that_is_not_trusted_lets_nothing_be_repeated(raw: Raw, tmp_path: Path) -> None:
    file = tmp_path / "log"
    [died] = results(run_calls(raw(), ("die_reading", {"file": str(file)})))
    assert died.outcome == "in_doubt"
    assert file.read_text() == "die_reading\n"


def test_what_dies_twice_is_given_up(raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenlines.tools.mcp.link.RESTARTS_S", (0.01, 0.01, 0.01))
    file, servers = tmp_path / "log", raw(trust=True, env={"DEATHS": "9"})
    reading, repeatable = results(
        run_calls(servers, ("die_reading", {"file": str(file)}), ("die_repeatable", {"file": str(file)}))
    )
    assert (reading.outcome, repeatable.outcome) == ("tool_error", "in_doubt")
    assert "it only reads, so nothing was changed." in reading.text
    assert len(file.read_text().splitlines()) == 4


def test_what_was_sent_stays_in_doubt_where_the_server_does_not_come_back(
    raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenlines.tools.mcp.link.RESTARTS_S", (0.01, 0.01))
    servers = raw("once", str(tmp_path / "starts"), trust=True)
    asked = {"file": str(tmp_path / "log")}
    repeatable, echo = results(run_calls(servers, ("die_repeatable", asked), ("echo", {"text": "hi"})))
    assert repeatable.outcome == "in_doubt"
    assert echo.outcome == "tool_error"
    assert "nothing was done: MCP server 'raw_server' was lost and started again 2 times in a row" in echo.text
    assert "raw_server.py" not in repeatable.text + echo.text  # the command line may have secrets


# --- giving up ------------------------------------------------------------------------------------------


def wait_for(file: Path, word: str) -> None:
    until = time.monotonic() + 5
    while time.monotonic() < until and (not file.exists() or word not in file.read_text()):
        time.sleep(0.01)
    assert word in file.read_text()


def test_a_timeout_reaches_the_server(raw: Raw, tmp_path: Path) -> None:
    file = tmp_path / "log"
    [late] = results(run_calls(raw(timeout_s=0.2), ("wait", {"file": str(file)})))
    assert late.outcome == "timeout"
    wait_for(file, "cancelled")


def test_cancelling_a_run_reaches_the_server(raw: Raw, tmp_path: Path) -> None:
    file, control = tmp_path / "log", Control()
    agent = Agent([calls(("wait", {"file": str(file)})), Reply("done")], tools=[raw()], journal="memory")

    def cancel() -> None:
        wait_for(file, "waiting")
        control.cancel(now=True)

    threading.Thread(target=cancel, daemon=True).start()
    run = agent.run_sync("go", control=control, raise_on_stop=False)
    assert (run.status, results(run)[0].outcome) == ("cancelled", "in_doubt")
    wait_for(file, "cancelled")


def test_cancelling_a_task_reaches_the_server(raw: Raw, tmp_path: Path) -> None:
    file = tmp_path / "log"
    agent = Agent([calls(("wait", {"file": str(file)})), Reply("done")], tools=[raw()], journal="memory")

    async def main() -> None:
        task = asyncio.ensure_future(agent.run("go"))
        await asyncio.to_thread(wait_for, file, "waiting")
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    wait_for(file, "cancelled")


# --- both drivers, several at once ----------------------------------------------------------------------


def meeting(servers: McpServers, text: str) -> Agent:
    """An agent whose first call ends only when another run has made it too."""
    replies = [calls(("meet", {}), ("echo", {"text": text}), ("echo", {"text": text * 2})), Reply("done")]
    return Agent(replies, tools=[servers], journal="memory")


def test_runs_at_once_share_a_server(raw: Raw) -> None:
    servers = raw(trust=True, timeout_s=20)

    def run(text: str) -> list[str]:
        return [one.text for one in results(meeting(servers, text).run_sync("go"))]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(run, "ab")) == [["met", text, text * 2] for text in "ab"]


def test_the_driver_for_asyncio_does_the_same(raw: Raw) -> None:
    servers = raw(timeout_s=20)

    async def both() -> list[str]:
        runs = await asyncio.gather(meeting(servers, "a").run("go"), meeting(servers, "b").run("go"))
        return [one.text for run in runs for one in results(run)[:2]]

    assert asyncio.run(both()) == ["met", "a", "met", "b"]
    assert asyncio.run(both()) == ["met", "a", "met", "b"]  # another event loop, the same connection


def test_other_tools_are_there_from_the_next_run_on(raw: Raw) -> None:
    servers = raw()
    agent = Agent([calls(("grow", {})), calls(("extra", {})), Reply("done")], tools=[servers], journal="memory")
    first = agent.run_sync("go")
    assert [one.outcome for one in results(first)] == ["ok", "unknown_tool"]  # a run keeps the tools that it has
    agent.model = Agent([calls(("extra", {})), Reply("done")]).model
    assert results(agent.run_sync("go"))[0].text == "new"
    assert "extra" in agent.tools


def test_other_tools_are_heard_of_in_the_newer_revision(small: McpServers) -> None:
    before = small.version
    run_calls(small, ("grow", {}))
    until = time.monotonic() + 5
    while small.version == before and time.monotonic() < until:
        time.sleep(0.01)
    assert "extra" in {one.spec.name for one in small.tools()}


def test_a_spec_survives_the_journal(raw: Raw) -> None:
    spec = raw().tools()[0].spec
    assert msgspec.json.decode(msgspec.json.encode(spec), type=type(spec)) == spec
