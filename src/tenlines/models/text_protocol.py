"""Tools for a model that has none of its own, or whose own are off: `TextProtocol("http://127.0.0.1:8080/v1#gemma")`.

The tools go into the system prompt, calls come as text, results go as text; the machine sees ordinary replies. The
forms are in `wire.text_protocol`; what is read as what is at the top of its `reading`.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from tenlines.core.effects import CallModel
from tenlines.core.transcript import Reply, TranscriptView
from tenlines.errors import ConfigError
from tenlines.ports import TEXT_FORMS, Delta, Model, OnDelta, Session
from tenlines.wire.text_protocol.reading import Style, parse
from tenlines.wire.text_protocol.rendering import STOPS, Encoder
from tenlines.wire.text_protocol.showing import Shown

FORMS: dict[Style, str] = dict(zip(get_args(Style), TEXT_FORMS, strict=True))
"""How the name of a model begins that is asked in this way: `text+http://127.0.0.1:8080/v1#gemma`."""


class TextProtocol:
    """A model that calls tools in text.

    Args:
        model: Any model: what `Agent` takes.
        style: `react`: lines with Thought, Action and Action Input. `json`: a call is a code block of JSON.

    Raises:
        ConfigError: It is no model, or one whose replies are held to a form already.
    """

    def __init__(self, model: Any, style: Style = "react") -> None:
        from tenlines.models.resolve import resolve

        if style not in get_args(Style):
            raise ConfigError(f"style must be 'react' or 'json', got {style!r}")
        if isinstance(model, str):
            model = _unheld(model)
        self.inner: Model = resolve(model)
        if isinstance(self.inner, TextProtocol) or getattr(self.inner, "protocol", "") == "constrained":
            raise ConfigError(
                f"{self.inner.name} has a text form for its calls already: take it as it is, or with protocol='native'"
            )
        self.style: Style = style
        self.name = f"{FORMS[style]}{self.inner.name}"

    def session(self) -> Session:
        """One run's conversation: what was written is kept."""
        begin = getattr(self.inner, "session_with", None)
        inner: Session = self.inner.session() if begin is None else begin(STOPS[self.style])
        return _TextSession(inner, self.style)


def _unheld(name: str) -> Any:
    """The model of that name. The local one is asked for plain text."""
    kind, _, path = name.strip().partition(":")
    if kind.lower() != "local":
        return name
    from tenlines.models.local import LocalModel

    return LocalModel(path or None, protocol="native")


class _TextSession:
    def __init__(self, inner: Session, style: Style) -> None:
        self._inner, self._style = inner, style
        self._encoder = Encoder(style)

    def complete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """Ask the model and read what it wrote."""
        eyes = _Eyes(request, on_delta, self._style)
        reply = self._inner.complete(self._written(request), eyes.watch)
        return self._read(request, reply, eyes)

    async def acomplete(self, request: CallModel, on_delta: OnDelta | None) -> Reply:
        """The same for asyncio."""
        eyes = _Eyes(request, on_delta, self._style)
        reply = await self._inner.acomplete(self._written(request), eyes.watch)
        return self._read(request, reply, eyes)

    def _written(self, request: CallModel) -> CallModel:
        """The request without tools, as the other side gets it."""
        new_from = self._encoder.extend(request.messages, request.tools, request.new_from)
        view = TranscriptView(self._encoder.messages, len(self._encoder.messages))
        return msgspec.structs.replace(request, messages=view, new_from=new_from, tools=(), tool_choice="auto")

    def _read(self, request: CallModel, reply: Reply, eyes: _Eyes) -> Reply:
        eyes.close()
        return read_reply(reply, self._style, request.tool_choice) if request.tools else reply


def read_reply(reply: Reply, style: Style, tool_choice: str = "auto") -> Reply:
    """A reply whose text may hold calls, as what it is. Usage and all else stay.

    Of a reply that ended early the calls are found too: the machine knows that they do not run.
    """
    if reply.calls or not reply.text.strip():
        return reply
    found = parse(reply.text, style)
    remarks = (*reply.remarks, *found.remarks)
    if tool_choice not in ("auto", "none") and not found.calls:
        remarks += (f"tool_choice={tool_choice!r} cannot be forced in the text protocol",)
    if found.problem and reply.stop in ("end", "stop_sequence", "tool_calls"):
        return msgspec.structs.replace(
            reply,
            text=found.text,
            stop="malformed_call",
            remarks=(*remarks, f"the reply is malformed: {found.problem}"),
        )
    return msgspec.structs.replace(reply, text=found.text, calls=found.calls, remarks=remarks)


class _Eyes:
    """Shows what is to be seen of a reply while it comes."""

    def __init__(self, request: CallModel, on_delta: OnDelta | None, style: Style) -> None:
        self._step, self._on_delta, self._shown = request.step, on_delta, Shown(style)
        plain = on_delta if not request.tools else self._take
        self.watch: OnDelta | None = None if on_delta is None else plain

    def _take(self, delta: Delta) -> None:
        piece = self._shown.feed(delta.text)
        self._show(piece.text, delta.reasoning + piece.reasoning)

    def close(self) -> None:
        """Show what was held back."""
        piece = self._shown.finish()
        self._show(piece.text, piece.reasoning)

    def _show(self, text: str, reasoning: str) -> None:
        if self._on_delta is not None and (text or reasoning):
            self._on_delta(Delta(self._step, text, reasoning))
