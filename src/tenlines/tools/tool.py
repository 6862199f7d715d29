"""The `@tool` decorator: a function becomes something that a model can call, and stays the function it was."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import re
import sys
import threading
import types
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

import msgspec

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject
from tenlines.errors import ConfigError
from tenlines.ports import Bound, CallContext, Invalid, Rendered
from tenlines.tools import problems, signature
from tenlines.tools.render import render
from tenlines.tools.signature import Signature

if TYPE_CHECKING:
    from tenlines.tools.isolated import Location
    from tenlines.tools.schema import Schema

P = ParamSpec("P")
R = TypeVar("R")

NAME = re.compile(r"[a-zA-Z_][A-Za-z0-9_-]{0,63}")
"""What every provider accepts as the name of a tool."""
CHARS_PER_TOKEN = 4
MIN_RESULT = 100
"""Tokens. Below this there is no room to say what is missing."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `@tool` was told."""

    name: str | None = None
    description: str | None = None
    read_only: bool = False
    idempotent: bool = False
    repeatable: bool = False
    final: bool = False
    timeout_s: float | None = None
    isolate: bool = False
    max_result: int = 8_000
    extra: Literal["refuse", "ignore"] = "refuse"


class _Plan:
    """What is known of a function, shared by all objects that it is bound to. The schema is built at first need."""

    is_classmethod = False
    source = ""

    def __init__(self, function: Callable[..., Any], options: Options, names: Mapping[str, Any]) -> None:
        self.options, self.function = options, function
        self.name = _name_of(function, options.name)
        self.is_async = _is_async(function)
        _refuse_options(self.name, options)
        _refuse_generators(self.name, function)
        self.signature: Signature = signature.read(self.name, function, names)
        self.location: Location | None = None
        if options.isolate:
            from tenlines.tools.isolated import locate

            self.location = locate(self.name, function)

    def changed(self, name: str, source: str, location: Location | None) -> _Plan:
        plan = copy.copy(self)
        plan.name, plan.source, plan.location = _name_of(self.function, name), source, location
        for built in ("schema", "validate", "is_plain", "spec"):
            plan.__dict__.pop(built, None)
        return plan

    @functools.cached_property
    def schema(self) -> Schema:
        """Raises `ConfigError` where a type has no JSON form."""
        from tenlines.tools.schema import build  # pydantic is slow to import: at first need

        return build(self.name, self.signature, self.function, self.options.extra, self._texts[1])

    @functools.cached_property
    def validate(self) -> Callable[..., dict[str, Any]]:
        """Kept here because `check` needs it at every call."""
        return self.schema.validate

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether valid arguments are ready as they are."""
        special = self.location is not None or self.schema.late_defaults or self.signature.hidden
        return not special and self.options.extra == "refuse"

    @functools.cached_property
    def spec(self) -> ToolSpec:
        options = self.options
        return ToolSpec(
            name=self.name,
            description=self._texts[0]
            if options.description is None
            else inspect.cleandoc(options.description).strip(),
            parameters=self.schema.parameters,
            read_only=options.read_only,
            idempotent=options.idempotent,
            repeatable=options.repeatable,
            final=options.final,
            timeout_s=options.timeout_s,
            source=self.source,
        )

    @functools.cached_property
    def _texts(self) -> tuple[str, dict[str, str]]:
        """The description, and those of the parameters, from the docstring."""
        text = _docstring(self.function)
        if not text:
            return "", {}
        import docstring_parser  # only needed where there is a docstring

        try:
            parsed = docstring_parser.parse(text)
        except docstring_parser.ParseError:
            return text, {}
        described = "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part)
        params = {one.arg_name.lstrip("*"): one.description.strip() for one in parsed.params if one.description}
        return described, params


class Tool(Generic[P, R]):
    """A tool made of a function. Made by `tool`; calling it calls the plain function.

    Attributes:
        name: What the model calls it.
        needs_instance: It is a method as it stands in its class: `shop.find` is a tool, `Shop.find` is not yet.
    """

    def __init__(self, function: Callable[P, R], plan: _Plan, *, is_bound: bool = False) -> None:
        self._function, self._plan = function, plan
        self.name = plan.name
        self.needs_instance = plan.signature.takes_self and not is_bound
        self._max_chars = plan.options.max_result * CHARS_PER_TOKEN
        self.__doc__ = _docstring(function)
        self.__name__ = getattr(function, "__name__", plan.name)
        self.__qualname__ = getattr(function, "__qualname__", plan.name)
        self.__module__ = getattr(function, "__module__", type(function).__module__)
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the plain function: no check, no process of its own."""
        return self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool[..., R]:
        """`obj.method`: the tool that works on `obj`."""
        target = owner if self._plan.is_classmethod else instance
        if not self.needs_instance or target is None:
            return self
        return Tool(types.MethodType(self._function, target), self._plan, is_bound=True)

    def renamed(self, name: str) -> Tool[P, R]:
        """The same tool under another name."""
        return self._changed(name, self._plan.source, self._plan.location)

    def loaded_from(self, source: str) -> Tool[P, R]:
        """The same tool, with the file that it can be loaded from again."""
        return self._changed(self.name, source, self._plan.location)

    def in_process(self) -> Tool[P, R]:
        """The same tool, run in this process whatever `isolate` says."""
        return self._changed(self.name, self._plan.source, None)

    def _changed(self, name: str, source: str, location: Location | None) -> Tool[P, R]:
        return Tool(self._function, self._plan.changed(name, source, location), is_bound=not self.needs_instance)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    # --- the tool as a driver uses it -----------------------------------------------------------------

    @property
    def spec(self) -> ToolSpec:
        """What the machine and the model know of it.

        Raises:
            ConfigError: A parameter has a type without a JSON form, or the tool is a method without its object.
        """
        if self.needs_instance:
            owner = self.__qualname__.rpartition(".")[0] or "the class"
            raise ConfigError(
                f"tool {self.name!r} is a method: pass it from an object, as `{owner}(...).{self.__name__}`"
            )
        return self._plan.spec

    @property
    def is_async(self) -> bool:
        """Whether `call` returns an awaitable."""
        return self._plan.is_async and self._plan.location is None

    @property
    def is_killable(self) -> bool:
        """Whether giving the call up really ends it."""
        return self._plan.location is not None

    def check(self, arguments: JsonObject) -> Bound | Invalid:
        """Validate strictly; nothing has run yet. `tenlines.tools.schema` says what is accepted."""
        try:
            bound = self._plan.validate(_encode(arguments), strict=True)
        except Exception as error:  # noqa: BLE001  # a validator inside the tool's own types is foreign code
            return self._explain(arguments, error)
        return Bound(bound) if self._plan.is_plain else self._complete(arguments, bound, ())

    def _complete(self, arguments: JsonObject, bound: dict[str, Any], remarks: tuple[str, ...]) -> Bound | Invalid:
        """The rules that most tools do not need."""
        plan = self._plan
        for name in plan.signature.hidden:
            if name in arguments:
                return Invalid(problems.reserved(self.name, name, plan.schema.parameters))
        if len(arguments) > len(bound):
            remarks += (problems.ignored(self.name, [name for name in arguments if name not in bound]),)
        if plan.location is not None:  # the child gets JSON, and makes the types itself
            return Bound({name: value for name, value in arguments.items() if name in bound}, remarks)
        for name, default in plan.schema.late_defaults:
            if name not in bound:
                bound[name] = default.get_default(call_default_factory=True)
        return Bound(bound, remarks)

    def _explain(self, arguments: JsonObject, error: Exception) -> Bound | Invalid:
        from pydantic import ValidationError

        if not isinstance(error, ValidationError):
            return Invalid(problems.failed_check(self.name, error))
        schema = self._plan.schema
        arguments, remarks = problems.decoded(schema.parameters, arguments)
        if remarks:
            try:
                bound = schema.validate(_encode(arguments), strict=True)
            except ValidationError as second:
                error = second
            else:
                return self._complete(arguments, bound, remarks)
        errors = error.errors(include_url=False, include_input=False)
        return Invalid(problems.explain(self.name, schema.parameters, arguments, errors))

    def call(self, bound: Bound, ctx: CallContext) -> Any:
        """Run it. May raise anything. Returns an awaitable where `is_async`."""
        arguments: dict[str, Any] = bound.arguments
        if self._plan.location is not None:
            from tenlines.tools.isolated import run

            return run(self._plan.location, arguments, ctx, self._max_chars)
        context_name = self._plan.signature.context_name
        if context_name:
            arguments = {**arguments, context_name: ctx}
        function: Callable[..., Any] = self._function
        value = function(**arguments)
        return value if type(value) is str or self._plan.is_async else _finished(value)

    def render(self, value: Any) -> Rendered:
        """Turn the value into parts of at most `max_result` tokens. Never runs the tool again."""
        return value if type(value) is Rendered else render(value, self._max_chars)


class ToolOptions(TypedDict, total=False):
    """The arguments of `tool`, for type checkers."""

    name: str | None
    description: str | None
    read_only: bool
    idempotent: bool
    repeatable: bool
    final: bool
    timeout_s: float | None
    isolate: bool
    max_result: int
    extra: Literal["refuse", "ignore"]


@overload
def tool(function: Callable[P, R], /, **options: Unpack[ToolOptions]) -> Tool[P, R]: ...
@overload
def tool(**options: Unpack[ToolOptions]) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a tool: `@tool`, `@tool(read_only=True)`, or `tool(function, name="x")`.

    Name, description and parameters come from the function: its name, its docstring, its types and defaults.
    A parameter of the type `CallContext` is filled in by the runtime and not shown to the model. Functions, async
    functions, methods, callable objects and `functools.partial` will do; what a partial sets by name is hidden.

    Args:
        function: The function, where it is used without arguments.
        **options: In short, what each says:

            - `name`: what the model calls it (`[a-zA-Z_][A-Za-z0-9_-]{0,63}`).
            - `description`: what the model reads, in place of the docstring.
            - `read_only`: it has no effect. It may run beside others, and again after a crash.
            - `idempotent`: it is safe to repeat with the same `ctx.key`.
            - `repeatable`: the same call with the same result again and again is its job (polling).
            - `final`: its result is the answer and ends the run.
            - `timeout_s`: seconds after which the call is given up.
            - `isolate`: run it in a process of its own, which is killed when the call is given up.
            - `max_result`: tokens that a result may have (four characters each, marker included), at least 100.
            - `extra`: what to do with parameters that it does not have: `refuse`, or `ignore` and note it.

    Raises:
        ConfigError: The function takes or is something that a model cannot use. Types are looked at when the
            tool is given to an agent.
    """
    names = _local_names(sys._getframe(1))
    try:
        chosen = Options(**options)
    except TypeError as error:
        raise ConfigError(f"@tool: {str(error).replace('Options.__init__() ', '')}") from None
    if function is not None:
        return _make(function, chosen, names)
    return lambda decorated: _make(decorated, chosen, names)


def _make(function: Any, options: Options, names: Mapping[str, Any]) -> Tool[..., Any]:
    if isinstance(function, Tool):
        return _make(function.__wrapped__, options, names)
    is_classmethod = isinstance(function, classmethod)
    if isinstance(function, staticmethod | classmethod):
        function = function.__func__
    if isinstance(function, type):
        raise ConfigError(f"{function.__name__} is a class: pass an object of it, or the function that makes one")
    if not callable(function):
        raise ConfigError(f"a {type(function).__name__} cannot be called, so it cannot be a tool: pass a function")
    plan = _Plan(function, options, names)
    plan.is_classmethod = is_classmethod
    return Tool(function, plan)


def _local_names(frame: types.FrameType) -> Mapping[str, Any]:
    """Names that types may be found under, where the function is defined inside another or in a class."""
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


def _name_of(function: Callable[..., Any], chosen: str | None) -> str:
    if chosen is None:
        inner = function
        while isinstance(inner, functools.partial):
            inner = inner.func
        chosen = str(getattr(inner, "__name__", type(inner).__name__))
    if NAME.fullmatch(chosen) is None:
        raise ConfigError(
            f"{chosen[:80]!r} is no name for a tool: letters, digits, _ and -, at most 64, not starting with a digit. "
            'Give one: tool(function, name="...")'
        )
    return chosen


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(signature.unwrap(function))


def _refuse_generators(name: str, function: Callable[..., Any]) -> None:
    inner = signature.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ConfigError(f"tool {name!r} yields: a tool has one result, so return a list of what it yields")


def _refuse_options(name: str, options: Options) -> None:
    if options.max_result < MIN_RESULT:
        raise ConfigError(f"tool {name!r}: max_result={options.max_result} tokens: give at least {MIN_RESULT}")
    if options.timeout_s is not None and not options.timeout_s > 0:
        raise ConfigError(f"tool {name!r}: timeout_s={options.timeout_s}: give seconds above 0, or None")
    if options.extra not in ("refuse", "ignore"):
        raise ConfigError(f"tool {name!r}: extra={options.extra!r}: give 'refuse' or 'ignore'")


def _docstring(function: Callable[..., Any]) -> str:
    # not inspect.getdoc: it looks methods up by name in their class, where it would find this very tool
    text = signature.unwrap(function).__doc__
    if not text and not isinstance(function, types.FunctionType | types.MethodType | functools.partial):
        text = type(function).__doc__
    return inspect.cleandoc(text) if text else ""


def _finished(value: Any) -> Any:
    """The value of a plain function that returned something which is yet to run."""
    if isinstance(value, types.GeneratorType | types.AsyncGeneratorType):
        raise TypeError("it returned a generator, which has run nothing yet; a tool returns its values, as a list")
    if not hasattr(type(value), "__await__"):
        return value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_result(value))
    return _in_thread(value)


async def _result(value: Awaitable[Any]) -> Any:
    return await value


def _in_thread(value: Awaitable[Any]) -> Any:
    """A loop runs in this thread already (a plain call under the driver without a loop): use another one."""
    outcome: list[Any] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(_result(value)))
        except BaseException as error:  # noqa: BLE001  # the tool's own code; raised again in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
