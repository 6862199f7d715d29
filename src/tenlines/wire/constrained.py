"""A text protocol for small local models: every reply is one JSON object, held to a schema by the server.

Small models garble a server's own tool-call format; held to a schema they cannot. A reply is either

    {"tool": "get_order", "arguments": {"order_id": "1042"}}      or      {"final_answer": "It is on its way."}

The tools are described in the system text, calls stand in the history as the same objects, results as user text.
The encoding is append-only, so that the server's prefix cache holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import msgspec

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import encodable
from tenlines.core.transcript import (
    Assistant,
    JsonObject,
    JsonValue,
    Message,
    Note,
    Reply,
    Result,
    System,
    ToolCall,
    User,
)
from tenlines.wire.format import Piece, Written
from tenlines.wire.openai_chat import encoding
from tenlines.wire.openai_chat.stream import StreamDecoder as ChatStreamDecoder
from tenlines.wire.parts import NOTE_PREFIX, plain_text
from tenlines.wire.profile import Target

_INSTRUCTIONS = """\
You can use these tools:
{tools}

Reply with one JSON object and nothing else. To use a tool:
{{"tool": NAME, "arguments": {{...}}}}
You are then told its result. When you know the full answer:
{answer}

Use a tool for every fact that you do not have; never invent a value. When a result gives an id that another tool \
takes, use that tool next. Use a tool that changes something only when you were asked to."""

_ANSWER = '{"final_answer": TEXT}'
_AFTER_RESULT = "If this does not answer the question in full, use the next tool."
"""Stands behind every result. Small models go by what they read last: without it they stop after the first call.

Both texts were chosen by trial with a model of 1.5 billion parameters, on a dozen tasks with four tools. A worked
example, a list of rules, a thought before each call, or the question said again all did worse.
"""


class Encoder:
    """Messages of one run as plain chat messages: each is encoded once and kept."""

    def __init__(self) -> None:
        self._messages: list[JsonValue] = []
        self._taken = 0
        self._specs: tuple[ToolSpec, ...] | None = None

    def extend(
        self, view: Sequence[Message], specs: tuple[ToolSpec, ...], new_from: int | None = None
    ) -> list[JsonValue]:
        """Take in what is new; O(new). All encoded messages are returned: the list that is kept.

        The leading system messages and the tools make one system message, because many chat templates take only one.
        When `new_from` lies before what was kept, or the tools changed, everything from there on is encoded again.
        """
        if specs is not self._specs:
            self._messages, self._taken, self._specs = [], 0, specs
        systems = _leading_systems(view) if not self._taken else ()
        if not self._taken:
            text = _system_text([message.text for message in systems], specs)
            self._messages = [{"role": "system", "content": text}] if text else []
            self._taken = self._lead = len(systems)
        keep = len(view) if new_from is None else max(new_from, self._lead)
        if keep < self._taken:
            del self._messages[keep - self._taken :]
            self._taken = keep
        for index in range(self._taken, len(view)):
            self._messages.append(encode_message(view[index]))
        self._taken = len(view)
        return self._messages

    _lead = 0
    """How many messages of the transcript went into the first one."""

    def response_format(self, specs: tuple[ToolSpec, ...], tool_choice: str) -> JsonObject | None:
        """The schema that replies are held to; None without tools, where a reply is plain text."""
        return response_format(specs, tool_choice) if specs else None


def _leading_systems(view: Sequence[Message]) -> Sequence[System]:
    found: list[System] = []
    for message in view:
        if not isinstance(message, System):
            break
        found.append(message)
    return found


def _system_text(texts: list[str], specs: tuple[ToolSpec, ...]) -> str:
    if specs:
        takes_answer = next((spec.name for spec in specs if spec.answer), "")
        answer = f'{{"tool": {json.dumps(takes_answer)}, "arguments": {{...}}}}' if takes_answer else _ANSWER
        texts = [*texts, _INSTRUCTIONS.format(tools="\n".join(map(describe, specs)), answer=answer)]
    return "\n\n".join(text for text in texts if text)


def describe(spec: ToolSpec) -> str:
    """One tool in the fewest words: `- get_order(order_id: string): Look up an order.`"""
    properties = spec.parameters.get("properties")
    required = spec.parameters.get("required")
    needed = required if isinstance(required, list) else []
    words = []
    for name, schema in (properties if isinstance(properties, dict) else {}).items():
        optional = "" if name in needed else "?"
        words.append(f"{name}{optional}: {_type_words(schema)}")
    lines = [f"- {spec.name}({', '.join(words)})" + (f": {spec.description.strip()}" if spec.description else "")]
    for name, schema in (properties if isinstance(properties, dict) else {}).items():
        about = schema.get("description") if isinstance(schema, dict) else None
        if isinstance(about, str) and about.strip():
            lines.append(f"  {name}: {about.strip()}")
    return "\n".join(lines)


def _type_words(schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        return "any"
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_type_words(schema.get('items'))}"
    return kind if isinstance(kind, str) else "any"


def encode_message(message: Message) -> JsonObject:
    """One message. A pure function of it."""
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case User(parts):
            return {"role": "user", "content": plain_text(parts)}
        case Note(text):
            return {"role": "user", "content": NOTE_PREFIX + text}
        case Result(_, name, _, parts):
            return {"role": "user", "content": f"Result of {name}: {plain_text(parts)}\n\n{_AFTER_RESULT}"}
        case Assistant(text, calls):
            if not calls:
                return {"role": "assistant", "content": json.dumps({"final_answer": text}, ensure_ascii=False)}
            lines = [text] if text else []
            lines += [f'{{"tool": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}' for call in calls]
            return {"role": "assistant", "content": "\n".join(lines)}


# --- the schema -------------------------------------------------------------------------------------


def response_format(specs: tuple[ToolSpec, ...], tool_choice: str) -> JsonObject:
    """The `response_format` of a request: one object for each tool that may be called, or the final answer; where a
    tool takes that, its call in place of text."""
    forms: list[JsonValue] = []
    if tool_choice != "none":
        chosen = [spec for spec in specs if tool_choice in ("auto", "required", spec.name)]
        forms = [_call_form(spec) for spec in chosen]
    if tool_choice == "none" or not forms or (tool_choice == "auto" and not any(spec.answer for spec in specs)):
        forms.append(_object({"final_answer": {"type": "string"}}))
    schema: JsonValue = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}


def _call_form(spec: ToolSpec) -> JsonObject:
    arguments = simple_schema(spec.parameters)
    if "properties" not in arguments:
        arguments = _object({})
    return _object({"tool": {"const": spec.name}, "arguments": arguments})


def _object(properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_KEPT = ("type", "enum", "const", "required", "minItems", "maxItems")
_DEEPEST = 8
"""Nesting at which a (recursive) schema is cut; anything is allowed below."""


def simple_schema(schema: JsonObject) -> JsonObject:
    """The part of a schema that llama.cpp's converter surely takes: structure, types, enums; references inlined.

    What is left out (patterns, bounds, formats) still holds: the tool validates its arguments, and the model is told.
    """
    definitions = schema.get("$defs", schema.get("definitions"))
    return _simple(schema, definitions if isinstance(definitions, dict) else {}, 0)


def _simple(schema: JsonValue, definitions: JsonObject, depth: int) -> JsonObject:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return _simple(definitions.get(reference.rsplit("/", 1)[-1]), definitions, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            forms: list[JsonValue] = [_simple(option, definitions, depth + 1) for option in options]
            # of several that must all hold, the first alone is a constraint that is surely not too narrow
            return {"anyOf": forms} if key != "allOf" else _simple(options[0], definitions, depth + 1)
    out: JsonObject = {key: schema[key] for key in _KEPT if key in schema}
    properties = schema.get("properties")
    if isinstance(properties, dict) and properties:
        out["properties"] = {name: _simple(inner, definitions, depth + 1) for name, inner in properties.items()}
        out["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        out["additionalProperties"] = _simple(schema["additionalProperties"], definitions, depth + 1)
    if "items" in schema:
        out["items"] = _simple(schema["items"], definitions, depth + 1)
    return out


def encode_request(
    target: Target,
    messages: list[JsonValue],
    response_format: JsonObject | None,
    *,
    max_output_tokens: int | None = None,
    stream: bool = False,
) -> JsonObject:
    """The body of a request."""
    body = encoding.encode_request(target, messages, [], max_output_tokens=max_output_tokens, stream=stream)
    if response_format is not None:
        body["response_format"] = response_format
    return body


# --- decoding ---------------------------------------------------------------------------------------

_FENCED = re.compile(r"\s*```(?:json)?\s*(\{.*\})\s*```\s*", re.DOTALL)


def read_reply(reply: Reply) -> Reply:
    """A reply whose text is the object of this protocol, as the call or the answer that it is.

    Text that is no JSON object is taken as the answer (the server did not hold the model to the schema); an object
    that is neither a call nor an answer is malformed. Of a reply that was cut, the words of the answer are kept.
    """
    if reply.stop == "length":
        begun = _ANSWER_BEGINS.match(reply.text)
        words = _ANSWER_TEXT.match(reply.text, begun.end()) if begun else None
        return msgspec.structs.replace(reply, text=_unescaped(words[0]) if words else "")
    if reply.calls or reply.stop not in ("end", "tool_calls", "stop_sequence"):
        return reply
    fenced = _FENCED.fullmatch(reply.text)
    try:
        value = json.loads(fenced[1] if fenced else reply.text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return _remarked(reply, "the reply is not the JSON object that was asked for; taken as text")
    tool, answer = value.get("tool"), value.get("final_answer")
    if isinstance(tool, str) and "final_answer" not in value:
        raw = json.dumps(value["arguments"], ensure_ascii=False) if "arguments" in value else ""
        call = ToolCall("", encodable(tool), encodable(raw))
        return msgspec.structs.replace(reply, text="", calls=(call,), stop="tool_calls")
    if isinstance(answer, str) and "tool" not in value:
        return msgspec.structs.replace(reply, text=encodable(answer))
    remark = "the reply is a JSON object, but neither a call nor a final answer"
    return _remarked(msgspec.structs.replace(reply, stop="malformed_call"), remark)


def _remarked(reply: Reply, remark: str) -> Reply:
    return msgspec.structs.replace(reply, remarks=(*reply.remarks, remark)) if reply.text.strip() else reply


_ANSWER_BEGINS = re.compile(r'\s*\{\s*"final_answer"\s*:\s*"')
_ANSWER_TEXT = re.compile(r'(?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4})*')
_HALF_CHARACTER = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")


class StreamDecoder:
    """Streams the words of the final answer, and the arguments of a call, not the JSON around them."""

    def __init__(self, provider: str, model: str) -> None:
        self._chat = ChatStreamDecoder(provider, model)
        self._pending = ""
        self._in_answer = False
        self._call: _Arguments | None = None

    def feed(self, chunk: JsonValue) -> Piece:
        """Take in one chunk. Raises as `openai_chat.stream.StreamDecoder.feed` does."""
        piece = self._chat.feed(chunk)
        if self._call is not None:
            return Piece("", piece.reasoning, written=(self._call.take(piece.text),))
        self._pending += piece.text
        if not self._in_answer:
            if called := _CALL_BEGINS.match(self._pending):
                self._call = _Arguments(called[1])
                return Piece("", piece.reasoning, written=(self._call.take(self._pending[called.end() :]),))
            begun = _ANSWER_BEGINS.match(self._pending)
            if begun is None:
                return Piece("", piece.reasoning)
            self._in_answer, self._pending = True, self._pending[begun.end() :]
        found = _ANSWER_TEXT.match(self._pending)
        raw = found[0] if found else ""
        half = _HALF_CHARACTER.search(raw)
        if half and not self._pending.startswith('"', len(raw)):
            raw = raw[: half.start()]  # the other half of the character is on its way
        self._pending = self._pending[len(raw) :]
        return Piece(_unescaped(raw), piece.reasoning)

    def finish(self) -> Reply:
        """The whole reply, once the stream has ended. Raises as `openai_chat.stream.StreamDecoder.finish` does."""
        return read_reply(self._chat.finish())


_CALL_BEGINS = re.compile(r'\s*\{\s*"tool"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*(?=\{)')


class _Arguments:
    """The object that a call's arguments are, out of the text around it."""

    def __init__(self, name: str) -> None:
        self._name, self._depth = name, 0
        self._in_text = self._is_escaped = self._is_over = False

    def take(self, text: str) -> Written:
        """What of the text belongs to the object."""
        if self._is_over:
            return Written(self._name, "")
        for at, char in enumerate(text):
            self._mark(char)
            if not self._depth:
                self._is_over = True
                return Written(self._name, text[: at + 1])
        return Written(self._name, text)

    def _mark(self, char: str) -> None:
        if self._is_escaped:
            self._is_escaped = False
        elif char == "\\":
            self._is_escaped = self._in_text
        elif char == '"':
            self._in_text = not self._in_text
        elif not self._in_text and char in "{}":
            self._depth += 1 if char == "{" else -1


def _unescaped(raw: str) -> str:
    try:
        text: str = json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return ""  # an escape that JSON does not know: for eyes only, so nothing is lost
    return encodable(text)
