"""The laws catch what they are there to catch: each seeded fault, one at a time."""

from __future__ import annotations

import atexit
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import TypeAlias

import pytest
from faults import FAULTS
from seeding import Fault

import tenlines.core

Verdicts: TypeAlias = dict[Fault, "Future[subprocess.CompletedProcess[str]]"]
SEEDED = "test_a_fault_does_not_get_past_the_laws"
HERE = Path(__file__).parent
CORE = Path(tenlines.core.__file__).parent
CAUGHT_AT: dict[str, str] = json.loads((HERE / "caught_at.json").read_text())
"""Where each fault was found last: there it is looked for first. An old line costs time and nothing else;
`python tests/property/test_faults.py` writes the file anew."""


def lone_copy(folder: Path) -> Path:
    """The core alone, under the name of the package; nothing else of the project is in it."""
    package = folder / "tenlines"
    shutil.copytree(compiled_core(), package / "core")
    shutil.copy(CORE.parent / "errors.py", package / "errors.py")
    (package / "__init__.py").write_text("")
    return package


@cache
def compiled_core() -> Path:
    """A copy that is compiled, and so need not be in each of the processes. It is as it was copied first."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    shutil.copytree(CORE, folder / "core", ignore=shutil.ignore_patterns("__pycache__"))
    assert compileall.compile_dir(folder / "core", quiet=1)
    return folder / "core"


def sow(fault: Fault, core: Path) -> None:
    """Write the fault into a copy, of which nothing compiled is left."""
    file = core / fault.file
    source = file.read_text()
    assert fault.old in source, f"{fault.what!r} is out of date: renew tests/property/faults.py"
    file.write_text(source.replace(fault.old, fault.new, 1))
    Path(cache_from_source(file)).unlink()


def check(folder: Path, first: str = "") -> subprocess.CompletedProcess[str]:
    """The quick laws against the package in this folder, in a process of their own."""
    path = os.pathsep.join((str(folder), str(HERE)))
    return subprocess.run(
        [sys.executable, str(HERE / "faults.py"), first],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": ""},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.slow
def test_the_quick_laws_find_nothing_in_the_core_as_it_is(tmp_path: Path) -> None:
    lone_copy(tmp_path)
    done = check(tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_the_list_of_faults_is_up_to_date(fault: Fault) -> None:
    times = (CORE / fault.file).read_text().count(fault.old)
    assert times == 1, (
        f"{fault.what!r}: its text occurs {times} times in core/{fault.file}; renew tests/property/faults.py"
    )


def seed(fault: Fault, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the quick laws say of a core with this fault."""
    sow(fault, lone_copy(folder) / "core")
    return check(folder, CAUGHT_AT.get(fault.what, ""))


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdicts]:
    """All the faults that were asked for, as many at a time as there are processors. Where tests are shared out among
    processes, each tries its own, when it comes to it."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    is_shared = "PYTEST_XDIST_WORKER" in os.environ
    asked = [item.callspec.params["fault"] for item in items if item.originalname == SEEDED and not is_shared]
    pool = ThreadPoolExecutor(os.cpu_count())
    yield {fault: pool.submit(seed, fault, tmp_path_factory.mktemp("core")) for fault in asked}
    pool.shutdown(cancel_futures=True)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_does_not_get_past_the_laws(
    fault: Fault, verdicts: Verdicts, counts: Counter[str], tmp_path: Path
) -> None:
    done = verdicts[fault].result() if fault in verdicts else seed(fault, tmp_path)
    counts["faults seeded"] += 1
    assert done.returncode == 1, f"{fault.what!r} was not caught\n{done.stderr}"
    assert done.stderr.startswith("caught: "), done.stderr
    counts["faults caught"] += 1


def renew() -> None:
    """Look for all faults, and write down where each was found."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        places = [Path(folder, str(number)) for number in range(len(FAULTS))]
        found = pool.map(seed, FAULTS, places)
        caught = {fault.what: done.stderr.split(": ")[1] for fault, done in zip(FAULTS, found, strict=True)}
    (HERE / "caught_at.json").write_text(json.dumps(caught, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    renew()
