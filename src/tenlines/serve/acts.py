"""What a person does on a page. Each is what a command does, with the same rules and the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tenlines.core.outcomes import parse_arguments
from tenlines.core.state import Phase
from tenlines.core.transcript import JsonObject
from tenlines.drivers import decisions, letters
from tenlines.drivers.decisions import Decision
from tenlines.drivers.recorder import machine_of
from tenlines.errors import ConfigError
from tenlines.ports import Clock, Journal, Saying, Stopping, ToolPort
from tenlines.trace import words
from tenlines.trace.redaction import REDACTED, Redaction


class Told(NamedTuple):
    """What is said to a person who did something."""

    text: str
    next: str = ""
    """The command that goes on, or ""."""


class Hands(NamedTuple):
    """With what a person acts."""

    journal: Journal
    clock: Clock
    by: str
    """Who he is; recorded."""
    go_on: Callable[[str], str]
    """The command that goes on with a run."""
    tools: Mapping[str, ToolPort]
    """Against which arguments are checked that a person wrote."""


def approve(hands: Hands, run_id: str, form: Mapping[str, str]) -> Told:
    """Allow the call that was shown, as `tenlines approve RUN CALL --digest D`.

    Raises:
        ApprovalRefused: It does not wait any more, or another call does in its place.
    """
    return _decide(hands, run_id, form, Decision("allow", hands.by, "", None, form["digest"]))


def deny(hands: Hands, run_id: str, form: Mapping[str, str]) -> Told:
    """Forbid it, as `tenlines deny RUN CALL --digest D --reason TEXT`."""
    return _decide(hands, run_id, form, Decision("deny", hands.by, form.get("reason", ""), None, form["digest"]))


def edit(hands: Hands, run_id: str, form: Mapping[str, str], redaction: Redaction) -> Told:
    """Allow it with other arguments, as `tenlines approve RUN CALL --digest D --edit JSON`.

    Raises:
        ConfigError: They are no JSON object, or the tool does not take them.
    """
    one = decisions.find(decisions.pending(hands.journal, run_id), run_id, form["call"])
    changed = restored(read_object(form["arguments"]), redaction.of(one.arguments), one.arguments)
    tool = hands.tools.get(one.name)
    if tool is not None:
        decisions.check_edit(tool, changed)
    told = _decide(hands, run_id, form, Decision("allow", hands.by, "", changed, form["digest"]))
    unchecked = "" if tool is not None else f" The arguments were not checked: no tool {one.name} is loaded here."
    return told._replace(text=told.text + unchecked)


def cancel(hands: Hands, run_id: str, form: Mapping[str, str]) -> Told:
    """Stop the run, as `tenlines cancel RUN`."""
    is_drained = form.get("mode") == "drain"
    what = Stopping("drain" if is_drained else "now", form.get("reason", ""), hands.by)
    letters.post(hands.journal, hands.clock, run_id, what)
    return _posted(hands, run_id, "It stops after what is running." if is_drained else "It stops at once.")


def say(hands: Hands, run_id: str, form: Mapping[str, str]) -> Told:
    """Tell the model something, as `tenlines say RUN TEXT`."""
    letters.post(hands.journal, hands.clock, run_id, Saying(form["text"], hands.by))
    return _posted(hands, run_id, "The story shows it as soon as the run has heard it.")


def _posted(hands: Hands, run_id: str, then: str) -> Told:
    if machine_of(hands.journal, run_id).state.phase is Phase.ENDED:
        return Told("Posted. The run hears it when it is resumed.", hands.go_on(run_id))
    return Told(f"Posted. {then}")


def _decide(hands: Hands, run_id: str, form: Mapping[str, str], decision: Decision) -> Told:
    if not decision.digest:
        raise ConfigError("the decision names no call that was shown; load the page again")
    waiting = decisions.decide(hands.journal, hands.clock, run_id, form["call"], decision)
    did = "Allowed" if decision.verdict == "allow" else "Denied"
    changed = ", with other arguments" if decision.arguments is not None else ""
    if waiting:
        still = words.count(len(waiting), "call")
        return Told(f"{did}{changed}. {still} of the run still wait{'s' * (len(waiting) == 1)}.")
    return Told(f"{did}{changed}. The run goes on when it is resumed.", hands.go_on(run_id))


# --- arguments that a person wrote ------------------------------------------------------------------------


def read_object(text: str) -> JsonObject:
    """Arguments as a person writes them.

    Raises:
        ConfigError: They are not one JSON object.
    """
    parsed = parse_arguments(text)
    if parsed.value is None or not text.strip():
        raise ConfigError(
            f'the arguments {parsed.problem or "are empty"}; write one JSON object, as in {{"amount": 5}}'
        )
    return parsed.value


def restored(written: JsonObject, shown: JsonObject, real: JsonObject) -> JsonObject:
    """What a person means who was shown arguments without their secrets: what he left as it was shown stays as it is.

    Raises:
        ConfigError: What stands for a secret is in a place where none was.
    """
    meant: JsonObject = _restored(written, shown, real)
    if REDACTED in repr(meant) and REDACTED not in repr(real):
        raise ConfigError(
            f"the arguments hold {REDACTED} where no secret was hidden; leave it where it stood, or write the value"
        )
    return meant


def _restored(written: Any, shown: Any, real: Any) -> Any:
    if isinstance(written, dict) and isinstance(shown, dict) and isinstance(real, dict):
        return {
            key: _restored(value, shown[key], real[key]) if key in shown and key in real else value
            for key, value in written.items()
        }
    if isinstance(written, list) and isinstance(shown, list) and isinstance(real, list) and len(written) == len(shown):
        return [_restored(*three) for three in zip(written, shown, real, strict=False)]
    return real if written == shown and type(written) is type(shown) else written  # 1 is not true
