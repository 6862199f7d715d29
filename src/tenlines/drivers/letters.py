"""Letters to a run that another process works on, or nobody: put into its mailbox, and made events of the run.

The log says which letters were heard (`State.mail`); all others are still to be delivered.
"""

from __future__ import annotations

from tenlines.core import events as ev
from tenlines.core.machine import Machine
from tenlines.core.state import Phase
from tenlines.core.transcript import Text
from tenlines.drivers.drafts import Draft
from tenlines.drivers.recorder import machine_of
from tenlines.errors import ConfigError
from tenlines.ports import Clock, Journal, Letter, Mailbox, Saying, Stopping


def post(journal: Journal, clock: Clock, run_id: str, what: Saying | Stopping) -> Letter:
    """Send a letter to a run. It is heard within a second where a process works on the run, else when it is resumed.

    Raises:
        RunNotFound: The journal has no such run.
        ConfigError: The run has ended or is being undone, nothing is said, or the journal has no mailbox. Nothing was
            posted.
    """
    if not isinstance(journal, Mailbox):
        raise ConfigError(
            "this journal has no mailbox: a run in it is reached from its own process alone, by `Control`"
        )
    if isinstance(what, Saying) and not what.text.strip():
        raise ConfigError("there is nothing to say: give some text")
    machine = machine_of(journal, run_id)
    _refuse_deaf(machine, run_id, what)
    return journal.post(run_id, what, at=clock.now(), above=machine.state.mail)


def _refuse_deaf(machine: Machine, run_id: str, what: Saying | Stopping) -> None:
    """Refuse what the run would never hear."""
    state = machine.state
    if state.phase is Phase.UNDOING:
        raise ConfigError(f"run {run_id} is being undone, which goes on to its end whatever is said")
    if state.phase is not Phase.ENDED or state.ended is None or state.ended.status == "awaiting_approval":
        return
    status = state.ended.status
    if isinstance(what, Stopping):
        raise ConfigError(f"run {run_id} has ended as {status}: there is nothing to stop")
    if status == "answered":
        raise ConfigError(f"run {run_id} is answered, so nothing more can be said in it; start a new one with `run`")
    raise ConfigError(f"run {run_id} has ended as {status}; say it and go on: `tenlines resume {run_id} --say TEXT`")


def waiting(journal: Journal, run_id: str, heard: int) -> list[Letter]:
    """The letters to a run that it has not heard.

    Args:
        heard: Number of the last letter that its log says it heard (`State.mail`).
    """
    return journal.letters({run_id: heard}) if isinstance(journal, Mailbox) else []


def unheard(journal: Journal, run_id: str) -> list[Letter]:
    """The letters to a run that stand in no event of it. Its log may be any."""
    heard = max((getattr(event, "mail", 0) for event in journal.read(run_id)), default=0)
    return waiting(journal, run_id, heard)


def draft_of(letter: Letter) -> Draft:
    """What a letter becomes in the log."""
    match letter.what:
        case Saying(text, by):
            return Draft(ev.MessageQueued, {"parts": (Text(text),), "by": by, "mail": letter.number})
        case Stopping(mode, reason, by):
            return Draft(ev.CancelRequested, {"mode": mode, "reason": reason, "by": by, "mail": letter.number})
