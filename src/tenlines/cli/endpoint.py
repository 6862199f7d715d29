"""`tenlines serve --openai`: an agent that OpenAI's clients can ask."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple, TextIO

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.agent import Agent
    from tenlines.core.limits import Limits
    from tenlines.core.result import RunResult
    from tenlines.ports import Observer, ToolPort
    from tenlines.serve import Address
    from tenlines.serve.openai_runs import Offer
    from tenlines.trace.redaction import Redaction

OpenAI = Annotated[
    bool, typer.Option("--openai", help="Offer an agent to OpenAI's clients instead: the options below are for that.")
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="What clients call the agent: their model. [agent]")
]
Instructions = Annotated[str | None, typer.Option("--instructions", metavar="TEXT", help="Standing instructions.")]
ShowSteps = Annotated[
    bool, typer.Option("--show-steps", help="Tell clients of the calls, and send text as it is written.")
]
Origins = Annotated[
    list[str] | None,
    typer.Option("--allow-origin", metavar="URL", help="Let pages of this origin ask: http://localhost:3000"),
]
KEY_VARIABLE = "TENLINES_SERVE_KEY"


class Wanted(NamedTuple):
    """The options of the endpoint, as they were typed."""

    model: str | None
    mcp: list[str] | None
    mcp_trust: list[str] | None
    instructions: str | None
    name: str | None
    limits: opt.GivenLimits
    price: str | None
    prices: str | None
    ask: list[str] | None
    deny: list[str] | None
    show_steps: bool
    origins: list[str] | None

    def given(self) -> list[str]:
        """Which of them were given."""
        named = {**self._asdict(), "allow_origin": self.origins, **self.limits._asdict()}
        del named["limits"], named["origins"]
        return [f"--{name.replace('_', '-')}" for name, value in named.items() if value]


def serve_agent(
    wanted: Wanted, tools: Sequence[str], port: int, journal: str | None, redaction: Callable[[], Redaction]
) -> None:
    """Serve until Ctrl-C.

    Raises:
        ConfigError: An option does not fit.
    """
    from tenlines.cli.screen import own_stdout
    from tenlines.serve import keep, listen
    from tenlines.serve.openai_api import endpoint

    origins, key = [_origin(one) for one in wanted.origins or ()], _own_key()
    with own_stdout() as out:
        offer = _offer(wanted, tools, journal, redaction)
        address = listen(port)
        if key:
            address = address._replace(token=key)
        made = endpoint(offer, address.token, address.port, origins)
        keep(made.app, made.end, address, partial(_tell, out, address, offer.name, is_own=bool(key)))


def _offer(wanted: Wanted, tools: Sequence[str], journal: str | None, redaction: Callable[[], Redaction]) -> Offer:
    from tenlines.agent import Agent
    from tenlines.cli.guarding import guard
    from tenlines.cli.making import choose_model, load_files, make_model
    from tenlines.cli.mcp_tools import server_tools
    from tenlines.cli.run import priced
    from tenlines.cli.served import shareable
    from tenlines.core.events import Settings
    from tenlines.core.limits import Limits
    from tenlines.journal import open_journal
    from tenlines.ports import SystemClock
    from tenlines.serve.openai_runs import Offer

    if journal == "memory":
        raise ConfigError("--journal memory: nobody could look at the runs or decide about their calls; name a file")
    name = _name(wanted.name)
    limits = wanted.limits.over(Limits()) or Limits()
    settings = Settings(limits=limits, price=opt.read_price(wanted.price))
    model = make_model(choose_model(wanted.model, _say), None)
    brought: list[ToolPort] = [*load_files(tools)]
    brought += server_tools(wanted.mcp or (), wanted.mcp_trust or (), brought, _say)
    guarded, store = guard(brought, wanted.ask or (), wanted.deny or ()), open_journal(journal)
    settings = priced(settings, model.name, wanted.prices, SystemClock().now())

    def agent(observers: Sequence[Observer]) -> Agent:
        return Agent(
            model,
            guarded,
            instructions=wanted.instructions or "",
            settings=settings,
            name=name,
            journal=store,
            observers=observers,
        )

    agent(())  # what does not fit is said now, and not to the first client
    shown = shareable(journal)
    return Offer(name, agent, partial(_way_on, limits, shown), partial(_decide, shown), wanted.show_steps, redaction)


def _name(name: str | None) -> str:
    if name is not None and not re.fullmatch(r"[\w.:/@+-]{1,64}", name):
        raise ConfigError(f"--name {name}: a model is called by letters, digits and . _ - : / @ +, at most 64")
    return name or "agent"


def _origin(typed: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s?#@]+", typed):
        raise ConfigError(f"--allow-origin {typed}: an origin is a scheme, a host and a port: http://localhost:3000")
    return typed


def _own_key() -> str:
    """The key that the environment has; "" for one made anew.

    Raises:
        ConfigError: It can be guessed, or stands in no header.
    """
    key = os.environ.get(KEY_VARIABLE, "")
    if key and not re.fullmatch(r"[!-~]{16,}", key):
        raise ConfigError(f"${KEY_VARIABLE} has to have 16 characters or more, of those that stand in ASCII, no spaces")
    return key


def _way_on(limits: Limits, journal: str | None, result: RunResult) -> str:
    from tenlines.cli.moves import next_move

    advice, line = next_move(result, limits, journal)
    return f"{advice}: {line}" if line else advice


def _decide(journal: str | None, result: RunResult) -> list[str]:
    """The commands that decide. They do not go on with the run: the client does."""
    from tenlines.cli.moves import command

    run_id, pending = result.run_id, result.pending
    if not pending:
        return [command("pending", [], journal)]
    call = [pending[0].place] if len(pending) > 1 else []
    every = [command("approve", [run_id], journal, "--all")] if len(pending) > 1 else []
    return [
        *every,
        command("approve", [run_id, *call], journal),
        command("deny", [run_id, *call], journal, "--reason", "..."),
    ]


def _tell(out: TextIO, address: Address, name: str, *, is_own: bool) -> None:
    """Say where the agent is, in lines that a shell can read."""
    out.write(f"OPENAI_BASE_URL=http://127.0.0.1:{address.port}/v1\n")
    if not is_own:
        out.write(f"OPENAI_API_KEY={address.token}\n")
    out.write(f"OPENAI_MODEL={name}\n")
    out.flush()
    if out.isatty():
        _say("Ctrl-C ends the server, and stops the runs that clients wait for.")


def _say(text: str) -> None:
    from tenlines.trace.text import clean

    typer.echo(clean(text), err=True)
