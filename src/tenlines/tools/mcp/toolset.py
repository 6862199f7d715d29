"""Servers of tools, as an agent is given them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import READ_RESULT
from tenlines.core.transcript import JsonObject
from tenlines.errors import ConfigError
from tenlines.tools.mcp import tool as asking
from tenlines.tools.mcp.connection import Listing, Unreachable
from tenlines.tools.mcp.link import Link
from tenlines.tools.mcp.names import Origin, wire_names
from tenlines.tools.mcp.schemas import Checker, Unusable
from tenlines.tools.mcp.servers import Server, source_of, unique
from tenlines.tools.mcp.texts import parameters, seen
from tenlines.tools.mcp.tool import McpTool, Request
from tenlines.tools.plan import BYTES_PER_TOKEN

PROMPTS_TOLD = 30
"""Prompts that are named in the description of `get_prompt`."""


class Choices(NamedTuple):
    """What holds for all servers of a set."""

    timeout_s: float | None = 120.0
    """Seconds that a call may take; then the server is told to stop and the call is given up."""
    start_s: float = 30.0
    """Seconds that a server has to start and to say what it has."""
    max_result: int = 8_000
    """Tokens of a result."""
    with_resources: bool = True
    """Whether the model gets at resources and prompts, where a server has them."""


DEFAULTS = Choices()


class McpServers:
    """Tools of servers: `Agent(tools=[mcp("uvx mcp-server-time"), my_tool])`. Each server is started when its tools are
    first needed and ended with the process, or with `close`, or by leaving `with mcp(...) as servers:`.

    Args:
        servers: Which.
        choices: What holds for all of them.

    Attributes:
        left_out: Tools that cannot be used, one sentence each.
        renamed: What has another name here than at its server: `(server, name)` -> the name here.
    """

    def __init__(self, servers: Sequence[Server], choices: Choices = DEFAULTS) -> None:
        self._links = [Link(server, choices.start_s) for server in unique(servers)]
        self._choices = choices
        self.left_out: list[str] = []
        self.renamed: dict[tuple[str, str], str] = {}

    @property
    def version(self) -> int:
        """Another number where a server said that it has other tools than before."""
        return sum(link.version for link in self._links)

    def tools(self, taken: Collection[str] = ()) -> list[McpTool]:
        """The tools that the servers have now.

        Args:
            taken: Names that other tools have already.

        Raises:
            ConfigError: A server cannot be had; the message says why.
        """
        drafts = [draft for link in self._links for draft in _drafts(link, self._listing(link), self._choices)]
        drafts = list({draft.origin: draft for draft in drafts}.values())
        names = wire_names([draft.origin for draft in drafts], {*taken, READ_RESULT})
        self.left_out, made = [], list[McpTool]()
        for draft in drafts:
            try:
                made.append(self._made(draft, names[draft.origin]))
            except Unusable as error:
                self.left_out.append(f"{seen(draft.origin.name, 100)} of {draft.link.server.name} is left out: {error}")
        self.renamed = {(origin.server, origin.name): name for origin, name in names.items() if name != origin.name}
        return made

    def _listing(self, link: Link) -> Listing:
        try:
            return link.listing()
        except Unreachable as error:
            raise ConfigError(f"{link.server.title} {error}") from error

    def _made(self, draft: _Draft, name: str) -> McpTool:
        server, choices = draft.link.server, self._choices
        told = f"(Of MCP server {server.name}, where it is called {draft.origin.name[:200]!r}.) "
        spec = ToolSpec(
            name,
            (told if name != draft.origin.name and not draft.origin.is_ours else "") + draft.description,
            draft.schema,
            read_only=draft.read_only and server.trust,
            idempotent=draft.idempotent and server.trust,
            timeout_s=choices.timeout_s,
            source=source_of(server),
        )
        checker = Checker(name, draft.schema)
        return McpTool(spec, draft.link, checker, draft.request, choices.max_result * BYTES_PER_TOKEN)

    def __iter__(self) -> Iterator[McpTool]:
        return iter(self.tools())

    def close(self) -> None:
        """End the connections, and the servers that were started."""
        for link in self._links:
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Draft(NamedTuple):
    """A tool that has no name yet."""

    link: Link
    origin: Origin
    description: str
    schema: JsonObject
    request: Request
    read_only: bool
    idempotent: bool


def _drafts(link: Link, listing: Listing, choices: Choices) -> list[_Draft]:
    """All tools of a server."""
    made = [_of_tool(link, one) for one in listing.tools]
    if choices.with_resources and listing.has_resources:
        made += [_of_list(link), _of_read(link)]
    if choices.with_resources and listing.prompts:
        made.append(_of_prompts(link, listing))
    return made


def _of_tool(link: Link, one: Any) -> _Draft:
    """A hint counts where nothing that the server says contradicts it."""
    hints = one.annotations
    reads = hints is not None and hints.read_only_hint is True and hints.destructive_hint is not True
    repeats = hints is not None and hints.idempotent_hint is True
    request = partial(asking.call_tool, name=one.name)
    description = seen(one.description or one.title)
    return _Draft(
        link, Origin(link.server.name, one.name), description, parameters(one.input_schema), request, reads, repeats
    )


def _own(link: Link, name: str, description: str, schema: JsonObject, request: Request) -> _Draft:
    schema = {"type": "object", "additionalProperties": False, **schema}
    return _Draft(link, Origin(link.server.name, name, True), description, schema, request, True, True)


def _of_list(link: Link) -> _Draft:
    text = f"List the resources of the MCP server {link.server.name}: their URIs, names and kinds."
    cursor: JsonObject = {
        "cursor": {"type": "string", "description": "`next_cursor` of the list before, for the rest."}
    }
    return _own(link, asking.LIST_RESOURCES, text, {"properties": cursor}, asking.list_resources)


def _of_read(link: Link) -> _Draft:
    text = f"Read a resource of the MCP server {link.server.name} by its URI."
    schema: JsonObject = {"properties": {"uri": {"type": "string"}}, "required": ["uri"]}
    return _own(link, asking.READ_RESOURCE, text, schema, asking.read_resource)


def _of_prompts(link: Link, listing: Listing) -> _Draft:
    lines = [f"Get a prompt that the MCP server {link.server.name} has prepared. Prompts:"]
    lines += [f"- {_prompt_line(one)}" for one in listing.prompts[:PROMPTS_TOLD]]
    if len(listing.prompts) > PROMPTS_TOLD:
        lines.append(f"- and {len(listing.prompts) - PROMPTS_TOLD} more")
    given: JsonObject = {"type": "object", "additionalProperties": {"type": "string"}}
    schema: JsonObject = {"properties": {"name": {"type": "string"}, "arguments": given}, "required": ["name"]}
    return _own(link, asking.GET_PROMPT, "\n".join(lines), schema, asking.get_prompt)


def _prompt_line(prompt: Any) -> str:
    takes = ", ".join(f"{one.name}{'' if one.required else '?'}" for one in prompt.arguments or ())
    said = f": {prompt.description}" if prompt.description else ""
    return seen(f"{prompt.name}({takes}){said}".replace("\n", " "), 300)
