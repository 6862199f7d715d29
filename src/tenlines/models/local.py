"""A model on this machine: llama.cpp in a child process, with weights that are fetched once."""

from __future__ import annotations

import atexit
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import IO

from tenlines.core.effects import CallModel
from tenlines.core.transcript import Reply
from tenlines.drivers.threads import in_thread
from tenlines.errors import ConfigError, ConnectionFailed, MissingExtra
from tenlines.models import weights
from tenlines.models.openai_compatible import OpenAICompatible, WireProtocol
from tenlines.ports import OnDelta, Session

START_S = 300.0
"""Longest time that a model may take to load."""
STOP_S = 5.0
"""Time that the child has to end by itself."""


class LocalModel:
    """A small model that runs here: no key, no network after the first fetch.

    The weights are fetched and the server is started at first use; all sessions of a process share one server for
    a file. Replies are held to a JSON schema (see `wire.constrained`), at temperature 0.

    Args:
        path: A GGUF file of your own; None for the built-in 1.5B model; `"small"` for a 0.5B one (for tests).
        threads: Threads that compute; None takes half of the processors, at least one.
        context: Tokens of the context window.
        max_tokens: Most output tokens of a reply, where the run itself sets no limit.
        progress: Told how far fetching the weights is: bytes done, bytes in all, what.
        protocol: `constrained` replies, or `native`: as the server and its chat template have it.

    Raises:
        MissingExtra: llama.cpp's package is not installed.
        ConfigError: The file is not there.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        threads: int | None = None,
        context: int = 8192,
        max_tokens: int = 1024,
        progress: weights.Progress | None = None,
        protocol: WireProtocol = "constrained",
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("openai") is None:
            raise MissingExtra("the local model", "local")
        self.name = "local" if path is None else f"local:{path}"
        self._known = weights.KNOWN.get("local" if path is None else str(path))
        self._file = None if self._known else Path(str(path)).expanduser().absolute()
        if self._file is not None and not self._file.is_file():
            raise ConfigError(f"there is no file {self._file}. Expected a model in GGUF format. {weights.OTHER_WAYS}")
        self._threads = threads or max(1, (os.cpu_count() or 1) // 2)
        self._context, self._max_tokens, self._progress = context, max_tokens, progress
        self.protocol: WireProtocol = protocol

    def session(self) -> _LocalSession:
        """One run's conversation. Nothing is started yet."""
        return _LocalSession(self)

    def session_with(self, stops: Sequence[str]) -> _LocalSession:
        """The same; replies end at these texts, where they are not held to a schema."""
        return _LocalSession(self, stops)

    def address(self) -> str:
        """The address of the running server (`http://127.0.0.1:PORT/v1`); fetches and starts what is missing.

        Raises:
            ConfigError: The weights cannot be had, or the server does not start with them.
        """
        file = weights.fetch(self._known, self._progress) if self._known else self._file
        return f"{_server(str(file), self._threads, self._context).address()}/v1"

    def connect(self, address: str) -> OpenAICompatible:
        """The model at the address of its server."""
        return OpenAICompatible(
            "local", address, protocol=self.protocol, name=self.name, max_tokens=self._max_tokens, temperature=0.0
        )


class _LocalSession:
    """Finds the server again at every request: one that died is started anew."""

    def __init__(self, model: LocalModel, stops: Sequence[str] = ()) -> None:
        self._model, self._stops = model, stops
        self._address = ""
        self._inner: Session | None = None

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """Ask the model and wait for its finished reply."""
        return self._at(self._model.address()).complete(request, on_delta)

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio; what blocks (fetching, loading) is done in a thread."""
        return await self._at(await in_thread(self._model.address)).acomplete(request, on_delta)

    def _at(self, address: str) -> Session:
        if self._inner is None or address != self._address:
            model = self._model.connect(address)
            self._address, self._inner = address, model.session_with(self._stops) if self._stops else model.session()
        return self._inner


@cache
def _server(path: str, threads: int, context: int) -> _Server:
    """One server for each file and way of running it, for the life of this process."""
    return _Server(path, threads, context)


class _Server:
    """The child process. Ends with this one: at exit, or when the kernel closes its standard input."""

    def __init__(self, path: str, threads: int, context: int) -> None:
        self._command = [sys.executable, "-m", "tenlines.models.local_server", path]
        self._command += ["--threads", str(threads), "--context", str(context), "--parent", str(os.getpid())]
        self._path = path
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""

    def address(self) -> str:
        """Where it listens; started first where it is not running."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._address = self._start()
            return self._address

    def _start(self) -> str:
        with tempfile.TemporaryFile() as log:
            process = self._spawn(log)
            overdue = threading.Timer(START_S, process.kill)
            overdue.start()
            try:
                assert process.stdout is not None
                with process.stdout as report:
                    address = report.readline().decode().strip()
            finally:
                overdue.cancel()
            if not address:
                _end(process)
                raise ConfigError(f"llama.cpp could not serve {self._path}: {_tail(log)}\n{weights.OTHER_WAYS}")
        self._process = process
        atexit.register(_end, process)
        return address

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the child from a thread that lives as long as it: the kernel counts that thread as its parent."""
        box: SimpleQueue[subprocess.Popen[bytes] | OSError] = SimpleQueue()

        def keep() -> None:
            pipe = subprocess.PIPE
            try:
                # In a session of its own, so that Ctrl-C in a terminal reaches the run and not the server.
                process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=log, start_new_session=True)
            except OSError as error:
                box.put(error)
                return
            box.put(process)
            process.wait()

        threading.Thread(target=keep, name="tenlines-local-server", daemon=True).start()
        started = box.get()
        if isinstance(started, OSError):
            raise ConnectionFailed(f"the local model's process could not be started: {started}") from started
        return started


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return "\n".join(lines[-8:])[-1500:] or "it ended without a word"
