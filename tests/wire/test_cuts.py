"""Transcripts that were cut, in every format: each request is one that its target takes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, get_args

import pytest
from artefacts_made import artefacts_of
from msgspec import structs
from reasoned import AIMS, Aim, aim, exchange, said, transcript
from transcripts import asking

from tenlines.core.context import Compaction, Span, Strategy, cut, last_resort, problem, spans
from tenlines.core.history import first_fault
from tenlines.core.transcript import (
    Assistant,
    Message,
    Note,
    Opaque,
    Result,
    System,
    Text,
    ToolCall,
    User,
    estimate_tokens,
)
from tenlines.wire.checking import check
from tenlines.wire.profile import Artefact

Body = dict[str, Any]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
SUMMARY = "Two orders were found: 1042 and 1043."


# --- requests ---------------------------------------------------------------------------------------


def requested(aim: Aim, messages: Sequence[Message]) -> Body:
    """The request that holds a transcript, as it goes over the wire."""
    body: Body = json.loads(json.dumps(aim.format.talk(aim.target).request(asking(messages), stream=False)))
    return body


def faults(aim: Aim, body: Body, artefacts: Sequence[Artefact] = ()) -> list[str]:
    return [
        f"{one.rule} {one.path}" for one in check(body, aim.format, aim.profile, artefacts) if one.severity == "error"
    ]


def cut_and_sent(aim: Aim, before: Sequence[Message], span: Span) -> list[Message]:
    """The transcript after a cut; its request is checked, and is the same from a conversation that goes on as from a
    new one."""
    keys = {one.call_id: f"run:1:{index}" for index, one in enumerate(before) if isinstance(one, Result) and index % 2}
    after = cut(before, span, SUMMARY, keys)
    assert first_fault(after) == ""
    talk = aim.format.talk(aim.target)
    talk.request(asking(before), stream=False)
    going_on = talk.request(asking(after, new_from=span.start), stream=False)
    body = requested(aim, after)
    assert going_on == body
    sent = json.dumps(body)
    assert faults(aim, body) == [], sent
    assert words(after) == words(before)
    assert all(word in sent for word in words(before))
    return after


def words(messages: Sequence[Message]) -> list[str]:
    """What people said and the standing instructions."""
    return [message.text for message in messages if isinstance(message, System | User)]


def sizes(messages: Sequence[Message]) -> list[int]:
    return [estimate_tokens(message) for message in messages]


def everywhere(messages: Sequence[Message]) -> Iterator[Span]:
    """Every cut of every strategy at which no exchange would be split, and the last resort."""
    whole = range(1, len(messages) + 1)
    edges = [0, *(at for at in whole if "split" not in problem(messages, Span("elide", 0, at, 0, 0)))]
    for place, start in enumerate(edges):
        for end in edges[place + 1 :]:
            for strategy in STRATEGIES:
                yield Span(strategy, start, end, 0, 0)
    if (span := last_resort(messages, sizes(messages))) is not None:
        yield span


# --- no cut makes an invalid request ----------------------------------------------------------------


def tried(aim: Aim, transcripts: int, units: int) -> Counter[str]:
    """Cuts everywhere, and cuts of what came out; how many there were."""
    random, counted = Random(repr(aim)), Counter[str]()
    for _ in range(transcripts):
        messages = transcript(random, aim, units)
        assert faults(aim, requested(aim, messages)) == []
        counted["transcripts"] += 1
        for span in everywhere(messages):
            after = cut_and_sent(aim, messages, span)
            counted["cuts"] += 1
            if again := list(everywhere(after)):
                twice = cut_and_sent(aim, after, random.choice(again))
                assert len(twice) <= len(after)
                counted["cuts of what was cut"] += 1
    return counted


@pytest.mark.parametrize("aim", AIMS, ids=repr)
def test_a_request_is_valid_after_a_cut(aim: Aim) -> None:
    assert tried(aim, 1, 3)["cuts"]


@pytest.mark.slow
def test_no_cut_at_any_place_makes_an_invalid_request(say: Callable[[str], None]) -> None:
    counted = Counter[str]()
    for one in AIMS:
        counted += tried(one, 3, 5)
    formats = len({one.format.name for one in AIMS})
    found = ", ".join(f"{number:,} {what}" for what, number in counted.items())
    say(f"requests after cuts, {len(AIMS)} targets of {formats} formats: {found}")
    assert formats == 8
    assert counted["cuts"] > 3_000


@pytest.mark.slow
def test_runs_that_are_cut_again_and_again_keep_every_word_and_stay_small(say: Callable[[str], None]) -> None:
    counted = Counter[str]()
    for one in AIMS:
        random = Random(f"again {one!r}")
        messages = transcript(random, one, 3)
        for round in range(10):
            for number in range(3):
                messages += exchange(random, one, 100 + 3 * round + number)
            compaction = Compaction(strategies=(random.choice(STRATEGIES),), keep=1, summary_tokens=50)
            for span in spans(messages, sizes(messages), compaction)[-1:]:
                assert problem(messages, span) == ""
                messages = cut_and_sent(one, messages, span)
                counted[span.strategy] += 1
        assert sum(isinstance(message, Note) and message.summary for message in messages) <= 1
    say(f"rounds of cuts: {dict(counted)}")


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["drop", "summarise"])
def test_ten_rounds_of_cuts_stay_under_one_limit(strategy: Strategy) -> None:
    for one in AIMS:
        random, lengths = Random(f"ten {one!r}"), []
        messages: list[Message] = [System("rule!"), User((Text("task!"),))]
        for round in range(10):
            for number in range(4):
                messages += exchange(random, one, 4 * round + number)
            compaction = Compaction(strategies=(strategy,), keep=1, summary_tokens=50)
            [span] = spans(messages, sizes(messages), compaction)
            messages = cut(messages, span, SUMMARY, {})
            whole = cut(messages, Span("elide", 0, len(messages), 0, 0), "", {})
            lengths.append(len(json.dumps(requested(one, whole))))
        assert max(lengths[1:]) < lengths[0] + 6_000, one


# --- what makers keep with their replies ------------------------------------------------------------


def kept(name: str, span: Span, **context: str | bool) -> tuple[list[str], list[str]]:
    """Whose reasoning is in the request of three replies, before a cut and after."""
    one = aim(name, **context)
    messages: list[Message] = [User((Text("task!"),))]
    for number in range(3):
        call = ToolCall(f"call{number:05}", "f", "{}")
        messages += [said(one, f"reply {number}", (call,)), Result(call.id, "f", "ok", (Text("y" * 900),))]
    after = cut_and_sent(one, messages, span)
    return reasons(one, messages), reasons(one, after)


def reasons(one: Aim, messages: Sequence[Message]) -> list[str]:
    """The replies whose reasoning is in a request: its marks, or that its words are there."""
    found = []
    for index, message in enumerate(messages):
        if isinstance(message, Assistant):
            without = [*messages[:index], structs.replace(message, opaque=()), *messages[index + 1 :]]
            if requested(one, without) != requested(one, messages):
                found.append(message.text)
    return found


ALL, FIRST = ["reply 0", "reply 1", "reply 2"], ["reply 0"]


@pytest.mark.parametrize(
    ("name", "context", "left"),
    [
        ("anthropic:claude-opus-5-5", {}, FIRST),
        ("anthropic:claude-opus-5", {}, FIRST),
        ("anthropic:claude-sonnet-4-5", {}, ALL),
        ("anthropic", {"server": "deepseek"}, ALL),
        ("bedrock:us.anthropic.claude-opus-5-5-v1:0", {}, FIRST),
        ("openrouter", {}, FIRST),
        ("mistral:v13", {}, FIRST),
        ("gemini:gemini-3-pro", {}, ALL),
        ("openai_responses", {}, ALL),
        ("deepseek", {}, ALL),
        ("moonshot:kimi-k2.5", {}, ALL),
        ("cohere", {}, ALL),
        ("ollama", {}, ALL),
    ],
    ids=str,
)
def test_only_reasoning_that_would_be_refused_or_is_of_no_use_goes(
    name: str, context: dict[str, str], left: list[str]
) -> None:
    before, after = kept(name, Span("elide", 1, 3, 0, 0), **context)
    assert (before, after) == (ALL, left)


@pytest.mark.parametrize("one", AIMS, ids=repr)
def test_a_reply_of_reasoning_alone_leaves_no_empty_message_behind(one: Aim) -> None:
    only = structs.replace(said(one, ""), text="")
    blocks = {"blocks": only.opaque[0].payload["blocks"][:1]} if "blocks" in only.opaque[0].payload else {}  # type: ignore
    alone = structs.replace(only, opaque=(structs.replace(only.opaque[0], payload=blocks or only.opaque[0].payload),))
    call = ToolCall("call00000", "f", "{}")
    old = [Assistant("", (call,)), Result(call.id, "f", "ok", (Text("y" * 900),))]
    messages: list[Message] = [User((Text("task!"),)), *old, alone, User((Text("so?"),)), Assistant("well")]
    for strategy in STRATEGIES:
        cut_and_sent(one, messages, Span(strategy, 1, 3, 0, 0))


def test_a_gateway_gets_back_the_reasoning_of_makers_who_look_at_no_beginning() -> None:
    one = aim("openrouter")
    details = [{"type": "reasoning.encrypted", "data": "x", "format": "google-gemini-v1"}]
    opaque = Opaque("openrouter", "m", {"reasoning": "hm", "reasoning_details": details})  # type: ignore[dict-item]
    reply = Assistant("so", (), (opaque,), rebased=True)
    assert (
        requested(one, [User((Text("a"),)), reply, User((Text("b"),))])["messages"][1]["reasoning_details"] == details
    )


def test_tools_of_the_provider_are_not_torn_apart_by_a_cut() -> None:
    one = aim("anthropic:claude-opus-5-5")
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    call = ToolCall("call00000", "f", "{}")

    def reply(text: str, *blocks: Any, calls: tuple[ToolCall, ...] = (), **fields: Any) -> Assistant:
        payload = {"blocks": [*blocks, *({"call": at} for at in range(len(calls)))], **fields}
        return Assistant(text, calls, (Opaque("anthropic", "claude-opus-5-5", payload),))

    spoken = {"type": "text", "text": "found"}
    beside = [
        User((Text("task!"),)),
        reply("", search, calls=(call,)),  # it is at work while our tool runs
        Result(call.id, "f", "ok", (Text("y" * 900),)),
        reply("found", result, spoken),
        User((Text("more"),)),
    ]
    for strategy in STRATEGIES:
        body = requested(one, cut_and_sent(one, beside, Span(strategy, 1, 3, 0, 0)))
        pieces = json.dumps(body)
        assert ("web_search_tool_result" in pieces) == ("server_tool_use" in pieces) == (strategy == "elide")
    paused = [User((Text("task!"),)), reply("", search, pause=True), reply("found", result, spoken), Assistant("end")]
    assert "split" in problem(paused, Span("drop", 1, 2, 0, 0))


# --- with what is remembered of signed thinking -----------------------------------------------------


SIGNING = (
    aim("anthropic:claude-opus-5-5", "high"),
    aim("anthropic:claude-opus-5", "high"),
    aim("anthropic:claude-sonnet-4-5", "high"),
    aim("bedrock:us.anthropic.claude-opus-5-5-v1:0"),
)


def followed(one: Aim, seed: int, *, marks: bool = True) -> Iterator[list[str]]:
    """What is wrong with each request of a run that is cut now and then, judged with all that was remembered of its
    thinking when it was made."""
    random = Random(f"{one!r} {seed}")
    messages: list[Message] = [System("rule!"), User((Text("task!"),))]
    remembered: dict[str, Artefact] = {}
    for step in range(14):
        if step and random.random() < 0.4:
            span = random.choice(list(everywhere(messages)))
            messages = cut(messages, span, SUMMARY, {})
            if not marks:
                messages = [structs.replace(m, rebased=False) if isinstance(m, Assistant) else m for m in messages]
        yield faults(one, requested(one, messages), tuple(remembered.values()))
        if random.random() < 0.2:
            messages += [said(one, "done"), User((Text(f"word {step}!"),))]
        else:
            messages += exchange(random, one, step)
        for artefact in artefacts_of(requested(one, messages), one.format, model=one.target.model):
            remembered.setdefault(artefact.mark, artefact)


@pytest.mark.slow
@pytest.mark.parametrize("one", SIGNING, ids=repr)
def test_no_thinking_is_sent_behind_a_beginning_that_it_was_not_made_for(one: Aim, say: Callable[[str], None]) -> None:
    found = [fault for seed in range(30) for fault in followed(one, seed)]
    assert found == [[]] * len(found)
    say(f"{one!r}: {len(found):,} requests with thinking judged by what was remembered of it")


def test_thinking_that_is_not_marked_is_found_by_what_was_remembered() -> None:
    for one, rule in ((SIGNING[0], "ANT-25"), (SIGNING[3], "BED-16")):
        found = {
            fault.split()[0] for seed in range(6) for faults in followed(one, seed, marks=False) for fault in faults
        }
        assert found == {rule}


@pytest.mark.parametrize("one", SIGNING, ids=repr)
def test_thinking_goes_on_in_the_first_reply_after_a_cut(one: Aim) -> None:
    call, other = ToolCall("call00000", "f", "{}"), ToolCall("call00001", "f", "{}")
    long = (Text("y" * 900),)
    messages: list[Message] = [
        User((Text("task!"),)),
        said(one, "", (call,)),
        Result(call.id, "f", "ok", long),
        said(one, "", (other,)),
        Result(other.id, "f", "ok", long),
    ]
    after = cut_and_sent(one, messages, Span("elide", 1, 3, 0, 0))
    body, before = requested(one, after), requested(one, messages)
    assert body.get("thinking") == before.get("thinking")
    assert faults(one, body, artefacts_of(before, one.format, model=one.target.model)) == []
