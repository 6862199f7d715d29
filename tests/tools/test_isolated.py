"""Tools in a process of their own: what comes back, and that giving up really ends them."""

import asyncio
import functools
import os
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from tenlines.errors import ConfigError
from tenlines.ports import Began, Bound, CallContext, Rendered
from tenlines.tools import Tool, tool
from tenlines.tools.isolated import IsolatedError
from tenlines.tools.load import load_tools

pytestmark = pytest.mark.slow

SOURCE = """
from __future__ import annotations
import asyncio, contextvars, datetime, os, signal, subprocess, sys, threading, time
from pathlib import Path
from tenlines.ports import CallContext
from tenlines.tools import tool

seen = contextvars.ContextVar("seen", default="nothing")

@tool(isolate=True)
def add(a: int, when: datetime.date, ctx: CallContext) -> dict:
    print("this is no result")
    place = {"key": ctx.key, "span": ctx.traceparent, "pid": os.getpid()}
    return {"a": a + 1, "type": type(when).__name__, "seen": seen.get(), **place}

@tool(isolate=True, max_result=100)
def long() -> str:
    return "line\\n" * 10_000

@tool(isolate=True)
async def later(text: str) -> str:
    await asyncio.sleep(0)
    return text * 400_000

@tool(isolate=True)
def fail() -> None:
    print("before the fall")
    print("on stderr", file=sys.stderr)
    raise KeyError("alpha")

@tool(isolate=True)
def fall(how: str) -> None:
    sys.stdout.write("x" * 5_000 + "last words")
    if how == "exit":
        os._exit(7)
    if how == "sys.exit":
        sys.exit("enough")
    os.kill(os.getpid(), getattr(signal, how))

@tool(isolate=True)
def hang(folder: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(folder, "pids").write_text(f"{os.getpid()} {child.pid}")
    os.replace(Path(folder, "pids"), Path(folder, "ready"))
    time.sleep(600)

@tool(isolate=True)
def leave_behind(folder: str) -> int:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    return child.pid

@tool(isolate=True)
def linger() -> str:
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "done"

@tool(isolate=True)
def chatter() -> str:
    print("x" * 5_000_000)
    return "done"

@tool(isolate=True)
def read_input() -> str:
    return repr(sys.stdin.read())

class Box:
    @staticmethod
    @tool(isolate=True)
    def inside(n: int) -> int:
        return n

boxed = Box.inside

if __name__ == "__main__":
    raise SystemExit("the main part of the file ran")
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tool[..., Any]]:
    file = tmp_path_factory.mktemp("isolated") / "isolated_tools.py"
    file.write_text(SOURCE)
    return {one.spec.name: one for one in load_tools(file)}


def context() -> CallContext:
    return CallContext("run-1:2:3", "t", None)


def call(one: Tool[..., Any], ctx: CallContext | None = None, **arguments: Any) -> Any:
    bound = one.check(arguments)
    assert isinstance(bound, Bound), bound
    return one.call(bound, ctx or context())


def text_of(rendered: Rendered) -> str:
    return rendered.parts[0].text  # type: ignore[union-attr]


def gone(pid: int) -> bool:
    """Ended, or a zombie that only waits for its new parent to look."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] in "ZX"
    except FileNotFoundError:
        return True


def wait_until(condition: Any) -> None:
    until = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)


# --- what comes back ----------------------------------------------------------------------------------


def test_types_arrive_the_key_arrives_and_what_is_printed_is_no_result(tools: dict[str, Tool[..., Any]]) -> None:
    import json

    add = tools["add"]
    assert add.is_killable
    assert not add.is_async
    ctx = CallContext("run-1:2:3", "t", None, began=Began(7, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
    value = json.loads(text_of(add.render(call(add, ctx, a=1, when="2024-05-01"))))
    assert value.pop("pid") != os.getpid()
    assert value.pop("span") == ctx.traceparent
    assert value == {"a": 2, "type": "date", "key": "run-1:2:3", "seen": "nothing"}


def test_the_plain_call_runs_here(tools: dict[str, Tool[..., Any]]) -> None:
    assert tools["add"](1, None, context())["pid"] == os.getpid()


def test_a_long_result_is_cut_in_the_child_and_comes_back_whole(tools: dict[str, Tool[..., Any]]) -> None:
    rendered = call(tools["long"])
    assert rendered.truncated
    assert len(text_of(rendered)) <= 400
    assert rendered.full == "line\n" * 10_000


def test_async_tools_work_and_large_arguments_and_results_pass(tools: dict[str, Tool[..., Any]]) -> None:
    later = tools["later"]
    assert not later.is_async
    assert call(later, text="é" * 10).full == "é" * 4_000_000
    assert call(later, text="").parts[0].text == ""


def test_a_tool_in_a_class_is_found(tools: dict[str, Tool[..., Any]]) -> None:
    assert text_of(call(tools["inside"], n=3)) == "3"


def test_a_lot_of_output_does_not_block_the_tool(tools: dict[str, Tool[..., Any]]) -> None:
    assert text_of(call(tools["chatter"])) == "done"


def test_the_tool_has_no_input_to_read(tools: dict[str, Tool[..., Any]]) -> None:
    assert text_of(call(tools["read_input"])) == "''"


def test_a_thread_that_is_left_does_not_keep_the_call_open(tools: dict[str, Tool[..., Any]]) -> None:
    assert text_of(call(tools["linger"])) == "done"


def test_it_works_from_a_thread_and_beside_an_event_loop(tools: dict[str, Tool[..., Any]]) -> None:
    async def main() -> list[Any]:
        return await asyncio.gather(*(asyncio.to_thread(call, tools["inside"], n=n) for n in range(3)))

    assert [text_of(one) for one in asyncio.run(main())] == ["0", "1", "2"]


# --- when it fails ------------------------------------------------------------------------------------


def test_an_exception_comes_back_with_its_type_its_message_and_what_was_printed(
    tools: dict[str, Tool[..., Any]],
) -> None:
    with pytest.raises(IsolatedError) as caught:
        call(tools["fail"])
    assert type(caught.value).__name__ == "KeyError"
    assert str(caught.value) == "'alpha'"
    detail = "".join(traceback.format_exception(caught.value))
    assert 'raise KeyError("alpha")' in detail
    assert "before the fall\non stderr" in detail


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("exit", "ended with exit code 7 before it gave a result"),
        ("SIGSEGV", "was killed by SIGSEGV before it gave a result"),
        ("SIGKILL", "was killed by SIGKILL (often: out of memory) before it gave a result"),
    ],
)
def test_a_child_that_dies_is_an_error_that_says_how(tools: dict[str, Tool[..., Any]], how: str, words: str) -> None:
    with pytest.raises(IsolatedError) as caught:
        call(tools["fall"], how=how)
    assert words in str(caught.value)
    (note,) = caught.value.__notes__
    assert note.endswith("last words")
    assert len(note) < 2_100


def test_leaving_by_sys_exit_is_an_error_of_the_tool(tools: dict[str, Tool[..., Any]]) -> None:
    with pytest.raises(IsolatedError, match="enough") as caught:
        call(tools["fall"], how="sys.exit")
    assert type(caught.value).__name__ == "SystemExit"
    assert isinstance(caught.value, Exception)


# --- giving up ----------------------------------------------------------------------------------------


def test_giving_up_kills_the_process_and_what_it_started(tools: dict[str, Tool[..., Any]], tmp_path: Path) -> None:
    ctx, ended = context(), list[BaseException]()

    def work() -> None:
        try:
            call(tools["hang"], ctx, folder=str(tmp_path))
        except IsolatedError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until((tmp_path / "ready").exists)
    pids = [int(pid) for pid in (tmp_path / "ready").read_text().split()]
    ctx.give_up()
    thread.join(5)
    assert not thread.is_alive()
    assert "given up and its process was killed" in str(ended[0])
    wait_until(lambda: all(gone(pid) for pid in pids))


def test_a_call_that_was_given_up_before_it_began_is_killed_too(
    tools: dict[str, Tool[..., Any]], tmp_path: Path
) -> None:
    ctx = context()
    ctx.give_up()
    with pytest.raises(IsolatedError, match="given up"):
        call(tools["hang"], ctx, folder=str(tmp_path))


def test_giving_up_after_the_end_does_nothing(tools: dict[str, Tool[..., Any]]) -> None:
    ctx = context()
    call(tools["inside"], ctx, n=1)
    ctx.give_up()


def test_nothing_of_a_call_outlives_it(tools: dict[str, Tool[..., Any]], tmp_path: Path) -> None:
    pid = int(text_of(call(tools["leave_behind"], folder=str(tmp_path))))
    wait_until(lambda: gone(pid))


def test_when_the_parent_is_killed_the_child_and_its_children_end(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\nfrom tenlines.ports import Bound, CallContext\nfrom tenlines.tools.load import load_tools\n"
            "hang = {t.name: t for t in load_tools(sys.argv[1])}['hang']\n"
            "hang.call(Bound({'folder': sys.argv[2]}), CallContext('r:1:0', 'hang', None))",
            str(tmp_path / "mine.py"),
            str(tmp_path),
        ]
    )
    wait_until((tmp_path / "ready").exists)
    pids = [int(pid) for pid in (tmp_path / "ready").read_text().split()]
    parent.kill()
    parent.wait()
    wait_until(lambda: all(gone(pid) for pid in pids))


def test_an_interrupt_kills_the_child_at_once(
    tools: dict[str, Tool[..., Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Any) -> None:
        wait_until((tmp_path / "ready").exists)
        raise KeyboardInterrupt

    monkeypatch.setattr("tenlines.tools.isolated._Child.wait", interrupt)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call(tools["hang"], folder=str(tmp_path))
    pids = [int(pid) for pid in (tmp_path / "ready").read_text().split()]
    wait_until(lambda: all(gone(pid) for pid in pids))
    assert time.monotonic() - start < 2


def test_no_file_handle_is_left_open(tools: dict[str, Tool[..., Any]]) -> None:
    call(tools["inside"], n=1)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        call(tools["inside"], n=1)
    assert len(os.listdir("/proc/self/fd")) == before


# --- where functions are found ------------------------------------------------------------------------


def test_a_tool_of_the_main_script_is_found_by_its_file(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from tenlines.ports import Bound, CallContext\nfrom tenlines.tools import tool\n"
        "@tool(isolate=True)\ndef double(n: int) -> int:\n    return 2 * n\n"
        "if __name__ == '__main__':\n"
        "    print(double.call(double.check({'n': 4}), CallContext('r:1:0', 'double', None)).parts[0].text)\n"
    )
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)
    assert done.stdout == "8\n"


def test_a_tool_of_a_module_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shop_for_isolation"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "prices.py").write_text("TEA = 3\n")
    (package / "tools.py").write_text("from .prices import TEA\ndef price(n: int) -> int:\n    return n * TEA\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import importlib

    module = importlib.import_module("shop_for_isolation.tools")
    assert text_of(call(tool(isolate=True)(module.price), n=2)) == "6"


def module_function(n: int) -> int:
    return n


class Holder:
    def method(self) -> None: ...

    def __call__(self) -> None: ...


def test_what_a_child_cannot_find_is_refused_at_decoration() -> None:
    def inner() -> None: ...

    for function in (lambda: 1, inner, Holder().method, Holder(), functools.partial(module_function, n=1)):
        with pytest.raises(ConfigError, match=r"isolate=True needs a function"):
            tool(name="t", isolate=True)(function)
    assert tool(isolate=True)(module_function).is_killable


def test_a_function_that_was_typed_in_is_refused() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("def typed() -> int:\n    return 1", names)  # noqa: S102  # what an interactive session does
    with pytest.raises(ConfigError, match="typed in"):
        tool(isolate=True)(names["typed"])
