"""Counting the tokens of a request before it is sent, with the model's own tokenizer where one can be had offline.

A provider's report is the truth, and what is new since the last one is estimated (`core.transcript.estimate_tokens`).
This is for the first request of a run, on which nobody has reported. It needs the extra `tokens`.
"""

from __future__ import annotations

import functools
import importlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from tenlines.core.events import ToolSpec
from tenlines.core.transcript import (
    Assistant,
    Json,
    JsonObject,
    JsonValue,
    Message,
    Part,
    Result,
    Text,
    User,
    estimate_tokens,
)
from tenlines.ports import plain_name

# --- tokenizers -------------------------------------------------------------------------------------


class Tokenizer:
    """A model's own way of cutting text into tokens.

    Attributes:
        name: Name of the vocabulary: `o200k_base`.
    """

    __slots__ = ("_encoding", "name")

    def __init__(self, name: str, encoding: Any) -> None:
        self.name, self._encoding = name, encoding

    def count(self, text: str) -> int:
        """How many tokens a text is. Markers of a format in it (`<|im_end|>`) are counted as the text that they are."""
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()  # a lone surrogate is sent as something else as well
        return int(self._encoding.count(text))


def tokenizer_for(model: str) -> Tokenizer | None:
    """The tokenizer of a model.

    Args:
        model: As it stands in the journal: `openai:gpt-5`, `local`, `http://host/v1#qwen3-8b`.

    Returns:
        None where it is not known (Anthropic and Google publish none; Mistral's is not in the extra), and without the
        extra `tokens`.
    """
    name = vocabulary(model)
    return None if name is None else _load(name)


@functools.cache
def _load(name: str) -> Tokenizer | None:
    try:
        package = importlib.import_module("quicktok")  # nothing is downloaded: it carries its vocabularies
    except ImportError:
        return None
    return Tokenizer(name, package.get_encoding(name))


_VOCABULARIES = (
    ("o200k_harmony", re.compile(r"gpt-oss(?![\w.])")),
    ("o200k_base", re.compile(r"(gpt-5|gpt-4\.1|gpt-4\.5|gpt-4o|chatgpt-4o|o1|o3|o4-mini)(?![a-z\d])")),
    ("cl100k_base", re.compile(r"(gpt-4|gpt-3\.5|gpt-35)(?![\w.])")),
    ("qwen3", re.compile(r"qwen-?(2|2\.5|3)(?![\d.])")),
    ("llama3", re.compile(r"(meta-)?llama-?3(?!\d)")),
)
"""Vocabulary -> how the names of its models begin. OpenAI's are those of tiktoken 0.14 (`tiktoken/model.py`). Qwen 2 to
3 share one vocabulary, Qwen 3.5 has another."""

_NAMED = ("openai", "litellm", "ollama", "local", "http", "https")
"""First words of models whose name says what they are."""


def vocabulary(model: str) -> str | None:
    """Name of the vocabulary of a model, as in `tokenizer_for`; None where it is not known."""
    model = plain_name(model)
    if model in ("local", "local:small"):
        return "qwen3"  # Qwen2.5-Coder
    kind, _, rest = model.partition(":")
    if kind not in _NAMED:
        return None
    name = re.split(r"[/\\#]", rest)[-1].lower().removeprefix("ft:")
    return next((found for found, beginning in _VOCABULARIES if beginning.match(name)), None)


# --- requests ---------------------------------------------------------------------------------------

_MESSAGE, _REPLY = 4, 3
"""Around a message, its role included, and before the reply: OpenAI's cookbook, "How to count tokens with tiktoken"."""
_CALL, _RESULT = 12, 8
"""Around a call and, beside what is around a message, a result: the more of what the "harmony" format of gpt-oss and
the chat template of Qwen 2.5 put there; both are published."""


def count_request(tokenizer: Tokenizer, messages: Sequence[Message], tools: Iterable[ToolSpec]) -> int:
    """How many tokens a request of these messages and tools takes.

    The text is counted exactly. What formats put around it is counted by constants that OpenAI documents for some of
    its models, and is off by some tokens for each message, call and tool. Images,
    files and reasoning are estimated as in `estimate_tokens`.
    """
    texts, frame = _laid_out(tokenizer.name, messages, tools)
    return frame + sum(map(tokenizer.count, texts))


def first_count(model: str, messages: Sequence[Message], tools: Iterable[ToolSpec]) -> tuple[int, str] | None:
    """How many tokens the first request of a run takes, and the name of the tokenizer that says so.

    Takes a fraction of a second where the tokenizer has to be loaded, and then some milliseconds: of more than 200,000
    characters a hundred pieces, evenly spread, are counted, and the rest is taken to be like them.

    Returns:
        None where the tokenizer is not known or not installed.
    """
    tokenizer = tokenizer_for(model)
    if tokenizer is None:
        return None
    texts, frame = _laid_out(tokenizer.name, messages, tools)
    if sum(map(len, texts)) <= _PIECES * _PIECE:
        return frame + sum(map(tokenizer.count, texts)), tokenizer.name
    return frame + _by_sample(tokenizer, "\n".join(texts)), f"{tokenizer.name}, of a sample"


_PIECES, _PIECE = 100, 2_000


def _by_sample(tokenizer: Tokenizer, text: str) -> int:
    gap = len(text) // _PIECES
    pieces = (text[gap * number : gap * number + _PIECE] for number in range(_PIECES))
    return sum(map(tokenizer.count, pieces)) * len(text) // (_PIECES * _PIECE)


def _laid_out(vocabulary: str, messages: Sequence[Message], tools: Iterable[ToolSpec]) -> tuple[list[str], int]:
    """The texts of a request, and the tokens of what is not text."""
    tool, around = (_as_json, _TOOLS_AS_JSON) if vocabulary in _AS_JSON else (_as_declared, _TOOLS)
    texts: list[str] = []
    frame = _REPLY + sum(_message(message, texts) for message in messages)
    described = [tool(one, texts) for one in tools]
    return texts, frame + sum(described) + (around if described else 0)


def _message(message: Message, texts: list[str]) -> int:
    match message:
        case User(parts):
            return _MESSAGE + _parts(parts, texts)
        case Result(_, name, _, parts):
            texts.append(name)
            return _MESSAGE + _RESULT + _parts(parts, texts)
        case Assistant(text, calls, opaque):
            texts.append(text)
            for call in calls:
                texts += (call.name, call.arguments)
            return _MESSAGE + _CALL * len(calls) + _parts(opaque, texts)
        case _:
            texts.append(message.text)
            return _MESSAGE


def _parts(parts: Sequence[Part], texts: list[str]) -> int:
    tokens = 0
    for part in parts:
        match part:
            case Text(text):
                texts.append(text)
            case Json(value) if text := _written(value):
                texts.append(text)
            case _:
                tokens += estimate_tokens(User((part,))) - estimate_tokens(User(()))
    return tokens


def _written(value: JsonValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


# --- tools ------------------------------------------------------------------------------------------


_TOOL, _PROPERTIES, _PROPERTY, _VALUES, _VALUE, _TOOLS = 7, 3, 3, -3, 3, 12
"""Around a tool, its properties, each of them, the values of an enumeration, each of them, and all tools together:
OpenAI's cookbook, as above."""
_AS_JSON, _TOOLS_AS_JSON = ("qwen3", "llama3"), 85
"""Models whose chat templates write tools as JSON, and what Qwen's says around them."""


def _as_json(tool: ToolSpec, texts: list[str]) -> int:
    function: JsonObject = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    texts.append(_written({"type": "function", "function": function}))
    return 0


def _as_declared(tool: ToolSpec, texts: list[str]) -> int:
    """OpenAI's models are told of a tool as of a function in TypeScript."""
    texts.append(f"{tool.name}:{tool.description.removesuffix('.')}")
    return _TOOL + _schema(tool.parameters, texts)


def _schema(schema: JsonValue, texts: list[str]) -> int:
    """The properties as the cookbook counts them, at any depth; it says nothing of depth."""
    tokens = 0
    inside = [schema]
    for one in inside:
        if isinstance(one, list):
            inside += one
        elif isinstance(one, dict):
            properties = one.get("properties")
            if isinstance(properties, dict) and properties:
                tokens += _PROPERTIES + sum(_property(name, value, texts) for name, value in properties.items())
            inside += one.values()
    return tokens


def _property(name: str, schema: JsonValue, texts: list[str]) -> int:
    if not isinstance(schema, dict):
        texts.append(name)
        return _PROPERTY
    described = str(schema.get("description") or "").removesuffix(".")
    texts.append(f"{name}:{schema.get('type') or ''}:{described}")
    values = schema.get("enum")
    if not isinstance(values, list) or not values:
        return _PROPERTY
    texts += map(str, values)
    return _PROPERTY + _VALUES + _VALUE * len(values)
