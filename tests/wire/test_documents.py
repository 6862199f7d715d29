"""Files of messages: JSON and JSON Lines, whole and damaged, bare and wrapped."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines.wire.documents import Notice, Record, Transcript, read, transcripts
from tenlines.wire.recognising import recognise

USER = {"role": "user", "content": "Grüße, wie geht's? 🙂"}
BODIES = [{"messages": [USER], "model": f"m{number}", "seed": number} for number in range(4)]


def lines_of(*values: Any, ascii_only: bool = False) -> bytes:
    return "".join(json.dumps(value, ensure_ascii=ascii_only) + "\n" for value in values).encode()


def values(found: Any) -> list[Any]:
    return [one.value for one in found if isinstance(one, Record)]


def notices(found: Any) -> list[Notice]:
    return [one for one in found if isinstance(one, Notice)]


# --- whole files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        lines_of(*BODIES),
        lines_of(*BODIES).rstrip(),
        b"\xef\xbb\xbf" + lines_of(*BODIES),
        lines_of(*BODIES).replace(b"\n", b"\r\n"),
        b"\n\n" + lines_of(*BODIES).replace(b"\n", b"\n \n"),
        lines_of(*BODIES, ascii_only=True),
        "\n".join(json.dumps(body, indent=2) for body in BODIES).encode(),
        b" ".join(json.dumps(body).encode() for body in BODIES),
    ],
    ids=["lines", "no last break", "byte order mark", "CRLF", "blank lines", "escapes", "indented", "side by side"],
)
@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_all_records_are_read(data: bytes, size: int) -> None:
    found = list(read(data[at : at + size] for at in range(0, len(data), size)))
    assert values(found) == BODIES
    assert notices(found) == []


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_one_document_is_one_record(indent: int | None) -> None:
    assert values(read([json.dumps(BODIES, indent=indent).encode()])) == [BODIES]


def test_a_document_whose_lines_are_objects_is_one_document() -> None:
    text = '{"messages": [\n{"role": "user", "content": "a"},\n{"role": "user", "content": "b"}\n]}\n'
    assert values(read([text.encode()])) == [json.loads(text)]


def test_records_know_their_lines() -> None:
    data = b"\n\n" + lines_of({"a": 1}, 1) + b"\n" + lines_of([2])
    assert [one.line for one in read([data]) if isinstance(one, Record)] == [3, 4, 6]
    indented = json.dumps({"a": 1}, indent=1) + "\n\n" + json.dumps({"b": 1}, indent=1)
    assert [one.line for one in read([indented.encode()]) if isinstance(one, Record)] == [1, 5]


def test_an_empty_file_says_so() -> None:
    assert list(read([])) == list(read([b" \n\n"])) == [Notice(1, 0, "the file is empty")]
    assert "UTF-16" in notices(read(["{}".encode("utf-16")]))[0].text


# --- damage -------------------------------------------------------------------------------------------------

WHOLE = lines_of(*BODIES)
LAST = len(lines_of(*BODIES[:-1]))


@pytest.mark.parametrize("cut", range(LAST + 1, len(WHOLE) - 1))
def test_a_last_line_that_is_cut_anywhere(cut: int) -> None:
    found = list(read([WHOLE[:cut]]))
    assert values(found) == BODIES[:-1]
    [notice] = notices(found)
    assert notice.line == 4
    assert "cut off" in notice.text


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_damage_anywhere_is_told_and_costs_no_other_record(data: st.DataObject) -> None:
    count = data.draw(st.integers(3, 6))
    records = [
        {"messages": [{"role": "user", "content": data.draw(st.text(max_size=5))}], "n": n} for n in range(count)
    ]
    lines = [json.dumps(one, ensure_ascii=data.draw(st.booleans())).encode() for one in records]
    hurt = data.draw(st.integers(0, count - 1))
    whole = lines[hurt]
    cut = data.draw(st.integers(1, len(whole) - 1))
    lines[hurt] = data.draw(
        st.sampled_from(
            [whole[:cut], whole[cut:], b"\0" * cut, whole[:cut] + b"\0" * 8, whole + b"}", b"garbage", b"{'a': 1}"]
        )
    )
    kept = [one for n, one in enumerate(records) if n != hurt]
    found = list(read([b"\n".join(lines) + b"\n"]))
    assert [one for one in values(found) if one in kept] == kept
    assert hurt + 1 in [notice.line for notice in notices(found)]
    assert {notice.line for notice in notices(found)} == {hurt + 1}


def test_a_record_behind_half_of_another_is_kept() -> None:
    first, second, third = (json.dumps(body).encode() for body in BODIES[:3])
    found = list(read([first + b"\n" + second[:30] + third + b"\n"]))
    assert values(found) == [BODIES[0], BODIES[2]]
    assert [(one.line, one.text) for one in notices(found)] == [
        (2, "the first 30 characters are half a record, which was left out")
    ]


def test_a_piece_of_a_broken_record_is_not_taken_for_one() -> None:
    first, second = (json.dumps(body).encode() for body in ({"a": {"b": 1}}, {"a": {"b": 2}}))
    assert values(read([first + b"\n" + second[:-1] + b"\n" + first + b"\n"])) == [{"a": {"b": 1}}] * 2


def test_zero_bytes_before_a_record_cost_nothing_but_a_notice() -> None:
    found = list(read([lines_of(BODIES[0]) + b"\0" * 4096 + lines_of(BODIES[1])]))
    assert values(found) == BODIES[:2]
    assert notices(found) == [Notice(2, 1, "4096 zero bytes, as a crash leaves them")]


def test_bytes_that_are_no_utf_8_are_replaced_and_told() -> None:
    found = list(read([b'{"a": "x"}\n{"a": "\xff"}\n']))
    assert values(found) == [{"a": "x"}, {"a": "\ufffd"}]
    assert notices(found) == [Notice(2, 8, "bytes that are not UTF-8 were replaced")]


def test_numbers_that_json_does_not_have() -> None:
    for data in (b'{"b": 1}\n{"a": "NaN", "b": NaN}\n', b'{"b": 1}\n{"a": "NaN",\n"b": NaN}\n'):
        found = list(read([data]))
        assert len(notices(found)) >= 1
    assert values(read([b'{"b": 1}\n{"a": "NaN", "b": NaN}\n']))[1] == {"a": "NaN", "b": None}
    assert notices(read([b'{"b": 1}\n{"a": "NaN", "b": NaN}\n'])) == [
        Notice(2, 19, "NaN is no JSON; it was read as null")
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ('{\n "a": 1,\n}', 3, 1, "a comma before `}`"),
        ('[\n {"a": 1},\n {"b": 2},\n]', 4, 1, "a comma before `]`"),
        ('{"a": [1, 2,]}', 1, 13, "a comma before `]`"),
        ("{\n 'a': 1\n}", 2, 2, "`'` has no place in JSON"),
        ('{\n "a": 1 // one\n}', 2, 9, "`/` has no place in JSON"),
        ('{\n "a" 1\n}', 2, 6, "`1` stands where a colon was expected"),
        ('{\n "a": 1\n "b": 2\n}', 3, 2, '`"` stands where a comma was expected'),
        ('{\n "a": [1, 2', 2, 12, "the document is cut off"),
        ('{\n "a": "b', 2, 9, "the document is cut off"),
        ('{\n "a": tru', 2, 10, "the document is cut off"),
        ('{\n "a": 1\n}\n}', 4, 1, "`}` stands where"),
        ('{"messages": [\n{"role": "user", "content": "a"}\n],}', 3, 3, "a comma before `}`"),
    ],
)
def test_an_error_in_a_document_is_named_with_its_place(text: str, line: int, column: int, words: str) -> None:
    [notice] = notices(read([text.encode()]))
    assert (notice.line, notice.column) == (line, column)
    assert words in notice.text
    assert str(notice).startswith(f"line {line}, column {column}: ")


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"a":' * 100_000, b"1" * 10_000, lines_of({"a": 1}) + b"[" * 99_999]
)
def test_bombs_are_told_and_not_followed(data: bytes) -> None:
    assert notices(read([data]))


@given(data=st.binary(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read(data: bytes) -> None:
    found = list(read([data]))
    assert found
    list(transcripts(found))


@pytest.mark.slow
def test_a_long_file_takes_no_more_memory_than_a_short_one() -> None:
    line = lines_of({"messages": [{"role": "user", "content": "x" * 10_000}]})

    def chunks() -> Iterator[bytes]:
        for _ in range(2_000):
            yield line[:4096]
            yield line[4096:]

    tracemalloc.start()
    count = sum(isinstance(one, Transcript) for one in transcripts(read(chunks())))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 2_000
    assert peak < 2_000_000


# --- transcripts in a file ------------------------------------------------------------------------------------


def taken(value: Any) -> list[tuple[Any, str]]:
    found = list(transcripts([Record(value)]))
    assert not notices(found)
    return [(one.value, one.path) for one in found if isinstance(one, Transcript)]


BODY = {"model": "m", "messages": [USER]}


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (BODY, [(BODY, "")]),
        ([USER], [([USER], "")]),
        ({"messages": [USER]}, [({"messages": [USER]}, "")]),
        ({"request": BODY, "response": {"choices": []}}, [(BODY, "request")]),
        ({"type": "log", "request": {"body": BODY}}, [(BODY, "request.body")]),
        ({"custom_id": "1", "method": "POST", "url": "/v1", "body": BODY}, [(BODY, "body")]),
        ({"custom_id": "1", "params": BODY}, [(BODY, "params")]),
        ({"request": json.dumps(BODY)}, [(BODY, "request")]),
        ([BODY, {"request": BODY}], [(BODY, "[0]"), (BODY, "[1].request")]),
        ([[USER], [USER, USER]], [([USER], "[0]"), ([USER, USER], "[1]")]),
        ({"inputs": {"messages": [[USER]]}}, [([USER], "inputs.messages[0]")]),
        ({"conversation": [USER]}, [([USER], "conversation")]),
        ({"contents": [{"role": "user", "parts": [{"text": "x"}]}]}, None),
    ],
)
def test_wrappers_are_taken_off(value: Any, wanted: list[tuple[Any, str]] | None) -> None:
    assert taken(value) == (wanted if wanted is not None else [(value, "")])


def test_messages_one_a_line_are_one_transcript() -> None:
    reply = {"role": "assistant", "content": "Gut."}
    data = b"\n" + lines_of(USER, reply)
    assert list(transcripts(read([data]))) == [Transcript([USER, reply], 2, "", (2, 3))]


CLAUDE = [
    {"type": "summary", "summary": "Fix it", "leafUuid": "x"},
    {"type": "user", "uuid": "1", "message": {"role": "user", "content": "run the tests"}},
    {
        "type": "assistant",
        "uuid": "2",
        "message": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pytest"}}],
        },
    },
]
CODEX = [
    {"type": "session_meta", "payload": {"id": "x", "cwd": "/"}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text"}]}},
    {"type": "response_item", "payload": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}},
]


@pytest.mark.parametrize(
    ("log", "field", "name"), [(CLAUDE, "message", "anthropic"), (CODEX, "payload", "openai_responses")]
)
def test_the_log_of_a_coding_agent_is_one_transcript(log: list[Any], field: str, name: str) -> None:
    (found,) = transcripts(read([lines_of(*log)]))
    assert found == Transcript([log[1][field], log[2][field]], 2, "", (2, 3))
    known = recognise(found.value)
    assert known is not None
    assert known.name == name


def test_what_is_no_transcript_is_told() -> None:
    found = list(transcripts(read([lines_of({"a": 1}, BODY, "text")])))
    assert [(one.line, one.text) for one in notices(found)] == [
        (1, "there is no transcript in this value"),
        (3, "there is no transcript in this value"),
    ]
    assert [one.line for one in found if isinstance(one, Transcript)] == [2]
