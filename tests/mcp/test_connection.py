"""Servers that cannot be had, are lost, or do not want to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from mcp_world import RAW, results, run_calls

from tenlines.errors import ConfigError, MissingExtra
from tenlines.tools.mcp import McpServers, mcp
from tenlines.tools.mcp import link as link_module

pytestmark = pytest.mark.slow
Raw = Callable[..., McpServers]


def why_not(servers: McpServers) -> str:
    with pytest.raises(ConfigError) as error:
        servers.tools()
    return str(error.value)


def test_a_command_that_is_not_there_is_named() -> None:
    assert "there is no command 'no-such-program': install it, or give its path" in why_not(mcp("no-such-program x"))
    assert "its folder /no/such/folder is not there" in why_not(mcp([sys.executable], cwd="/no/such/folder"))


def test_a_server_that_ends_at_once_is_quoted(raw: Raw) -> None:
    said = why_not(raw("broken"))
    assert "ended before it answered. It wrote:\nno such database" in said


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not end by itself is not waited for."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.1)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_server_that_never_answers_is_given_up_in_time(raw: Raw) -> None:
    start = time.monotonic()
    said = why_not(raw("silent", start_s=0.3))
    assert time.monotonic() - start < 10
    assert "did not answer within 0.3 s. It wrote:\nstill [31mthinking" in said


def test_a_list_that_breaks_the_protocol_is_named(raw: Raw) -> None:
    said = why_not(raw("no-list"))
    assert "could not be used (what it sent is not MCP: tools.16.inputSchema.type: Input should be 'object')" in said


def test_an_address_where_nobody_is_is_named() -> None:
    assert "cannot be reached" in why_not(mcp("http://127.0.0.1:9/mcp"))


def test_a_server_that_was_killed_between_calls_is_started_again(raw: Raw) -> None:
    servers = raw()
    [first] = results(run_calls(servers, ("pid", {})))
    os.kill(int(first.text), signal.SIGKILL)
    connection = servers._links[0]._connection
    assert connection is not None
    until = time.monotonic() + 5
    while not connection.is_over and time.monotonic() < until:
        time.sleep(0.01)  # a call before that is noticed would be in doubt
    [second] = results(run_calls(servers, ("pid", {})))
    assert second.outcome == "ok"
    assert second.text != first.text


def test_a_server_is_started_again_so_often_and_no_more(
    raw: Raw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "RESTARTS_S", (0.01, 0.01, 0.01))
    servers = raw("once", str(tmp_path / "starts"))
    asked = [("pid", {}), ("die", {"file": str(tmp_path / "log")}), ("pid", {}), ("pid", {})]
    _, *after = results(run_calls(servers, *asked))
    assert after[0].outcome == "in_doubt"
    for one in after[1:]:
        assert one.outcome == "tool_error"
        assert "nothing was done" in one.text
        assert "3 times in a row; it is not tried again for 60 s" in one.text
    assert "only once" in after[1].text
    assert (tmp_path / "starts").read_text().count("started") == 4


@pytest.mark.usefixtures("impatient")
def test_a_server_is_ended_with_its_children(raw: Raw) -> None:
    servers = raw("stubborn")
    [pid] = results(run_calls(servers, ("pid", {})))
    process = psutil.Process(int(pid.text))
    family = [process, *process.children(recursive=True)]
    assert len(family) == 2
    servers.close()
    _, alive = psutil.wait_procs(family, timeout=3)
    assert alive == []


ONE_CALL = textwrap.dedent(
    """
    import os, signal, sys
    from tenlines import Agent
    from tenlines.core.transcript import Reply, ToolCall
    from tenlines.tools.mcp import mcp

    asked = Reply("", (ToolCall("1", "pid", "{}"),))
    wait = Reply("", (ToolCall("1", "wait", '{"file": "%s"}' % sys.argv[2]),))
    servers = mcp(sys.argv[3:])
    print(Agent([asked, Reply("x")], tools=[servers], journal="memory").run_sync("go").messages[2].text, flush=True)
    if sys.argv[1] == "wait":
        Agent([wait], tools=[servers], journal="memory").run_sync("go")
    if sys.argv[1] == "fork":
        if os.fork() == 0:
            run = Agent([asked, Reply("x")], tools=[servers], journal="memory").run_sync("go")
            print(run.messages[2].text, flush=True)
            sys.exit()
        os.wait()
    """
)


def program(how: str, file: Path) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", ONE_CALL, how, str(file), *RAW]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_server_ends_when_the_program_is_interrupted(tmp_path: Path) -> None:
    child = program("wait", tmp_path / "log")
    assert child.stdout is not None
    pid = int(child.stdout.readline())
    while not (tmp_path / "log").exists():
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in err
    assert not psutil.pid_exists(pid)
    assert (tmp_path / "log").read_text() == "waiting\ncancelled\n"


def test_a_program_that_forks_has_two_servers(tmp_path: Path) -> None:
    done = program("fork", tmp_path / "log")
    out, err = done.communicate(timeout=20)
    assert err == ""
    first, second = out.split()
    assert first != second
    assert not psutil.pid_exists(int(first))
    assert not psutil.pid_exists(int(second))


def test_a_server_gets_no_keys_of_ours(raw: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "HTTPS_PROXY", "UV_INDEX_URL", "AWS_PROFILE"):
        monkeypatch.setenv(name, "x")
    [got] = results(run_calls(raw(env={"MINE": "y"}), ("environment", {})))
    names = set(got.text.split())
    assert {"PATH", "HTTPS_PROXY", "UV_INDEX_URL", "MINE"} <= names
    assert not names & {"OPENAI_API_KEY", "AWS_PROFILE", "TENLINES_JOURNAL"}


def test_the_sdk_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenlines.tools.mcp.connection.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'tenlines\[mcp\]'"):
        mcp("x").tools()


def test_what_a_server_announces_and_does_not_have_is_no_reason_to_go_without_its_tools(raw: Raw) -> None:
    names = {one.spec.name for one in raw("boasting").tools()}
    assert "echo" in names
    assert not names & {"list_resources", "get_prompt"}
