"""What is wrong in a file, one finding at a time: of its transcripts, and of the file itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from tenlines.cli import inputs
from tenlines.wire import checking
from tenlines.wire.checking import Checker
from tenlines.wire.converting import as_body
from tenlines.wire.documents import Notice, Record
from tenlines.wire.dumps.checking import check_dump
from tenlines.wire.dumps.sources import SOURCES
from tenlines.wire.rules import Diagnostic, Rule, Severity
from tenlines.wire.targets import Goal

FILE_RULE = Rule("FILE", ("DAMAGE", "SKIPPED", "FORM"), "error", "A file holds whole transcripts of the wanted form.")
"""The rule under which what is wrong with a file itself is reported."""
_FIELD = re.compile(r"^\w+(?=\[)")


class Finding(msgspec.Struct, frozen=True):
    """One line of the report, as `--json` writes it."""

    file: str
    line: int
    path: str
    rule: str
    kind: str
    severity: Severity
    message: str
    evidence: str = ""
    fix: str = ""


class Seen(NamedTuple):
    """A transcript that is looked at."""

    reason: str
    """What it was taken for, and why."""
    is_dump: bool


class Search(NamedTuple):
    """What is looked for in files."""

    goal: Goal | None
    """Whom the transcripts are for; None: whom they were written for."""
    typed: str
    """The goal as the person wrote it."""
    source: str | None
    largest_mb: int

    def through(self, file: str) -> Iterator[Finding | Seen]:
        """All findings of a file.

        Raises:
            ConfigError: It cannot be read, or there is no transcript in it.
        """
        with inputs.opened(file) as handle:
            for item in inputs.items(handle, file, self.source, self.largest_mb):
                if isinstance(item, Notice | inputs.Skipped):
                    yield _of_file(file, item)
                    continue
                yield Seen(item.known.reason, item.known.name in SOURCES)
                goal = inputs.aimed(item, self.goal, self.source)
                if isinstance(item, inputs.Whole) and (goal is not None or self.goal is None):
                    yield from _in_whole(file, item, goal)
                elif isinstance(item, inputs.Lines) and goal is not None:
                    yield from _in_lines(file, item, goal)
                elif self.goal is not None:
                    yield self._another_form(file, item, self.goal)

    def _another_form(self, file: str, item: inputs.Whole | inputs.Lines, goal: Goal) -> Finding:
        message = f"{inputs.another_form(item, goal)}."
        fix = f"Convert it: {shlex.join(['tenlines', 'convert', file, '--to', self.typed])}"
        return Finding(file, item.line, item.path, FILE_RULE.id, "FORM", "error", message, fix=fix)


def _of_file(file: str, found: Notice | inputs.Skipped) -> Finding:
    """Something that could not be read, or is no transcript."""
    message = f"{found.text[:1].upper()}{found.text[1:]}."
    if isinstance(found, Notice):
        path = f"column {found.column}" if found.column else ""
        return Finding(file, found.line, path, FILE_RULE.id, "DAMAGE", "error", message)
    return Finding(file, found.line, "", FILE_RULE.id, "SKIPPED", "warning", message)


def _in_whole(file: str, item: inputs.Whole, goal: Goal | None) -> Iterator[Finding]:
    """Of a transcript in memory; without a goal it is a dump."""
    if goal is None:
        found = check_dump(SOURCES[item.known.name](item.value))
    else:
        found = checking.check(as_body(item.value, goal.format), goal.format, goal.profile)
    for one in found:
        inner = _FIELD.sub("", one.path) if isinstance(item.value, list) else one.path
        between = "." if item.path and inner and not inner.startswith("[") else ""
        yield _finding(file, _line_of(item, inner), f"{item.path}{between}{inner}", one)


def _line_of(item: inputs.Whole, path: str) -> int:
    """The line of the message that a path begins with."""
    index = re.match(r"\[(\d+)\]", path)
    return item.lines[int(index[1])] if index and int(index[1]) < len(item.lines) else item.line


def _in_lines(file: str, item: inputs.Lines, goal: Goal) -> Iterator[Finding]:
    """Of a transcript with one message a line: never more of it in memory than is needed."""
    checker, line = Checker(goal.format, goal.profile), 1
    for record in item.records:
        line = record.line
        if isinstance(record, Record):
            yield from _at_lines(file, line, checker.take(goal.format.unfold(record.value, f"line {line}")))
        else:
            yield _of_file(file, record)
    yield from _at_lines(file, line, checker.close())


def _at_lines(file: str, line: int, found: Iterable[Diagnostic]) -> Iterator[Finding]:
    for one in found:
        yield _finding(file, *inputs.placed(one.path, line), one)


def _finding(file: str, line: int, path: str, one: Diagnostic) -> Finding:
    message = f"{one.message[:1].upper()}{one.message[1:].removesuffix('.')}."
    return Finding(file, line, path, one.rule, one.kind, one.severity, message, one.evidence, one.fix)
