"""Tools in a process of their own, which is killed for real when the call is given up.

POSIX only. The child leads a session and a process group; killing the group ends what it started as well (a
process that makes a session of its own escapes, as anywhere). Nothing of a call outlives it: when the call ends,
what is left of the group is killed. If this process dies, the child notices and ends itself and its group.

Arguments go as JSON, the result comes back rendered; `contextvars` and the state
of objects are not carried over. What the tool prints is captured, and its end stands in the detail of an error.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from tenlines.core.transcript import JsonObject
from tenlines.errors import ConfigError
from tenlines.ports import FIRST, Began, CallContext, Rendered
from tenlines.tools.load import FILE_MODULE

OUTPUT_CHARS = 2_000
"""Of what the child printed, so much is kept for the detail of an error."""
EXIT_S = 2.0
"""Seconds that a child has to end by itself after it gave its result."""
_LOOK_S = 0.2
"""Seconds between looks at a child that may have died while others hold its pipes."""
_CHILD = str(Path(__file__).with_name("_child.py"))


class Location(NamedTuple):
    """Where the child finds the function."""

    tool: str
    module: str
    """Name to import, or "" where only the file can be used."""
    file: str
    qualname: str


class Request(msgspec.Struct, frozen=True):
    """What the child is told."""

    location: Location
    arguments: JsonObject
    key: str
    deadline_at: float | None
    max_bytes: int
    began: Began = FIRST


class Answer(msgspec.Struct, frozen=True):
    """What the child answers: a result, or the exception that the tool raised."""

    rendered: Rendered | None = None
    error_type: str = ""
    message: str = ""
    detail: str = ""


class IsolatedError(Exception):
    """The tool raised in its process, or its process died. The class that is raised has the name of the original."""


def locate(tool: str, function: Callable[..., Any]) -> Location:
    """Find out how a child can get at a function.

    Raises:
        ConfigError: It cannot: the function is a lambda, inside another function, or bound to an object.
    """
    if not hasattr(os, "killpg"):
        raise ConfigError(f"tool {tool!r}: isolate=True needs process groups, which this system does not have")
    if not isinstance(function, types.FunctionType):
        raise ConfigError(
            f"tool {tool!r}: isolate=True needs a function of a module, and this is a {type(function).__name__}: "
            "the process that runs it cannot get at its state"
        )
    if "<" in function.__qualname__:
        raise ConfigError(
            f"tool {tool!r}: isolate=True needs a function at the top of a module, and {function.__qualname__} is "
            "inside another function or a lambda: the process that runs it cannot find it"
        )
    module, file = function.__module__, function.__code__.co_filename
    if module == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        module = spec.name if spec is not None else ""
    elif module.startswith(FILE_MODULE):
        module = ""
    if not Path(file).is_file():
        raise ConfigError(f"tool {tool!r}: isolate=True needs a function from a file, and this one was typed in")
    return Location(tool, module, str(Path(file).absolute()), function.__qualname__)


def run(location: Location, arguments: JsonObject, ctx: CallContext, max_bytes: int) -> Rendered:
    """Run a tool in a process of its own and wait for its result.

    Raises:
        IsolatedError: The tool raised (a subclass with the name of its exception), its process died, or the
            call was given up.
    """
    child = _Child(Request(location, arguments, ctx.key, ctx.deadline_at, max_bytes, ctx.began))
    ctx.on_give_up(child.kill)
    try:
        frame = child.wait()
    except BaseException:
        child.kill()  # interrupted: do not let it finish
        raise
    finally:
        child.end()
    if frame is None:
        raise _named("ProcessDied", child.how_it_died(ctx.cancelled), child.output())
    answer = msgspec.json.decode(frame, type=Answer)
    if answer.rendered is None:
        raise _named(answer.error_type, answer.message, f"{answer.detail}{child.output()}")
    return answer.rendered


def _named(name: str, message: str, detail: str) -> IsolatedError:
    """An exception that reads like the one in the child; the detail is for people."""
    error: IsolatedError = type(name, (IsolatedError,), {"__module__": __name__})(message)
    if detail:
        error.add_note(detail)
    return error


class _Child:
    """One child process: its request, its answer and what it printed."""

    def __init__(self, request: Request) -> None:
        self._lock = threading.Lock()  # a process is not killed by its id once the id may belong to another
        self._reaped = False
        self._printed = b""
        self._answers, answers_in = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-P", _CHILD, str(answers_in)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(answers_in,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._answers)
            raise
        finally:
            os.close(answers_in)
        self._stdin, self._stdout = _pipes(self._process)
        self._send(msgspec.json.encode({"path": sys.path, "request": request}))

    def _send(self, body: bytes) -> None:
        with suppress(BrokenPipeError):  # it died at once; waiting will tell how
            self._stdin.write(b"%d\n%b" % (len(body), body))
            self._stdin.flush()  # and stays open: its end tells the child that this process is gone

    def wait(self) -> bytes | None:
        """The answer, or None if the child died without one."""
        frame = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            selector.register(self._stdout, selectors.EVENT_READ)
            while True:
                has_exited = self._has_exited()  # asked first: what it wrote before is then in the pipe
                ready = {key.fd for key, _ in selector.select(0 if has_exited else _LOOK_S)}
                if self._stdout.fileno() in ready and not self._read_output():
                    selector.unregister(self._stdout)
                if self._answers in ready:
                    piece = os.read(self._answers, 1 << 20)
                    frame += piece
                    if _is_whole(frame):
                        return bytes(frame.partition(b"\n")[2])
                    if not piece:
                        return None
                elif has_exited:
                    return None

    def _read_output(self) -> bool:
        piece = os.read(self._stdout.fileno(), 1 << 16)
        self._printed = (self._printed + piece)[-4 * OUTPUT_CHARS :]
        return bool(piece)

    def _has_exited(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def kill(self) -> None:
        """Kill it and all that it started."""
        with self._lock:
            if not self._reaped:
                with suppress(ProcessLookupError, PermissionError):  # nothing of the group is left
                    os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Let the child end, kill what is left of its group, and close everything."""
        self._let_exit()
        self.kill()
        with self._lock:
            self._process.wait()
            self._reaped = True
        self._drain()
        for end in (self._stdin, self._stdout):
            end.close()
        os.close(self._answers)

    def _let_exit(self) -> None:
        until = time.monotonic() + EXIT_S
        while not self._has_exited() and time.monotonic() < until:
            time.sleep(0.001)  # an interpreter takes a few of these to end

    def _drain(self) -> None:
        """Read what is still in the pipe; all writers are dead, or not ours to wait for."""
        os.set_blocking(self._stdout.fileno(), False)
        with suppress(BlockingIOError):
            while self._read_output():
                pass

    def output(self) -> str:
        """The end of what it printed, for a person."""
        text = self._printed.decode("utf-8", "replace").strip()[-OUTPUT_CHARS:]
        return f"\nIt printed (the last {len(text):,} characters):\n{text}" if text else ""

    def how_it_died(self, was_given_up: bool) -> str:
        """In words."""
        code = self._process.returncode
        if was_given_up:
            return "the call was given up and its process was killed"
        if code >= 0:
            return f"the tool's process ended with exit code {code} before it gave a result"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        hint = " (often: out of memory)" if -code == signal.SIGKILL else ""
        return f"the tool's process was killed by {name}{hint} before it gave a result"


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:  # never: both were asked for
        raise RuntimeError("no pipes")
    return process.stdin, process.stdout


def _is_whole(frame: bytearray) -> bool:
    head = frame.find(b"\n", 0, 20)
    return head > 0 and len(frame) - head - 1 >= int(frame[:head])
