"""What error answers mean."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tenlines.errors import (
    AuthRejected,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    ProtocolRejected,
    ProviderError,
    RateLimited,
    RemoteError,
)
from tenlines.wire.errors import error_from
from tenlines.wire.formats import FORMATS, all_rules
from tenlines.wire.refusals import KIND_WORDS, recognise
from tenlines.wire.rules import Rule


def openai(message: str, code: Any = None, kind: str = "invalid_request_error") -> Any:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def anthropic(message: str, kind: str = "invalid_request_error", **details: Any) -> Any:
    error = {"type": kind, "message": message, **({"details": details} if details else {})}
    return {"type": "error", "error": error, "request_id": "req_1"}


def gemini(message: str, status: str = "INVALID_ARGUMENT", code: int = 400, *details: Any) -> Any:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def bedrock(message: str, code: str = "ValidationException") -> Any:
    return {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"RetryAttempts": 0}}


def mistral(message: Any, kind: str = "invalid_request_error", code: Any = "3051") -> Any:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def quota(name: str) -> Any:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
GOOGLE_QUOTA = "You exceeded your current quota, please check your plan and billing details."
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
    # Anthropic
    ("Anthropic: busy", 529, anthropic("Overloaded", "overloaded_error"), Overloaded, True),
    ("Anthropic: busy, mid-stream", None, anthropic("Overloaded", "overloaded_error"), Overloaded, True),
    ("Anthropic: its own fault", 500, anthropic("Internal server error", "api_error"), Overloaded, True),
    ("Anthropic: mid-stream", None, anthropic("Internal server error", "api_error"), Overloaded, True),
    ("Anthropic: too fast", 429, anthropic("This request would exceed ...", "rate_limit_error"), RateLimited, True),
    (
        "Anthropic: the cap on what is spent",
        429,
        anthropic("This request would exceed your organization's monthly spend limit.", "rate_limit_error"),
        AuthRejected,
        False,
    ),
    ("Anthropic: no credit", 400, anthropic("Your credit balance is too low to access the API."), AuthRejected, False),
    ("Anthropic: bill", 402, anthropic("There is a problem with billing", "billing_error"), AuthRejected, False),
    ("Anthropic: key", 401, anthropic("invalid x-api-key", "authentication_error"), AuthRejected, False),
    ("Anthropic: right", 403, anthropic("no access", "permission_error"), AuthRejected, False),
    ("Anthropic: no model", 404, anthropic("model: claude-x", "not_found_error"), ProviderError, False),
    (
        "Anthropic: too large",
        413,
        anthropic("Request exceeds the maximum size", "request_too_large"),
        ContextTooLong,
        0,
    ),
    ("Anthropic: bad", 400, anthropic("messages: at least one message is required"), ProviderError, False),
    # Google
    ("Google: too fast", 429, gemini(GOOGLE_QUOTA, "RESOURCE_EXHAUSTED", 429, RETRY_INFO), RateLimited, True),
    (
        "Google: enough for today",
        429,
        gemini(GOOGLE_QUOTA, "RESOURCE_EXHAUSTED", 429, quota("GenerateRequestsPerDayPerProjectPerModel"), RETRY_INFO),
        RateLimited,
        False,
    ),
    (
        "Google: not in this plan",
        429,
        gemini(f"{GOOGLE_QUOTA} Quota exceeded for metric: x, limit: 0", "RESOURCE_EXHAUSTED", 429),
        AuthRejected,
        False,
    ),
    ("Google: too fast, in a stream", 200, gemini("slow", "RESOURCE_EXHAUSTED", 429), RateLimited, True),
    ("Google: busy", 503, gemini("The model is overloaded.", "UNAVAILABLE", 503), Overloaded, True),
    ("Google: busy, in a stream", None, gemini("The model is overloaded.", "UNAVAILABLE", 503), Overloaded, True),
    ("Google: its own fault", 500, [gemini("An internal error", "INTERNAL", 500)], Overloaded, True),
    ("Google: too slow", 504, gemini("Deadline expired", "DEADLINE_EXCEEDED", 504), Overloaded, True),
    (
        "Google: key",
        400,
        gemini(
            "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", 400, {"reason": "API_KEY_INVALID"}
        ),
        AuthRejected,
        False,
    ),
    ("Google: bad", 400, gemini("Unable to submit request"), ProviderError, False),
    ("Google: no model", 404, gemini("models/x is not found", "NOT_FOUND", 404), ProviderError, False),
    # AWS
    ("AWS: too fast", 429, bedrock("Too many tokens, please wait", "ThrottlingException"), RateLimited, True),
    ("AWS: too fast, by an older status", 400, bedrock("Rate exceeded", "ThrottlingException"), RateLimited, True),
    ("AWS: too fast, in a stream", None, {"throttlingException": {"message": "slow"}}, RateLimited, True),
    ("AWS: model is being loaded", 429, bedrock("not ready", "ModelNotReadyException"), RateLimited, True),
    ("AWS: too slow", 408, bedrock("timed out", "ModelTimeoutException"), Overloaded, True),
    ("AWS: the model failed", 424, bedrock("failed", "ModelErrorException"), Overloaded, True),
    ("AWS: failed in a stream", None, {"modelStreamErrorException": {"message": "broken"}}, Overloaded, True),
    ("AWS: its own fault in a stream", None, {"internalServerException": {"message": "broken"}}, Overloaded, True),
    ("AWS: busy", 503, bedrock("busy", "ServiceUnavailableException"), Overloaded, True),
    ("AWS: no right", 403, bedrock("not authorized", "AccessDeniedException"), AuthRejected, False),
    ("AWS: token", 403, bedrock("The security token is expired", "ExpiredTokenException"), AuthRejected, False),
    ("AWS: quota", 400, bedrock("exceeds your quota", "ServiceQuotaExceededException"), AuthRejected, False),
    ("AWS: bad", 400, bedrock("The model returned the following errors: bad"), ProviderError, False),
    ("AWS: bad, in a stream", None, {"validationException": {"message": "bad"}}, ProviderError, False),
    ("AWS: too long", 400, bedrock("Input is too long for requested model."), ContextTooLong, False),
    ("AWS: no model", 404, bedrock("no such model", "ResourceNotFoundException"), ProviderError, False),
    # Mistral
    ("Mistral: bad", 400, mistral("Invalid"), ProviderError, False),
    ("Mistral: bad, by its checker", 422, mistral({"detail": [{"loc": ["body", "x"], "msg": "no"}]}), ProviderError, 0),
    ("Mistral: too fast", 429, {"message": "Requests rate limit exceeded"}, RateLimited, True),
    ("Mistral: full", 429, mistral("Service tier capacity exceeded", "service_tier_capacity_exceeded"), RateLimited, 1),
    ("Mistral: key", 401, {"message": "Unauthorized", "request_id": "1"}, AuthRejected, False),
    ("Mistral: broken off", None, mistral("broken", "internal_server_error", None), Overloaded, True),
    # others
    ("Cohere: bad", 400, {"id": "1", "message": "invalid request: tool call id x not found"}, ProviderError, False),
    ("Ollama: no model", 404, {"error": "model 'x' not found"}, ProviderError, False),
    (
        "vLLM",
        400,
        {"object": "error", "message": f"{TOO_LONG}", "type": "BadRequestError", "param": None, "code": 400},
        ContextTooLong,
        False,
    ),
    (
        "LiteLLM",
        500,
        openai(
            f"litellm.ContextWindowExceededError: AnthropicException - "
            f"{json.dumps(anthropic('prompt is too long: 210000 tokens > 200000 maximum'))}. Received Model Group=x"
        ),
        ContextTooLong,
        False,
    ),
    ("Copilot", 400, {"error": {"message": f"CAPIError: 400 {json.dumps(openai(TOO_LONG))}"}}, ContextTooLong, False),
    ("Groq, in a stream", None, {"error": {"message": "x", "type": "server_error", "status_code": 503}}, Overloaded, 1),
]


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"), [row[1:] for row in CLASSES], ids=[row[0] for row in CLASSES]
)
def test_classes(status: int | None, body: Any, kind: type[RemoteError], retryable: bool) -> None:
    error = error_from(status, body, {})
    assert type(error) is kind
    assert error.is_retryable is bool(retryable)


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
    ("words", "seconds"),
    [
        ("Please try again in 1.57s.", 1.57),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 6m0s.", 360.0),
        ("Please retry in 34.07s.", 34.07),
        ("please retry after 2 minutes", 120.0),
        ("Try again in 1h2m3s", 3723.0),
    ],
)
def test_the_wait_that_only_the_message_tells(words: str, seconds: float) -> None:
    error = error_from(429, openai(words), {})
    assert isinstance(error, RateLimited)
    assert error.retry_after_s == pytest.approx(seconds)


def test_the_servers_own_word_on_retrying_wins() -> None:
    assert not error_from(503, None, {"x-should-retry": "false"}).is_retryable
    assert error_from(400, None, {"X-Should-Retry": "true"}).is_retryable
    assert not error_from(400, openai(TOO_LONG), {"x-should-retry": "true"}).is_retryable


def test_google_tells_the_wait_in_the_body() -> None:
    error = error_from(429, gemini(GOOGLE_QUOTA, "RESOURCE_EXHAUSTED", 429, RETRY_INFO), {})
    assert isinstance(error, RateLimited)
    assert (error.code, error.retry_after_s) == ("RESOURCE_EXHAUSTED", 34.5)


def test_the_header_of_aws_names_the_exception() -> None:
    error = error_from(
        429, {"message": "slow"}, {"x-amzn-ErrorType": "ThrottlingException:http://internal.amazon.com/"}
    )
    assert isinstance(error, RateLimited)
    assert str(error) == "the server answered 429 (ThrottlingException): slow"


@pytest.mark.parametrize(
    ("words", "limit", "sent"),
    [
        (TOO_LONG, 8192, 9009),
        (
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300,001",
            272000,
            300001,
        ),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease", 200000, 190000),
        ("The input token count (9) exceeds the maximum number of tokens allowed (8).", 8, 9),
        ("The input token count is 9 but model only supports up to 8.", 8, 9),
        ("request (9009 tokens) exceeds the available context size (4096 tokens)", 4096, 9009),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 4000 output tokens and your "
            "prompt contains at least 97 input tokens, for a total of at least 4097 tokens.",
            4096,
            97,
        ),
        ("This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens", 8192, 9000),
        ("Your input exceeds the context window of this model.", None, None),
    ],
)
def test_how_far_a_request_is_too_long(words: str, limit: int | None, sent: int | None) -> None:
    error = error_from(400, openai(words), {})
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.sent_tokens) == (limit, sent)


def test_llama_cpp_counts_in_fields() -> None:
    body = {"error": {"type": "exceed_context_size_error", "message": "too long", "n_prompt_tokens": 9, "n_ctx": 8}}
    error = error_from(400, body, {})
    assert isinstance(error, ContextTooLong)
    assert (error.limit_tokens, error.sent_tokens) == (8, 9)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (openai("bad thing (request id: 2026113009)"), "bad thing"),
        (openai('litellm.BadRequestError: OpenAIException - {"error": {"message": "bad thing"}}'), "bad thing"),
        ("CAPIError: 400 bad thing", "400 bad thing"),
        (openai("litellm.APIError: bad thing"), "bad thing"),
        (
            {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "no such role"}]},
            "messages.0.role: no such role",
        ),
        ({"message": {"detail": [{"msg": "one"}, {"msg": "two"}]}}, "one; two"),
    ],
)
def test_what_a_gateway_wrote_around_the_message_is_taken_off(body: Any, words: str) -> None:
    assert str(error_from(400, body, {})).endswith(f": {words}")


# --- refusals of a rule -------------------------------------------------------------------------------


class _Format:
    """As much of a format as is looked at."""

    rejections = ((r"ids were found without `tool_result` blocks", "X-13"), ("no role", "X-1"), ("slow", "X-2"))
    rules = (Rule("X-13", ("PAIR-MISSING",), "error", "t"), Rule("X-1", (), "error", "t"))


ORPHANED = "messages.63: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_x."


FORMAT: Any = _Format()


def refused(status: int | None, body: Any) -> RemoteError:
    return error_from(status, body, {}, FORMAT)


@pytest.mark.parametrize("status", [400, 422, 500, None])
def test_a_refusal_names_the_rule_and_the_place(status: int | None) -> None:
    error = refused(status, anthropic(ORPHANED))
    assert isinstance(error, ProtocolRejected)
    assert (error.rule, error.kind, error.status, error.code) == (
        "X-13",
        "PAIR-MISSING",
        status,
        "invalid_request_error",
    )
    assert not error.is_retryable
    assert str(error) == (
        "the server refused the request: it looks like X-13 (calls without results) at messages.63: "
        f"{ORPHANED}; `tenlines rules X-13` explains it"
    )


def test_a_refusal_of_a_rule_without_a_kind() -> None:
    error = refused(400, openai("there is no role"))
    assert isinstance(error, ProtocolRejected)
    assert (error.rule, error.kind) == ("X-1", "")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (429, openai("slow"), RateLimited),
        (529, openai("slow"), Overloaded),
        (401, openai("slow"), AuthRejected),
        (404, openai("slow"), ProviderError),
        (400, openai("something else"), ProviderError),
        (400, openai(f"slow. {TOO_LONG}"), ContextTooLong),
    ],
)
def test_what_is_known_to_be_something_else_is_no_refusal(status: int, body: Any, kind: type[RemoteError]) -> None:
    assert type(refused(status, body)) is kind


def test_without_a_format_nothing_is_recognised() -> None:
    error = error_from(400, anthropic(ORPHANED), {})
    assert isinstance(error, ProviderError)
    assert recognise(error, None) is error


# --- what the providers say to each broken rule ---------------------------------------------------------

VECTORS = Path(__file__).parents[1] / "vectors" / "protocol.jsonl"
ROWS = [row for row in map(json.loads, VECTORS.read_text().splitlines()) if row.get("provider_error")]
REFUSALS = [(row["id"], row["provider_error"]) for row in ROWS]
NAMES = {"bedrock_converse": "bedrock", "openai_compat": "openai_chat"}
VAGUE = {
    "ANT-21.bad.1": "ANT-7",  # the same words
    "BED-5.bad.1": "",  # a text that does not say what it speaks of
    "CMP-6.bad.1": "CMP-2",
    "DSK-2.bad.1": "",  # no text at all
    "MIS-4.bad.2": "MIS-6",  # two texts
    "OAI-C-14.bad.2": "",
    "OAI-C-18.bad.1": "",
    "OAI-R-6.bad.1": "OAI-R-4",  # the same words
    "OAI-R-6.bad.2": "OAI-R-4",
}
"""Refusals that do not say which rule was broken -> what they are taken for."""


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_each_refusal_is_taken_for_the_rule_that_was_broken(row: Any) -> None:
    format = FORMATS[NAMES.get(row["format"], row["format"])]
    error = error_from(400, openai(row["provider_error"]), {}, format)
    assert isinstance(error, ProviderError)
    assert getattr(error, "rule", "") == VAGUE.get(row["id"], row["violated_rule"])
    assert not error.is_retryable


def test_each_kind_of_violation_has_words() -> None:
    kinds = {kind for rule in all_rules() for kind in rule.kinds}
    assert kinds <= KIND_WORDS.keys()


@pytest.mark.parametrize("wrap", [openai, anthropic, gemini, bedrock, mistral, str], ids=lambda wrap: wrap.__name__)
def test_no_refusal_is_ever_retried(wrap: Any) -> None:
    assert len(REFUSALS) > 100
    for id, said in REFUSALS:
        for status in (400, 422):
            error = error_from(status, wrap(said), {})
            assert type(error) is ProviderError, (id, error)
            assert not error.is_retryable, (id, error)


# --- over process borders -----------------------------------------------------------------------------


def test_every_error_can_be_pickled() -> None:
    made: list[RemoteError] = [error_from(status, body, {"retry-after": "7"}) for _, status, body, _, _ in CLASSES]
    made += [refused(400, anthropic(ORPHANED)), error_from(400, openai(TOO_LONG), {})]
    for error in made:
        assert pickle.dumps(error)
        back = copy.copy(error)  # the same way, without the bytes between
        assert (type(back), str(back), vars(back), back.is_retryable) == (
            type(error),
            str(error),
            vars(error),
            error.is_retryable,
        )


@pytest.mark.parametrize(
    "code", ["invalid_prompt", "invalid_image_format", "invalid_base64_image", "image_too_large", "image_parse_error"]
)
def test_a_response_that_failed_for_what_was_sent_is_not_asked_again(code: str) -> None:
    error = error_from(None, {"error": {"code": code, "message": "no"}}, {})
    assert not error.is_retryable
    assert error_from(None, {"error": {"code": "server_error", "message": "no"}}, {}).is_retryable
