"""What is known of a function that is a tool: its options, its signature, its schema, the functions beside it."""

from __future__ import annotations

import copy
import functools
import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tenlines.core.events import ToolSpec
from tenlines.errors import ConfigError
from tenlines.tools import careful, signature
from tenlines.tools.signature import Signature

if TYPE_CHECKING:
    from tenlines.tools.isolated import Location
    from tenlines.tools.schema import Schema

NAME = re.compile(r"[a-zA-Z_][A-Za-z0-9_-]{0,63}")
"""What every provider accepts as the name of a tool."""
BYTES_PER_TOKEN = 4
MIN_RESULT = 100
"""Tokens. Below this there is no room to say what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `@tool` was told."""

    name: str | None = None
    description: str | None = None
    read_only: bool = False
    idempotent: bool = False
    repeatable: bool = False
    final: bool = False
    spends: bool = False
    timeout_s: float | None = None
    isolate: bool = False
    approve: careful.Approve = False
    undo: Callable[..., Any] | None = None
    reconcile: Callable[..., Any] | None = None
    max_result: int = 8_000
    extra: Literal["refuse", "ignore"] = "refuse"


class Plan:
    """What is known of a function, shared by all objects that it is bound to. The schema is built at first need."""

    is_classmethod = False
    source = ""

    def __init__(self, function: Callable[..., Any], options: Options, names: Mapping[str, Any]) -> None:
        self.options, self.function = options, function
        self.name = _name_of(function, options.name)
        self.is_async = _is_async(function)
        _refuse_options(self.name, options)
        _refuse_generators(self.name, function)
        self.signature: Signature = signature.read(f"tool {self.name!r}", function, names)
        self.approve = careful.read_approve(self.name, options.approve, function)
        self.undo = careful.read_beside("undo", self.name, options.undo, self.signature, function)
        self.reconcile = careful.read_beside("reconcile", self.name, options.reconcile, self.signature, function)
        self.location: Location | None = None
        if options.isolate:
            from tenlines.tools.isolated import locate

            self.location = locate(self.name, function)

    def changed(self, name: str, source: str, location: Location | None) -> Plan:
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
            approve=self.approve is not None,
            undoable=self.undo is not None,
            reconcilable=self.reconcile is not None,
            spends=options.spends,
            timeout_s=options.timeout_s,
            source=self.source,
        )

    @functools.cached_property
    def _texts(self) -> tuple[str, dict[str, str]]:
        """The description, and those of the parameters, from the docstring."""
        text = docstring(self.function)
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
    if options.undo is not None and options.read_only:
        raise ConfigError(f"tool {name!r} is read_only, so there is nothing to undo: leave out one of the two")
    if options.reconcile is not None and (options.read_only or options.idempotent):
        word = "read_only" if options.read_only else "idempotent"
        raise ConfigError(
            f"tool {name!r} is {word}, so after a crash a call just runs again and nobody asks what became of it: "
            f"leave out reconcile, or {word}"
        )


def docstring(function: Callable[..., Any]) -> str:
    # not inspect.getdoc: it looks methods up by name in their class, where it would find this very tool
    text = signature.unwrap(function).__doc__
    if not text and not isinstance(function, types.FunctionType | types.MethodType | functools.partial):
        text = type(function).__doc__
    return inspect.cleandoc(text) if text else ""
