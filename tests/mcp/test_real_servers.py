"""Servers that others wrote: one from PyPI, one from npm, and that one over HTTP."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from mcp_world import results, run_calls
from real_servers import everything_server, over_http, time_server

from environments import CannotBeHad
from tenlines.core.transcript import Image, Json
from tenlines.tools.mcp import McpServers, mcp

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def had(command: Callable[[], list[str]]) -> list[str]:
    try:
        return command()
    except CannotBeHad as error:
        pytest.skip(f"NOT TESTED with a real server: {error}")


@pytest.fixture(scope="module")
def everything() -> Iterator[McpServers]:
    with mcp([*had(everything_server), "stdio"]) as servers:
        yield servers


def test_the_server_of_time_from_pypi() -> None:
    with mcp(had(time_server)) as servers:
        asked: dict[str, Any] = {"source_timezone": "Europe/Paris", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        run = run_calls(servers, ("convert_time", asked), ("get_current_time", {"timezone": "Nowhere/At_All"}))
    converted, wrong = results(run)
    [part] = converted.parts
    assert isinstance(part, Json)
    assert '"Asia/Tokyo"' in json.dumps(part.value)
    assert wrong.outcome == "tool_error"
    assert "Nowhere/At_All" in wrong.text


def test_the_server_of_everything_from_npm(everything: McpServers, say: Callable[[str], None]) -> None:
    reach_everything(everything)
    say(f"server-everything: {len(everything.tools())} tools over stdio")


def test_the_server_of_everything_over_http(say: Callable[[str], None]) -> None:
    with over_http(had(everything_server)) as url, mcp(url) as servers:
        reach_everything(servers)
        say(f"server-everything: {len(servers.tools())} tools over HTTP")


def reach_everything(servers: McpServers) -> None:
    """Text, structured content, an image, a resource, a prompt, a link, progress."""
    names = {one.spec.name for one in servers.tools()}
    prompt = next(one.spec for one in servers.tools() if one.spec.name == "get_prompt")
    assert {"list_resources", "read_resource"} <= names
    assert "simple-prompt" in prompt.description
    run = run_calls(
        servers,
        ("echo", {"message": "hi"}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-tiny-image", {}),
        ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        ("get-resource-links", {"count": 1}),
        ("get_prompt", {"name": "args-prompt", "arguments": {"city": "Oslo"}}),
        ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
        ("list_resources", {}),
        ("get-sum", {"a": "1", "b": 2}),
    )
    echo, structured, image, resource, links, prompted, long, listed, wrong = results(run)
    assert "hi" in echo.text
    [part] = structured.parts
    assert isinstance(part, Json)
    assert isinstance(part.value, dict)
    assert "temperature" in part.value
    assert any(isinstance(one, Image) and one.data.startswith(b"\x89PNG") for one in image.parts)
    assert "demo://resource/dynamic/text/1" in resource.text
    assert "(resource demo://" in links.text
    assert "Oslo" in prompted.text
    assert long.outcome == "ok"
    uri = json.loads(listed.text)["resources"][0]["uri"]
    [read] = results(run_calls(servers, ("read_resource", {"uri": uri})))
    assert uri in read.text
    assert wrong.outcome == "invalid_arguments"


def test_the_server_of_everything_is_killed_in_the_middle_of_a_call(everything: McpServers) -> None:
    everything.tools()
    server = next(
        one for one in psutil.Process().children(recursive=True) if "mcp-server-everything" in one.cmdline()[-2]
    )
    threading.Timer(0.5, os.kill, (server.pid, signal.SIGKILL)).start()
    died, after = results(
        run_calls(
            everything, ("trigger-long-running-operation", {"duration": 60, "steps": 60}), ("echo", {"message": "back"})
        )
    )
    assert died.outcome == "in_doubt"
    assert "Whether it took effect is not known: it may have." in died.text
    assert "back" in after.text
