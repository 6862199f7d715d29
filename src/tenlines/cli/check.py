"""`tenlines check`: would a provider take this transcript?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tenlines.cli import inputs
    from tenlines.wire.documents import Notice
    from tenlines.wire.rules import Diagnostic
    from tenlines.wire.targets import Goal

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
    Exit codes: 0 nothing found, 1 something found, 2 a file or an option was not right.
    """
    if json and sarif:
        raise ConfigError("--json and --sarif are two forms of the same thing; give one of them")
    goal = _goal(target)
    rows = (row for file in files for row in _rows(file, goal, source, max_document))
    if sarif:
        counts = _write_sarif(rows)
    elif json:
        counts = _write_json(rows)
    else:
        counts = _write_lines(rows, quiet=quiet)
    if counts["error"] or (strict and counts["warning"]):
        raise typer.Exit(1)


def _goal(target: str | None) -> Goal | None:
    from tenlines.wire.targets import goal

    return None if target is None else goal(target)


# --- what is found --------------------------------------------------------------------------------------


def _rows(file: str, goal: Goal | None, source: str | None, largest_mb: int) -> Iterator[dict[str, Any]]:
    """Findings as `--json` writes them, with a row for each transcript that was looked at."""
    from tenlines.cli import inputs

    with inputs.opened(file) as handle:
        for item in inputs.items(handle, file, source, largest_mb):
            if isinstance(item, inputs.Lines):
                yield {"file": file, "looked_at": item.name, "reason": item.reason}
                yield from _lines(file, item, goal)
            elif isinstance(item, inputs.Whole):
                yield {"file": file, "looked_at": item.name, "reason": item.reason}
                yield from _whole(file, item, goal)
            else:
                yield _damage(file, item)


def _damage(file: str, notice: Notice) -> dict[str, Any]:
    """Something that could not be read, as a finding."""
    return {
        "file": file,
        "line": notice.line,
        "path": f"column {notice.column}" if notice.column else "",
        "rule": "FILE",
        "kind": "DAMAGE",
        "severity": "error",
        "message": f"{notice.text}.",
        "fix": "",
    }


def _whole(file: str, item: inputs.Whole, goal: Goal | None) -> Iterator[dict[str, Any]]:
    from tenlines.wire import checking
    from tenlines.wire.converting import as_body
    from tenlines.wire.dumps.checking import check_dump
    from tenlines.wire.dumps.sources import SOURCES
    from tenlines.wire.formats import FORMATS

    if item.name in SOURCES:
        found = check_dump(SOURCES[item.name](item.value))
    else:
        format = goal.format if goal else FORMATS[item.name]
        profile = goal.profile if goal else format.profile(_model_in(item.value))
        found = checking.check(as_body(item.value, format), format, profile)
    bare = isinstance(item.value, list)
    for one in found:
        yield _finding(file, one, item.line, _joined(item.path, one.path, bare=bare))


def _model_in(value: Any) -> dict[str, str | bool]:
    """The model that a request names."""
    model = value.get("model", value.get("modelId")) if isinstance(value, dict) else None
    return {"model": model} if isinstance(model, str) else {}


def _joined(outer: str, inner: str, *, bare: bool) -> str:
    if bare:
        inner = inner.removeprefix(inner.split("[", 1)[0]) if "[" in inner else inner
    return f"{outer}{'.' if outer and inner and not inner.startswith('[') else ''}{inner}"


def _lines(file: str, item: inputs.Lines, goal: Goal | None) -> Iterator[dict[str, Any]]:
    """One message a line, never more of them in memory than are needed."""
    from tenlines.wire.checking import Checker
    from tenlines.wire.documents import Record
    from tenlines.wire.formats import FORMATS

    format = goal.format if goal else FORMATS[item.name]
    checker = Checker(format, goal.profile if goal else format.profile())
    line = 1
    for record in item.records:
        if not isinstance(record, Record):
            yield _damage(file, record)
            continue
        line = record.line
        for one in checker.take(format.unfold(record.value, f"line {line}")):
            yield _finding(file, one, _line_of(one.path, line), one.path)
    for one in checker.close():
        yield _finding(file, one, _line_of(one.path, line), one.path)


def _line_of(path: str, otherwise: int) -> int:
    words = path.removeprefix("line ").split(".")[0].split("[")[0]
    return int(words) if words.isdecimal() else otherwise


def _finding(file: str, found: Diagnostic, line: int, path: str) -> dict[str, Any]:
    return {
        "file": file,
        "line": line,
        "path": path,
        "rule": found.rule,
        "kind": found.kind,
        "severity": found.severity,
        "message": found.message,
        "evidence": found.evidence,
        "fix": found.fix,
    }


# --- how it is written ----------------------------------------------------------------------------------


def _counted(counts: dict[str, int], row: dict[str, Any]) -> bool:
    """Count a row; whether it is a finding."""
    if "looked_at" in row:
        counts["transcripts"] += 1
        return False
    counts[row["severity"]] = counts.get(row["severity"], 0) + 1
    return True


def _none() -> dict[str, int]:
    return {"transcripts": 0, "error": 0, "warning": 0}


def _write_json(rows: Iterator[dict[str, Any]]) -> dict[str, int]:
    import msgspec

    counts = _none()
    for row in rows:
        if _counted(counts, row):
            typer.echo(msgspec.json.encode(row).decode())
    return counts


def _write_sarif(rows: Iterator[dict[str, Any]]) -> dict[str, int]:
    import json

    import tenlines
    from tenlines.cli.sarif import report
    from tenlines.wire.formats import all_rules

    counts = _none()
    found = [row for row in rows if _counted(counts, row)]
    typer.echo(json.dumps(report(found, all_rules(), tenlines.__version__), indent=2))
    return counts


def _write_lines(rows: Iterator[dict[str, Any]], *, quiet: bool) -> dict[str, int]:
    from tenlines.cli.screen import console_for

    console, counts, seen = console_for(sys.stdout), _none(), dict[str, str]()
    for row in rows:
        if _counted(counts, row):
            _write_finding(console, row)
        else:
            seen[row["file"]] = row["reason"]
    if not quiet:
        _write_summary(console, counts, seen)
    return counts


def _write_finding(console: Console, row: dict[str, Any]) -> None:
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.cli.rules import STYLE
    from tenlines.cli.screen import clean

    place = f"{row['file']}:{row['line']}" + (f": {row['path']}" if row["path"] else "")
    line = Text().append(clean(place), "dim").append(f": {row['severity']}", STYLE[row["severity"]])
    line.append(f" {row['rule']} ", "bold").append(clean(row["message"]))
    put(console, line, 0, wrap=True)
    if row["fix"]:
        put(console, Text(clean(row["fix"]), "dim"), 4, wrap=True)


def _write_summary(console: Console, counts: dict[str, int], seen: dict[str, str]) -> None:
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.cli.screen import clean, signs
    from tenlines.cli.words import count

    for file, reason in list(seen.items())[:5]:
        put(console, Text(clean(f"{file}: {reason}"), "dim"), 0, wrap=True)
    sign, what = signs(console), count(counts["transcripts"], "transcript")
    if not counts["error"] and not counts["warning"]:
        put(console, Text(f"{sign.ok} {what}, nothing to complain of", "green"))
        return
    found = f"{count(counts['error'], 'error')}, {count(counts['warning'], 'warning')} in {what}"
    put(console, Text(f"{sign.bad} {found}", "red" if counts["error"] else "yellow"))
    put(console, Text("`tenlines rules ID` explains a rule; `tenlines repair FILE -o OUT` mends errors.", "dim"))
