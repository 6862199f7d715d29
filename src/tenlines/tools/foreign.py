"""Tools as others write them: a definition in a provider's format with the function that does it, and LangChain's.

```python
Agent(model, tools=[(definition, function), langchain_tool, as_tool(definition, function, read_only=True)])
```

Arguments are checked against the JSON Schema before anything runs: nothing is coerced, and a parameter that the schema
does not name is refused, unless the schema says something of such. What a definition does not say is set by the options
of `as_tool`; without any, a tool is what it is everywhere, something that may take effect once.
It needs the extra `tenlines[schemas]`; of LangChain nothing is imported here.
"""

from __future__ import annotations

import base64
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypedDict, Unpack, cast

import msgspec

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import Image, JsonObject, Part, Text
from tenlines.errors import ConfigError, MissingExtra
from tenlines.ports import Allow, Bound, CallContext, GuardedCall, Invalid, Opinion, Rendered
from tenlines.tools import careful, signature
from tenlines.tools.careful import Approve, described
from tenlines.tools.plan import BYTES_PER_TOKEN, MIN_RESULT, NAME
from tenlines.tools.render import render
from tenlines.tools.tool import Tool

_SCHEMA_KEYS = ("input_schema", "inputSchema", "parameters")
FORMS = (
    "OpenAI's {'type': 'function', 'function': {'name', 'description', 'parameters'}}, the same flat, or Anthropic's "
    "{'name', 'description', 'input_schema'}"
)


class ForeignError(Exception):
    """A tool of LangChain says that it failed."""


class ForeignOptions(TypedDict, total=False):
    """What a definition does not say; each as in `tenlines.tool`."""

    name: str
    description: str
    read_only: bool
    idempotent: bool
    repeatable: bool
    final: bool
    timeout_s: float | None
    approve: Approve
    max_result: int


class Definition(NamedTuple):
    """What is told of a tool, and how it is called."""

    name: str
    description: str
    parameters: JsonObject
    run: Callable[[dict[str, Any], CallContext], Any]
    is_async: bool


# --- the tool -----------------------------------------------------------------------------------------


class ForeignTool:
    """A tool that was defined elsewhere. Made by `as_tool`."""

    is_killable = False

    def __init__(self, definition: Definition, options: ForeignOptions) -> None:
        self._definition, self._options = definition, options
        self.is_async = definition.is_async
        self.spec = _spec(definition, options)
        self._checker = _checker(self.spec.name, definition.parameters)
        self._approve = careful.read_approve(self.spec.name, options.get("approve", False), definition.run)
        max_result = options.get("max_result", 8_000)
        if max_result < MIN_RESULT:
            raise ConfigError(f"tool {self.spec.name!r}: max_result={max_result} tokens: give at least {MIN_RESULT}")
        self._max_bytes = max_result * BYTES_PER_TOKEN

    def __repr__(self) -> str:
        return f"<tool {self.spec.name}>"

    def loaded_from(self, source: str) -> ForeignTool:
        """The same tool, with the file that it can be loaded from again."""
        made = ForeignTool(self._definition, self._options)
        made.spec = msgspec.structs.replace(self.spec, source=source)
        return made

    def check(self, arguments: JsonObject) -> Bound | Invalid:
        """Validate against the schema. Nothing has run yet."""
        from referencing.exceptions import Unresolvable

        try:
            problem = self._checker.problem(arguments)
            if not problem:
                return Bound(arguments)
            mended, remarks = self._checker.mended(arguments)
            if remarks and not self._checker.problem(mended):
                return Bound(mended, remarks)
        except Unresolvable as error:
            return Invalid(f"{self.spec.name} did not run: its schema cannot be followed: {str(error)[:200]}")
        return Invalid(problem)

    def call(self, bound: Bound, ctx: CallContext) -> Any:
        """Run it. May raise anything."""
        return self._definition.run(bound.arguments, ctx)

    def render(self, value: Any) -> Rendered:
        """The value in bounded parts."""
        return render(value, self._max_bytes)

    def permit(self, call: GuardedCall) -> Opinion:
        """What `approve` says of a call. May raise anything."""
        return Allow() if self._approve is None else self._approve.opinion(None, call)


def as_tool(thing: Any, function: Callable[..., Any] | None = None, **options: Unpack[ForeignOptions]) -> ForeignTool:
    """Make a tool of what was written for something else.

    Args:
        thing: The definition of a tool as a dict, in the form of OpenAI (Chat Completions or Responses) or Anthropic;
            or a tool of LangChain.
        function: What does it, plain or async; called with the arguments by name, and with a `CallContext` where it
            asks for one. None for a tool of LangChain, which has its own.
        **options: `read_only`, `idempotent`, `repeatable`, `final`, `timeout_s`, `approve`, `max_result`, `name`,
            `description`, as in `tenlines.tool`.

    Raises:
        ConfigError: Something is missing or does not fit; the message says what.
        MissingExtra: The validator of JSON Schema is not installed.
    """
    unknown = sorted(set(options) - set(ForeignOptions.__annotations__))
    if unknown:
        raise ConfigError(f"as_tool: there is no option {unknown[0]!r}; {', '.join(ForeignOptions.__annotations__)}")
    if is_langchain(thing):
        if function is not None:
            raise ConfigError(f"tool {thing.name!r} of LangChain has its own function: leave the other one out")
        return ForeignTool(_from_langchain(thing), options)
    if not isinstance(thing, Mapping):
        raise ConfigError(f"{described(thing)} is no definition of a tool. A definition is {FORMS}")
    return ForeignTool(_defined(thing, function), options)


def _spec(definition: Definition, options: ForeignOptions) -> ToolSpec:
    name = options.get("name", definition.name)
    if NAME.fullmatch(name) is None:
        raise ConfigError(
            f"{name[:80]!r} is no name for a tool: letters, digits, _ and -, at most 64, not starting with a digit. "
            'Give one: as_tool(..., name="...")'
        )
    timeout_s = options.get("timeout_s")
    if timeout_s is not None and not timeout_s > 0:
        raise ConfigError(f"tool {name!r}: timeout_s={timeout_s}: give seconds above 0, or None")
    return ToolSpec(
        name=name,
        description=inspect.cleandoc(options.get("description", definition.description)).strip(),
        parameters=definition.parameters,
        read_only=options.get("read_only", False),
        idempotent=options.get("idempotent", False),
        repeatable=options.get("repeatable", False),
        final=options.get("final", False),
        approve=options.get("approve", False) is not False,
        timeout_s=timeout_s,
    )


def _checker(name: str, parameters: JsonObject) -> Any:
    if importlib.util.find_spec("jsonschema") is None:
        raise MissingExtra(f"tool {name!r}, which has a JSON Schema of its own,", "schemas")
    from tenlines.tools.mcp.schemas import Checker, Unusable

    try:
        return Checker(name, _closed(parameters))
    except Unusable as error:
        raise ConfigError(f"tool {name!r}: {error}") from None


_OPENING = ("additionalProperties", "unevaluatedProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf")


def _closed(parameters: JsonObject) -> JsonObject:
    """The schema that arguments are checked against: a parameter that it does not name is a mistake."""
    return parameters if any(key in parameters for key in _OPENING) else {**parameters, "additionalProperties": False}


# --- definitions --------------------------------------------------------------------------------------


def is_definition(thing: Any) -> bool:
    """Whether a dict is the definition of a tool, and no table of functions."""
    if not isinstance(thing, Mapping):
        return False
    if thing.get("type") == "function" and (isinstance(thing.get("function"), Mapping) or "name" in thing):
        return True
    return isinstance(thing.get("name"), str) and any(isinstance(thing.get(key), Mapping) for key in _SCHEMA_KEYS)


def without_function(thing: Mapping[str, Any]) -> ConfigError:
    """The error for a definition that stands alone."""
    name = _fields(thing).get("name")
    return ConfigError(
        f"the definition of tool {name!r} has no function that does it: give both, as in "
        "tools=[(definition, function)], or as_tool(definition, function, read_only=True)"
    )


def _fields(thing: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = thing.get("function")
    return inner if isinstance(inner, Mapping) else thing


def _defined(thing: Mapping[str, Any], function: Callable[..., Any] | None) -> Definition:
    fields = _fields(thing)
    name, text = fields.get("name"), fields.get("description") or ""
    kind = thing.get("type")
    if kind not in (None, "function", "custom"):
        raise ConfigError(f"a tool of the type {kind!r} runs at its provider and has no function here: leave it out")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"the definition of a tool lacks 'name': {str(dict(thing))[:200]}. A definition is {FORMS}")
    if not isinstance(text, str):
        raise ConfigError(f"tool {name!r}: 'description' is {described(text)}: give a text")
    if function is None:
        raise without_function(thing)
    if not callable(function) or isinstance(function, type):
        raise ConfigError(f"tool {name!r}: what does it is {described(function)}: give a function")
    parameters = _parameters(name, fields)
    function = function.__wrapped__ if isinstance(function, Tool) else function
    return Definition(name, text, parameters, _caller(name, function, parameters), _is_async(function))


def _parameters(name: str, fields: Mapping[str, Any]) -> JsonObject:
    given = next((fields[key] for key in _SCHEMA_KEYS if fields.get(key) is not None), None)
    if given is None:
        return {"type": "object", "properties": {}}
    if not isinstance(given, Mapping):
        raise ConfigError(f"tool {name!r}: its parameters are {described(given)}: give a JSON Schema of an object")
    try:
        copied = msgspec.json.decode(msgspec.json.encode(given))  # what the caller changes later changes nothing here
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"tool {name!r}: its parameters are not JSON: {error}") from error
    return cast(JsonObject, {"type": "object", **copied})


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(signature.unwrap(function))


def _caller(
    name: str, function: Callable[..., Any], parameters: JsonObject
) -> Callable[[dict[str, Any], CallContext], Any]:
    taken = signature.read(f"tool {name!r}", function)
    _refuse_mismatch(name, taken, parameters)

    def run(arguments: dict[str, Any], ctx: CallContext) -> Any:
        more = {taken.context_name: ctx} if taken.context_name else {}
        return function(**arguments, **more)

    return run


def _refuse_mismatch(name: str, taken: signature.Signature, parameters: JsonObject) -> None:
    """A call that fits the definition must fit the function."""
    properties, required = parameters.get("properties"), parameters.get("required")
    named = list(properties) if isinstance(properties, dict) else []
    own = {one.name: one.default for one in taken.parameters}
    lacking = [one for one in named if one not in own] if taken.extra is None else []
    if lacking:
        raise ConfigError(f"tool {name!r}: its definition has {lacking[0]!r}, which the function does not take")
    always = required if isinstance(required, list) else []
    unfilled = [one for one, default in own.items() if default is signature.EMPTY and one not in always]
    if unfilled:
        raise ConfigError(
            f"tool {name!r}: the function needs {unfilled[0]!r}, which its definition does not require: require it, or "
            "give the parameter a default"
        )


# --- LangChain ----------------------------------------------------------------------------------------


def is_langchain(thing: Any) -> bool:
    """Whether it is a tool of LangChain, by its shape."""
    if isinstance(thing, type | Tool) or not isinstance(getattr(thing, "name", None), str):
        return False
    return hasattr(thing, "args_schema") and all(callable(getattr(thing, one, None)) for one in ("invoke", "ainvoke"))


def _from_langchain(thing: Any) -> Definition:
    schema = getattr(thing, "tool_call_schema", None) or thing.args_schema
    is_async = _has_async(thing)

    def run(arguments: dict[str, Any], ctx: CallContext) -> Any:
        # asked as a model asks: then it says whether it failed
        asked = {"type": "tool_call", "id": ctx.key, "name": thing.name, "args": arguments}
        return _awaited(thing.ainvoke(asked)) if is_async else _value(thing.invoke(asked))

    return Definition(thing.name, thing.description or "", _schema(thing.name, schema), run, is_async)


def _has_async(thing: Any) -> bool:
    """Whether it has async code of its own; all have `ainvoke`, which else takes a thread for the other."""
    if hasattr(thing, "coroutine"):
        return thing.coroutine is not None
    return not str(getattr(type(thing)._arun, "__module__", "")).startswith("langchain_core.")


def _schema(name: str, schema: Any) -> JsonObject:
    from tenlines.tools.schema import without_titles

    if isinstance(schema, Mapping):
        found: Any = dict(schema)
    elif hasattr(schema, "model_json_schema"):
        found = schema.model_json_schema()
    elif hasattr(schema, "schema"):
        found = schema.schema()
    else:
        raise ConfigError(f"tool {name!r} of LangChain has no schema of its arguments: give it an args_schema")
    found.pop("description", None)  # the tool's own, which stands beside it
    return _parameters(name, {"parameters": without_titles(found)})


async def _awaited(answer: Any) -> Any:
    return _value(await answer)


def _value(answer: Any) -> Any:
    """What a tool gave, out of the message that it is wrapped in.

    Raises:
        ForeignError: It says that it failed.
    """
    if not (hasattr(answer, "content") and hasattr(answer, "status")):
        return answer
    content = answer.content
    if answer.status == "error":
        raise ForeignError(content if isinstance(content, str) else str(content))
    return [_part(one) for one in content] if isinstance(content, list) else content


def _part(block: Any) -> Part | Any:
    match block:
        case {"type": "text", "text": str(text)}:
            return Text(text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return Image("image/*", url=url)
        case {"type": "image", "base64": str(data), "mime_type": str(kind)}:
            return Image(kind, base64.b64decode(data))
        case _:
            return block
