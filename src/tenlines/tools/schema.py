"""JSON Schema and a strict validator from a signature. The only module here that knows pydantic.

Arguments are JSON, so they are checked as JSON: text is taken for what JSON has no type for (dates, `UUID`,
`Path`, `Decimal`, `bytes`, `Enum`), an array for `tuple` and `set`, an object for dataclasses, `TypedDict` and
models, `1` for a `float`. Everything else must have its own type: `"3"` and `3.0` are no `int`, `1` is no
`bool`. A pydantic model inside the arguments keeps its own rule for extra keys; dataclasses and `TypedDict`
refuse them, as the parameters of a tool do.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticSerializationError, core_schema, to_jsonable_python

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import ConfigError
from tenlines.tools.signature import EMPTY, Parameter, Signature, resolve

Extra: TypeAlias = Literal["refuse", "ignore"]

TAKES = "JSON types, Enum, Literal, dates, dataclasses, TypedDict and pydantic models can be used"


class Schema(NamedTuple):
    """How a tool's arguments are described and checked."""

    parameters: JsonObject
    """JSON Schema, an object at its root."""
    validate: Callable[..., dict[str, Any]]
    """`validate(json_bytes, strict=True)`; raises `pydantic.ValidationError`."""
    late_defaults: tuple[tuple[str, FieldInfo], ...]
    """Defaults that were written as `= Field(...)`, which Python itself would hand over as they stand."""


class _Prepared(NamedTuple):
    """A parameter whose `Field(...)` was taken apart."""

    name: str
    annotation: Any
    default: Any
    field_default: FieldInfo | None


def build(tool: str, signature: Signature, function: Callable[..., Any], extra: Extra, texts: dict[str, str]) -> Schema:
    """Build the schema and the validator of a tool.

    Args:
        tool: Name of the tool, for messages.
        signature: What the function takes.
        function: The function, for types that could not be resolved when it was decorated.
        extra: What happens to parameters that the tool does not have.
        texts: Descriptions of parameters from the docstring.

    Raises:
        ConfigError: A type has no JSON form or cannot be resolved.
    """
    prepared = [_prepare(tool, one, function) for one in signature.parameters]
    rest = _prepare(tool, signature.extra, function) if signature.extra is not None else None
    adapter = _adapter(tool, prepared, rest, extra)
    schema = _described(tool, prepared, rest, adapter)
    schema["additionalProperties"] = _rest_schema(tool, rest)
    properties = schema.setdefault("properties", {})
    for one in prepared:
        properties[one.name] = _complete(properties[one.name], one, texts.get(one.name, ""))
    late = tuple((one.name, one.field_default) for one in prepared if one.field_default is not None)
    return Schema(schema, adapter.validator.validate_json, late)


def _prepare(tool: str, one: Parameter, function: Callable[..., Any]) -> _Prepared:
    annotation = resolve(one.annotation, function)
    if isinstance(annotation, str | typing.ForwardRef):
        raise ConfigError(
            f"tool {tool!r}: the type of parameter {one.name!r}, {annotation!r}, cannot be resolved: "
            "import it, or define it at the top of the module"
        )
    default, field_default = one.default, None
    if isinstance(default, FieldInfo):
        annotation = typing.Annotated[annotation, default]
        if default.is_required():
            default = EMPTY
        else:
            field_default, default = default, default.default if default.default_factory is None else None
    return _Prepared(one.name, _plain_fields(tool, one.name, annotation), default, field_default)


def _plain_fields(tool: str, name: str, annotation: Any) -> Any:
    """Reduce each `Field(...)` to what has a meaning for a parameter: constraints and descriptions."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return annotation
    kind, *metadata = typing.get_args(annotation)
    kept: list[Any] = []
    for one in metadata:
        if not isinstance(one, FieldInfo):
            kept.append(one)
            continue
        if one.alias is not None or one.validation_alias is not None:
            raise ConfigError(
                f"tool {tool!r}: parameter {name!r} has an alias: give it the name that the model shall use"
            )
        kept.extend(one.metadata)
        kept.append(Field(description=one.description, examples=one.examples, json_schema_extra=one.json_schema_extra))
    return typing.Annotated[(kind, *kept)] if kept else kind


def _adapter(tool: str, prepared: list[_Prepared], rest: _Prepared | None, extra: Extra) -> TypeAdapter[Any]:
    class Arguments:
        """Stands for the whole object, so that pydantic collects the definitions of all parameters."""

        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
            fields = {
                one.name: core_schema.typed_dict_field(_core(tool, one, handler), required=one.default is EMPTY)
                for one in prepared
            }
            return core_schema.typed_dict_schema(
                fields,
                extras_schema=_core(tool, rest, handler) if rest is not None else None,
                extra_behavior="allow" if rest is not None else ("ignore" if extra == "ignore" else "forbid"),
            )

    return TypeAdapter(Arguments, config=ConfigDict(extra="forbid"))


def _core(tool: str, one: _Prepared, handler: GetCoreSchemaHandler) -> CoreSchema:
    try:
        return handler.generate_schema(one.annotation)
    except (PydanticUserError, NameError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"tool {tool!r}: the type of parameter {one.name!r}, {_type_name(one.annotation)}, cannot be described "
            f"to a model ({_first_line(error)}). {TAKES}"
        ) from error


def _described(
    tool: str, prepared: list[_Prepared], rest: _Prepared | None, adapter: TypeAdapter[Any]
) -> dict[str, Any]:
    try:
        return dict(without_titles(adapter.json_schema(mode="validation")))
    except PydanticUserError as error:
        for one in [*prepared, *([rest] if rest is not None else [])]:
            _json_schema(tool, one)  # raises for the one that is to blame
        raise ConfigError(f"tool {tool!r}: its parameters have no JSON Schema: {_first_line(error)}") from error


def _json_schema(tool: str, one: _Prepared) -> Any:
    try:
        return without_titles(TypeAdapter(one.annotation).json_schema(mode="validation"))
    except PydanticUserError as error:
        raise ConfigError(
            f"tool {tool!r}: the type of parameter {one.name!r}, {_type_name(one.annotation)}, cannot be described "
            f"to a model ({_first_line(error)}). {TAKES}"
        ) from error


def _rest_schema(tool: str, rest: _Prepared | None) -> JsonValue:
    """What other keys may hold."""
    if rest is None or rest.annotation is Any:
        return rest is not None
    schema: JsonObject = _json_schema(tool, rest)
    return schema


def _complete(schema: JsonObject, one: _Prepared, text: str) -> JsonObject:
    """Add what the signature and the docstring know: the description and the default."""
    schema = dict(schema)
    if text and "description" not in schema:
        schema["description"] = text
    default = one.default
    if default is not EMPTY and not (one.field_default is not None and one.field_default.default_factory is not None):
        if isinstance(default, set | frozenset):
            default = sorted(default, key=repr)  # the schema is part of every request: it never changes between runs
        with suppress(PydanticSerializationError):  # a sentinel: only the function knows what it means
            schema["default"] = to_jsonable_python(default, inf_nan_mode="null")
    return schema


_SCHEMA_MAPS = ("properties", "$defs", "patternProperties")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")


def without_titles(schema: Any) -> Any:
    """Drop the titles that pydantic makes of names; a property that is called `title` stays."""
    if not isinstance(schema, dict):
        return schema
    clean: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _SCHEMA_MAPS:
            clean[key] = {name: without_titles(one) for name, one in value.items()}
        elif key in _SCHEMA_LISTS:
            clean[key] = [without_titles(one) for one in value]
        elif key in _SCHEMAS:
            clean[key] = without_titles(value)
        elif key != "title":
            clean[key] = value
    return clean


def _type_name(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].split(". ")[0].rstrip(".") if str(error).strip() else type(error).__name__
