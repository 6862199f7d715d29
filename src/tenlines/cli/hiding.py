"""What a person wants taken out of what is shown: `--redact`, `--redact-with`, `--no-redact`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from tenlines.trace.redaction import Redaction

VARIABLE = "TENLINES_REDACT"

Names: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--redact", metavar="NAME", help=f"Take out values of this name (api_key, x-token), everywhere. [${VARIABLE}]"
    ),
]
With: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--redact-with", metavar="FILE.py:FUNCTION", help="Pass every text through a function of yours as well."
    ),
]
Off: TypeAlias = Annotated[
    bool, typer.Option("--no-redact", help="Take nothing out, not even what is called password, token or api_key.")
]


def named(names: Sequence[str] | None, function: str | None) -> Redaction:
    """What was named, and nothing else: for eyes that may see everything.

    Raises:
        ConfigError: The function is not there.
    """
    from tenlines.trace.redaction import Redaction

    return Redaction(_all(names), None if function is None else _load(function))


def usual(names: Sequence[str] | None, function: str | None, off: bool) -> Redaction:
    """What was named, and what is a secret nearly always: for what is passed on.

    Raises:
        ConfigError: The function is not there, or both was asked for.
    """
    from tenlines.trace.redaction import SECRET_NAMES, Redaction

    if off and (names or function):
        raise ConfigError("--no-redact takes nothing out: leave it or --redact out")
    if off:
        return Redaction(())
    return Redaction([*SECRET_NAMES, *_all(names)], None if function is None else _load(function))


def _all(names: Sequence[str] | None) -> list[str]:
    from tenlines.trace.redaction import read_names

    return [one for text in (*(names or ()), os.environ.get(VARIABLE, "")) for one in read_names(text)]


def _load(typed: str) -> Callable[[str], str]:
    """The function that a person named by its file.

    Raises:
        ConfigError: There is no such file, or it has no such function.
    """
    from tenlines.tools.load import import_file

    file, _, name = typed.rpartition(":")
    if not file or not name.isidentifier():
        raise ConfigError(f"--redact-with {typed}: name a file and a function in it, as in hide.py:without_names")
    if not Path(file).is_file():
        raise ConfigError(f"--redact-with {typed}: there is no file {file}")
    found = getattr(import_file(file), name, None)
    if not callable(found):
        raise ConfigError(f"--redact-with {typed}: {file} has no function {name}; it takes a text and returns one")
    function: Callable[[str], str] = found
    return function
