"""`tenlines forecast`: what a run will cost, before it is started."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenlines.cli import options as opt

if TYPE_CHECKING:
    from tenlines.core.forecasts import Forecast, OneCut, Row
    from tenlines.core.limits import Price
    from tenlines.prices import Priced

MOST_STEPS, MOST_TOKENS = 10_000, 1_000_000_000
"""A run that is longer is not told step by step; a request that is larger does not exist."""
WIDTH, HEIGHT = 78, 13
"""Of the drawing: it fits a terminal of 80 columns."""

Prompt = Annotated[
    int,
    typer.Option(
        "--prompt",
        metavar="N",
        min=0,
        max=MOST_TOKENS,
        help="Tokens of the first request: instructions, tools, the task.",
    ),
]
PerStep = Annotated[
    int,
    typer.Option(
        "--per-step",
        metavar="N",
        min=0,
        max=MOST_TOKENS,
        help="Tokens that each step adds: the reply, and its calls' results.",
    ),
]
Steps = Annotated[
    int, typer.Option("--steps", metavar="N", min=1, max=MOST_STEPS, help="Replies of the model, the answer included.")
]
OutputPerStep = Annotated[
    int, typer.Option("--output-per-step", metavar="N", min=0, max=MOST_TOKENS, help="Tokens of each reply.")
]
Keep = Annotated[int, typer.Option("--keep", metavar="N", min=0, help="Newest steps that a cut leaves as they are.")]
Summary = Annotated[
    int,
    typer.Option(
        "--summary",
        metavar="N",
        min=0,
        max=MOST_TOKENS,
        help="Tokens of the summary that a cut writes; 0: what is cut is dropped.",
    ),
]
PriceText = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN/OUT",
        help="In dollars per million tokens: 3/15, or 3/15/0.3/3.75 with those of the cache.",
    ),
]


def forecast(
    prompt: Prompt,
    per_step: PerStep,
    steps: Steps,
    model: opt.ModelName = None,
    price: PriceText = None,
    prices: opt.PriceFile = None,
    output_per_step: OutputPerStep = 0,
    keep: Keep = 2,
    summary: Summary = 0,
    json: opt.OneObject = False,
) -> None:
    """Say what a run will cost, before it is started.

    Each request holds all that came before it, so the input tokens of a run grow with the square of its steps:
    N steps cost N * prompt + per_step * N * (N - 1) / 2. A cache makes most of them cheap. A cut drops old exchanges,
    or puts a summary in their place; it pays once enough steps are still to come.

    The price is that of --model (or $TENLINES_MODEL), or --price. Without one, tokens are shown.

    \b
    Examples:
      tenlines forecast --prompt 2000 --per-step 1000 --steps 20 --model anthropic:claude-sonnet-4-5
      tenlines forecast --prompt 2000 --per-step 1000 --steps 10 --price 3/15/0.3/3.75
      tenlines forecast --prompt 8000 --per-step 2500 --steps 60 --output-per-step 300 --summary 800
      tenlines forecast --prompt 2000 --per-step 1000 --steps 20 --json | jq .break_even

    `tenlines show RUN` has the tokens of every step of a run that was made: what to put in here.
    """
    from tenlines.core import forecasts

    known = _price(model or os.environ.get("TENLINES_MODEL"), opt.read_price(price), prices)
    cut = forecasts.OneCut(keep, summary, _question(summary))
    told = forecasts.forecast(prompt, per_step, steps, known.price, output=output_per_step, cut=cut)
    if json:
        asked = {"prompt": prompt, "per_step": per_step, "steps": steps, "output_per_step": output_per_step}
        _write_json({**asked, **cut._asdict()}, known, told)
        return
    typer.echo(_heading(prompt, per_step, steps, known))
    typer.echo(f"\n{_table(told)}")
    typer.echo(f"\n{_about_cuts(told, cut, known.price)}")
    typer.echo(f"\nInput tokens, all requests together:\n{_drawing(told, prompt)}")


def _price(model: str | None, stated: Price | None, file: str | None) -> Priced:
    """What a person stated, else what is known of the model now."""
    from tenlines.ports import SystemClock
    from tenlines.prices import Priced

    if model is None and stated is None:
        return Priced(None, "name a --model, or state it with --price IN/OUT")
    return opt.price_at(stated, file, model or "", SystemClock().now())


def _question(summary: int) -> int:
    """Tokens of the question for a summary, as a run asks it."""
    from tenlines.core.context import question
    from tenlines.core.transcript import estimate_tokens

    return estimate_tokens(question(summary)) if summary else 0


# --- as JSON --------------------------------------------------------------------------------------------


def _write_json(asked: dict[str, int], known: Priced, told: Forecast) -> None:
    import msgspec

    from tenlines.cli.screen import json_line

    price: dict[str, Any] = {"price": known.price, "price_source": known.source}
    typer.echo(json_line({**asked, **price, **msgspec.structs.asdict(told)}, sys.stdout))


# --- in words -------------------------------------------------------------------------------------------


def _heading(prompt: int, per_step: int, steps: int, known: Priced) -> str:
    from tenlines.trace.text import one_line
    from tenlines.trace.words import count, rates

    first = f"{count(steps, 'step')}: the first request holds {prompt:,} tokens, each later one {per_step:,} more"
    if known.price is None:
        return f"{first}\nthe price is not known: {one_line(known.source)}"
    return f"{first}\n{rates(known.price)} ({one_line(known.source)})"


def _table(told: Forecast) -> str:
    """The totals of each way to go, in columns."""
    from tenlines.cli.tables import columns
    from tenlines.trace.words import dollars

    ways = [("without a cache", told.without_cache), ("with a cache", told.with_cache)]
    if told.best is not None:
        ways.append((f"with a cut after step {told.best}", told.with_cut))
    cells = [("", "tokens in", "of them cached", "out", "dollars")]
    for name, rows in ways:
        spent = rows[-1].total_dollars
        cached = sum(row.cached for row in rows)
        numbers = (f"{rows[-1].total_input:,}", f"{cached:,}", f"{rows[-1].total_output:,}")
        cells.append((name, *numbers, "" if spent is None else dollars(spent)))
    return "\n".join(columns(cells))


def _about_cuts(told: Forecast, cut: OneCut, price: Price | None) -> str:
    """Whether a cut pays, and from how many steps on."""
    from tenlines.core.forecasts import LOOKED_AT
    from tenlines.trace.words import count

    if price is not None and told.with_cache[-1].total_dollars == 0:
        return "It costs nothing, so a cut saves nothing."
    what = f"A cut that leaves the newest {count(cut.keep, 'step')}"
    what += f" and a summary of {count(cut.summary, 'token')}" if cut.summary else ""
    typical = "" if price is not None else ", by typical prices"
    if told.break_even is None:
        return f"{what} pays in no run of up to {max(LOOKED_AT, len(told.with_cache)):,} steps{typical}."
    pays = f"{what} pays in runs of {count(told.break_even, 'step')} or more{typical}"
    if told.best is None:
        return f"{pays}: not in this one."
    return f"{pays}: here best after step {told.best}{_saving(told.with_cache[-1], told.with_cut[-1])}."


def _saving(alone: Row, cut: Row) -> str:
    from tenlines.trace.words import dollars

    if alone.total_dollars is None or cut.total_dollars is None:
        return ""
    saved = alone.total_dollars - cut.total_dollars
    return f", where it saves {dollars(saved)} ({100 * saved / alone.total_dollars:.0f}%)"


def _drawing(told: Forecast, prompt: int) -> str:
    """Running totals of the input beside a straight line."""
    from tenlines.cli.plot import lines

    series: dict[str, list[float]] = {}
    if told.best is not None:
        series[f"with a cut after step {told.best}"] = [row.total_input for row in told.with_cut if not row.is_summary]
    series["nothing cut: the square"] = [row.total_input for row in told.with_cache]
    series["the prompt alone: a straight line"] = [prompt * row.step for row in told.with_cache]
    return lines(series, WIDTH, HEIGHT)
