"""The command line. `main` is what the console script calls; errors become one line and an exit code here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command `tenlines`.

    Args:
        arguments: Words after `tenlines`; None takes those of the process.

    Raises:
        SystemExit: Always, with the exit code; or the process ends here.
    """
    try:
        _main(arguments)
    except SystemExit as end:
        if arguments is None and "temporalio.bridge.runtime" in sys.modules:
            leave(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise


def leave(code: int) -> NoReturn:
    """End the process without taking Python down, which Temporal's threads may make a crash of."""
    import atexit
    from contextlib import suppress

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _main(arguments: Sequence[str] | None) -> None:
    from tenlines.cli.app import app
    from tenlines.cli.screen import lenient
    from tenlines.errors import TenlinesError

    lenient(sys.stdout)
    lenient(sys.stderr)
    try:
        app(None if arguments is None else list(arguments), prog_name="tenlines")
    except TenlinesError as error:
        if os.environ.get("TENLINES_DEBUG"):
            raise
        _report(error)
        sys.exit(error.exit_code)
    except Exception as error:  # whatever is left is a bug, and a person sees one line, not a traceback
        if os.environ.get("TENLINES_DEBUG"):
            raise
        _report_bug(error)
        sys.exit(70)


def _report(error: Exception) -> None:
    from tenlines.trace.text import clean

    if getattr(error, "exit_code", 1) == 70:
        _report_bug(error)
        return
    sys.stderr.write(f"tenlines: {clean(str(error))}\n")


def _report_bug(error: Exception) -> None:
    from tenlines.trace.text import clean, one_line

    run = next((note for note in getattr(error, "__notes__", ()) if note.startswith("run ")), "")
    sys.stderr.write(
        f"tenlines: this is a bug in tenlines: {type(error).__name__}: {one_line(str(error), 500)}\n"
        f"Please report it{f' with the journal of {clean(run)}' if run else ''}; "
        "TENLINES_DEBUG=1 shows where it happened.\n"
    )
