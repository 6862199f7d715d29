"""What an error answer says, whoever says it: each provider and gateway wraps the same few facts in its own way."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue


class Facts(NamedTuple):
    """An error answer without its wrapping."""

    status: int | None
    code: str
    """The provider's own word for it: `rate_limit_error`, `RESOURCE_EXHAUSTED`, `ThrottlingException`."""
    message: str
    """What the innermost layer says, shortened."""
    text: str
    """Everything that may be matched: message, code and type of each layer."""
    garbage: str
    """What the model wrote, where the server tells."""
    retry_after_s: float | None
    limit_tokens: int | None
    sent_tokens: int | None


def read_error(status: int | None, body: JsonValue, headers: Mapping[str, str]) -> Facts:
    """Take an error answer apart. Total: whatever the body is, there are facts."""
    lower = {name.lower(): value for name, value in headers.items()}
    layers = _layers(body)
    read = [_read(layer) for layer in layers]
    codes = [word for one in read for word in one.words]
    named = _of_exception(lower.get("x-amzn-errortype", ""))
    code = named or next((word for word in reversed(codes) if not word.isdigit()), codes[-1] if codes else "")
    text = "\n".join([part for one in read for part in (one.message, *one.words, *one.hints) if part] + [named])
    if status in (None, 200):
        status = next((int(word) for word in reversed(codes) if re.fullmatch(r"[45]\d\d", word)), None)
    limit, sent = _tokens(layers, text)
    return Facts(
        status=status,
        code=code,
        message=_short(_unlabelled(next((one.message for one in reversed(read) if one.message), ""))),
        text=text,
        garbage=next((found for layer in layers if (found := _string(layer.get("failed_generation")))), ""),
        retry_after_s=_retry_after(lower, layers, text),
        limit_tokens=limit,
        sent_tokens=sent,
    )


# --- layers -----------------------------------------------------------------------------------------

_MOST_LAYERS = 8
_EMPTY_WORDS = frozenset({"Provider returned error", "error"})


class _Read(NamedTuple):
    message: str
    words: list[str]
    """Its codes and types, the less telling ones first."""
    hints: list[str]


def _layers(body: JsonValue) -> list[JsonObject]:
    """The error objects inside one another, the outermost first."""
    layers: list[JsonObject] = []
    layer: JsonValue = {"message": body.strip()} if isinstance(body, str) else body
    while len(layers) < _MOST_LAYERS:
        if isinstance(layer, list) and layer:
            layer = layer[0]  # Gemini's compatible endpoint wraps its error in a list
        if not isinstance(layer, dict):
            break
        layers.append(layer)
        layer = _inner(layer)
    return layers


def _inner(layer: JsonObject) -> JsonValue:
    """What a layer is wrapped around: a field, an event of Bedrock, or JSON in the middle of its message."""
    metadata, raw = layer.get("metadata"), None
    if isinstance(metadata, dict):
        raw = metadata.get("raw")  # OpenRouter
    for inner in (layer.get("error"), layer.get("Error"), layer.get("message"), raw):
        if isinstance(inner, dict):
            return inner
    for name, value in layer.items():
        if name.endswith("Exception") and isinstance(value, dict):
            return {**value, "code": _of_exception(name)}
    for text in (
        _string(raw),
        _string(layer.get("error")),
        _string(layer.get("message")),
        _string(layer.get("Message")),
    ):
        if (found := _embedded(text)) is not None:
            return found
    return {"message": raw} if isinstance(raw, str) and raw else None


def _embedded(text: str) -> JsonObject | None:
    """The JSON object in a text (LiteLLM, Copilot, OpenRouter): `litellm.BadRequestError: ... - {"error": ...}`."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not _ERROR_FIELDS.isdisjoint(value) else None


_ERROR_FIELDS = frozenset({"error", "message", "Message", "detail"})


def _read(layer: JsonObject) -> _Read:
    message = next((found for name in _MESSAGES if (found := _sentence(layer.get(name)))), "")
    words = [_string(layer.get(name)) for name in ("status", "type", "Code", "code", "__type")]
    words = [_of_exception(word) for word in words if word and word not in _EMPTY_WORDS]
    hints = [_string(detail.get(name)) for detail in _details(layer) for name in ("reason", "error_code")]
    hints += [quota for detail in _details(layer) for quota in _quotas(detail)]
    return _Read("" if message in _EMPTY_WORDS else message, words, [hint for hint in hints if hint])


_MESSAGES = ("message", "Message", "detail", "error", "originalMessage")


def _sentence(value: JsonValue) -> str:
    """A message: a text, or FastAPI's list of what is wrong where."""
    if isinstance(value, dict):
        value = value.get("detail")
    if not isinstance(value, list):
        return _string(value)
    found = []
    for entry in value[:5]:
        if isinstance(entry, dict):
            where = entry.get("loc")
            path = ".".join(str(part) for part in where if part != "body") if isinstance(where, list) else ""
            found.append(f"{path}: {_string(entry.get('msg'))}" if path else _string(entry.get("msg")))
    return "; ".join(filter(None, found))


def _details(layer: JsonObject) -> Iterator[JsonObject]:
    details = layer.get("details")
    for detail in details if isinstance(details, list) else [details]:
        if isinstance(detail, dict):
            yield detail


def _quotas(detail: JsonObject) -> Iterator[str]:
    violations = detail.get("violations")
    for violation in violations if isinstance(violations, list) else []:
        if isinstance(violation, dict):
            yield _string(violation.get("quotaId"))


def _of_exception(name: str) -> str:
    """`ThrottlingException` out of AWS's spellings: a namespace before it, an address behind it, a small letter."""
    name = name.partition(":")[0].rpartition("#")[2] if "Exception" in name else name
    return name[:1].upper() + name[1:] if name.endswith("Exception") else name


_LABEL = re.compile(r"^(?:litellm\.\w+: |\w+Exception - |CAPIError: )+")
_REQUEST_ID = re.compile(r"\s*\(request id: [^)]*\)\s*$", re.IGNORECASE)


def _unlabelled(message: str) -> str:
    """Without what a gateway wrote around it."""
    return _REQUEST_ID.sub("", _LABEL.sub("", message))


def _string(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int and abs(value) < 10**9 else ""


def _short(message: str, limit: int = 1000) -> str:
    return message if len(message) <= limit else f"{message[:limit]} [...]"


# --- how long to wait -------------------------------------------------------------------------------

_SPAN = r"\d{1,9}(?:\.\d{1,9})?\s*(?:milliseconds?|seconds?|minutes?|hours?|ms|s|m|h)(?![a-z])"
_WAIT = re.compile(rf"(?:try again|retry) (?:in|after) ((?:{_SPAN}[ ,]*)+)", re.IGNORECASE)
_NUMBER_AND_UNIT = re.compile(r"([\d.]+)\s*([a-z]+)", re.IGNORECASE)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _retry_after(headers: Mapping[str, str], layers: list[JsonObject], text: str) -> float | None:
    """Seconds to wait, from the headers or, where there are none, from the body."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    if value:
        return _until(value, headers.get("date", ""))
    for layer in layers:
        for detail in _details(layer):  # Google's RetryInfo
            delay = _string(detail.get("retryDelay"))
            if _number(delay.removesuffix("s")) is not None:
                return _number(delay.removesuffix("s"))
    found = _WAIT.search(text)
    return sum(_seconds(*pair) for pair in _NUMBER_AND_UNIT.findall(found[1])) if found else None


def _seconds(number: str, unit: str) -> float:
    unit = unit.lower()
    return float(number) * (0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[0]])


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


# --- how many tokens --------------------------------------------------------------------------------

_N = r"(?P<{}>\d[\d,]{{0,11}})"
_LIMIT, _SENT = _N.format("limit"), _N.format("sent")
_OVERFLOWS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"context length is {_LIMIT} tokens.{{0,80}}?contains at least {_SENT} input",  # vLLM
        rf"context length is {_LIMIT} tokens.{{0,80}}?(?:resulted in|requested(?: about)?) {_SENT} ",
        rf"limit of {_LIMIT} tokens.{{0,80}}?resulted in {_SENT}",
        rf"{_SENT} tokens? > {_LIMIT}",
        rf"context limit: {_SENT} \+ [\d,]+ > {_LIMIT}",
        rf"token count \(?(?:is )?{_SENT}.{{0,80}}?(?:allowed|up to) \(?{_LIMIT}",
        rf"\({_SENT} tokens\) exceeds .{{0,80}}?\({_LIMIT} tokens\)",
        rf"context length is {_LIMIT} tokens",
    )
)


def _tokens(layers: list[JsonObject], text: str) -> tuple[int | None, int | None]:
    """How many fit and how many were sent, where an overflow says so."""
    for layer in layers:
        limit, sent = layer.get("n_ctx"), layer.get("n_prompt_tokens")  # llama.cpp
        if type(limit) is int and type(sent) is int:
            return limit, sent
    for pattern in _OVERFLOWS:
        if found := pattern.search(text):
            numbers = found.groupdict()
            return _integer(numbers["limit"]), _integer(numbers.get("sent"))
    return None, None


def _integer(digits: str | None) -> int | None:
    return int(digits.replace(",", "")) if digits else None
