"""A run of the journal is taken up again: its model and tools, from the journal and from what is given instead."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tenlines.cli import options as opt
from tenlines.core.outcomes import READ_RESULT
from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tenlines.core.context import Compaction
    from tenlines.core.events import ToolSpec
    from tenlines.core.state import State
    from tenlines.ports import Model, Observer, ToolPort
    from tenlines.tools.finish import Finish
    from tenlines.trace.story import Story


class Given(NamedTuple):
    """What is used in place of what the journal says."""

    limits: opt.GivenLimits
    model: str | None = None
    tools: Sequence[str] = ()
    ask: Sequence[str] = ()
    deny: Sequence[str] = ()
    say: str | None = None
    take_over: bool = False
    journal: str | None = None
    compaction: Compaction | None = None
    observers: tuple[Observer, ...] = ()
    """Who watches beside the person."""
    mcp: Sequence[str] = ()
    mcp_trust: Sequence[str] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether the run goes on just as it is."""
        return self[:6] == (opt.NONE_GIVEN, None, (), (), (), None) and self.compaction is None and not self.mcp


def model_of(story: Story, named: str | None, console: Console | None) -> Model:
    """The model that is named, or the run's own.

    Raises:
        ConfigError: It cannot be used.
    """
    from tenlines.cli.making import make_model
    from tenlines.planning.setup import PREFIX

    assert story.start is not None
    try:
        return make_model(named or story.start.model.removeprefix(PREFIX), console)
    except ConfigError as error:
        if named is not None:
            raise
        raise ConfigError(f"the run's own model cannot be used; name one with --model. {error}") from error


def tools_of(story: Story, given: Given) -> list[Any]:
    """The tools of the run. Those that needed leave go on needing it.

    Raises:
        ConfigError: Their file is not known, or gone, or has none.
    """
    from tenlines.cli.guarding import guard
    from tenlines.planning.setup import PREFIX

    if story.start is not None and story.start.model.startswith(PREFIX):
        raise ConfigError("the run follows a plan: this can be done with the runs of its steps, and not with itself")
    specs = own_specs(story.machine.state)
    marked = {spec.name for spec in specs if spec.approve}
    return guard(plain_tools(specs, given.tools, given.mcp, given.mcp_trust), given.ask, given.deny, marked)


def own_specs(state: State) -> tuple[ToolSpec, ...]:
    """The tools that somebody brought: all but the built-in ones."""
    own = READ_RESULT if state.settings.read_results else ""
    return tuple(spec for spec in state.specs if spec.name != own and not spec.answer)


def output_of(state: State) -> Finish | None:
    """What takes the answer of the run, where that has a schema: the tool as the log has it.

    Raises:
        MissingExtra: The validator of JSON Schema is not installed.
    """
    from tenlines.tools.finish import recorded

    return None if state.finish is None else recorded(state.finish)


def plain_tools(
    specs: Sequence[ToolSpec], files: Sequence[str], mcp: Sequence[str] = (), trust: Sequence[str] = ()
) -> list[ToolPort]:
    """The tools of these files and servers, or of those that the journal names, as they speak for themselves.

    Raises:
        ConfigError: As in `tools_of`.
    """
    from tenlines.cli.making import load_files
    from tenlines.cli.mcp_tools import is_from_server, server_tools_again

    from_files = [spec for spec in specs if not is_from_server(spec)]
    loaded: list[ToolPort] = [*load_files(files or _files_of(from_files))]
    return [*loaded, *server_tools_again(specs, mcp, trust, loaded)]


def gone(story: Story, tools: Sequence[Any]) -> str:
    """What to say of tools that the run had and that are not there; "" where all are."""
    missing = {spec.name for spec in own_specs(story.machine.state)} - {one.spec.name for one in tools}
    return f"tools that the run had and that are gone: {', '.join(sorted(missing))}" if missing else ""


def _files_of(specs: Sequence[ToolSpec]) -> list[str]:
    """The files that the tools of a run came from.

    Raises:
        ConfigError: Some came from no file; or a file is gone.
    """
    lost = [spec.name for spec in specs if not spec.source]
    if lost:
        raise ConfigError(f"the journal does not say which file has {', '.join(lost)}; name it with --tools FILE.py")
    files = list(dict.fromkeys(spec.source for spec in specs))
    for file in files:
        if not Path(file).is_file():
            raise ConfigError(f"the run's tools came from {file}, which is gone; name their file with --tools FILE.py")
    return files
