"""`--ask` and `--deny`: tools whose calls need leave, whatever the tools say for themselves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from tenlines.child import under
from tenlines.errors import ConfigError
from tenlines.ports import Ask, Deny, GuardedCall, ToolPort, Verdict

if TYPE_CHECKING:
    from tenlines.agent import Agent

AS_BEFORE = Ask("the run was started so that this tool needs leave")


class Guarded:
    """A tool that says the same of every call: ask, or no.

    Only such tools are marked in the journal, so that the others run as they would without it.
    """

    def __init__(self, tool: ToolPort, verdict: Verdict) -> None:
        self._tool, self._verdict = tool, verdict
        self.spec = msgspec.structs.replace(tool.spec, approve=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def under(self, caller: Agent) -> Guarded:
        """The same, where the tool is an agent."""
        return Guarded(under(self._tool, caller), self._verdict)

    def permit(self, call: GuardedCall) -> Verdict:
        """What is said of every call."""
        return self._verdict


def guard(
    tools: Sequence[ToolPort], ask: Sequence[str], deny: Sequence[str], marked: Collection[str] = ()
) -> list[Any]:
    """The tools, with those guarded that are named.

    Args:
        tools: As they were loaded.
        ask: Patterns of names whose calls a person allows.
        deny: Patterns of names whose calls never run; these go first.
        marked: Names that the journal has as needing leave. One that speaks for itself goes on to do so.

    Raises:
        ConfigError: A pattern fits no tool.
    """
    names = [one.spec.name for one in tools]
    for option, patterns in (("--ask", ask), ("--deny", deny)):
        for pattern in patterns:
            if not any(fnmatchcase(name, pattern) for name in names):
                there = ", ".join(names) or "none; give a file with --tools"
                raise ConfigError(f"{option} {pattern}: no tool has such a name; tools: {there}")
    return [_guarded(one, ask, deny, marked) for one in tools]


def _guarded(tool: ToolPort, ask: Sequence[str], deny: Sequence[str], marked: Collection[str]) -> Any:
    name = tool.spec.name
    if any(fnmatchcase(name, pattern) for pattern in deny):
        return Guarded(tool, Deny())
    asked = next((pattern for pattern in ask if fnmatchcase(name, pattern)), None)
    if asked is not None:
        return Guarded(tool, Ask(f"--ask {asked}"))
    return Guarded(tool, AS_BEFORE) if name in marked and not tool.spec.approve else tool
