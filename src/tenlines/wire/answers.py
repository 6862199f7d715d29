"""The schema of an answer in a request, for providers that hold a whole reply to one. Pure and deterministic.

The tool that takes the answer (`ToolSpec.answer`) is there in any case but one: where a provider takes a schema or
tools, not both, and that tool is the only one, the schema goes in its place. What comes back as one JSON object is
taken for its call, so nothing else has to know. A schema that a dialect cannot say in full stays out: the tool is all
there is then, and refusals for schemas that are too rich never come.
"""

from __future__ import annotations

from typing import NamedTuple

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject
from tenlines.wire.constrained import simple_schema
from tenlines.wire.profile import Profile
from tenlines.wire.schemas import Dialect, convert, sizes

MOST_OPTIONAL = 24
"""Optional properties, and `MOST_UNIONS` unions, that providers take in all strict schemas of a request together."""
MOST_UNIONS = 16


class Native(NamedTuple):
    """What goes into a request."""

    answer: ToolSpec | None
    """The tool whose parameters replies in words are held to; None where no schema goes out."""
    specs: tuple[ToolSpec, ...]
    """The tools that are declared."""


def native(request: CallModel, profile: Profile) -> Native:
    """How the answer of a run is asked for: the same in all its requests, while its tools are the same. Only where
    nothing may be called (a summary is asked for) words are words."""
    specs = request.tools
    answer = next((spec for spec in specs if spec.answer), None) if request.tool_choice != "none" else None
    if answer is not None and profile.has("answer.beside"):
        return Native(answer, specs)
    if answer is not None and profile.has("answer.alone") and len(specs) == 1:
        return Native(answer, ())
    return Native(None, specs)


def held(parameters: JsonObject, dialect: Dialect) -> JsonObject | None:
    """The schema in a dialect that replies are held to; None where that cannot say all of it."""
    converted = convert(parameters, dialect)
    counted = sizes(converted.schema)
    is_small = counted.optional <= MOST_OPTIONAL and counted.unions <= MOST_UNIONS
    return converted.schema if is_small and not converted.lost else None


def named(spec: ToolSpec) -> JsonObject:
    """OpenAI's `name`, `schema`, `strict`. Not strict is a schema that has optional properties: strictly they would all
    be required, and come as null where nobody said that null fits."""
    strict = None if sizes(spec.parameters).optional else held(spec.parameters, "openai_strict")
    schema = convert(spec.parameters, "openai").schema if strict is None else strict
    return {"name": spec.name, "schema": schema, "strict": strict is not None}


def response_format(spec: ToolSpec, profile: Profile) -> JsonObject:
    """The `response_format` of a chat request. Servers of one's own make a grammar of the schema: they get what such
    converters surely take."""
    if profile.has("answer.beside"):
        return {"type": "json_schema", "json_schema": named(spec)}
    inner: JsonObject = {"name": spec.name, "schema": simple_schema(spec.parameters), "strict": True}
    return {"type": "json_schema", "json_schema": inner}
