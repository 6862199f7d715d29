"""A guard on the way out: no request leaves that the other side would refuse for its form."""

from __future__ import annotations

from msgspec.structs import replace

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.checking import Checker
from tenlines.wire.format import Format, Piece, StreamDecoder, Talk
from tenlines.wire.profile import Target
from tenlines.wire.repairing import repair

SAID = 20
"""Changes to a request that are told one by one."""
_PASSING = ("stream", "stream_options")


class GuardedTalk:
    """A `Talk` around a `Talk`: checks every request before it goes, repairs one that has an error, and says so in
    the remarks of the reply. A request without an error goes as it is.

    Only what is new is looked at: a checker has taken in what was sent before, and a copy of it takes in the rest.
    Messages that were sent once do not change, but for marks of the cache, which are not looked at, and for the last
    of them, which may still grow.
    """

    def __init__(self, talk: Talk, format: Format, target: Target) -> None:
        self._talk, self._format, self._profile = talk, format, target.profile
        self._said: tuple[str, ...] = ()
        self._frame: JsonObject = {}
        self._frame_is_bad = False
        self._forget()

    def _forget(self) -> None:
        self._checker: Checker | None = None
        self._is_bad = False
        self._taken = self._taken_messages = 0
        self._sent = self._sent_messages = 0

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request, without an error."""
        body = self._talk.request(effect, stream)
        self._said = ()
        if not self._has_error(body, effect):
            return body
        repaired = repair(body, self._format, self._profile)
        if not repaired.changes:
            self._forget()  # a false alarm; look at everything again next time
            return body
        told = [f"the request was repaired: {one.message} ({one.path or 'as a whole'})" for one in repaired.changes]
        if len(told) > SAID:
            told[SAID:] = [f"and {len(told) - SAID} more repairs of the request"]
        self._said = tuple(told)
        return repaired.body

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return self.remarked(self._talk.decode(data))

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return _Decoder(self._talk.decoder(), self)

    def remarked(self, reply: Reply) -> Reply:
        """A reply that says what was done to its request."""
        return replace(reply, remarks=self._said + reply.remarks) if self._said else reply

    # --- what is new ---

    def _has_error(self, body: JsonObject, effect: CallModel) -> bool:
        messages = body.get(self._format.list_field)
        if not isinstance(messages, list):
            return False
        self._look_at_frame(body)
        if effect.new_from < self._taken_messages:
            self._forget()
        checker = self._checker = self._checker or self._begun(body)
        if effect.new_from >= self._sent_messages:  # what went with the last request stays
            sure = min(self._sent - 1, len(messages))
            for index in range(self._taken, sure):
                self._is_bad |= self._take(checker, messages[index], index)
            self._taken = max(self._taken, sure)
            self._taken_messages = self._sent_messages
        self._sent, self._sent_messages = len(messages), len(effect.messages)
        return self._rest_is_bad(checker, messages) or self._is_bad or self._frame_is_bad

    def _rest_is_bad(self, checker: Checker, messages: list[JsonValue]) -> bool:
        ahead = checker.fork()
        found = False
        for index in range(self._taken, len(messages)):
            found |= self._take(ahead, messages[index], index)
        return any(one.severity == "error" for one in ahead.close()) or found

    def _take(self, checker: Checker, message: JsonValue, index: int) -> bool:
        turn = self._format.unfold(_unmarked(message), f"{self._format.list_field}[{index}]")
        return any([one.severity == "error" for one in checker.take(turn)])

    def _look_at_frame(self, body: JsonObject) -> None:
        frame = {field: value for field, value in body.items() if field != self._format.list_field}
        if frame == self._frame:
            return
        if _lasting(frame) != _lasting(self._frame):
            self._forget()
        self._frame = dict(frame)
        checker = Checker(self._format, self._profile)
        self._frame_is_bad = any([one.severity == "error" for one in checker.frame(body)])

    def _begun(self, body: JsonObject) -> Checker:
        checker = Checker(self._format, self._profile)
        for _ in checker.frame(body):
            pass  # already looked at
        return checker


class _Decoder:
    """A decoder whose reply carries what was done to the request."""

    def __init__(self, decoder: StreamDecoder, guard: GuardedTalk) -> None:
        self._decoder, self._guard = decoder, guard

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one chunk."""
        return self._decoder.feed(chunk)

    def finish(self) -> Reply:
        """The whole reply."""
        return self._guard.remarked(self._decoder.finish())


def _lasting(frame: JsonObject) -> JsonObject:
    """What stands beside the messages and does not change from request to request as limits do."""
    return {
        field: {key: inner for key, inner in value.items() if not _is_number(inner)}
        if isinstance(value, dict)
        else value
        for field, value in frame.items()
        if field not in _PASSING and not _is_number(value)
    }


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unmarked(message: JsonValue) -> JsonValue:
    """A message without marks of the cache: they move on, and a message that was sent is not looked at again."""
    if not isinstance(message, dict):
        return message
    content = message.get("content")
    if not isinstance(content, list):
        return message
    kept = [_plain(block) for block in content if not (isinstance(block, dict) and "cachePoint" in block)]
    return {**message, "content": kept}


def _plain(block: JsonValue) -> JsonValue:
    if not isinstance(block, dict) or "cache_control" not in block:
        return block
    return {key: value for key, value in block.items() if key != "cache_control"}
