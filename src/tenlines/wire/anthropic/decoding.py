"""Response in, `Reply` out. Total: any JSON gives a `Reply` or an error of `tenlines.errors`, never anything else.

What the other side got wrong is said in `Reply.remarks`, never mended in silence.
"""

from __future__ import annotations

from collections.abc import Callable

from tenlines.core.outcomes import encodable, encodable_value
from tenlines.core.transcript import JsonObject, JsonValue, Opaque, Reply, StopReason, ToolCall, Usage
from tenlines.errors import MalformedReply
from tenlines.wire.anthropic.blocks import PROVIDER, REASONING, is_compaction, is_summary, text_block
from tenlines.wire.endings import arguments_text, stop_of
from tenlines.wire.errors import error_from
from tenlines.wire.json_values import excerpt, items, string
from tenlines.wire.usage import count, exclusive, total

_STOPS: dict[str, StopReason] = {
    "end_turn": "end",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "context_overflow",
    "refusal": "refusal",
    "pause_turn": "pause",
    "compaction": "pause",
}
_KNOWN = ("text", "tool_use", *REASONING, "server_tool_use", "compaction", "container_upload")


def decode_response(
    data: JsonValue, provider: str = PROVIDER, model: str = "", own_name: Callable[[str], str] = str
) -> Reply:
    """The reply in a whole response.

    Args:
        data: The parsed body, whatever it is.
        provider: Recorded with opaque artefacts: they go back to whom they came from.
        model: The model as it was asked for; recorded likewise.
        own_name: The name of a tool for its name in this format.

    Raises:
        MalformedReply: It is not a response of this format.
        RemoteError: It is an error object under a status of 200.
    """
    message = checked(data)
    if not isinstance(message.get("content"), list | str):
        raise MalformedReply("the response has no content", excerpt(data))
    return assemble(message, Opaque(provider, model, None), own_name, [])


def checked(data: JsonValue) -> JsonObject:
    """An object that is not an error.

    Raises:
        MalformedReply: It is not an object.
        RemoteError: It is an error object.
    """
    if not isinstance(data, dict):
        raise MalformedReply("the server did not answer with a JSON object", excerpt(data))
    if data.get("type") == "error" or data.get("error"):
        raise error_from(None, data, {})
    return data


def assemble(
    message: JsonObject,
    origin: Opaque,
    own_name: Callable[[str], str],
    remarks: list[str],
    *,
    is_whole: bool = True,
) -> Reply:
    """The reply in a message, whole or put together from a stream; `is_whole` says that its blocks are what came.

    Raises:
        MalformedReply: It is nested too deeply.
    """
    try:
        blocks = _Blocks(message.get("content"), own_name, remarks)
        stop = stop_of(message.get("stop_reason"), _STOPS, remarks)
        if stop == "end" and blocks.is_summary:
            stop = "pause"  # there was no answer yet, and a summary that is lost would be paid for again
        payload = blocks.payload(message, stop) if is_whole else None
        usage = decode_usage(message.get("usage"), remarks)
    except RecursionError as error:
        raise MalformedReply("the response is nested too deeply to be read") from error
    if not is_whole:
        remarks.append("a block came in pieces that are not known; the reply's own blocks were not kept")
    _remark_left_out(message, remarks)
    text, model = blocks.text, message.get("model")
    if stop == "refusal":
        text = text or _refused(message, remarks)
    return Reply(
        text=encodable(text),
        calls=tuple(ToolCall(*map(encodable, (call.id, call.name, call.arguments))) for call in blocks.calls),
        stop=stop,
        usage=usage,
        opaque=(Opaque(origin.provider, origin.model, payload),) if payload else (),
        model=encodable(model) if isinstance(model, str) else "",
        remarks=tuple(encodable(remark) for remark in remarks),
    )


def _refused(message: JsonObject, remarks: list[str]) -> str:
    """Why the model declined, as the provider explains it; the kind of reason goes into the remarks."""
    details = message.get("stop_details")
    if not isinstance(details, dict):
        return ""
    category, explanation = details.get("category"), details.get("explanation")
    if isinstance(category, str) and category:
        remarks.append(f"the reply was refused: {category[:80]}")
    return string(explanation)


def _remark_left_out(message: JsonObject, remarks: list[str]) -> None:
    """What the provider itself dropped from the request."""
    reasons: dict[str, int] = {}
    for change in items(message.get("input_transformations")):
        if isinstance(change, dict) and change.get("type") == "thinking_dropped":
            reason = str(change.get("reason"))[:80]
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, times in reasons.items():
        remarks.append(f"the provider left {times} thinking blocks out of the request: {reason}")


# --- blocks -----------------------------------------------------------------------------------------


class _Blocks:
    """The content of a reply, sorted: text, calls, and everything as it came."""

    def __init__(self, content: JsonValue, own_name: Callable[[str], str], remarks: list[str]) -> None:
        self.calls: list[ToolCall] = []
        self._own_name, self._remarks = own_name, remarks
        self._texts: list[str] = []
        self._kept: list[JsonValue] = []
        self._is_plain = True
        self._was_text = False
        for block in content if isinstance(content, list) else [text_block(string(content))]:
            self._take(block)

    @property
    def text(self) -> str:
        """All text: blocks that follow one another are pieces of one text, others are apart."""
        return "\n\n".join(text for text in self._texts if text)

    @property
    def is_summary(self) -> bool:
        """Whether there is nothing but the provider's own summary of what stood before."""
        return bool(self._kept) and all(is_summary(one) for one in self._kept)

    def payload(self, message: JsonObject, stop: StopReason) -> JsonObject | None:
        """What has to go back as it came; None when text and calls say it all."""
        container = message.get("container")
        container_id = container.get("id") if isinstance(container, dict) else None
        payload: JsonObject = {"blocks": encodable_value(self._kept)}
        if stop == "pause":
            payload["pause"] = True
        if isinstance(container_id, str):
            payload["container"] = encodable(container_id)
        return None if self._is_plain and len(payload) == 1 else payload

    def _take(self, block: JsonValue) -> None:
        if not isinstance(block, dict):
            self._remarks.append(f"a block of the reply is not an object: {excerpt(block)[:80]}")
            return
        kind = block.get("type")
        if kind == "text":
            self._take_text(block)
        elif kind == "tool_use":
            self._take_call(block)
        else:
            self._kept.append(block)
            self._is_plain = False
            if is_compaction(block) and block.get("content") is None:
                self._remarks.append("the provider tried to summarise what stood before, and failed")
            if not (kind in _KNOWN or str(kind).endswith(("_tool_result", "_tool_use"))):
                self._remarks.append(f"unknown block {excerpt(kind)[:80]} was kept as it came")
        self._was_text = kind == "text"

    def _take_text(self, block: JsonObject) -> None:
        text = block.get("text")
        if isinstance(text, str):
            if self._was_text:
                self._texts[-1] += text
            else:
                self._texts.append(text)
        elif not self._was_text:
            self._texts.append("")
        self._kept.append(block)
        if any(value is not None for key, value in block.items() if key not in ("type", "text")):
            self._is_plain = False  # citations

    def _take_call(self, block: JsonObject) -> None:
        call_id, name = block.get("id"), block.get("name")
        extra = {
            key: value
            for key, value in block.items()
            if key not in ("type", "id", "name", "input", "call") and value is not None
        }
        self._kept.append({"call": len(self.calls), **extra})
        self._is_plain = self._is_plain and not extra
        own = self._own_name(name) if isinstance(name, str) else ""
        self.calls.append(ToolCall(string(call_id), own, arguments_text(block.get("input"))))


# --- usage ------------------------------------------------------------------------------------------


def decode_usage(data: JsonValue, remarks: list[str]) -> Usage | None:
    """Token counts in the normal form. This provider counts cached input beside the input, and the tokens with which
    it summarised a conversation on its own nowhere but in `iterations`."""
    if not isinstance(data, dict):
        return None
    counted = [data, *_beside(data.get("iterations"))]
    details = data.get("output_tokens_details")
    return exclusive(
        total(*(count(one.get("input_tokens")) for one in counted)),
        total(*(count(one.get("output_tokens")) for one in counted)),
        remarks,
        cache_read=total(*(count(one.get("cache_read_input_tokens")) for one in counted)),
        cache_write=total(*(_written(one) for one in counted)),
        reasoning=count(details.get("thinking_tokens")) if isinstance(details, dict) else None,
    )


def _beside(iterations: JsonValue) -> list[JsonObject]:
    entries = items(iterations)
    return [one for one in entries if isinstance(one, dict) and one.get("type") == "compaction"]


def _written(usage: JsonObject) -> int | None:
    written = count(usage.get("cache_creation_input_tokens"))
    by_age = usage.get("cache_creation")
    if written is not None or not isinstance(by_age, dict):
        return written
    return total(*(count(value) for key, value in by_age.items() if key.endswith("_input_tokens")))
