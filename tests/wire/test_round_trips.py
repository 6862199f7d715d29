"""Written and read again, in every format and from each to each: what a transcript means stays, or its loss is said.

What is compared is the meaning: words in order, who said them, images and files, calls with their names and arguments,
results with the call that they answer and whether they are errors. From the meaning of what was written everything is
taken away that the losses name, and nothing else: what comes back has to be exactly that.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from corpus import WHOLE
from judges import transcripts_made
from msgspec import structs
from transcripts import SPECS

from tenlines.core.history import first_fault
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Part,
    Result,
    System,
    Text,
    ToolCall,
    User,
)
from tenlines.wire.checking import check
from tenlines.wire.converting import Written, imported, written
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS
from tenlines.wire.parts import NOTE_PREFIX, part_text
from tenlines.wire.profile import Target

COUNT, CHAINED = 300, 12
Token = tuple[Any, ...]

FILLERS = frozenset(
    {
        *("(conversation start)", "Continue.", "(continued)", "Understood.", "."),
        *("(empty)", "(no output)", "(tool failed without a message)", "(see the attached document)"),
    }
)
"""Text that stands where a format wants some and the transcript has none; it says nothing."""

# --- what a transcript means ------------------------------------------------------------------------


class Lost:
    """The losses that were said of a transcript. Each is taken when what it names is come upon; one that nobody takes
    was said for nothing."""

    def __init__(self, losses: Sequence[str], format: Format) -> None:
        self._losses, self._format = losses, format
        self._said: list[str] = []

    def begin(self, index: int) -> None:
        """The next message."""
        assert not self._said, f"said to be lost, and nothing of the kind was there: {self._said}"
        self._said = [
            one.removeprefix(f"message {index}: ") for one in self._losses if one.startswith(f"message {index}: ")
        ]

    def takes(self, one: str) -> bool:
        """Whether a loss was said."""
        if one in self._said:
            self._said.remove(one)
            return True
        return False

    def takes_part(self, part: Part, is_result: bool) -> bool:
        """Whether a part is lost: one that stands alone is, and of this message it was said as well."""
        call = ToolCall("a", "f", "{}")
        alone: list[Message] = [User((part,))]
        if is_result:
            alone = [User((Text("hi"),)), Assistant("", (call,)), Result("a", "f", "ok", (part,))]
        said = written(alone, (), self._format, target_of(self._format)).losses
        return bool(said) and self.takes(said[0].partition(": ")[2])

    def name(self, name: str) -> str:
        """The name of a tool, as it is after that."""
        for one in self._said:
            if one.startswith(f"the tool name {name!r} is written as "):
                return one.rsplit("'", 2)[1]
        return name

    def takes_names(self) -> None:
        """All names of a message were come upon."""
        self._said = [one for one in self._said if not one.startswith("the tool name ")]

    def takes_places(self) -> bool:
        """Whether images lost their places among the text."""
        taken = [one for one in self._said if one == "an image that stands before text is sent behind it"]
        return [self.takes(one) for one in taken] != []


def meaning(messages: Iterable[Message], lost: Lost) -> list[Token]:
    """The tokens of a transcript: words, media, calls and results, each with who it is from. Neighbours of one speaker
    are not told apart, and blank text is nothing: formats join the ones and take none of the other."""
    calls: dict[str, int] = {}
    found: list[Token] = []
    for index, message in enumerate(messages):
        lost.begin(index)
        match message:
            case System(text):
                found += _words("system", text)
            case Note(text):
                found += _words("user", NOTE_PREFIX + text if text.strip() else "")
            case User():
                found += _user(message, lost)
            case Assistant():
                found += _assistant(message, calls, lost)
            case Result():
                found += _result(message, calls, lost)
    lost.begin(-1)
    return found


def _user(message: User, lost: Lost) -> list[Token]:
    tokens = [token for part in message.parts for token in _part("user", part, lost)]
    return sorted(tokens, key=lambda token: token[1] == "image") if lost.takes_places() else tokens


def _assistant(message: Assistant, calls: dict[str, int], lost: Lost) -> Iterator[Token]:
    yield from _words("assistant", message.text)
    for call in message.calls:
        calls[call.id] = len(calls)
        yield ("call", calls[call.id], lost.name(call.name), json.loads(call.arguments or "{}"))
    lost.takes_names()
    for one in message.opaque:
        if not lost.takes(f"what {one.model} keeps with its reply (reasoning, say) is left out"):
            yield ("opaque", json.dumps(one.payload, sort_keys=True))


def _result(message: Result, calls: dict[str, int], lost: Lost) -> Iterator[Token]:
    failed = f"that {message.name} did not succeed ({message.outcome}) is said by the text of its result alone"
    yield ("result", calls[message.call_id], message.outcome != "ok" and not lost.takes(failed))
    only = message.parts[0] if len(message.parts) == 1 else None
    if isinstance(only, Text | Json):
        yield from _words("result", _value(only))
        return
    for part in message.parts:
        yield from _part("result", part, lost)


def _value(part: Text | Json) -> str:
    """What a result says that is one text or one value. A text in quotes is that text: formats with values drop it."""
    try:
        value = json.loads(part.text) if isinstance(part, Text) else part.value
    except ValueError:
        value = None
    return value if isinstance(value, str) else part_text(part)


def _words(who: str, text: str) -> Iterator[Token]:
    for paragraph in text.split("\n\n"):
        if paragraph.strip() not in FILLERS:
            yield from ((who, word) for word in paragraph.split())


def _part(who: str, part: Part, lost: Lost) -> Iterator[Token]:
    is_lost = isinstance(part, Image | File) and lost.takes_part(part, who == "result")
    if isinstance(part, Image) and not is_lost:
        yield (who, "image", *_image(part))
    elif isinstance(part, File) and not is_lost:
        yield (who, "file", part.data)
    else:
        yield from _words(who, part_text(part))


def _image(image: Image) -> tuple[bytes, str]:
    """The bytes in an address are bytes."""
    _, is_inside, data = image.url.partition(";base64,")
    return (base64.b64decode(data), "") if is_inside else (image.data, image.url)


# --- transcripts ------------------------------------------------------------------------------------

MEDIA: tuple[Part, ...] = (
    Image("image/png", b"\x89PNG"),
    Image("image/gif", b"GIF"),
    Image("image/svg+xml", b"<svg/>"),
    Image("image/jpeg", url="https://example.org/i.jpg"),
    Image("image/png", url="data:image/png;base64,iVBORw=="),
    Image("image/png", url="s3://bucket/i.png"),
    Image("image/png"),
    File("application/pdf", b"%PDF", "a.pdf"),
    File("text/csv", b"a,b"),
    File("text/html", b"<p>", "a b.html"),
    File("audio/wav", b"RIFF", "a.wav"),
    File("video/mp4", b"mp4"),
    File("application/zip", b"PK", "a.zip"),
    File("application/vnd.openxmlformats-officedocument.wordprocessingml.document", b"PK", "a.docx"),
    File("text/plain", b"", "empty.txt"),
)


def varied(count: int, seed: str) -> Iterator[tuple[Message, ...]]:
    """Random transcripts, with many kinds of images and files in them."""
    random = Random(seed)
    for messages in transcripts_made(count):
        yield tuple(_varied(one, random) if isinstance(one, User | Result) else one for one in messages)


def _varied(message: User | Result, random: Random) -> Message:
    parts = tuple(random.choice(MEDIA) if isinstance(part, Image | File) else part for part in message.parts)
    return structs.replace(message, parts=parts)


# --- there and back ---------------------------------------------------------------------------------


def target_of(format: Format, model: str = "m") -> Target:
    return Target(profile=format.profile(), model=model, max_tokens=100)


def sent(messages: Sequence[Message], format: Format, model: str = "m") -> Written:
    """Written as text and read as JSON again, without a fault."""
    done = written(messages, SPECS, format, target_of(format, model))
    body = json.loads(json.dumps(done.body))
    assert [one for one in check(body, format, format.profile()) if one.severity == "error"] == []
    return Written(body, done.losses)


def back(messages: Sequence[Message], format: Format, model: str = "m") -> tuple[Message, ...]:
    """What comes back of a transcript: what it meant, but for the losses."""
    body, losses = sent(messages, format, model)
    found = imported(body, format.name)
    assert first_fault(found.messages) == ""
    assert meaning(found.messages, Lost((), format)) == meaning(messages, Lost(losses, format)), (
        f"{losses}\n{json.dumps(body)}"
    )
    return found.messages


EVERY = pytest.mark.parametrize("format", FORMATS.values(), ids=lambda one: one.name)


@pytest.mark.slow
@EVERY
def test_what_is_written_is_read_or_said_to_be_lost(format: Format) -> None:
    for messages in varied(COUNT, format.name):
        back(messages, format)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), list(product(FORMATS, FORMATS)))
def test_from_each_format_to_each_and_back(first: str, second: str) -> None:
    random = Random(f"{first} {second}")
    for _ in range(CHAINED):
        messages: Sequence[Message] = random.choice(transcripts_made(COUNT))
        for name in (first, second, first):
            messages = back(messages, FORMATS[name])


@pytest.mark.slow
@EVERY
def test_ids_are_kept_where_they_fit(format: Format) -> None:
    profile = format.profile()
    fits = re.compile(profile.id_pattern or ".*")
    kept = Counter[bool]()
    for messages in transcripts_made(COUNT):
        found = imported(sent(messages, format).body, format.name).messages
        for old, new in zip(calls_of(messages), calls_of(found), strict=True):
            if fits.fullmatch(old.id) and re.fullmatch("[A-Za-z0-9_-]{1,40}", old.id):  # what any format may take
                kept[old.id == new.id] += 1
    if format.name in ("ollama", "gemini"):  # they have none, or only those that the service itself gave
        assert not kept[True]
    else:
        assert kept[True]
        assert not kept[False]


def calls_of(messages: Iterable[Message]) -> list[ToolCall]:
    return [call for message in messages if isinstance(message, Assistant) for call in message.calls]


@pytest.mark.parametrize(("maker", "name"), list(product(WHOLE, FORMATS)))
@pytest.mark.parametrize("model", ["m", "other"])
def test_what_a_maker_keeps_with_its_reply_goes_back_to_it_or_is_said_to_be_lost(
    maker: str, name: str, model: str
) -> None:
    for whole in WHOLE[maker][:1]:
        reply = FORMATS[maker].talk(target_of(FORMATS[maker])).decode(whole)
        calls = tuple(structs.replace(call, id=call.id or "call00001") for call in reply.calls)
        results = [Result(call.id, call.name, "ok", (Text("18"),)) for call in calls]
        messages = (User((Text("hi"),)), Assistant(reply.text, calls, reply.opaque), *results, User((Text("so?"),)))
        found = back(messages, FORMATS[name], model)
        kept = [message.opaque for message in found if isinstance(message, Assistant)]
        if "reasoning" in FORMATS[maker].profile().carries:
            assert any(kept) == ((maker, "m") == (name, model) and bool(reply.opaque))
