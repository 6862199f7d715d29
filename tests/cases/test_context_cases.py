"""Transcripts that become too long: what is left out, what stays, and what becomes of summaries that do not come."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from case_context import compaction_of, counting, cuts, summary_requests, tokens_of
from case_formats import TALKING, bodies, errors
from case_laws import encoded
from case_world import Played, World, calls, expand, says

from tenlines import Control, Limits, Reply
from tenlines.core import events as ev
from tenlines.core.context import SUMMARY_HEADING, Compaction
from tenlines.core.effects import CallModel
from tenlines.core.transcript import Note, Opaque, Result, User, estimate_tokens
from tenlines.wire.plain import read_messages

WORDS = "word " * 1_500
"""About 1,500 tokens."""


def _longer(world: World, text: str = WORDS) -> list[dict[str, Any]]:
    """The case's history, with results and replies so long that it is worth while to replace them."""
    history = copy.deepcopy(world.input["history"])
    for message in history:
        if message["role"] != "user" and message["content"]:
            message["content"] += f" {text}"
    return history


def _summaries(run: Played) -> list[Note]:
    return [one for one in run.result.messages if isinstance(one, Note) and one.summary]


def _within(run: Played, window: int) -> bool:
    """Whether everything that was sent fits into the window, by the provider's own count."""
    return all(tokens_of(request) <= window for request in run.model.requests)


# --- estimates ------------------------------------------------------------------------------------------


def test_est_01_the_arguments_of_a_call_count(world: World) -> None:
    history = copy.deepcopy(world.input["history"])
    (call,) = history[1]["tool_calls"]
    call["arguments"] = expand(call["arguments"])
    whole = sum(map(estimate_tokens, read_messages(history)))
    call["arguments"] = "{}"
    assert whole - sum(map(estimate_tokens, read_messages(history))) >= 5_000
    call["arguments"] = expand(world.input["history"][1]["tool_calls"][0]["arguments"])
    history.append({"role": "assistant", "content": "Written."})
    compaction = Compaction(strategies=("drop",), keep=1, window=8_000)
    run = world.play(history=history, model=counting([says("ok")]), compaction=compaction)
    assert [cut.strategy for cut in cuts(run)] == ["drop"], "so compaction starts because of them"
    assert _within(run, 8_000)


def test_est_03_plain_text_is_not_counted_several_times_and_what_a_person_said_is_never_left_out(
    world: World,
) -> None:
    (said,) = world.input["history"]
    said = {**said, "content": expand(said["content"])}
    assert len(said["content"]) >= 300_000
    assert 40_000 <= estimate_tokens(*read_messages([said])) <= 150_000
    run = world.play(history=[said], model=counting([says("ok")]), compaction=compaction_of(world)).expect()
    assert cuts(run) == []
    assert run.sent == [[said, {"role": "user", "content": "Summarise it."}]]
    small = compaction_of(world, window=20_000, strategies=("elide", "drop", "summarise"), keep=1)
    none = world.play(history=[said], model=counting([says("ok")]), compaction=small)
    none.expect(status="context_overflow", model_calls=0)
    assert encoded(none.result.messages) == run.sent[0]


# --- what stays -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "options"),
    [
        (800, {"strategies": ("drop",)}),
        (800, {"strategies": ("elide", "drop")}),
        (800, {"strategies": ("summarise",), "keep": 1}),
        (1_600, {}),
    ],
    ids=["drop", "elide-drop", "summarise", "elide-summarise"],
)
def test_trim_04_the_instructions_and_the_task_are_in_every_request(
    world: World, window: int, options: dict[str, Any]
) -> None:
    """A reply, and a summary, may have 60 tokens here: what is set aside for it is taken from the window, too."""
    world.tool(lambda: "x" * 600, name="t", repeatable=True)

    def rule(request: CallModel) -> Any:
        return says("KESTREL") if request.step == 21 else calls((f"t{request.step}", "t", "{}"))

    model = counting(rule, says("work went on"))
    compaction = compaction_of(world, window=window, summary_tokens=100, **options)
    limits = Limits(steps=30)
    run = world.play(task=None, model=model, limits=limits, max_output_tokens=60, compaction=compaction).expect()
    assert run.result.answer == "KESTREL"
    assert len(cuts(run)) >= 3
    assert ("summarise" in compaction.strategies) == bool(_summaries(run))
    assert _within(run, window)
    for sent in run.sent:
        assert sent[:2] == world.input["history"]


# --- cuts that do not help ------------------------------------------------------------------------------


@pytest.mark.parametrize("strategies", [("elide", "summarise"), ("summarise",), ("drop",)], ids="-".join)
def test_comp_01_what_is_larger_than_the_window_on_its_own_is_left_out_or_ends_the_run(
    world: World, strategies: Any
) -> None:
    window = world.input["opts"]["context window (tokens)"]
    compaction = compaction_of(world, strategies=strategies)
    world.tool(lambda: "word " * 50_000, name="dump", max_result=100_000)
    run = world.play(model=counting(world.input["model"], says("short")), compaction=compaction)
    run.expect(status="completed", model_calls=2)
    (cut,) = cuts(run)
    assert cut.strategy == "elide"
    assert cut.arithmetic.tokens_before > window > cut.arithmetic.tokens_after
    assert "250,000 characters, left out to save room; read_result(" in run.results()["a"]
    assert _within(run, window)

    world.tool(lambda: "word " * 50_000, name="dump", max_result=100_000, repeatable=True)
    often = [calls((f"d{n}", "dump", "{}")) for n in range(4)]
    more = world.play(model=counting([*often, says("ok")], says("short")), compaction=compaction)
    assert more.result.status == "answered"
    for step in range(1, 6):
        assert sum(request.step == step for request in more.model.requests) <= 2
    assert len(cuts(more)) <= 2 * 4, "at most two for each result that came"
    assert _within(more, window)

    world.tool(lambda text: "ok", name="dump")
    wrote = calls(("a", "dump", '{"text": "' + "word " * 50_000 + '"}'))
    never = world.play(model=counting([wrote, says("ok")], says("short")), compaction=compaction)
    never.expect(status="context_overflow", model_calls=1)
    assert cuts(never) == [], "what the model wrote is not left out, so nothing would shrink"
    assert [record.outcome for record in never.result.calls] == ["ok"]


# --- summaries that do not come, or are no use ----------------------------------------------------------

REASONED = Opaque("anthropic", "m", {"blocks": [{"type": "thinking", "thinking": "So...", "signature": "EqQBCkYI=="}]})
EMPTY = {"''": says(""), "'  \\n'": says("  \n"), "None": says(None), "reasoning only": Reply("", opaque=(REASONED,))}


@pytest.mark.parametrize("variant", range(4))
def test_comp_02_a_summary_that_is_empty_changes_nothing_and_is_asked_for_once(world: World, variant: int) -> None:
    """With the case's window, in which not even the question for a summary has room, none is asked for."""
    nothing = EMPTY[world.input["variants"][variant]]
    history = [{**one, "content": expand(one["content"])} for one in world.input["history"]]
    whole = [*history, {"role": "user", "content": "go on"}]
    forced = Compaction(strategies=("summarise",), keep=1, at=1, window=20_000)
    run = world.play(history=history, model=counting(world.input["model"], nothing), compaction=forced)
    run.expect(status="completed", model_calls=2)
    assert len(summary_requests(run)) == 1
    assert run.sent[1] == whole
    assert encoded(run.result.messages)[:-1] == whole
    (ended,) = run.events(ev.SummaryEnded)
    assert ended.reply is not None
    assert run.result.warnings == ("step 1: the transcript was not summarised: it is empty",)

    window = world.input["opts"]["context window (tokens)"]
    none = world.play(history=history, model=counting([says("ok")], nothing), compaction=compaction_of(world, keep=1))
    none.expect(status="context_overflow", model_calls=0)
    assert encoded(none.result.messages) == whole
    groups = compaction_of(world, keep=1, strategies=("summarise", "drop"))
    trimmed = world.play(history=history, model=counting([says("ok")], nothing), compaction=groups)
    trimmed.expect(status="completed", model_calls=1)
    assert [message["role"] for message in trimmed.sent[0]] == ["user", "user", "user", "assistant", "user"]
    assert _within(trimmed, window)

    world.tool(lambda: WORDS, name="t", repeatable=True, max_result=10_000)
    asks = [calls((f"t{n}", "t", "{}")) for n in range(6)]
    often = world.play(history=history, model=counting([*asks, says("ok")], nothing), compaction=forced)
    assert len(summary_requests(often)) == 2, "after two that came to nothing no more are asked for"
    assert _summaries(often) == []


def _former(request: CallModel) -> str:
    """The summary that a request holds."""
    (text,) = [one.text for one in request.messages if isinstance(one, Note) and one.summary] or [""]
    return text.removeprefix(SUMMARY_HEADING)


def test_comp_05_a_summary_that_is_too_long_is_refused_and_summaries_do_not_grow(world: World) -> None:
    forced = compaction_of(world, strategies=("summarise",), keep=1)
    long = says("word " * 3_000)
    small = world.play(model=counting(world.input["model"], long), compaction=forced).expect(model_calls=1)
    assert cuts(small) == [], "nothing could be gained, so nobody is asked"
    run = world.play(history=_longer(world), model=counting(world.input["model"], long), compaction=forced)
    run.expect(model_calls=2)
    assert cuts(run) == []
    assert encoded(run.result.messages)[:-1] == [*_longer(world), {"role": "user", "content": "go"}]
    assert "it has about 3,00" in run.result.warnings[0]

    said, taken = _longer(world), []
    messages: Any = said
    for turn in range(10):
        model = counting([says(WORDS)], lambda request: says(_former(request) + " then" + " word" * 500))
        played = world.play(history=messages, task=f"turn {turn}", model=model, compaction=forced)
        assert played.result.status == "answered"
        messages = played.result.messages
        (summary,) = _summaries(played)
        assert estimate_tokens(summary) <= forced.summary_tokens + estimate_tokens(Note(SUMMARY_HEADING))
        taken.append(len(cuts(played)))
    assert sum(taken) < 10, "some were refused"
    assert taken[0] == 1
    asked = [one.text for one in messages if isinstance(one, User)]
    assert asked == ["u", "v", *(f"turn {turn}" for turn in range(10))]

    rounds, window = 0, 16_000
    messages = ()
    for turn in range(20):
        model = counting([says(WORDS)], says("what was said"))
        played = world.play(history=messages, task=f"turn {turn}", model=model, compaction=Compaction(window=window))
        assert played.result.status == "answered", "a conversation in words alone is summarised before it is too late"
        assert _within(played, window)
        messages, rounds = played.result.messages, rounds + len(cuts(played))
    assert rounds >= 3


def test_comp_06_a_request_for_a_summary_names_the_tools_in_every_format(world: World) -> None:
    world.tool(lambda: "r", name="t")
    compaction = compaction_of(world, strategies=("summarise",))
    run = world.play(
        history=_longer(world),
        model=counting(world.input["model"], says("t said 1")),
        compaction=compaction,
    ).expect(model_calls=2)
    (request,) = summary_requests(run)
    assert [one for one in request.messages if isinstance(one, Result)]
    assert request.tools == run.model.requests[1].tools
    assert [spec.name for spec in request.tools] == ["t", "read_result"]
    for format in TALKING:
        asked, after = bodies(run.model.requests, format)
        assert errors(asked, format) == [], format.name
        assert asked["tools"] if "tools" in asked else asked["toolConfig"]["tools"]
        assert errors(after, format) == [], format.name
    assert [type(one) for one in run.model.requests[1].messages][:2] == [User, Note]
    assert len(_summaries(run)) == 1


class _SaysMeanwhile:
    """Says something as soon as a summary is being written."""

    def __init__(self, control: Control) -> None:
        self.control = control

    def on_event(self, event: Any) -> None:
        if isinstance(event, ev.SummaryStarted):
            self.control.say("important")


@pytest.mark.parametrize("summary", ["t said 1", ""], ids=["used", "refused"])
def test_comp_08_what_is_said_while_a_summary_is_written_is_kept(world: World, summary: str) -> None:
    """It was heard before the first reply, so that one already knows of it."""
    world.tool(lambda: "r", name="t")
    control = Control()
    run = world.play(
        history=_longer(world),
        model=counting(world.input["model"], says(summary)),
        compaction=compaction_of(world, strategies=("summarise",)),
        control=control,
        observers=[_SaysMeanwhile(control)],
    ).expect()
    kinds = [type(event) for event in run.log]
    heard = kinds.index(ev.MessageQueued)
    assert kinds.index(ev.SummaryStarted) < heard < kinds.index(ev.SummaryEnded)
    assert len(cuts(run)) == bool(summary)
    said = [one.text for one in run.result.messages if isinstance(one, User)]
    assert said == ["u", "v", "go", "important"]
    assert run.sent[1][-1] == {"role": "user", "content": "important"}
