"""Where a command writes: to standard output, or to a path that holds either the old file or the whole new one."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from tenlines.errors import ConfigError


@contextmanager
def written(out: str | None, *, may_replace: bool) -> Iterator[TextIO]:
    """A stream for the output. A file appears under its name when all of it is written, and not at all otherwise.

    Args:
        out: A path; None or `-` for standard output.
        may_replace: Whether a file that is there may be replaced.

    Raises:
        ConfigError: It may not be replaced, or it cannot be written.
    """
    if out is None or out == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    path = Path(out).expanduser()
    if path.exists() and not may_replace:
        raise ConfigError(f"{out} is there already, and is not overwritten; name another file, or remove it first")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as stream:
            yield stream
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        Path(name).chmod(mode)
        Path(name).replace(path)
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(FileNotFoundError):
            Path(name).unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
