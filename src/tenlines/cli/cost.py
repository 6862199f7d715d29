"""`tenlines cost`: what runs cost, line by line, from the journal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError, InvalidEvent, JournalDamaged

if TYPE_CHECKING:
    from tenlines.core.costs import Ledger, StepLine, SummaryLine
    from tenlines.core.limits import Price, Spent
    from tenlines.ports import Journal

Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN", help="Runs: ids, the beginnings of some, or `last`.", show_default=False),
]
PriceText = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN/OUT",
        help="Of runs that recorded none, in dollars per million tokens: 3/15, or 3/15/0.3/3.75 with the cache's.",
    ),
]
Full = Annotated[bool, typer.Option("--full", help="Unfold everything: every step, and every call.")]
Lines = Annotated[bool, typer.Option("--json", help="One JSON object a line, one for each run.")]
Csv = Annotated[
    str | None,
    typer.Option("--csv", metavar="WHAT", help="CSV with a line for each of the `steps`, `calls` or `tools`."),
]


class Child(NamedTuple):
    """A run that served a call of another."""

    ledger: Ledger
    is_charged: bool
    """The call said that it was used, so that it is part of what the other run cost."""


class Bill(NamedTuple):
    """A run's ledger, with what the journal knows beside it."""

    ledger: Ledger
    source: str
    """Where a price that the run did not record comes from; or why none is known."""
    children: tuple[Child, ...]
    """The runs under its calls, and those under theirs."""
    missing: tuple[str, ...]
    """Of these: the ids of those that are not in this journal."""


def cost(
    runs: Runs,
    price: PriceText = None,
    prices: opt.PriceFile = None,
    full: Full = False,
    csv: Csv = None,
    journal: opt.JournalName = None,
    json: Lines = False,
) -> None:
    """Say what a run cost: each step, each tool, each cut, the runs under its calls. With several runs: a line each.

    \b
    Of each step:
      in        tokens of the request, as the provider counted them
      new       of these: what the request before did not hold
      cached    of these: what was read from the provider's cache
      out       tokens of the reply
      reserved  what was set aside for the request before it was made
    Of each tool:
      results   tokens of what its calls returned
      carried   what these were in all requests that held them: each request holds all that came before it
      spent     what models used that it asked on its own

    What stands behind ~ is an estimate; everything else is what was reported, and what it costs.

    The price is the one that the run recorded when it started. A run that recorded none is priced by --price, or as of
    its start by what is known today: your file of prices, and the list that came with tenlines.

    \b
    Examples:
      tenlines cost last
      tenlines cost k2v9 --full
      tenlines cost k2v9 --price 3/15/0.3
      tenlines cost k2v9 x7qd
      tenlines cost $(tenlines runs --status answered --json | jq -r .run_id)
      tenlines cost k2v9 --json | jq '.tools[] | [.tool, .carried]'
      tenlines cost k2v9 --csv calls > calls.csv
    """
    what = None if csv is None else opt.one_of("--csv", csv, ("steps", "calls", "tools"))
    if what is not None and json:
        raise ConfigError("--csv and --json: take one of them")
    stated = opt.read_price(price)
    store = opt.open_existing(journal)
    books = _Books(store, runs, stated, prices)
    if what is not None:
        _write_csv([books.ledger(run_id)[0] for run_id in books.found], what)
        return
    bills = [books.bill(run_id) for run_id in books.found]
    if json:
        _write_json(bills)
        return
    from tenlines.cli.bill import BillPage, put_many
    from tenlines.cli.screen import console_for

    console = console_for(sys.stdout)
    if len(bills) == 1:
        BillPage(console, bills[0], full=full).whole()
    else:
        put_many(console, bills)


# --- reading --------------------------------------------------------------------------------------------


class _Books:
    """A journal, and the prices of runs that recorded none.

    Args:
        typed: The runs that a person means.
    """

    def __init__(self, store: Journal, typed: Sequence[str], stated: Price | None, file: str | None) -> None:
        self._store, self._stated, self._file = store, stated, file
        self._listed = store.runs()
        self._there = {one.run_id for one in self._listed}
        self.found = list(dict.fromkeys(one if one in self._there else opt.find_run(store, one) for one in typed))

    def ledger(self, run_id: str) -> tuple[Ledger, str]:
        """The ledger of a run, and where a price comes from that it did not record."""
        from tenlines.core.events import RunStarted
        from tenlines.core.ledger import ledger_of

        start = next(self._store.read(run_id), None)
        price, source = None, ""
        if isinstance(start, RunStarted) and start.settings.price is None:
            price, source = opt.price_at(self._stated, self._file, start.model, start.at)
        try:
            return ledger_of(self._store.read(run_id), price), source
        except InvalidEvent as error:
            raise JournalDamaged(
                f"run {run_id} cannot be reckoned, its log is not that of a run: {error}; `tenlines doctor` looks "
                "closer"
            ) from error

    def bill(self, run_id: str) -> Bill:
        """The ledger of a run, with those of the runs under its calls."""
        ledger, source = self.ledger(run_id)
        charged, served = ledger.children.runs, self._served(run_id)
        found = [one for one in dict.fromkeys((*charged, *served)) if one in self._there]
        children = tuple(Child(self.ledger(one)[0], one in charged) for one in found)
        return Bill(ledger, source, children, tuple(one for one in charged if one not in found))

    def _served(self, run_id: str) -> list[str]:
        """The runs that say that they served a call of this one, also those that nobody was charged for: of a call that
        was given up, or that a crash cut off."""
        from tenlines.core.events import RunStarted

        start = next(self._store.read(run_id), None)
        spends = isinstance(start, RunStarted) and any(spec.spends for spec in start.tools)
        return self._under.get(run_id, []) if spends else []

    @cached_property
    def _under(self) -> dict[str, list[str]]:
        """The runs that say that they served a call of another, by that one. The heads of all runs are read that are
        no older than the oldest one that is meant: once, and only where a tool spends at all."""
        from tenlines.core.events import RunStarted

        meant = set(self.found)
        since = min((one.started_at for one in self._listed if one.run_id in meant), default=0.0)
        under: dict[str, list[str]] = {}
        for one in reversed(self._listed):
            head = next(self._store.read(one.run_id), None) if one.started_at >= since else None
            if isinstance(head, RunStarted) and head.parent:
                under.setdefault(head.parent.rsplit(":", 2)[0], []).append(head.run_id)
        return under


# --- for programs ---------------------------------------------------------------------------------------

_READ = ("dollars", "cached_share", "repeated", "all", "closed_form", "tools")
"""What is read from a ledger, beside what it holds."""


def _write_json(bills: Sequence[Bill]) -> None:
    import msgspec

    from tenlines.cli.screen import json_line

    for bill in bills:
        whole: dict[str, Any] = msgspec.structs.asdict(bill.ledger)
        whole |= {name: getattr(bill.ledger, name) for name in _READ}
        whole |= {"price_source": bill.source, "runs": [_as_json(*one) for one in bill.children]}
        typer.echo(json_line({**whole, "missing": bill.missing}, sys.stdout))


def _as_json(ledger: Ledger, is_charged: bool) -> dict[str, Any]:
    names = ("run_id", "parent", "agent", "model", "status", "own", "dollars")
    return {name: getattr(ledger, name) for name in names} | {"is_charged": is_charged}


def _write_csv(ledgers: Sequence[Ledger], what: str) -> None:
    import csv
    import io

    from tenlines.trace.text import clean

    rows = {"steps": _step_rows, "calls": _call_rows, "tools": _tool_rows}[what]
    text = io.StringIO()
    writer: csv.DictWriter[str] = csv.DictWriter(text, _COLUMNS[what], lineterminator="\n")
    writer.writeheader()
    for ledger in ledgers:
        writer.writerows({"run_id": ledger.run_id, **row} for row in rows(ledger))
    written = text.getvalue()
    typer.echo(clean(written) if sys.stdout.isatty() else written, nl=False)


_TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning")
_RESERVED = ("reserved_input", "reserved_output", "reserved_dollars")
_TIMES = ("latency_s", "waited_s")
_FAILED = ("failed_input", "failed_output", "failed_dollars")
_SPENT = ("spent_input", "spent_output", "spent_dollars")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "steps": (
        *("run_id", "step", "kind", "attempts", *_TOKENS, "dollars", "new", "expected"),
        *(*_RESERVED, *_TIMES, *_FAILED, "changed"),
    ),
    "calls": (
        "run_id",
        "step",
        "position",
        "tool",
        "outcome",
        "latency_s",
        "tokens",
        "sent",
        "carried",
        *_SPENT,
        "runs",
    ),
    "tools": ("run_id", "tool", "calls", "ok", "latency_s", "tokens", "carried", *_SPENT),
}


def _step_rows(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """All requests: those of a step, and those for summaries before it."""
    from tenlines.core.costs import SummaryLine

    for line in ledger.requests:
        if isinstance(line, SummaryLine):
            yield _request(line, "summary")
        else:
            more = {name: getattr(line, name) for name in ("attempts", "new", "expected", "waited_s", "changed")}
            yield {**_request(line, "step"), **more, **_spending(line.failed, _FAILED)}


def _request(line: StepLine | SummaryLine, kind: str) -> dict[str, Any]:
    reserved = (line.reserved.input_tokens, line.reserved.output_tokens, line.reserved.dollars)
    return {
        **{"step": line.step, "kind": kind, "dollars": line.dollars, "latency_s": line.latency_s},
        **{name: None if line.usage is None else getattr(line.usage, name) for name in _TOKENS},
        **dict(zip(_RESERVED, reserved, strict=True)),
    }


def _call_rows(ledger: Ledger) -> Iterator[dict[str, Any]]:
    names = ("step", "position", "tool", "outcome", "latency_s", "tokens", "sent", "carried")
    for line in ledger.calls:
        runs = " ".join(line.spent.runs) if line.spent else ""
        yield {**{name: getattr(line, name) for name in names}, **_spending(line.spent, _SPENT), "runs": runs}


def _tool_rows(ledger: Ledger) -> Iterator[dict[str, Any]]:
    names = ("tool", "calls", "ok", "latency_s", "tokens", "carried")
    for line in ledger.tools:
        yield {**{name: getattr(line, name) for name in names}, **_spending(line.spent, _SPENT)}


def _spending(spent: Spent | None, names: Sequence[str]) -> dict[str, Any]:
    """What was used; no dollars where some are not known."""
    if spent is None:
        return {}
    dollars = None if spent.unpriced else spent.dollars
    return dict(zip(names, (spent.input_tokens, spent.output_tokens, dollars), strict=True))
