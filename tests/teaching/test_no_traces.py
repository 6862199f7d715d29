"""The two classic forms start no thread, open no file, need no event loop and no network."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tenlines import agent_loop, run_agent

_BOTH = """
import json, os, sys, threading
from tenlines import agent_loop, run_agent

wanted, opened = ("open", "socket.", "subprocess.", "os.system", "sqlite3.connect", "os.mkdir", "os.remove"), []
calls = [{"role": "assistant", "type": "tool", "name": name} for name in "tu"]
moves = iter([*calls, {"role": "assistant", "type": "final", "content": "done"}])
threads = threading.active_count()
sys.addaudithook(lambda name, args: opened.append([name, str(args)]) if name.startswith(wanted) else None)
agent_loop([{"type": "tool", "name": "t", "arg": "a"}, {"type": "final", "text": "x"}], {"t": {"a": 1}}, 5)
run_agent(lambda messages: next(moves), {"t": lambda args: 1 / 0}, "go")
files = [one for one in opened if not one[1].endswith(".py'") and ".pyc" not in one[1] and "/lib/python" not in one[1]]
print(json.dumps([threading.active_count() - threads, files, sorted(os.listdir("."))]))
"""


@pytest.mark.slow
def test_nothing_is_started_opened_or_written(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("TENLINES_JOURNAL", None)
    done = subprocess.run(
        [sys.executable, "-c", _BOTH], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    threads, files, left = json.loads(done.stdout)
    assert (threads, [one for one in files if "site-packages" not in one[1]], left) == (0, [], [])
    assert done.stderr == ""


def test_both_forms_run_in_the_callers_thread_also_inside_an_event_loop() -> None:
    seen: list[int] = []

    def model(messages: list[object]) -> dict[str, str]:
        seen.append(threading.get_ident())
        if len(messages) > 1:
            return {"role": "assistant", "type": "final", "content": "done"}
        return {"role": "assistant", "type": "tool", "name": "t"}

    async def main() -> None:
        tools = {"t": lambda args: seen.append(threading.get_ident())}
        assert run_agent(model, tools, "go") == "done"
        assert agent_loop([{"type": "final", "text": "x"}], {}, 1)["answer"] == "x"

    before = threading.active_count()
    asyncio.run(main())
    assert set(seen) == {threading.get_ident()}
    assert threading.active_count() == before
