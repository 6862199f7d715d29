"""What a function takes, read once when it becomes a tool. No pydantic here, so that decorating costs nothing."""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tenlines.errors import ConfigError
from tenlines.ports import CallContext

_CONTEXT_TEXT = re.compile(r"(Optional\[)?([A-Za-z_.]+\.)?CallContext\]?(\s*\|\s*None)?")
_NO_NAMES: Mapping[str, Any] = {}

EMPTY: Any = inspect.Parameter.empty
"""There is no default."""


class Parameter(NamedTuple):
    """One parameter that a model fills in."""

    name: str
    annotation: Any
    """A type, or text that could not be resolved yet (it names something that is defined further down)."""
    default: Any = EMPTY


class Signature(NamedTuple):
    """What a tool takes."""

    parameters: tuple[Parameter, ...]
    context_name: str
    """The parameter that gets the `CallContext`, or ""."""
    extra: Parameter | None
    """The `**kwargs` parameter, which takes every other key."""
    takes_self: bool
    """A method as it stands in a class: it has to be bound before it can be called."""
    hidden: tuple[str, ...]
    """With `**kwargs`: the names that the runtime or the program fills in, which no extra key may take."""


def unwrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that was written, behind partials, bound methods and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, types.FunctionType | types.BuiltinFunctionType | type):
        call = type(function).__call__
        function = call if isinstance(call, types.FunctionType) else function
    inner: Callable[..., Any] = inspect.unwrap(function)
    return inner


def takes_self(function: Callable[..., Any]) -> bool:
    """Whether it is a method as it stands in a class, which has to be bound before it can be called."""
    if not isinstance(function, types.FunctionType):
        return False
    return next(iter(inspect.signature(function).parameters), "") in ("self", "cls")


def read(who: str, function: Callable[..., Any], names: Mapping[str, Any] = _NO_NAMES) -> Signature:
    """Read the signature of a function that is called with arguments by name.

    Args:
        who: What it is, for messages: `tool 'pay'`.
        function: Anything that can be called.
        names: Local names of the place where it was defined, for types that are defined beside it.

    Raises:
        ConfigError: It takes something that a model cannot give.
    """
    try:
        listed = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{who}: its parameters cannot be read ({error}): wrap it in a def") from error
    is_method = takes_self(function)
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    parameters, context_name, extra = list[Parameter](), "", None
    for one in listed[1:] if is_method else listed:
        _refuse_positional(who, one)
        if one.name in fixed:
            continue  # set by the program: the model neither sees nor overrides it
        parameter = Parameter(one.name, resolve(one.annotation, function, names), one.default)
        if is_context(parameter.annotation):
            if context_name:
                raise ConfigError(f"{who} asks for a CallContext twice: {context_name!r} and {one.name!r}")
            context_name = one.name
        elif one.kind is one.VAR_KEYWORD:
            extra = parameter
        else:
            parameters.append(parameter)
    hidden = _hidden(function, {one.name for one in parameters}) if extra is not None else ()
    return Signature(tuple(parameters), context_name, extra, is_method, hidden)


def _hidden(function: Callable[..., Any], shown: set[str]) -> tuple[str, ...]:
    all_of_them = inspect.signature(unwrap(function)).parameters.values()
    return tuple(one.name for one in all_of_them if one.kind is not one.VAR_KEYWORD and one.name not in shown)


def _refuse_positional(who: str, one: inspect.Parameter) -> None:
    if one.kind is one.POSITIONAL_ONLY:
        raise ConfigError(
            f"{who}: parameter {one.name!r} is positional-only, and arguments are passed by name: "
            "remove the `/`, or wrap the function in a def"
        )
    if one.kind is one.VAR_POSITIONAL:
        raise ConfigError(
            f"{who}: parameter '*{one.name}' takes arguments without names, and they are passed by name: "
            f"use one parameter of the type list, for example `{one.name}: list[str]`"
        )


def resolve(annotation: Any, function: Callable[..., Any], names: Mapping[str, Any] = _NO_NAMES) -> Any:
    """The type that an annotation means; the annotation itself where a name in it is not known (yet)."""
    if annotation is EMPTY:
        return Any
    if isinstance(annotation, str) and _CONTEXT_TEXT.fullmatch(annotation.strip()):
        return CallContext  # imported for the type checker only, as it is often done
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    known = getattr(unwrap(function), "__globals__", {})
    try:
        return typing.get_type_hints(holder, known, dict(names), include_extras=True)["it"]
    except (NameError, AttributeError, SyntaxError, TypeError):
        return annotation


def is_context(annotation: Any) -> bool:
    """Whether a parameter of this type is filled in by the runtime."""
    if annotation is CallContext:
        return True
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return set(typing.get_args(annotation)) <= {CallContext, types.NoneType}
    return typing.get_origin(annotation) is typing.Annotated and is_context(typing.get_args(annotation)[0])
