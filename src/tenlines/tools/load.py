"""Tools from what people have at hand: functions, methods, dicts of functions, lookup tables, Python files."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tenlines.core.events import ToolSpec
from tenlines.errors import ConfigError
from tenlines.ports import ToolPort
from tenlines.tools.careful import described
from tenlines.tools.foreign import ForeignTool, as_tool, is_definition, is_langchain, without_function
from tenlines.tools.tool import Tool, tool

UNKNOWN_ARG = "unknown_arg"
"""What a lookup table says for an argument that it does not have."""
FILE_MODULE = "_tenlines_file_"
"""Modules that were loaded from a file are named so: nobody can import them by name."""

_PORT = ("check", "call", "render", "is_async", "is_killable")
_CAREFUL = {"approve": "permit", "undoable": "undo", "reconcilable": "reconcile"}
"""What the spec says -> the method that a tool then has."""
_count = itertools.count(1)


def as_tools(things: Iterable[Any] | Mapping[str, Any] | None) -> list[ToolPort]:
    """Make tools of what was handed in.

    Args:
        things: A list of tools, typed functions, bound methods, callable objects, objects with the methods of
            `ToolPort`, dicts, and what gives several tools (`ToolSource`, read last); or one dict, of
            name -> function (called with keyword arguments) or of name -> {argument: result} (a lookup table: one
            text parameter `arg`, `unknown_arg` for what it does not have). Also tools of LangChain, and pairs of the
            definition of a tool and the function that does it (`tenlines.tools.foreign`).

    Raises:
        ConfigError: Something cannot be a tool, or two have the same name.
    """
    made: list[ToolPort] = []
    listed = listed_things(things)
    for thing in listed:
        if not is_source(thing):
            made.extend(_from_dict(thing) if isinstance(thing, Mapping) else [_from_thing(thing)])
    for source in filter(is_source, listed):
        made.extend(source.tools({one.spec.name for one in made}))
    _refuse_duplicates(made)
    return made


def is_source(thing: Any) -> bool:
    """Whether it gives several tools (`ToolSource`)."""
    return not isinstance(thing, type | Mapping) and hasattr(thing, "tools") and hasattr(thing, "version")


def listed_things(things: Iterable[Any] | Mapping[str, Any] | None) -> list[Any]:
    """What was handed in, one by one.

    Raises:
        ConfigError: It is not a list, a dict or a source of tools.
    """
    if things is None:
        return []
    if isinstance(things, Mapping) or is_source(things):
        return [things]
    if isinstance(things, str | bytes) or not isinstance(things, Iterable):
        raise ConfigError(f"tools={described(things)}: give a list, as in tools=[get_order, get_tracking]")
    return list(things)


def _from_thing(thing: Any) -> ToolPort:
    if is_langchain(thing):
        return as_tool(thing)
    if isinstance(thing, tuple) and len(thing) == 2 and isinstance(thing[0], Mapping):
        return as_tool(*thing)
    if isinstance(thing, types.MethodType) and isinstance(thing.__func__, Tool):
        thing = thing.__func__.__get__(thing.__self__, type(thing.__self__))
    if isinstance(thing, Tool):
        return _checked(thing)
    if not isinstance(thing, type) and isinstance(getattr(thing, "spec", None), ToolSpec):
        return _port(thing, thing.spec)
    if isinstance(thing, type):
        raise ConfigError(f"{thing.__name__} is a class: pass an object of it with `__call__`, or its bound methods")
    if callable(thing):
        return _checked(tool(thing))
    raise ConfigError(
        f"{described(thing)} cannot be a tool: pass a function with types, something made by @tool, a bound method, "
        "or a dict of functions"
    )


def _port(thing: Any, spec: ToolSpec) -> ToolPort:
    promised = [method for flag, method in _CAREFUL.items() if getattr(spec, flag)]
    missing = [name for name in (*_PORT, *promised) if not hasattr(thing, name)]
    if missing:
        port = "ToolPort" if set(missing) & set(_PORT) else "CarefulTool"
        raise ConfigError(f"tool {spec.name!r} lacks {', '.join(missing)}: see tenlines.ports.{port}")
    made: ToolPort = thing
    return made


def _from_dict(table: Mapping[str, Any]) -> list[ToolPort]:
    if is_definition(table):
        raise without_function(table)
    made: list[ToolPort] = []
    for name, value in table.items():
        if not isinstance(name, str):
            raise ConfigError(f"the keys of a dict of tools are their names, not {described(name)}")
        if isinstance(value, Mapping):
            made.append(_checked(_lookup(name, value)))
        elif callable(value) and not isinstance(value, type):
            made.append(_checked(_renamed(value, name)))
        else:
            raise ConfigError(f"tool {name!r} is {described(value)}: give a function, or a dict of argument: result")
    return made


def _renamed(value: Any, name: str) -> Tool[..., Any]:
    return value.renamed(name) if isinstance(value, Tool) else tool(name=name)(value)


def _lookup(name: str, table: Mapping[Any, Any]) -> Tool[..., Any]:
    """The teaching form: a tool that looks its one argument up. Membership only, the value as it is."""
    values = {str(key): value for key, value in table.items()}

    def look_up(arg: str) -> Any:
        return values.get(arg, UNKNOWN_ARG)

    shown = ", ".join(list(values)[:20])
    return tool(name=name, description=f"Look up one of: {shown}." if shown else "", read_only=True)(look_up)


def _checked(made: Tool[..., Any]) -> Tool[..., Any]:
    _ = made.spec  # reading the types reports what cannot be described
    return made


def _refuse_duplicates(tools: list[ToolPort]) -> None:
    seen: dict[str, ToolPort] = {}
    for one in tools:
        other = seen.setdefault(one.spec.name, one)
        if other is not one:
            raise ConfigError(
                f"two tools are called {one.spec.name!r}: {_origin(other)} and {_origin(one)}. "
                'Rename one: tool(function, name="...")'
            )


def _origin(one: ToolPort) -> str:
    if isinstance(one, Tool):
        return f"{one.__module__}.{one.__qualname__}"
    return f"an object of {type(one).__module__}.{type(one).__qualname__}"


# --- files --------------------------------------------------------------------------------------------


def load_tools(path: str | Path) -> list[ToolPort]:
    """Take the tools of a Python file: everything made by `@tool` or `as_tool` in it, and tools of LangChain, in the
    order of the file.

    If there is none, every public function with types that was written in the file.

    Raises:
        ConfigError: The file is missing, cannot be imported, or has no tools.
    """
    module = import_file(path)
    values = list(vars(module).items())
    found = [made for _, value in values if (made := _made(value)) is not None]
    own = [one for one in found if not isinstance(one, Tool) or one.__module__ == module.__name__] or found
    if not own:
        own = [tool(value) for name, value in values if _is_own_function(module, name, value)]
    if not own:
        raise ConfigError(f"{path} has no tools: decorate a function with @tool, or write functions with types in it")
    source = str(Path(path).expanduser().absolute())
    tools = [one.loaded_from(source) for one in {id(one): one for one in own}.values()]
    for one in tools:
        _ = one.spec  # reading the types reports what cannot be described
    ports: list[ToolPort] = [*tools]
    _refuse_duplicates(ports)
    return ports


def _made(value: Any) -> Any:
    """A value of a file that is a tool, or None."""
    if isinstance(value, Tool | ForeignTool) or _is_agent(value):
        return value
    return as_tool(value) if is_langchain(value) else None


def _is_agent(value: Any) -> bool:
    """Whether it is an agent that is a tool (`Agent.as_tool`)."""
    spec = None if isinstance(value, type | Tool) else getattr(value, "spec", None)
    return isinstance(spec, ToolSpec) and spec.child


def _is_own_function(module: types.ModuleType, name: str, value: Any) -> bool:
    if not isinstance(value, types.FunctionType) or name.startswith("_") or value.__module__ != module.__name__:
        return False
    return bool(value.__annotations__) or value.__code__.co_argcount == 0


def import_file(path: str | Path, name: str = "") -> types.ModuleType:
    """Import a Python file as a module of its own. Its folder is importable while it is being imported.

    Raises:
        ConfigError: It is missing or cannot be imported.
    """
    file = Path(path).expanduser().absolute()
    if not file.is_file():
        raise ConfigError(f"{path}: there is no such file" if not file.exists() else f"{path} is not a file")
    name = name or f"{FILE_MODULE}{next(_count)}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{path} is not a Python file: its name should end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # types of the file are looked up here
    folder = str(file.parent)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        del sys.modules[name]
        where = error.filename if error.filename and error.filename != str(file) else path
        raise ConfigError(f"{where}, line {error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:  # the file is foreign code
        del sys.modules[name]
        raise ConfigError(f"{path} could not be imported: {type(error).__name__}: {str(error)[:300]}") from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    return module
