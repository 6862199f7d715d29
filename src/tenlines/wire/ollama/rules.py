"""What Ollama's native endpoint demands, as far as a request shows it.

Traits: `turns.continued`: a user's word stands behind the assistant's last one, which would be continued.
`images_apart`: the images of a message stand in a list beside its text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.rules import Rule

AS_OF = "2026-11-30"

_USER: JsonObject = {"role": "user", "content": "hi"}
_RESULT: JsonObject = {"role": "tool", "tool_name": "f", "content": "1"}


def _example(arguments: JsonValue) -> str:
    call: JsonObject = {"function": {"name": "f", "arguments": arguments}}
    return json.dumps({"messages": [_USER, {"role": "assistant", "content": "", "tool_calls": [call]}, _RESULT]})


RULES: tuple[Rule, ...] = (
    Rule(
        "OLL-1",
        ("ARGS-TYPE",),
        "error",
        "Arguments of a call are an object, not its text; a result names its tool in tool_name and has no id.",
        "cannot unmarshal string into Go struct field",
        evidence="source",
        fix="Send the arguments as an object.",
        example=_example("{}"),
    ),
    Rule(
        "OLL-2",
        ("PAIR-MISSING", "PAIR-GAP", "PAIR-ORPHAN", "PAIR-DUP"),
        "error",
        "Models in Ollama's cloud want one result for each call, right behind it. A server of one's own does not look, "
        "and its models only get worse by it.",
        "mismatch between tool calls and tool results",
        evidence="reported",
        fix="Bring the one result of each call right behind it, and take out results without a call.",
        example=json.dumps({"messages": [_USER, _RESULT]}),
        context={"server": "ollama-cloud"},
        needs="profile",
    ),
)

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"cannot unmarshal .{0,40}arguments|toolcallfunctionarguments", "OLL-1"),
    (r"mismatch between tool calls and tool results", "OLL-2"),
)

_LOCAL: dict[Situation, str] = {"args.type": "OLL-1"}
_CLOUD: dict[Situation, str] = {
    **_LOCAL,
    "pair.missing": "OLL-2",
    "pair.gap": "OLL-2",
    "pair.orphan": "OLL-2",
    "pair.stranger": "OLL-2",
    "pair.repeated": "OLL-2",
}


def profile(context: Mapping[str, str | bool]) -> Profile:
    """A server of one's own, or Ollama's cloud: by the name of the server, or of the model (`gpt-oss:120b-cloud`)."""
    server, model = str(context.get("server") or "").lower(), str(context.get("model") or "").lower()
    is_cloud = "cloud" in server or "ollama.com" in server or model.endswith(("-cloud", ":cloud"))
    return Profile(
        name="ollama-cloud" if is_cloud else "ollama",
        format="ollama",
        provider="ollama",
        as_of=AS_OF,
        sources="types of Ollama's API; bug reports",
        model=model,
        faults=_CLOUD if is_cloud else _LOCAL,
        pairs_by="position",
        arguments="object",
        name_pattern="",
        traits=frozenset({"turns.continued", "images_apart", "answer.alone"}),
        carries=frozenset({"names", "images", "reasoning"}),
    )
