"""What an error answer of an OpenAI-compatible server means: whose fault it is, and whether to ask again.

Never judged by the status alone: an overflow of the context hides behind a 500, a spent budget behind a 429, and a
model's own bad output behind a 400 or a 500. Wrappers are unwrapped first, then the text is matched by class.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.errors import (
    AuthRejected,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    ProviderError,
    RateLimited,
    RemoteError,
)

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|exceeds? the (available )?context|context window"
    r"|maximum context length|prompt is too long|input length and `?max_tokens`? exceed"
    r"|exceed the configured limit of [\d,]+ tokens|input token count .{0,40}exceeds"
    r"|input is too long for requested model|too many total text bytes|request_too_large",
    re.IGNORECASE,
)
_NOT_OVERFLOW = re.compile(r"string too long|string_above_max_length", re.IGNORECASE)
"""A proxy reports an over-long call id as an overflow of the context; it is not one."""

_MODEL_FAULT = re.compile(
    r"tool_use_failed|failed to call a function|tool call validation failed|does not match the expected",
    re.IGNORECASE,
)
"""The server could not read what the *model* wrote (Groq; llama.cpp's parser). Asking again may help."""

_TEMPLATE = re.compile(
    r"failed to parse tool call arguments as json|raise_exception|jinja|roles must alternate", re.IGNORECASE
)
"""llama.cpp's 500 for a history that the chat template refuses: it would be refused again."""

_UNPAID = re.compile(r"insufficient_quota|billing|credit balance|exceeded your current quota|spend", re.IGNORECASE)
_NO_KEY = re.compile(r"invalid_api_key|authentication_error|permission_error|invalid x-api-key", re.IGNORECASE)
_RATE = re.compile(r"rate_limit|resource_exhausted|too many requests|throttl", re.IGNORECASE)
_BUSY = re.compile(
    r"overloaded|server_error|internal_error|service_unavailable|unavailable|insufficient_system_resource|timeout",
    re.IGNORECASE,
)
_TOO_BIG_FOR_RATE = re.compile(r"Limit:? ([\d,]+).{0,40}Requested:? ([\d,]+)", re.IGNORECASE)
_TRY_AGAIN_IN = re.compile(r"try again in (\d+(?:\.\d+)?)(ms|s)\b", re.IGNORECASE)
_TRANSIENT = frozenset({408, 409, 424, 425, 498, 499})


class _Facts(NamedTuple):
    status: int | None
    code: str
    message: str
    text: str
    """Everything that may be matched: message, code and type of each layer."""
    garbage: str
    """What the model wrote, where the server tells."""


def error_from(status: int | None, body: JsonValue, headers: Mapping[str, str]) -> RemoteError:
    """The error that an answer stands for.

    Args:
        status: HTTP status; None (or 200) for an error object inside a stream that had begun.
        body: The parsed body, or its text; anything else is taken as no details.
        headers: Response headers, in any case.

    Returns:
        `RateLimited`, `Overloaded`, `AuthRejected`, `ContextTooLong`, `MalformedReply` (the model's own garbage) or a
        plain `ProviderError`. Never raises.
    """
    facts = _facts(status, body)
    lower = {name.lower(): value for name, value in headers.items()}
    if _MODEL_FAULT.search(facts.text):
        return MalformedReply(f"the server could not read what the model wrote: {facts.message}", facts.garbage)
    kind, retryable = _classify(facts)
    if lower.get("x-should-retry") in ("true", "false") and kind is not ContextTooLong:
        retryable = lower["x-should-retry"] == "true"
    where = "the server reported an error" if facts.status is None else f"the server answered {facts.status}"
    code = f" ({facts.code})" if facts.code and facts.code != str(facts.status) else ""
    return kind(
        f"{where}{code}: {facts.message or 'no details'}",
        status=facts.status,
        code=facts.code,
        retry_after_s=_retry_after(lower, facts.text),
        is_retryable=retryable,
    )


def _classify(facts: _Facts) -> tuple[type[ProviderError], bool | None]:
    status, text = facts.status, facts.text
    if _OVERFLOW.search(text) and not _NOT_OVERFLOW.search(text):
        return ContextTooLong, None
    if status in (401, 402, 403) or _NO_KEY.search(text) or (status in (None, 429) and _UNPAID.search(text)):
        return AuthRejected, None
    if status == 429 or (status in (None, 413) and _RATE.search(text)):
        return RateLimited, not _never_fits(text)
    if _TEMPLATE.search(text):
        return ProviderError, False
    if status is None:
        # a request that had been accepted and broke off for a reason that is not known may well succeed again
        return (Overloaded, None) if _BUSY.search(text) else (ProviderError, "invalid_request" not in text)
    if status in _TRANSIENT or status >= 500:
        return Overloaded, None
    return ProviderError, False


def _never_fits(text: str) -> bool:
    """Whether one request alone is larger than the limit per minute: waiting does not help."""
    found = _TOO_BIG_FOR_RATE.search(text)
    if found is None:
        return False
    limit, requested = (int(group.replace(",", "") or 0) for group in found.groups())
    return requested > limit


def _facts(status: int | None, body: JsonValue) -> _Facts:
    message = code = garbage = ""
    texts: list[str] = []
    for layer in _layers(body):
        inner = _string(layer.get("message")) or _string(layer.get("detail")) or _string(layer.get("error"))
        if inner and inner != "Provider returned error":
            message = inner
        label = _string(layer.get("code")) or _string(layer.get("type"))
        code = label or code
        garbage = _string(layer.get("failed_generation")) or garbage
        texts += [inner, label, _string(layer.get("type")), _string(layer.get("status"))]
    if isinstance(body, str):
        message = body.strip()
        texts.append(message)
    if status in (None, 200):
        status = int(code) if re.fullmatch(r"[45]\d\d", code) else None
    return _Facts(status, code, _short(message), "\n".join(filter(None, texts)), garbage)


def _layers(body: JsonValue) -> list[JsonObject]:
    """The error objects inside one another, the outermost first: `error`, and OpenRouter's `metadata.raw`."""
    layers: list[JsonObject] = []
    layer = body
    while len(layers) < 6:
        if isinstance(layer, list) and layer:
            layer = layer[0]  # Gemini's compatible endpoint wraps its error in a list
        if not isinstance(layer, dict):
            break
        layers.append(layer)
        metadata = layer.get("metadata")
        inner = layer.get("error")
        if isinstance(inner, dict):
            layer = inner
        elif isinstance(metadata, dict) and metadata.get("raw"):
            layer = _parsed(metadata["raw"])
        else:
            break
    return layers


def _parsed(raw: JsonValue) -> JsonValue:
    if not isinstance(raw, str):
        return raw
    try:
        value: JsonValue = json.loads(raw)
    except (ValueError, RecursionError):
        return {"message": raw}
    return value if isinstance(value, dict | list) else {"message": raw}


def _string(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int and abs(value) < 10**9 else ""


def _short(message: str, limit: int = 1000) -> str:
    return message if len(message) <= limit else f"{message[:limit]} [...]"


def _retry_after(headers: Mapping[str, str], text: str) -> float | None:
    """Seconds to wait, from the headers or, where there are none, from the message."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    if value:
        return _until(value, headers.get("date", ""))
    found = _TRY_AGAIN_IN.search(text)
    if found is None:
        return None
    return float(found[1]) / (1000 if found[2].lower() == "ms" else 1)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(date: str, sent: str) -> float | None:
    """From the server's own `date` to the date it asks to wait for: its clock need not agree with ours."""
    try:
        span = parsedate_to_datetime(date) - parsedate_to_datetime(sent)
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, span.total_seconds())
