"""`tenlines repair`: a transcript that a provider takes, of one that it would refuse."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from tenlines.cli import options as opt
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tenlines.cli import inputs
    from tenlines.wire.rules import Change
    from tenlines.wire.targets import Goal

Out = Annotated[
    str | None, typer.Option("--output", "-o", metavar="OUT", help="Where the repaired transcript goes; - for output.")
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

    What is not at fault stays as it is, to the byte. Nothing that anybody meant is made up: a call without a result
    gets one that says that none was recorded; arguments that are no JSON become {} and are shown in the change. The
    file itself is replaced only with --in-place. Without -o and --in-place the changes are shown and nothing is
    written.

    \b
    Examples:
      tenlines repair session.json                    what would be changed
      tenlines repair session.json -o mended.json
      tenlines repair session.jsonl --in-place --for mistral
      cat session.json | tenlines repair - -o - --quiet > mended.json

    \b
    Exit codes: 0 done (also when nothing was at fault), 1 some faults are left, 2 a file or an option was not right.
    """
    if in_place and (output is not None or file == "-"):
        raise ConfigError("--in-place replaces FILE; it goes neither with -o nor with standard input")
    work = _Work(file, _goal(target), warnings=warnings, shows="" if quiet else "json" if json else "diff")
    from tenlines.cli import inputs
    from tenlines.cli.outputs import written

    with inputs.opened(file) as handle:
        items = inputs.items(handle, file, source, max_document)
        if output is None and not in_place:
            work.run(items, None)
        else:
            with written(file if in_place else output, may_replace=in_place) as stream:
                work.run(items, stream)
                if work.damaged and in_place:
                    raise ConfigError(
                        f"{file} has damage (see above) that would be lost; use -o to write what is whole"
                    )
    work.summary(file if in_place else output)
    if work.left:
        raise typer.Exit(1)


def _goal(target: str | None) -> Goal | None:
    from tenlines.wire.targets import goal

    return None if target is None else goal(target)


class _Work:
    """One repair of one file: transcripts in, repaired transcripts and what was changed out."""

    def __init__(self, file: str, goal: Goal | None, *, warnings: bool, shows: str) -> None:
        from tenlines.cli.screen import console_for

        self.file, self.goal, self.warnings, self.shows = file, goal, warnings, shows
        self.console: Console = console_for(sys.stderr)
        self.changes = self.left = self.transcripts = self.damaged = 0

    def run(self, items: Iterator[inputs.Item], stream: TextIO | None) -> None:
        """Repair everything; without a stream nothing is written."""
        from tenlines.cli import inputs

        held: list[inputs.Whole] = []
        for item in items:
            if isinstance(item, inputs.Lines):
                self._lines(item, stream)
            elif isinstance(item, inputs.Whole):
                held.append(item)
                if len(held) > 1:
                    self._whole(held.pop(0), stream, is_only=False)
            else:
                self._damage(str(item))
        for item in held:
            self._whole(item, stream, is_only=not self.transcripts)

    # --- one transcript ---------------------------------------------------------------------------------

    def _whole(self, item: inputs.Whole, stream: TextIO | None, *, is_only: bool) -> None:
        import json

        from tenlines.cli.diffs import hunks
        from tenlines.wire import checking
        from tenlines.wire.converting import as_body
        from tenlines.wire.repairing import repair

        self.transcripts += 1
        if item.path:
            self._damage(
                f"line {item.line}: the transcript stands in {item.path}; it is written without what is around"
            )
        format, profile = self._target(item)
        body = as_body(item.value, format)
        done = repair(body, format, profile, warnings=self.warnings)
        field = format.list_field
        self._show(done.changes, item.line)
        for hunk in hunks(_list(body, field), _list(done.body, field)) if done.changes else ():
            self._show_lines(f"{field}[{hunk.begin}]", hunk.lines)
        rest = [{key: value for key, value in one.items() if key != field} for one in (body, done.body)]
        for hunk in hunks(rest[:1], rest[1:]) if done.changes else ():
            self._show_lines("beside the messages", hunk.lines)
        self.left += sum(one.severity == "error" for one in checking.check(done.body, format, profile))
        if stream is not None:
            value = done.body if body is item.value else done.body[field]
            stream.write(json.dumps(value, ensure_ascii=False, indent=2 if is_only else None) + "\n")

    def _target(self, item: inputs.Whole) -> tuple[Any, Any]:
        from tenlines.wire.formats import FORMATS

        if item.name not in FORMATS:
            raise ConfigError(
                f"{self.file} is {item.reason.removeprefix('taken as ')}: no provider takes it as it is. "
                f"`tenlines convert {self.file} --to FORMAT` writes a valid transcript of it"
            )
        if self.goal is not None:
            return self.goal.format, self.goal.profile
        format = FORMATS[item.name]
        model = item.value.get("model", item.value.get("modelId")) if isinstance(item.value, dict) else None
        return format, format.profile({"model": model} if isinstance(model, str) else None)

    def _lines(self, item: inputs.Lines, stream: TextIO | None) -> None:
        """One message a line, repaired while it is read: no more of it in memory than what may still change."""
        from tenlines.wire.checking import Checker
        from tenlines.wire.documents import Record
        from tenlines.wire.formats import FORMATS
        from tenlines.wire.repairing import Repairer

        self.transcripts += 1
        format = self.goal.format if self.goal else FORMATS[item.name]
        profile = self.goal.profile if self.goal else format.profile()
        repairer, checker = Repairer(format, profile), Checker(format, profile)
        old: list[Any] = []
        new: list[Any] = []
        for record in item.records:
            if not isinstance(record, Record):
                self._damage(str(record))
                continue
            turn = format.unfold(record.value, f"line {record.line}")
            old.append(record.value)
            for done in repairer.take(turn):
                new.append(format.fold(done))
                self._check(checker.take(done))
            if new:
                self._flush(repairer.changes, old, new, record.line, stream)
        for done in repairer.close():
            new.append(format.fold(done))
            self._check(checker.take(done))
        self._check(checker.close())
        self._flush(repairer.changes, old, new, 0, stream)

    def _check(self, found: Iterator[Any]) -> None:
        self.left += sum(one.severity == "error" for one in found)

    def _flush(self, changes: list[Change], old: list[Any], new: list[Any], line: int, stream: TextIO | None) -> None:
        """Write what is finished, and show where it differs from what was read."""
        import json

        from tenlines.cli.diffs import hunks

        if changes:
            self._show(tuple(changes), None)
            for hunk in hunks(old, new):
                self._show_lines("", hunk.lines)
            changes.clear()
        if stream is not None:
            stream.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in new)
        old.clear()
        new.clear()

    # --- what is shown ----------------------------------------------------------------------------------

    def _damage(self, text: str) -> None:
        from rich.text import Text

        from tenlines.cli.lines import put
        from tenlines.cli.screen import clean

        self.damaged += 1
        put(self.console, Text(clean(f"{self.file}: {text}"), "yellow"), 0, wrap=True)

    def _show(self, changes: tuple[Change, ...], line: int | None) -> None:
        import msgspec
        from rich.text import Text

        from tenlines.cli.lines import put
        from tenlines.cli.screen import clean

        self.changes += len(changes)
        for one in changes if self.shows else ():
            if self.shows == "json":
                row = {"file": self.file, "line": line, **msgspec.to_builtins(one)}
                sys.stderr.write(msgspec.json.encode(row).decode() + "\n")
                continue
            text = Text().append(f"{one.kind} ", "bold").append(f"{clean(one.path)}: " if one.path else "", "dim")
            put(self.console, text.append(clean(one.message)), 0, wrap=True)

    def _show_lines(self, where: str, lines: tuple[str, ...]) -> None:
        from rich.text import Text

        from tenlines.cli.lines import put
        from tenlines.cli.screen import clean

        if self.shows != "diff":
            return
        if where:
            put(self.console, Text(f"@ {where}", "cyan"), 2)
        for line in lines:
            put(self.console, Text(clean(line), {"-": "red", "+": "green"}.get(line[:1], "dim")), 2)

    def summary(self, written_to: str | None) -> None:
        """The last line."""
        from rich.text import Text

        from tenlines.cli.lines import put
        from tenlines.cli.screen import signs
        from tenlines.cli.words import count

        if not self.shows or self.shows == "json":
            return
        sign = signs(self.console)
        what = count(self.transcripts, "transcript")
        if not self.changes:
            put(self.console, Text(f"{sign.ok} {what}, nothing to mend", "green"))
        else:
            where = "nothing was written (use -o OUT)" if written_to is None else f"written to {written_to}"
            put(self.console, Text(f"{sign.ok} {count(self.changes, 'change')} in {what}; {where}", "green"))
        if self.left:
            text = f"{sign.bad} {count(self.left, 'error')} left that no repair can cure; `tenlines check` names them"
            put(self.console, Text(text, "red"))


def _list(body: Any, field: str) -> list[Any]:
    found = body.get(field)
    return found if isinstance(found, list) else [found]
