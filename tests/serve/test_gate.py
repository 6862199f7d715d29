"""Who is let in, as a decision about headers. The server that asks for it is in `test_site.py`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.errors import ConfigError, JournalError, RunNotFound
from tenlines.serve.gate import CSRF_HEADER, Gate, Secrets, is_entrance, refused

SECRETS = Secrets("the-token", 8000)
HOSTS = frozenset({"127.0.0.1:8000", "localhost:8000"})
OURS = {
    "host": "127.0.0.1:8000",
    "cookie": f"{SECRETS.cookie_name}={SECRETS.cookie}",
    "origin": "http://127.0.0.1:8000",
    "sec-fetch-site": "same-origin",
    CSRF_HEADER: SECRETS.csrf,
}


def scope(headers: dict[str, str], method: str = "GET", path: str = "/", query: str = "") -> dict[str, Any]:
    listed = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": listed}


def status(headers: dict[str, str], method: str = "GET", **more: str) -> int:
    found = refused(scope(headers, method, **more), SECRETS, HOSTS)
    return 200 if found is None else found.status


def test_a_page_of_ours_is_let_in() -> None:
    assert status(OURS) == status(OURS, "POST") == 200


def test_a_person_who_types_the_address_is_let_in() -> None:
    typed = {"host": OURS["host"], "cookie": OURS["cookie"]}
    assert status(typed) == status({**typed, "sec-fetch-site": "none"}) == 200
    assert status(typed, "POST") == 403


NAMES = ("host", "cookie", "origin", "sec-fetch-site", CSRF_HEADER)
VALUES = st.one_of(
    st.sampled_from(["", "null", "none", "same-site", "cross-site", "127.0.0.1", "http://evil.example", "the-token"]),
    st.text(alphabet=st.characters(max_codepoint=255), max_size=40),
    st.sampled_from(sorted(OURS.values())),
)


@given(st.sampled_from(NAMES), st.one_of(st.none(), VALUES), st.sampled_from(["POST", "PUT", "DELETE", "BREW"]))
def test_to_change_something_each_of_five_things_must_be_right(name: str, value: str | None, method: str) -> None:
    given_ = {**OURS}
    if value is None:
        del given_[name]
    else:
        given_[name] = value
    is_right = value == OURS[name] or (name == "origin" and value == "http://localhost:8000")
    is_right = is_right or (name == "host" and value == "localhost:8000")
    assert (status(given_, method) == 200) == is_right


@given(st.dictionaries(st.sampled_from(["host", "origin", "sec-fetch-site", "sec-fetch-mode", "referer", "x"]), VALUES))
def test_without_the_cookie_nobody_is_let_in(headers: dict[str, str]) -> None:
    for method in ("GET", "HEAD", "POST"):
        assert status({**headers, "host": OURS["host"]}, method) in (401, 403)


def test_the_cookie_is_not_the_token_and_the_page_s_token_is_neither() -> None:
    assert len({"the-token", SECRETS.cookie, SECRETS.csrf}) == 3
    assert Secrets("another", 8000).cookie != SECRETS.cookie
    assert status({**OURS, "cookie": f"{SECRETS.cookie_name}=the-token"}) == 401
    assert status({**OURS, CSRF_HEADER: "the-token"}, "POST") == 403


@pytest.mark.parametrize("query", ["token=the-token", "a=b&token=the-token"])
def test_the_token_opens_the_entrance_alone(query: str) -> None:
    assert is_entrance(scope({}, query=query), SECRETS)
    assert status({"host": OURS["host"]}, query=query) == 200
    assert status({"host": OURS["host"]}, query=query, path="/runs/x") == 401
    assert status({"host": OURS["host"]}, "POST", query=query) == 403
    assert status({"host": "evil.example:8000"}, query=query) == 421


@pytest.mark.parametrize("query", ["", "token=", "token=the-token&token=x", "token=the-tokem", "Token=the-token"])
def test_another_token_does_not(query: str) -> None:
    assert status({"host": OURS["host"]}, query=query) == 401


# --- what is said when something goes wrong -----------------------------------------------------------------


async def ask(error: Exception) -> tuple[int, str, dict[str, str]]:
    """What a gate answers when what is behind it raises that."""
    sent: list[Any] = []

    async def app(*_: Any) -> None:
        raise error

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    await Gate(app, SECRETS, HOSTS)(scope(OURS), receive, send)
    headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], sent[1]["body"].decode(), headers


@pytest.mark.parametrize(
    ("error", "wanted"),
    [(RunNotFound("no such run"), 404), (JournalError("the disk is gone"), 503), (ConfigError("not so"), 400)],
)
def test_an_error_of_ours_is_told(error: Exception, wanted: int) -> None:
    import asyncio

    said, text, headers = asyncio.run(ask(error))
    assert (said, text) == (wanted, f"{error}\n")
    assert headers["x-content-type-options"] == "nosniff"


def test_any_other_is_a_bug_of_which_only_the_log_says_more(caplog: pytest.LogCaptureFixture) -> None:
    import asyncio

    said, text, _ = asyncio.run(ask(ValueError("secret inside")))
    assert said == 500
    assert text.startswith("This is a bug in tenlines.")
    assert "secret inside" not in text
    assert "secret inside" in caplog.text
