"""`tenlines mcp`: offer an agent to MCP clients, over standard input and output or over HTTP on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenlines.cli import options as opt
from tenlines.cli.mcp_tools import McpNames, McpTrust
from tenlines.cli.run import Instructions, PriceText
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.agent import Agent
    from tenlines.cli.offering import Offer
    from tenlines.core.result import RunResult
    from tenlines.ports import Observer, ToolPort

Name = Annotated[str, typer.Option("--name", metavar="NAME", help="What the tool is called.")]
Description = Annotated[
    str | None,
    typer.Option("--description", metavar="TEXT", help="What the tool is for, for the model of the client."),
]
Port = Annotated[
    int | None,
    typer.Option("--http", metavar="PORT", min=0, max=65535, help="Over HTTP on 127.0.0.1; 0 takes a free port."),
]
OfferTools = Annotated[
    bool, typer.Option("--offer-tools", help="Offer the agent's tools one by one too. Their calls are in no journal.")
]
HOST = "127.0.0.1"


def mcp(
    model: opt.ModelName = None,
    tools: opt.ToolFiles = None,
    mcp: McpNames = None,
    mcp_trust: McpTrust = None,
    instructions: Instructions = "",
    name: Name = "run_task",
    description: Description = None,
    http: Port = None,
    offer_tools: OfferTools = False,
    max_steps: opt.MaxSteps = None,
    max_tool_calls: opt.MaxToolCalls = None,
    max_tokens: opt.MaxTokens = None,
    max_dollars: opt.MaxDollars = None,
    timeout: opt.Timeout = None,
    price: PriceText = None,
    prices: opt.PriceFile = None,
    ask: opt.AskFor = None,
    deny: opt.DenyFor = None,
    journal: opt.JournalName = None,
) -> None:
    """Offer an agent as an MCP server: one tool, `run_task`, whose call is a run in the journal.

    The limits hold for each run. A client hears of every step, can ask for fewer steps, and stops the run by giving
    its call up. The result has the run's id: `tenlines show RUN`, `tenlines resume RUN`.

    A run that needs leave (@tool(approve=True), --ask) ends as waiting; `tenlines approve RUN --resume` goes on.

    Standard output belongs to the protocol; what tools print goes to standard error. Over HTTP a client needs a token:
    the one in $TENLINES_MCP_TOKEN, else one that is made and printed.

    \b
    Examples:
      tenlines mcp --tools orders.py --model openai:gpt-5-mini --max-dollars 0.05
      tenlines mcp --tools files.py --deny 'delete_*' --http 8765

    \b
    In a client's file of servers:
      {"mcpServers": {"orders": {"command": "tenlines", "args": ["mcp", "--tools", "/home/me/orders.py"]}}}
    """
    from tenlines.cli.guarding import guard
    from tenlines.cli.making import choose_model, load_files, make_model
    from tenlines.cli.mcp_tools import server_tools
    from tenlines.cli.run import priced
    from tenlines.cli.screen import own_stdout
    from tenlines.core.events import Settings
    from tenlines.core.limits import Limits
    from tenlines.journal import open_journal
    from tenlines.ports import SystemClock
    from tenlines.tools.mcp.connection import require_sdk

    require_sdk()
    given = opt.GivenLimits(max_steps, max_tool_calls, max_tokens, max_dollars, timeout, False)
    limits = given.over(Limits()) or Limits()
    settings = Settings(limits=limits, price=opt.read_price(price))
    with own_stdout() as out:
        chosen = make_model(choose_model(model, _tell), None)
        brought: list[ToolPort] = [*load_files(tools or [])]
        brought += server_tools(mcp or (), mcp_trust or (), brought, _tell)
        guarded, store = guard(brought, ask or (), deny or ()), open_journal(journal)
        settings = priced(settings, chosen.name, prices, SystemClock().now())

        def agent(observers: Sequence[Observer]) -> Agent:
            from tenlines.agent import Agent

            return Agent(
                chosen,
                guarded,
                instructions=instructions,
                settings=settings,
                journal=store,
                observers=observers,
                name=name,
            )

        offer = _offer(name, description, limits, agent, guarded if offer_tools else [], journal)
        agent(())  # what does not fit is said now, and not to the first client
        _serve(offer, http, out)


def _tell(text: str) -> None:
    from tenlines.trace.text import clean

    sys.stderr.write(f"{clean(text)}\n")


def _offer(
    name: str,
    description: str | None,
    limits: Any,
    agent: Callable[[Sequence[Observer]], Agent],
    single: Sequence[ToolPort],
    journal: str | None,
) -> Offer:
    from tenlines.cli.offering import Offer
    from tenlines.core.outcomes import wire_name
    from tenlines.ports import SystemClock

    if wire_name(name) != name:
        raise ConfigError(f"--name {name}: a tool is called by letters, digits, _ and -, at most 64")
    tools = {one.spec.name: one for one in single if not one.spec.approve}
    if name in tools:
        raise ConfigError(f"--name {name}: one of the agent's tools is called so")
    about = description or _about(agent(()).tools.values())
    return Offer(name, about, limits, agent, tools, lambda result: _way_on(result, limits, journal), SystemClock().now)


def _about(tools: Any) -> str:
    names = ", ".join(one.spec.name for one in tools)
    with_tools = f" Its tools: {names[:500]}." if names else ""
    return f"Give a task to an agent, in plain words, and get its answer.{with_tools}"


def _way_on(result: RunResult, limits: Any, journal: str | None) -> str:
    from tenlines.cli.moves import command, next_move

    if result.status == "awaiting_approval":
        return f"A person has to decide: {command('pending', [result.run_id], journal)}"
    advice, line = next_move(result, limits, journal)
    return f"A person can go on with it ({advice}): {line}" if line else advice


def _serve(offer: Offer, port: int | None, out: Any) -> None:
    """Serve until the client leaves, or Ctrl-C."""
    import asyncio

    from tenlines.cli.offering import server_of
    from tenlines.cli.protocol_streams import over_http, over_stdio

    server = server_of(offer)
    try:
        asyncio.run(over_stdio(server, out) if port is None else over_http(server, HOST, port, _tell))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
