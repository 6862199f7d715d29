"""Whose format a body, a list of messages or a dump is in. Pure: it looks at JSON and at nothing else.

Every message says which formats it would fit, and which one alone writes such a thing (a mark). The format with the
most marks wins, then the one that most messages fit. Short histories of plain text fit many formats alike: then the
first of `ORDER` is taken, and the others are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.dumps import agents, langchain, otel
from tenlines.wire.dumps.ai_sdk import NO_TOOLS, TOOL_PART

ORDER = (
    "openai_chat",
    "openai_responses",
    "anthropic",
    "gemini",
    "bedrock",
    "mistral",
    "cohere",
    "ollama",
    "agents",
    "langchain",
    "ai_sdk",
    "pydantic_ai",
    "otel",
)
"""Everything that is recognised; of several that fit alike, the first is taken."""

LOOKED_AT = 200
"""Messages that are looked at: the rest of a long history is no other format."""


class Recognised(NamedTuple):
    """What something was taken for.

    Attributes:
        name: A name of `ORDER`: of a wire format, or of a source of dumps.
        others: What it fits just as well.
        reason: One sentence for people.
    """

    name: str
    others: tuple[str, ...]
    reason: str


class _Sign(NamedTuple):
    """What one message or one field says."""

    fits: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    why: str = ""


def recognise(value: JsonValue) -> Recognised | None:
    """What a body, a bare list of messages, or a list of bodies is; None when it is nothing that is known here."""
    signs = list(_signs(value))
    marks = _counted(sign.marks for sign in signs)
    fits = _counted((*sign.fits, *sign.marks) for sign in signs)
    if not fits:
        return None
    best = max((marks.get(name, 0), fits[name]) for name in fits)
    names = [name for name in ORDER if name in fits and (marks.get(name, 0), fits[name]) == best]
    return Recognised(names[0], tuple(names[1:]), _reason(names, signs))


def _counted(groups: Iterable[tuple[str, ...]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for group in groups:
        for name in set(group):
            counts[name] = counts.get(name, 0) + 1
    return counts


def _reason(names: list[str], signs: list[_Sign]) -> str:
    name = names[0]
    why = next((sign.why for sign in signs if name in sign.marks and sign.why), "")
    if not why:
        why = "its messages have the form of that format"
    if len(names) == 1:
        return f"taken as {name}: {why}"
    return f"taken as {name}: {why}; {', '.join(names[1:])} would fit as well"


# --- bodies -----------------------------------------------------------------------------------------


def messages_in(value: JsonValue) -> tuple[list[JsonValue], str] | None:
    """The messages of a body or a dump, with the path of their list; None when there is no such list."""
    if isinstance(value, list):
        return value, ""
    if isinstance(value, dict):
        for field in ("messages", "contents", "input", "items"):
            held = value.get(field)
            if isinstance(held, list):
                return held, field
    return None


def is_body(value: JsonValue) -> bool:
    """Whether this is an object around messages, and no message itself."""
    if not isinstance(value, dict):
        return False
    if agents.is_state(value) or otel.attributes(value):
        return True
    kind = value.get("type")
    if (isinstance(kind, str) and kind in _ITEMS) or "role" in value:
        return False
    return messages_in(value) is not None or _is_prompt(value)


def _is_prompt(value: JsonObject) -> bool:
    """A request of the Responses format whose input is mere text."""
    return isinstance(value.get("input"), str) and bool({"instructions", "model"} & value.keys())


def _signs(value: JsonValue) -> Iterator[_Sign]:
    if isinstance(value, list):
        bodies = [one for one in value[:LOOKED_AT] if is_body(one)]
        if bodies:
            for body in bodies[:20]:
                yield from _body(body)
            return
        for index, message in enumerate(value[:LOOKED_AT]):
            yield from _message(message, f"[{index}]")
    elif is_body(value):
        yield from _body(value)
    elif isinstance(value, dict):
        yield from _message(value, "it")


def _body(body: JsonValue) -> Iterator[_Sign]:
    if not isinstance(body, dict):
        return
    if agents.is_state(body):
        yield _Sign((), ("agents",), "it is the state of a run")
        return
    if otel.attributes(body):
        yield _Sign((), ("otel",), "it has `gen_ai` attributes")
        return
    for key, value in body.items():
        yield from _field(key, value)
    if _is_prompt(body):
        yield _Sign((), ("openai_responses",), "its `input` is a prompt")
    found = messages_in(body)
    if found is not None:
        for index, message in enumerate(found[0][:LOOKED_AT]):
            yield from _message(message, f"{found[1]}[{index}]")


_FIELDS = {
    "contents": "gemini",
    "systemInstruction": "gemini",
    "system_instruction": "gemini",
    "generationConfig": "gemini",
    "safetySettings": "gemini",
    "toolConfig": "",  # of Gemini and of Bedrock
    "input": "openai_responses",
    "instructions": "openai_responses",
    "previous_response_id": "openai_responses",
    "max_output_tokens": "openai_responses",
    "store": "",
    "inferenceConfig": "bedrock",
    "modelId": "bedrock",
    "additionalModelRequestFields": "bedrock",
    "guardrailConfig": "bedrock",
    "anthropic_version": "anthropic",
    "stop_sequences": "",
    "max_completion_tokens": "openai_chat",
    "logit_bias": "openai_chat",
    "stream_options": "openai_chat",
    "safe_prompt": "mistral",
    "random_seed": "mistral",
    "strict_tools": "cohere",
    "citation_options": "cohere",
    "keep_alive": "ollama",
    "options": "ollama",
}
"""Fields that only one format has."""

_MODELS = {
    "mistral": ("mistral-", "codestral", "ministral", "magistral", "devstral", "pixtral", "open-mi"),
    "cohere": ("command-", "c4ai-"),
}
"""How the names of models begin whose makers have a format of their own that looks like Chat Completions."""


def _field(key: str, value: JsonValue) -> Iterator[_Sign]:
    name = _FIELDS.get(key)
    if name and not (key == "input" and not isinstance(value, list)):
        yield _Sign((), (name,), f"it has `{key}`")
    elif key == "system":
        pieces = value if isinstance(value, list) else []
        untyped = bool(pieces) and all(isinstance(one, dict) and "type" not in one for one in pieces)
        yield _Sign((), ("bedrock" if untyped else "anthropic",), "its system prompt stands beside the messages")
    elif key == "thinking" and isinstance(value, dict):
        yield _Sign((), ("anthropic",), "it has `thinking`")
    elif key == "toolConfig" and isinstance(value, dict):
        one = "bedrock" if "tools" in value else "gemini"
        yield _Sign((), (one,), "it has `toolConfig`")
    elif key == "tools" and isinstance(value, list):
        yield from (_tool(one) for one in value[:3])
    elif key == "model" and isinstance(value, str):
        for one, beginnings in _MODELS.items():
            if value.rsplit("/", 1)[-1].startswith(beginnings):
                yield _Sign((), (one,), f"its model is {value}")


def _tool(tool: JsonValue) -> _Sign:
    if not isinstance(tool, dict):
        return _Sign()
    if "input_schema" in tool:
        return _Sign((), ("anthropic",), "its tools have `input_schema`")
    if "functionDeclarations" in tool or "function_declarations" in tool:
        return _Sign((), ("gemini",), "its tools are function declarations")
    if isinstance(tool.get("function"), dict):
        return _Sign(("openai_chat", "mistral", "cohere", "ollama"))
    if tool.get("type") == "function" and "name" in tool:
        return _Sign(("openai_responses", "agents"))
    return _Sign()


# --- messages ---------------------------------------------------------------------------------------

_CHATS = ("openai_chat", "mistral", "cohere", "ollama")
_RESPONSES = ("openai_responses", "agents")
_ANYONE = ("anthropic", *_CHATS, *_RESPONSES, "ai_sdk")
_BY_ROLE: dict[str, tuple[str, ...]] = {
    "system": (*_CHATS, *_RESPONSES, "ai_sdk"),
    "developer": ("openai_chat", *_RESPONSES),
    "user": _ANYONE,
    "assistant": _ANYONE,
    "tool": (*_CHATS, "ai_sdk"),
    "function": ("openai_chat",),
}
_ITEMS = frozenset(
    {
        "message",
        "function_call",
        "function_call_output",
        "function_call_result",
        "custom_tool_call",
        "custom_tool_call_output",
        "reasoning",
        "item_reference",
        "compaction",
        "web_search_call",
        "file_search_call",
        "computer_call",
        "computer_call_output",
        "code_interpreter_call",
        "image_generation_call",
        "local_shell_call",
        "mcp_call",
        "mcp_list_tools",
    }
)


def _message(message: JsonValue, path: str) -> Iterator[_Sign]:
    if not isinstance(message, dict):
        return
    role, kind = message.get("role"), message.get("type")
    if langchain.message(message) is not None and not (isinstance(role, str) and role in _BY_ROLE):
        yield _Sign((), ("langchain",), f"{path} is a message of LangChain")
    elif message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list):
        yield _Sign((), ("pydantic_ai",), f"{path} is a {message['kind']} of Pydantic AI")
    elif isinstance(message.get("parts"), list):
        yield from _with_parts(message, path)
    elif kind == "message" and _is_of_claude(message):
        yield _Sign((), ("anthropic",), f"{path} is a message as Anthropic sends it")
    elif isinstance(kind, str) and kind in _ITEMS:
        names = ("agents",) if "callId" in message or kind == "function_call_result" else _RESPONSES
        yield _Sign((), names, f"{path} is an item of type {kind}")
    elif isinstance(role, str) and role in _BY_ROLE:
        yield from _with_role(message, role, path)


def _is_of_claude(message: JsonObject) -> bool:
    """Whether a message of type `message` is a reply of Anthropic's, which logs keep whole, and no item of OpenAI's."""
    content = message.get("content")
    kinds = {block.get("type") for block in content if isinstance(block, dict)} if isinstance(content, list) else set()
    return "stop_reason" in message or bool(kinds & {"text", "thinking", "tool_use", "tool_result"})


def _with_parts(message: JsonObject, path: str) -> Iterator[_Sign]:
    """A message with `parts`: Gemini's have no types, the others tell themselves apart by what stands in them."""
    pieces = message["parts"]
    signs = [_part(piece, path) for piece in (pieces if isinstance(pieces, list) else [])[:50]]
    marked = [sign for sign in signs if sign.marks]
    yield from marked
    if not marked and (message.get("role") in ("user", "model", "assistant", "system") or "role" not in message):
        yield _Sign(("gemini",) if message.get("role") == "model" else ("gemini", "ai_sdk", "otel"))


def _part(piece: JsonValue, path: str) -> _Sign:
    if not isinstance(piece, dict):
        return _Sign()
    kind = piece.get("type")
    if not isinstance(kind, str):
        return _Sign((), ("gemini",), f"{path} has parts without types")
    if kind in ("tool_call", "tool_call_response", "blob", "uri") or (
        kind in ("text", "reasoning") and "content" in piece
    ):
        return _Sign((), ("otel",), f"{path} has a part of type {kind} with OpenTelemetry's fields")
    is_tool = kind.startswith(TOOL_PART) and kind not in NO_TOOLS
    if is_tool or kind in _UI_PARTS or (kind == "text" and "text" in piece):
        return _Sign((), ("ai_sdk",), f"{path} has a part of type {kind}")
    return _Sign()


_UI_PARTS = ("dynamic-tool", "tool-invocation", "step-start", "reasoning", "file", "source-url", "source-document")


def _with_role(message: JsonObject, role: str, path: str) -> Iterator[_Sign]:
    fits = set(_BY_ROLE[role])
    content = message.get("content")
    if isinstance(content, list):
        if role in ("user", "assistant"):
            fits.add("bedrock")
        for piece in content[:50]:
            sign = _piece(piece, role, path)
            if sign.marks:
                yield sign
            if sign.fits:
                fits &= {*sign.fits, *sign.marks}
    yield from _beside_content(message, path)
    if "tool_calls" in message or "tool_call_id" in message:
        fits &= set(_CHATS)
        yield from _calls(message.get("tool_calls"), path)
    if fits:
        yield _Sign(tuple(name for name in ORDER if name in fits))


_BESIDE = {
    "tool_plan": "cohere",
    "tool_name": "ollama",
    "images": "ollama",
    "function_call": "openai_chat",
    "reasoning_content": "openai_chat",
    "reasoning_details": "openai_chat",
    "refusal": "openai_chat",
    "toolInvocations": "ai_sdk",
    "experimental_attachments": "ai_sdk",
}
"""Fields of messages that only one format has."""


def _beside_content(message: JsonObject, path: str) -> Iterator[_Sign]:
    for key, name in _BESIDE.items():
        if message.get(key) is not None:
            yield _Sign((), (name,), f"{path} has `{key}`")
    if isinstance(message.get("thinking"), str):
        yield _Sign((), ("ollama",), f"{path} has `thinking`")
    if message.get("role") == "function":
        yield _Sign((), ("openai_chat",), f"{path} has the role `function`")


def _calls(calls: JsonValue, path: str) -> Iterator[_Sign]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(call, dict):
            continue
        if isinstance(function.get("arguments"), dict) and "id" not in call:
            yield _Sign((), ("ollama",), f"{path} has a call without an id whose arguments are an object")
        elif isinstance(function.get("arguments"), str) and isinstance(call.get("id"), str):
            yield _Sign(("openai_chat", "mistral", "cohere"))


_TYPED: dict[str, tuple[str, ...]] = {
    "text": ("openai_chat", "anthropic", "mistral", "cohere", "ai_sdk"),
    "image_url": ("openai_chat", "mistral", "cohere"),
    "input_audio": ("openai_chat", "mistral"),
    "refusal": ("openai_chat", *_RESPONSES),
    "file": ("openai_chat", "ai_sdk"),
    "image": ("anthropic", "ai_sdk"),
    "document": ("anthropic", "cohere"),
    "thinking": ("anthropic", "mistral"),
}
"""Types of content parts that several formats have."""

_TYPED_ALONE = {
    "tool_use": "anthropic",
    "tool_result": "anthropic",
    "redacted_thinking": "anthropic",
    "server_tool_use": "anthropic",
    "search_result": "anthropic",
    "tool-call": "ai_sdk",
    "tool-result": "ai_sdk",
    "reasoning": "ai_sdk",
    "document_url": "mistral",
    "reference": "mistral",
}

_BEDROCK_PARTS = frozenset(
    {"text", "image", "document", "video", "toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent"}
)


def _piece(piece: JsonValue, role: str, path: str) -> _Sign:
    """One piece of a list of content."""
    if not isinstance(piece, dict):
        return _Sign()
    kind = piece.get("type")
    if not isinstance(kind, str):
        mine = len(piece) == 1 and piece.keys() <= _BEDROCK_PARTS
        return _Sign((), ("bedrock",), f"{path} has a block without a type") if mine else _Sign()
    if kind in ("input_text", "output_text", "input_image", "input_file", "summary_text"):
        return _Sign((), _RESPONSES, f"{path} has a part of type {kind}")
    if kind in _TYPED_ALONE:
        return _Sign((), (_TYPED_ALONE[kind],), f"{path} has a block of type {kind}")
    name = _by_fields(kind, piece)
    if name:
        return _Sign((), (name,), f"{path} has a block of type {kind} with the fields of that format")
    return _Sign(_TYPED.get(kind, ()))


def _by_fields(kind: str, piece: JsonObject) -> str:
    """Whose a part is whose type several formats have; "" when its fields do not say."""
    match kind:
        case "image" | "document" if isinstance(piece.get("source"), dict):
            return "anthropic"
        case "document" if isinstance(piece.get("document"), dict):
            return "cohere"
        case "image" if isinstance(piece.get("image"), str):
            return "ai_sdk"
        case "file":
            return "openai_chat" if isinstance(piece.get("file"), dict) else "ai_sdk" if "mediaType" in piece else ""
        case "thinking":
            return "mistral" if isinstance(piece.get("thinking"), list) else "anthropic"
        case "input_audio":
            return "mistral" if isinstance(piece.get("input_audio"), str) else "openai_chat"
        case "text" if "cache_control" in piece or "citations" in piece:
            return "anthropic"
        case _:
            return ""
