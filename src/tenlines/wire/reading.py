"""Import: a body of any format as a transcript of ours; and what a format cannot carry of a transcript."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from msgspec import structs

from tenlines.core.events import ToolSpec
from tenlines.core.history import mend
from tenlines.core.outcomes import encodable, encodable_value, quote
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    JsonObject,
    JsonValue,
    Message,
    Note,
    Opaque,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.errors import RemoteError
from tenlines.wire.checking import turns_of_body
from tenlines.wire.format import Format, Talk
from tenlines.wire.ids import Names
from tenlines.wire.mending.turns import known_role
from tenlines.wire.parts import NOTE_PREFIX, TOO_DEEP, json_text, part_text
from tenlines.wire.profile import Profile, Target, family
from tenlines.wire.turns import Block, Tool, Turn

Say = Callable[[str], None]
Speak = Callable[[Sequence[Turn], Say], Assistant]
"""What an assistant said, in one turn or in several that belong together."""


class Imported(NamedTuple):
    """A transcript from elsewhere, and what of it has no place in a transcript of ours."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    remarks: tuple[str, ...]


def read(body: JsonObject, format: Format, profile: Profile) -> Imported:
    """A request body as a transcript: native ids, order and opaque reasoning are kept, faults are kept as well.

    What comes out need not be a valid transcript; `read_mended` makes it one.

    Raises:
        ConfigError: The body has no list of messages.
    """
    remarks: list[str] = []
    frame = format.frame(body)
    model = body.get("model")
    target = Target(profile=profile, model=model if isinstance(model, str) else profile.model)
    reader = Reader(remarks.append, Native(format, target), joins=profile.merges, results_in=profile.results_in)
    messages = list(reader.read([*frame.system, *turns_of_body(body, format)]))
    _remark_rest(body, format.list_field, [*frame.system, *frame.tools], remarks.append)
    return Imported(tuple(messages), tuple(map(spec_of, frame.tools)), tuple(map(encodable, remarks)))


def spec_of(tool: Tool) -> ToolSpec:
    """A tool that a body declares, as a run takes it."""
    try:
        parameters = encodable_value(tool.parameters)
    except RecursionError:
        parameters = {"type": "object"}
    return ToolSpec(encodable(tool.name), encodable(tool.description), parameters)


def read_mended(body: JsonObject, format: Format, profile: Profile) -> Imported:
    """The same, as a valid transcript; what was mended stands behind the remarks.

    Raises:
        ConfigError: The body has no list of messages.
    """
    imported = read(body, format, profile)
    mended = mend(imported.messages)
    return Imported(mended.messages, imported.tools, imported.remarks + mended.repairs)


def messages_of(turns: Iterable[Turn], say: Say, *, joins: bool = False) -> Iterator[Message]:
    """The messages of any turns, whatever they were unfolded from; reasoning in them is not kept.

    Args:
        turns: In order.
        say: Told in a sentence what has no place in a transcript.
        joins: Whether neighbouring turns of the assistant are one message.
    """
    return Reader(say, from_blocks, joins=joins).read(turns)


def _remark_rest(body: JsonObject, list_field: str, read_from: Sequence[Turn | Tool], say: Say) -> None:
    used = {list_field, *_ABOUT_THE_WAY} | {one.path.split("[")[0].split(".")[0] for one in read_from}
    rest = [field for field in body if field not in used]
    if rest:
        say(f"not part of a transcript, and left out: {', '.join(rest)}")


_ABOUT_THE_WAY = ("model", "modelId", "stream", "stream_options")
"""Fields that say where a request goes and how the answer comes: nobody misses them in a transcript."""


class Reader:
    """Reads turns one at a time; holds back what the assistant said until it is complete."""

    def __init__(self, say: Say, speak: Speak, *, joins: bool = False, results_in: str = "tool") -> None:
        self._say, self._speak, self._joins = say, speak, joins
        self._results_in = results_in
        self._spoken: list[Turn] = []
        self._has_begun = False

    def read(self, turns: Iterable[Turn]) -> Iterator[Message]:
        """All of them."""
        for turn in turns:
            yield from self.take(turn)
        yield from self.close()

    def take(self, turn: Turn) -> Iterator[Message]:
        """The next turn; gives the messages that are complete."""
        if turn.role == "unknown":
            known = known_role(turn, "tool" if self._results_in == "tool" else "user")
            if known is None:
                self._say(f"{turn.path} is no message and was left out: {_excerpt(turn.raw)}")
                return
            self._say(f"{turn.path} has the role {turn.wire_role!r}, which this format does not have: {known.role}")
            turn = known
        if self._spoken and not self._belongs(turn):
            yield from self.close()
        if turn.role == "assistant":
            self._has_begun = True
            self._spoken.append(turn)
        elif turn.role == "system":
            yield from self._system(turn)
        else:
            self._has_begun = True
            yield from self._user(turn)

    def close(self) -> Iterator[Message]:
        """What is held back."""
        turns, self._spoken = self._spoken, []
        if not turns:
            return
        said = self._speak(turns, self._say)
        if said.text or said.calls or said.opaque:
            yield said
        else:
            self._say(f"{turns[0].path} says nothing and was left out")
        for turn in turns:
            yield from (_result(block) for block in turn.of("result"))

    def _belongs(self, turn: Turn) -> bool:
        """Whether a turn is one message with those before it: its format joins neighbours, or one is an item."""
        if turn.role != "assistant":
            return False
        return self._joins or not turn.wire_role or not self._spoken[-1].wire_role

    def _system(self, turn: Turn) -> Iterator[Message]:
        texts = [encodable(block.text) for block in turn.blocks if block.kind == "text"]
        if not self._has_begun:
            yield from map(System, texts)
            return
        self._say(f"{turn.path}: a system message inside the conversation became a note of the loop")
        yield Note("\n\n".join(texts))

    def _user(self, turn: Turn) -> Iterator[Message]:
        parts: list[Part] = []
        said = False
        for block in turn.blocks:
            if block.kind == "result":
                if parts:
                    yield User(tuple(parts))
                parts, said = [], True
                yield _result(block)
            elif block.kind == "text" and block.text.startswith(NOTE_PREFIX):
                if parts:
                    yield User(tuple(parts))
                parts, said = [], True
                yield Note(encodable(block.text.removeprefix(NOTE_PREFIX)))
            else:
                parts += self._parts(block)
        if parts or not said:
            yield User(tuple(parts))

    def _parts(self, block: Block) -> tuple[Part, ...]:
        if block.kind == "text":
            return (Text(encodable(block.text)),)
        if block.parts:
            return tuple(map(_clean, block.parts))
        if block.kind == "call":
            self._say(f"{block.path}: a call in a user message was left out: {quote(block.name, 80)}")
        elif _is_mark(block.raw):
            return ()
        else:
            self._say(f"{block.path}: content that cannot be read was left out: {_excerpt(block.raw)}")
        return ()


def _result(block: Block) -> Result:
    parts = block.parts or ((Text(block.text),) if block.text else ())
    clean = tuple(map(_clean, parts))
    return Result(encodable(block.id), encodable(block.name), "tool_error" if block.is_error else "ok", clean)


def _clean(part: Part) -> Part:
    """A part that can be stored: all text in it encodes as UTF-8."""
    match part:
        case Text(text):
            return Text(encodable(text))
        case Image(media_type, data, url):
            return Image(encodable(media_type), data, encodable(url))
        case File(media_type, data, name):
            return File(encodable(media_type), data, encodable(name))
        case _:
            pass
    try:
        return _clean_value(part)
    except RecursionError:
        return Text(TOO_DEEP)


def _clean_value(part: Json | Opaque) -> Part:
    if isinstance(part, Json):
        return Json(encodable_value(part.value))
    return structs.replace(part, payload=encodable_value(part.payload))


def _is_mark(raw: JsonValue) -> bool:
    return isinstance(raw, dict) and "cachePoint" in raw


def _excerpt(value: JsonValue) -> str:
    return quote(json_text(value), 120)


# --- what the assistant said ------------------------------------------------------------------------


def from_blocks(turns: Sequence[Turn], say: Say) -> Assistant:
    """What the blocks of turns tell: text and calls. Reasoning is not kept: nobody would take it back."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    for block in (block for turn in turns for block in turn.blocks):
        if block.kind == "text" and block.text:
            texts.append(block.text)
        elif block.kind == "call":
            calls.append(ToolCall(encodable(block.id), encodable(block.name), _arguments(block.arguments)))
        elif block.kind == "reasoning":
            say(f"{block.path}: reasoning was left out")
        elif block.kind in ("media", "other"):
            say(f"{block.path}: content that an assistant message cannot hold was left out: {_excerpt(block.raw)}")
    return Assistant(encodable("\n\n".join(texts)), tuple(calls))


def _arguments(value: JsonValue) -> str:
    if isinstance(value, str):
        return encodable(value) if value.strip() else "{}"
    return "{}" if value is None else json_text(value)


class Native:
    """Reads assistant messages as the replies that they once were, with the decoder of their format: so opaque
    reasoning is kept exactly as it would have been when it came."""

    def __init__(self, format: Format, target: Target) -> None:
        self._talk: Talk = format.talk(target)
        self._envelope = _ENVELOPES.get(format.name)

    def __call__(self, turns: Sequence[Turn], say: Say) -> Assistant:
        """What they said."""
        if self._envelope is None or any(turn.raw is None for turn in turns):
            return from_blocks(turns, say)
        try:
            reply = self._talk.decode(self._envelope([turn.raw for turn in turns]))
        except RemoteError:
            return from_blocks(turns, say)
        if len(reply.calls) != sum(len(turn.of("call")) for turn in turns):
            return from_blocks(turns, say)
        for remark in reply.remarks:
            say(f"{turns[0].path}: {remark}")
        return Assistant(reply.text, reply.calls, reply.opaque)


def _chat(raws: list[JsonValue]) -> JsonValue:
    return {"choices": [{"index": 0, "message": raws[0], "finish_reason": "stop"}]}


def _responses(raws: list[JsonValue]) -> JsonValue:
    return {"status": "completed", "output": raws}


def _anthropic(raws: list[JsonValue]) -> JsonValue:
    return {"role": "assistant", "stop_reason": "end_turn", "content": _blocks(raws, "content")}


def _gemini(raws: list[JsonValue]) -> JsonValue:
    content: JsonObject = {"role": "model", "parts": _blocks(raws, "parts")}
    return {"candidates": [{"content": content, "finishReason": "STOP"}]}


def _bedrock(raws: list[JsonValue]) -> JsonValue:
    message: JsonObject = {"role": "assistant", "content": _blocks(raws, "content")}
    return {"output": {"message": message}, "stopReason": "end_turn"}


def _cohere(raws: list[JsonValue]) -> JsonValue:
    return {"message": raws[0], "finish_reason": "COMPLETE"}


def _ollama(raws: list[JsonValue]) -> JsonValue:
    return {"message": raws[0], "done": True, "done_reason": "stop"}


def _blocks(raws: list[JsonValue], field: str) -> list[JsonValue]:
    found: list[JsonValue] = []
    for raw in raws:
        held = raw.get(field) if isinstance(raw, dict) else None
        if isinstance(held, list):
            found += held
        elif isinstance(held, str):
            found.append({"type": "text", "text": held})
    return found


_ENVELOPES: dict[str, Callable[[list[JsonValue]], JsonValue]] = {
    "openai_chat": _chat,
    "mistral": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "ollama": _ollama,
}
"""Format -> an assistant message in what a response has around it."""


# --- what does not fit ------------------------------------------------------------------------------


class Fate(Protocol):
    """What becomes of the pieces that not every format has a place for."""

    def shows(self, part: Part, is_result: bool) -> bool:
        """Whether an image, a file or something opaque in a message (or in a result) goes as what it is."""
        ...

    def takes_back(self, message: Assistant, one: Opaque) -> bool:
        """Whether something that a maker keeps with its reply goes back."""
        ...


class ByProfile:
    """What a profile says of that in general."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def shows(self, part: Part, is_result: bool) -> bool:
        """By the kind of the part."""
        if isinstance(part, Opaque):
            return False
        kind = "images" if isinstance(part, Image) else "files"
        return (f"result_{kind}" if is_result else kind) in self._profile.carries

    def takes_back(self, message: Assistant, one: Opaque) -> bool:
        """By the maker."""
        known = self._profile
        if "reasoning" not in known.carries or one.provider != known.provider:
            return False
        return not known.model or not one.model or family(one.model) == family(known.model)


def losses(messages: Sequence[Message], profile: Profile, fate: Fate | None = None) -> list[str]:
    """What a target cannot carry of a transcript, in sentences; empty when all of it has a place there.

    Args:
        messages: The transcript.
        profile: The target.
        fate: What becomes of parts, when that is known exactly; without it the profile says it in general.
    """
    fate = fate or ByProfile(profile)
    return [
        f"message {index}: {what}" for index, message in enumerate(messages) for what in _lost(message, profile, fate)
    ]


def _lost(message: Message, profile: Profile, fate: Fate) -> Iterator[str]:
    match message:
        case User(parts):
            yield from _lost_parts(parts, fate, is_result=False)
            if profile.has("images_apart"):
                yield from _lost_places(parts, fate)
        case Result(_, name, outcome, parts):
            if outcome != "ok" and "errors" not in profile.carries:
                yield f"that {name} did not succeed ({outcome}) is said by the text of its result alone"
            yield from _lost_parts(parts, fate, is_result=True)
        case Assistant(_, calls, opaque):
            yield from _lost_names(calls, profile)
            for one in opaque:
                if not fate.takes_back(message, one):
                    yield f"what {one.model or one.provider} keeps with its reply (reasoning, say) is left out"
        case _:
            return


def _lost_parts(parts: tuple[Part, ...], fate: Fate, *, is_result: bool) -> Iterator[str]:
    place = "in a result " if is_result else ""
    for part in parts:
        if isinstance(part, Text | Json) or fate.shows(part, is_result):
            continue
        if isinstance(part, Image):
            yield f"an image {place}becomes a line of text"
        elif isinstance(part, File):
            yield f"the file {part.name or part.media_type!r} {place}becomes a line of text"
        else:
            yield f"content {place}that only {part.provider} understands is left out"


def _lost_places(parts: tuple[Part, ...], fate: Fate) -> Iterator[str]:
    after = False
    for part in reversed(parts):
        if isinstance(part, Image) and fate.shows(part, False):
            if after:
                yield "an image that stands before text is sent behind it"
        else:
            after = after or bool(part_text(part).strip())


def _lost_names(calls: tuple[ToolCall, ...], profile: Profile) -> Iterator[str]:
    names = Names(profile.name_pattern or ".*", profile.name_max)
    for name in dict.fromkeys(call.name for call in calls):
        if names.wire(name) != name:
            yield f"the tool name {quote(name, 80)} is written as {names.wire(name)!r}"
