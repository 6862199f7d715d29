"""Whether a worker is well, told over HTTP: `/livez`, `/readyz`, and `/metrics` for Prometheus.

    health = Health(looks_at(journal, engine, lane), leaving.is_set)
    metrics = Metrics(health)
    async with serving(health, metrics, "127.0.0.1", 9464) as url:
        await Worker(..., watch=metrics).serve(leaving)

The server is a task in the event loop of the worker, so it answers as long as that turns. It says nothing of what is
said in runs, and changes nothing; it asks nobody who they are.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from tenlines.drivers.threads import in_thread
from tenlines.errors import ConfigError, MissingExtra, TenlinesError
from tenlines.ports import Engine, Journal, Lane
from tenlines.trace.text import one_line

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response

    from tenlines.fleet.metrics import Metrics

LOOK_EVERY_S = 5.0
"""Between one look at the journal and the engine and the next. Whoever asks for `/readyz` is told of the last one, so
that asking often costs nobody anything."""
PATIENCE_S = 15.0
"""Who has not answered for so long does not answer."""
GRACE_S = 1
"""How long requests that are being answered have at the end."""
_REASON_CHARS = 300

Look: TypeAlias = Callable[[], Awaitable[object]]


def looks_at(journal: Journal, engine: Engine, lane: Lane) -> dict[str, Look]:
    """How it is seen that the journal and the engine answer: each is asked for something small.

    Args:
        lane: One that the worker takes runs from.
    """
    return {"journal": lambda: in_thread(partial(journal.runs, 1)), "engine": lambda: engine.workers(lane)}


class Answering:
    """What is known of one that has to answer.

    Attributes:
        fault: What the last look came to; "" where all was well.
        missed: Looks that were not answered.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self.fault, self.missed = "it was not asked yet", 0
        self._answered_at: float | None = None

    async def ask(self) -> None:
        """Look once."""
        try:
            await self._look()
        except (TenlinesError, OSError) as error:
            self.fault, self.missed = one_line(str(error), _REASON_CHARS), self.missed + 1
        else:
            self.fault, self._answered_at = "", monotonic()

    def why_not(self) -> str:
        """Why it counts as not answering; "" where it answers."""
        silent_s = 0.0 if self._answered_at is None else monotonic() - self._answered_at
        if silent_s <= PATIENCE_S:
            return self.fault
        return f"no answer for {silent_s:.0f} s" + (f": {self.fault}" if self.fault else "")


class Health:
    """What is known of the health of a worker.

    Args:
        looks: Who has to answer, by name, and how that is seen.
        is_leaving: Whether the worker takes no more runs.
    """

    def __init__(self, looks: Mapping[str, Look], is_leaving: Callable[[], bool]) -> None:
        self.answering = {name: Answering(look) for name, look in looks.items()}
        self.is_leaving = is_leaving

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look again and again, at each on its own: one that hangs keeps nobody from looking at the others."""
        tasks = [asyncio.create_task(_again_and_again(one)) for one in self.answering.values()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def reasons(self) -> dict[str, str]:
        """Why the worker takes no runs at the moment, by what is at fault; empty where it takes them."""
        found = {name: why for name, one in self.answering.items() if (why := one.why_not())}
        if self.is_leaving():
            found["worker"] = "it is leaving: its runs are handed back, and it takes no more"
        return found


async def _again_and_again(one: Answering) -> None:
    while True:
        await one.ask()
        await asyncio.sleep(LOOK_EVERY_S)


# --- over HTTP ------------------------------------------------------------------------------------------


@asynccontextmanager
async def serving(health: Health, metrics: Metrics, host: str, port: int) -> AsyncIterator[str]:
    """Answer requests, and look at the health, within the block.

    Args:
        host: Where to listen: a name or an address.
        port: 0 for any that is free.

    Yields:
        The address, without a path.

    Raises:
        ConfigError: Nobody can listen there.
        MissingExtra: Starlette or Uvicorn is not installed.
    """
    bound = _listen(host, port)
    async with AsyncExitStack() as held:
        held.callback(bound.close)
        server = _server(application(health, metrics))
        await held.enter_async_context(health.watched())
        task = asyncio.create_task(server.serve([bound]))
        held.push_async_callback(_end, server, task)
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{bound.getsockname()[1]}"


def application(health: Health, metrics: Metrics) -> Any:
    """What answers.

    Raises:
        MissingExtra: Starlette is not installed.
    """
    try:
        from starlette.responses import PlainTextResponse, Response
        from starlette.routing import Route, Router
    except ImportError as error:
        raise MissingExtra("health and metrics", "fleet") from error

    async def livez(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        reasons = health.reasons()
        body = msgspec.json.encode({"ready": not reasons, "reasons": reasons})
        return Response(body + b"\n", 503 if reasons else 200, media_type="application/json")

    async def page(request: Request) -> Response:
        body, media_type = metrics.page(request.headers.get("accept", ""))
        return Response(body, media_type=media_type)

    return Router([Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", page)])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        one = socket.socket(family, kind)
    except OSError as error:
        raise ConfigError(f"--metrics: {host} is no address of this machine: {error.strerror or error}") from None
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind(place)
        one.listen(128)
    except OSError as error:
        one.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(f"--metrics: port {port} of {host} is in use: name another, or 0 for any") from None
        raise ConfigError(f"--metrics: {host}:{port} cannot be listened on: {error.strerror}; name another") from None
    return one


def _server(app: Any) -> uvicorn.Server:
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtra("health and metrics", "fleet") from error

    class Server(uvicorn.Server):
        """One that leaves signals to the worker."""

        @contextmanager
        def capture_signals(self) -> Generator[None, None, None]:
            """Capture none."""
            yield

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    return Server(config)


async def _end(server: uvicorn.Server, task: asyncio.Task[None]) -> None:
    server.should_exit = True
    with suppress(asyncio.CancelledError):
        await task
