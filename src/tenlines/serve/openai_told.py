"""What a run says to a client of OpenAI's: the pieces of its answer as they come, and the objects around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from tenlines.core import events as ev
from tenlines.core.events import AnyEvent, Status
from tenlines.core.outcomes import encodable
from tenlines.core.result import RunResult
from tenlines.core.transcript import JsonObject, ToolCall
from tenlines.ports import Delta
from tenlines.trace import words
from tenlines.trace.redaction import Redaction
from tenlines.trace.text import clean, one_line

Finish: TypeAlias = Literal["stop", "length", "content_filter"]

FINISH: dict[Status, Finish] = {
    "answered": "stop",
    "awaiting_approval": "stop",
    "truncated_reply": "length",
    "refused": "content_filter",
}
"""How a run ended -> the `finish_reason` of its reply. Runs that ended otherwise have none: they are errors."""


# --- pieces -------------------------------------------------------------------------------------------


class Said(NamedTuple):
    """A piece of the reply."""

    content: str = ""
    reasoning: str = ""
    """What a client may show beside it: the calls, where that is wanted."""


BROKE_OFF = "(The reply broke off, and begins again.)"


class Teller:
    """Turns what happens in a run into pieces of one reply.

    Text that stands beside calls is not the answer, and that it does is known when the reply is whole. So the pieces of
    a reply are held until then; where there are no tools, or the steps are shown, they are said as they come.

    Args:
        shows_steps: Whether what goes on before the answer is said as well.
        redaction: Takes secrets out of the arguments of calls.
    """

    def __init__(self, shows_steps: bool, redaction: Redaction) -> None:
        self._shows, self._is_live, self._redaction = shows_steps, shows_steps, redaction
        self._held: list[str] = []
        self._now = ""  # what was said of the reply that is being written
        self._gap = False
        self._calls: tuple[ToolCall, ...] = ()
        self.reply = ""
        """The text of the last whole reply."""
        self.failure: ev.ModelFailed | None = None
        """Why the last request brought none, where it did not."""

    def take(self, seen: AnyEvent | Delta) -> Iterator[Said]:
        """The next thing that happened."""
        match seen:
            case Delta(text=text) if text:
                yield from self._written(text)
            case ev.RunStarted():
                self._is_live = self._shows or not seen.tools
            case ev.StepStarted():
                yield from self._begun()
            case ev.ModelFailed():
                self.failure = seen
            case ev.ModelReplied():
                yield from self._replied(seen)
            case ev.CallStarted() | ev.CallReturned() | ev.CallFailed() | ev.CallTimedOut() | ev.CallAbandoned():
                if self._shows:
                    yield Said(reasoning=f"{self._of_call(seen)}\n")
            case _:
                return

    def end(self, text: str) -> Iterator[Said]:
        """What is still to be said of the text that the run came to."""
        text = encodable(text)
        if self._is_live:
            if text != self.reply:
                yield from self._say(text)
            return
        pieces = self._held if "".join(self._held) == text else [text]
        for piece in pieces:
            yield from self._say(piece)

    def _written(self, text: str) -> Iterator[Said]:
        text = encodable(text)
        if self._is_live:
            yield from self._say(text)
            self._now += text
        else:
            self._held.append(text)

    def _begun(self) -> Iterator[Said]:
        """Another request. What was written in answer to one that failed is void."""
        self._held.clear()
        if self._now:
            self._gap = True
            yield from self._say(BROKE_OFF)
            self._now, self._gap = "", True

    def _replied(self, event: ev.ModelReplied) -> Iterator[Said]:
        self.failure, self.reply, self._calls = None, encodable(event.reply.text), event.reply.calls
        if self._is_live:
            is_begun = bool(self._now) and self.reply.startswith(self._now)
            self._gap = self._gap or (bool(self._now) and not is_begun)
            yield from self._say(self.reply[len(self._now) :] if is_begun else self.reply)
            self._now, self._gap = "", self._gap or bool(self.reply)
        elif self._calls:
            self._held.clear()

    def _say(self, text: str) -> Iterator[Said]:
        if text:
            yield Said("\n\n" + text if self._gap else text)
            self._gap = False

    def _of_call(
        self, event: ev.CallStarted | ev.CallReturned | ev.CallFailed | ev.CallTimedOut | ev.CallAbandoned
    ) -> str:
        call = self._calls[event.position] if event.position < len(self._calls) else None
        place = f"call {event.step}.{event.position + 1}"
        match event:
            case ev.CallStarted():
                return f"→ {place if call is None else words.call(call.name, self._redaction.text(call.arguments))}"
            case ev.CallReturned():
                outcome = "ok"
            case ev.CallTimedOut():
                outcome = "timeout"
            case _:
                outcome = event.outcome
        return f"← {place if call is None else one_line(call.name, 80)}: {outcome}"


# --- a run that waits ---------------------------------------------------------------------------------


def waiting(result: RunResult, redaction: Redaction, commands: Sequence[str]) -> str:
    """What is said of a run that waits for somebody's decision. It begins with what `waits_in` looks for."""
    calls = [words.call(one.name, _arguments(redaction, one.arguments), full=True) for one in result.pending]
    calls += [f"{one.place} {one.name} of run {one.run_id}" for paused in result.paused for one in paused.waiting]
    listed = "\n".join(f"    {clean(one)}" for one in calls)
    how = "\n".join(f"    {clean(one)}" for one in commands)
    return (
        f"{WAITS.format(result.run_id)} about:\n\n{listed}\n\n"
        f"Nothing of it is done before. Whoever may decide does so on the machine of the agent:\n\n{how}\n\n"
        "When that is done, write anything here, and the run goes on."
    )


WAITS = "Run {} waits for a decision"


def _arguments(redaction: Redaction, arguments: JsonObject) -> str:
    import json

    return json.dumps(redaction.of(arguments), ensure_ascii=False)


# --- objects ------------------------------------------------------------------------------------------


class Head(NamedTuple):
    """What all objects of one reply have in common."""

    run_id: str
    created: int
    """Unix time in seconds."""
    model: str

    def fields(self, kind: str) -> JsonObject:
        """As they stand in an object of that kind."""
        told: JsonObject = {"id": f"chatcmpl-{self.run_id}", "object": kind, "created": self.created}
        return {**told, "model": self.model}


class End(NamedTuple):
    """How a run ended that has a reply."""

    result: RunResult
    reason: str
    """Without secrets; "" where it has answered."""


def completion(head: Head, said: Said, end: End) -> JsonObject:
    """A whole reply."""
    finish = FINISH[end.result.status]
    message: JsonObject = {"role": "assistant", "content": said.content, "refusal": _refusal(said.content, finish)}
    if said.reasoning:
        message["reasoning_content"] = said.reasoning
    choice: JsonObject = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return {
        **head.fields("chat.completion"),
        "choices": [choice],
        "usage": usage(end.result),
        "tenlines": facts(end),
    }


def _refusal(content: str, finish: Finish) -> str | None:
    return content or "the model declined to answer" if finish == "content_filter" else None


class Chunks:
    """Writes the pieces of a streamed reply.

    Args:
        with_usage: Whether a last chunk says what was used.
    """

    def __init__(self, head: Head, with_usage: bool) -> None:
        self._head, self._with_usage = head, with_usage

    def first(self) -> JsonObject:
        """The beginning."""
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def piece(self, said: Said) -> JsonObject:
        """A piece."""
        delta: JsonObject = {}
        if said.content:
            delta["content"] = said.content
        if said.reasoning:
            delta["reasoning_content"] = said.reasoning
        return self._chunk(delta)

    def last(self, end: End) -> list[JsonObject]:
        """The end."""
        last = {**self._chunk({}, FINISH[end.result.status]), "tenlines": facts(end)}
        if not self._with_usage:
            return [last]
        fields = self._head.fields("chat.completion.chunk")
        return [last, {**fields, "choices": [], "usage": usage(end.result)}]

    def _chunk(self, delta: JsonObject, finish: Finish | None = None) -> JsonObject:
        choice: JsonObject = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk: JsonObject = {**self._head.fields("chat.completion.chunk"), "choices": [choice]}
        return {**chunk, "usage": None} if self._with_usage else chunk


def usage(result: RunResult) -> JsonObject:
    """What the whole run used, and the runs under it."""
    used = result.usage
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.total,
        "prompt_tokens_details": {"cached_tokens": used.cache_read},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }


def facts(end: End) -> JsonObject:
    """What OpenAI's objects have no place for."""
    result = end.result
    return {
        "run_id": result.run_id,
        "status": result.status,
        "reason": end.reason,
        "steps": result.steps,
        "tool_calls": result.tool_calls,
        "dollars": result.dollars,
    }


def model(name: str, created: int) -> JsonObject:
    """The agent, as a model."""
    return {"id": name, "object": "model", "created": created, "owned_by": "tenlines"}
