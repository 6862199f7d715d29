"""`tenlines convert`: a transcript in another format."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import options as opt

if TYPE_CHECKING:
    from tenlines.cli import inputs
    from tenlines.core.transcript import JsonValue
    from tenlines.wire.targets import Goal

To = Annotated[
    str,
    typer.Option(
        "--to", "-t", metavar="TARGET", help="A format or a server, with a model if you like.", show_default=False
    ),
]
Out = Annotated[str | None, typer.Option("--output", "-o", metavar="OUT", help="A new file; else standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not say what was mended, and what cannot be carried.")]


def convert(
    file: opt.TranscriptFile,
    to: To,
    output: Out = None,
    source: opt.Source = None,
    quiet: Quiet = False,
    max_document: opt.Largest = opt.LARGEST_MB,
) -> None:
    """Write a transcript in another provider's format.

    Calls, arguments, results, their order and all texts are kept. What had to be mended, and what the other format has
    no place for, is said on standard error. Several transcripts in one file become one request a line.

    \b
    Examples:
      tenlines convert session.json --to anthropic:claude-opus-5 -o request.json
      tenlines convert langchain.json --to openai_chat | jq '.messages | length'
      tenlines convert runs.jsonl --to gemini > requests.jsonl

    \b
    Exit codes: 0 done, 2 a file or an option was not right.
    """
    import json

    from tenlines.cli import inputs
    from tenlines.cli.outputs import written
    from tenlines.wire.documents import Notice
    from tenlines.wire.targets import goal

    target = goal(to)
    with inputs.opened(file) as handle, written(output, may_replace=False) as stream:
        held: list[dict[str, object]] = []
        several = False
        for item in inputs.items(handle, file, source, max_document):
            if isinstance(item, Notice):
                _say(file, str(item), quiet=False)
                continue
            held.append(_converted(item, file, target, quiet=quiet))
            if len(held) > 1:
                several = True
                stream.write(json.dumps(held.pop(0), ensure_ascii=False) + "\n")
        for body in held:
            stream.write(json.dumps(body, ensure_ascii=False, indent=None if several else 2) + "\n")


def _converted(item: inputs.Whole | inputs.Lines, file: str, goal: Goal, *, quiet: bool) -> dict[str, object]:
    from tenlines.cli import inputs
    from tenlines.wire.converting import imported, written
    from tenlines.wire.profile import Target

    value, line = (_gathered(item, file), 1) if isinstance(item, inputs.Lines) else (item.value, item.line)
    _say(file, item.reason, quiet=quiet)
    found = imported(value, item.name)
    done = written(found.messages, found.tools, goal.format, Target(profile=goal.profile, model=goal.model))
    for text in (*found.remarks, *(f"not carried over: {loss}" for loss in done.losses)):
        _say(f"{file}:{line}" if line > 1 else file, text, quiet=quiet)
    return dict(done.body)


def _gathered(item: inputs.Lines, file: str) -> JsonValue:
    """All messages of a file that has one a line; a request holds them all."""
    from tenlines.wire.documents import Record

    values: list[JsonValue] = []
    for one in item.records:
        if isinstance(one, Record):
            values.append(one.value)
        else:
            _say(file, str(one), quiet=False)
    return values


def _say(where: str, text: str, *, quiet: bool) -> None:
    from tenlines.cli.screen import clean

    if not quiet:
        sys.stderr.write(clean(f"{where}: {text}") + "\n")
