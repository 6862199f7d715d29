"""What tools return: types, encodings, sizes."""

from __future__ import annotations

import json
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_context import compaction_of, counting, cuts
from case_laws import encoded
from case_world import World, calls, says

from tenlines import ConfigError, Image
from tenlines.core import events as ev
from tenlines.core.context import Compaction
from tenlines.core.effects import CallModel
from tenlines.core.replay import fold
from tenlines.core.transcript import Result, estimate_tokens


def content(run: Any, step: int = 1) -> str:
    """The first tool message of a request."""
    return next(str(message["content"]) for message in run.sent[step] if message["role"] == "tool")


def test_outtype_01_values_that_json_does_not_know_become_text_without_a_second_run(world: World) -> None:
    @world.tool
    def row() -> dict[str, Any]:
        """Row."""
        return {
            "when": datetime(2024, 5, 1),  # noqa: DTZ001  # as a tool may return it
            "price": Decimal("1.10"),
            "tags": {"c", "a", "b"},
            "path": Path("/x"),
        }

    run = world.play().expect()
    assert json.loads(content(run)) == {
        "when": "2024-05-01T00:00:00",
        "price": "1.10",
        "tags": ["a", "b", "c"],
        "path": "/x",
    }


def test_outtype_02_an_image_is_named_and_not_pasted_into_the_text(world: World) -> None:
    picture = b"\x89PNG" + bytes(range(256)) * 10_240

    @world.tool
    def shot() -> Image:
        """Screenshot."""
        return Image("image/png", picture)

    run = world.play().expect()
    text = content(run)
    assert "image/png" in text
    assert "2.5 MiB" in text
    assert "not shown" in text
    assert len(text) < 200
    assert re.search(r"[A-Za-z0-9+/=]{200}", json.dumps(run.sent)) is None
    (result,) = [one for one in run.result.messages if isinstance(one, Result)]
    assert estimate_tokens(result) < 2000
    (part,) = run.events(ev.CallReturned)[0].parts
    assert part.data == picture
    window = world.input["opts"]["context window"]
    again = world.play(model=counting(world.input["model"]), compaction=Compaction(window=window)).expect(tool_runs={})
    assert cuts(again) == []


def test_outtype_05_an_awaitable_is_awaited_and_a_generator_is_refused_at_once(world: World) -> None:
    async def async_fn() -> str:
        return "done"

    @world.tool
    def later() -> Any:
        """Later."""
        return async_fn()

    def gen() -> Any:
        """Yields."""
        yield "a"
        yield "b"

    with pytest.raises(ConfigError, match="'gen' yields"):
        world.tool(gen)
    run = world.play().expect()
    assert "object at" not in json.dumps(run.sent)


def test_enc_01_a_lone_surrogate_is_replaced_before_it_is_stored_or_sent(world: World) -> None:
    store = world.store()

    @world.tool
    def cat() -> str:
        """Cat."""
        return "price \udc81 5"

    run = world.play().expect()
    assert content(run) == "price \ufffd 5"
    assert run.call("a").remarks == ("1 lone surrogate replaced by U+FFFD",)
    again = world.play(history=run.result.messages, task="And?", model=[says("ok")])
    assert again.sent[0][: len(run.sent[1])] == run.sent[1]
    store.close()


def test_enc_02_nan_and_infinity_become_null_and_are_refused_in_arguments(world: World) -> None:
    @world.tool
    def stats() -> dict[str, float]:
        """Stats."""
        return {"mean": float("nan"), "max": float("inf"), "n": 0}

    @world.tool
    def f(x: float) -> str:
        """Take a number."""
        return "ok"

    run = world.play().expect()
    assert json.loads(content(run)) == {"mean": None, "max": None, "n": 0}
    bare = world.play(model=[calls(("n", "f", '{"x": NaN}')), says("ok")])
    assert bare.call("n").outcome == "invalid_arguments"
    assert "not valid JSON" in bare.call("n").text
    assert world.tools["f"].runs == 0


def test_enc_04_control_characters_become_visible_and_reload_as_they_were_sent(world: World) -> None:
    store = world.store()

    @world.tool
    def run() -> str:
        """Run."""
        return "a\x00b\x1b[31mred\x1b[0m"

    played = world.play().expect()
    assert content(played) == r"a\x00b\x1b[31mred\x1b[0m"
    reloaded = fold(store.read(played.result.run_id)).state.messages
    assert encoded(reloaded)[:-1] == played.sent[1]
    nul = world.play(model=[calls(("n", "run", '{"x": "\\u0000"}')), says("ok")])
    assert nul.call("n").outcome == "invalid_arguments"
    store.close()


def test_size_01_a_result_larger_than_the_window_is_cut_and_kept_whole_in_the_journal(world: World) -> None:
    whole = "line of log\n" * 190_000

    @world.tool(max_result=5000)
    def log() -> str:
        """Log."""
        return whole

    run = world.play().expect()
    text = content(run)
    assert len(text) <= 20_000
    event = run.events(ev.CallReturned)[0]
    missing = event.original_chars - event.shown_chars
    assert f"{missing:,} of {len(whole):,} characters" in text
    assert run.sent[1][0]["content"] == "Show the log."
    assert event.full == whole

    def pages(request: CallModel) -> Any:
        if request.step != 2:
            return world.input["model"][request.step > 1]
        (key,) = re.findall(r'read_result\(key="([^"]+)"', str(request.messages[2]))
        return calls(("r", "read_result", json.dumps({"key": key, "offset": -50})))

    paged = world.play(model=counting(pages), compaction=compaction_of(world))
    paged.expect(model_calls=3, tool_runs={"log": 2})
    assert cuts(paged) == []
    assert whole[-50:].rstrip() in paged.results()["r"]


def test_size_02_the_end_of_a_long_result_is_kept_too(world: World) -> None:
    @world.tool(max_result=1000)
    def tests() -> str:
        """Tests."""
        return "ok test\n" * 20_000 + "E assert 3 == 4\n2 failed, 19998 passed"

    run = world.play().expect()
    assert len(content(run)) <= 4000
    assert content(run).startswith("ok test\n")
    assert content(run).endswith("\nE assert 3 == 4\n2 failed, 19998 passed")


def test_size_05_what_is_missing_is_said_in_its_place_and_only_then(world: World) -> None:
    lines = [f"{number} row" for number in range(1, 5001)]

    @world.tool(max_result=750)
    def rows() -> str:
        """Rows."""
        return "\n".join(lines)

    run = world.play().expect()
    head, marker, tail = re.split(r"\n(\[\.\.\. .* \.\.\.\])\n", content(run))
    first, last = head.split("\n"), tail.split("\n")
    assert first == lines[: len(first)]
    assert last == lines[-len(last) :]
    missing = 5000 - len(first) - len(last)
    assert f"{missing:,} of 5,000 lines ({len(first) + 1:,} to {5000 - len(last):,};" in marker
    event = run.events(ev.CallReturned)[0]
    assert event.truncated
    assert event.original_chars == len("\n".join(lines)) == run.call("a").original_chars
    assert event.shown_chars == len(head) + len(tail)
    del lines[20:]
    short = world.play()
    assert "left out" not in content(short)
    assert not short.call("a").truncated
