"""The options that several commands share, how they are read, and how a run is found by what a person types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, TypeVar

import typer

from tenlines.core.limits import Limits, Price
from tenlines.errors import ConfigError, JournalError, RunNotFound
from tenlines.ports import Journal, RunSummary

if TYPE_CHECKING:
    from tenlines.core.context import Compaction, Strategy
    from tenlines.prices import Priced

# --- options ------------------------------------------------------------------------------------------

Run: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or `last`.", show_default=False)
]
ModelName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="openai:NAME, anthropic:NAME, google:NAME, local, http://host/v1#NAME, text+MODEL, ...",
    ),
]
ToolFiles: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tools", "-t", metavar="FILE.py", help="A Python file with tools. May be given several times."),
]
MaxSteps: TypeAlias = Annotated[
    str | None, typer.Option("--max-steps", metavar="N", help="Replies of the model, the answer included.")
]
MaxToolCalls: TypeAlias = Annotated[
    str | None, typer.Option("--max-tool-calls", metavar="N", help="Calls that really start a tool.")
]
MaxTokens: TypeAlias = Annotated[
    str | None, typer.Option("--max-tokens", metavar="N", help="Input and output tokens of all requests together.")
]
MaxDollars: TypeAlias = Annotated[
    str | None,
    typer.Option("--max-dollars", metavar="X", help="Money; without a known price (--price, --prices) nothing starts."),
]
PriceFile: TypeAlias = Annotated[
    str | None,
    typer.Option("--prices", metavar="FILE.toml", help="Prices of your own, by model. [$TENLINES_PRICES]"),
]
Compact: TypeAlias = Annotated[
    bool,
    typer.Option("--compact", help="Make the transcript smaller when that pays, or the model's window is nearly full."),
]
CompactAt: TypeAlias = Annotated[
    int | None,
    typer.Option("--compact-at", metavar="TOKENS", min=1, help="The same, and whenever a request would hold more."),
]
CompactBy: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--compact-by", metavar="HOW", help="elide, drop, summarise, the preferred one first. [elide,summarise]"
    ),
]
Window: TypeAlias = Annotated[
    int | None,
    typer.Option("--window", metavar="TOKENS", min=1, help="What the model takes in, where the list does not know it."),
]
Timeout: TypeAlias = Annotated[
    str | None, typer.Option("--timeout", metavar="SECONDS", help="Time that the run is worked on.")
]
LastWords: TypeAlias = Annotated[
    bool, typer.Option("--last-words", help="At the step limit, ask once more, without tools, for what is known.")
]
Say: TypeAlias = Annotated[
    str | None,
    typer.Option("--say", metavar="TEXT", help="Tell the model something before it goes on.", show_default=False),
]
TakeOver: TypeAlias = Annotated[
    bool, typer.Option("--take-over", help="Take the run away from a process that is, or may be, at work on it.")
]
AskFor: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--ask", metavar="TOOL", help="A person allows each call of these tools: pay, 'delete_*', '*'."),
]
DenyFor: TypeAlias = Annotated[
    list[str] | None, typer.Option("--deny", metavar="TOOL", help="No call of these tools runs; the model is told.")
]
By: TypeAlias = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who decides; recorded. [your login name]", show_default=False),
]
JournalName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="Where runs are recorded: a file, or postgresql://... [$TENLINES_JOURNAL, or your state folder]",
    ),
]
OneObject: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Write events to standard output, one JSON a line.")]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No live view: the answer, and errors.")]
Stream: TypeAlias = Annotated[
    bool, typer.Option("--stream/--no-stream", help="Show the reply while it is written (in the live view).")
]
TranscriptFiles: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="FILE", help="JSON or JSON Lines; - is standard input.", show_default=False)
]
TranscriptFile: TypeAlias = Annotated[
    str, typer.Argument(metavar="FILE", help="JSON or JSON Lines; - is standard input.", show_default=False)
]
Source: TypeAlias = Annotated[
    str | None,
    typer.Option("--from", "-f", metavar="FORMAT", help="What the file is, when it is not what it looks like."),
]
Largest: TypeAlias = Annotated[
    int,
    typer.Option("--max-document", metavar="MB", min=1, help="Largest JSON document that is read whole into memory."),
]
Target: TypeAlias = Annotated[
    str | None,
    typer.Option("--for", metavar="TARGET", help="Who shall take it: a format or a server, with a model if you like."),
]
LARGEST_MB = 64
"""Largest JSON document that is read whole, unless more is allowed."""


class Output(NamedTuple):
    """How a run is shown."""

    json: bool
    quiet: bool
    stream: bool


# --- numbers ------------------------------------------------------------------------------------------

NO_LIMIT = "none"


class GivenLimits(NamedTuple):
    """The limits as they were typed; None where an option was not given."""

    max_steps: str | None
    max_tool_calls: str | None
    max_tokens: str | None
    max_dollars: str | None
    timeout: str | None
    last_words: bool

    def over(self, base: Limits) -> Limits | None:
        """`base` with what was given; None when nothing was.

        Raises:
            ConfigError: A number is none, or out of range.
        """
        import msgspec

        given: dict[str, Any] = {
            name: _number(option, text, whole=whole, least=least)
            for name, option, text, whole, least in (
                ("steps", "--max-steps", self.max_steps, True, 0),
                ("tool_calls", "--max-tool-calls", self.max_tool_calls, True, 0),
                ("tokens", "--max-tokens", self.max_tokens, True, 1),
                ("dollars", "--max-dollars", self.max_dollars, False, 0),
                ("seconds", "--timeout", self.timeout, False, 0.001),
            )
            if text is not None
        }
        if self.last_words:
            given["last_words"] = True
        return msgspec.structs.replace(base, **given) if given else None


NONE_GIVEN = GivenLimits(None, None, None, None, None, False)


def _number(option: str, text: str, *, whole: bool, least: float) -> float | None:
    """A limit as a person writes it: a number, or `none` for no limit."""
    typed = text.strip().lower().replace("_", "")
    if typed == NO_LIMIT:
        return None
    kind = "a whole number" if whole else "a number"
    read: Callable[[str], float] = int if whole else float
    try:
        value = read(typed.removeprefix("$").removesuffix("s") if not whole else typed)
    except ValueError:
        raise ConfigError(f"{option} must be {kind}, or `none` for no limit; got {text!r}") from None
    if not math.isfinite(value) or value < least:
        bound = "0 or more" if least == 0 else "more than 0"
        raise ConfigError(f"{option} must be {bound}, or `none` for no limit; got {text!r}")
    return value


def read_seconds(option: str, text: str | None) -> float | None:
    """A length of time as a person writes it; None where none is given.

    Raises:
        ConfigError: It is no number, or not more than 0.
    """
    return None if text is None else _number(option, text, whole=False, least=0.001)


_AGE = re.compile(r"([0-9]{1,6})\s*([hdw])")
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


def read_age(option: str, text: str) -> float:
    """A length of time in hours, days or weeks, in seconds.

    Raises:
        ConfigError: It is written in another way.
    """
    found = _AGE.fullmatch(text.strip().lower())
    if found is None:
        raise ConfigError(f"{option} must be a number of hours, days or weeks, as in 12h, 30d or 2w; got {text!r}")
    return float(found[1]) * _SECONDS[found[2]]


Choice = TypeVar("Choice", bound=str)


def one_of(option: str, text: str, known: tuple[Choice, ...]) -> Choice:
    """A word out of a few.

    Raises:
        ConfigError: It is another one.
    """
    for one in known:
        if one == text:
            return one
    raise ConfigError(f"{option} must be {' or '.join(known)}; got {text!r}")


def read_price(text: str | None) -> Price | None:
    """A price as a person writes it: `3/15`, or `3/15/0.3/3.75` with what the cache costs to read and to write.

    Raises:
        ConfigError: It is written in another way.
    """
    if text is None:
        return None
    try:
        numbers = [float(piece) for piece in text.replace("$", "").split("/")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3, 4) or not all(0 <= number < math.inf for number in numbers):
        raise ConfigError(
            "--price must be IN/OUT, IN/OUT/CACHED or IN/OUT/CACHED/WRITTEN in dollars per million tokens, as in "
            f"0.25/2; got {text!r}"
        )
    cache = [*numbers[2:], None, None]
    return Price(input=numbers[0], output=numbers[1], cache_read=cache[0], cache_write=cache[1])


def price_file(name: str | None) -> Path | None:
    """The file of prices that a person named; None where none was.

    Raises:
        ConfigError: It is not there.
    """
    if name is not None and not Path(name).is_file():
        raise ConfigError(f"--prices {name}: there is no such file")
    return None if name is None else Path(name)


def price_at(stated: Price | None, file: str | None, model: str, at: float) -> Priced:
    """What a person stated, else what is known of the model at a time; with where it comes from.

    Raises:
        ConfigError: The file of prices is not there, or is not one.
    """
    from tenlines.prices import Priced, load

    return load(price_file(file)).of(model, at) if stated is None else Priced(stated, "as you said")


def read_compaction(compact: bool, at: int | None, by: str | None, window: int | None) -> Compaction | None:
    """When and how the transcript is made smaller; None where nothing was said of it.

    Raises:
        ConfigError: A way of doing it is unknown.
    """
    if not (compact or at or by or window):
        return None
    import msgspec

    from tenlines.core.context import Compaction

    known: tuple[Strategy, ...] = ("elide", "drop", "summarise")
    given = None if by is None else [one_of("--compact-by", one.strip(), known) for one in by.split(",")]
    chosen = Compaction(at=at, window=window)
    return chosen if given is None else msgspec.structs.replace(chosen, strategies=tuple(given))


# --- journals and runs --------------------------------------------------------------------------------


def open_existing(name: str | None) -> Journal:
    """A journal to read. Looking never makes a file.

    Raises:
        JournalError: There is none.
    """
    from tenlines.journal import open_journal

    return open_journal(journal_file(name) or name)


def journal_file(name: str | None) -> Path | None:
    """The file of a journal that is there; None where it is no file but a database.

    Raises:
        JournalError: There is none.
    """
    from tenlines.journal import default_journal

    name = default_journal() if name is None else name
    if name == "memory":
        raise ConfigError(f"--journal {name}: name the file that the run was recorded in")
    if "://" in name:
        return None
    path = Path(name).expanduser()
    if not path.exists():
        raise NoJournal(f'there is no journal {path} yet; `tenlines run "..."` starts one')
    return path


class NoJournal(JournalError):
    """Nothing was recorded yet."""

    exit_code = 2


def find_run(journal: Journal, typed: str) -> str:
    """The id of the run that a person means.

    Args:
        journal: Where to look.
        typed: An id, the beginning of exactly one, or `last`: the newest, or the run that it is a call of.

    Raises:
        RunNotFound: There is none, or there are several; the message lists some.
    """
    from tenlines.drivers.callers import outermost

    typed = typed.strip()
    if typed == "last":
        newest = journal.runs(1)
        if not newest:
            raise RunNotFound('the journal is empty; `tenlines run "..."` makes the first run')
        return outermost(journal, newest[0].run_id)
    if _is_there(journal, typed):
        return typed
    runs = journal.runs()
    if any(one.run_id == typed for one in runs):
        return typed
    found = [one for one in runs if typed and one.run_id.startswith(typed.lower())]
    if len(found) == 1:
        return found[0].run_id
    if found:
        raise RunNotFound(f"{len(found)} runs begin with {typed!r}; write more of the id:\n{_listed(found[:5])}")
    if not runs:
        raise RunNotFound('the journal is empty; `tenlines run "..."` makes the first run')
    raise RunNotFound(f"no run begins with {typed!r}; the newest are:\n{_listed(runs[:3])}")


def _is_there(journal: Journal, run_id: str) -> bool:
    """Whether there is such a run that can be read: seen without a list of all."""
    try:
        return next(iter(journal.read(run_id)), None) is not None
    except JournalError:
        return False


def _listed(runs: list[RunSummary]) -> str:
    from tenlines.trace.text import one_line

    return "\n".join(f"  {one.run_id}  {one.status:<10}  {one_line(one.task, 60)}" for one in runs)
