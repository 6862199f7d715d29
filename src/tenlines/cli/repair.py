"""`tenlines repair`: a transcript that a provider takes, of one that it would refuse."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.cli import inputs
    from tenlines.cli.mending import Piece
    from tenlines.cli.outputs import Sink
    from tenlines.wire.documents import Notice
    from tenlines.wire.targets import Goal

    Unread: TypeAlias = Notice | inputs.Skipped

Out = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="OUT", help="A new file for the repaired transcript; - is standard output."),
]
InPlace = Annotated[bool, typer.Option("--in-place", help="Replace FILE by the repaired one.")]
Warnings = Annotated[bool, typer.Option("--warnings", help="Cure what does harm though it is accepted, too.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show the changes.")]
Json = Annotated[bool, typer.Option("--json", help="The changes as JSON, a line each, to standard error.")]


def repair(
    file: opt.TranscriptFile,
    output: Out = None,
    in_place: InPlace = False,
    target: opt.Target = None,
    source: opt.Source = None,
    warnings: Warnings = False,
    json: Json = False,
    quiet: Quiet = False,
    max_document: opt.Largest = opt.LARGEST_MB,
) -> None:
    """Mend what a provider would refuse in a transcript, and show every change.

    What is not at fault stays as it is. Nothing that anybody meant is made up: a call without a result gets one that
    says that none was recorded; arguments that are no JSON become {} and are shown in the change. The file itself is
    replaced only with --in-place. Without -o and --in-place the changes are shown and nothing is written.

    \b
    Examples:
      tenlines repair session.json                    what would be changed
      tenlines repair session.json -o mended.json
      tenlines repair session.jsonl --in-place --for mistral
      cat session.json | tenlines repair - -o - --quiet > mended.json

    \b
    Exit codes:
      0  done, also when nothing was at fault
      1  errors are left
      2  a file or an option was not right
    """
    if in_place and (output is not None or file == "-"):
        raise ConfigError("--in-place replaces FILE; it goes neither with -o nor with standard input")
    from tenlines.cli import inputs
    from tenlines.cli.mending import Piece
    from tenlines.wire.targets import goal

    forms = _Forms(file, goal(target) if target else None, target or "", inputs.source_named(source))
    told = _Told(file, "nothing" if quiet else "json" if json else "diff")
    with inputs.opened(file) as handle, _sink(file, output, in_place=in_place) as sink:
        for item in inputs.items(handle, file, forms.source, max_document):
            for piece in forms.pieces(item, warnings=warnings):
                told.tell(piece)
                if sink is not None and isinstance(piece, Piece):
                    sink.write(piece.out)
        if in_place:
            told.before_replacing()
    told.summary(file if in_place else output, warnings=warnings)
    if told.left:
        raise typer.Exit(1)


def _sink(file: str, output: str | None, *, in_place: bool) -> AbstractContextManager[Sink | None]:
    """Where it goes; None: nowhere."""
    from tenlines.cli.outputs import written

    if output is None and not in_place:
        return nullcontext()
    return written(file if in_place else output, may_replace=in_place)


class _Forms:
    """From what is read in a file to what is repaired of it."""

    def __init__(self, file: str, goal: Goal | None, typed: str, source: str | None) -> None:
        self.file, self.goal, self.typed, self.source = file, goal, typed, source

    def pieces(self, item: inputs.Item, *, warnings: bool) -> Iterator[Piece | Unread]:
        """Repaired pieces; and in words what cannot be in them.

        Raises:
            ConfigError: It is in a form that the target does not take.
        """
        from tenlines.cli import inputs
        from tenlines.cli.mending import mended
        from tenlines.wire.documents import Notice

        if not isinstance(item, inputs.Whole | inputs.Lines):
            yield item
            return
        goal = inputs.aimed(item, self.goal, self.source)
        if goal is None:
            raise ConfigError(self._refusal(item))
        if isinstance(item, inputs.Whole) and (item.path or item.lines):
            where = (
                f"the transcript stands in {item.path}" if item.path else "from here on there is a message in a line"
            )
            yield Notice(item.line, 0, f"{where}; it is written without what is around it")
        yield from mended(item, goal, warnings=warnings)

    def _refusal(self, item: inputs.Whole | inputs.Lines) -> str:
        from tenlines.cli import inputs

        what = f"it holds {inputs.title(item.known.name)}, a form that no provider takes"
        if self.goal is not None:
            what = inputs.another_form(item, self.goal)
        command = shlex.join(["tenlines", "convert", self.file, "--to", self.typed or "FORMAT"])
        return f"{self.file}: {what}; convert it instead: {command}"


# --- what is shown --------------------------------------------------------------------------------------

Way: TypeAlias = Literal["diff", "json", "nothing"]
_STYLES = {"-": "red", "+": "green"}


class _Told:
    """Says on standard error what is done, and counts it.

    Attributes:
        changes: How many there were.
        left: Errors that are still there.
        damaged: How many things of the file are not in what is written.
    """

    def __init__(self, file: str, way: Way) -> None:
        from tenlines.cli.screen import console_for

        self._file, self._way, self._console = file, way, console_for(sys.stderr)
        self._notices = 0
        self.changes = self.left = self.damaged = 0

    def tell(self, piece: Piece | Unread) -> None:
        """One more piece, or what could not be read."""
        from tenlines.cli.mending import Piece
        from tenlines.wire.documents import Notice

        if not isinstance(piece, Piece):
            self._notices += 1
            self.damaged += not (isinstance(piece, Notice) and piece.is_harmless)
            self._damage(str(piece))
            return
        self.changes += len(piece.changes)
        self.left += piece.left
        if self._way == "json":
            self._write_json(piece)
        elif self._way == "diff":
            self._write_diff(piece)

    def _damage(self, text: str) -> None:
        if self._way == "json":
            self._row({"file": self._file, "kind": "DAMAGE", "message": text})
        else:
            self._put((f"{self._file}: {text}", "yellow"), indent=0)

    def _write_json(self, piece: Piece) -> None:
        from tenlines.cli.inputs import placed

        for one in piece.changes:
            line, path = placed(one.path, piece.line)
            self._row({"file": self._file, "line": line, "kind": one.kind, "path": path, "message": one.message})

    def _row(self, row: dict[str, Any]) -> None:
        import msgspec

        from tenlines.trace.text import clean_json

        sys.stderr.write(clean_json(msgspec.json.encode(row).decode()) + "\n")

    def _write_diff(self, piece: Piece) -> None:
        for one in piece.changes:
            self._put(
                (f"{one.kind} ", "bold"), (f"{one.path}: " if one.path else "", "dim"), (one.message, ""), indent=0
            )
        for hunk in piece.hunks:
            self._put((f"@ {hunk.where}", "cyan"))
            for line in hunk.lines:
                self._put((line, _STYLES.get(line[:1], "dim")))

    def _put(self, *pieces: tuple[str, str], indent: int = 2) -> None:
        from rich.text import Text

        from tenlines.cli.lines import put
        from tenlines.trace.text import clean

        text = Text()
        for words, style in pieces:
            text.append(clean(words), style)
        put(self._console, text, indent, wrap=not indent)

    def before_replacing(self) -> None:
        """Keep a file that has nothing wrong, or of which something would be lost."""
        from tenlines.cli.outputs import Unchanged

        if self.damaged:
            raise ConfigError(f"{self._file} has damage (see above) that would be lost; use -o to write what is whole")
        if not self.changes and not self._notices:
            raise Unchanged

    def summary(self, written_to: str | None, *, warnings: bool) -> None:
        """The last lines."""
        from tenlines.cli.screen import signs
        from tenlines.trace.words import count

        if self._way != "diff":
            return
        sign = signs(self._console)
        where = "nothing was written (use -o OUT)" if written_to is None else f"written to {written_to}"
        if written_to == self._file and not self.changes and not self._notices:
            where = f"{self._file} stays as it was"
        what = count(self.changes, "change") if self.changes else "nothing to mend"
        self._put((f"{sign.ok} {what}; {where}", "green"), indent=0)
        if self.damaged:
            self._put((f"{sign.bad} not in it: what is named above and could not be read or kept", "yellow"), indent=0)
        if self.left:
            self._put((f"{sign.bad} {count(self.left, 'error')} left; `tenlines check` names them", "red"), indent=0)
            if not warnings:
                self._put(("Some errors come of what only does harm: --warnings cures that too.", "dim"), indent=0)
