"""Keeping the transcript small: what may be cut from it, and what it is after a cut.

A cut works on whole exchanges and on a stretch `messages[start:end]` of the transcript. What people said (`User`) and
the standing instructions (`System`) always stay, word for word; so does the newest part. Whether a cut pays is decided
elsewhere (`economics`); nothing here knows of money.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from tenlines.core.outcomes import READ_RESULT
from tenlines.core.transcript import (
    Assistant,
    File,
    Image,
    Json,
    Message,
    Note,
    Opaque,
    Reply,
    Result,
    System,
    Text,
    User,
    estimate_tokens,
)

Strategy: TypeAlias = Literal["elide", "drop", "summarise"]
"""`elide`: old results become a line that says what was there. `drop`: old exchanges go, with a note on what they were.
`summarise`: they are replaced by a summary that the model itself writes."""


class Compaction(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """When and how a transcript is made smaller."""

    strategies: tuple[Strategy, ...] = ("elide", "summarise")
    """Which may be used, in the order of preference: put what keeps more first. A later one is used where those before
    it can take away too little."""
    keep: int = 2
    """The newest exchanges, which are left as they are."""
    window: int | None = None
    """Tokens that the model takes in, the reply included; None where nobody knows."""
    at: int | None = None
    """Make it smaller whenever a request would hold more tokens than this, whether it pays or not."""
    least_gain: float = 0.01
    """A cut must save at least this part of what the steps still expected would cost without it."""
    summary_tokens: int = 1_000
    """Longest summary. A longer one is not taken."""
    expected_steps: tuple[int, ...] = ()
    """How many steps earlier runs of this kind took, each; without them the limits say how many may still come."""

    def __post_init__(self) -> None:
        unknown = [one for one in self.strategies if one not in ("elide", "drop", "summarise")]
        if unknown or not self.strategies:
            raise ValueError(f"Compaction.strategies takes 'elide', 'drop' and 'summarise'; got {self.strategies!r}")
        for name, least in (("keep", 1), ("window", 1), ("at", 1), ("summary_tokens", 50), ("least_gain", 0)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"Compaction.{name} must be at least {least}, got {value!r}")


class Arithmetic(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Why a cut was made, in numbers. Tokens are estimates."""

    why: Literal["pays", "window", "asked"]
    """It pays; the model's window would not hold the next steps; `Compaction.at` asks for it."""
    tokens_before: int
    tokens_after: int
    steps: float
    """Requests that were still expected."""
    saves: float
    """What those would cost less."""
    costs: float
    """What the cut costs once: to write again what stands behind it, and the summary."""
    unit: Literal["dollars", "tokens"]
    """`tokens`: the price is not known; the cost is in new input tokens, at typical rates."""


class Span(NamedTuple):
    """A cut that could be made: `messages[start:end]` would change."""

    strategy: Strategy
    start: int
    end: int
    tokens: int
    """Estimate of what stands there now."""
    left: int
    """Estimate of what will stand there; for a summary, the longest that is taken."""


ELIDED_AT_MOST = 400
"""Characters of the line that stands for a result that was left out. A result that is no longer stays as it is, so that
no result is left out twice."""
MOST_STARTS = 16
"""Places at which a cut of old results may begin, of which the best is looked for."""
MOST_NAMES = 10
"""Tools that are named where exchanges were left out."""
SUMMARY_HEADING = (
    "Summary of the work so far, written by you. What it stands for is no longer shown; what people said still is.\n\n"
)

_LONGEST_NAME, _LONGEST_KEY = 64, 80
_SOME_KEY = "0f" * 16 + ":99:0"
"""For estimates: how long and how odd a key is."""


# --- what may be cut --------------------------------------------------------------------------------


def protected_from(messages: Sequence[Message], keep: int) -> int:
    """Where the newest exchanges begin that are left as they are, with everything behind them.

    A reply without calls counts as an exchange. One that directly follows another goes on with it (the provider paused
    in between) and counts as the same. 0 where there are fewer than `keep`: then nothing may be cut.
    """
    for index in range(len(messages) - 1, -1, -1):
        if _begins(messages, index):
            keep -= 1
            if keep == 0:
                return index
    return 0


def _begins(messages: Sequence[Message], index: int) -> bool:
    """Whether an exchange begins with this message."""
    if not isinstance(messages[index], Assistant):
        return False
    return index == 0 or not isinstance(messages[index - 1], Assistant)


def _is_edge(messages: Sequence[Message], index: int) -> bool:
    """Whether no exchange reaches over this place."""
    if index == len(messages):
        return True
    return _begins(messages, index) or not isinstance(messages[index], Assistant | Result)


def _first_cuttable(messages: Sequence[Message]) -> int:
    """Behind the instructions and the task, which stand first."""
    return next((at for at, one in enumerate(messages) if not isinstance(one, System | User)), len(messages))


def spans(messages: Sequence[Message], sizes: Sequence[int], compaction: Compaction) -> list[Span]:
    """Every cut that is possible and makes the transcript smaller. Each message is looked at a few times.

    Args:
        messages: A closed transcript: every call has its result.
        sizes: What each message is estimated at, in tokens, as `estimate_tokens` does it.
        compaction: Which strategies may be used, and what stays as it is.
    """
    start, end = _first_cuttable(messages), protected_from(messages, compaction.keep)
    found: list[Span] = []
    for strategy in compaction.strategies if start < end else ():
        if strategy == "elide":
            found += _thinned(_elisions(messages, sizes, start, end))
        elif strategy == "drop":
            behind = start + _is_summary(messages[start])
            found.append(_replacing("drop", messages, sizes, range(behind, end), 0))
        else:
            found.append(_replacing("summarise", messages, sizes, range(start, end), compaction.summary_tokens))
    return [span for span in found if span.left < span.tokens]


def last_resort(messages: Sequence[Message], sizes: Sequence[int]) -> Span | None:
    """Where even the newest exchanges do not fit: all results that are long, the very last ones too. None where there
    are none."""
    every = _elisions(messages, sizes, _first_cuttable(messages), len(messages))
    return every[-1] if every else None


def _elisions(messages: Sequence[Message], sizes: Sequence[int], start: int, end: int) -> list[Span]:
    """The stretches up to `end` that begin with an exchange whose results can be left out, the shortest first."""
    found: list[Span] = []
    tokens = left = known = 0
    for index in range(end - 1, start - 1, -1):
        message = messages[index]
        tokens += sizes[index]
        left += min(sizes[index], estimate_tokens(elided(message, _SOME_KEY)))
        if tokens - left > known and _begins(messages, index):
            known = tokens - left
            found.append(Span("elide", index, end, tokens, left))
    return found


def _thinned(found: list[Span]) -> list[Span]:
    """A few of many stretches, in even steps of what they save: the longest is one of them."""
    if len(found) <= MOST_STARTS:
        return found
    kept: list[Span] = []
    most = found[-1].tokens - found[-1].left
    for span in found:
        if (span.tokens - span.left) * MOST_STARTS >= most * (len(kept) + 1):
            kept.append(span)
    return kept


def _replacing(
    strategy: Strategy, messages: Sequence[Message], sizes: Sequence[int], stretch: range, summary_tokens: int
) -> Span:
    """A cut that puts one note in the place of exchanges. It makes nothing smaller where there are none."""
    whole = [messages[index] for index in stretch]
    tokens = sum(sizes[index] for index in stretch)
    if not any(isinstance(one, Assistant) for one in whole):
        return Span(strategy, stretch.start, stretch.stop, tokens, tokens)
    kept = sum(sizes[index] for index, one in zip(stretch, whole, strict=True) if _stays(one, strategy))
    note = _dropped(whole).text if strategy == "drop" else SUMMARY_HEADING
    return Span(strategy, stretch.start, stretch.stop, tokens, kept + summary_tokens + estimate_tokens(Note(note)))


def _is_summary(message: Message) -> bool:
    return isinstance(message, Note) and message.summary


def _stays(message: Message, strategy: Strategy) -> bool:
    """Whether a message outlives a cut that replaces exchanges. A summary is replaced only by the next one."""
    return isinstance(message, System | User) or (strategy == "drop" and _is_summary(message))


def problem(messages: Sequence[Message], span: Span) -> str:
    """Why a cut may not be made, whatever it is estimated at; "" where it may.

    Results may be left out anywhere, as a last resort the very last ones too. Exchanges are replaced from the oldest
    on, since what stands before a gap must not wait for what was in it; and never the newest one.
    """
    strategy, start, end = span[:3]
    if not 0 <= start < end <= len(messages):
        return f"there are no messages {start} to {end} in a transcript of {len(messages)}"
    if not (_is_edge(messages, start) and _is_edge(messages, end)):
        return f"a cut of messages {start} to {end} would split an exchange"
    if strategy == "elide":
        return ""
    if any(isinstance(messages[index], Assistant) for index in range(start)):
        return f"messages {start} to {end} are not the oldest exchanges"
    if end > protected_from(messages, 1):
        return f"messages {start} to {end} reach into the newest exchange, which stays"
    return ""


# --- cutting ----------------------------------------------------------------------------------------


def cut(messages: Sequence[Message], span: Span, summary: str, keys: Mapping[str, str]) -> list[Message]:
    """The transcript after a cut: a new list. The same cut of what came out changes nothing more.

    Args:
        messages: A closed transcript; it stays as it is.
        span: What to cut; its estimates are not looked at.
        summary: The text of the summary, for `summarise`.
        keys: Id of a call -> the key under which its result can be read again.
    """
    stretch = list(messages[span.start : span.end])
    changed = _changed(stretch, span.strategy, summary, keys)
    same = next(
        (at for at, (old, new) in enumerate(zip(stretch, changed, strict=False)) if old is not new), len(changed)
    )
    if same == len(stretch):
        return list(messages)
    whole = [*messages[: span.start], *changed, *messages[span.end :]]
    first = span.start + same
    return whole[:first] + [_rebased(message) for message in whole[first:]]


def _changed(stretch: list[Message], strategy: Strategy, summary: str, keys: Mapping[str, str]) -> list[Message]:
    if strategy == "elide":
        return [elided(one, keys.get(one.call_id, "")) if isinstance(one, Result) else one for one in stretch]
    if not any(isinstance(one, Assistant) for one in stretch):
        return stretch
    note = _dropped(stretch) if strategy == "drop" else Note(SUMMARY_HEADING + summary.strip(), summary=True)
    place = next(at for at, one in enumerate(stretch) if not _stays(one, strategy))
    return [*stretch[:place], note, *(one for one in stretch[place:] if _stays(one, strategy))]


def _rebased(message: Message) -> Message:
    if isinstance(message, Assistant) and message.opaque and not message.rebased:
        return msgspec.structs.replace(message, rebased=True)
    return message


def instructed(messages: Sequence[Message], instructions: str) -> list[Message]:
    """A conversation under these standing instructions: the very same messages where they are those that it has."""
    had = [one.text for one in messages if isinstance(one, System)]
    if not instructions or had == [instructions]:
        return list(messages)
    said = [one for one in messages if not isinstance(one, System)]
    return [System(instructions), *(map(_rebased, said) if had else said)]


# --- results that are left out ----------------------------------------------------------------------


def elided(message: Message, key: str = "") -> Message:
    """A result with a line in the place of what it held; any other message, and a short result, as it is."""
    if not isinstance(message, Result):
        return message
    characters = sum(_length(part) for part in message.parts if not isinstance(part, Image | File))
    images = sum(isinstance(part, Image) for part in message.parts)
    files = sum(isinstance(part, File) for part in message.parts)
    if not images and not files and characters <= ELIDED_AT_MOST:
        return message
    counted = ((characters, "character"), (images, "image"), (files, "file"))
    held = ", ".join(_many(count, what) for count, what in counted if count)
    again = f'; {READ_RESULT}(key="{key}") shows it again' if 0 < len(key) <= _LONGEST_KEY else ""
    name = message.name if len(message.name) <= _LONGEST_NAME else f"{message.name[: _LONGEST_NAME - 3]}..."
    text = f"(result of {name}, {held}, left out to save room{again})"
    return Result(message.call_id, message.name, message.outcome, (Text(text),))


def _length(part: Text | Json | Opaque) -> int:
    """Characters of a part, about as it is sent."""
    if isinstance(part, Text):
        return len(part.text)
    try:
        return len(repr(part.value if isinstance(part, Json) else part.payload))
    except RecursionError:  # nested deeper than anybody would read
        return ELIDED_AT_MOST + 1


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


# --- exchanges that are left out --------------------------------------------------------------------

_LEFT_OUT = "Left out here to save room: "
_OTHERS = "other tools"
"""No tool has this name: there is a blank in it."""
_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{_LONGEST_NAME}}}")
_COUNT = "([0-9,]{1,15})"
_TELLING = re.compile(
    rf"{_LEFT_OUT}(?:{_COUNT} exchanges?(?: \((.*)\))?)?(?: and )?(?:{_COUNT} further repl(?:y|ies))?\. .*"
)
_TELLING_OF = re.compile(rf"({_OTHERS}|{_NAME.pattern}) {_COUNT}(?:, |$)")


def _dropped(stretch: Sequence[Message]) -> Note:
    """The note that stands for exchanges, and for the earlier notes of this kind among them."""
    exchanges = replies = 0
    calls: Counter[str] = Counter()
    for message in stretch:
        if isinstance(message, Assistant):
            exchanges, replies = exchanges + bool(message.calls), replies + (not message.calls)
            calls.update(call.name if _NAME.fullmatch(call.name) else _OTHERS for call in message.calls)
        elif isinstance(message, Note) and (told := _TELLING.fullmatch(message.text)):
            exchanges, replies = exchanges + _number(told[1]), replies + _number(told[3])
            for name, count in _TELLING_OF.findall(told[2] or ""):
                calls[name] += _number(count)
    held = [_many(exchanges, "exchange") + _counted(calls)] if exchanges else []
    held += [f"{replies:,} further {'reply' if replies == 1 else 'replies'}"] if replies else []
    return Note(f"{_LEFT_OUT}{' and '.join(held)}. Look up again what you need of it.")


def _counted(calls: Counter[str]) -> str:
    """The tools that were called most, and the rest as one."""
    order = sorted((name for name in calls if name != _OTHERS), key=lambda name: (-calls[name], name))
    told = [f"{name} {calls[name]:,}" for name in order[:MOST_NAMES]]
    if others := calls[_OTHERS] + sum(calls[name] for name in order[MOST_NAMES:]):
        told.append(f"{_OTHERS} {others:,}")
    return f" ({', '.join(told)})" if told else ""


def _number(text: str | None) -> int:
    return int(text.replace(",", "") or 0) if text else 0


# --- summaries --------------------------------------------------------------------------------------


def replaced_tokens(messages: Iterable[Message]) -> int:
    """Estimate of what a summary of these messages replaces: all but what people said and the instructions."""
    return sum(estimate_tokens(one) for one in messages if not _stays(one, "summarise"))


def question(tokens: int) -> Note:
    """What the model is asked for a summary of at most so many tokens."""
    return Note(
        "The conversation becomes too long. Write a summary that takes the place of everything above but what people "
        "said and the newest exchanges; you go on from it alone. Keep: the task, and what was decided; facts with "
        "their exact names, numbers and ids; what was done; what was tried and failed, and why; what remains to be "
        "done. Take over what still matters of an earlier summary. "
        f"Write at most {max(30, tokens // 2):,} words, nothing but the summary. Call no tool."
    )


def summary_fault(reply: Reply, span: Span, limit: int) -> str:
    """Why a reply cannot be used as the summary of a stretch; "" where it can.

    It may hold no more than `limit` tokens whatever it stands for, an earlier summary too: so summaries do not grow.
    """
    if reply.calls:
        return "it calls tools"
    if reply.stop in ("refusal", "content_filter"):
        return "the model declined to write it"
    if not reply.text.strip():
        return "it is empty"
    if reply.stop not in ("end", "stop_sequence", "unknown"):
        return f"it was not finished ({reply.stop})"
    tokens = estimate_tokens(Note(reply.text.strip()))
    if tokens > limit:
        return f"it has about {tokens:,} tokens; at most {limit:,} are taken"
    tokens += estimate_tokens(Note(SUMMARY_HEADING))
    if tokens >= span.tokens:
        return f"it has about {tokens:,} tokens with its heading; what it stands for has {span.tokens:,}"
    return ""
