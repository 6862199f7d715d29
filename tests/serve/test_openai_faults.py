"""Runs that end without an answer, as OpenAI's own client sees them."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai_world import ANSWER, HI, Writing, content, serving, step

from tenlines import Limits, Reply
from tenlines.core import events as ev
from tenlines.errors import ConnectionFailed, ContextTooLong, RateLimited
from tenlines.serve import openai_api
from tenlines.serve.openai_told import FINISH

# --- runs that end otherwise --------------------------------------------------------------------------

NO_WAIT = ev.Settings(retry=ev.Retry(attempts=1))
REFUSED = Reply("I will not.", stop="refusal")
CUT = Reply("It is in Bas", stop="length")


@pytest.mark.parametrize(
    ("moves", "limits", "finish", "text"),
    [([CUT], Limits(), "length", "It is in Bas"), ([REFUSED], Limits(), "content_filter", "I will not.")],
)
def test_a_reply_that_is_no_answer_is_marked_as_such(moves: Any, limits: Limits, finish: str, text: str) -> None:
    with serving(Writing(*moves)) as server:
        whole, chunks = server.ask().choices[0], server.pieces()
    assert (whole.finish_reason, whole.message.content) == (finish, text)
    assert (chunks[-1].choices[0].finish_reason, content(chunks)) == (finish, text)
    assert whole.message.refusal == (text if finish == "content_filter" else None)


STOPS = [
    ([step(), step(n=2)], {"limits": Limits(steps=1)}, openai.UnprocessableEntityError, "max_steps"),
    ([step(), step(n=2)], {"limits": Limits(tool_calls=0)}, openai.UnprocessableEntityError, "tool_limit"),
    ([ANSWER], {"limits": Limits(dollars=1)}, openai.UnprocessableEntityError, "budget"),
    ([Reply(), Reply(), Reply()], {}, openai.InternalServerError, "empty_reply"),
    ([ContextTooLong("too long")], {}, openai.BadRequestError, "context_length_exceeded"),
    ([RateLimited("slow down", retry_after_s=7)], {}, openai.RateLimitError, "rate_limit_exceeded"),
    ([ConnectionFailed("nobody there")], {}, openai.InternalServerError, "model_unreachable"),
    ([ValueError("broken")], {}, openai.InternalServerError, "model_error"),
]


@pytest.mark.parametrize(("moves", "how", "error", "code"), STOPS, ids=[one[3] for one in STOPS])
def test_a_run_without_an_answer_raises_the_clients_own_exception(moves: Any, how: Any, error: Any, code: str) -> None:
    with serving(moves, settings=NO_WAIT, **how) as server:
        with pytest.raises(error) as caught:
            server.ask()
        run_id = caught.value.response.headers["x-tenlines-run"]
        with pytest.raises(error if "look" not in str(moves) else openai.APIError):
            server.pieces()
    assert caught.value.code == code
    assert f"resume {run_id}" in caught.value.message
    assert server.log(run_id)[-1].status != "answered"  # type: ignore[union-attr]
    is_new = code in ("rate_limit_exceeded", "model_unreachable")
    assert caught.value.response.headers.get("x-should-retry") == (None if is_new else "false")
    if code == "rate_limit_exceeded":
        assert (caught.value.status_code, caught.value.response.headers["retry-after"]) == (429, "7")


def test_what_a_run_did_is_not_done_again_by_a_client_that_repeats() -> None:
    moves = Writing(step(), RateLimited("slow down"))
    with serving(moves, settings=NO_WAIT) as server, server.client as client:
        with pytest.raises(openai.RateLimitError) as caught:
            client.with_options(max_retries=2).chat.completions.create(model="agent", messages=HI)
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert len(server.journal.runs()) == 1
        with pytest.raises(openai.APIError, match="slow down") as within:
            server.pieces()  # the stream had begun when it came to that
    assert within.value.code == "rate_limit_exceeded"


def test_every_status_is_either_a_finish_reason_or_an_error() -> None:
    assert set(FINISH) == {"answered", "awaiting_approval", "truncated_reply", "refused"}


def test_a_bug_is_a_500_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*given: Any) -> Any:
        raise ZeroDivisionError("secret")

    with serving([ANSWER]) as server:
        monkeypatch.setattr(openai_api.told, "completion", breaks)
        with pytest.raises(openai.InternalServerError) as caught:
            server.ask()
        monkeypatch.setattr(openai_api.told, "facts", breaks)
        with pytest.raises(openai.APIError) as within:
            server.pieces()
    assert (caught.value.code, within.value.code) == ("internal_error", "internal_error")
    assert "secret" not in caught.value.message + within.value.message
