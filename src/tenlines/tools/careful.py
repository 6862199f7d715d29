"""The functions beside a tool: who may run a call, what became of one after a crash, how to take one back.

They are read when the tool is made, so that a mistake shows at once. They always run in this process.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from tenlines.errors import ConfigError
from tenlines.ports import Allow, Ask, CallContext, GuardedCall, Opinion
from tenlines.tools import signature
from tenlines.tools.signature import EMPTY, Signature

Approve: TypeAlias = bool | Callable[..., Opinion | bool]
"""What `@tool(approve=...)` takes: a function is called with the `GuardedCall`, after `self` where it is a method."""
Role: TypeAlias = Literal["undo", "reconcile"]

RESULT = "result"
"""The parameter of an undo that gets what the call returned, as text."""


class Function(NamedTuple):
    """A function that is written beside a tool, which may be a method of the same class."""

    function: Callable[..., Any]
    of_class: bool
    """It is a class method."""

    def bound(self, target: Any) -> Callable[..., Any]:
        """The same, bound to the object that the tool is bound to."""
        if not signature.takes_self(self.function):
            return self.function
        if self.of_class and not isinstance(target, type):
            target = type(target)
        return types.MethodType(self.function, target)


class Permission(NamedTuple):
    """An `approve`."""

    function: Function | None
    """None asks a person about every call."""

    def opinion(self, target: Any, call: GuardedCall) -> Opinion:
        """What it says of a call. True and False say whether a person has to be asked. May raise anything."""
        said = True if self.function is None else self.function.bound(target)(call)
        if isinstance(said, bool):
            return Ask() if said else Allow()
        opinion: Opinion = said
        return opinion


class Beside(NamedTuple):
    """An `undo` or a `reconcile`."""

    function: Function
    takes: frozenset[str]
    """Parameters of the tool that it asks for."""
    takes_rest: bool
    """It has `**kwargs`, which get all the others."""
    takes_result: bool
    context_name: str

    def call(self, target: Any, arguments: Mapping[str, Any], ctx: CallContext, result: str = "") -> Any:
        """Call it with what it asks for. It may be async, and may raise anything."""
        given = {name: value for name, value in arguments.items() if self.takes_rest or name in self.takes}
        if self.takes_result:
            given[RESULT] = result
        if self.context_name:
            given[self.context_name] = ctx
        return self.function.bound(target)(**given)


def read_approve(tool: str, approve: Approve, of: Callable[..., Any]) -> Permission | None:
    """Read what `approve` was given; None where no leave is needed.

    Raises:
        ConfigError: It is neither a bool nor a function of one call.
    """
    if isinstance(approve, bool):
        return Permission(None) if approve else None
    who = f"approve of tool {tool!r}"
    one = _function(who, approve, of, "True, or a function of the tenlines.ports.GuardedCall")
    refuse_waiting(who, one.function)
    refuse_parameters(who, one.bound(object()))
    return Permission(one)


def read_beside(
    role: Role, tool: str, given: Callable[..., Any] | None, takes: Signature, of: Callable[..., Any]
) -> Beside | None:
    """Read an `undo` or a `reconcile`; None where there is none.

    Args:
        role: Which of them.
        tool: Name of the tool, for messages.
        given: What the decorator was given.
        takes: What the tool takes.
        of: The function of the tool.

    Raises:
        ConfigError: It cannot be called with what is known of a call.
    """
    if given is None:
        return None
    who = f"{role} of tool {tool!r}"
    one = _function(who, given, of, "a function")
    if _yields(one.function):
        raise ConfigError(f"{who} yields, so that calling it would do nothing: make it a plain or an async function")
    read, own = signature.read(who, one.function), {parameter.name for parameter in takes.parameters}
    asked = {parameter.name: parameter.default for parameter in read.parameters}
    takes_result = role == "undo" and RESULT in asked
    if takes_result:
        _refuse_two_results(who, own)
        del asked[RESULT]
    for name, default in asked.items():
        if name not in own and default is EMPTY:
            raise ConfigError(f"{who} takes {name!r}, which the tool does not have: {_possible(role, takes)}")
    return Beside(one, frozenset(asked), read.extra is not None, takes_result, read.context_name)


def refuse_waiting(who: str, function: Callable[..., Any]) -> None:
    """Refuse what does not give its value when it is called.

    Raises:
        ConfigError: It is async or yields.
    """
    if inspect.iscoroutinefunction(signature.unwrap(function)) or _yields(function):
        raise ConfigError(f"{who} is async or yields: leave is given without waiting, so make it a plain function")


def refuse_parameters(who: str, function: Callable[..., Any]) -> None:
    """Refuse what cannot be called with a call alone.

    Raises:
        ConfigError: It takes none, or has to be given more.
    """
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise ConfigError(f"{who} has to take one argument, the tenlines.ports.GuardedCall ({error})") from None
    except ValueError:  # written in C, and does not tell
        return


def described(value: object) -> str:
    """A value in a message: itself where it is short, else its type."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    is_short = isinstance(value, str | bytes | int | float)
    return f"the {kind} {repr(value)[:60]}" if is_short else f"an object of the type {kind}"


def _function(who: str, given: Any, of: Callable[..., Any], wanted: str) -> Function:
    of_class = isinstance(given, classmethod)
    function = given.__func__ if isinstance(given, classmethod | staticmethod) else given
    if not callable(function) or isinstance(function, type):
        raise ConfigError(f"{who} is {described(given)}: give {wanted}")
    if signature.takes_self(function) and not (signature.takes_self(of) or isinstance(of, types.MethodType)):
        raise ConfigError(f"{who} is a method, and the tool is none: take it from an object, as in `shop.cancel`")
    return Function(function, of_class)


def _yields(function: Callable[..., Any]) -> bool:
    inner = signature.unwrap(function)
    return inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)


def _refuse_two_results(who: str, own: set[str]) -> None:
    if RESULT in own:
        raise ConfigError(
            f"{who} takes {RESULT!r}, which is what the call returned, and the tool has a parameter of that name too: "
            "give that another name"
        )


def _possible(role: Role, takes: Signature) -> str:
    names = [parameter.name for parameter in takes.parameters] + ([RESULT] if role == "undo" else [])
    return f"it may take {', '.join([*names, 'and a CallContext'])}" if names else "it may take a CallContext"
