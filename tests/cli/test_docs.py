"""`docs/cli.md` holds the help of every command as it is. `python tests/cli/test_docs.py` writes it anew."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
BLOCK = re.compile(r"(<!-- (tenlines[a-z ]*) --help -->\n```text\n).*?(```)", re.DOTALL)


def help_of(command: str) -> str:
    """What `COMMAND --help` prints, at the width that it has at most."""
    words = [sys.executable, "-m", *command.split(), "--help"]
    environment = {"COLUMNS": "100", "PATH": "/usr/bin:/bin", "PYTHONUTF8": "1"}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def renewed(page: str) -> str:
    """The page with every help text as it is now."""
    return BLOCK.sub(lambda found: f"{found[1]}{help_of(found[2])}{found[3]}", page)


@pytest.mark.slow
def test_the_page_shows_the_help_as_it_is() -> None:
    page = PAGE.read_text()
    assert renewed(page) == page, "run `python tests/cli/test_docs.py`"


def test_every_command_is_on_the_page() -> None:
    from tenlines.cli.app import app

    shown = {found[2] for found in BLOCK.finditer(PAGE.read_text())}
    names = {f"tenlines {one.name or one.callback.__name__}" for one in app.registered_commands if one.callback}
    assert shown == {"tenlines", *names}


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
