"""What is wrong with a request, or with the run that it began, in the shape in which OpenAI says such things."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tenlines.core import events as ev
from tenlines.core.events import Status
from tenlines.core.outcomes import encodable
from tenlines.core.result import RunResult
from tenlines.core.transcript import JsonObject
from tenlines.errors import ConfigError, JournalConflict, JournalError, MisuseError, TenlinesError
from tenlines.trace.text import clean

NO_RETRY: Mapping[str, str] = {"x-should-retry": "false"}
"""Heeded by OpenAI's own clients, which else repeat a request after 409, 429 and 5xx. A run would do it all again."""
RUN_HEADER = "x-tenlines-run"
"""The header of a response that names its run."""


class Fault(TenlinesError):
    """Why a request has no answer.

    Args:
        status: Of HTTP.
        kind: The `type` of the error.
        code: The `code` of the error; None for none.
        param: What of the request it is about: `messages[2].content`.
        headers: Of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        kind: str = "invalid_request_error",
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.code, self.param, self.headers = status, kind, code, param, headers or {}

    @property
    def body(self) -> JsonObject:
        """As it is sent."""
        told: JsonObject = {"message": clean(str(self)), "type": self.kind, "param": self.param, "code": self.code}
        return {"error": told}

    @property
    def text(self) -> bytes:
        """The body as JSON."""
        return json.dumps(self.body, ensure_ascii=False).encode("utf-8", "replace")


def unreadable(path: str, message: str) -> Fault:
    """A request that cannot be read; `path` says where."""
    return Fault(400, f"{path}: {message}" if path else message, param=path or None)


def fault_of(error: BaseException) -> Fault | None:
    """What is said of an exception; None for one that is a bug."""
    match error:
        case Fault():
            return error
        case JournalConflict():
            return Fault(409, f"another process works on the run: {error}", "run_error", headers=NO_RETRY)
        case JournalError():
            return Fault(503, str(error), "server_error", code="journal_error", headers=NO_RETRY)
        case ConfigError() | MisuseError():
            return Fault(400, str(error))
        case _:
            return None


def bug() -> Fault:
    """What is said of a bug. What went wrong inside is in the log alone."""
    told = "This is a bug in tenlines. What happened was written where `tenlines serve` runs."
    return Fault(500, told, "server_error", code="internal_error", headers=NO_RETRY)


def ended(run_id: str = "", way_on: str = "") -> Fault:
    """The server is ended, and so is the run, which can be resumed."""
    told = f"The server was ended, and run {run_id} with it.\n{way_on}" if run_id else "The server is being ended."
    headers = {**NO_RETRY, RUN_HEADER: run_id} if run_id else NO_RETRY
    return Fault(503, encodable(told), "server_error", code="server_ended", headers=headers)


# --- a run that stopped -------------------------------------------------------------------------------

_STATUS: dict[Status, int] = {"context_overflow": 400, "empty_reply": 502, "journal_error": 503}
"""HTTP status for a run that stopped; 422, which no client repeats, for all others."""
_CODES: dict[Status, str] = {"context_overflow": "context_length_exceeded"}
"""Codes that clients know; for all others, the status of the run."""
_MODEL: dict[str, tuple[int, str, str]] = {
    "RateLimited": (429, "rate_limit_error", "rate_limit_exceeded"),
    "Overloaded": (503, "server_error", "model_overloaded"),
    "ConnectionFailed": (503, "server_error", "model_unreachable"),
}
"""Kind of the failure of the agent's own model -> status, type and code."""


def stopped(result: RunResult, reason: str, failure: ev.ModelFailed | None, way_on: str) -> Fault:
    """What is said of a run that ended without an answer.

    Args:
        reason: Why, without secrets.
        failure: Why its model gave no reply, where that was the last thing that happened.
        way_on: What a person can do about it.
    """
    told = f"Run {result.run_id} ended without an answer ({result.status}): {reason}\n{way_on}".strip()
    if result.status == "model_error":
        return _of_model(result, failure, told)
    status, code = _STATUS.get(result.status, 422), _CODES.get(result.status, result.status)
    return Fault(status, encodable(told), "run_stopped", code=code, headers={**NO_RETRY, RUN_HEADER: result.run_id})


def _of_model(result: RunResult, failure: ev.ModelFailed | None, told: str) -> Fault:
    """A run whose model failed. It can be begun anew where it has done nothing."""
    kind = "" if failure is None else failure.kind
    status, name, code = _MODEL.get(kind, (502, "server_error", "model_error"))
    is_new = kind in _MODEL and not result.tool_calls
    headers = {RUN_HEADER: result.run_id, **({} if is_new else NO_RETRY)}
    if failure is not None and failure.retry_after_s is not None:
        headers["retry-after"] = f"{max(0, round(failure.retry_after_s))}"
    return Fault(status, encodable(told), name, code=code, headers=headers)
