"""`tenlines cost`: what runs cost, line by line, from the journal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError, InvalidEvent, JournalDamaged

if TYPE_CHECKING:
    from tenlines.core.costs import Ledger, StepLine, SummaryLine
    from tenlines.core.limits import Price, Spent
    from tenlines.ports import Journal
    from tenlines.prices import Priced

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
    known = _Known(stated, prices)
    run_ids = _found(store, runs)
    if what is not None:
        _write_csv([_ledger(store, run_id, known)[0] for run_id in run_ids], what)
        return
    bills = [_bill(store, run_id, known) for run_id in run_ids]
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


class _Known(NamedTuple):
    """Prices for runs that recorded none."""

    stated: Price | None
    file: str | None

    def of(self, model: str, at: float) -> Priced:
        """The price of a model at a time, and where it comes from."""
        from tenlines.prices import Priced, load

        if self.stated is not None:
            return Priced(self.stated, "as you said")
        if self.file is not None and not Path(self.file).is_file():
            raise ConfigError(f"--prices {self.file}: there is no such file")
        return load(None if self.file is None else Path(self.file)).of(model, at)


def _found(store: Journal, typed: Sequence[str]) -> list[str]:
    """The ids of the runs that a person means, each once."""
    there = {one.run_id for one in store.runs()}
    return list(dict.fromkeys(one if one in there else opt.find_run(store, one) for one in typed))


def _ledger(store: Journal, run_id: str, known: _Known) -> tuple[Ledger, str]:
    """The ledger of a run, and where a price comes from that it did not record."""
    from tenlines.core.events import RunStarted
    from tenlines.core.ledger import ledger_of

    start = next(store.read(run_id), None)
    price, source = None, ""
    if isinstance(start, RunStarted) and start.settings.price is None:
        price, source = known.of(start.model, start.at)
    try:
        return ledger_of(store.read(run_id), price), source
    except InvalidEvent as error:
        raise JournalDamaged(
            f"run {run_id} cannot be reckoned, its log is not that of a run: {error}; `tenlines doctor` looks closer"
        ) from error


def _bill(store: Journal, run_id: str, known: _Known) -> Bill:
    ledger, source = _ledger(store, run_id, known)
    charged = ledger.children.runs
    served = _served(store, run_id)
    there = {one.run_id for one in store.runs()} if charged else set()
    found = [one for one in dict.fromkeys((*charged, *served)) if one in there or one in served]
    children = tuple(Child(_ledger(store, one, known)[0], one in charged) for one in found)
    return Bill(ledger, source, children, tuple(one for one in charged if one not in found))


def _served(store: Journal, run_id: str) -> list[str]:
    """The runs that say that they served a call of this one, also those that nobody was charged for: of a call that was
    given up, or that a crash cut off. The heads of later runs are looked at, and only where a tool spends at all."""
    from tenlines.core.events import RunStarted

    start = next(store.read(run_id), None)
    if not isinstance(start, RunStarted) or not any(spec.spends for spec in start.tools):
        return []
    later = [one.run_id for one in store.runs() if one.started_at >= start.at]
    heads = [next(store.read(one), None) for one in reversed(later)]
    return [one.run_id for one in heads if isinstance(one, RunStarted) and one.parent.rsplit(":", 2)[0] == run_id]


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

    from tenlines.cli.screen import clean

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
    summaries = list(ledger.summaries)
    for line in ledger.steps:
        while summaries and summaries[0].step <= line.step:
            yield _request(summaries.pop(0), "summary")
        more = {name: getattr(line, name) for name in ("attempts", "new", "expected", "waited_s", "changed")}
        yield {**_request(line, "step"), **more, **_spending(line.failed, _FAILED)}
    for summary in summaries:
        yield _request(summary, "summary")


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
