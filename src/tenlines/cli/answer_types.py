"""`--output`: what a person names as the type of the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tenlines.errors import ConfigError

OutputType = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="TYPE",
        help="The answer is JSON of this type: SCHEMA.json (a JSON Schema), or FILE.py:NAME (a model, a dataclass).",
    ),
]


def read_output(text: str | None) -> Any:
    """The type that is named; None where none is.

    Raises:
        ConfigError: Its file is missing, or has no such type, or no JSON Schema.
    """
    if text is None:
        return None
    file, is_python, name = text.rpartition(".py:")
    if is_python:
        return _in_file(f"{file}.py", name)
    if text.endswith(".py"):
        raise ConfigError(f"--output {text}: say which type of the file, as in {text}:Invoice")
    return _schema(text)


def _in_file(path: str, name: str) -> Any:
    from tenlines.tools.load import import_file

    module = import_file(path)
    values = vars(module)
    if name in values:
        return values[name]
    types = [key for key, value in values.items() if isinstance(value, type) and value.__module__ == module.__name__]
    there = f"; its types: {', '.join(types)}" if types else ""
    raise ConfigError(f"--output: {path} has no {name or 'name behind the colon'}{there}")


def _schema(path: str) -> dict[str, Any]:
    try:
        schema = json.loads(Path(path).expanduser().read_bytes())
    except OSError as error:
        raise ConfigError(f"--output {path}: it cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--output {path}: it is not JSON, and a JSON Schema is: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigError(f'--output {path}: a JSON Schema is an object, such as {{"type": "object", ...}}')
    return schema
