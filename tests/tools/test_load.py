"""Tools from functions, methods, dicts, lookup tables, other objects and files."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject, Text
from tenlines.errors import ConfigError
from tenlines.ports import Bound, CallContext, Rendered, ToolPort
from tenlines.tools import Tool, tool
from tenlines.tools.load import as_tools, load_tools


def call(one: ToolPort, **arguments: Any) -> Any:
    bound = one.check(arguments)
    assert isinstance(bound, Bound), bound
    return one.call(bound, CallContext("r:1:0", one.spec.name, None))


@tool
def decorated(a: int) -> int:
    return a


def plain(a: int) -> int:
    """Give it back."""
    return a


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, n: int) -> int:
        self.count += n
        return self.count


class Own:
    """An object with the methods of `ToolPort`, and nothing inherited."""

    spec = ToolSpec("own")
    is_async = False
    is_killable = False

    def check(self, arguments: JsonObject) -> Bound:
        return Bound(arguments)

    def call(self, bound: Bound, ctx: CallContext) -> Any:
        return bound.arguments

    def render(self, value: Any) -> Rendered:
        return Rendered((Text(str(value)),))


def test_tools_functions_methods_and_own_objects_can_be_mixed() -> None:
    counter = Counter()
    made = as_tools([decorated, plain, counter.add, Own(), {"double": lambda n: 2 * n}])
    assert [one.spec.name for one in made] == ["decorated", "plain", "add", "own", "double"]
    assert call(made[2], n=2) == 2
    assert counter.count == 2
    assert call(made[4], n=2) == 4


def test_nothing_is_no_tools() -> None:
    assert as_tools(None) == []
    assert as_tools([]) == []
    assert as_tools({}) == []


def test_a_dict_of_functions_calls_them_by_keyword_under_the_name_of_the_key() -> None:
    def get_weather(city):  # type: ignore[no-untyped-def]
        return f"{city}: 3 C"

    (made,) = as_tools({"weather": get_weather})
    assert made.spec.name == "weather"
    assert call(made, city="Oslo") == "Oslo: 3 C"


def test_a_tool_in_a_dict_takes_the_name_of_the_key_and_keeps_its_options() -> None:
    original = tool(read_only=True)(plain)
    (made,) = as_tools({"other": original})
    assert (made.spec.name, made.spec.read_only, made.spec.description) == ("other", True, "Give it back.")
    assert original.spec.name == "plain"


def test_a_lookup_table_has_one_text_argument_and_knows_only_its_keys() -> None:
    (made,) = as_tools({"price": {"tea": 3, "air": 0, 7: "seven", "nothing": None}})
    assert made.spec.parameters["required"] == ["arg"]
    assert made.spec.read_only
    assert call(made, arg="tea") == 3
    assert call(made, arg="air") == 0
    assert call(made, arg="nothing") is None
    assert call(made, arg="7") == "seven"
    for unknown in ("get", "__class__", "", "coffee"):
        assert call(made, arg=unknown) == "unknown_arg"


def test_a_lookup_table_is_not_changed_and_may_be_empty() -> None:
    (made,) = as_tools({"price": {}})
    assert call(made, arg="tea") == "unknown_arg"


def test_two_tools_of_one_name_are_refused_and_both_are_named() -> None:
    with pytest.raises(ConfigError, match=r"called 'plain'.*test_load.*plain.*and.*lambda.*name="):
        as_tools([plain, {"plain": lambda: 1}])


def test_the_same_tool_twice_is_one_name_too_many_only_if_it_is_another_object() -> None:
    assert len(as_tools([decorated])) == 1
    with pytest.raises(ConfigError, match="two tools are called 'decorated'"):
        as_tools([decorated, decorated.renamed("decorated")])


@pytest.mark.parametrize(
    ("things", "words"),
    [
        ("get_order", r"the str 'get_order'.*tools=\[get_order"),
        (plain, r"tools=\[get_order"),
        ([Counter], "Counter is a class"),
        (["get_order"], "the str 'get_order' cannot be a tool"),
        ([3], "the int 3 cannot be a tool"),
        ([object()], "an object of the type object cannot be a tool"),
        ([lambda: 1], "'<lambda>' is no name"),
        ({"a": 3}, "tool 'a' is the int 3"),
        ({"a": Counter}, "tool 'a' is"),
        ({1: plain}, "the int 1"),
        ({"two words": plain}, "'two words' is no name"),
        ({"size": len}, "positional-only"),
    ],
)
def test_anything_else_is_refused_with_the_remedy(things: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        as_tools(things)


def test_an_object_that_is_almost_a_tool_is_told_what_it_lacks() -> None:
    class Almost:
        spec = ToolSpec("almost")

        def check(self) -> None: ...

    with pytest.raises(ConfigError, match="'almost' lacks call, render, is_async, is_killable"):
        as_tools([Almost()])


def test_a_type_that_cannot_be_described_is_reported_when_the_tools_are_handed_over() -> None:
    def act(a: Counter) -> None: ...

    with pytest.raises(ConfigError, match=r"'act'.*'a'"):
        as_tools([act])


# --- files --------------------------------------------------------------------------------------------


def written(folder: Path, text: str, name: str = "mine.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_a_file_gives_its_tools_in_its_order(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "from __future__ import annotations\nfrom tenlines.tools import tool\n"
        "class Point(dict): pass\n"
        "@tool\ndef b(n: int) -> int:\n    return helper(n)\n"
        "@tool(name='a')\ndef other(x: list[int]) -> int:\n    return sum(x)\n"
        "def helper(n: int) -> int:\n    return n + 1\n",
    )
    made = load_tools(file)
    assert [one.spec.name for one in made] == ["b", "a"]
    assert call(made[0], n=1) == 2
    assert all(isinstance(one, Tool) for one in made)
    assert made[0].spec.source == str(file)


def test_a_file_without_decorators_gives_its_public_typed_functions(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "from json import dumps\nfrom os.path import join\n"
        "def add(a: int, b: int) -> int:\n    return a + b\n"
        "def now() -> str:\n    return 'noon'\n"
        "def _hidden(a: int) -> int:\n    return a\n"
        "def untyped(a):\n    return a\n"
        "class C: pass\n",
    )
    assert [one.spec.name for one in load_tools(file)] == ["add", "now"]


def test_two_files_of_one_name_do_not_meet(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    first = load_tools(written(tmp_path, "def a() -> int:\n    return 1\n"))
    second = load_tools(written(tmp_path / "x", "def a() -> int:\n    return 2\n"))
    assert (call(first[0]), call(second[0])) == (1, 2)


def test_the_folder_is_importable_only_while_loading(tmp_path: Path) -> None:
    written(tmp_path, "VALUE = 7\n", "neighbour_of_mine.py")
    before = list(sys.path)
    (made,) = load_tools(written(tmp_path, "import neighbour_of_mine as n\ndef a() -> int:\n    return n.VALUE\n"))
    assert call(made) == 7
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def a(:\n", r"mine.py, line 1: "),
        ("x = 1\n1/0\n", r"could not be imported: ZeroDivisionError: division by zero"),
        ("import no_such_module_anywhere\n", "ModuleNotFoundError"),
        ("x = 1\n", "has no tools: decorate a function"),
        ("raise SystemExit(3)\n", "could not be imported: SystemExit: 3"),
    ],
)
def test_a_file_that_gives_no_tools_says_why(tmp_path: Path, text: str, words: str) -> None:
    before, modules = list(sys.path), set(sys.modules)
    with pytest.raises(ConfigError, match=words):
        load_tools(written(tmp_path, text))
    assert sys.path == before
    assert words == "has no tools: decorate a function" or set(sys.modules) == modules


def test_a_missing_file_a_folder_and_another_kind_of_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load_tools(tmp_path / "none.py")
    with pytest.raises(ConfigError, match="is not a file"):
        load_tools(tmp_path)
    with pytest.raises(ConfigError, match=r"should end in \.py"):
        load_tools(written(tmp_path, "x", "tools.txt"))
