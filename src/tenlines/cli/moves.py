"""What to do next, as commands to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tenlines.core.limits import Limits
from tenlines.core.result import RunResult


def command(name: str, arguments: Sequence[str], journal: str | None, *options: str) -> str:
    """A command to be copied, with the journal as it was named."""
    named = [] if journal is None else ["--journal", journal]
    return shlex.join(["tenlines", name, *arguments, *named, *options])


def next_move(result: RunResult, limits: Limits, journal: str | None, *, is_of_fleet: bool = False) -> tuple[str, str]:
    """What to do about a run that stopped: why and how, and the command (or "").

    Args:
        is_of_fleet: Its workers can go on with it, where nothing is to be said or cut first.
    """
    if journal == "memory":
        return "the run was kept in memory only and cannot be resumed; leave out --journal memory next time", ""
    if result.status == "journal_error" and "another process" in result.reason:
        return (
            "this process stopped without touching anything; what the other one does",
            f"tenlines show {result.run_id}",
        )
    advice, options = _advice(result, limits)
    if options is None:
        return advice, ""
    if is_of_fleet and not {"--say", "--compact"}.intersection(options):
        return advice, command("submit", [], journal, "--again", result.run_id, *options)
    return advice, command("resume", [result.run_id], journal, *options)


def _advice(result: RunResult, limits: Limits) -> tuple[str, Sequence[str] | None]:
    doubled = _raised(result, limits)
    if doubled is not None:
        return "raise the cap and go on, nothing is repeated", doubled
    if result.status == "model_error":
        return _about_failure(result.reason)
    return _ADVICE.get(result.status, ("go on with it", ()))


def _raised(result: RunResult, limits: Limits) -> Sequence[str] | None:
    """The option that lifts the limit which stopped the run, or None where it was no limit."""
    match result.status:
        case "max_steps" if limits.steps is not None and result.steps >= limits.steps:
            return ("--max-steps", str(max(1, 2 * limits.steps)))
        case "tool_limit" if limits.tool_calls is not None:
            return ("--max-tool-calls", str(max(1, 2 * limits.tool_calls)))
        case "deadline" if limits.seconds is not None:
            return ("--timeout", f"{2 * limits.seconds:g}")
        case "budget" if limits.tokens is not None and "tokens" in result.reason:
            return ("--max-tokens", str(2 * max(limits.tokens, result.usage.total + 1000)))
        case "budget" if limits.dollars is not None and "price" not in result.reason:
            return ("--max-dollars", f"{max(0.01, 2 * limits.dollars):g}")
    return None


def _about_failure(reason: str) -> tuple[str, Sequence[str] | None]:
    if reason.startswith("PlanStopped"):
        return "where a limit was in the way raise it, or name another model, and go on; or change the plan", ()
    lowered = reason.lower()
    if any(word in lowered for word in ("401", "403", "api key", "api_key", "unauthorized", "credit", "quota")):
        return "check the key or the account, then go on", ()
    return "when the model can be reached again go on, or add --model NAME to ask another", ()


_ADVICE: dict[str, tuple[str, Sequence[str] | None]] = {
    "budget": ("give the model's price with --price IN/OUT (dollars per million tokens), or limit --max-tokens", None),
    "max_steps": ("go on with it", ()),
    "stuck": ("tell it what to try instead and go on", ("--say", "...")),
    "refused": ("say it in another way and go on", ("--say", "...")),
    "cancelled": ("go on where it stopped", ()),
    "empty_reply": ("try again, or add --model NAME to ask another model", ()),
    "truncated_reply": ("go on from where the reply was cut off", ()),
    "context_overflow": ("cut what is old and go on; or let tools return less (@tool(max_result=...))", ("--compact",)),
    "journal_error": ("make the journal writable again, then go on", ()),
}
