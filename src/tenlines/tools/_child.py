"""The process of an isolated tool: read the request, run the tool, answer on the pipe, end.

Run as a script, by path, with the number of the answer pipe: it takes over the module path of its parent before
it imports anything of tenlines.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any


def main() -> None:
    """Serve one call."""
    answers = int(sys.argv[1])
    os.set_inheritable(answers, False)  # what the tool starts must not hold the pipe open
    requests = os.dup(0)
    size = int(_read_line(requests))
    body = _read(requests, size)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with_parent, args=(requests,), daemon=True).start()
    message = json.loads(body)
    sys.path[:] = message["path"]
    _write(answers, _serve(message["request"]))
    os.close(answers)


def _serve(request: Any) -> bytes:
    import msgspec

    from tenlines.tools.isolated import Answer, Request

    try:
        answer = Answer(rendered=_run(msgspec.convert(request, Request)))
    except BaseException as error:  # noqa: BLE001  # the tool's own code; goes back to the parent
        answer = _failed(error)
    return msgspec.json.encode(answer)


def _run(request: Any) -> Any:
    import asyncio

    from tenlines.ports import CallContext, Invalid

    tool = _find(request.location)
    bound = tool.check(request.arguments)
    if isinstance(bound, Invalid):
        raise TypeError(bound.text)
    value = tool.call(bound, CallContext(request.key, tool.name, request.deadline_at, began=request.began))
    if asyncio.iscoroutine(value):
        value = asyncio.run(value)
    from tenlines.tools.render import render

    return render(value, request.max_bytes)


def _find(location: Any) -> Any:
    """The tool, from its module, or from its file where the module is not importable or is another one."""
    from tenlines.tools.tool import Tool, tool

    thing: Any = _module(location.module, location.file)
    for name in location.qualname.split("."):
        thing = getattr(thing, name)
    found = thing if isinstance(thing, Tool) else tool(name=location.tool)(thing)
    return found.in_process()


def _module(name: str, file: str) -> Any:
    import importlib

    if name:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            pass
        else:
            if os.path.realpath(module.__file__ or "") == os.path.realpath(file):
                return module
    from tenlines.tools.load import import_file

    return import_file(file, "__isolated__")


def _failed(error: BaseException) -> Any:
    import traceback

    from tenlines.core.outcomes import bounded, sendable
    from tenlines.tools.isolated import Answer

    try:
        message, detail = str(error), "".join(traceback.format_exception(error))
    except Exception as second:  # noqa: BLE001  # an exception's __str__ is the tool's own code
        message, detail = f"(its message could not be shown: {type(second).__name__})", ""
    return Answer(None, type(error).__name__, bounded(sendable(message)), bounded(sendable(detail)))


def _end_with_parent(requests: int) -> None:
    """The parent holds the other end for as long as it waits: when it is gone, so is this whole group."""
    while os.read(requests, 1024):
        pass
    os.killpg(0, signal.SIGKILL)


def _read_line(source: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(source, 1)
        if not piece:
            sys.exit("no request")
        line += piece
    return line


def _read(source: int, size: int) -> bytes:
    pieces = []
    while size:
        piece = os.read(source, min(size, 1 << 20))
        if not piece:
            sys.exit("half a request")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _write(target: int, body: bytes) -> None:
    frame = memoryview(b"%d\n%b" % (len(body), body))
    while frame:
        frame = frame[os.write(target, frame) :]


if __name__ == "__main__":
    main()
