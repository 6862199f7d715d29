"""`tenlines rules`: what each provider's format demands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tenlines.wire.format import Format
    from tenlines.wire.rules import Evidence, Rule, Severity

Id = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="A rule (ANT-13), or a kind of violation (PAIR-MISSING).", show_default=False),
]
FormatName = Annotated[
    str | None, typer.Option("--format", "-f", metavar="FORMAT", help="Only the rules of one format.")
]
Lines = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]

_MEANS: dict[Severity, str] = {
    "error": "the provider refuses the request",
    "warning": "the request is accepted, and does harm",
    "info": "good to know; nothing to check",
}
_KNOWN: dict[Evidence, str] = {
    "documented": "the provider's own documents or types",
    "source": "the code of a server or validator",
    "reported": "errors that people quoted",
    "secondary": "what others wrote about it",
    "inferred": "reasoning from types, or from the absence of reports",
    "uncertain": "contradictory signs",
}


def rules(rule: Id = None, format: FormatName = None, json: Lines = False) -> None:
    """Explain the rules that transcripts are checked against, or list them.

    \b
    Examples:
      tenlines rules                     all of them, a line each
      tenlines rules ANT-13              what it demands, what the provider says, an example
      tenlines rules PAIR-MISSING        the same violation in every format
      tenlines rules --format mistral
    """
    from tenlines.wire.formats import FORMATS

    chosen = _chosen(FORMATS, format)
    wanted = [(one, each) for one in chosen for each in one.rules if _is_meant(each, rule)]
    if not wanted:
        raise ConfigError(_nothing(FORMATS, rule))
    if json:
        _write_json(wanted)
    elif rule is None or len(wanted) > 1:
        _write_list(wanted)
    else:
        _explain(*wanted[0])


def _chosen(formats: dict[str, Format], name: str | None) -> list[Format]:
    from tenlines.wire.targets import format_name

    if name is None:
        return list(formats.values())
    found = formats.get(format_name(name))
    if found is None:
        raise ConfigError(f"--format {name}: there is no such format; it is one of {', '.join(formats)}")
    return [found]


def _is_meant(rule: Rule, typed: str | None) -> bool:
    return typed is None or typed.upper() == rule.id.upper() or typed.upper() in rule.kinds


def _nothing(formats: dict[str, Format], typed: str | None) -> str:
    import difflib

    if (typed or "").upper() == "FILE":
        return "FILE is no rule of a format: it stands for what is wrong with the file itself (see docs/protocol.md)"
    every = [rule for one in formats.values() for rule in one.rules]
    names = [*(rule.id for rule in every), *sorted({kind for rule in every for kind in rule.kinds})]
    close = difflib.get_close_matches((typed or "").upper(), names, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close)}?" if close else "`tenlines rules` lists all of them"
    return f"there is no rule and no kind of violation {typed!r} here; {hint}"


def _write_json(wanted: list[tuple[Format, Rule]]) -> None:
    import msgspec

    for one, rule in wanted:
        row: dict[str, Any] = {"format": one.name, **msgspec.to_builtins(rule)}
        typer.echo(msgspec.json.encode(row).decode())


def _write_list(wanted: list[tuple[Format, Rule]]) -> None:
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.cli.screen import console_for

    console = console_for(sys.stdout)
    title = ""
    for one, rule in wanted:
        if one.title != title:
            put(console, Text(f"{chr(10) if title else ''}{one.title}", "bold"))
            title = one.title
        line = Text().append(f"{rule.id:<10}", "bold").append(f"{rule.severity:<8}", STYLE[rule.severity])
        line.append(rule.text).append(f" {' '.join(rule.kinds)}" if rule.kinds else "", "dim")
        put(console, line, 2, wrap=True)
    put(console, Text("\n`tenlines rules ID` explains one: what the provider says, and an example.", "dim"))


STYLE: dict[Severity, str] = {"error": "red", "warning": "yellow", "info": "cyan"}


def _explain(one: Format, rule: Rule) -> None:
    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.cli.screen import console_for

    console = console_for(sys.stdout)
    heading = Text().append(rule.id, "bold").append(f" {one.title}")
    put(console, heading.append(f" {' '.join(rule.kinds)}", "dim"))
    put(console, Text(f"\n{rule.text}\n"), 0, wrap=True)
    fields = {
        "severity": f"{rule.severity}: {_MEANS[rule.severity]}",
        "it says": rule.answer,
        "known from": _KNOWN[rule.evidence],
        "what to do": rule.fix,
    }
    for name, text in fields.items():
        if text:
            put(console, Text().append(f"{name:<11} ", "dim").append(text), 0, wrap=True)
    if rule.example:
        for_whom = ", ".join(f"{key} {value}" for key, value in rule.context.items())
        put(console, Text(f"\nAn example that breaks it{f' (with {for_whom})' if for_whom else ''}:\n", "dim"))
        put(console, Text(_pretty(rule.example)), 2)
        _write_findings(one, rule, console)
    if rule.needs == "provenance":
        put(console, Text("\nNo check can see it in the bytes: it needs to know where an artefact came from.", "dim"))


def _pretty(example: str) -> str:
    """JSON with each message on a line of its own."""
    import json

    return json.dumps(json.loads(example), indent=2, ensure_ascii=False)


def _write_findings(one: Format, rule: Rule, console: Console) -> None:
    import json

    from rich.text import Text

    from tenlines.cli.lines import put
    from tenlines.wire.checking import check

    found = check(json.loads(rule.example), one, one.profile(rule.context))
    if found:
        put(console, Text("\nWhat `tenlines check` says of it:\n", "dim"))
    for each in found:
        line = Text().append(f"{each.path or 'the body'}: ", "dim").append(f"{each.rule} ", "bold")
        put(console, line.append(each.message), 2, wrap=True)
