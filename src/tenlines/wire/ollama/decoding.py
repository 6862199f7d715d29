"""Responses and streams of Ollama's native endpoint. A stream is the same object many times over: the text comes in
pieces, each call whole, the counts in the last one. Total, as every decoder."""

from __future__ import annotations

from tenlines.core.outcomes import encodable
from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, StopReason, ToolCall
from tenlines.errors import ConnectionFailed, MalformedReply
from tenlines.wire import usage
from tenlines.wire.endings import stop_of
from tenlines.wire.format import Piece, Written
from tenlines.wire.json_values import excerpt, items, string
from tenlines.wire.openai_chat.decoding import checked, dumped, id_of

_STOPS: dict[str, StopReason] = {"stop": "end", "length": "length"}


def decode_response(data: JsonValue, provider: str = "ollama", model: str = "") -> Reply:
    """The reply in a whole response.

    Raises:
        MalformedReply: It is not a response of this format.
        RemoteError: It is an error object under a status of 200.
    """
    decoder = StreamDecoder(provider, model)
    checked_data = checked(data)
    if not isinstance(checked_data.get("message"), dict):
        raise MalformedReply("the response has no message", excerpt(data))
    decoder.feed(checked_data)
    return decoder.finish()


class StreamDecoder:
    """Assembles a streamed reply."""

    def __init__(self, provider: str = "ollama", model: str = "") -> None:
        self._provider, self._model = provider, model
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[ToolCall] = []
        self._last: JsonObject = {}

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one line.

        Raises:
            MalformedReply: It is not a chunk of this format.
            RemoteError: It is an error object; what came before it is void.
        """
        data = checked(chunk)
        if data.get("done"):
            self._last = data
        message = data.get("message")
        if message is None:
            return Piece()
        if not isinstance(message, dict):
            raise MalformedReply("a chunk of the stream has a message that is not an object", excerpt(chunk))
        text, thinking = string(message.get("content")), string(message.get("thinking"))
        self._text.append(text)
        self._thinking.append(thinking)
        calls = [_call(entry, chunk) for entry in items(message.get("tool_calls"))]
        self._calls += calls
        return Piece(text, thinking, written=tuple(Written(call.name, call.arguments) for call in calls))

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended.

        Raises:
            ConnectionFailed: It ended without saying so, so it was cut.
        """
        if not self._last:
            raise ConnectionFailed("the stream ended before the reply was complete; nothing of it was used")
        remarks: list[str] = []
        stop = stop_of(self._last.get("done_reason"), _STOPS, remarks)  # old servers say only that they are done
        thinking, model = encodable("".join(self._thinking)), self._last.get("model")
        return Reply(
            text=encodable("".join(self._text)),
            calls=tuple(self._calls),
            stop="tool_calls" if self._calls and stop == "end" else stop,
            usage=usage.inclusive(
                usage.count(self._last.get("prompt_eval_count")), usage.count(self._last.get("eval_count")), remarks
            ),
            opaque=(Opaque(self._provider, self._model, {"thinking": thinking}),) if thinking else (),
            model=encodable(model) if isinstance(model, str) else "",
            remarks=tuple(remarks),
        )


def _call(entry: JsonValue, chunk: JsonValue) -> ToolCall:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(function, dict):
        raise MalformedReply("a tool call of the reply has no function", excerpt(chunk))
    arguments = function.get("arguments")
    if arguments is None:
        text = "{}"
    elif isinstance(arguments, str):
        text = arguments or "{}"
    else:
        text = dumped(arguments)
    return ToolCall(encodable(id_of(entry)), encodable(string(function.get("name"))), encodable(text))
