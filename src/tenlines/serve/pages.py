"""Pieces and pages as HTML. Everything is escaped by Jinja; the pages of runs are those of the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from tenlines.report import RunView, css, live_page
from tenlines.report.rendering import templates
from tenlines.serve.boards import Mark
from tenlines.trace.text import clean

if TYPE_CHECKING:
    from jinja2 import Environment, Template


class Asked(NamedTuple):
    """What a page needs to know of the request for it."""

    nonce: str
    """Of its style sheets and scripts."""
    csrf: str
    """Proves to the server that a request comes from the page."""


class Row(NamedTuple):
    """A run in the list."""

    id: str
    """Of the element."""
    run_id: str
    when: str
    status: str
    tone: str
    steps: int
    session: str
    turn: int
    task: str


def policy(nonce: str) -> str:
    """What a page may do: run its own scripts, and ask this server."""
    own = f"'nonce-{nonce}'"
    return (
        f"default-src 'none'; script-src {own}; style-src {own}; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def runs_page(rows: Sequence[Row], mark: Mark, asked: Asked) -> str:
    """The list of runs."""
    return _template("runs.html").render(
        rows=rows, mark=mark, asked=asked, css=css() + _asset("serve.css"), script=_asset("serve.js")
    )


def row(one: Row) -> str:
    """One line of it."""
    return str(_macros().row(one))


def run_page(view: RunView, desk: Sequence[str], mark: Mark, asked: Asked) -> str:
    """A run: the page of the report, and at its end what makes it live."""
    page = live_page(view, csp_nonce=asked.nonce, back="/")
    address = run_address(view.head.run_id)
    live = _template("live.html").render(
        desk=desk, mark=mark, asked=asked, address=address, css=_asset("serve.css"), script=_asset("serve.js")
    )
    before, end, after = page.rpartition("</body>")
    return f"{before}{live}{end}{after}"


def run_address(run_id: str) -> str:
    """Where the page of a run is. Its id is quoted twice, so that a slash in it divides nothing."""
    return f"/runs/{quote(quote(run_id, safe=''), safe='')}"


def entrance() -> str:
    """What is shown for a moment to somebody who came with the token, so that it leaves the address."""
    return _template("entrance.html").render()


def desk_state(text: str, elsewhere: Sequence[tuple[str, str]], *, hears: bool, go_on: str) -> str:
    """How the run stands; pages of other runs on which it depends; the command that goes on, or "".

    Args:
        elsewhere: The address of each page, and what waits there.
        hears: Whether the run can be told something.
    """
    return str(_macros().state(text, elsewhere, hears, go_on))


def desk_question(one: Any) -> str:
    """A call that waits (`desk.Question`), with the forms that answer."""
    return str(_macros().question(one))


# --- templates ----------------------------------------------------------------------------------------------


def _macros() -> Any:
    return _template("pieces.html").module


@cache
def environment() -> Environment:
    """The templates of the live pages."""
    made = templates("tenlines.serve", "the live pages", "serve")
    made.filters |= {"address": run_address, "clean": clean}
    return made


def _template(name: str) -> Template:
    return environment().get_template(name)


@cache
def _asset(name: str) -> str:
    return (files("tenlines.serve") / "assets" / name).read_text("utf-8")
