"""Parameters of tools in the dialect of JSON Schema that each format takes. Pure and deterministic."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from tenlines.core.transcript import JsonObject

Dialect: TypeAlias = Literal[
    "openai",
    "openai_strict",
    "anthropic",
    "anthropic_strict",
    "gemini",
    "gemini_json",
    "bedrock",
    "bedrock_strict",
    "mistral",
    "cohere_strict",
]


class Converted(NamedTuple):
    """A schema in a dialect, and what had to be said in words instead."""

    schema: JsonObject
    lost: tuple[str, ...]


def convert(parameters: JsonObject, dialect: Dialect) -> Converted:
    """The schema of a tool's parameters in a dialect."""
    return Converted(parameters or {"type": "object", "properties": {}}, ())
