"""Arguments against the JSON Schema of a server. The schema is foreign: it may be wrong, huge or built to do harm.

Nothing is fetched for it. Its patterns are run by a matcher whose time grows with the text alone, and those that this
one does not know are left to the server. How often it may refer to its own parts is bounded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

import msgspec

from tenlines.core import outcomes
from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.tools import problems

MOST_BYTES = 100_000
"""Of a schema. It is sent with every request, so a larger one would be paid for at every step."""
MOST_REFERENCES = 5_000
"""That are followed in one check."""
LISTED = 8
"""Problems that are told one by one."""
LINE_CHARS = 300


class Unusable(Exception):
    """A schema that arguments cannot be checked against."""


class _TooMuch(Exception):
    """The schema asks for more work than a check is worth."""


class Checker:
    """Checks the arguments of one tool.

    Args:
        tool: Its name, for messages.
        schema: As the server gives it.

    Raises:
        Unusable: It is not a JSON Schema of an object, or too large.
    """

    def __init__(self, tool: str, schema: JsonObject) -> None:
        self._tool, self._schema = tool, schema
        self._counts = threading.local()
        self._validator = _validator(schema, self._counts)

    def problem(self, arguments: JsonObject) -> str:
        """What is wrong with the arguments, in words for the model; "" where they fit.

        Raises:
            Exception: The schema refers to what is not there.
        """
        self._counts.left = MOST_REFERENCES
        try:
            errors = sorted(self._validator.iter_errors(arguments), key=lambda one: [str(part) for part in one.path])
        except (_TooMuch, RecursionError):
            return ""  # whether they fit cannot be known; the server checks them itself
        return self._told(errors) if errors else ""

    def _told(self, errors: list[Any]) -> str:
        lines = [_line(error) for error in errors[:LISTED]]
        if len(errors) > LISTED:
            lines.append(f"- and {len(errors) - LISTED:,} more")
        head = (
            f"{self._tool} did not run: {'its arguments do not' if len(errors) > 1 else 'one argument does not'} fit."
        )
        words = outcomes.bounded(outcomes.parameter_words(self._schema), 450)
        return outcomes.sendable("\n".join((head, *lines, f"Parameters of {self._tool}: {words}.")))

    def mended(self, arguments: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
        """The arguments with JSON texts decoded that stand where only an object or an array can; and what was done."""
        return problems.decoded(self._schema, arguments)


def _line(error: Any) -> str:
    where = error.json_path.removeprefix("$").removeprefix(".") or "the arguments"
    message = str(error.message)
    short = (
        message if len(message) <= LINE_CHARS else f"{message[: LINE_CHARS // 2]} [...] {message[-LINE_CHARS // 2 :]}"
    )
    return f"- {where[:100]}: {short}"


def _library() -> Any:
    """`jsonschema`, which comes with the SDK and says nothing of its types."""
    return import_module("jsonschema")


def _validator(schema: JsonObject, counts: threading.local) -> Any:
    from referencing import Registry

    library = _library()
    if schema.get("type", "object") != "object":
        raise Unusable(f"its parameters are {outcomes.quote(str(schema['type']), 80)}, not an object")
    if len(msgspec.json.encode(schema)) > MOST_BYTES:
        raise Unusable(f"its schema has more than {MOST_BYTES:,} bytes")
    kind: Any = library.validators.validator_for(schema, default=library.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (library.SchemaError, RecursionError) as error:
        raise Unusable(
            f"its schema is not valid: {outcomes.quote(getattr(error, 'message', str(error)), 200)}"
        ) from None
    return _careful(kind, counts)(schema, registry=Registry())


def _careful(kind: Any, counts: threading.local) -> Any:
    """A validator class that follows no more references than it may, and matches patterns without running wild."""
    rules: Mapping[str, Any] = kind.VALIDATORS

    def counted(rule: Any) -> Any:
        def follow(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            counts.left -= 1
            if counts.left < 0:
                raise _TooMuch
            return rule(validator, value, instance, schema)

        return follow

    own = {name: counted(rules[name]) for name in ("$ref", "$dynamicRef", "$recursiveRef") if name in rules}
    own |= {"pattern": _pattern, "patternProperties": _nothing}
    for name in ("additionalProperties", "unevaluatedProperties"):
        if name in rules:
            own[name] = _unless_patterns(rules[name])
    return _library().validators.extend(kind, own)


def _unless_patterns(rule: Any) -> Any:
    """What a name fits that no pattern takes is not known where patterns are not run."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        return iter(()) if "patternProperties" in schema else rule(validator, value, instance, schema)

    return check


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    return iter(())


def _pattern(validator: Any, pattern: JsonValue, instance: Any, schema: Any) -> Iterator[Any]:
    matcher = _matcher(pattern) if isinstance(pattern, str) and isinstance(instance, str) else None
    if matcher is not None and not matcher(instance):
        yield _library().ValidationError(f"{instance!r} does not match {pattern!r}")


@lru_cache(maxsize=500)
def _matcher(pattern: str) -> Any:
    """A test of texts against a pattern; None where the linear matcher does not know it."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")).isinstance_python
    except SchemaError:
        return None
