"""`tenlines advise`: what past runs teach."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tenlines.cli import hiding
from tenlines.cli import options as opt
from tenlines.errors import ConfigError, InvalidEvent, JournalError

if TYPE_CHECKING:
    from tenlines.advise import Advice, By
    from tenlines.core.limits import Price
    from tenlines.ports import Journal, RunSummary

Runs = Annotated[
    list[str] | None,
    typer.Argument(metavar="RUN", help="Look at these runs alone; else at all.", show_default=False),
]
Last = Annotated[
    int | None, typer.Option("--last", "-n", metavar="N", min=1, help="Only the newest N runs.", show_default=False)
]
AgentName = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Only runs of this agent.")]
Since = Annotated[str | None, typer.Option("--since", metavar="AGE", help="Only runs that began since: 12h, 7d, 4w.")]
GroupedBy = Annotated[
    str,
    typer.Option("--by", metavar="WHAT", help="What belongs together: `agent`, `model`, or `tag` (#word in a task)."),
]
PriceText = Annotated[
    str | None,
    typer.Option(
        "--price", metavar="IN/OUT", help="Of runs that recorded none: 3/15, or 3/15/0.3/3.75 with the cache's."
    ),
]
Code = Annotated[bool, typer.Option("--code", help="Print the skeleton of each workflow too.")]
Folder = Annotated[
    str | None,
    typer.Option("--svg", metavar="FOLDER", help="Write each workflow's flowchart (.svg) and skeleton (.py) there."),
]


class Skipped(NamedTuple):
    """A run that could not be read."""

    run_id: str
    why: str


def advise(
    run: Runs = None,
    last: Last = None,
    agent: AgentName = None,
    since: Since = None,
    by: GroupedBy = "agent",
    price: PriceText = None,
    code: Code = False,
    svg: Folder = None,
    redact: hiding.Names = None,
    redact_with: hiding.With = None,
    no_redact: hiding.Off = False,
    journal: opt.JournalName = None,
    json: opt.OneObject = False,
) -> None:
    """Say what past runs teach, what is worth most first.

    \b
    It looks for:
      the step cap       the steps by which 95 of 100 runs that can be answered are; runs that were
                         stopped before count as stopped, not as short
      floods             tools whose results fill the window
      repeats            the same call with the same result, in one run
      cache breaks       a clock in the instructions, tools in another order, ...
      failures           endings and calls that fail often, and where
      workflows          runs that always take the same path: the flowchart, a skeleton of the
                         program that would replace the agent, and what it would cost

    Each piece of advice says what was seen, what to do, what that saves, and how sure it is. Where too few runs were
    made to say anything, it says how many are needed. Nothing is changed.

    \b
    Examples:
      tenlines advise
      tenlines advise --last 500 --agent support
      tenlines advise --since 7d --by tag
      tenlines advise --svg charts --code
      tenlines advise --json | jq '.findings[] | [.kind, .group, .do]'
    """
    from tenlines.advise import BY, Advisor

    grouped: By = opt.one_of("--by", by, BY)
    stated, began = opt.read_price(price), _began(since)
    redaction = hiding.usual(redact, redact_with, no_redact)
    store = opt.open_existing(journal)
    chosen = _chosen(store, run or (), agent, began, last)
    advisor = Advisor(grouped, redaction)
    skipped = _read_all(store, chosen, advisor, stated)
    advice = advisor.advice()
    files = [] if svg is None else _write_charts(Path(svg), advice)
    if json:
        _write_json(advice, skipped, files)
        return
    from tenlines.cli.advice_page import AdvicePage
    from tenlines.cli.screen import console_for

    AdvicePage(console_for(sys.stdout), advice, skipped, code=code).whole()
    for file in files:
        typer.echo(f"written: {file}", err=True)


# --- what is read ---------------------------------------------------------------------------------------


def _began(text: str | None) -> float:
    """Unix time from which on runs are meant.

    Raises:
        ConfigError: It is written in another way.
    """
    from tenlines.ports import SystemClock

    return 0.0 if text is None else SystemClock().now() - opt.read_age("--since", text)


def _chosen(
    store: Journal, typed: Sequence[str], agent: str | None, began: float, last: int | None
) -> list[RunSummary]:
    """The runs that are meant, the oldest first.

    Raises:
        ConfigError: None is.
        RunNotFound: One that was named is not there.
    """
    listed = store.runs()
    named = {opt.find_run(store, one) for one in typed}
    fitting = [
        one
        for one in listed
        if (not named or one.run_id in named) and agent in (None, one.agent) and one.started_at >= began
    ]
    if listed and not fitting:
        agents = ", ".join(sorted({one.agent for one in listed})[:8])
        raise ConfigError(f"none of the {len(listed):,} runs in the journal is meant; their agents are: {agents}")
    return sorted(fitting[:last], key=lambda one: (one.started_at, one.run_id))


def _read_all(store: Journal, chosen: Sequence[RunSummary], advisor: Any, stated: Price | None) -> list[Skipped]:
    """Read each run once. One that is damaged is left out, and said."""
    from tenlines.advise import read_run
    from tenlines.cli.keeping import watched

    skipped = []
    with watched("reading the journal") as watch:
        for done, one in enumerate(chosen):
            watch(done, len(chosen))
            try:
                advisor.take(read_run(store.read(one.run_id), stated))
            except (InvalidEvent, JournalError, ValueError) as error:
                skipped.append(Skipped(one.run_id, str(error)))
    return skipped


# --- what is written ------------------------------------------------------------------------------------


def _write_charts(folder: Path, advice: Advice) -> list[str]:
    """A picture and a skeleton for each workflow; the files.

    Raises:
        ConfigError: They cannot be written.
    """
    from tenlines.advise.chart import chart_of
    from tenlines.advise.skeleton import skeleton_of
    from tenlines.advise.svg import svg_of
    from tenlines.advise.workflow import description

    files, taken = [], set[str]()
    for group in advice.groups:
        if (flow := group.workflow) is None:
            continue
        name = _file_name(group.group, taken)
        drawing = svg_of(chart_of(flow), f"What {group.group} does, as a workflow", description(flow))
        files += [_write(folder / f"{name}.svg", drawing), _write(folder / f"{name}.py", skeleton_of(flow))]
    return files


def _write(file: Path, text: str) -> str:
    """Write a file, and say its name. A skeleton that is there already may have been completed: it stays, and the new
    one has a number."""
    number = 1
    while file.suffix == ".py" and file.is_file() and file.read_text(encoding="utf-8", errors="replace") != text:
        number += 1
        file = file.with_name(f"{file.stem.removesuffix(f'-v{number - 1}')}-v{number}.py")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--svg: {file} cannot be written: {error.strerror}") from error
    return str(file)


def _file_name(group: str, taken: set[str]) -> str:
    """A name that every file system takes, and no other group has."""
    plain = name = re.sub(r"[^A-Za-z0-9_-]+", "_", group).strip("_")[:60] or "runs"
    number = 1
    while name.lower() in taken:
        number += 1
        name = f"{plain}-{number}"
    taken.add(name.lower())
    return name


def _write_json(advice: Advice, skipped: Sequence[Skipped], files: Sequence[str]) -> None:
    import msgspec

    from tenlines.advise.chart import chart_of, text_of
    from tenlines.advise.skeleton import skeleton_of
    from tenlines.cli.screen import json_line

    whole: dict[str, Any] = msgspec.to_builtins(advice)
    for shown, group in zip(whole["groups"], advice.groups, strict=True):
        if group.workflow is not None:
            shown["workflow"]["flowchart"] = text_of(chart_of(group.workflow))
            shown["workflow"]["skeleton"] = skeleton_of(group.workflow)
    whole |= {"skipped": [one._asdict() for one in skipped], "files": list(files)}
    typer.echo(json_line(whole, sys.stdout))
