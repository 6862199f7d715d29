"""Arguments and names that models get wrong."""

from __future__ import annotations

from typing import Annotated, Any

from annotated_types import Interval
from case_world import World, calls, says

from tenlines import Repeats
from tenlines.core import events as ev
from tenlines.errors import RunStuck, stopped


def test_json_01_arguments_that_do_not_parse_are_explained_and_not_run(world: World) -> None:
    @world.tool
    def weather(city: str) -> str:
        """Weather."""
        return "3 C"

    run = world.play().expect()
    assert world.tools["weather"].given == [{"city": "Oslo"}]
    text = run.call("w1").text
    assert text.startswith("weather did not run")
    assert "truncated" in text  # where: at the end
    assert "city (string, required)" in text


def test_json_02_an_object_with_anything_behind_it_is_not_valid_json(world: World) -> None:
    """The strict one of the two ways."""

    @world.tool
    def jump(n: int) -> int:
        """Jump."""
        return n

    run = world.play().expect()
    assert world.tools["jump"].runs == 0
    for name in ("j1", "j2"):
        assert run.call(name).outcome == "invalid_arguments"
        assert "not valid JSON" in run.call(name).text
        assert "trailing characters" in run.call(name).text


def test_json_03_broken_arguments_never_enter_the_transcript(world: World) -> None:
    @world.tool
    def note(text: str) -> str:
        """Note."""
        return "saved"

    run = world.play().expect()
    (call,) = run.sent[1][1]["tool_calls"]
    assert call["function"]["arguments"] == "{}"
    raw = '{"text": "unterminated'
    assert run.call("n1").raw_arguments == raw
    assert run.events(ev.ModelReplied)[0].reply.calls[0].arguments == raw
    assert "unterminated" in run.call("n1").text
    long = world.play(model=[calls(("n", "note", '{"text": "' + "x" * 50_000)), says("ok")])
    assert "xxx" in long.call("n").text
    assert len(long.call("n").text) < 1000


def test_json_04_hostile_nesting_and_endless_numbers_are_answered_in_a_few_words(world: World) -> None:
    @world.tool
    def f(x: Any) -> str:
        """Take anything."""
        assert x == int("9" * 4000) * 10**1000 + int("9" * 1000)  # int() of 5,000 digits is refused by Python
        return "ok"

    run = world.play().expect()
    assert all(len(record.text) < 2000 for record in run.result.calls)
    assert "nested too deeply" in run.call("a").text


def test_shape_01_empty_arguments_are_no_arguments(world: World) -> None:
    @world.tool(read_only=True)
    def health() -> str:
        """Health."""
        return "green"

    run = world.play().expect()
    assert [call["function"]["arguments"] for call in run.sent[1][1]["tool_calls"]] == ["{}", "{}", "{}"]


def test_shape_02_null_is_no_arguments_and_the_schema_says_whether_that_will_do(world: World) -> None:
    @world.tool(read_only=True)
    def now() -> str:
        """Time."""
        return "12:00"

    @world.tool(read_only=True)
    def add(a: int) -> int:
        """Add."""
        return a

    run = world.play().expect()
    assert "a (integer, required)" in run.call("q").text or "a: " in run.call("q").text


def test_shape_03_what_is_no_object_is_never_taken_by_position(world: World) -> None:
    @world.tool
    def weather(city: str) -> str:
        """Weather."""
        return "3 C"

    run = world.play().expect()
    assert all("must be one JSON object" in record.text for record in run.result.calls)


def test_shape_04_an_object_or_list_in_a_string_is_decoded_once_where_nothing_else_fits(world: World) -> None:
    @world.tool
    def search(filter: dict[str, str], tags: list[str]) -> str:
        """Search."""
        return f"{filter!r} {tags!r}"

    run = world.play().expect()
    assert world.tools["search"].given == [{"filter": {"lang": "no"}, "tags": ["x", "y"]}]
    assert len(run.call("s").remarks) == 2
    assert "filter" in run.call("s").remarks[0]
    assert "decoded" in run.call("s").remarks[0]
    wrong = world.play(model=[calls(("s", "search", '{"filter": "[1]", "tags": "x"}')), says("done")])
    assert wrong.call("s").outcome == "invalid_arguments"
    twice = r'{"filter": {}, "tags": "\"[\\\"x\\\"]\""}'
    assert world.play(model=[calls(("s", "search", twice)), says("done")]).call("s").outcome == "invalid_arguments"
    assert world.tools["search"].runs == 1


def test_schema_01_an_invented_parameter_is_refused_unless_the_tool_ignores_such(world: World) -> None:
    @world.tool
    def shell(command: str) -> str:
        """Run."""
        return "ok"

    run = world.play().expect()
    refused = run.call("a")
    assert refused.outcome == "invalid_arguments"
    assert "description" in refused.text
    assert "command" in refused.text
    assert "TypeError" not in refused.text
    assert "unexpected keyword" not in refused.text
    assert world.tools["shell"].runs == 0

    world.tool(shell, extra="ignore")
    tolerant = world.play().expect()
    assert world.tools["shell"].given == [{"command": "ls"}]
    assert tolerant.call("a").outcome == "ok"
    assert "description" in tolerant.call("a").remarks[0]

    def shell_of_all(command: str, **others: Any) -> str:
        """Run."""
        assert others == {"description": "list files"}
        return "ok"

    world.tool(shell_of_all, name="shell")
    assert world.play().expect().call("a").outcome == "ok"


def test_schema_02_a_missing_parameter_is_named_and_the_tool_is_not_entered(world: World) -> None:
    @world.tool
    def log_visit(place: str, remark: str) -> str:
        """Log."""
        return "ok"

    world.play().expect()
    assert world.tools["log_visit"].given == [{"place": "pier", "remark": "n"}]


def test_schema_03_a_run_that_ends_for_wrong_arguments_keeps_everything(world: World) -> None:
    @world.tool
    def pick(n: Annotated[int, Interval(ge=1, le=3)]) -> int:
        """Pick."""
        return n

    run = world.play(repeats=Repeats(invalid_in_a_row=3)).expect()
    assert [record.outcome for record in run.result.calls] == ["invalid_arguments"] * 3
    assert len(run.result.messages) == 7
    assert (run.result.usage.input, run.result.usage.output) == (300, 30)
    assert "pick" in run.result.reason
    raised = stopped(run.result)
    assert isinstance(raised, RunStuck)
    assert raised.result is run.result


def test_name_01_an_unknown_tool_is_answered_with_the_tools_there_are(world: World) -> None:
    @world.tool
    def today() -> str:
        """Day."""
        return "Monday"

    world.play().expect()
    for number in range(100):
        world.tool(today, name=f"tool_number_{number}")
    many = world.play()
    assert len(many.call("a").text) < 1000
    assert "and 81 more" in many.call("a").text


def test_name_02_an_unknown_name_costs_its_siblings_nothing(world: World) -> None:
    @world.tool
    def a() -> str:
        """A."""
        return "A"

    @world.tool
    def b() -> str:
        """B."""
        return "B"

    world.play().expect()


def test_name_03_a_reply_with_only_an_unknown_call_is_not_an_empty_one(world: World) -> None:
    def found(pattern: str) -> str:
        """Search."""
        return "2 hits"

    world.tool(found, name="mcp__fs__search_files")
    run = world.play(blank_replies=0).expect()
    assert run.result.warnings == ()


def test_badname_01_special_tokens_in_a_name_are_named_and_never_cut_off_and_run(world: World) -> None:
    @world.tool
    def lookup() -> str:
        """Look."""
        return "L"

    run = world.play().expect(tool_runs={"lookup": 0})
    assert run.call("a").outcome == "unknown_tool"
    assert "special tokens" in run.call("a").text
    assert "lookup" in run.call("a").text
    assert "<|" not in run.sent[1][1]["tool_calls"][0]["function"]["name"]
    assert run.call("a").name == "lookup<|channel|>commentary"
