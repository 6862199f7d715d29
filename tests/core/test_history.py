"""A history that came from elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenlines.core.history import first_fault, mend, without_calls
from tenlines.core.outcomes import parse_arguments, wire_name
from tenlines.core.transcript import Assistant, Message, Note, Opaque, Result, System, Text, ToolCall, User

ids = st.sampled_from(["", "a", "b", "call_h1_0", "call_h2_0"])
calls = st.builds(
    ToolCall, ids, st.sampled_from(["look", "", "get weather", "x" * 99]), st.sampled_from(["{}", '{"a":1}', "{", ""])
)
messages: st.SearchStrategy[Message] = st.one_of(
    st.just(System("rules")),
    st.just(User((Text("hi"),))),
    st.builds(Note, st.just("note"), st.booleans()),
    st.builds(
        Assistant,
        st.sampled_from(["", " ", "words"]),
        st.lists(calls, max_size=3).map(tuple),
        st.sampled_from([(), (Opaque("p", "m", 1),)]),
        st.booleans(),
    ),
    st.builds(Result, ids, st.just("look"), st.just("ok"), st.just((Text("42"),))),
)
histories = st.lists(messages, max_size=9)


def asked(*names: str) -> Assistant:
    return Assistant("", tuple(ToolCall(name, "look", "{}") for name in names))


def result(name: str, text: str = "42") -> Result:
    return Result(name, "look", "ok", (Text(text),))


USER = User((Text("hi"),))


@given(histories)
def test_whatever_is_mended_is_a_valid_transcript(history: list[Message]) -> None:
    assert first_fault(mend(history).messages) == ""


@given(histories)
def test_mending_twice_changes_nothing_more(history: list[Message]) -> None:
    once = mend(history)
    assert mend(once.messages) == (once.messages, ())


@given(histories)
def test_a_valid_history_with_usable_calls_is_left_alone(history: list[Message]) -> None:
    mended = mend(history)
    if not mended.repairs:
        kinds = [type(message) for message in history]
        assert [type(message) for message in mended.messages] == kinds
        assert first_fault(history) == ""


@given(histories)
def test_every_call_of_a_mended_history_can_be_sent_to_any_provider(history: list[Message]) -> None:
    for message in mend(history).messages:
        if isinstance(message, Assistant):
            for call in message.calls:
                assert call.id
                assert wire_name(call.name) == call.name
                assert parse_arguments(call.arguments).value is not None


@given(histories)
def test_no_word_of_a_person_is_lost(history: list[Message]) -> None:
    people = [message for message in history if isinstance(message, User | Note | System)]
    kept = [message for message in mend(history).messages if isinstance(message, User | Note | System)]
    assert sorted(map(repr, kept)) == sorted(map(repr, people))


@pytest.mark.parametrize(
    ("history", "fault"),
    [
        ((result("a"),), "belongs to no open call"),
        ((asked("a"),), "at the end has no result"),
        ((asked("a"), USER, result("a")), "has no result here"),
        ((asked("a", "b"), result("b"), result("a")), "has no result here"),
        ((asked("a"), result("a"), result("a")), "belongs to no open call"),
        ((asked("a", "a"), result("a"), result("a")), "not unique"),
        ((asked("a"), result("a"), asked("a"), result("a")), "not unique"),
        ((asked(""), result("")), "empty or not unique"),
        ((Assistant("", ()),), "without text and without calls"),
        ((USER, System("late")), "after the conversation has begun"),
    ],
)
def test_every_kind_of_fault_is_seen_and_mended(history: tuple[Message, ...], fault: str) -> None:
    assert fault in first_fault(history)
    mended = mend(history)
    assert first_fault(mended.messages) == ""
    assert mended.repairs


def test_a_call_without_a_result_gets_one_that_says_that_none_was_recorded() -> None:
    mended = mend([USER, asked("a"), USER])
    filled = mended.messages[2]
    assert isinstance(filled, Result)
    assert filled.outcome == "in_doubt"
    assert "no result was recorded" in filled.text
    assert "'a'" in mended.repairs[0]


def test_of_two_results_for_one_call_the_first_stays_and_the_second_is_in_the_report() -> None:
    mended = mend([asked("a"), result("a", "first"), result("a", "second")])
    assert [message.text for message in mended.messages[1:]] == ["first"]  # type: ignore[union-attr]
    assert "second" in mended.repairs[0]


def test_a_message_between_a_call_and_its_result_moves_behind_the_result() -> None:
    mended = mend([asked("a"), USER, result("a")])
    assert [type(message) for message in mended.messages] == [Assistant, Result, User]


def test_repeated_ids_are_made_unique_and_keep_their_results_in_order() -> None:
    mended = mend([asked("a", "a"), result("a", "1"), result("a", "2")])
    first, second = mended.messages[1:]
    assert isinstance(first, Result)
    assert isinstance(second, Result)
    assert (first.text, second.text) == ("1", "2")
    assert first.call_id != second.call_id


def test_a_valid_history_is_the_same_afterwards() -> None:
    history = (System("rules"), USER, asked("a", "b"), result("a"), result("b"), Assistant("done"))
    assert mend(history) == (history, ())


@given(histories)
def test_without_calls_nothing_of_any_tool_is_left_and_it_is_valid(history: list[Message]) -> None:
    spoken = without_calls(mend(history).messages)
    assert first_fault(spoken) == ""
    assert all(isinstance(one, System | User) or one == Assistant(one.text) for one in spoken)
    texts = [one.text for one in spoken if isinstance(one, Assistant)]
    assert texts == [one.text for one in mend(history).messages if isinstance(one, Assistant) and one.text.strip()]
