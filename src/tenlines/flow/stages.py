"""Stages: functions without a body, each of which is one question to a model, typed in and out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints, overload

import msgspec
from pydantic import TypeAdapter
from pydantic_core import to_json

from tenlines.core.transcript import JsonObject
from tenlines.errors import ConfigError
from tenlines.flow.rounds import Want

P = ParamSpec("P")
R = TypeVar("R")


class Stage(Generic[P, R]):
    """One question to a model. Made by `stage`; calling it gives what a workflow awaits.

    Attributes:
        name: How it is called in the log.
        instructions: What the model is told: the docstring.
        model: Which model, where it is not that of the workflow.
        attempts: Replies that it may take to give an answer of the right type.
    """

    def __init__(self, function: Callable[P, Coroutine[Any, Any, R]], model: Any, attempts: int) -> None:
        self.function, self.model, self.attempts = function, model, attempts
        self.name = function.__name__
        self.instructions = inspect.cleandoc(function.__doc__ or "")
        self.signature = inspect.signature(function)
        if not self.instructions:
            raise ConfigError(f"stage {self.name!r} needs a docstring: it is what the model is told")
        if any(one.kind in _VARIABLE for one in self.signature.parameters.values()):
            raise ConfigError(f"stage {self.name!r}: name its parameters, instead of *args and **kwargs")
        self.__doc__, self.__name__, self.__wrapped__ = function.__doc__, self.name, function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Want[R]:
        """Ask; to be awaited in a workflow."""
        return Want(self.name, as_json(self.signature, args, kwargs))

    def __repr__(self) -> str:
        return f"<stage {self.name}>"

    @property
    def output(self) -> Any:
        """The type of the answer; `str` where none is written."""
        return returned_type(self.function)


_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@overload
def stage(function: Callable[P, Coroutine[Any, Any, R]], /) -> Stage[P, R]: ...
@overload
def stage(*, model: Any = None, attempts: int = 2) -> Callable[[Callable[P, Coroutine[Any, Any, R]]], Stage[P, R]]: ...
def stage(function: Any = None, /, *, model: Any = None, attempts: int = 2) -> Any:
    """Make an async function without a body a stage of workflows.

    ```python
    @stage
    async def sum_up(article: str) -> Summary:
        "Sum the article up in one sentence, and name its topic."
    ```

    The docstring is what the model is told, the arguments are what it is given, and the answer has the type that is
    returned. The body never runs.

    Args:
        function: The function, where it is used without arguments.
        model: Which model, where it is not that of the workflow.
        attempts: Replies that it may take to give an answer of that type.

    Raises:
        ConfigError: There is no docstring, or the parameters have no names.
    """

    def make(decorated: Callable[P, Coroutine[Any, Any, R]]) -> Stage[P, R]:
        return Stage(decorated, model, attempts)

    return make if function is None else make(function)


def as_json(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JsonObject:
    """Arguments as a JSON object, defaults included.

    Raises:
        TypeError: They do not fit the signature.
    """
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    found: JsonObject = msgspec.json.decode(to_json(bound.arguments))
    return found


def returned_type(function: Callable[..., Any], default: Any = str) -> Any:
    """What a function says that it returns."""
    returned = get_type_hints(function, include_extras=True).get("return", default)
    return type(None) if returned is None else returned


def reader(type_: Any) -> Callable[[str], Any]:
    """Reads a value of that type from the text that stands for it in the log."""
    if type_ is str:
        return str
    if type_ in (Any, inspect.Signature.empty):
        return _as_it_is
    return TypeAdapter(type_).validate_json


def _as_it_is(text: str) -> Any:
    """JSON where it is some, else the text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
