"""From what a person names to a model and tools that can be used; what must be fetched first is fetched here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tenlines.ports import TEXT_FORMS, Model, ToolPort, plain_name
from tenlines.trace.text import one_line

if TYPE_CHECKING:
    from rich.console import Console

MODEL_VARIABLE = "TENLINES_MODEL"


def choose_model(named: str | None, tell: Callable[[str], None]) -> str:
    """The model that is meant: named, else in the environment, else a server on this machine, else `local`."""
    if named is not None:
        return named
    if chosen := os.environ.get(MODEL_VARIABLE):
        return chosen
    from tenlines.models.discover import find_local_server

    found = find_local_server()
    if found is None:
        tell("no --model given and no model server found on this machine: using `local`")
        return "local"
    kind, base_url, model = found
    tell(f"using {kind} at {base_url} with {model}; name another with --model")
    return f"{base_url}#{model}"


def with_text_tools(name: str) -> str:
    """The same model, with its tools written as text."""
    return name if name.lower().startswith(TEXT_FORMS) else f"{TEXT_FORMS[0]}{name}"


def make_model(name: str, console: Console | None) -> Model:
    """The model of that name. The weights of a local one are fetched now, before the run's clock starts.

    Args:
        console: Where to show how far it is; None to say nothing.

    Raises:
        ConfigError: There is no such model, or what it needs cannot be had.
    """
    from tenlines.models.resolve import resolve

    model = resolve(name)
    if plain_name(model.name).split(":")[0] == "local":
        _fetch_weights(plain_name(model.name), console)
    return model


def _fetch_weights(name: str, console: Console | None) -> None:
    from tenlines.models import weights

    known = weights.KNOWN.get(name.removeprefix("local:"))
    if known is None or weights.is_cached(known):
        return
    if console is None:
        weights.fetch(known)
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    about = f"fetching {known.name} ({known.size_bytes / 1e9:.1f} GB, once) to {weights.cache_dir()}"
    console.print(about, style="dim", soft_wrap=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    try:
        # standard output is ours alone already
        with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
            task = bar.add_task("", total=known.size_bytes)
            weights.fetch(known, lambda done, total, what: bar.update(task, completed=done, description=one_line(what)))
    except KeyboardInterrupt:
        console.print("interrupted; what was fetched is kept, the next time goes on from there", style="yellow")
        raise


def load_files(paths: Sequence[str]) -> list[ToolPort]:
    """The tools of these files, in order.

    Raises:
        ConfigError: A file is missing, cannot be imported or has no tools.
    """
    from tenlines.tools.load import load_tools

    return [one for path in paths for one in load_tools(path)]
