"""What a run cost, as a page of text: what `tenlines cost` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tenlines.cli.lines import put
from tenlines.cli.plot import lines
from tenlines.cli.screen import signs
from tenlines.cli.tables import columns
from tenlines.core.context import Arithmetic
from tenlines.core.costs import Ledger, StepLine, SummaryLine
from tenlines.core.economics import total_input
from tenlines.core.limits import Spent
from tenlines.trace import words
from tenlines.trace.text import clean, one_line

if TYPE_CHECKING:
    from tenlines.cli.cost import Bill

FOLDED = 30
"""Steps, calls or tools that a table shows; of more the first and the last, unless everything is wanted."""
DRAWN = 3
"""Steps from which on there is a line to draw."""
WIDTH, HEIGHT = 78, 13
"""Of the drawing: it fits a terminal of 80 columns."""
UNKNOWN = "?"


class BillPage:
    """Prints the ledger of one run.

    Args:
        full: Fold nothing.
    """

    def __init__(self, console: Console, bill: Bill, *, full: bool) -> None:
        self.console, self.bill, self.ledger, self.full = console, bill, bill.ledger, full
        self.dot = signs(console).dot

    def whole(self) -> None:
        """The price, each step, each tool, the cache, the cuts, the runs under it, the sums, the drawing."""
        self._head()
        self._table(_step_cells(self.ledger), 1)
        self._table(_tool_cells(self.ledger), 1)
        if self.full:
            self._table(_call_cells(self.ledger), 3)
        self._section("the cache", _about_cache(self.ledger))
        self._table(_cut_cells(self.ledger), 2)
        self._section("summaries", [_about_summary(one) for one in self.ledger.summaries])
        self._section("runs under its calls", self._children())
        self._section("together", self._sums())
        self._drawing()

    # --- parts of the page ---

    def _head(self) -> None:
        ledger = self.ledger
        facts = (ledger.status or "open", words.count(len(ledger.steps), "step"), one_line(ledger.model))
        line = Text().append(f"run {ledger.run_id}", "bold")
        self._put(line.append("".join(f" {self.dot} {fact}" for fact in facts)))
        if ledger.parent:
            self._put(Text(f"it served the call {clean(ledger.parent)}", "dim"))
        for sentence in price_words(self.bill):
            self._put(Text(clean(sentence), "yellow" if ledger.price is None else "dim"), wrap=True)

    def _table(self, rows: Sequence[Sequence[str]], texts: int) -> None:
        if len(rows) < 2:
            return
        heading, *shown = columns(rows, texts)
        self.console.print()
        self._put(Text(heading, "dim"))
        folded = 0 if self.full else max(0, len(shown) - FOLDED)
        top = FOLDED // 2 if folded else len(shown)
        for line in shown[:top]:
            self._put(Text(clean(line)))
        if folded:
            self._put(Text(f"… {folded:,} more (--full)", "dim italic"))
        for line in shown[top + folded :]:
            self._put(Text(clean(line)))

    def _section(self, name: str, sentences: Sequence[str]) -> None:
        if sentences:
            self.console.print()
            self._put(Text(name, "dim"))
        for sentence in sentences:
            self._put(Text(clean(sentence)), 2, wrap=True)

    def _children(self) -> list[str]:
        rows = [("run", "call", "status", "in", "out", "dollars", "")]
        for one, is_charged in self.bill.children:
            own, place = one.own, _place(one.parent)
            numbers = (f"{own.input_tokens:,}", f"{own.output_tokens:,}", _money(own))
            rows.append((one.run_id, place, one.status or "open", *numbers, "" if is_charged else "not charged"))
        rows += [(one, "", "not in this journal", "", "", "", "") for one in self.bill.missing]
        return columns(rows, 3) if len(rows) > 1 else []

    def _sums(self) -> list[str]:
        ledger, whole = self.ledger, self.ledger.all
        rows = [("", "in", "cached", "out", "dollars"), _sum_cells("its own", ledger.own)]
        if ledger.children.steps or ledger.children.runs:
            rows += [_sum_cells("under its calls", ledger.children), _sum_cells("all", whole)]
        return [*columns(rows), *_left_open(ledger), *_compared(ledger)]

    def _drawing(self) -> None:
        form = self.ledger.closed_form
        if form is None or form.steps < DRAWN:
            return
        series: dict[str, Sequence[float]] = {
            "this run": running_total(self.ledger),
            "nothing cut: the square": [total_input(form.prompt, form.per_step, n + 1) for n in range(form.steps)],
            "the prompt alone: a straight line": [form.prompt * (n + 1) for n in range(form.steps)],
        }
        self.console.print(
            Text(f"\ninput tokens, all requests together\n{lines(series, WIDTH, HEIGHT)}"), soft_wrap=True
        )

    def _put(self, text: Text, indent: int = 0, *, wrap: bool = False) -> None:
        put(self.console, text, indent, wrap=wrap)


# --- the price ------------------------------------------------------------------------------------------


def price_words(bill: Bill) -> list[str]:
    """What tokens cost, where that comes from, and how a price is stated that is not known."""
    ledger = bill.ledger
    if ledger.price is not None:
        source = "recorded with the run" if ledger.priced == "recorded" else f"{bill.source}; the run recorded none"
        return [f"{words.rates(ledger.price)} ({source})", *_said(ledger)]
    if ledger.steps and ledger.said == len(ledger.steps) and not ledger.own.unpriced:
        return _said(ledger)
    reason = f": {bill.source}" if bill.source else ""
    how = f"state it: tenlines cost {ledger.run_id} --price IN/OUT, or in your file of prices (--prices FILE.toml)"
    return [f"the price is not known{reason}", how, *_said(ledger)]


def _said(ledger: Ledger) -> list[str]:
    if not ledger.said:
        return []
    return [f"of {words.count(ledger.said, 'request')} the provider said what it cost, and that is taken"]


# --- tables ---------------------------------------------------------------------------------------------


def _step_cells(ledger: Ledger) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("step", "in", "new", "cached", "out", "reserved", "dollars", "time", "")]
    for line in ledger.requests:
        if isinstance(line, SummaryLine):
            rows.append(_request_cells("summary", line, "", ""))
        else:
            new = "" if line.new is None else f"{line.new:,}"
            rows.append(_request_cells(str(line.step), line, new, _remarks(line)))
    return rows


def _request_cells(name: str, line: StepLine | SummaryLine, new: str, remark: str) -> Sequence[str]:
    usage, time = line.usage, "" if line.latency_s is None else words.duration(line.latency_s)
    taken, cached, written = (
        (UNKNOWN, "", UNKNOWN)
        if usage is None
        else (
            _number(usage.input),
            _share(usage.cache_read, usage.input),
            _number(usage.output),
        )
    )
    reserved = f"~{line.reserved.input_tokens:,}"
    money = UNKNOWN if line.dollars is None else words.money(line.dollars)
    return (name, taken, new, cached, written, reserved, money, time, remark)


def _remarks(line: StepLine) -> str:
    """What made a step dearer."""
    told = ["cache broken"] if line.changed else []
    if line.attempts > 1:
        lost = f", {line.failed.tokens:,} tokens" if line.failed.tokens else ""
        told.append(f"{words.count(line.attempts, 'attempt')}{lost}")
    return "; ".join(told)


def _tool_cells(ledger: Ledger) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("tool", "calls", "ok", "results", "carried", "of all in", "time", "spent")]
    for line in ledger.tools:
        share = _share(line.carried, ledger.own.input_tokens)
        numbers = (
            str(line.calls),
            str(line.ok),
            f"~{line.tokens:,}",
            f"~{line.carried:,}",
            f"~{share}" if share else "",
        )
        rows.append((one_line(line.tool, 40), *numbers, words.duration(line.latency_s), _spent(line.spent)))
    return rows


def _call_cells(ledger: Ledger) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("call", "tool", "outcome", "result", "requests", "carried", "time", "spent")]
    for line in ledger.calls:
        time = "" if line.latency_s is None else words.duration(line.latency_s)
        numbers = (f"~{line.tokens:,}", str(line.sent), f"~{line.carried:,}", time)
        spent = "" if line.spent is None else _spent(line.spent)
        rows.append((line.place, one_line(line.tool, 40), line.outcome or "open", *numbers, spent))
    return rows


def _cut_cells(ledger: Ledger) -> list[Sequence[str]]:
    """Cuts, with both sides of their arithmetic."""
    rows: list[Sequence[str]] = [("cut", "before", "held", "left", "then in", "saves", "costs", "steps", "why")]
    for cut in ledger.cuts:
        how = cut.arithmetic
        tokens = (f"~{how.tokens_before:,}", f"~{how.tokens_after:,}", _number(cut.input_after))
        sums = (f"~{_worth(how, how.saves)}", f"~{_worth(how, how.costs)}", f"~{how.steps:,.0f}")
        rows.append((cut.strategy, f"step {cut.step}", *tokens, *sums, _WHY[how.why]))
    return rows


def _worth(arithmetic: Arithmetic, amount: float) -> str:
    """One side of the arithmetic. Without a price it is told in new input tokens."""
    return words.money(amount) if arithmetic.unit == "dollars" else f"{amount:,.0f} new"


_WHY = {"pays": "it pays", "window": "the window is full", "asked": "it was asked for"}


def _number(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count:,}"


def _share(part: int | None, whole: int | None) -> str:
    return "" if part is None or not whole else f"{100 * part / whole:.0f}%"


def _money(spent: Spent) -> str:
    return UNKNOWN if spent.unpriced else words.money(spent.dollars)


def _spent(spent: Spent) -> str:
    return f"{spent.tokens:,} tokens, {_money(spent)}" if spent.steps or spent.tokens else ""


def _place(parent: str) -> str:
    """`2.1` for the key of a call: its step and its number, from 1."""
    _, step, position = parent.rsplit(":", 2) if parent.count(":") >= 2 else ("", "", "")
    return f"{step}.{int(position) + 1}" if position.isdecimal() else ""


# --- sentences ------------------------------------------------------------------------------------------


def _about_cache(ledger: Ledger) -> list[str]:
    """How much came from it, how much could have, and what broke it."""
    if not ledger.own.input_tokens:
        return []
    could = _share(ledger.repeated, ledger.own.input_tokens)
    is_said = any(line.usage is not None and line.usage.cache_read is not None for line in ledger.steps)
    share = _share(ledger.own.cache_read, ledger.own.input_tokens) if is_said else "nobody said how much"
    broken: dict[str, list[int]] = {}
    for line in ledger.steps:
        if line.changed:
            broken.setdefault(line.changed, []).append(line.step)
    told = [f"{share} of the input came from it; it can have had {could}: what the request before held too"]
    return told + [f"broken at {_steps(steps)}: {one_line(why, 300)}" for why, steps in broken.items()]


def _steps(numbers: Sequence[int]) -> str:
    """`step 3`, `steps 3, 4, 9`; of many the first, and how many more."""
    shown, more = numbers[:8], len(numbers) - 8
    listed = ", ".join(map(str, shown))
    return f"step{'' if len(numbers) == 1 else 's'} {listed}{f' and {more:,} more' if more > 0 else ''}"


def _about_summary(line: SummaryLine) -> str:
    return f"before step {line.step}, of messages {line.start} to {line.end}: {one_line(line.fault, 300) or 'taken'}"


def _sum_cells(name: str, spent: Spent) -> Sequence[str]:
    numbers = (f"{spent.input_tokens:,}", _share(spent.cache_read or None, spent.input_tokens))
    return (name, *numbers, f"{spent.output_tokens:,}", _money(spent))


def _left_open(ledger: Ledger) -> list[str]:
    """What is not in the sums."""
    told = []
    if lost := ledger.all.unmetered:
        told.append(
            f"{words.count(lost, 'request')} came without token counts, or were never heard of: not in the sums"
        )
    if ledger.holders:
        what = words.left(ledger.held)
        told.append(f"{words.count(ledger.holders, 'call')} may still spend what is held{f': {what}' if what else ''}")
    return told


def _compared(ledger: Ledger) -> list[str]:
    """The truth beside the arithmetic, and beside what was expected."""
    form, told = ledger.closed_form, []
    if form is not None and form.steps > 1:
        shape = f"{words.count(form.steps, 'step')} from {form.prompt:,} tokens, {form.per_step:,} more each"
        steps = sum(line.usage.input or 0 for line in ledger.steps if line.usage is not None)
        told.append(f"{shape}, and nothing cut: {form.total:,} tokens in; it was {steps:,}")
    errors = [
        (abs(line.expected - line.usage.input) / line.usage.input, line.step)
        for line in ledger.steps
        if line.usage is not None and line.usage.input
    ]
    if len(errors) > 1:
        (worst, step), mean = max(errors), sum(error for error, _ in errors) / len(errors)
        off = f"{100 * mean:.0f}% on average, {100 * worst:.0f}% at worst (step {step})"
        told.append(f"the input of a request was expected to within {off}")
    return told


def running_total(ledger: Ledger) -> list[float]:
    """Input tokens of all requests up to each step: failed ones and summaries too."""
    total, totals = 0, list[float]()
    for line in ledger.requests:
        total += (line.usage.input or 0) if line.usage is not None else 0
        if isinstance(line, StepLine):
            total += line.failed.input_tokens
            totals.append(total)
    return totals


# --- several runs ---------------------------------------------------------------------------------------


def put_many(console: Console, bills: Sequence[Bill]) -> None:
    """A line for each run, and their sum, in which a run under a call of another one is counted once."""
    rows: list[Sequence[str]] = [("run", "status", "model", "steps", "in", "cached", "out", "dollars")]
    under = {run_id for bill in bills for run_id in bill.ledger.children.runs}
    total, parts = Spent(), 0
    for bill in bills:
        ledger, whole = bill.ledger, bill.ledger.all
        is_part = ledger.run_id in under
        total, parts = total if is_part else total.plus(whole), parts + is_part
        rows.append(_run_cells(ledger.run_id, ledger.status or "open", one_line(ledger.model, 40), whole))
    rows.append(_run_cells("all", "", "", total))
    heading, *shown = columns(rows, 3)
    put(console, Text(heading, "dim"))
    for number, line in enumerate(shown, 1):
        put(console, Text(clean(line), "bold" if number == len(shown) else ""))
    if parts:
        put(console, Text(f"{words.count(parts, 'run')} of these served calls of others, and count once", "dim"))
    for bill in bills:
        if bill.ledger.dollars is None:
            put(console, Text(clean(f"{bill.ledger.run_id}: {_why_unknown(bill)}"), "yellow"), wrap=True)


def _run_cells(run_id: str, status: str, model: str, spent: Spent) -> Sequence[str]:
    numbers = (str(spent.steps), f"{spent.input_tokens:,}", _share(spent.cache_read or None, spent.input_tokens))
    return (run_id, status, model, *numbers, f"{spent.output_tokens:,}", _money(spent))


def _why_unknown(bill: Bill) -> str:
    ledger = bill.ledger
    if ledger.price is None:
        return "; ".join(price_words(bill)[:2])
    if ledger.holders:
        return "; ".join(_left_open(ledger))
    return "of some requests the cost is not known: they came without token counts, or under calls without a price"
