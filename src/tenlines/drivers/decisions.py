"""What a person decides about a run that waits on disk: one event, appended by whoever holds the journal."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tenlines.core import events as ev
from tenlines.core import outcomes
from tenlines.core.machine import Machine
from tenlines.core.result import PendingCall, pending_calls
from tenlines.core.state import Phase
from tenlines.core.transcript import JsonObject
from tenlines.drivers.recorder import machine_of
from tenlines.errors import ApprovalRefused, ConfigError, InvalidEvent, JournalConflict
from tenlines.ports import Clock, Invalid, Journal, ToolPort


class Decision(NamedTuple):
    """An answer to the question whether a call may run."""

    verdict: Literal["allow", "deny"]
    by: str = ""
    """Who decides; it is recorded."""
    reason: str = ""
    """For the model, where the call is denied."""
    arguments: JsonObject | None = None
    """In place of those that the model wrote."""
    digest: str | None = None
    """`PendingCall.digest` of the question that is answered, so that no other can be; None for what waits now."""


def pending(journal: Journal, run_id: str) -> tuple[PendingCall, ...]:
    """The calls of a run that wait for somebody's decision.

    Raises:
        RunNotFound: The journal has no such run.
    """
    return pending_calls(machine_of(journal, run_id).state)


def decide(
    journal: Journal, clock: Clock, run_id: str, call: str | None, decision: Decision
) -> tuple[PendingCall, ...]:
    """Record a decision about a call of a paused run. Nothing runs: resuming does that.

    Args:
        call: Its place (`2.1`: step 2, first call), its id or the name of its tool; None where only one waits.

    Returns:
        The calls that still wait.

    Raises:
        ApprovalRefused: No such call waits, it is another one by now, or the time is over. Nothing was recorded.
    """
    machine = machine_of(journal, run_id)
    _check_paused(machine, run_id)
    one = find(pending_calls(machine.state), run_id, call)
    if decision.digest not in (None, one.digest):
        raise ApprovalRefused(
            f"another call waits at {one.place} of run {run_id} than the decision is about; look at it again"
        )
    now, lasts = clock.now(), machine.state.settings.approval_expires_s
    event = ev.ApprovalGiven(
        seq=machine.state.seq + 1,
        at=now,
        step=one.step,
        position=one.position,
        digest=one.digest,
        verdict=decision.verdict,
        by=decision.by,
        reason=decision.reason,
        arguments=None if decision.arguments is None else outcomes.canonical(decision.arguments),
        expires_at=None if lasts is None else now + lasts,
    )
    try:
        machine.apply(event)
        journal.append(run_id, event)
        journal.commit(run_id)
    except InvalidEvent as error:
        raise ApprovalRefused(
            f"the decision cannot be taken: {error}; resume run {run_id}, which asks again"
        ) from error
    except JournalConflict as error:
        raise ApprovalRefused(f"run {run_id} went on meanwhile; look again at what waits") from error
    return pending_calls(machine.state)


def _check_paused(machine: Machine, run_id: str) -> None:
    state = machine.state
    if state.phase is Phase.ENDED and state.exchange is not None:
        return
    if state.ended is not None and state.phase is Phase.ENDED:
        raise ApprovalRefused(f"run {run_id} has ended as {state.ended.status}: no call of it waits")
    raise ApprovalRefused(
        f"run {run_id} has not paused: it is being worked on, or its process died. Resume it; it pauses when only a "
        "decision is missing"
    )


def check_edit(tool: ToolPort, arguments: JsonObject) -> None:
    """Whether a tool takes what somebody wants to put in place of what the model wrote.

    Raises:
        ConfigError: It does not.
    """
    bound = tool.check(arguments)
    if isinstance(bound, Invalid):
        raise ConfigError(f"these arguments cannot be put in place: {bound.text}")


def find(waiting: tuple[PendingCall, ...], run_id: str, call: str | None) -> PendingCall:
    """The call that is meant.

    Raises:
        ApprovalRefused: None of them, or more than one.
    """
    if call is None:
        found = waiting
    else:
        found = tuple(one for one in waiting if call in (one.place, one.id)) or tuple(
            one for one in waiting if call == one.name
        )
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{one.place} ({one.name})" for one in waiting)
    if not waiting:
        raise ApprovalRefused(f"everything about run {run_id} is decided: resume it")
    if not found:
        raise ApprovalRefused(f"no call {call!r} of run {run_id} waits for a decision; waiting: {listed}")
    raise ApprovalRefused(f"{len(found)} calls of run {run_id} wait for a decision; name one of {listed}")
