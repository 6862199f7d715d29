"""The `@tool` decorator: a function becomes something that a model can call, and stays the function it was."""

from __future__ import annotations

import asyncio
import sys
import threading
import types
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

import msgspec

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject
from tenlines.errors import ConfigError
from tenlines.ports import Allow, Bound, CallContext, GuardedCall, Invalid, Opinion, Rendered
from tenlines.tools import problems
from tenlines.tools.careful import Approve, Beside
from tenlines.tools.plan import BYTES_PER_TOKEN, Options, Plan, docstring
from tenlines.tools.render import render
from tenlines.tools.signature import EMPTY

if TYPE_CHECKING:
    from tenlines.tools.isolated import Location

P = ParamSpec("P")
R = TypeVar("R")

_encode = msgspec.json.Encoder().encode


class Tool(Generic[P, R]):
    """A tool made of a function. Made by `tool`; calling it calls the plain function.

    Attributes:
        name: What the model calls it.
        needs_instance: It is a method as it stands in its class: `shop.find` is a tool, `Shop.find` is not yet.
    """

    def __init__(self, function: Callable[P, R], plan: Plan, *, is_bound: bool = False) -> None:
        self._function, self._plan = function, plan
        self.name = plan.name
        self.needs_instance = plan.signature.takes_self and not is_bound
        self._max_bytes = plan.options.max_result * BYTES_PER_TOKEN
        self.__doc__ = docstring(function)
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

            return run(self._plan.location, arguments, ctx, self._max_bytes)
        context_name = self._plan.signature.context_name
        if context_name:
            arguments = {**arguments, context_name: ctx}
        function: Callable[..., Any] = self._function
        value = function(**arguments)
        return value if type(value) is str or self._plan.is_async else _finished(value)

    def render(self, value: Any) -> Rendered:
        """Turn the value into parts of at most `max_result` tokens. Never runs the tool again."""
        return value if type(value) is Rendered else render(value, self._max_bytes)

    # --- before, after and back -----------------------------------------------------------------------

    def permit(self, call: GuardedCall) -> Opinion:
        """What `approve` says of a call: that a person is asked, or what its function says. May raise anything."""
        approve = self._plan.approve
        return Allow() if approve is None else approve.opinion(self._object, call)

    def reconcile(self, arguments: JsonObject, ctx: CallContext) -> Any:
        """What became of a call: its value, `NOT_DONE` or `UNKNOWN`. May return an awaitable, and raise anything."""
        return self._beside(self._plan.reconcile, "reconcile").call(self._object, self._as_called(arguments), ctx)

    def undo(self, arguments: JsonObject, result: str, ctx: CallContext) -> Any:
        """Take back what a call did. May return an awaitable, and raise anything."""
        return self._beside(self._plan.undo, "undo").call(self._object, self._as_called(arguments), ctx, result)

    @property
    def _object(self) -> Any:
        """What the function is bound to, and with it the functions beside it."""
        return self._function.__self__ if isinstance(self._function, types.MethodType) else None

    def _beside(self, one: Beside | None, role: str) -> Beside:
        if one is None:
            raise ConfigError(f"tool {self.name!r} has no {role}: give it one, as @tool({role}=...)")
        return one

    def _as_called(self, arguments: JsonObject) -> dict[str, Any]:
        """The arguments as the function got them, its own defaults included."""
        bound = (self.in_process() if self.is_killable else self).check(arguments)
        if isinstance(bound, Invalid):
            raise TypeError(f"the arguments of the call do not fit {self.name} as it is now: {bound.text}")
        taken = self._plan.signature.parameters
        return {**{one.name: one.default for one in taken if one.default is not EMPTY}, **bound.arguments}


class ToolOptions(TypedDict, total=False):
    """The arguments of `tool`, for type checkers."""

    name: str | None
    description: str | None
    read_only: bool
    idempotent: bool
    repeatable: bool
    final: bool
    spends: bool
    timeout_s: float | None
    isolate: bool
    approve: Approve
    undo: Callable[..., Any] | None
    reconcile: Callable[..., Any] | None
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
    functions, methods, callable objects and `functools.partial` will do; what a partial sets by name is hidden. A tool
    that is made again keeps what it is not told anew.

    Three functions may stand beside a tool; as methods of the same class they work on the same object. They run in this
    process, also with `isolate`. What they say decides what may happen to the world, so read what each promises:

    - `approve`: `True` asks a person about every call. A function is given the `tenlines.ports.GuardedCall` and returns
      `Allow()`, `Deny(reason)`, `Ask(reason)`, `Edit(arguments)`, or "allow", "deny", "ask". A bool says whether
      a person has to be asked, as `approve=True` does: `approve=lambda call: call.arguments["amount"] > 100`. Whatever
      else it returns (None too) or raises asks a person. The policy of the agent comes first.
    - `undo`: the compensation of a call. It takes those of the tool's own parameters that it names, as the tool
      got them (`**kwargs` for all others), `result: str`, which is what the call returned, as text, or "" where that is
      not known, and a `CallContext`, whose key is that of the call. It may be called again with the same key, and for
      a call that had no effect. To return is to say that it is undone; to raise, that this is not known.
    - `reconcile`: asked after a crash about a call that had started. It takes the same, but no `result`, and returns
      the value that the call returned (None too is a value), `NOT_DONE` where it took no effect, so that it runs again,
      or `UNKNOWN`. To raise is not to know.

    ```python
    def cancel(ctx: CallContext) -> None:
        bookings.pop(ctx.key, None)

    def find(ctx: CallContext) -> str | Aftermath:
        return bookings.get(ctx.key, NOT_DONE)

    @tool(approve=True, undo=cancel, reconcile=find)
    def book(seat: str, ctx: CallContext) -> str: ...
    ```

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
            - `approve`: who may run a call: True, or a function. See above.
            - `undo`: a function that takes a call back. Not for what is `read_only`.
            - `reconcile`: a function that finds out whether a call took effect. Not for what just runs again after a
              crash, being `read_only` or `idempotent`.
            - `max_result`: tokens that a result may have, marker included, each estimated as four bytes of UTF-8; at
              least 100.
            - `extra`: what to do with parameters that it does not have: `refuse`, or `ignore` and note it.

    Raises:
        ConfigError: The function takes or is something that a model cannot use. Types are looked at when the
            tool is given to an agent.
    """
    names = _local_names(sys._getframe(1))
    options = {name: one.__wrapped__ if isinstance(one, Tool) else one for name, one in options.items()}
    try:
        chosen = Options(**options)
    except TypeError as error:
        raise ConfigError(f"@tool: {str(error).replace('Options.__init__() ', '')}") from None

    def make(decorated: Any) -> Tool[..., Any]:
        if isinstance(decorated, Tool):
            kept = replace(decorated._plan.options, **{"name": decorated.name, **options})
            return _make(decorated.__wrapped__, kept, names)
        return _make(decorated, chosen, names)

    return make if function is None else make(function)


def _make(function: Any, options: Options, names: Mapping[str, Any]) -> Tool[..., Any]:
    is_classmethod = isinstance(function, classmethod)
    if isinstance(function, staticmethod | classmethod):
        function = function.__func__
    if isinstance(function, type):
        raise ConfigError(f"{function.__name__} is a class: pass an object of it, or the function that makes one")
    if not callable(function):
        raise ConfigError(f"a {type(function).__name__} cannot be called, so it cannot be a tool: pass a function")
    plan = Plan(function, options, names)
    plan.is_classmethod = is_classmethod
    return Tool(function, plan)


def _local_names(frame: types.FrameType) -> Mapping[str, Any]:
    """Names that types may be found under, where the function is defined inside another or in a class."""
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


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
