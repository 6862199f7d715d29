"""The shape of the house, as failing tests."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tenlines import errors

TESTS = Path(__file__).parent.parent
SRC = Path(errors.__file__).parent
CORE = SRC / "core"
WIRE = SRC / "wire"

PURE = {"__future__", "collections", "difflib", "enum", "hashlib", "re", "typing", "zlib"}
"""What the core may import of the standard library: nothing that reads, writes, waits, tells the time or rolls dice."""

PURE_WIRE = PURE | {"base64", "email", "functools", "itertools", "json", "math", "string"}
"""The same for the wire formats; `email` only for reading the date in a `retry-after`."""

PURE_TRACE = ("changes", "content", "conventions", "facts", "measures", "redaction", "spans", "text")
"""What makes spans of events. It imports what the core may, and the core."""

SILENCED = 21
"""How many lines of `src` may silence a checker. When the count falls, lower this; it does not rise."""

LONGEST_FUNCTION = 60


def modules(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.py") if "__pycache__" not in file.parts)


def named(file: Path) -> str:
    return str(file.relative_to(SRC.parent))


def imports(file: Path) -> Iterator[str]:
    """The full names of everything that a file imports, at any depth."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{named(file)}: imports are written in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            yield node.module or ""


def foreign(file: Path, pure: set[str], inside: tuple[str, ...]) -> set[str]:
    """What a file imports that it may not."""
    return {
        name
        for name in imports(file)
        if name.split(".")[0] not in pure | {"msgspec"}
        and name != "tenlines"
        and not any(name == prefix or name.startswith(f"{prefix}.") for prefix in inside)
    }


# --- purity ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", modules(CORE), ids=named)
def test_the_core_imports_nothing_that_is_not_pure(file: Path) -> None:
    assert foreign(file, PURE, ("tenlines.core", "tenlines.errors")) == set()


@pytest.mark.parametrize("file", modules(WIRE), ids=named)
def test_the_wire_formats_import_nothing_that_is_not_pure(file: Path) -> None:
    assert foreign(file, PURE_WIRE, ("tenlines.core", "tenlines.errors", "tenlines.wire")) == set()


@pytest.mark.parametrize("name", PURE_TRACE)
def test_spans_are_made_of_events_and_of_nothing_else(name: str) -> None:
    inside = tuple(f"tenlines.trace.{one}" for one in PURE_TRACE)
    package = {"tenlines.trace"}  # `from tenlines.trace import content` names the package too
    roles = {"tenlines.ports", "tenlines.ports.plain_name"}  # how the name of a model is read
    file = SRC / "trace" / f"{name}.py"
    assert foreign(file, PURE, ("tenlines.core", "tenlines.errors", *inside)) - package - roles == set()


def test_the_import_check_sees_what_it_is_there_to_see(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("def f():\n    import socket\n    from time import time\n    from tenlines.agent import Agent\n")
    assert {"socket", "time", "tenlines.agent"} <= foreign(file, PURE, ("tenlines.core",))


@pytest.mark.parametrize("file", modules(CORE), ids=named)
def test_nothing_in_the_core_waits_or_opens_anything(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"open", "input", "print", "exec", "eval", "__import__"}, node.func.id


LONE_RUN = """
import sys
sys.path[:0] = [ROOT, SITE]
import msgspec, msgspec.json
known = set(sys.modules)

from tenlines.core import codec, events as ev
from tenlines.core.effects import CallModel, Finish, RunTools
from tenlines.core.machine import Machine
from tenlines.core.replay import fold
from tenlines.core.transcript import Reply, Text, ToolCall, User

log, machine = [], Machine()
def tell(kind, **fields):
    log.append(kind(seq=len(log), at=float(len(log)), **fields))
    machine.apply(log[-1])

tell(ev.RunStarted, run_id="r", agent="a", model="m", messages=(User((Text("x"),)),), tools=(ev.ToolSpec("look"),))
replies = [Reply("", (ToolCall("1", "look", "{}"),)), Reply("42")]
while not isinstance(effect := machine.next(99.0), Finish):
    if isinstance(effect, CallModel):
        tell(ev.StepStarted, step=effect.step, attempt=effect.attempt, reserved=effect.reserved)
        tell(ev.ModelReplied, step=effect.step, reply=replies.pop(0))
    for call in effect.calls if isinstance(effect, RunTools) else ():
        tell(ev.CallStarted, step=call.step, position=call.position, key=call.key)
        tell(ev.CallReturned, step=call.step, position=call.position, parts=(Text("ok"),))
tell(ev.RunEnded, status=effect.status, reason=effect.reason, answer=effect.answer)
again = fold(codec.decode(codec.encode(event)) for event in log)
assert again.state == machine.state
print(again.result().answer)
mine = {name for name in sys.modules if name.split(".")[0] == "tenlines"}
print(sorted(mine - {"tenlines", "tenlines.errors"} - {name for name in mine if name.startswith("tenlines.core")}))
print(sorted((set(sys.modules) - known) & {"asyncio", "socket", "ssl", "http", "sqlite3", "subprocess", "random"}))
"""


def test_a_lone_copy_of_the_core_imports_and_runs(tmp_path: Path) -> None:
    package = tmp_path / "tenlines"
    shutil.copytree(CORE, package / "core", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SRC / "errors.py", package)
    (package / "__init__.py").write_text("")
    site = str(Path(msgspec.__file__).parent.parent)
    script = f"ROOT, SITE = {str(tmp_path)!r}, {site!r}\n{LONE_RUN}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["42", "[]", "[]"]


# --- size -----------------------------------------------------------------------------------------------


def functions(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or 0) - node.lineno + 1, f"{named(file)}: {node.name}"


def test_no_function_of_the_core_is_longer_than_a_page(say: Callable[[str], None]) -> None:
    longest = sorted((one for file in modules(CORE) for one in functions(file)), reverse=True)
    say(f"longest functions of the core: {'; '.join(f'{name} {lines}' for lines, name in longest[:3])}")
    assert longest[0][0] <= LONGEST_FUNCTION


def test_every_file_of_the_core_has_its_tests() -> None:
    files = {file.stem for file in modules(CORE)} - {"__init__"}
    assert {f"test_{name}.py" for name in files} == {file.name for file in (TESTS / "core").glob("test_*.py")}


# --- habits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", modules(SRC), ids=named)
def test_every_module_says_what_it_is(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text())), f"{named(file)} has no docstring"


def test_no_module_is_called_utils() -> None:
    words = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [named(file) for file in modules(SRC) if {file.stem.strip("_"), file.parent.name} & words] == []


def test_only_the_command_line_prints() -> None:
    found = [
        f"{named(file)}:{node.lineno}"
        for file in modules(SRC)
        if SRC / "cli" not in file.parents
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert found == []


def test_checkers_are_silenced_only_so_often() -> None:
    lines = [
        f"{named(file)}:{number}"
        for file in modules(SRC)
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore)", line)
    ]
    assert len(lines) <= SILENCED, f"{len(lines)} lines silence a checker:\n" + "\n".join(lines)


# --- errors ---------------------------------------------------------------------------------------------


def drawn_tree() -> dict[str, str]:
    """Name -> parent, as the docstring of `errors.py` draws it."""
    block = re.search(r"```text\n(.*?)```", textwrap.dedent(errors.__doc__ or ""), re.DOTALL)
    assert block is not None
    tree: dict[str, str] = {}
    above: dict[int, str] = {}
    for line in block[1].splitlines():
        branch = re.match(r"([│ ├└─]*)(\w+)", line)
        if branch is None:
            continue
        depth = len(branch[1]) // 4
        above[depth] = branch[2]
        tree[branch[2]] = above[depth - 1] if depth else "Exception"
    return tree


def real_tree() -> dict[str, str]:
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)]
    return {one.__name__: one.__bases__[0].__name__ for one in classes}


def test_the_drawing_of_the_errors_is_the_tree_of_the_errors() -> None:
    assert drawn_tree() == real_tree()


def test_every_error_is_exported_and_explained() -> None:
    for name in real_tree():
        assert name in errors.__all__
        assert getattr(errors, name).__doc__
