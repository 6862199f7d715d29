"""Runs that are recorded once and replayed from then on: what the pytest fixture `recorded` gives."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from operator import methodcaller
from pathlib import Path

import msgspec

from tenlines.agent import Agent, History, outcome
from tenlines.core import events as ev
from tenlines.core.limits import Limits
from tenlines.core.result import RunResult
from tenlines.core.transcript import Part
from tenlines.journal.files import write_run
from tenlines.journal.memory import MemoryJournal
from tenlines.testing.answering import answered_by
from tenlines.testing.differences import ReplayMismatch
from tenlines.testing.replaying import replay

__tracebackhide__ = methodcaller("errisinstance", AssertionError)
"""For pytest: what is wrong is shown where the test asked for it."""

FOLDER = "recordings"
LONGEST = 120
"""Characters of the name of a file."""


class MissingRecording(AssertionError):
    """There is no recording, and none may be made here."""


class Recorded:
    """Runs of one test. Call it as you would `agent.run_sync`; `await recorded.arun(...)` as `agent.run`.

    The first run of a test is `NAME.jsonl`, the next `NAME.2.jsonl`, and so on. Neither way touches the agent's own
    journal. A run that stops without an answer is kept only with `raise_on_stop=False`, where the test wants it so.

    Args:
        test_file: Where the test is.
        node: The test, as pytest names it.
        may_record: Whether a recording that is missing is made.
        records_anew: Whether it is made in any case.
    """

    def __init__(self, test_file: Path, node: str, *, may_record: bool, records_anew: bool) -> None:
        self.folder = test_file.parent / FOLDER / test_file.stem
        self.node, self.name = node, _file_name(node)
        self.may_record, self.records_anew = may_record, records_anew
        self.runs = 0

    def __call__(
        self,
        agent: Agent,
        task: str | Sequence[Part] | None,
        *,
        messages: History = (),
        limits: Limits | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """Run the task, or replay it.

        Raises:
            ReplayMismatch: The agent does not do any more what was recorded.
            RunStopped: As in `Agent.run_sync`.
        """
        file, said = self._next_file(), [*messages]
        if self._replays(file):
            return outcome(self._replay(agent, file, task, said, limits), raise_on_stop)
        journal = MemoryJournal()
        recording = answered_by(agent, agent.model, journal)
        result = recording.run_sync(task, messages=said, limits=limits, raise_on_stop=raise_on_stop)
        return _keep(journal, result, file)

    async def arun(
        self,
        agent: Agent,
        task: str | Sequence[Part] | None,
        *,
        messages: History = (),
        limits: Limits | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """The same for asyncio."""
        file, said = self._next_file(), [*messages]
        if self._replays(file):
            return outcome(self._replay(agent, file, task, said, limits), raise_on_stop)
        journal = MemoryJournal()
        recording = answered_by(agent, agent.model, journal)
        result = await recording.run(task, messages=said, limits=limits, raise_on_stop=raise_on_stop)
        return _keep(journal, result, file)

    def _next_file(self) -> Path:
        self.runs += 1
        number = "" if self.runs == 1 else f".{self.runs}"
        return self.folder / f"{self.name}{number}.jsonl"

    def _replays(self, file: Path) -> bool:
        if self.records_anew:
            return False
        if not file.exists() and not self.may_record:
            shown = file.relative_to(self.folder.parent.parent)
            raise MissingRecording(
                f"there is no recording {shown}, and none is made here: run `{self._command}` where the model can be "
                "reached, and commit the file"
            )
        return file.exists()

    def _replay(
        self, agent: Agent, file: Path, task: str | Sequence[Part] | None, messages: History, limits: Limits | None
    ) -> RunResult:
        try:
            return replay(agent, file, task=task, messages=messages, limits=limits)
        except ReplayMismatch as error:
            error.add_note(f"if this is meant, record it anew: {self._command}")
            raise

    @property
    def _command(self) -> str:
        return f"pytest --tenlines-record '{self.node}'"


def _file_name(node: str) -> str:
    """The test's name as that of a file: what no file system takes, and what is too long, is told apart by a digest."""
    name = ".".join(node.split("::")[1:]) or node
    plain = re.sub(r"[^\w.\[\]-]+", "-", name)[:LONGEST]
    if plain == name:
        return name
    return f"{plain}-{hashlib.blake2b(name.encode(), digest_size=4).hexdigest()}"


def _keep(journal: MemoryJournal, result: RunResult, file: Path) -> RunResult:
    """Write the run to its file, whole or not at all."""
    public = MemoryJournal()
    for event in journal.read(result.run_id):
        public.append(result.run_id, _without_places(event))
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".part")
    draft.write_bytes(b"".join(write_run(public, result.run_id)))
    os.replace(draft, file)
    return result


def _without_places(event: ev.AnyEvent) -> ev.AnyEvent:
    """A recording goes where the code goes: the machine it was made on, and the paths in tracebacks, stay."""
    if isinstance(event, ev.RunStarted):
        return msgspec.structs.replace(event, owner="")
    return msgspec.structs.replace(event, detail="") if isinstance(event, ev.CallFailed) else event
