"""What `import tenlines` promises: a short list of names, quickly, and nothing else happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import tenlines

PROBE = """
import json, os, socket, sys, threading
opened, connected = [], []
def watch(event, args):
    if event == "open" and isinstance(args[1], str) and any(c in args[1] for c in "wax+"):
        opened.append(str(args[0]))
    if event.startswith("socket."):
        connected.append(event)
sys.addaudithook(watch)
import tenlines
late = ("openai", "httpx", "httpx2", "rich", "typer", "xllamacpp", "sqlite3", "mcp", "genai_prices")
heavy = [name for name in late if name in sys.modules]
print(json.dumps({"threads": threading.active_count(), "opened": opened, "sockets": connected, "heavy": heavy}))
"""


def test_importing_does_nothing_else(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", PROBE], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    seen = json.loads(run.stdout)
    assert run.stderr == ""
    assert seen == {"threads": 1, "opened": [], "sockets": [], "heavy": []}
    assert list(tmp_path.iterdir()) == []


def test_the_front_door_has_at_most_forty_names_each_documented() -> None:
    assert len(tenlines.__all__) == len(set(tenlines.__all__)) <= 40
    for name in tenlines.__all__:
        assert getattr(tenlines, name).__doc__, f"{name} has no docstring"


def test_the_version_is_the_same_in_both_places() -> None:
    pyproject = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'version = "{tenlines.__version__}"' in pyproject
