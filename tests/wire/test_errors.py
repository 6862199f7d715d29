"""What error answers mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tenlines.errors import (
    AuthRejected,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    ProviderError,
    RateLimited,
    RemoteError,
)
from tenlines.wire.errors import error_from


def openai(message: str, code: Any = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9009 tokens."
CLASSES: list[tuple[str, int | None, Any, type[RemoteError], bool]] = [
    # context overflow, wherever it hides
    ("OpenAI", 400, openai(TOO_LONG, "context_length_exceeded"), ContextTooLong, False),
    ("OpenAI, newer", 400, openai("Input tokens exceed the configured limit of 272000 tokens."), ContextTooLong, False),
    ("mid-stream", None, openai("Your input exceeds the context window of this model."), ContextTooLong, False),
    (
        "llama.cpp",
        400,
        {"error": {"code": 400, "type": "exceed_context_size_error", "message": "request (9009 tokens) exceeds ..."}},
        ContextTooLong,
        False,
    ),
    (
        "behind a 500",
        500,
        openai("the request exceeds the available context size, try increasing it"),
        ContextTooLong,
        False,
    ),
    ("Anthropic", 400, openai("prompt is too long: 210000 tokens > 200000 maximum"), ContextTooLong, False),
    (
        "Gemini",
        400,
        [openai("The input token count (9) exceeds the maximum number of tokens allowed (8).")],
        ContextTooLong,
        False,
    ),
    (
        "OpenRouter",
        400,
        {
            "error": {
                "code": 400,
                "message": "Provider returned error",
                "metadata": {"provider_name": "X", "raw": json.dumps(openai(TOO_LONG))},
            }
        },
        ContextTooLong,
        False,
    ),
    (
        "an over-long id that a proxy calls an overflow",
        400,
        openai("ContextWindowExceededError: string too long. Expected a string with maximum length 40"),
        ProviderError,
        False,
    ),
    # the key, the purse
    ("no key", 401, openai("Incorrect API key provided", "invalid_api_key"), AuthRejected, False),
    ("no credit", 402, {"error": {"message": "Insufficient credits", "code": 402}}, AuthRejected, False),
    ("no right", 403, None, AuthRejected, False),
    ("spent quota", 429, openai("You exceeded your current quota", "insufficient_quota"), AuthRejected, False),
    # too fast
    ("rate limit", 429, openai("Rate limit reached", "rate_limit_exceeded"), RateLimited, True),
    ("rate limit without a body", 429, None, RateLimited, True),
    ("rate limit in a stream", None, {"error": {"message": "slow down", "code": 429}}, RateLimited, True),
    (
        "larger than the limit per minute",
        429,
        openai(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 50000.", "rate_limit_exceeded"
        ),
        RateLimited,
        False,
    ),
    # the server
    ("overloaded", 529, openai("Overloaded", None, "overloaded_error"), Overloaded, True),
    ("bad gateway with HTML", 502, "<html>Bad Gateway</html>", Overloaded, True),
    ("conflict", 409, None, Overloaded, True),
    ("Groq's flex capacity", 498, None, Overloaded, True),
    ("an error in a stream", None, {"error": {"message": "boom", "type": "server_error"}}, Overloaded, True),
    ("OpenRouter's status in the body", 200, {"error": {"message": "upstream", "code": 502}}, Overloaded, True),
    ("an unknown error in a stream", None, {"error": "something"}, ProviderError, True),
    ("an invalid request in a stream", None, openai("bad"), ProviderError, False),
    # the model
    (
        "Groq",
        400,
        {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}},
        MalformedReply,
        True,
    ),
    (
        "llama.cpp's parser",
        500,
        {"error": {"code": 500, "message": "The model produced output that does not match the expected peg format"}},
        MalformedReply,
        True,
    ),
    # us
    (
        "llama.cpp's template",
        500,
        {"error": {"code": 500, "message": "Failed to parse tool call arguments as JSON: x"}},
        ProviderError,
        False,
    ),
    ("bad request", 400, openai("Invalid type for 'messages[1].content'", "invalid_type"), ProviderError, False),
    ("no such model", 404, openai("The model `x` does not exist", "model_not_found"), ProviderError, False),
    ("FastAPI", 422, {"detail": "field required"}, ProviderError, False),
]


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"), [row[1:] for row in CLASSES], ids=[row[0] for row in CLASSES]
)
def test_classes(status: int | None, body: Any, kind: type[RemoteError], retryable: bool) -> None:
    error = error_from(status, body, {})
    assert type(error) is kind
    assert error.is_retryable is retryable


def test_the_message_says_status_code_and_what_was_wrong() -> None:
    error = error_from(404, openai("The model `x` does not exist", "model_not_found"), {})
    assert str(error) == "the server answered 404 (model_not_found): The model `x` does not exist"
    assert isinstance(error, ProviderError)
    assert (error.status, error.code) == (404, "model_not_found")


def test_what_the_model_wrote_is_kept() -> None:
    error = error_from(400, {"error": {"message": "Failed to call a function.", "failed_generation": "<function="}}, {})
    assert isinstance(error, MalformedReply)
    assert error.excerpt == "<function="


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    error = error_from(429, None, headers)
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == seconds


@pytest.mark.parametrize(
    ("words", "seconds"), [("Please try again in 1.57s.", 1.57), ("Please try again in 20ms.", 0.02)]
)
def test_the_wait_that_only_the_message_tells(words: str, seconds: float) -> None:
    error = error_from(429, openai(words), {})
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == pytest.approx(seconds)


def test_the_servers_own_word_on_retrying_wins() -> None:
    assert not error_from(503, None, {"x-should-retry": "false"}).is_retryable
    assert error_from(400, None, {"X-Should-Retry": "true"}).is_retryable
    assert not error_from(400, openai(TOO_LONG), {"x-should-retry": "true"}).is_retryable
