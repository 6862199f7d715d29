"""What an error answer means, of any provider: whose fault it is, and whether to ask again.

Never judged by the status alone: an overflow of the context hides behind a 500, a spent budget behind a 429, and a
model's own bad output behind a 400 or a 500. Wrappers are unwrapped first (`wire.error_shapes`), then the text is
matched by class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tenlines.core.transcript import JsonValue
from tenlines.errors import (
    AuthRejected,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    ProviderError,
    RateLimited,
    RemoteError,
)
from tenlines.wire.error_shapes import Facts, read_error
from tenlines.wire.refusals import recognise

if TYPE_CHECKING:
    from tenlines.wire.format import Format

_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|exceeds? the (available )?context|context window"
    r"|maximum context length|prompt is too long|input length and `?max_tokens`? exceed"
    r"|exceed the configured limit of [\d,]+ tokens|input token count .{0,40}(exceeds|only supports up to)"
    r"|input is too long for requested model|too many total text bytes|request_too_large",
    re.IGNORECASE,
)
_NOT_OVERFLOW = re.compile(r"string too long|string_above_max_length", re.IGNORECASE)
"""A proxy reports an over-long call id as an overflow of the context; it is not one."""

_MODEL_FAULT = re.compile(
    r"tool_use_failed|failed to call a function|tool call validation failed|does not match the expected"
    r"|malformed_(tool_use|model_output|function_call)",
    re.IGNORECASE,
)
"""The server could not read what the *model* wrote (Groq; llama.cpp's parser). Asking again may help."""

_TEMPLATE = re.compile(
    r"failed to parse tool call arguments as json|raise_exception|jinja|roles must alternate", re.IGNORECASE
)
"""llama.cpp's 500 for a history that the chat template refuses: it would be refused again."""

_UNPAID = re.compile(
    r"insufficient_quota|billing_error|credit balance is too low|reached your specified .{0,20}usage limit"
    r"|insufficient (credits|balance)|spend(ing)?[ _-](cap|limit)|limit: 0\b",
    re.IGNORECASE,
)
_UNPAID_429 = re.compile(r"exceeded your current quota|billing|spend", re.IGNORECASE)
"""Words that mean an empty purse at a 429 of anybody but Google, who uses them for the limit per minute too."""
_PER_DAY = re.compile(r"PerDay|per day\b|\bRPD\b|\bTPD\b")
_NO_KEY = re.compile(
    r"invalid_api_key|authentication_error|permission_error|permission_denied|unauthenticated|invalid x-api-key"
    r"|api_key_invalid|api key (not valid|expired)|AccessDeniedException|UnrecognizedClientException"
    r"|ExpiredTokenException|InvalidSignatureException|ServiceQuotaExceededException",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"rate_limit|resource_exhausted|too many requests|throttl|ModelNotReadyException|service_tier_capacity_exceeded",
    re.IGNORECASE,
)
_BUSY = re.compile(
    r"overloaded|server_error|api_error|internal_error|internalserver|service_?unavailable|unavailable|timeout"
    r"|insufficient_system_resource|ModelErrorException|ModelStreamErrorException|deadline_exceeded|\bINTERNAL\b",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"invalid_request|invalid_argument|ValidationException|not_found_error|invalid_prompt"
    r"|\b(invalid|unsupported|empty|failed_to_download)_(base64_)?image|image_(too_|parse_|content_policy|file_)",
    re.IGNORECASE,
)
_TOO_BIG_FOR_RATE = re.compile(r"Limit:? ([\d,]+).{0,40}Requested:? ([\d,]+)", re.IGNORECASE)
_TRANSIENT = frozenset({408, 409, 424, 425, 498, 499})


def error_from(
    status: int | None, body: JsonValue, headers: Mapping[str, str], format: Format | None = None
) -> RemoteError:
    """The error that an answer stands for.

    Args:
        status: HTTP status; None (or 200) for an error object inside a stream that had begun.
        body: The parsed body, or its text; anything else is taken as no details. For AWS, also what botocore makes
            of it (`{"Error": {"Code": ..., "Message": ...}}`) or an exception event of a stream
            (`{"throttlingException": {...}}`).
        headers: Response headers, in any case.
        format: The wire format of the request: its rules are then looked through for the one that was broken.

    Returns:
        `RateLimited`, `Overloaded`, `AuthRejected`, `ContextTooLong`, `ProtocolRejected` (with a format),
        `MalformedReply` (the model's own garbage) or a plain `ProviderError`. Never raises.
    """
    facts = read_error(status, body, headers)
    if _MODEL_FAULT.search(facts.text):
        return MalformedReply(f"the server could not read what the model wrote: {facts.message}", facts.garbage)
    kind, retryable = _classify(facts)
    should = next((value for name, value in headers.items() if name.lower() == "x-should-retry"), "")
    if should in ("true", "false") and kind is not ContextTooLong:
        retryable = should == "true"
    where = "the server reported an error" if facts.status is None else f"the server answered {facts.status}"
    code = f" ({facts.code})" if facts.code and facts.code != str(facts.status) else ""
    error = kind(
        f"{where}{code}: {facts.message or 'no details'}",
        status=facts.status,
        code=facts.code,
        retry_after_s=facts.retry_after_s,
        is_retryable=retryable,
    )
    if isinstance(error, ContextTooLong):
        error.limit_tokens, error.sent_tokens = facts.limit_tokens, facts.sent_tokens
    return recognise(error, format)


def _classify(facts: Facts) -> tuple[type[ProviderError], bool | None]:
    status, text = facts.status, facts.text
    if _OVERFLOW.search(text) and not _NOT_OVERFLOW.search(text):
        return ContextTooLong, None
    if _is_locked_out(facts):
        return AuthRejected, None
    if status == 429 or (status in (None, 400, 413) and _RATE.search(text)):
        return RateLimited, not (_never_fits(text) or _PER_DAY.search(text))
    if _TEMPLATE.search(text):
        return ProviderError, False
    if status is None:
        # a request that had been accepted and broke off for a reason that is not known may well succeed again
        return (Overloaded, None) if _BUSY.search(text) else (ProviderError, not _REFUSED.search(text))
    if status in _TRANSIENT or status >= 500:
        return Overloaded, None
    return ProviderError, False


def _is_locked_out(facts: Facts) -> bool:
    """Whether the key, the right or the money is missing."""
    status, text = facts.status, facts.text
    if status in (401, 402, 403) or _NO_KEY.search(text):
        return True
    if status not in (None, 400, 429):
        return False
    is_google = "RESOURCE_EXHAUSTED" in text
    return bool(_UNPAID.search(text) or (status != 400 and not is_google and _UNPAID_429.search(text)))


def _never_fits(text: str) -> bool:
    """Whether one request alone is larger than the limit per minute: waiting does not help."""
    found = _TOO_BIG_FOR_RATE.search(text)
    if found is None:
        return False
    limit, requested = (int(group.replace(",", "") or 0) for group in found.groups())
    return requested > limit
