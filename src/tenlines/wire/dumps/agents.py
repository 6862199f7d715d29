"""What the OpenAI Agents SDK keeps: items of the Responses format, or the state of a run that can be resumed."""

from __future__ import annotations

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.dumps.dump import Dump, entries
from tenlines.wire.json_values import items, obj, string
from tenlines.wire.openai_responses.turns import unfold
from tenlines.wire.turns import Turn


def is_state(value: JsonValue) -> bool:
    """Whether this is the state of a run, as it was written to go on later."""
    held = obj(value)
    return "$schemaVersion" in held and bool({"original_input", "originalInput"} & held.keys())


def read(value: JsonValue) -> Dump:
    """A list of items (a session, `to_input_list()`), or the state of a run."""
    if isinstance(value, dict) and is_state(value):
        return Dump(tuple(_state(value)))
    field = "items" if isinstance(obj(value).get("items"), list) else "input"
    return Dump(tuple(unfold(_respelled(item), path) for item, path in entries(value, field)))


def _state(value: JsonObject) -> list[Turn]:
    field = "original_input" if "original_input" in value else "originalInput"
    given = value[field]
    if isinstance(given, str):
        turns = [unfold({"role": "user", "content": given}, field)]
    else:
        turns = [unfold(_respelled(item), path) for item, path in entries(value, field)]
    for key in ("generated_items", "generatedItems"):
        for item, path in entries(value, key):
            name = "raw_item" if "raw_item" in obj(item) else "rawItem"
            raw = obj(item).get(name)
            is_asked_twice = obj(item).get("type") == "tool_approval_item"  # the call itself stands before it
            if isinstance(raw, dict) and not is_asked_twice:
                turns.append(unfold(_respelled(raw), f"{path}.{name}"))
    return turns


def _respelled(item: JsonValue) -> JsonValue:
    """An item of the SDK for JavaScript in the spelling of the Responses format; any other as it is."""
    held = obj(item)
    kind = held.get("type")
    if kind == "function_call" and "callId" in held:
        rest = {key: value for key, value in held.items() if key not in ("callId", "providerData")}
        return {**rest, "call_id": held["callId"]}
    if kind == "function_call_result":
        output = held.get("output")
        text = obj(output).get("text")
        return {
            "type": "function_call_output",
            "call_id": string(held.get("callId")),
            "name": string(held.get("name")),
            "output": text if isinstance(text, str) else (output if not isinstance(output, dict) else [output]),
        }
    if kind == "reasoning" and isinstance(held.get("content"), list) and "summary" not in held:
        data = obj(held.get("providerData"))
        encrypted = data.get("encryptedContent", data.get("encrypted_content"))
        extra: JsonObject = {"encrypted_content": encrypted} if isinstance(encrypted, str) else {}
        return {"type": "reasoning", "summary": items(held["content"]), **extra}
    return item
