"""A process that is killed for good, with its journal in a file, and another one that goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from driver_doubles import Way

from tenlines.core.replay import fold
from tenlines.core.transcript import Result
from tenlines.journal.sqlite import SqliteJournal

# What the child runs, and what its successor runs: effects are lines in a file.
AGENT = """
import asyncio, os, signal, sys
from tenlines import Agent, CallContext, Reply, ToolCall, tool
from tenlines.journal.sqlite import SqliteJournal

folder, driver, die_at = sys.argv[1], sys.argv[2], sys.argv[3]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def effect(ctx):
    with open(f"{folder}/effects", "a") as file:
        file.write(ctx.key + " " + ctx.tool + "\\n")
    if die_at == ctx.tool:
        die()

@tool(idempotent=True)
def put(ctx: CallContext) -> str:
    effect(ctx)
    return "stored"

@tool
async def send(ctx: CallContext) -> str:
    effect(ctx)
    return "sent"

def model(messages):
    steps = sum(message["role"] == "assistant" for message in messages)
    if steps == 2:
        return "done"
    return Reply(calls=(ToolCall("a", "put", "{}"), ToolCall("b", "send", "{}")))

class Dies:
    def on_event(self, event):
        if str(event.seq) == die_at:
            die()

agent = Agent(model, [put, send], journal=SqliteJournal(folder + "/journal.db"), observers=[Dies()])
runs = agent.journal.runs(1)
run, resume = (agent.run_sync, agent.resume_sync) if driver == "sync" else (agent.run, agent.resume)
result = resume(runs[0].run_id) if runs else run("go")
print((asyncio.run(result) if driver == "aio" else result).answer)
"""


def child(folder: Path, way: Way, die_at: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AGENT, str(folder), way.name, die_at]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("die_at", ["0", "1", "3", "4", "5", "6", "11", "14", "put", "send"])
def test_a_killed_process_is_continued_by_another_and_nothing_that_acts_is_repeated(
    way: Way, tmp_path: Path, die_at: str
) -> None:
    killed = child(tmp_path, way, die_at)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    effects = tmp_path / "effects"
    before = Counter(effects.read_text().splitlines()) if effects.exists() else Counter[str]()
    assert all(times == 1 for times in before.values())
    second = child(tmp_path, way, "never")
    assert (second.stdout, second.stderr) == ("done\n", "")
    after = Counter(effects.read_text().splitlines())
    assert all(times == 1 for line, times in after.items() if line.endswith("send"))
    assert sum((after - before).values()) <= 4
    assert all(times <= 2 for times in after.values())  # `put`, with the same key
    journal = SqliteJournal(tmp_path / "journal.db")
    (summary,) = journal.runs()
    result = fold(journal.read(summary.run_id)).result()
    journal.close()
    assert summary.status == result.status == "answered"
    assert len([one for one in result.messages if isinstance(one, Result)]) == 4
    in_doubt = [record for record in result.calls if record.outcome == "in_doubt"]
    assert all(record.name == "send" for record in in_doubt)
    assert len(in_doubt) == (die_at == "send") or die_at.isdigit()
