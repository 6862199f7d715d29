"""Who may ask."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from openai_world import ANSWER, KEY, Server, Writing, serving, step


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """An agent that makes two calls and answers."""
    with serving(Writing(step(), step(n=2), ANSWER), instructions="Be brief.") as made:
        yield made


# --- the door -----------------------------------------------------------------------------------------


def test_without_the_key_nothing_is_told(server: Server) -> None:
    with server.client as client, pytest.raises(openai.AuthenticationError) as caught:
        client.with_options(api_key="another").models.list()
    assert (caught.value.code, caught.value.response.headers["www-authenticate"]) == ("invalid_api_key", "Bearer")
    for shown in ("", KEY, f"Basic {KEY}", f"Bearer {KEY}x", "Bearer ", "Bearer \xe9"):
        assert server.raw("GET", "/v1/models", Authorization=shown)[0] == 401
    assert server.raw("GET", "/v1/models", Authorization=f"bearer  {KEY}")[0] == 200


def test_only_this_machine_is_answered_to(server: Server) -> None:
    for host, status in (("evil.example", 421), (f"localhost:{server.port}", 200), ("127.0.0.1", 421)):
        assert server.raw("GET", "/v1/models", Host=host)[0] == status


def test_pages_may_ask_where_their_origin_was_allowed() -> None:
    theirs, other = "http://localhost:3000", "http://localhost:3001"
    with serving([ANSWER], origins=[theirs]) as server:
        status, headers, _ = server.raw(
            "OPTIONS",
            "/v1/chat/completions",
            Authorization="",
            Origin=theirs,
            Access_Control_Request_Method="POST",
            Access_Control_Request_Headers="authorization,content-type,x-stainless-lang",
        )
        assert (status, headers["access-control-allow-origin"]) == (204, theirs)
        assert headers["access-control-allow-headers"] == "authorization,content-type,x-stainless-lang"
        status, headers, _ = server.raw("GET", "/v1/models", Origin=theirs)
        assert (status, headers["access-control-allow-origin"], headers["vary"]) == (200, theirs, "Origin")
        assert (
            server.raw("GET", "/v1/models", Origin=theirs, Authorization="")[1]["access-control-allow-origin"] == theirs
        )
        for method in ("OPTIONS", "GET"):
            status, headers, body = server.raw(method, "/v1/models", Origin=other)
            assert (status, headers["access-control-allow-origin"]) == (403, None)
            assert "--allow-origin" in body["error"]["message"]


def test_without_allowed_origins_there_is_no_cors(server: Server) -> None:
    assert server.raw("GET", "/v1/models", Origin="null")[0] == 403
    headers = server.raw("GET", "/v1/models")[1]
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert headers["x-content-type-options"] == "nosniff"
