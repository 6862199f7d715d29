"""Who works on a run, and whether that process is alive."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenlines.journal import owner
from tenlines.journal.owner import is_alive, new_owner

CHILD = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("owner", {owner.__file__!r})  # this file alone: it starts at once
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(module.new_owner(), flush=True)
sys.stdin.read()
"""


def changed(text: str, **parts: str) -> str:
    """An owner with other parts."""
    named = dict(zip(("host", "boot", "pid", "start", "nonce"), text.split("/"), strict=True))
    return "/".join((named | parts).values())


@pytest.fixture
def child() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process, and how it names itself."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def test_this_process_is_alive() -> None:
    assert is_alive(new_owner()) is True


def test_every_taking_up_has_a_name_of_its_own() -> None:
    names = [new_owner() for _ in range(100)]
    assert len(set(names)) == 100
    assert len({name.rpartition("/")[0] for name in names}) == 1


def test_another_process_is_alive_until_it_is_killed(child: tuple[subprocess.Popen[str], str]) -> None:
    process, name = child
    assert f"/{process.pid}/" in name
    assert is_alive(name) is True
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet buried
    assert Path(f"/proc/{process.pid}").exists()
    assert is_alive(name) is False
    process.wait()
    assert is_alive(name) is False


def test_a_process_id_that_was_used_again_is_not_the_old_process() -> None:
    mine = new_owner()
    assert is_alive(changed(mine, start=str(int(mine.split("/")[3]) - 1))) is False


def test_a_machine_that_was_booted_since_has_none_of_its_old_processes() -> None:
    assert is_alive(changed(new_owner(), boot="00000000")) is False


def test_of_another_machine_nothing_is_known() -> None:
    assert is_alive(changed(new_owner(), host="elsewhere")) is None


@pytest.mark.parametrize(
    "text", ["", "me", "a/b/c/d/e", "/////", "a/b/²/1/n", "a/b/-1/1/n", "a/b/0/1/n", f"a/b/{'9' * 5000}/1/n", "a/b/1/1"]
)
def test_of_what_is_no_owner_nothing_is_known(text: str) -> None:
    assert is_alive(text) is None


@pytest.mark.parametrize("pid", ["0", "-1", "²", "9" * 5000, "", "1\n", "\x00"])
def test_a_process_id_that_is_none_is_no_owner(pid: str) -> None:
    assert is_alive(changed(new_owner(), pid=pid)) is None


def test_a_process_that_hides_is_not_taken_for_dead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = new_owner()
    monkeypatch.setattr(owner, "PROC", tmp_path)  # as with `hidepid`, for a process of another user
    assert is_alive(mine) is None
    assert is_alive(changed(mine, pid="999999999")) is False


def test_without_start_times_a_process_is_alive_as_long_as_its_id_is_in_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(owner, "PROC", tmp_path)
    owner._machine.cache_clear()
    try:
        mine = new_owner()
        assert is_alive(mine) is True
        assert is_alive(changed(mine, pid="999999999")) is False
    finally:
        owner._machine.cache_clear()
