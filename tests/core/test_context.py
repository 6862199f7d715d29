"""What may be cut from a transcript, and what it is after a cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import get_args

import msgspec
import pytest

from tenlines.core import context
from tenlines.core.context import (
    ELIDED_AT_MOST,
    MOST_NAMES,
    MOST_STARTS,
    SUMMARY_HEADING,
    Compaction,
    Span,
    Strategy,
    cut,
    elided,
    instructed,
    last_resort,
    problem,
    protected_from,
    question,
    spans,
    summary_fault,
)
from tenlines.core.history import first_fault
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    JsonValue,
    Message,
    Note,
    Opaque,
    Outcome,
    Part,
    Reply,
    Result,
    StopReason,
    System,
    Text,
    ToolCall,
    User,
    estimate_tokens,
)

LONG = Text("y" * 5_000)
SIGNED = (Opaque("p", "m", {"blocks": []}),)
TASK: tuple[Message, ...] = (System("be brief"), User((Text("count the orders"),)))
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


def exchange(number: int, *parts: Part, name: str = "look", signed: bool = False) -> list[Message]:
    call = ToolCall(f"c{number}", name, "{}")
    said = Assistant(f"step {number}", (call,), SIGNED if signed else ())
    return [said, Result(call.id, name, "ok", parts or (LONG,))]


def transcript(*pieces: Sequence[Message]) -> list[Message]:
    return [*TASK, *(message for piece in pieces for message in piece)]


def sizes(messages: Sequence[Message]) -> list[int]:
    return [estimate_tokens(message) for message in messages]


def possible(messages: Sequence[Message], **given: object) -> dict[str, list[Span]]:
    """The cuts of each strategy."""
    found: dict[str, list[Span]] = {strategy: [] for strategy in STRATEGIES}
    for span in spans(messages, sizes(messages), Compaction(strategies=STRATEGIES, **given)):  # type: ignore[arg-type]
        found[span.strategy].append(span)
    return found


def made(
    messages: Sequence[Message], strategy: Strategy, start: int, end: int, keys: Mapping[str, str] | None = None
) -> list[Message]:
    """A cut, checked: valid, and the same again changes nothing."""
    span = Span(strategy, start, end, 0, 0)
    before = list(messages)
    after = cut(messages, span, "so far", keys or {})
    assert messages == before
    assert after is not messages
    assert first_fault(after) == first_fault(before) == ""
    again = span._replace(end=end + len(after) - len(before))
    assert again.end <= start or cut(after, again, "so far", keys or {}) == after
    return after


TEN = transcript(*(exchange(number) for number in range(10)))


# --- the options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"strategies": ()},
        {"strategies": ("shrink",)},
        {"keep": 0},
        {"window": 0},
        {"at": 0},
        {"summary_tokens": 10},
        {"least_gain": -1.0},
    ],
    ids=str,
)
def test_an_option_that_means_nothing_is_refused_by_its_name(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"Compaction.{next(iter(given))}"):
        Compaction(**given)  # type: ignore[arg-type]


# --- what is left as it is --------------------------------------------------------------------------


def test_the_newest_exchanges_begin_with_what_the_model_said() -> None:
    assert [protected_from(TEN, keep) for keep in (1, 2, 10)] == [20, 18, 2]


def test_with_fewer_exchanges_than_are_kept_all_is_left_as_it_is() -> None:
    assert protected_from(TEN, 11) == protected_from([], 1) == protected_from(TASK, 1) == 0
    assert possible(TEN, keep=11) == {"elide": [], "drop": [], "summarise": []}


def test_a_reply_without_calls_counts_and_what_stands_behind_an_exchange_belongs_to_it() -> None:
    messages = transcript(exchange(0), [Note("hurry"), User((Text("and?"),))], [Assistant("ok")], [Note("so?")])
    assert protected_from(messages, 1) == len(messages) - 2
    assert protected_from(messages, 2) == 2


def test_a_reply_that_goes_on_after_a_pause_is_not_torn_apart() -> None:
    messages = transcript([Assistant("I search", (), SIGNED)], exchange(0), exchange(1))
    assert protected_from(messages, 2) == 2
    assert problem(messages, Span("elide", 3, 5, 0, 0)) == "a cut of messages 3 to 5 would split an exchange"


# --- which cuts are possible ------------------------------------------------------------------------


def test_each_strategy_says_what_stands_there_now_and_after() -> None:
    found = possible(TEN, keep=2, summary_tokens=100)
    for strategy in STRATEGIES:
        for span in found[strategy]:
            after = made(TEN, strategy, span.start, span.end)
            assert span.tokens == sum(sizes(TEN)[span.start : span.end])
            left = sum(sizes(after)) - sum(sizes(TEN)) + span.tokens
            assert left <= span.left < span.tokens
            assert strategy == "summarise" or span.left - left < 30 * (span.end - span.start)
    assert [len(found[strategy]) for strategy in STRATEGIES] == [8, 1, 1]
    assert (found["drop"][0].start, found["drop"][0].end) == (2, 18)


def test_only_the_strategies_that_may_be_used_are_offered() -> None:
    assert {span.strategy for span in spans(TEN, sizes(TEN), Compaction(strategies=("drop",)))} == {"drop"}


def test_old_results_are_left_out_from_a_few_places_on_in_even_steps_of_what_that_saves() -> None:
    random = Random(1)
    messages = transcript(*(exchange(number, Text("z" * random.randint(0, 9_000))) for number in range(200)))
    found = possible(messages, keep=3)["elide"]
    assert len(found) <= MOST_STARTS
    saved = [span.tokens - span.left for span in found]
    assert saved == sorted(saved)
    assert saved[-1] == max(saved)
    steps = [after - before for before, after in zip([0, *saved], saved, strict=False)]
    assert max(steps) <= 2 * saved[-1] / MOST_STARTS + 3_000
    assert all(isinstance(messages[span.start], Assistant) and span.end == 396 for span in found)


def test_no_cut_begins_with_results_that_are_already_left_out() -> None:
    after = made(TEN, "elide", 2, 10)
    assert [span.start for span in possible(after, keep=2)["elide"]] == [16, 14, 12, 10]


def test_nothing_is_offered_that_saves_nothing() -> None:
    short = transcript(*(exchange(number, Text("1")) for number in range(4)))
    found = possible(short)
    assert found["elide"] == found["summarise"] == []
    assert possible(transcript([Note("n" * 900)], exchange(0), exchange(1))) == {
        strategy: [] for strategy in STRATEGIES
    }
    assert spans([], [], Compaction()) == spans(TASK, sizes(TASK), Compaction()) == []


def test_a_summary_outlives_what_is_left_out_behind_it_and_the_next_summary_takes_its_place() -> None:
    once = made(TEN, "summarise", 2, 10)
    assert once[2] == Note(SUMMARY_HEADING + "so far", summary=True)
    found = possible(once, keep=2, summary_tokens=60)
    assert [found[strategy][-1].start for strategy in STRATEGIES] == [3, 3, 2]
    dropped = made(once, "drop", 3, 9)
    assert dropped[2] == once[2]
    again = made(dropped, "summarise", 2, 6)
    assert [one for one in again if isinstance(one, Note)] == [once[2]]


class Counted(list[Message]):
    """Says how many messages were looked at."""

    looked_at = 0

    def __getitem__(self, index):  # type: ignore[no-untyped-def,override]
        self.looked_at += 1
        return super().__getitem__(index)

    def __iter__(self) -> Iterator[Message]:
        for message in super().__iter__():
            self.looked_at += 1
            yield message


def test_the_work_grows_with_the_transcript_and_no_faster() -> None:
    looked_at = []
    for count in (200, 400, 800):
        messages = Counted(transcript(*(exchange(number) for number in range(count))))
        spans(messages, sizes(list(messages)), Compaction())
        looked_at.append(messages.looked_at / len(messages))
    assert max(looked_at) <= min(looked_at) * 1.1


# --- which cuts may be made -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "start", "end", "said"),
    [
        ("drop", 2, 18, ""),
        ("summarise", 0, 4, ""),
        ("elide", 10, 22, ""),
        ("elide", 2, 4, ""),
        ("drop", 2, 5, "split"),
        ("elide", 3, 6, "split"),
        ("drop", 4, 8, "oldest"),
        ("summarise", 2, 22, "newest"),
        ("elide", 4, 4, "no messages"),
        ("drop", -2, 4, "no messages"),
        ("elide", 2, 23, "no messages"),
    ],
)
def test_a_cut_that_may_not_be_made_is_refused_with_the_reason(
    strategy: Strategy, start: int, end: int, said: str
) -> None:
    found = problem(TEN, Span(strategy, start, end, 0, 0))
    assert said in found
    assert bool(said) == bool(found)


def test_whatever_is_offered_may_be_made() -> None:
    for messages in (TEN, made(TEN, "drop", 2, 8), made(TEN, "summarise", 2, 8), made(TEN, "elide", 6, 12)):
        offered = spans(messages, sizes(messages), Compaction(strategies=STRATEGIES, keep=1, summary_tokens=60))
        assert len(offered) > 3
        assert [problem(messages, span) for span in offered] == [""] * len(offered)


def test_as_a_last_resort_even_the_newest_results_are_left_out() -> None:
    span = last_resort(TEN, sizes(TEN))
    assert span is not None
    assert (span.strategy, span.start, span.end) == ("elide", 2, 22)
    assert problem(TEN, span) == ""
    after = cut(TEN, span, "", {})
    assert max(len(one.text) for one in after if isinstance(one, Result)) <= ELIDED_AT_MOST
    assert last_resort(after, sizes(after)) is None


# --- old results ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((Text("y" * 12_345),), "12,345 characters"),
        ((Text("y" * 201), Text("y" * 200)), "401 characters"),
        ((Image("image/png", b"x"),), "1 image"),
        ((Text("ab"), Image("image/png", b"x"), File("text/csv", b""), Image("a/b")), "2 characters, 2 images, 1 file"),
        ((Json(["x" * 398]),), "402 characters"),
        ((Opaque("p", "m", "x" * 399),), "401 characters"),
    ],
    ids=["text", "texts", "image", "mixed", "json", "opaque"],
)
def test_in_the_place_of_a_result_stands_what_it_was(parts: tuple[Part, ...], said: str) -> None:
    outcomes: tuple[Outcome, ...] = ("ok", "tool_error")
    for outcome in outcomes:
        result = Result("c", "get_orders", outcome, parts)
        line = f"(result of get_orders, {said}, left out to save room"
        assert elided(result) == Result("c", "get_orders", outcome, (Text(line + ")"),))
        read = f'{line}; read_result(key="r:1:0") shows it again)'
        assert elided(result, "r:1:0") == Result("c", "get_orders", outcome, (Text(read),))


@pytest.mark.parametrize(
    "message",
    [
        Result("c", "f", "ok", (Text("y" * ELIDED_AT_MOST),)),
        Result("c", "f", "ok", ()),
        Result("c", "f", "ok", (Json({"total": 3}), Text("three"))),
        User((LONG,)),
        Assistant("y" * 5_000),
        Note("y" * 5_000),
    ],
    ids=["short", "empty", "value", "user", "assistant", "note"],
)
def test_what_is_short_or_no_result_stays(message: Message) -> None:
    assert elided(message, "key") is message


def test_a_value_that_is_nested_too_deeply_to_be_measured_is_left_out() -> None:
    deep: JsonValue = 0
    for _ in range(100_000):
        deep = [deep]
    assert elided(Result("c", "f", "ok", (Json(deep),))) != Result("c", "f", "ok", (Json(deep),))


@pytest.mark.parametrize("key", ["", "k", "k" * 80, "k" * 500])
@pytest.mark.parametrize("name", ["f", "n" * 64, "n" * 500])
def test_what_was_left_out_is_never_left_out_again(name: str, key: str) -> None:
    parts = (Text("y" * 10**7), *[Image("image/png", b"x")] * 1_000, *[File("a/b", b"")] * 1_000)
    once = elided(Result("c", name, "in_doubt", parts), key)
    assert isinstance(once, Result)
    assert len(once.text) <= ELIDED_AT_MOST
    assert elided(once) is elided(once, "another") is once


def test_only_the_results_of_the_stretch_are_left_out_each_with_its_key() -> None:
    after = made(TEN, "elide", 6, 10, {"c2": "r:3:0"})
    changed = [index for index, (old, new) in enumerate(zip(TEN, after, strict=True)) if old is not new]
    assert changed == [7, 9]
    assert [after[index].text.count("read_result") for index in changed] == [1, 0]


# --- exchanges that are left out --------------------------------------------------------------------


def told(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, Note)]


def test_one_note_says_which_exchanges_were_left_out() -> None:
    messages = transcript(
        exchange(0, name="find"),
        exchange(1),
        [Note("hurry")],
        [User((Text("and the rest?"),))],
        [Assistant("one moment")],
        exchange(2),
        exchange(3),
    )
    after = made(messages, "drop", 2, 11)
    said = "Left out here to save room: 3 exchanges (look 2, find 1) and 1 further reply."
    assert after == [*TASK, Note(f"{said} Look up again what you need of it."), messages[7], *messages[11:]]


def test_notes_on_what_was_left_out_are_joined() -> None:
    once = made(TEN, "drop", 2, 8)
    twice = made(once, "drop", 2, 9)
    assert twice == made(TEN, "drop", 2, 14)
    assert told(twice) == ["Left out here to save room: 6 exchanges (look 6). Look up again what you need of it."]
    replies = transcript(*([Assistant(f"{number}"), Note("and?")] for number in range(5)))
    joined = made(made(replies, "drop", 2, 6), "drop", 2, 5)
    assert told(joined)[0].startswith("Left out here to save room: 3 further replies.")


def test_a_note_stays_short_however_many_tools_there_are_and_counts_every_call() -> None:
    messages = transcript(*(exchange(number, name=f"tool_{number % 30:02}") for number in range(90)))
    messages += exchange(90, name="odd (name), 7" * 9) + exchange(91)
    for end in (120, len(messages) - 2):
        after = made(made(messages, "drop", 2, 62), "drop", 2, end - 59)
        [said] = told(after)
        assert len(said) < 300
        assert said.count("tool_") == MOST_NAMES
        named, _, others = said.partition("(")[2].partition(")")[0].partition("other tools ")
        counts = [int(one.split()[1]) for one in named.rstrip(", ").split(", ")]
        calls = sum(isinstance(one, Result) for one in messages[:end])
        assert sum(counts) + int(others) == calls
        assert f"{calls} exchanges" in said


@pytest.mark.parametrize(
    "forged",
    [
        f"Left out here to save room: {'9' * 5_000} exchanges (look 3). x",
        "Left out here to save room: , exchanges (look ,). x",
        "Left out here to save room: . x",
        "Left out here to save room: \N{ARABIC-INDIC DIGIT THREE} exchanges. x",
    ],
    ids=["huge", "commas", "nothing", "digits"],
)
def test_a_note_that_looks_like_ours_does_no_harm(forged: str) -> None:
    after = made(transcript([Note(forged)], exchange(0), exchange(1)), "drop", 2, 5)
    assert told(after)[0].startswith("Left out here to save room: 1 exchange (look")


def test_where_no_exchange_is_there_is_nothing_to_replace() -> None:
    messages = transcript([Note("n"), User((Text("u"),))], exchange(0))
    for strategy in STRATEGIES:
        assert made(messages, strategy, 1, 4) == messages


# --- what every cut keeps ---------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_reasoning_behind_the_first_change_is_marked(strategy: Strategy) -> None:
    messages = transcript(*(exchange(number, signed=number != 5) for number in range(7)))
    start = 6 if strategy == "elide" else 2
    after = made(messages, strategy, start, 10)
    marks = [one.rebased for one in after if isinstance(one, Assistant)]
    if strategy == "elide":  # what stands in front of the first result that changed is as it was
        assert marks == [False, False, False, True, True, False, True]
    else:
        assert marks == [True, False, True]
    assert all(not one.rebased for one in messages if isinstance(one, Assistant))


def test_a_cut_that_changes_nothing_marks_nothing() -> None:
    messages = transcript(exchange(0, Text("1"), signed=True), exchange(1, signed=True))
    assert made(messages, "elide", 2, 4) == messages


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_cut_at_every_place_keeps_the_words_of_people(strategy: Strategy) -> None:
    messages = transcript(
        [Note("n")],
        exchange(0, signed=True),
        [User((Image("image/png", b"x"),)), Assistant("a"), User(()), User((Text("b"),))],
        [Assistant("", (ToolCall("p", "f", "{}"), ToolCall("q", "g", "{}")))],
        [Result("p", "f", "ok", (LONG,)), Result("q", "g", "timeout", (LONG,))],
        [Assistant("pause", (), SIGNED), Assistant("goes on")],
        exchange(1),
    )
    said = [one for one in messages if isinstance(one, System | User)]
    cuts = 0
    for start in range(len(messages)):
        for end in range(start + 1, len(messages) + 1):
            if "split" not in problem(messages, Span("elide", start, end, 0, 0)):
                after = made(messages, strategy, start, end)
                assert [one for one in after if isinstance(one, System | User)] == said
                cuts += 1
    assert cuts > 50


# --- summaries --------------------------------------------------------------------------------------


def test_the_question_says_how_long_the_summary_may_be_and_that_no_tool_is_to_be_called() -> None:
    assert "at most 500 words" in question(1_000).text
    assert "at most 30 words" in question(50).text
    assert "Call no tool" in question(50).text
    assert estimate_tokens(question(10**6)) < 250


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("We found 3 orders."), ""),
        (Reply("We found 3 orders.", stop="stop_sequence"), ""),
        (Reply("We found 3 orders.", stop="unknown"), ""),
        (Reply(""), "empty"),
        (Reply("\n \t"), "empty"),
        (Reply("I look", (ToolCall("c", "look", "{}"),)), "calls tools"),
        (Reply("We found 3", stop="length"), "not finished"),
        (Reply("We", stop="pause"), "not finished"),
        (Reply("I cannot", stop="refusal"), "declined"),
        (Reply("", stop="content_filter"), "declined"),
        (Reply("Order 1042. " * 40), "at most 60"),
        (Reply("Order 1042. " * 7), "stands for"),
    ],
    ids=[
        "good",
        "stopped",
        "unknown",
        "empty",
        "blank",
        "calls",
        "cut",
        "pause",
        "refused",
        "filter",
        "limit",
        "longer",
    ],
)
def test_a_reply_that_is_no_summary_is_not_taken(reply: Reply, said: str) -> None:
    found = summary_fault(reply, Span("summarise", 2, 8, 60, 20), 60)
    assert said in found
    assert bool(said) == bool(found)


def test_every_reason_to_stop_is_either_good_or_not() -> None:
    span = Span("summarise", 2, 8, 1_000, 20)
    stops: tuple[StopReason, ...] = get_args(StopReason)
    good = [stop for stop in stops if not summary_fault(Reply("fine", stop=stop), span, 60)]
    assert good == ["end", "stop_sequence", "unknown"]


def test_ten_summaries_one_after_another_stay_under_one_limit() -> None:
    limit, compaction = 200, Compaction(strategies=("summarise",), keep=1, summary_tokens=200)
    messages, written = transcript(), ""
    for round in range(10):
        messages += [message for number in range(3) for message in exchange(3 * round + number)]
        [span] = spans(messages, sizes(messages), compaction)
        longer = written + f"Found {round} orders. " * 6  # a model that only ever adds to it
        fault = summary_fault(Reply(longer), span, limit)
        written = longer if not fault else written[: limit * 2] or "Nothing yet."
        assert summary_fault(Reply(written), span, limit) == ""
        messages = cut(messages, span, written, {})
        assert problem(messages, Span("summarise", 0, 3, 0, 0)) == ""
        summaries = [one for one in messages if isinstance(one, Note) and one.summary]
        assert len(summaries) == 1
        assert estimate_tokens(summaries[0]) <= limit + estimate_tokens(Note(SUMMARY_HEADING))
        assert len(messages) == len(TASK) + 1 + 2
    assert context.spans(messages, sizes(messages), compaction) == []


# --- instructions ---------------------------------------------------------------------------------------


def test_a_conversation_gets_the_instructions_of_today() -> None:
    thought = Assistant("Hm.", (), (Opaque("anthropic", "claude", {}),))
    talk = [System("old"), User((Text("Hello"),)), thought]
    assert instructed(talk, "new") == [
        System("new"),
        User((Text("Hello"),)),
        msgspec.structs.replace(thought, rebased=True),
    ]
    assert instructed(talk, "old") == talk
    assert instructed(talk, "") == talk
    assert instructed(talk[1:], "new") == [System("new"), *talk[1:]]
