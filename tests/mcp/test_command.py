"""`--mcp` of `run` and `resume`, and `tenlines mcp`, with the official client and with our own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple

import pytest
from mcp import Client, StdioServerParameters
from mcp_world import RAW, Model, results, run_calls

from tenlines.core.events import CancelRequested, RunEnded
from tenlines.errors import ConfigError
from tenlines.journal import open_journal
from tenlines.tools.mcp import mcp

pytestmark = pytest.mark.slow
TOOLS = '''
import pathlib, time
from tenlines import CallContext, tool

@tool(read_only=True)
def get_order(order_id: str) -> str:
    """One order."""
    print("printed by the tool")
    return f"order {order_id}: shipped"

@tool
def wait(file: str) -> str:
    """Waits until there is another file."""
    pathlib.Path(file).touch()
    while not pathlib.Path(file + ".go").exists():
        time.sleep(0.01)
    return "waited"

@tool
def key(ctx: CallContext) -> str:
    """The key of the call."""
    return ctx.key

@tool(approve=True)
def pay(amount: int) -> str:
    """Pays."""
    return "paid"
'''


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def tenlines(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """The command in this process."""
    from tenlines.cli import main

    def run(*words: str) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(words)
        out, err = capsys.readouterr()
        return Done(end.value.code if isinstance(end.value.code, int) else 1, out, err)

    return run


def command(*words: str) -> str:
    return " ".join([*RAW, *words])


# --- run and resume -------------------------------------------------------------------------------------


def test_a_run_uses_a_server(tenlines: Callable[..., Done], model: Model) -> None:
    model.replies = [("echo", {"text": "hi"}), "it said hi"]
    done = tenlines("run", "go", "--model", model.name, "--mcp", command(), "--mcp-trust", "raw_*")
    assert (done.code, done.out, done.err) == (0, "it said hi\n", "")
    assert model.requests[1]["messages"][-1]["content"] == "hi"
    assert "(MCP server raw_server: " in " ".join(tenlines("show", "last").out.split())


def test_a_run_is_resumed_by_its_id_alone_and_the_journal_has_no_secret(
    tenlines: Callable[..., Done], model: Model, tmp_path: Path
) -> None:
    entry = {"command": RAW[0], "args": RAW[1:], "env": {"TOKEN": "top-secret-value"}}
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"notes": entry}}))
    model.replies = [("echo", {"text": "one"}), ("echo", {"text": "two"}), "done"]
    first = tenlines("run", "go", "--model", model.name, "--mcp", str(file), "--max-steps", "1")
    assert first.code == 1
    assert tenlines("resume", "last", "--max-steps", "5")[:2] == (0, "done\n")
    assert model.requests[2]["messages"][-1]["content"] == "two"
    assert all(
        b"top-secret-value" not in one.read_bytes()
        for one in Path(os.environ["TENLINES_JOURNAL"]).parent.iterdir()
        if one.is_file()
    )


def test_tools_of_two_servers_and_a_file_have_names_of_their_own(
    tenlines: Callable[..., Done], model: Model, tmp_path: Path
) -> None:
    (tmp_path / "pid.py").write_text("def pid() -> str:\n    'Mine.'\n    return '1'\n")
    model.replies = ["done"]
    done = tenlines(
        *("run", "go", "--model", model.name, "--tools", str(tmp_path / "pid.py")),
        *("--mcp", command(), "--mcp", command("again")),
    )
    assert done.code == 0
    names = {one["function"]["name"] for one in model.requests[0]["tools"]}
    assert {"pid", "raw_server_pid", "raw_server_2_pid", "raw_server_echo", "raw_server_2_echo"} <= names


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--mcp", "no-such-program"], "there is no command 'no-such-program'"),
        (["--mcp", "no-such-file.json"], "cannot be read: No such file"),
        (["--mcp", command("broken")], "It wrote:\nno such database"),
        (["--mcp-trust", "time"], "--mcp-trust time: there is no server"),
        (["--mcp", command(), "--mcp-trust", "time"], "no server has such a name; servers: raw_server"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(tenlines: Callable[..., Done], words: list[str], said: str) -> None:
    done = tenlines("run", "go", "--model", "http://127.0.0.1:9/v1#x", *words)
    assert done.code == 2
    assert done.err.startswith("tenlines: ")
    assert said in done.err
    assert "Traceback" not in done.err


# --- tenlines mcp ---------------------------------------------------------------------------------------


class Served(NamedTuple):
    """What the command is started with."""

    model: Model
    words: list[str]
    journal: Path
    folder: Path


@pytest.fixture
def served(model: Model, tmp_path: Path) -> Served:
    (tmp_path / "tools.py").write_text(TOOLS)
    journal = tmp_path / "journal.db"
    words = ["-m", "tenlines", "mcp", "--tools", str(tmp_path / "tools.py"), "--model", model.name]
    return Served(model, [*words, "--journal", str(journal), "--max-steps", "4"], journal, tmp_path)


def test_the_official_client_gives_it_a_task(served: Served) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def main() -> None:
        async with Client(StdioServerParameters(command=sys.executable, args=served.words)) as client:
            [tool] = (await client.list_tools()).tools
            assert tool.name == "run_task"
            assert "get_order" in (tool.description or "")
            served.model.replies = [("get_order", {"order_id": "7"}), "It is shipped."]
            done = await client.call_tool("run_task", {"task": "Where is order 7?"}, progress_callback=heard)
            assert not done.is_error
            assert done.content[0].text == "It is shipped."  # type: ignore[union-attr]  # a text
            assert _log(served, done.structured_content["run_id"])[-1].status == "answered"
            served.model.replies = [("get_order", {"order_id": "7"})] * 2
            stopped = await client.call_tool("run_task", {"task": "x", "max_steps": 2})
            assert stopped.is_error
            assert stopped.structured_content["status"] == "max_steps"
            served.model.replies = [("pay", {"amount": 3})]
            waits = await client.call_tool("run_task", {"task": "x"})
            assert f"tenlines pending {waits.structured_content['run_id']}" in waits.content[0].text  # type: ignore[union-attr]
            wrong = await client.call_tool("run_task", {"task": " "})
            assert wrong.is_error

    asyncio.run(main())
    assert told == [(1, 4, "step 1: calls get_order"), (2, 4, "step 2: answers")]


def wait_for(file: Path) -> None:
    until = time.monotonic() + 10
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.01)


def test_a_client_that_gives_up_stops_the_run(served: Served) -> None:
    file = served.folder / "waiting"

    async def main() -> None:
        async with Client(StdioServerParameters(command=sys.executable, args=served.words)) as client:
            served.model.replies = [("wait", {"file": str(file)})]
            call = asyncio.ensure_future(client.call_tool("run_task", {"task": "wait"}))
            await asyncio.to_thread(wait_for, file)
            call.cancel()
            await asyncio.wait([call])

    asyncio.run(main())
    [run] = open_journal(served.journal).runs()
    log = _log(served, run.run_id)
    assert log[-1].status == "cancelled"
    assert [one.reason for one in log if isinstance(one, CancelRequested)] == ["the MCP client gave the call up"]


def test_a_signal_ends_it_and_closes_the_log(served: Served) -> None:
    file = served.folder / "waiting"
    served.model.replies = [("wait", {"file": str(file)})]
    with subprocess.Popen([sys.executable, *served.words], stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as child:
        assert child.stdin is not None
        told = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        for number, (method, params) in enumerate(
            [("initialize", told), ("tools/call", {"name": "run_task", "arguments": {"task": "wait"}})]
        ):
            child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            child.stdin.flush()
        wait_for(file)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=20)
    assert "Traceback" not in err
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())
    [run] = open_journal(served.journal).runs()
    assert run.status == "cancelled"


def _log(served: Served, run_id: str) -> list[Any]:
    log = list(open_journal(served.journal).read(run_id))
    assert isinstance(log[-1], RunEnded)
    return log


@pytest.fixture
def over_http(served: Served) -> Iterator[tuple[str, str]]:
    words = [sys.executable, *served.words, "--http", "0", "--offer-tools"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        line = child.stderr.readline()
        found = re.fullmatch(r"MCP at (http://127\.0\.0\.1:\d+/mcp) with Authorization: (Bearer \S{32}); .*\n", line)
        assert found is not None, line + child.stderr.read()
        yield found[1], found[2]
        child.send_signal(signal.SIGINT)
        until = time.monotonic() + 10
        while child.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert "Traceback" not in child.stderr.read()


def test_our_own_client_gives_it_a_task_over_http(served: Served, over_http: tuple[str, str]) -> None:
    served.model.replies, (url, token) = ["It is shipped."], over_http
    for headers in ({}, {"Authorization": f"{token}x"}):
        with pytest.raises(ConfigError, match="HTTP 401"):
            mcp(url, headers=headers).tools()
    with mcp(url, trust=True, headers={"Authorization": token}) as servers:
        specs = {one.spec.name: one.spec for one in servers.tools()}
        assert set(specs) == {"run_task", "get_order", "wait", "key"}  # what needs leave is not offered by itself
        assert specs["get_order"].read_only
        asked = [("run_task", {"task": "Where?"}), ("get_order", {"order_id": "7"}), ("get_order", {})]
        task, order, wrong, one, other = results(run_calls(servers, *asked, ("key", {}), ("key", {})))
    assert one.text != other.text
    assert task.text == "It is shipped."
    assert order.text == "order 7: shipped"
    assert wrong.outcome == "invalid_arguments"
    assert len(open_journal(served.journal).runs()) == 1  # a tool by itself is no run
