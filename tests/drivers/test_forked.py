"""A process that is forked after its parent has run agents: it has none of the parent's threads, and does not wait for
them."""

from __future__ import annotations

import asyncio
import os
import signal

from driver_doubles import Way, asks

from tenlines import Agent, RunResult, tool

PATIENCE_S = 20
"""Seconds after which a process that hangs is ended."""


def run(way: Way) -> RunResult:
    """A run that needs threads of every kind under both drivers."""

    @tool(read_only=True)
    def block() -> str:
        return "blocked"

    @tool(read_only=True)
    async def wait() -> str:
        await asyncio.sleep(0)
        return "waited"

    return way.run(Agent([asks("block", "wait", "block"), "done"], [block, wait], journal="memory"))


def test_a_forked_process_runs_agents_as_its_parent_did(way: Way) -> None:
    assert run(way).answer == "done"
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE_S)
        is_right = run(way).answer == "done"
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run(way).answer == "done"
