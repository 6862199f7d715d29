"""`--mcp`: tools of MCP servers, for a run and for one that is taken up again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.core.events import ToolSpec
    from tenlines.ports import ToolPort
    from tenlines.tools.mcp import McpServers, Server

McpNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp",
        metavar="SERVER",
        help="Tools of an MCP server: a command, an address, or a JSON file of servers. May be given several times.",
    ),
]
McpTrust: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp-trust",
        metavar="NAME",
        help="Believe these servers when they say that a tool only reads or can be repeated: time, '*'.",
    ),
]


def server_tools(
    things: Sequence[str], trust: Sequence[str], others: Iterable[ToolPort], tell: Callable[[str], None]
) -> list[ToolPort]:
    """The tools of these servers. Each is started now.

    Args:
        things: As they were typed.
        trust: Patterns of names of servers whose hints are believed.
        others: Tools that have their names already.
        tell: Says what is good to know.

    Raises:
        ConfigError: One is no server or cannot be had, or a pattern fits none.
    """
    if not things:
        if trust:
            raise ConfigError(f"--mcp-trust {trust[0]}: there is no server; name one with --mcp")
        return []
    return _tools(_trusted(read_servers(things), trust), others, tell)


def read_servers(things: Iterable[str]) -> list[Server]:
    """The servers that are meant, each with a name of its own.

    Raises:
        ConfigError: One of them is none.
    """
    from tenlines.tools.mcp.servers import read, unique

    return unique(server for thing in things for server in read(thing))


def _trusted(servers: list[Server], trust: Sequence[str]) -> list[Server]:
    import msgspec

    names = [server.name for server in servers]
    for pattern in trust:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise ConfigError(f"--mcp-trust {pattern}: no server has such a name; servers: {', '.join(names)}")
    return [
        msgspec.structs.replace(server, trust=any(fnmatchcase(server.name, pattern) for pattern in trust))
        for server in servers
    ]


def _tools(servers: list[Server], others: Iterable[ToolPort], tell: Callable[[str], None]) -> list[ToolPort]:
    from tenlines.tools.mcp import McpServers

    opened = McpServers(servers)
    made = opened.tools({one.spec.name for one in others})
    for line in _remarks(opened):
        tell(line)
    return list(made)


def _remarks(servers: McpServers) -> list[str]:
    renamed = [f"{name} of {server} is called {called}" for (server, name), called in servers.renamed.items()]
    return [*renamed, *servers.left_out]


def is_from_server(spec: ToolSpec) -> bool:
    """Whether a tool came from a server."""
    return spec.source.startswith("mcp:")


def origin(source: str) -> str:
    """Where a tool came from, for a person: a file, or a server."""
    if not source.startswith("mcp:"):
        return source
    try:
        told = json.loads(source.removeprefix("mcp:"))
        reached = told.get("file") or told.get("url") or shlex.join(told["command"])
        return f"MCP server {told['name']}: {reached}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return source


def server_tools_again(
    specs: Iterable[ToolSpec], things: Sequence[str], trust: Sequence[str], others: Collection[ToolPort]
) -> list[ToolPort]:
    """The tools of these servers, or of those that the journal names.

    Raises:
        ConfigError: As in `server_tools`; or the journal does not have all that is needed to start one.
    """
    if things:
        return server_tools(things, trust, others, _say_nothing)
    sources = list(dict.fromkeys(spec.source for spec in specs if is_from_server(spec)))
    if not sources:
        return server_tools((), trust, others, _say_nothing)
    from tenlines.tools.mcp.servers import from_source

    servers = [from_source(source) for source in sources]
    return _tools(_trusted(servers, trust) if trust else servers, others, _say_nothing)


def _say_nothing(text: str) -> None:
    """A run that is taken up has been told."""
