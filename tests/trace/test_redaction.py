from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core import codec
from tenlines.core import events as ev
from tenlines.core.transcript import Json, Opaque, Reply, Text, ToolCall, User
from tenlines.trace.redaction import FAILED, NONE, REDACTED, SECRET_NAMES, Redaction, read_names

SECRET = "sk-demo-1111222233334444"


def replied(arguments: str, text: str = "") -> ev.ModelReplied:
    return ev.ModelReplied(seq=3, at=1.0, step=1, reply=Reply(text, (ToolCall("a", "api", arguments),), "tool_calls"))


def failed(text: str) -> ev.CallFailed:
    return ev.CallFailed(seq=5, at=2.0, step=1, position=0, outcome="tool_error", text=text, detail=text)


# --- by name ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["token", "TOKEN", "api_key", "apiKey", "API-Key", "X-Api-Key", "OPENAI_API_KEY", "dbPassword", "client_secret"],
)
def test_a_name_is_known_in_every_spelling_and_with_something_before_it(name: str) -> None:
    assert Redaction().of({name: "x", "note": "keep me"}) == {name: REDACTED, "note": "keep me"}


@pytest.mark.parametrize("name", ["max_tokens", "tokens", "tokenizer", "secretary", "passwords_seen", "key", "author"])
def test_a_name_that_only_looks_like_one_is_left_alone(name: str) -> None:
    assert Redaction().of({name: 5}) == {name: 5}


def test_the_names_can_be_others() -> None:
    mine = Redaction(["iban"])
    assert mine.of({"iban": "DE1", "password": "x"}) == {"iban": REDACTED, "password": "x"}
    assert mine.text("IBAN: DE1, password: x") == f"IBAN: {REDACTED}, password: x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=hunter2 next", f"password={REDACTED} next"),
        ("password = 'two words' next", f"password = '{REDACTED}' next"),
        ('{"password": "a \\"b", broken', f'{{"password": "{REDACTED}"b", broken'),
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {REDACTED}"),
        ("x-api-key: 12345\naccept: json", f"x-api-key: {REDACTED}\naccept: json"),
        ("GET /x?token=abc&page=2", f"GET /x?token={REDACTED}&page=2"),
        ('{\\"token\\":\\"abc\\"} in a string', f'{{\\"token\\":\\"{REDACTED}\\"}} in a string'),
        ("401 for Bearer sk-1234567890", f"401 for Bearer {REDACTED}"),
        ("the password is not said", "the password is not said"),
        ("Basic facts", "Basic facts"),
    ],
)
def test_a_text_that_names_a_secret(text: str, shown: str) -> None:
    assert Redaction().text(text) == shown


def test_a_private_key_is_taken_out_as_a_whole() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----"
    assert Redaction().text(f"before {key} behind") == f"before {REDACTED} behind"
    assert Redaction().text(key[:40]) == REDACTED  # cut off, as long texts are


def test_arguments_stay_json_and_keep_what_is_no_secret() -> None:
    event = replied(json.dumps({"token": SECRET, "body": {"password": "hunter-demo", "note": "keep me"}}))
    arguments = Redaction().of(event).reply.calls[0].arguments
    assert json.loads(arguments) == {"token": REDACTED, "body": {"password": REDACTED, "note": "keep me"}}


def test_what_is_under_a_secret_name_is_taken_out_whatever_it_is() -> None:
    found = Redaction().of({"credentials": {"user": "u", "pin": 1234}, "token": ["a", "b"], "secret": None})
    assert found == {"credentials": REDACTED, "token": REDACTED, "secret": None}


# --- once known, nowhere ------------------------------------------------------------------------------------


def test_a_secret_that_was_named_once_is_found_everywhere_behind() -> None:
    redaction = Redaction()
    redaction.of(replied(json.dumps({"token": SECRET})))
    assert redaction.of(failed(f"401: {SECRET} is not valid")).text == f"401: {REDACTED} is not valid"
    assert redaction.of({SECRET: "as a key"}) == {REDACTED: "as a key"}


def test_in_a_whole_log_also_before() -> None:
    log: list[Any] = [failed(f"{SECRET}?"), replied(json.dumps({"token": SECRET}))]
    assert SECRET not in b"".join(map(codec.encode, Redaction().log(log))).decode()


def test_a_short_secret_is_not_looked_for_elsewhere() -> None:
    redaction = Redaction()
    assert redaction.text("pin_code=12") == f"pin_code={REDACTED}"
    assert redaction.text("12 eggs") == "12 eggs"


PLACES = (
    lambda secret: replied(json.dumps({"x": [{"api_key": secret}]}), f"I use api_key={secret}"),
    lambda secret: failed(f"HTTP 401, headers: X-Api-Key: {secret}"),
    lambda secret: ev.CallReturned(
        seq=4,
        at=1.0,
        step=1,
        position=0,
        parts=(Text("see"), Json({"api_key": secret})),
        full=f'{{"api_key":"{secret}"}}',
    ),
    lambda secret: ev.RunStarted(
        seq=0,
        at=0.0,
        run_id="r",
        agent="a",
        model="m",
        messages=(User((Text(f"my api key: {secret}"), Opaque("p", "m", {"api_key": secret}))),),
    ),
)
"""An event that names a secret, in each of the ways in which events do."""


@given(
    st.lists(st.sampled_from(PLACES), min_size=1),
    st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+/", min_size=12, max_size=40),
)
def test_a_planted_key_is_in_nothing_that_is_shown(places: list[Any], key: str) -> None:
    secret = f"Kq7{key}9z"
    log = [*(place(secret) for place in places), failed(f"{secret} was refused")]
    assert secret not in b"".join(map(codec.encode, Redaction(["api key"]).log(log))).decode()


# --- a function ---------------------------------------------------------------------------------------------


def test_a_function_sees_every_text_and_can_be_the_only_filter() -> None:
    seen: list[str] = []

    def hide(text: str) -> str:
        seen.append(text)
        return text.replace("Berlin", "[a town]")

    event = replied('{"password":"x","town":"Berlin"}', "Berlin it is")
    found = Redaction((), hide).of(event)
    assert found.reply.text == "[a town] it is"
    assert found.reply.calls[0].arguments == '{"password":"x","town":"[a town]"}'
    assert "Berlin it is" in seen


def test_a_function_comes_after_the_names() -> None:
    assert Redaction(function=str.upper).text("password=x") == "PASSWORD=[REDACTED]"


def test_what_a_function_fails_on_is_not_shown() -> None:
    def breaks(text: str) -> str:
        raise ValueError(text)

    assert Redaction(function=breaks).text("anything") == FAILED


# --- nothing else -------------------------------------------------------------------------------------------


def test_where_there_is_nothing_to_take_out_it_is_the_same_object() -> None:
    event = replied('{ "order" : "1042" }', "I look it up.")
    assert Redaction().of(event) is event
    assert NONE.of({"password": "x"}) == {"password": "x"}
    assert not NONE


def test_a_schema_has_the_names_of_secrets_and_no_values() -> None:
    spec = ev.ToolSpec("api", parameters={"type": "object", "properties": {"token": {"type": "string"}}})
    assert Redaction().of(spec) is spec


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    )
)
def test_any_value_keeps_its_shape_and_a_second_time_changes_nothing(value: Any) -> None:
    redaction = Redaction()
    once = redaction.of(value)
    assert redaction.of(once) == once
    assert type(once) is type(value)
    msgspec.json.encode(redaction.of(Text("x")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["a", "ab ", "x: ", 'k: "', "Bearer ", '\\"', "token", "{[", "-----BEGIN PRIVATE KEY-----"]
)
def test_no_text_takes_more_than_its_length(piece: str) -> None:
    redaction, many = Redaction(), 200_000
    redaction.text(piece * many)  # with work that grows faster this would take minutes


def test_names_as_a_person_lists_them() -> None:
    assert read_names("api_key, x-token ,,") == ["api_key", "x-token"]
    assert len(SECRET_NAMES) == len(set(SECRET_NAMES))
