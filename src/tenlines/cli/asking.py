"""The question to the person at the terminal: may this call run? Asked when a run has paused for nothing else."""

from __future__ import annotations

import getpass
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from tenlines.cli.lines import put
from tenlines.cli.waiting import put_call
from tenlines.errors import ApprovalRefused, ConfigError
from tenlines.trace.text import clean

if TYPE_CHECKING:
    from rich.console import Console

    from tenlines.agent import Agent
    from tenlines.core.result import PendingCall
    from tenlines.core.transcript import JsonObject


def can_ask() -> bool:
    """Whether a person sees what is written, and can answer."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def says_yes(console: Console, question: str) -> bool:
    """Whether the person agrees. Ctrl-C is no."""
    console.print(f"{question} [y/N] ", end="", style="bold")
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        return False
    return answer.strip().lower() in ("y", "yes")


def login_name() -> str:
    """Who decides, where nothing else is said; "" where the system has no name for the user."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def who(by: str | None) -> str:
    """Who decides: as he was named, else by his login."""
    return login_name() if by is None else by


class Asker:
    """Asks about the calls of one run, one by one, and records each decision at once.

    Args:
        agent: Whose run it is; it checks arguments that were changed.
        console: Where the person is asked.
    """

    def __init__(self, agent: Agent, console: Console) -> None:
        self._agent, self._console = agent, console
        self._put_off: set[str] = set()

    def ask(self, run_id: str) -> bool:
        """Ask about every call that waits and was not put off. Returns whether the run has something to go on with."""
        has_decided = False
        try:
            for one in self._agent.pending(run_id):
                if one.digest not in self._put_off:
                    has_decided = self._about(run_id, one) or has_decided
        except (KeyboardInterrupt, EOFError):
            self._console.print()
            return False  # what was decided is recorded; the person wants to leave
        return has_decided

    def _about(self, run_id: str, one: PendingCall) -> bool:
        self._console.print()
        put_call(self._console, one, self._agent.clock.now())
        choices = "[a]llow, [d]eny, [e]dit, [l]ater" if one.about == "call" else "[a]llow it again, [d]eny, [l]ater"
        while True:
            answer = self._read(f"{choices}? ").strip().lower()
            try:
                if self._obey(answer[:1], run_id, one):
                    return True
            except ConfigError as error:
                self._say(str(error))
                continue
            except ApprovalRefused as error:
                self._say(str(error))
                return True  # the time is over, or somebody else was quicker: going on finds out
            if answer[:1] == "l":
                self._put_off.add(one.digest)
                return False

    def _obey(self, choice: str, run_id: str, one: PendingCall) -> bool:
        """Do what was chosen. Returns whether that was a decision."""
        agent, by = self._agent, login_name()
        if choice == "a":
            agent.approve(run_id, one.place, by=by, digest=one.digest)
        elif choice == "d":
            reason = self._read("why? The model is told (Enter for nothing): ").strip()
            agent.deny(run_id, one.place, by=by, reason=reason, digest=one.digest)
        elif choice == "e" and one.about == "call":
            changed = edited(one.arguments)
            if changed is None:
                self._say("nothing was changed")
                return False
            agent.approve(run_id, one.place, by=by, arguments=changed, digest=one.digest)
        else:
            return False
        return True

    def _say(self, text: str) -> None:
        put(self._console, Text(clean(text), "yellow"), 2, wrap=True)

    def _read(self, prompt: str) -> str:
        self._console.print(Text(f"  {prompt}", "bold"), end="")
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line


def edited(arguments: JsonObject) -> JsonObject | None:
    """The arguments as a person left them in his editor; None where they are the same.

    Raises:
        ConfigError: There is no editor, it failed, or what it left is not a JSON object.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="tenlines-") as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(json.dumps(arguments, indent=2) + "\n")
        try:
            done = subprocess.run([*shlex.split(command), str(file)], check=False)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the editor {command!r} cannot be started ({error}); set $EDITOR to another") from error
        if done.returncode:
            raise ConfigError(f"the editor {command!r} ended with {done.returncode}; nothing was changed")
        changed = read_object(file.read_text(errors="replace"))
    return None if changed == arguments else changed


def read_object(text: str) -> JsonObject:
    """Arguments as a person writes them.

    Raises:
        ConfigError: They are not one JSON object.
    """
    from tenlines.core.outcomes import parse_arguments

    parsed = parse_arguments(text)
    if parsed.value is None or not text.strip():
        problem = parsed.problem or "are empty"
        raise ConfigError(f'the arguments {problem}; write one JSON object, as in {{"amount": 5}}')
    return parsed.value
