"""`tenlines check`: would a provider take this transcript?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tenlines.cli.findings import Finding, Search, Seen

Json = Annotated[bool, typer.Option("--json", help="One JSON object a finding, a line each.")]
Sarif = Annotated[bool, typer.Option("--sarif", help="One SARIF document, for code review tools.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary, and nothing when all is well.")]


def check(
    files: opt.TranscriptFiles,
    target: opt.Target = None,
    source: opt.Source = None,
    json: Json = False,
    sarif: Sarif = False,
    strict: Strict = False,
    quiet: Quiet = False,
    max_document: opt.Largest = opt.LARGEST_MB,
) -> None:
    """Say what a provider would refuse in a transcript, and what to do about it.

    Reads requests, lists of messages and logs of OpenAI (Chat, Responses), Anthropic, Gemini, Bedrock, Mistral, Cohere
    and Ollama, and what LangChain, the Vercel AI SDK, Pydantic AI, OpenAI Agents and OpenTelemetry write to disk. What
    a file is, is seen from its content. A file with one message a line may have any length.

    \b
    Examples:
      tenlines check session.json
      tenlines check session.json --for anthropic:claude-opus-5
      tenlines check logs/*.jsonl --for vllm --json
      cat request.json | tenlines check -

    \b
    Exit codes:
      0  nothing found (warnings alone count with --strict only)
      1  something found
      2  a file could not be read or holds no transcript, or an option was not right
    """
    if json and sarif:
        raise ConfigError("--json and --sarif are two forms of the same thing; give one of them")
    from tenlines.cli.findings import Search
    from tenlines.cli.inputs import source_named
    from tenlines.wire.targets import goal

    search = Search(goal(target) if target else None, target or "", source_named(source), max_document)
    tally = _Tally()
    found = tally.through(files, search)
    if sarif:
        _write_sarif(found, tally)
    elif json:
        _write_json(found)
    else:
        _write_lines(found, tally, quiet=quiet)
    if tally.failed:
        raise typer.Exit(2)
    if tally.counts["error"] or (strict and tally.counts["warning"]):
        raise typer.Exit(1)


class _Tally:
    """Counts what is found while it goes by. A file that cannot be read does not keep the others from being checked.

    Attributes:
        counts: Findings by severity.
        seen: File -> what it was taken for.
        rules: Ids of those that were broken.
        transcripts: How many were looked at.
        dumps: How many of these are what a framework wrote.
        failed: Why files could not be checked.
    """

    def __init__(self) -> None:
        self.counts = {"error": 0, "warning": 0, "info": 0}
        self.rules: set[str] = set()
        self.seen: dict[str, str] = {}
        self.transcripts = self.dumps = 0
        self.failed: list[str] = []

    def through(self, files: list[str], search: Search) -> Iterator[Finding]:
        """The findings in all files."""
        from tenlines.trace.text import clean

        for file in files:
            try:
                yield from self._counted(file, search.through(file))
            except ConfigError as error:
                self.failed.append(str(error))
                sys.stderr.write(f"tenlines: {clean(str(error))}\n")

    def _counted(self, file: str, rows: Iterator[Finding | Seen]) -> Iterator[Finding]:
        from tenlines.cli.findings import Seen

        for row in rows:
            if isinstance(row, Seen):
                self.transcripts += 1
                self.dumps += row.is_dump
                self.seen[file] = row.reason
            else:
                self.counts[row.severity] += 1
                self.rules.add(row.rule)
                yield row


# --- how it is written ----------------------------------------------------------------------------------


def _write_json(found: Iterator[Finding]) -> None:
    import msgspec

    from tenlines.trace.text import clean_json

    is_terminal = sys.stdout.isatty()
    for row in found:
        line = msgspec.json.encode(row).decode()
        typer.echo(clean_json(line) if is_terminal else line)


def _write_sarif(found: Iterator[Finding], tally: _Tally) -> None:
    import json

    import tenlines
    from tenlines.cli.findings import FILE_RULE
    from tenlines.cli.sarif import report
    from tenlines.wire.formats import all_rules

    rows = list(found)
    typer.echo(json.dumps(report(rows, (FILE_RULE, *all_rules()), tenlines.__version__, tally.failed), indent=2))


def _write_lines(found: Iterator[Finding], tally: _Tally, *, quiet: bool) -> None:
    from tenlines.cli.screen import console_for

    console = console_for(sys.stdout)
    for row in found:
        _write_finding(console, row)
    if not quiet and tally.transcripts:
        _write_summary(console, tally)


def _write_finding(console: Console, row: Finding) -> None:
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.cli.rules import STYLE
    from tenlines.trace.text import clean

    place = f"{row.file}:{row.line}" + (f": {row.path}" if row.path else "")
    line = Text().append(clean(place), "dim").append(f": {row.severity}", STYLE[row.severity])
    line.append(f" {row.rule} ", "bold").append(clean(row.message))
    put(console, line, 0, wrap=True)
    if row.fix:
        put(console, Text(clean(row.fix), "dim"), 4, wrap=True)


SHOWN = 5
"""Files of which is said what they were taken for."""


def _write_summary(console: Console, tally: _Tally) -> None:
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.cli.screen import signs
    from tenlines.trace.text import clean
    from tenlines.trace.words import count

    for file, reason in list(tally.seen.items())[:SHOWN]:
        put(console, Text(clean(f"{file}: {reason}"), "dim"), 0, wrap=True)
    if len(tally.seen) > SHOWN:
        put(console, Text(f"and {count(len(tally.seen) - SHOWN, 'more file')}", "dim"))
    sign, what = signs(console), count(tally.transcripts, "transcript")
    errors, warnings = tally.counts["error"], tally.counts["warning"]
    if not errors and not warnings:
        put(console, Text(f"{sign.ok} {what}, nothing to complain of", "green"))
        return
    found = f"{count(errors, 'error')}, {count(warnings, 'warning')} in {what}"
    put(console, Text(f"{sign.bad} {found}", "red" if errors else "yellow"))
    if tally.rules - {"FILE"}:
        mends = "convert FILE --to FORMAT" if tally.dumps == tally.transcripts else "repair FILE -o OUT"
        put(console, Text(f"`tenlines rules ID` explains a rule; `tenlines {mends}` mends errors.", "dim"))
