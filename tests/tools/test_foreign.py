"""Tools as others write them: definitions with their functions, and real tools of LangChain."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel, Field

from tenlines import Agent
from tenlines.core.transcript import Image, Text
from tenlines.errors import ConfigError, MissingExtra
from tenlines.ports import Ask, Bound, CallContext, GuardedCall, Invalid
from tenlines.tools import as_tool, tool
from tenlines.tools.load import as_tools, load_tools

SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["order_id"],
}
CHAT = {"type": "function", "function": {"name": "get_order", "description": "Look up.", "parameters": SCHEMA}}
FLAT = {"type": "function", "name": "get_order", "description": "Look up.", "parameters": SCHEMA, "strict": True}
ANTHROPIC = {"name": "get_order", "description": "Look up.", "input_schema": SCHEMA}
MCP = {"name": "get_order", "description": "Look up.", "inputSchema": SCHEMA}
FORMS = {"chat": CHAT, "flat": FLAT, "anthropic": ANTHROPIC, "custom": {"type": "custom", **ANTHROPIC}, "mcp": MCP}


def get_order(order_id: str, count: int = 1) -> str:
    return f"{order_id} x{count}"


async def get_order_async(order_id: str, count: int = 1) -> str:
    await asyncio.sleep(0)
    return f"{order_id} x{count}"


def calling(name: str, arguments: str) -> list[Any]:
    return [{"tool_calls": [{"id": "1", "name": name, "arguments": arguments}]}, "done"]


def result_of(one: Any, arguments: str, *, with_asyncio: bool = False) -> Any:
    """The one call of a run with the tool."""
    (made,) = as_tools([one])
    agent = Agent(calling(made.spec.name, arguments), [one], journal="memory")
    return (asyncio.run(agent.run("x")) if with_asyncio else agent.run_sync("x")).calls[0]


# --- definitions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", [get_order, get_order_async])
@pytest.mark.parametrize("with_asyncio", [False, True])
def test_each_form_of_a_definition_is_a_tool_with_its_function(form: str, function: Any, with_asyncio: bool) -> None:
    call = result_of((FORMS[form], function), '{"order_id": "1042", "count": 2}', with_asyncio=with_asyncio)
    assert (call.outcome, call.text) == ("ok", "1042 x2")


def test_what_the_model_is_told_is_the_definition() -> None:
    spec = as_tool(CHAT, get_order).spec
    assert (spec.name, spec.description, spec.parameters) == ("get_order", "Look up.", SCHEMA)
    assert (spec.read_only, spec.idempotent, spec.approve) == (False, False, False)


def test_what_a_definition_does_not_say_is_set_by_options() -> None:
    spec = as_tool(
        ANTHROPIC, get_order, read_only=True, repeatable=True, timeout_s=5, name="look", description=" L "
    ).spec
    assert (spec.read_only, spec.repeatable, spec.timeout_s, spec.name, spec.description) == (
        True,
        True,
        5,
        "look",
        "L",
    )
    asks = as_tool(ANTHROPIC, get_order, approve=True)
    assert asks.spec.approve
    assert asks.permit(GuardedCall(asks.spec, {}, "r", 1, 0)) == Ask()
    small = as_tool(ANTHROPIC, lambda **rest: "x" * 10_000, max_result=100)
    assert small.render("x" * 10_000).truncated


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'order_id' is a required property"),
        ({"order_id": 1042}, "1042 is not of type 'string'"),
        ({"order_id": "1", "count": "2"}, "'2' is not of type 'integer'"),
        ({"order_id": "1", "count": True}, "True is not of type 'integer'"),
        ({"order_id": "1", "count": 0}, "0 is less than the minimum of 1"),
        ({"order_id": "1", "colour": "red"}, "'colour' was unexpected"),
    ],
)
def test_arguments_are_checked_strictly_and_nothing_is_coerced(arguments: dict[str, Any], said: str) -> None:
    checked = as_tool(CHAT, get_order).check(arguments)
    assert isinstance(checked, Invalid)
    assert "get_order did not run" in checked.text
    assert said in checked.text


def test_what_does_not_fit_never_reaches_the_function() -> None:
    ran: list[Any] = []
    call = result_of((CHAT, lambda **rest: ran.append(rest)), '{"order_id": 7}')
    assert (call.outcome, ran) == ("invalid_arguments", [])


def test_a_schema_may_allow_other_parameters() -> None:
    open_schema = {**ANTHROPIC, "input_schema": {**SCHEMA, "additionalProperties": True}}
    assert isinstance(as_tool(open_schema, lambda **rest: "x").check({"order_id": "1", "x": 1}), Bound)


def test_a_definition_without_parameters_takes_none() -> None:
    now = as_tool({"type": "function", "function": {"name": "now"}}, lambda: "12:00")
    assert now.spec.parameters == {"type": "object", "properties": {}}
    assert isinstance(now.check({}), Bound)
    assert isinstance(now.check({"x": 1}), Invalid)


def test_a_function_may_ask_for_the_context() -> None:
    def act(order_id: str, ctx: CallContext, count: int = 1) -> str:
        return ctx.tool

    assert result_of((CHAT, act), '{"order_id": "1"}').text == "get_order"


def test_a_tool_of_ours_may_be_the_function() -> None:
    assert result_of((CHAT, tool(get_order)), '{"order_id": "1"}').text == "1 x1"


def test_a_schema_that_refers_to_nothing_refuses_and_does_not_fetch() -> None:
    broken = {"name": "f", "input_schema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}}
    checked = as_tool(broken, lambda a=0: a).check({"a": 1})
    assert isinstance(checked, Invalid)
    assert "schema cannot be followed" in checked.text


def test_what_the_caller_changes_later_changes_nothing() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    made = as_tool({"name": "f", "input_schema": schema}, lambda a="": a)
    schema["properties"]["a"]["type"] = "integer"
    assert isinstance(made.check({"a": "x"}), Bound)


@pytest.mark.parametrize(
    ("things", "said"),
    [
        ([CHAT], r"definition of tool 'get_order' has no function.*tools=\[\(definition, function\)\]"),
        (CHAT, "has no function"),
        ([(ANTHROPIC, None)], "has no function"),
        ([(ANTHROPIC, "x")], "what does it is the str 'x'"),
        ([({"type": "function", "function": {"parameters": {}}}, get_order)], "lacks 'name'"),
        ([({"type": "web_search_20250305", "name": "web_search"}, get_order)], "runs at its provider"),
        ([({"name": "get order", "input_schema": SCHEMA}, get_order)], "is no name for a tool"),
        ([({"name": "f", "input_schema": "x"}, get_order)], "give a JSON Schema"),
        ([({"name": "f", "input_schema": {"type": "array"}}, lambda: 0)], "not an object"),
        ([({"name": "f", "input_schema": {"properties": {"a": {"type": "text"}}}}, lambda a=0: 0)], "not valid"),
        ([(ANTHROPIC, lambda order_id: 0)], "has 'count', which the function does not take"),
        ([(ANTHROPIC, lambda order_id, count: 0)], "needs 'count', which its definition does not require"),
        ([(CHAT, get_order), (FLAT, get_order)], "two tools are called 'get_order'"),
    ],
)
def test_what_is_missing_is_named(things: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        as_tools(things)


def test_wrong_options_are_named() -> None:
    with pytest.raises(ConfigError, match="no option 'readonly'"):
        as_tool(CHAT, get_order, readonly=True)  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="timeout_s=0"):
        as_tool(CHAT, get_order, timeout_s=0)
    with pytest.raises(ConfigError, match="at least 100"):
        as_tool(CHAT, get_order, max_result=5)
    with pytest.raises(ConfigError, match="is no definition of a tool"):
        as_tool(get_order)


def test_without_the_validator_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"tenlines\[schemas\]"):
        as_tool(CHAT, get_order)


def test_a_dict_of_functions_is_what_it_was() -> None:
    tools = as_tools({"name": get_order, "type": lambda: "x", "parameters": {"a": 1}})
    assert [one.spec.name for one in tools] == ["name", "type", "parameters"]


# --- LangChain ------------------------------------------------------------------------------------------


@langchain_tool
def multiply(a: int, b: int = 2) -> int:
    """Multiply two numbers."""
    return a * b


@langchain_tool
async def multiply_later(a: int, b: int = 2) -> int:
    """Multiply two numbers, later."""
    await asyncio.sleep(0)
    return a * b


class Where(BaseModel):
    """Which order."""

    order_id: str = Field(description="As on the bill.")
    colours: list[str] = []


class Track(BaseTool):
    """A tool as a class."""

    name: str = "track"
    description: str = "Where a parcel is."
    args_schema: type[BaseModel] = Where

    def _run(self, order_id: str, colours: list[str] | None = None) -> dict[str, Any]:
        return {"order": order_id, "colours": colours}


BOTH = StructuredTool.from_function(
    func=lambda a: f"sync {a}", coroutine=multiply_later.coroutine, name="both", description="Both.", args_schema=SCHEMA
)


@pytest.mark.parametrize("with_asyncio", [False, True])
@pytest.mark.parametrize(
    ("one", "arguments", "text"),
    [
        (multiply, '{"a": 3}', "6"),
        (multiply_later, '{"a": 3, "b": 5}', "15"),
        (Track(), '{"order_id": "1042", "colours": ["red"]}', '{"order": "1042", "colours": ["red"]}'),
    ],
)
def test_tools_of_langchain_are_taken_as_they_are(one: Any, arguments: str, text: str, with_asyncio: bool) -> None:
    call = result_of(one, arguments, with_asyncio=with_asyncio)
    assert (call.outcome, call.text) == ("ok", text)


def test_what_the_model_is_told_is_the_schema_of_the_tool() -> None:
    spec = as_tool(Track(), read_only=True).spec
    assert (spec.name, spec.description, spec.read_only) == ("track", "Where a parcel is.", True)
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "description": "As on the bill."},
            "colours": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["order_id"],
    }
    assert as_tool(BOTH).spec.parameters == SCHEMA  # an args_schema may be JSON Schema


def test_async_code_is_used_where_there_is_some() -> None:
    assert [as_tool(one).is_async for one in (multiply, multiply_later, Track(), BOTH)] == [False, True, False, True]


@pytest.mark.parametrize("arguments", ['{"a": "3"}', '{"a": 3.5}', "{}", '{"a": 3, "c": 1}', '{"a": true}'])
def test_langchains_own_coercion_never_gets_to_see_what_does_not_fit(arguments: str) -> None:
    assert result_of(multiply, arguments).outcome == "invalid_arguments"


def test_a_failure_is_a_failure_also_where_langchain_makes_it_text() -> None:
    @langchain_tool
    def fail(a: int) -> str:
        """Fail."""
        raise ToolException("no such order")

    plain = result_of(fail, '{"a": 1}')
    fail.handle_tool_error = True
    told = result_of(fail, '{"a": 1}')
    assert plain.outcome == told.outcome == "tool_error"
    assert "no such order" in plain.text
    assert "no such order" in told.text


def test_what_langchain_fills_in_is_not_shown_and_is_filled_in() -> None:
    @langchain_tool
    def act(a: int, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Act."""
        return call_id.split(":", 1)[1]

    assert list(as_tool(act).spec.parameters["properties"]) == ["a"]  # type: ignore[arg-type]
    assert result_of(act, '{"a": 1}').text == "1:0"  # our own key: it is the same after a crash


def test_content_of_several_parts_stays_parts() -> None:
    @langchain_tool
    def shot() -> list[dict[str, Any]]:
        """Shot."""
        picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
        return [{"type": "text", "text": "see"}, picture, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]

    made = as_tool(shot)
    value = made.call(Bound({}), CallContext("r:1:0", "shot", None))
    assert value == [Text("see"), Image("image/png", b"hi"), Image("image/*", url="http://x/y.png")]


def test_an_artifact_is_not_told() -> None:
    @langchain_tool(response_format="content_and_artifact")
    def rows(n: int) -> tuple[str, list[int]]:
        """Rows."""
        return f"{n} rows", list(range(n))

    assert result_of(rows, '{"n": 3}').text == "3 rows"


def test_a_second_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="has its own function"):
        as_tool(multiply, get_order)


# --- files ----------------------------------------------------------------------------------------------


def test_a_file_may_hold_them(tmp_path: Path) -> None:
    file = tmp_path / "mixed.py"
    file.write_text(
        "from langchain_core.tools import tool as lc\n"
        "from tenlines import tool\n"
        "from tenlines.tools import as_tool\n"
        "@lc\ndef multiply(a: int) -> int:\n    'M.'\n    return a * 2\n"
        "@tool\ndef plain() -> str:\n    return 'x'\n"
        "look = as_tool({'name': 'look', 'input_schema': {}}, lambda: 'l', read_only=True)\n"
    )
    tools = load_tools(file)
    assert [one.spec.name for one in tools] == ["multiply", "plain", "look"]
    assert {one.spec.source for one in tools} == {str(file)}
    assert tools[2].spec.read_only
