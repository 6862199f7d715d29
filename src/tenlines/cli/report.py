"""`tenlines report`: runs as one page that anybody can open."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from tenlines.cli import hiding
from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.ports import Journal
    from tenlines.report import RunView
    from tenlines.trace.redaction import Redaction

Runs = Annotated[
    list[str] | None,
    typer.Argument(metavar="[RUN]...", help="Runs: ids, the beginnings of some, or `last`.", show_default=False),
]
Out = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="The page; - is standard output. [RUN.html, or runs.html]"),
]
Last = Annotated[int | None, typer.Option("--last", "-n", metavar="N", min=1, help="The newest N runs instead.")]
StatusName = Annotated[
    str | None, typer.Option("--status", metavar="STATUS", help="With --last: only those that ended so.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in your browser.")]


def report(
    runs: Runs = None,
    output: Out = None,
    last: Last = None,
    status: StatusName = None,
    force: Force = False,
    open: Open = False,
    redact: hiding.Names = None,
    redact_with: hiding.With = None,
    no_redact: hiding.Off = False,
    prices: opt.PriceFile = None,
    journal: opt.JournalName = None,
) -> None:
    """Write runs as one page: the story of each step by step, when what was under way, what it cost, what to look at.

    The page is one file that works from disk and makes no request. It holds everything that the model and the tools
    said; what is called password, token, api_key and the like is taken out unless you say --no-redact.

    With several runs the page begins with a table of them, how they are distributed, and two of them side by side.

    \b
    Examples:
      tenlines report last --open
      tenlines report k2v9 -o order.html --redact email
      tenlines report k2v9 x7qd
      tenlines report --last 50 --status max_steps -o capped.html
      tenlines report last -o - | ssh web-2 'cat > run.html'
    """
    from tenlines.cli.keeping import opened
    from tenlines.report.rendering import environment

    _refuse_mixtures(runs, last, status, output, open=open)
    redaction = hiding.usual(redact, redact_with, no_redact)
    environment()  # said before anything is read
    with opened(journal) as store:
        found = _found(store, runs, last, status)
        out = output or _file_name(found)
        if out != "-" and not force and Path(out).expanduser().is_file():
            raise ConfigError(f"{out} is there already; --force overwrites it, -o names another file")
        views = _views(store, found, redaction, prices, journal)
    _write(views, out, force=force)
    if open:
        _show(Path(out).expanduser().resolve())


def _refuse_mixtures(
    runs: Sequence[str] | None, last: int | None, status: str | None, output: str | None, *, open: bool
) -> None:
    from tenlines.core.events import Status

    if runs and last is not None:
        raise ConfigError("--last takes the newest runs: leave it out, or the runs that you named")
    if not runs and last is None:
        raise ConfigError(
            "name a run (`last` is the newest, `tenlines runs` lists them), or take several with --last N"
        )
    if status is not None:
        if last is None:
            raise ConfigError("--status chooses among the newest runs: say how many with --last N")
        opt.one_of("--status", status, ("open", *get_args(Status)))
    if open and output == "-":
        raise ConfigError("--open needs a file: leave out -o -")


def _found(store: Journal, typed: Sequence[str] | None, last: int | None, status: str | None) -> list[str]:
    if typed:
        return list(dict.fromkeys(opt.find_run(store, one) for one in typed))
    found = [one.run_id for one in store.runs(last, status=status)]
    if not found:
        raise ConfigError(f"there is no run{f' with the status {status}' if status else ''} in the journal")
    return found


def _file_name(found: Sequence[str]) -> str:
    """Where the page goes when nobody says it: beside whoever asks."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', found[0]).strip('.-') or 'run'}.html" if len(found) == 1 else "runs.html"


def _views(
    store: Journal, found: Sequence[str], redaction: Redaction, prices: str | None, journal: str | None
) -> list[RunView]:
    from tenlines.cli.keeping import watched
    from tenlines.cli.served import Shelf

    shelf = Shelf(store, found, redaction, prices, journal)
    with watched("reading") as watch:
        return list(shelf.views(watch))


def _write(views: Sequence[RunView], out: str, *, force: bool) -> None:
    from tenlines.cli.keeping import size
    from tenlines.cli.outputs import written
    from tenlines.report import page
    from tenlines.trace.text import clean
    from tenlines.trace.words import count

    made = page(views).encode("utf-8", "backslashreplace")
    with written(out, may_replace=force and Path(out).expanduser().is_file()) as sink:
        sink.write(made)
    if out != "-":
        asked = sum(not view.parent for view in views)
        typer.echo(clean(f"{out}: {count(asked, 'run')}, {size(len(made))}"))


def _show(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.as_uri()):
        sys.stderr.write(f"tenlines: no browser was found; open {path.as_uri()}\n")
