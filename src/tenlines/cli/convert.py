"""`tenlines convert`: a transcript in another format."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

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
    from tenlines.cli import inputs
    from tenlines.cli.outputs import PRETTY, encoded, written
    from tenlines.wire.targets import goal

    target, said = goal(to), _Said(file, quiet=quiet)
    with inputs.opened(file) as handle, written(output, may_replace=False) as sink:
        bodies = _converted(inputs.items(handle, file, inputs.source_named(source), max_document), target, said)
        first, second = next(bodies, None), next(bodies, None)
        if first is None:
            raise ConfigError(f"{file}: nothing of it could be read as a transcript (see above)")
        sink.write(encoded(first, PRETTY, one_line=second is not None))
        for body in (second, *bodies) if second is not None else ():
            sink.write(encoded(body, PRETTY, one_line=True))


def _converted(found: Iterator[inputs.Item], goal: Goal, said: _Said) -> Iterator[JsonValue]:
    """The transcripts of a file as requests, one at a time."""
    from tenlines.cli import inputs
    from tenlines.wire.converting import converted

    for item in found:
        if not isinstance(item, inputs.Whole | inputs.Lines):
            said.of_damage(str(item))
            continue
        value = _gathered(item, said) if isinstance(item, inputs.Lines) else item.value
        done = converted(value, item.known.name, goal)
        said.of_transcript(item, done.remarks)
        yield done.body


def _gathered(item: inputs.Lines, said: _Said) -> JsonValue:
    """All messages of a file that has one a line; a request holds them all."""
    from tenlines.wire.documents import Record

    values: list[JsonValue] = []
    for one in item.records:
        if isinstance(one, Record):
            values.append(one.value)
        else:
            said.of_damage(str(one))
    return values


class _Said:
    """What goes to standard error. Damage is said always: something of the file is not in what is written."""

    def __init__(self, file: str, *, quiet: bool) -> None:
        self._file, self._quiet, self._reason = file, quiet, ""

    def of_damage(self, text: str) -> None:
        """What could not be read."""
        self._write(self._file, text)

    def of_transcript(self, item: inputs.Whole | inputs.Lines, remarks: tuple[str, ...]) -> None:
        """What a transcript was taken for, and what became of it on its way."""
        from tenlines.wire.converting import gathered

        if self._quiet:
            return
        if item.known.reason != self._reason:
            self._reason = item.known.reason
            self._write(self._file, self._reason)
        where = f"{self._file}:{item.line}" if item.line > 1 else self._file
        for text in gathered(remarks):
            self._write(where, text)

    def _write(self, where: str, text: str) -> None:
        from tenlines.trace.text import clean

        sys.stderr.write(clean(f"{where}: {text}") + "\n")
