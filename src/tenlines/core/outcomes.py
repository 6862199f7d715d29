"""The text of every result that is not a tool's own. It says what is known, names the tool, helps to do better.

One rule above all (design law 7): a text never claims what is not known. A call that may have taken effect is
not called cancelled, and nobody is told to simply try it again.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

import msgspec

from tenlines.core.transcript import JsonObject, JsonValue

QUOTE = 300
"""Characters of a model's own words that are quoted back to it."""
DEEPEST = 64
"""Levels of nesting in arguments. How deep a parser gets before Python's own limit depends on who called it, and a
replay must read what the live run read."""
LISTED = 20
"""Tool names that are listed to a model that asked for one that does not exist."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class ParsedArguments(msgspec.Struct, frozen=True):
    """The arguments of a call as an object, or what is wrong with them."""

    value: JsonObject | None
    problem: str = ""


def parse_arguments(raw: str) -> ParsedArguments:
    """Read the text that a model wrote as the arguments of a call.

    Nothing is guessed: broken JSON, trailing text, NaN, and anything but an object are problems. Empty text and
    `null` mean "no arguments", which many servers send for tools without parameters.
    """
    text = raw.strip()
    if text in ("", "null"):
        return ParsedArguments({})
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        return ParsedArguments(None, "are nested too deeply to be read")
    except UnicodeEncodeError:
        return ParsedArguments(None, "are not valid JSON: they hold characters that are not Unicode text")
    except msgspec.MsgspecError as error:
        return ParsedArguments(None, f"are not valid JSON: {error}")
    if raw.count("[") + raw.count("{") > DEEPEST and _is_deeper_than(DEEPEST, value):
        return ParsedArguments(None, "are nested too deeply to be read")
    if isinstance(value, dict):
        return ParsedArguments(value)
    kinds = {list: "an array", str: "a string", bool: "true or false"}
    return ParsedArguments(
        None, f"must be one JSON object with the parameters by name, not {kinds.get(type(value), 'a number')}"
    )


def _is_deeper_than(levels: int, value: JsonValue) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(levels):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for many in inner for one in many]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def canonical(arguments: JsonObject) -> str:
    """The same arguments always give the same text: sorted keys, no spaces."""
    return msgspec.json.encode(arguments, order="deterministic").decode()


def wire_name(name: str) -> str:
    """The name as it may stand in a transcript: `[A-Za-z0-9_-]{1,64}` in every provider's format."""
    if _NAME.fullmatch(name):
        return name
    return _NOT_NAME.sub("_", name.split("<|")[0]).strip("_")[:64] or "unnamed"


def bad_arguments(tool: str, raw: str, problem: str, parameters: JsonObject) -> str:
    """The arguments could not be read, or are not an object."""
    return (
        f"{tool} did not run: the arguments {problem}. You sent: {quote(raw)} "
        f"Expected one JSON object with {parameter_words(parameters)}."
    )


def parameter_words(parameters: JsonObject) -> str:
    """The parameters of a schema in a few words: `city (string, required)`."""
    properties = parameters.get("properties")
    required = parameters.get("required")
    if not isinstance(properties, dict) or not properties:
        return "no parameters"
    needed = required if isinstance(required, list) else []
    words = []
    for name, schema in list(properties.items())[:LISTED]:
        words.append(f"{name} ({_type_words(schema)}{', required' if name in needed else ''})")
    return ", ".join(words)


def _type_words(schema: object) -> str:
    """What a schema takes: `string`, `array or null`."""
    if not isinstance(schema, dict):
        return "any"
    kind, branches = schema.get("type"), schema.get("anyOf")
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return " or ".join(str(one) for one in kind)
    if isinstance(branches, list):
        return " or ".join(dict.fromkeys(_type_words(one) for one in branches))
    return "any"


READ_RESULT = "read_result"
"""The built-in tool with which a model reads a result again."""


FINISH = "finish"
"""The built-in tool that takes the answer of a run whose answer has a schema."""


def finish_wanted(name: str) -> str:
    """Said after words, where the answer has a schema."""
    return (
        f"Words do not end this task. Call {name} with the answer; if you cannot, reply with nothing but the arguments "
        "of that call, as one JSON object."
    )


def cut_short(key: str) -> str:
    """Said behind a result that was cut, where the model can read it again."""
    return f'(The rest can be read with {READ_RESULT}(key="{key}").)'


def unknown_tool(asked: str, known: tuple[str, ...]) -> str:
    """There is no such tool; name the closest and list what there is."""
    leaked = " The name holds special tokens that leaked out of the chat template." if "<|" in asked else ""
    stem = asked.split("<|")[0]
    close = [name for name in known if stem and (name.endswith(stem) or stem.endswith(name))]
    close = close or difflib.get_close_matches(stem[:64], known, n=2, cutoff=0.55)
    hint = f" Did you mean {' or '.join(close[:2])}?" if close else ""
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    listed = f"{', '.join(known[:LISTED])}{more}" if known else "none"
    return f"There is no tool named {quote(asked, 80)}; nothing was run.{leaked}{hint} Available tools: {listed}."


def not_executed(tool: str, why: str) -> str:
    """The call certainly did not start."""
    return f"{tool} was not executed: {why}."


TRUNCATED = (
    "the reply hit the output limit, so its calls may be incomplete. Write less in one reply: "
    "split the work into smaller pieces"
)


def timed_out(tool: str, after_s: float, read_only: bool, killed: bool = False) -> str:
    """The call did not end in time."""
    head = f"{tool} did not finish within {after_s:g} s and was given up."
    if read_only:
        return f"{head} It only reads, so nothing was changed."
    state = "Its process was killed" if killed else "Its work may still be going on"
    return f"{head} {state}, and it may have taken effect: check before you do it again."


def interrupted(tool: str, read_only: bool) -> str:
    """The call had started when the run was cancelled or its process died."""
    if read_only:
        return f"{tool} was interrupted before it gave a result. It only reads, so nothing was changed."
    return (
        f"{tool} had started and was interrupted; no result was recorded. Whether it took effect is not known: "
        "it may have. Check before you do it again."
    )


def denied(tool: str, by: str, reason: str) -> str:
    """Somebody did not allow the call."""
    who = "this agent's policy" if by == "policy" else sendable(by) or "the person in charge"
    why = f": {bounded(sendable(reason))}" if reason else ""
    return f"{tool} was not run: {who} did not allow it{why.rstrip('.')}. Do not ask for the same call again."


def doubt_settled(tool: str, by: str, reason: str) -> str:
    """The call may have taken effect before a crash, and a person decided that it is not run again."""
    words = f" {sendable(by) or 'A person'} says: {bounded(sendable(reason))}" if reason else ""
    return f"{interrupted(tool, read_only=False)} It was not run again.{words}"


def edited(tool: str, call_id: str, by: str, arguments: str) -> str:
    """The call ran with other arguments than the model wrote."""
    who = "The agent's policy" if by == "policy" else sendable(by) or "A person"
    return f"{who} changed the arguments of your call {call_id} of {tool} before it ran. It ran with: {arguments}"


def undone(tools: list[str]) -> str:
    """Calls were taken back after the run had stopped."""
    return f"What these calls did was undone after the run had stopped: {', '.join(tools)}. Take it as not done."


def unrecorded(tool: str) -> str:
    """A call in a history from elsewhere that has no result. Nobody knows even whether it started."""
    return (
        f"{tool}: no result was recorded. Whether it ran and took effect is not known: it may have. "
        "Check before you do it again."
    )


def raised(tool: str, error_type: str, message: str) -> str:
    """The tool raised an exception. Its message is passed on, its traceback is not."""
    return f"{tool} failed: {error_type}: {message}" if message else f"{tool} failed: {error_type} (without a message)"


def quote(text: str, limit: int = QUOTE) -> str:
    """A bounded, one-line quote."""
    clean = text.encode("utf-8", "replace").decode()
    shown = clean if len(clean) <= limit else f"{clean[: limit // 2]} [...] {clean[-limit // 3 :]}"
    return f"{shown!r}" + (f" ({len(text):,} characters)" if len(clean) > limit else "")


_UNSENDABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
ERROR_CHARS = 4000
"""How much of an exception's message a model is shown."""


def encodable(text: str) -> str:
    """Text that encodes as UTF-8, which every store and every provider needs: halves of characters that stand side by
    side (JSON escapes may split them) are joined, lone halves become U+FFFD, everything else stays."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def encodable_value(value: Any) -> Any:
    """The same for every text in a tree of lists and dicts, keys included."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list | tuple):
        return [encodable_value(one) for one in value]
    if isinstance(value, dict):
        return {encodable_value(key): encodable_value(one) for key, one in value.items()}
    return value


def sendable(text: str) -> str:
    """Encodable text that a terminal takes too: control characters other than tab and line breaks become visible
    escapes such as `\\x1b`."""
    if _UNSENDABLE.search(text) is None:
        return text
    return _CONTROL.sub(lambda one: f"\\x{ord(one[0]):02x}", encodable(text))


def bounded(text: str, limit: int = ERROR_CHARS) -> str:
    """The head and the tail of a long message, and how much is missing."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 4
    return f"{text[:head]} [... {len(text) - head - tail:,} characters left out ...] {text[-tail:]}"
