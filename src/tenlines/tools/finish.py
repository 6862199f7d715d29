"""`finish`: the tool by which a run gives an answer that has a schema, and ends.

```python
agent = Agent(model, tools, output=Invoice)
result = agent.run_sync("Read this invoice: ...")
result.output, result.answer            # an Invoice; its JSON
```

A type is read by pydantic, as strictly as the arguments of tools are. A JSON Schema needs the extra
`tenlines[schemas]`, and gives plain values.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple, cast

import msgspec

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import FINISH, canonical
from tenlines.core.transcript import JsonObject, JsonValue, Text
from tenlines.errors import ConfigError, MissingExtra
from tenlines.ports import Bound, CallContext, Invalid, Rendered, ToolPort
from tenlines.tools import problems
from tenlines.tools.signature import Parameter, Signature

ANSWER = "answer"
"""The property under which an answer stands that is no object."""
_DESCRIPTION = "Gives the answer and ends the task. Call it alone, once, when the task is done."
_ENDED = f"{FINISH} did not run: the run is ending."


class _Reader(NamedTuple):
    """How an answer is checked and read."""

    parameters: JsonObject
    """JSON Schema of the arguments of the call."""
    problem: Callable[[JsonObject], str]
    """What is wrong with arguments, in words for the model; "" where they fit."""
    read: Callable[[JsonObject], Any]
    """The value that arguments stand for; raises where they do not fit."""


class Finish:
    """The tool `finish` (`tenlines.ports.ToolPort`).

    Args:
        reader: How answers are checked and read.
        kind: Whether the arguments are the answer (`object`) or hold it (`value`).
    """

    is_async = False
    is_killable = False

    def __init__(self, reader: _Reader, kind: str) -> None:
        self._reader, self._is_value = reader, kind == "value"
        self.spec = ToolSpec(
            FINISH,
            _DESCRIPTION,
            reader.parameters,
            read_only=True,
            final=True,
            answer="value" if kind == "value" else "object",
        )

    def __repr__(self) -> str:
        return f"<tool {FINISH}>"

    def check(self, arguments: JsonObject) -> Bound | Invalid:
        """Validate strictly. JSON text where the schema takes only an object or an array is decoded, and said."""
        if not (problem := self._reader.problem(arguments)):
            return Bound({"arguments": arguments})
        mended, remarks = problems.decoded(self.spec.parameters, arguments)
        if remarks and not self._reader.problem(mended):
            return Bound({"arguments": mended}, remarks)
        return Invalid(problem)

    def call(self, bound: Bound, ctx: CallContext) -> str:
        """The answer as canonical JSON."""
        arguments = bound.arguments["arguments"]
        if self._is_value:
            return msgspec.json.encode(arguments[ANSWER], order="deterministic").decode()
        return canonical(arguments)

    def render(self, value: Any) -> Rendered:
        """All of it: an answer is never cut."""
        return Rendered((Text(value),))

    def read(self, answer: str) -> Any:
        """The answer of a run (`RunResult.answer`) as the value that it stands for.

        Raises:
            ConfigError: It does not fit: it was recorded for another type.
        """
        try:
            value = msgspec.json.decode(answer)
            return self._reader.read({ANSWER: value} if self._is_value else value)
        except Exception as error:
            raise ConfigError(
                f"the recorded answer does not fit output=: {str(error)[:500]}. It was given for another type; read "
                "result.answer, or use the type of then"
            ) from error


def finish(output: Any) -> Finish:
    """The tool for answers of a type.

    Args:
        output: A pydantic model, a dataclass, a `TypedDict`, or anything else that pydantic takes for a type; a JSON
            Schema as a dict; or the tool itself, which stays as it is.

    Raises:
        ConfigError: It has no JSON form, or is no schema.
        MissingExtra: It is a JSON Schema, and its validator is not installed.
    """
    if isinstance(output, Finish):
        return output
    if isinstance(output, Mapping):
        parameters, kind = _rooted(_copied(output))
        return Finish(_by_schema(parameters, kind), kind)
    return _by_type(output)


def recorded(spec: ToolSpec, *, is_called: bool = True) -> Finish:
    """The tool as the log of a run has it, for who takes the run up and does not know the type.

    Args:
        spec: What the log says of it.
        is_called: Whether the run may still call it; else it is there for its name alone.

    Raises:
        MissingExtra: The validator of JSON Schema is not installed, and it may be called.
    """
    kind = str(spec.answer)
    ended = _Reader(spec.parameters, lambda _: _ENDED, _plain(kind))
    made = Finish(_by_schema(spec.parameters, kind) if is_called else ended, kind)
    made.spec = spec
    return made


def with_finish(tools: Mapping[str, ToolPort], made: Finish) -> dict[str, ToolPort]:
    """These tools and `finish`.

    Raises:
        ConfigError: One of them has that name, or would end the run with an answer of its own.
    """
    if FINISH in tools:
        raise ConfigError(
            f"a tool is called {FINISH}, as the one is by which output= is given: give yours another name"
        )
    final = [name for name, one in tools.items() if one.spec.final]
    if final:
        raise ConfigError(
            f"the tool {final[0]} ends a run with its result, which output= says nothing of: leave final=True, or "
            "output=, out"
        )
    return {**tools, FINISH: made}


def reader_of(tools: Mapping[str, ToolPort]) -> Callable[[str], Any] | None:
    """How the answers of runs with these tools are read; None where they are text."""
    tool = tools.get(FINISH)
    return tool.read if isinstance(tool, Finish) else None


def partial(text: str) -> Any:
    """What is known of an answer that is still being written (`Delta.answer`, joined): the object so far.

    Texts grow; numbers, words and names come when they are whole, because more of them would be something else. An
    answer that is no object stands under `answer`. Nothing is validated.

    Args:
        text: The beginning of a JSON object.

    Returns:
        The value so far; None where there is nothing yet.

    Raises:
        ValueError: It is not the beginning of JSON.
    """
    from pydantic_core import from_json

    text = text.lstrip()
    outside = _STRINGS.sub("", text)
    if '"' not in outside and (number := _NUMBER.search(text)) is not None:
        text = text[: number.start()]
    return from_json(text, allow_partial="trailing-strings") if text else None


_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER = re.compile(r"[-+.\deE]+$")


# --- by a type ----------------------------------------------------------------------------------------


_OF_TOOL = f"tool {FINISH!r}: the type of parameter {ANSWER!r}, "


def _by_type(output: Any) -> Finish:
    from tenlines.tools import schema

    if isinstance(output, FunctionType | BuiltinFunctionType):
        raise ConfigError(f"output=: {output.__name__} is a function: give the type of the answer, such as a dataclass")
    signature = Signature((Parameter(ANSWER, output),), "", None, False, ())
    try:
        built = schema.build(FINISH, signature, finish, "refuse", {})
    except ConfigError as error:
        raise ConfigError(f"output=: {str(error).removeprefix(_OF_TOOL).replace(', cannot', ' cannot', 1)}") from error
    properties: Any = built.parameters["properties"]
    defs: JsonObject = {key: built.parameters[key] for key in ("$defs",) if key in built.parameters}
    parameters, kind = _rooted({**properties[ANSWER], **defs})
    is_value = kind == "value"

    def read(arguments: JsonObject) -> Any:
        wrapped = arguments if is_value else {ANSWER: arguments}
        return built.validate(msgspec.json.encode(wrapped), strict=True)[ANSWER]

    def problem(arguments: JsonObject) -> str:
        return _problem(read, parameters, arguments, 0 if is_value else 1)

    return Finish(_Reader(parameters, problem, read), kind)


def _problem(read: Callable[[JsonObject], Any], parameters: JsonObject, arguments: JsonObject, inside: int) -> str:
    """What pydantic says of arguments. It looks at them from outside: the first step of each path is ours."""
    from pydantic import ValidationError

    try:
        read(arguments)
    except ValidationError as error:  # what else a validator raises is the driver's to tell, as of every tool
        found = error.errors(include_url=False, include_input=False)
        own = [{**one, "loc": one["loc"][inside:]} for one in found]
        return problems.explain(FINISH, parameters, arguments, own)
    return ""


# --- by a schema --------------------------------------------------------------------------------------


def _by_schema(parameters: JsonObject, kind: str) -> _Reader:
    if importlib.util.find_spec("jsonschema") is None:
        raise MissingExtra("an answer by a JSON Schema", "schemas")
    from tenlines.tools.mcp.schemas import Checker, Unusable

    try:
        checker = Checker(FINISH, parameters)
    except Unusable as error:
        raise ConfigError(f"output=: {str(error).replace('its parameters are', 'it is')}") from None

    def problem(arguments: JsonObject) -> str:
        from referencing.exceptions import Unresolvable

        try:
            return checker.problem(arguments)
        except Unresolvable as error:
            return f"{FINISH} did not run: its schema cannot be followed: {str(error)[:200]}"

    plain = _plain(kind)

    def read(arguments: JsonObject) -> JsonValue:
        if found := problem(arguments):
            raise ValueError(found)
        return plain(arguments)

    return _Reader(parameters, problem, read)


def _plain(kind: str) -> Callable[[JsonObject], JsonValue]:
    """What of arguments is the answer, as a plain value."""
    return lambda arguments: arguments[ANSWER] if kind == "value" else arguments


def _copied(output: Mapping[str, Any]) -> JsonObject:
    try:
        return cast(JsonObject, msgspec.json.decode(msgspec.json.encode(dict(output))))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"output=: a dict is a JSON Schema, and this one is not JSON: {error}") from error


def _rooted(schema: JsonObject) -> tuple[JsonObject, str]:
    """A schema of arguments, with an object at its root; and what the answer is of them."""
    defs: JsonObject = {key: value for key, value in schema.items() if key in ("$defs", "definitions")}
    root = _root(schema, defs)
    if root.get("type") == "object" or ("type" not in root and "properties" in root):
        return {"type": "object", **root}, "object"
    inner = {key: value for key, value in schema.items() if key not in defs}
    wrapped: JsonObject = {"type": "object", "properties": {ANSWER: inner}, "required": [ANSWER]}
    return {**wrapped, "additionalProperties": False, **defs}, "value"


def _root(schema: JsonObject, defs: JsonObject) -> JsonObject:
    """The schema, or what it refers to as a whole: a type that holds itself is described so."""
    reference, named = schema.get("$ref"), defs.get("$defs")
    if not isinstance(reference, str) or not isinstance(named, dict):
        return schema
    name = reference.removeprefix("#/$defs/")
    found = named.get(name)
    if not isinstance(found, dict):
        return schema
    others = {key: value for key, value in named.items() if key != name}
    is_used = f'"{reference}"'.encode() in msgspec.json.encode([found, others])
    plain = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
    kept: JsonObject = {"$defs": named if is_used else others} if others or is_used else {}
    return {**found, **plain, **kept}
