"""Servers of tools that speak the Model Context Protocol, as tools of an agent.

```python
from tenlines import Agent
from tenlines.tools.mcp import mcp

agent = Agent("openai:gpt-5-mini", tools=[mcp("uvx mcp-server-time", "http://127.0.0.1:3001/mcp", "servers.json")])
```

`docs/mcp.md` says how servers are started, what their hints count for, and what becomes of a call whose server dies.
Nothing of the SDK is imported before a server is needed: `pip install 'tenlines[mcp]'`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from tenlines.tools.mcp.servers import Server, from_source, read, read_file, source_of
from tenlines.tools.mcp.toolset import DEFAULTS, Choices, McpServers

__all__ = ["Choices", "McpServers", "Server", "from_source", "mcp", "read", "read_file", "source_of"]


def mcp(
    *servers: str | Sequence[str] | Mapping[str, Any] | PurePath | Server,
    trust: bool = False,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    timeout_s: float | None = DEFAULTS.timeout_s,
    start_s: float = DEFAULTS.start_s,
    max_result: int = DEFAULTS.max_result,
    with_resources: bool = True,
) -> McpServers:
    """Tools of MCP servers: give it to `Agent(tools=[...])`.

    Args:
        servers: Commands (`"uvx mcp-server-time"`, or a list of words), addresses (`"https://host/mcp"`), JSON files of
            servers as other clients have them, or the contents of one.
        trust: Believe what the servers say of their tools: that one only reads, or can be repeated. Without it each
            call may take effect once, and is never repeated by itself.
        env: Environment variables for the commands. Of this process's own they get what programs need to run (PATH,
            HOME, proxies, ...), and no keys.
        headers: HTTP headers for the addresses.
        cwd: The folder for the commands.
        timeout_s: Seconds that a call may take; None for no end.
        start_s: Seconds that a server has to start.
        max_result: Tokens of a result, at least 100.
        with_resources: Whether the model gets at the servers' resources and prompts too (`list_resources`,
            `read_resource`, `get_prompt`).

    Raises:
        ConfigError: Something is no server. Whether it can be reached is seen when its tools are needed.
    """
    found: list[Server] = []
    for one in servers:
        if isinstance(one, Server):
            found.append(one)
        else:
            found += read(one, trust=trust, env=env, headers=headers, cwd=cwd)
    return McpServers(found, Choices(timeout_s, start_s, max(100, max_result), with_resources))
