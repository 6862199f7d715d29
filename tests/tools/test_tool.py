"""`@tool`: what a function becomes, and what is refused while it is still a mistake of the program."""

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import threading
import timeit
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from tenlines.core.outcomes import parse_arguments
from tenlines.errors import ConfigError
from tenlines.ports import Bound, CallContext, Invalid, Rendered
from tenlines.tools import Tool, tool

if TYPE_CHECKING:
    from tenlines import ports


def context(name: str = "t") -> CallContext:
    return CallContext("run-1:1:0", name, None)


def call(one: Tool[..., Any], **arguments: Any) -> Any:
    bound = one.check(arguments)
    assert isinstance(bound, Bound), bound
    return one.call(bound, context())


@tool(read_only=True)
def weather(city: str, days: int = 3) -> str:
    """Tell the weather.

    Only for cities.

    Args:
        city: Name of the city.
        days: How many days.

    Returns:
        A text.
    """
    return f"{city}: {days}"


# --- what it is ---------------------------------------------------------------------------------------


def test_the_decorated_function_stays_the_plain_function() -> None:
    assert weather("Oslo", days=1) == "Oslo: 1"
    assert weather.__name__ == "weather"
    assert (weather.__doc__ or "").startswith("Tell the weather.")


def test_name_description_and_parameters_come_from_the_function() -> None:
    assert weather.spec.name == "weather"
    assert weather.spec.description == "Tell the weather.\n\nOnly for cities."
    assert weather.spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city."},
            "days": {"type": "integer", "description": "How many days.", "default": 3},
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_options_reach_the_spec() -> None:
    made = tool(
        name="look-up",
        description="  Look.  ",
        idempotent=True,
        repeatable=True,
        final=True,
        timeout_s=2.5,
        extra="ignore",
    )(lambda q: q)
    spec = made.spec
    assert (spec.name, spec.description) == ("look-up", "Look.")
    assert (spec.read_only, spec.idempotent, spec.repeatable, spec.final, spec.timeout_s) == (
        False,
        True,
        True,
        True,
        2.5,
    )


def test_a_tool_can_be_made_again_with_other_options() -> None:
    again = tool(weather, name="forecast")
    assert again.spec.name == "forecast"
    assert again("Oslo") == "Oslo: 3"
    assert weather.spec.name == "weather"


def test_valid_arguments_are_passed_by_name_and_defaults_are_the_functions_own() -> None:
    assert weather.check({"city": "Oslo"}) == Bound({"city": "Oslo"})
    assert call(weather, city="Oslo") == "Oslo: 3"


def test_falsy_arguments_arrive_as_they_are() -> None:
    made = tool(name="echo")(lambda a, b, c, d, e: [a, b, c, d, e])
    assert call(made, a="", b=0, c=[], d=None, e=False) == ["", 0, [], None, False]


# --- kinds of functions -------------------------------------------------------------------------------


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def find(self, query: str) -> str:
        """Find something."""
        return f"{self.name} {query}"

    @tool
    @classmethod
    def kind(cls, query: str) -> str:
        return f"{cls.__name__} {query}"

    @classmethod
    @tool
    def kind_too(cls, query: str) -> str:
        return f"{cls.__name__} {query}"

    @staticmethod
    @tool
    def plain(query: str) -> str:
        return query

    @tool
    @staticmethod
    def plain_too(query: str) -> str:
        return query

    def undecorated(self, query: str) -> str:
        return f"{self.name} {query}!"


def test_a_method_is_a_tool_of_the_object_it_is_taken_from() -> None:
    one, other = Shop("a").find, Shop("b").find
    assert call(one, query="x") == "a x"
    assert call(other, query="x") == "b x"
    assert list(one.spec.parameters["properties"]) == ["query"]  # type: ignore[arg-type]
    assert one("x") == "a x"
    assert Shop.find(Shop("c"), "x") == "c x"


def test_a_method_without_its_object_says_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"'find' is a method.*Shop\(\.\.\.\)\.find"):
        _ = Shop.find.spec


def test_class_methods_and_static_methods_work_in_either_order() -> None:
    for made in (Shop.kind, Shop("a").kind, Shop.kind_too, Shop("a").kind_too):
        assert call(made, query="x") == "Shop x"
    for made in (Shop.plain, Shop("a").plain, Shop.plain_too, Shop("a").plain_too):
        assert call(made, query="x") == "x"


def test_an_inherited_method_is_a_tool_too() -> None:
    class Kiosk(Shop):
        pass

    assert call(Kiosk("k").find, query="x") == "k x"
    assert call(Kiosk.kind, query="x") == "Kiosk x"


def test_a_bound_method_can_be_made_a_tool() -> None:
    made = tool(Shop("a").undecorated)
    assert made.spec.name == "undecorated"
    assert call(made, query="x") == "a x!"


def test_a_callable_object_is_a_tool_named_after_its_class() -> None:
    class Search:
        """Search the shop."""

        def __call__(self, query: str) -> str:
            return query.upper()

    made = tool(Search())
    assert (made.spec.name, made.spec.description) == ("Search", "Search the shop.")
    assert call(made, query="x") == "X"


def test_what_a_partial_sets_is_hidden_from_the_model() -> None:
    def fetch(address: str, token: str, retries: int = 2) -> str:
        """Fetch a page."""
        return f"{address} {token} {retries}"

    made = tool(functools.partial(fetch, token="secret"))
    assert made.spec.name == "fetch"
    assert "token" not in str(made.spec.parameters)
    assert "secret" not in str(made.spec.parameters)
    assert isinstance(made.check({"address": "a", "token": "mine"}), Invalid)
    assert call(made, address="a") == "a secret 2"


def test_extra_keys_cannot_reach_what_a_partial_or_the_runtime_sets() -> None:
    def fetch(token: str, ctx: CallContext, **rest: Any) -> dict[str, Any]:
        return rest

    made = tool(functools.partial(fetch, token="secret"))
    for name in ("token", "ctx"):
        refused = made.check({name: "mine"})
        assert isinstance(refused, Invalid)
        assert f"{name} is not a parameter of fetch" in refused.text
    assert call(made, other=1) == {"other": 1}


def test_an_async_function_gives_an_awaitable() -> None:
    @tool
    async def later(n: int) -> int:
        return n + 1

    assert later.is_async
    assert asyncio.run(call(later, n=1)) == 2
    assert not weather.is_async
    assert not weather.is_killable


def test_async_partials_methods_and_objects_are_async_too() -> None:
    async def later(n: int, m: int) -> int:
        return n + m

    class Later:
        async def __call__(self, n: int) -> int:
            return n

        @tool
        async def method(self, n: int) -> int:
            return n

    assert tool(functools.partial(later, m=1)).is_async
    assert tool(Later()).is_async
    assert Later().method.is_async


def test_the_value_of_a_returned_coroutine_arrives() -> None:
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    @tool
    def later() -> Any:
        return work()

    assert not later.is_async
    assert call(later) == "done"


def test_a_returned_coroutine_is_run_where_a_loop_is_running_already() -> None:
    async def work() -> str:
        return threading.current_thread().name

    async def fail() -> None:
        raise SystemExit(3)

    async def main() -> str:
        with pytest.raises(SystemExit):
            call(tool(name="fails")(lambda: fail()))
        return str(call(tool(name="later")(lambda: work())))

    assert asyncio.run(main()) != threading.current_thread().name


def test_a_generator_function_is_refused_at_decoration() -> None:
    def pages() -> Iterator[str]:
        yield "a"

    async def more() -> Any:
        yield "a"

    for function in (pages, more, functools.partial(pages)):
        with pytest.raises(ConfigError, match=r"yields.*return a list"):
            tool(function)


def test_a_returned_generator_is_a_clear_error() -> None:
    made = tool(name="pages")(lambda: (page for page in "ab"))
    with pytest.raises(TypeError, match="returned a generator"):
        call(made)


# --- the context --------------------------------------------------------------------------------------


def test_the_context_is_filled_in_and_not_shown() -> None:
    @tool
    def direct(q: str, ctx: CallContext) -> str:
        return f"{q} {ctx.key}"

    @tool
    def optional(q: str, call_context: Optional[CallContext] = None) -> str:  # noqa: UP045  # the old spelling too
        return f"{q} {call_context.key if call_context else ''}"

    @tool
    def union(q: str, ctx: CallContext | None = None) -> str:
        return f"{q} {ctx.key if ctx else ''}"

    @tool
    def only_typed(q: str, ctx: ports.CallContext) -> str:
        return f"{q} {ctx.key}"

    @tool
    def annotated(q: str, ctx: Annotated[CallContext, "the call"]) -> str:
        return f"{q} {ctx.key}"

    for made in (direct, optional, union, only_typed, annotated):
        assert list(made.spec.parameters["properties"]) == ["q"]  # type: ignore[arg-type]
        assert call(made, q="x") == "x run-1:1:0"


def test_a_model_cannot_send_a_context() -> None:
    @tool
    def act(q: str, ctx: CallContext) -> str:
        return q

    refused = act.check({"q": "x", "ctx": {"key": "mine"}})
    assert isinstance(refused, Invalid)
    assert "ctx is not a parameter of act" in refused.text


def test_two_contexts_are_refused() -> None:
    def act(a: CallContext, b: CallContext) -> None: ...

    with pytest.raises(ConfigError, match="CallContext twice: 'a' and 'b'"):
        tool(act)


# --- refusals -----------------------------------------------------------------------------------------


def test_positional_only_parameters_are_refused_with_the_remedy() -> None:
    def act(a: int, /) -> None: ...

    with pytest.raises(ConfigError, match=r"'act'.*'a' is positional-only.*remove the `/`"):
        tool(act)


def test_star_arguments_are_refused_with_the_remedy() -> None:
    def act(*names: str) -> None: ...

    with pytest.raises(ConfigError, match=r"'act'.*'\*names'.*names: list\[str\]"):
        tool(act)


@pytest.mark.parametrize("name", ["", "two words", "1st", "x" * 65, "Ü", "a.b", "a\n"])
def test_a_name_that_providers_refuse_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no name for a tool"):
        tool(name=name)(lambda: 1)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ConfigError, match=r"'<lambda>' is no name.*name="):
        tool(lambda: 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_result": 99}, "at least 100"),
        ({"timeout_s": 0}, "seconds above 0"),
        ({"timeout_s": float("nan")}, "seconds above 0"),
        ({"extra": "drop"}, "'refuse' or 'ignore'"),
        ({"timeout": 3}, "unexpected keyword argument 'timeout'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        tool(name="t", **options)(lambda: 1)


def test_classes_and_things_that_cannot_be_called_are_refused() -> None:
    with pytest.raises(ConfigError, match="Shop is a class"):
        tool(Shop)
    with pytest.raises(ConfigError, match="a int cannot be called"):
        tool(3)  # type: ignore[call-overload]


def test_a_type_without_a_json_form_names_tool_parameter_and_remedy() -> None:
    class Socket:
        pass

    @tool
    def act(a: int, b: Socket) -> None: ...

    with pytest.raises(ConfigError, match=r"'act'.*'b'.*Socket.*dataclass"):
        _ = act.spec


def test_a_type_that_only_python_knows_is_named() -> None:
    @tool
    def act(a: int, b: Callable[[], int]) -> None: ...

    @tool
    def rest(**others: Callable[[], int]) -> None: ...

    with pytest.raises(ConfigError, match=r"'act'.*'b'.*cannot be described"):
        _ = act.spec
    with pytest.raises(ConfigError, match=r"'rest'.*'others'.*cannot be described"):
        _ = rest.spec


def test_a_function_without_a_readable_signature_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'dict_of'.*cannot be read.*wrap it in a def"):
        tool(name="dict_of")({}.update)


def test_a_broken_docstring_is_shown_as_it_is() -> None:
    def act(a: int) -> None: ...

    act.__doc__ = "Act.\n\n:param"
    assert tool(act).spec.description.startswith("Act.")


def test_checking_and_rendering_take_microseconds() -> None:
    arguments = {"city": "Oslo", "days": 2}
    weather.check(arguments)
    checks = min(timeit.repeat(lambda: weather.check(arguments), number=1_000, repeat=5)) * 1_000
    renders = min(timeit.repeat(lambda: weather.render("3 C"), number=1_000, repeat=5)) * 1_000
    assert checks < 15  # 0.8 where this was written
    assert renders < 5  # 0.3


def test_a_tool_says_its_name() -> None:
    assert repr(weather) == "<tool weather>"


def test_a_type_that_cannot_be_resolved_is_named() -> None:
    @tool
    def act(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ConfigError, match=r"'act'.*'a', 'Nowhere', cannot be resolved"):
        _ = act.spec


def test_a_type_that_is_defined_further_down_is_found() -> None:
    assert isinstance(uses_later.check({"a": {"n": 1}}), Bound)


@tool
def uses_later(a: Later) -> int:
    return a.n


def test_a_type_that_is_defined_inside_a_function_is_found() -> None:
    from pydantic import BaseModel

    class Inner(BaseModel):
        n: int

    @tool
    def act(a: Inner) -> int:
        return a.n

    assert call(act, a={"n": 2}) == 2


def test_an_alias_is_refused() -> None:
    @tool
    def act(from_: Annotated[int, Field(alias="from")]) -> None: ...

    with pytest.raises(ConfigError, match=r"'from_' has an alias"):
        _ = act.spec


# --- isolation of the import, speed -------------------------------------------------------------------


@pytest.mark.slow
def test_decorating_does_not_import_pydantic() -> None:
    code = (
        "import sys\nfrom tenlines.tools.tool import tool\n@tool\ndef f(a: int) -> int:\n    return a\n"
        "before = set(sys.modules)\nassert not any(m.startswith('tenlines.tools.schema') for m in before)\n"
        "f.check({'a': 1})\nassert 'tenlines.tools.schema' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_render_passes_on_what_is_rendered_already() -> None:
    ready = Rendered(())
    assert weather.render(ready) is ready


def test_a_result_is_bounded_by_max_result() -> None:
    made = tool(name="log", max_result=5_000)(lambda: "line of log\n" * 190_000)
    rendered = made.render(call(made))
    assert rendered.truncated
    assert len(rendered.parts[0].text) <= 20_000  # type: ignore[union-attr]


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
            max_leaves=5,
        ),
        max_size=4,
    )
)
def test_any_json_object_is_either_bound_or_explained_in_bounds(arguments: dict[str, Any]) -> None:
    answer = weather.check(arguments)
    if isinstance(answer, Invalid):
        assert "weather" in answer.text
        assert len(answer.text) < 2_000
        answer.text.encode()
    else:
        assert isinstance(answer.arguments["city"], str)


def test_deeply_nested_arguments_are_refused_or_taken_but_never_raise() -> None:
    @tool(name="f")
    def anything(x) -> str:  # type: ignore[no-untyped-def]
        return "ok"

    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    refused = anything.check({"x": deep})
    assert isinstance(refused, Invalid)
    assert "nested too deeply" in refused.text
    assert isinstance(anything.check({"x": [[[[[]]]]]}), Bound)
    big = parse_arguments('{"x": ' + "9" * 4_000 + "}").value
    assert big is not None
    bound = anything.check(big)
    assert isinstance(bound, Invalid) or bound.arguments["x"] == int("9" * 4_000)


from dataclasses import dataclass  # noqa: E402


@dataclass
class Later:
    n: int
