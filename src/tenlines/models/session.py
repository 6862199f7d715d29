"""One run's conversation with a model: what is the same for every provider.

A `Session` writes requests and reads replies with a `wire.format.Talk`, and moves them with a `Transport`. The
transport is all that a new SDK has to bring: see there what it promises.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from tenlines.core.effects import CallModel
from tenlines.core.events import ToolSpec
from tenlines.core.transcript import JsonObject, JsonValue, Reply, Usage
from tenlines.drivers.threads import in_thread, loop_thread
from tenlines.errors import ConfigError, ConnectionFailed, MalformedReply, ProviderError, RemoteError
from tenlines.ports import Clock, Delta, OnDelta, SystemClock
from tenlines.wire.format import Format, Piece, Talk, Written
from tenlines.wire.guard import GuardedTalk
from tenlines.wire.profile import Profile, Target
from tenlines.wire.refusals import recognise
from tenlines.wire.text_protocol.stops import StoppingTalk

TIMEOUT_S = 600.0
"""Longest silence of the server that is waited for, where the run has no deadline."""
CONNECT_S = 10.0
"""Longest time to get a connection: a server that is down should be known soon."""

# --- the transport ------------------------------------------------------------------------------------


class Whole(NamedTuple):
    """A whole response, from a server that was asked to stream and did not."""

    data: JsonValue


Heard: TypeAlias = JsonValue | Whole
"""What comes out of a stream: a chunk as raw JSON, or the whole response as the only thing."""


class Transport(Protocol):
    """Moves JSON to a provider and back, over the provider's SDK. It knows nothing of messages.

    What every transport promises:

    - **One request for one call.** The retries of the SDK are off: a retry is an event, and the machine decides on it.
    - **Raw JSON both ways.** The body goes out as it is; what comes back is plain dicts, lists, strings, numbers,
      as the provider sent them (for named server-sent events: the data of one event). No SDK object leaves it.
    - **Errors are ours.** Whatever the SDK or its HTTP library raises becomes a `RemoteError`: an error answer
      goes through `wire.errors.error_from`, silence and a broken connection are `ConnectionFailed`, what is no JSON
      or no UTF-8 is `MalformedReply`. Cancelling and programming errors pass unchanged. Which rule a refusal speaks
      of is found out by the session.
    - **Time.** `timeout_s` is the longest silence that is waited for; a connection gets at most `CONNECT_S` of it.
    - **Letting go.** Closing a stream's generator, also in the middle, closes its connection; so does cancelling
      the task in which `asend` or an `astream` waits.
    - **Colours.** A transport may have only blocking calls, or only asyncio ones (`has_sync`, `has_async`): the
      session then runs the blocking ones in a thread, or the others in an event loop of ours. Methods of a colour
      that is missing are never called.

    It is made once for a model and shared by all sessions, threads and event loops.
    """

    @property
    def address(self) -> str:
        """Where the requests go, for people."""
        ...

    @property
    def has_sync(self) -> bool:
        """Whether `send` and `stream` may be called."""
        ...

    @property
    def has_async(self) -> bool:
        """Whether `asend` and `astream` may be called."""
        ...

    def send(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """Ask, and wait for the whole response."""
        ...

    def stream(self, body: JsonObject, timeout_s: float) -> Generator[Heard, None, None]:
        """Ask for a stream, and yield what comes, as it comes. A generator function: nothing is sent before the
        first `next`."""
        ...

    async def asend(self, body: JsonObject, timeout_s: float) -> JsonValue:
        """`send` for asyncio."""
        ...

    def astream(self, body: JsonObject, timeout_s: float) -> AsyncGenerator[Heard, None]:
        """`stream` for asyncio: an async generator function."""
        ...


# --- the session --------------------------------------------------------------------------------------


class Session:
    """One run's conversation (`tenlines.ports.Session`): what was encoded is kept.

    Args:
        transport: The way to the server.
        talk: The way through the wire format, for this run alone.
        format: The wire format, whose rules are looked through when the server refuses a request.
        clock: Tells how far the deadline is.
        timeout_s: Seconds of silence after which a request is given up. A nearer deadline of the run wins.
    """

    def __init__(
        self,
        transport: Transport,
        talk: Talk,
        format: Format | None = None,
        *,
        clock: Clock | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._transport, self._talk, self._format = transport, talk, format
        self._clock, self._timeout_s = clock or SystemClock(), timeout_s

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """Ask and wait; streamed when somebody watches."""
        if not self._transport.has_sync:
            reply: Reply = loop_thread.wait_for(self.acomplete(request, on_delta))
            return reply
        timeout_s = self._left(request)
        body = self._talk.request(request, on_delta is not None)
        with self._recognised():
            if on_delta is None:
                return self._talk.decode(self._transport.send(body, timeout_s))
            hearing = _Hearing(self._talk, request, on_delta)
            with hearing.counted(), closing(self._transport.stream(body, timeout_s)) as stream:
                for heard in stream:
                    hearing.take(heard)
                return hearing.reply()

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio. Cancelling it closes the connection."""
        if not self._transport.has_async:
            return await self._in_thread(request, on_delta)
        timeout_s = self._left(request)
        body = self._talk.request(request, on_delta is not None)
        with self._recognised():
            if on_delta is None:
                return self._talk.decode(await self._transport.asend(body, timeout_s))
            hearing = _Hearing(self._talk, request, on_delta)
            with hearing.counted():
                async with aclosing(self._transport.astream(body, timeout_s)) as stream:
                    async for heard in stream:
                        hearing.take(heard)
                return hearing.reply()

    @contextmanager
    def _recognised(self) -> Iterator[None]:
        """A refusal, wherever it was found, learns which rule it speaks of."""
        try:
            yield
        except ProviderError as error:
            known = recognise(error, self._format)
            if known is error:
                raise
            known.usage = error.usage
            raise known from error.__cause__ or error

    async def _in_thread(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """A blocking client under asyncio: when this is cancelled, its thread stops at the next piece it hears."""
        loop = asyncio.get_running_loop()
        given_up = threading.Event()

        def relay(delta: Delta) -> None:
            if given_up.is_set():
                raise ConnectionFailed("given up by the caller")
            if on_delta is not None:
                loop.call_soon_threadsafe(on_delta, delta)

        try:
            reply: Reply = await in_thread(partial(self.complete, request, on_delta and relay))
            return reply
        finally:
            given_up.set()

    def _left(self, request: CallModel) -> float:
        """Seconds that the answer may take to show itself."""
        left = self._timeout_s
        if request.deadline_at is not None:
            left = min(left, request.deadline_at - self._clock.now())
        if left <= 0:
            raise ConnectionFailed("the deadline passed before the model was asked")
        return left


def open_session(
    transport: Transport,
    format: Format,
    target: Target,
    *,
    clock: Clock | None = None,
    timeout_s: float = TIMEOUT_S,
    stops: Sequence[str] = (),
) -> Session:
    """The conversation of one run, in a format's own way of calling tools. What the other side would refuse is
    repaired before it goes, and said in the remarks of the reply. Replies end at `stops`, where the format can say
    so."""
    talk: Talk = GuardedTalk(format.talk(target), format, target)
    if stops:
        talk = StoppingTalk(talk, target, stops)
    return Session(transport, talk, format, clock=clock, timeout_s=timeout_s)


class ModelClient:
    """What every client of a provider is made of: a model (`tenlines.ports.Model`) behind a transport.

    It serves any number of runs and threads, and of event loops too, where the SDK's client is not one of the user's.
    Making one sends nothing.

    A request that fails raises one of `tenlines.errors`, whatever the SDK raised: `AuthRejected` (the key),
    `RateLimited` and `Overloaded` (with the seconds to wait, where the provider says them), `ContextTooLong`,
    `ProtocolRejected` (with the rule that was broken), another `ProviderError`, `ConnectionFailed` (nobody there,
    silence, a cut), `MalformedReply`. In a run, the machine retries what may pass; the SDK retries nothing.

    Attributes:
        name: How the model is called in the journal.
        format: The wire format that is spoken.
        target: The model, what the other side demands, and the settings of every request.
        address: Where the requests go, for people.
        timeout_s: Seconds of silence after which a request is given up.
    """

    def __init__(
        self,
        transport: Transport,
        format: Format,
        target: Target,
        *,
        name: str,
        timeout_s: float,
        clock: Clock | None,
    ) -> None:
        self.name, self.format, self.target = name, format, target
        self.address, self.timeout_s = transport.address, timeout_s
        self._transport, self._clock = transport, clock

    def session(self) -> Session:
        """One run's conversation: what was encoded is kept."""
        return self.session_with(())

    def session_with(self, stops: Sequence[str]) -> Session:
        """The same, in the format's own way; replies end at these texts, where the format can say so."""
        return open_session(
            self._transport, self.format, self.target, clock=self._clock, timeout_s=self.timeout_s, stops=stops
        )


def no_key(model: str, *variables: str, why: str = "") -> ConfigError:
    """There is no key for a model: where one can be put, and what works without."""
    return ConfigError(
        f"{model} needs a key: set {' or '.join(variables)}, or pass api_key= or client=. Without one, use local (a "
        f"small model on this machine).{why}"
    )


def checked_compact_at(compact_at: int | None, profile: Profile, least: int) -> int | None:
    """The tokens from which on a provider compacts by itself, where it can do that.

    Raises:
        ConfigError: It cannot, or not from so few tokens on.
    """
    if compact_at is None:
        return None
    if not profile.has("compacts"):
        raise ConfigError(
            f"{profile.name} does not compact by itself (compact_at); Agent(compaction=True) does it with every model"
        )
    if type(compact_at) is not int or compact_at < least:
        raise ConfigError(f"compact_at must be at least {least:,} tokens for {profile.name}, got {compact_at!r}")
    return compact_at


class _Hearing:
    """One streamed reply while it comes."""

    def __init__(self, talk: Talk, request: CallModel, on_delta: OnDelta) -> None:
        self._talk, self._decoder = talk, talk.decoder()
        self._step, self._on_delta = request.step, on_delta
        self._answer = Answering(request.tools)
        self._whole: Reply | None = None
        self._used: Usage | None = None

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A reply that breaks off is paid for: the error says what it had used."""
        try:
            yield
        except RemoteError as error:
            error.usage = self._used
            raise

    def take(self, heard: Heard) -> None:
        if isinstance(heard, Whole):
            whole = self._whole = self._talk.decode(heard.data)
            self._show(Piece(whole.text, written=tuple(Written(call.name, call.arguments) for call in whole.calls)))
        else:
            self._show(self._decoder.feed(heard))

    def reply(self) -> Reply:
        return self._decoder.finish() if self._whole is None else self._whole

    def _show(self, piece: Piece) -> None:
        self._used = piece.usage or self._used
        text, answer = self._answer.read(piece)
        if text or piece.reasoning or answer:
            self._on_delta(Delta(self._step, text, piece.reasoning, answer))


class Answering:
    """What of one streamed reply belongs to an answer with a schema, for eyes only: the arguments of the tool that
    takes it, or a reply in words that begins as an object."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._name = next((spec.name for spec in specs if spec.answer), "")
        self._is_object: bool | None = None

    def read(self, piece: Piece) -> tuple[str, str]:
        """What the piece adds to the words, and to the answer."""
        if not self._name:
            return piece.text, ""
        written = "".join(one.text for one in piece.written if one.name == self._name)
        if self._is_object is None and piece.text.strip():
            self._is_object = piece.text.lstrip().startswith("{")
        return ("", written + piece.text) if self._is_object else (piece.text, written)


def is_whole(content_type: str) -> bool:
    """Whether the answer to a request for a stream is a whole response, by its content type.

    Raises:
        MalformedReply: It is a web page: the address is wrong, or something stands between.
    """
    kind = content_type.split(";")[0].strip().lower()
    if kind.endswith("json"):
        return True
    if kind in ("text/html", "text/xml", "application/xml"):
        raise MalformedReply(f"the server sent {kind} where a stream of events was expected; is the address right?")
    return False  # some servers stream as text/plain or application/octet-stream
