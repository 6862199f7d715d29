"""What is wrong with arguments, in words that help a model to write better ones.

The text names the tool, each path that does not fit, what came in (a bounded quote), what was expected, and the
parameters there are. It is shorter than 2,000 characters and has no Python internals in it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tenlines.core import outcomes
from tenlines.core.transcript import JsonObject, JsonValue

MAX_CHARS = 1_900
BODY_CHARS = 1_200
LISTED = 8
"""Problems that are told one by one."""
MAX_DEPTH = 50
"""Levels of nesting in which JSON texts are looked for."""
QUOTED = 100
"""Characters of a wrong value that are quoted."""

_OBJECT, _ARRAY, _STRING = "an object", "an array", "a string"
_EXPECTED = {
    "string_type": _STRING,
    "bytes_type": _STRING,
    "path_type": _STRING,
    "int_type": "an integer",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "null",
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "arguments_type": _OBJECT,
    "list_type": _ARRAY,
    "tuple_type": _ARRAY,
    "set_type": _ARRAY,
    "frozen_set_type": _ARRAY,
    "iterable_type": _ARRAY,
    "decimal_type": "a decimal number",
    "decimal_parsing": "a decimal number",
}
_EXPECTED_BY_START = {
    "datetime_": "a date and time such as 2024-05-01T12:00:00",
    "date_": "a date such as 2024-05-01",
    "time_delta_": "a duration such as PT1H30M",
    "time_": "a time such as 12:30:00",
    "uuid_": "a UUID",
}
_EXTRA = ("extra_forbidden", "unexpected_keyword_argument")
_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")
_KINDS: dict[type, str] = {str: "a string", bool: "a boolean", int: "a number", float: "a number"}

_Path = tuple[str | int, ...]


def explain(tool: str, parameters: JsonObject, arguments: JsonObject, errors: Iterable[Mapping[str, Any]]) -> str:
    """Say what is wrong.

    Args:
        tool: Name of the tool.
        parameters: JSON Schema of its parameters.
        arguments: What came in.
        errors: As `pydantic.ValidationError.errors()` gives them.
    """
    told = dict[_Path, list[Mapping[str, Any]]]()
    for error in errors:
        told.setdefault(_path(arguments, error), []).append(error)
    lines, room = list[str](), BODY_CHARS
    for path, group in list(told.items())[:LISTED]:
        line = f"- {_clip(_line(tool, parameters, arguments, path, group), BODY_CHARS // 2)}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    if len(told) > len(lines):
        lines.append(f"- and {len(told) - len(lines):,} more")
    head = f"{tool} did not run: {'its arguments do not' if len(told) > 1 else 'one argument does not'} fit."
    return "\n".join((head, *lines, outcomes.bounded(_parameters(tool, parameters), 450)))


def failed_check(tool: str, error: Exception) -> str:
    """A validator of the tool's own types raised something that is no verdict on the arguments."""
    if isinstance(error, RecursionError):
        return f"{tool} did not run: its arguments are nested too deeply."
    return _clip(f"{tool} did not run: checking its arguments failed with {type(error).__name__}: {error}", MAX_CHARS)


def reserved(tool: str, name: str, parameters: JsonObject) -> str:
    """A key that the runtime itself fills in."""
    return f"{tool} did not run.\n- {name} is not a parameter of {tool}.\n{_parameters(tool, parameters)}"


def ignored(tool: str, names: Iterable[str]) -> str:
    """The remark on parameters that were left out because the tool says so."""
    return _clip(f"{tool} has no parameter {', '.join(outcomes.quote(name, 80) for name in names)}: left out", 500)


def _parameters(tool: str, parameters: JsonObject) -> str:
    words = outcomes.parameter_words(parameters)
    more = "; any other name is taken too" if parameters.get("additionalProperties") else ""
    return f"Parameters of {tool}: {words}{more}."


def _clip(text: str, limit: int) -> str:
    clean = outcomes.sendable(text)
    return clean if len(clean) <= limit else clean[: limit - 6] + " [...]"


# --- one problem --------------------------------------------------------------------------------------


def _path(arguments: JsonObject, error: Mapping[str, Any]) -> _Path:
    """Where in the arguments it is. pydantic also names the branches of unions and its own wrappers: left out."""
    value: Any = arguments
    path: list[str | int] = []
    parts = error["loc"]
    for part in parts:
        if _has(value, part):
            value = value[part]
        elif part is not parts[-1] or error["type"] not in _MISSING:
            continue
        path.append(part)
    return tuple(path)


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, list):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, dict) and part in value


def _line(tool: str, parameters: JsonObject, arguments: JsonObject, path: _Path, group: list[Mapping[str, Any]]) -> str:
    where, kinds = _words(path), {error["type"] for error in group}
    if kinds & set(_MISSING):
        return f"{where} is missing{_type_of(parameters, path)}"
    value = _at(arguments, path)
    if kinds <= set(_EXTRA):
        if len(path) > 1:
            return f"{where} is not allowed there, got {_shown(value)}"
        return f"{where} is not a parameter of {tool}{_closest(parameters, path[0])}"
    return f"{where}: {_demand(group)}, got {_shown(value)}{_hint(kinds, value)}"


def _demand(group: list[Mapping[str, Any]]) -> str:
    """What should have come: the alternatives of a union together, then what other rules say."""
    expected = dict.fromkeys(words for error in group if (words := _expected(error)))
    rules = dict.fromkeys(_rule(error) for error in group if not _expected(error))
    said = [f"expected {' or '.join(list(expected)[:6])}"] if expected else []
    return _clip("; ".join([*said, *rules]), 300)


def _expected(error: Mapping[str, Any]) -> str:
    """Words that go after "expected", or "" for a rule of another kind."""
    kind, message = str(error["type"]), str(error["msg"])
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    for start, words in _EXPECTED_BY_START.items():
        if kind.startswith(start):
            return words
    return _clip(message.removeprefix("Input should be "), 250) if message.startswith("Input should be ") else ""


def _rule(error: Mapping[str, Any]) -> str:
    message = str(error["msg"])
    if error["type"] == "json_invalid":
        return "nested too deeply" if "recursion" in message else message
    return _clip(message.removeprefix("Value error, ").removeprefix("Assertion failed, "), 250)


def _hint(kinds: set[str], value: JsonValue) -> str:
    if kinds & {"int_type", "int_from_float"} and isinstance(value, float) and value.is_integer():
        return f" (write {int(value)} without a decimal point)" if abs(value) < 1e15 else ""
    if isinstance(value, str) and len(kinds) == 1 and kinds <= {"int_type", "float_type", "bool_type"}:
        return " (write it without quotes)"
    return ""


def _shown(value: JsonValue) -> str:
    if value is None or isinstance(value, bool):
        return str(msgspec.json.encode(value), "utf-8")
    text = outcomes.sendable(msgspec.json.encode(value).decode())
    if len(text) > QUOTED:
        text = f"{text[: QUOTED * 2 // 3]} [...] {text[-QUOTED // 4 :]} ({len(text):,} characters)"
    kind = _KINDS.get(type(value), _ARRAY if isinstance(value, list) else _OBJECT)
    return f"{kind}: {text}"


def _at(arguments: JsonObject, path: _Path) -> Any:
    value: Any = arguments
    for part in path:
        value = value[part]
    return value


def _words(path: _Path) -> str:
    """`filter.tags[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = outcomes.sendable(part if len(part) <= 60 else f"{part[:60]}...")
            text += f".{name}" if text else name
    return text or "the arguments"


def _type_of(parameters: JsonObject, path: _Path) -> str:
    properties = parameters.get("properties")
    if len(path) != 1 or not isinstance(properties, dict):
        return ""
    schema = properties.get(str(path[0]))
    kind = schema.get("type") if isinstance(schema, dict) else None
    return f" ({kind}, required)" if isinstance(kind, str) else " (required)"


def _closest(parameters: JsonObject, name: str | int) -> str:
    properties = parameters.get("properties")
    known = list(properties) if isinstance(properties, dict) else []
    close = difflib.get_close_matches(str(name)[:64], known, n=1)
    return f": did you mean {close[0]}?" if close else ""


# --- a JSON text where an object or an array is wanted ------------------------------------------------


def decoded(parameters: JsonObject, arguments: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Decode, once, strings that stand where the schema takes only an object or an array.

    Some models write nested values as JSON text. A string that parses to exactly the type that is wanted can
    mean nothing else; every other string stays as it is.

    Returns:
        The arguments, and a sentence for each string that was decoded.
    """
    remarks: list[str] = []
    defs = parameters.get("$defs")
    reader = _Reader(defs if isinstance(defs, dict) else {}, remarks)
    value = reader.read(parameters, arguments, ())
    return (value if isinstance(value, dict) else arguments), tuple(remarks)


class _Reader:
    """Walks a value and its schema side by side."""

    def __init__(self, defs: dict[str, JsonValue], remarks: list[str]) -> None:
        self.defs, self.remarks = defs, remarks

    def read(self, schema: JsonValue, value: JsonValue, path: _Path) -> JsonValue:
        if not schema or len(path) > MAX_DEPTH:
            return value
        branches = [one for one in self._branches(schema, 0) if one.get("type") != "null"]
        kinds = {one.get("type") for one in branches}
        if isinstance(value, str) and branches and kinds <= {"object", "array"}:
            return self._decode(value, kinds, path)
        if len(branches) != 1:
            return value
        return self._inside(branches[0], value, path)

    def _inside(self, schema: JsonObject, value: JsonValue, path: _Path) -> JsonValue:
        if isinstance(value, dict):
            properties, others = schema.get("properties"), schema.get("additionalProperties")
            known = properties if isinstance(properties, dict) else {}
            return {name: self.read(known.get(name, others), one, (*path, name)) for name, one in value.items()}
        if isinstance(value, list):
            return [self.read(schema.get("items"), one, (*path, index)) for index, one in enumerate(value)]
        return value

    def _branches(self, schema: JsonValue, depth: int) -> list[JsonObject]:
        """The alternatives that a schema allows; one without a type allows everything."""
        if not isinstance(schema, dict) or depth > 20:
            return [{}]
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._branches(self.defs.get(reference.removeprefix("#/$defs/")), depth + 1)
        options = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(options, list):
            return [branch for option in options for branch in self._branches(option, depth + 1)]
        return [schema]

    def _decode(self, text: str, kinds: set[JsonValue], path: _Path) -> JsonValue:
        try:
            value: JsonValue = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            return text
        kind = "object" if isinstance(value, dict) else "array"
        if not isinstance(value, dict | list) or kind not in kinds:
            return text
        self.remarks.append(f"{_words(path)} came as a JSON text and was decoded to the {kind} in it")
        return value
