"""What Anthropic demands of a Messages request: its rules and its refusals. Gathered on 2026-11-30."""

from __future__ import annotations

import json

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.rules import Rule

# --- examples ---------------------------------------------------------------------------------------

_ASK: JsonObject = {"role": "user", "content": "Hi"}
_SIGNED = "EqQBCkYIBxgCKkBzaWduYXR1cmU="
_TOOL: JsonObject = {"name": "f", "input_schema": {"type": "object", "properties": {}}}


def _use(call_id: str = "a", name: str = "f", arguments: JsonValue = None) -> JsonObject:
    return {"type": "tool_use", "id": call_id, "name": name, "input": {} if arguments is None else arguments}


def _result(call_id: str = "a", content: JsonValue = "1") -> JsonObject:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def _says(*blocks: JsonValue) -> JsonObject:
    return {"role": "assistant", "content": list(blocks)}


def _answers(*blocks: JsonValue) -> JsonObject:
    return {"role": "user", "content": list(blocks)}


def _text(text: str, **fields: JsonValue) -> JsonObject:
    return {"type": "text", "text": text, **fields}


def _body(*messages: JsonObject, tools: list[JsonValue] | None = None, **fields: JsonValue) -> str:
    """A body with these messages; tools are declared where there are calls, unless it is said which."""
    declared: list[JsonValue] | None = [_TOOL] if tools is None and "tool_" in json.dumps(messages) else tools
    body: JsonObject = {"messages": list(messages), **fields}
    if declared:
        body["tools"] = declared
    return json.dumps(body)


_MARK: JsonObject = {"type": "ephemeral"}
_BUDGET: JsonObject = {"type": "enabled", "budget_tokens": 2048}

# --- the rules --------------------------------------------------------------------------------------

RULES: tuple[Rule, ...] = (
    Rule(
        "ANT-1",
        ("ROLE-UNKNOWN", "ROLE-SYSTEM"),
        "error",
        "Messages are of the roles user and assistant. The system prompt stands beside them, in `system`; only some "
        "models take system messages among them (ANT-6).",
        'Unexpected role "system"',
        fix="Put system text into `system`, and results into a user message.",
        example=_body({"role": "system", "content": "Be brief."}, _ASK),
    ),
    Rule(
        "ANT-2",
        ("ROLE-FIRST",),
        "error",
        "The first message is a user's. Refused in 2024; today's documents no longer say so.",
        'first message must use the "user" role',
        evidence="uncertain",
        fix="Put a short user message in front.",
        example=_body(_says(_text("Welcome!")), _ASK),
    ),
    Rule("ANT-3", (), "info", "Neighbours of one role are taken as one message; they need not alternate."),
    Rule(
        "ANT-4",
        ("ROLE-LAST",),
        "error",
        "A last message of the assistant is the beginning of the reply, and models from 4.6 on take none: the request "
        "ends with a user's.",
        "does not support assistant message prefill",
        fix="End with a user message.",
        example=_body(_ASK, _says(_text("It is"))),
        context={"model": "claude-sonnet-4-6"},
        needs="profile",
    ),
    Rule(
        "ANT-5",
        ("WS-TRAILING",),
        "error",
        "The beginning of a reply does not end with whitespace.",
        "final assistant content cannot end with trailing whitespace",
        fix="Cut the whitespace off.",
        example=_body(_ASK, _says(_text("It is "))),
        context={"model": "claude-sonnet-4-5"},
        needs="profile",
    ),
    Rule(
        "ANT-6",
        ("ROLE-SYSTEM",),
        "error",
        "Where the model takes system messages inside the conversation, one stands directly behind a user message (or "
        "behind a reply that ends with the result of a server's tool), and is the last message or followed by the "
        "assistant. Never first, and never between calls and their results.",
        "role 'system'",
        fix="Move it behind the next user message or the results, or say it as a user.",
        example=_body(_ASK, {"role": "system", "content": "note"}, {"role": "user", "content": "again"}),
        context={"model": "claude-opus-5"},
        needs="profile",
    ),
    Rule(
        "ANT-7",
        ("EMPTY-TEXT",),
        "error",
        "No text block is empty.",
        "text content blocks must be non-empty",
        evidence="reported",
        fix="Leave the block out.",
        example=_body(_ASK, _says(_text(""), _use()), _answers(_result())),
    ),
    Rule(
        "ANT-8",
        ("EMPTY-TEXT",),
        "error",
        "A message whose only text is whitespace is refused; next to other text, whitespace is taken. Models write "
        "such blocks themselves.",
        "text content blocks must contain non-whitespace text",
        evidence="reported",
        fix="Leave the block out, and the message when nothing else is in it.",
        example=_body(_ASK, _says(_text("\n\n")), _ASK),
    ),
    Rule(
        "ANT-9",
        ("EMPTY-MSG",),
        "error",
        "There is at least one message, and each has content, but for a last one of the assistant where it may begin "
        "the reply.",
        "all messages must have non-empty content",
        evidence="reported",
        fix="Leave the message out.",
        example=_body(_ASK, _says(), _ASK),
    ),
    Rule(
        "ANT-10",
        ("ARGS-TYPE", "ARGS-JSON"),
        "error",
        "The input of a call is an object, not its JSON text.",
        "Input should be a valid dictionary",
        fix="Parse the text; where it is not the JSON of an object, send an empty one.",
        example=_body(_ASK, _says(_use(arguments='{"x": 1}')), _answers(_result())),
    ),
    Rule(
        "ANT-11",
        ("ID-CHARSET", "ID-MISSING"),
        "error",
        "Ids of calls consist of letters, digits, `_` and `-`. How long they may be is not known.",
        "String should match pattern '^[a-zA-Z0-9_-]+$'",
        evidence="reported",
        fix="Give the call another id, and its result the same.",
        example=_body(_ASK, _says(_use("functions.f:0")), _answers(_result("functions.f:0"))),
    ),
    Rule(
        "ANT-12",
        ("ID-DUP",),
        "error",
        "No two calls of the whole conversation share an id.",
        "`tool_use` ids must be unique",
        evidence="reported",
        fix="Give the later call, and its result, an id of its own.",
        example=_body(_ASK, _says(_use()), _answers(_result()), _says(_use()), _answers(_result())),
    ),
    Rule(
        "ANT-13",
        ("PAIR-MISSING", "PAIR-GAP"),
        "error",
        "All calls of an assistant message are answered in the very next message.",
        "`tool_use` ids were found without `tool_result` blocks immediately after",
        fix="Put the results there; where there is none, one that says so.",
        example=_body(_ASK, _says(_use()), _ASK),
    ),
    Rule(
        "ANT-14",
        ("PAIR-ORPHAN",),
        "error",
        "Each result answers a call of the message before it.",
        "unexpected `tool_use_id` found in `tool_result` blocks",
        evidence="reported",
        fix="Leave the result out.",
        example=_body(_answers(_result(), _text("so?"))),
    ),
    Rule(
        "ANT-15",
        ("PAIR-ORDER",),
        "error",
        "In a message with results they come first.",
        "`tool_result` block(s) at the beginning of this message",
        fix="Put everything else behind the results.",
        example=_body(_ASK, _says(_use()), _answers(_text("here:"), _result())),
    ),
    Rule(
        "ANT-16",
        ("PAIR-DUP",),
        "error",
        "Each call has one result.",
        "each tool_use must have a single result",
        evidence="reported",
        fix="Keep the last one that a tool made.",
        example=_body(_ASK, _says(_use()), _answers(_result(), _result())),
    ),
    Rule(
        "ANT-17",
        ("ROLE-ORDER",),
        "error",
        "Calls stand in assistant messages, results in user messages.",
        "blocks can only be in `user` messages",
        evidence="reported",
        fix="Put the block into a message of the right role.",
        example=_body(_ASK, _says(_use(), _result())),
    ),
    Rule(
        "ANT-18",
        ("PAIR-SPLIT",),
        "warning",
        "Results of one assistant message that stand in several user messages are taken, but teach the model not to "
        "call in parallel.",
        fix="Put all results of one message into one.",
        example=_body(_ASK, _says(_use("a"), _use("b")), _answers(_result("a")), _answers(_result("b"))),
    ),
    Rule(
        "ANT-19",
        ("TOOLS-ABSENT",),
        "error",
        "A conversation with calls or results in it needs tools declared.",
        "must define tools",
        evidence="reported",
        fix="Declare the tools, with the choice `none` when none may be called.",
        example=_body(_ASK, _says(_use()), _answers(_result()), tools=[]),
    ),
    Rule(
        "ANT-20",
        ("NAME-CHARSET", "NAME-LENGTH"),
        "error",
        "Names of tools have 1 to 64 letters, digits, `_` and `-`. Some answers speak of 128.",
        "String should match pattern '^[a-zA-Z0-9_-]{1,",
        fix="Rename the tool, in the calls too.",
        example=_body(_ASK, tools=[{"name": "fs.read", "input_schema": {"type": "object", "properties": {}}}]),
    ),
    Rule(
        "ANT-21",
        ("ERR-EMPTY", "EMPTY-TEXT"),
        "error",
        "A result has no content, or text, or blocks; a text block in it is not empty. A failed result without text is "
        "refused for some tools.",
        "text content blocks must be non-empty",
        fix="Leave empty text out; let a failed result say that it failed.",
        example=_body(_ASK, _says(_use()), _answers(_result(content=[_text("")]))),
    ),
    Rule(
        "ANT-22",
        ("RSN-EDITED",),
        "error",
        "Thinking goes back exactly as it came, in its order, also where its text is empty.",
        "blocks in the latest assistant message cannot be modified",
        fix="Send the block as it came, or leave all thinking out.",
        needs="provenance",
    ),
    Rule(
        "ANT-23",
        ("RSN-MISSING",),
        "error",
        "With a thinking budget, an assistant message that the reply goes on from begins with thinking. Servers of "
        "other makers want thinking in each message with calls.",
        "Expected `thinking` or `redacted_thinking`",
        fix="Send the thinking along, or switch thinking off for this reply.",
        example=_body(_ASK, _says(_use()), _answers(_result()), thinking=_BUDGET),
    ),
    Rule(
        "ANT-24",
        ("RSN-UNSIGNED", "RSN-FOREIGN"),
        "error",
        "Thinking is signed, and the signature is genuine. It is good on Bedrock and Vertex too, but not elsewhere.",
        "Invalid `signature` in `thinking` block",
        evidence="reported",
        fix="Leave the block out.",
        example=_body(_ASK, _says({"type": "thinking", "thinking": "Hm.", "signature": "made-up"}, _text("ok")), _ASK),
    ),
    Rule(
        "ANT-25",
        ("RSN-PREFIX",),
        "error",
        "On the newest models (5.1 and later of Fable and Mythos, 5.5 of the others) thinking is bound to the system "
        "prompt, the tools and all messages before it.",
        "bound to a different conversation",
        fix="Restore what stood before, or leave out the thinking from there on.",
        context={"model": "claude-opus-5-5"},
        needs="provenance",
    ),
    Rule(
        "ANT-26",
        (),
        "info",
        "What keeps bound thinking valid: appending, leaving thinking out from the front, tools that are loaded late, "
        "cache marks, other parameters, and the provider's own compaction. What does not: to edit, insert, delete or "
        "move anything before it, other tools or another system prompt, a gap in the thinking.",
        needs="none",
    ),
    Rule(
        "ANT-27",
        ("PARAM-COMBO",),
        "error",
        "A call cannot be forced while a thinking budget is set; on the models that always think, never.",
        "when tool_choice forces tool use",
        fix="Choose `auto`.",
        example=_body(_ASK, tools=[_TOOL], tool_choice={"type": "any"}, thinking=_BUDGET),
    ),
    Rule(
        "ANT-28",
        ("CACHE",),
        "error",
        "At most four cache marks, none on thinking or on empty text, and those that last an hour before the others.",
        "A maximum of 4 blocks with cache_control",
        fix="Keep the last ones.",
        example=_body(_answers(*[_text(letter, cache_control=_MARK) for letter in "abcde"])),
    ),
    Rule(
        "ANT-29",
        ("PAIR-GAP",),
        "error",
        "A call of a server's tool has its result in the same assistant message. While one is at work next to calls of "
        "the client's tools, the next user message holds results alone.",
        "was found without a corresponding",
        fix="Leave the call out, or say nothing but results.",
        example=_body(
            _ASK,
            _says({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}, _text("ok")),
            _ASK,
        ),
    ),
    Rule(
        "ANT-30",
        (),
        "info",
        "A reply that stopped as `pause_turn` goes back as it is, with the same tools.",
        needs="none",
    ),
    Rule(
        "ANT-31",
        (),
        "warning",
        "Calls run only when the reply stopped to call: one that was cut off, refused or stopped otherwise may hold "
        "half a call.",
        needs="none",
    ),
    Rule(
        "ANT-32",
        ("SCHEMA-SUBSET",),
        "error",
        "Parameters of a tool are a JSON Schema of an object, without a choice at its root. A strict tool takes a part "
        "of the language.",
        "input_schema",
        fix="Put what cannot be said into the description, and check it here.",
        example=_body(_ASK, tools=[{"name": "f", "input_schema": {"anyOf": [{"type": "object"}, {"type": "string"}]}}]),
    ),
    Rule(
        "ANT-33",
        ("LIMIT",),
        "error",
        "At most 100,000 messages and 32 MB.",
        "request_too_large",
        fix="Shorten the conversation.",
        needs="none",
    ),
    Rule(
        "ANT-34",
        ("ROLE-ORDER", "EMPTY-TEXT"),
        "error",
        "A compaction block goes back as it came; its content is text or null, never empty. One that was asked for is "
        "signed, and stands first of all in the place of what it summarises.",
        "compaction_block_misplaced",
        fix="Leave out what stands before it, or the block.",
        example=_body(_ASK, _says({"type": "compaction", "content": "So far ...", "signature": _SIGNED}), _ASK),
        context={"beta": "compact-2026-09-04"},
        needs="profile",
    ),
    Rule(
        "ANT-35",
        (),
        "warning",
        "Text right behind results teaches the model to stop early, with an empty reply; an empty reply is never sent "
        "back.",
        needs="none",
    ),
    Rule(
        "ANT-36",
        (),
        "info",
        "When the input of a call is not JSON, an object has to go back in its place; what came is told in the result.",
        needs="none",
    ),
    Rule(
        "ANT-37",
        ("PARAM-COMBO",),
        "error",
        "Models from 4.7 on take no thinking budget and no sampling parameters, those up to 4.5 no adaptive thinking, "
        "and some cannot stop thinking.",
        '"thinking.type.enabled" is not supported for this model',
        fix="Ask for thinking in the model's own way; leave sampling parameters out.",
        example=_body(_ASK, thinking=_BUDGET),
        context={"model": "claude-opus-4-8"},
        needs="profile",
    ),
    Rule(
        "CAC-2",
        (),
        "info",
        "What is to be remembered ends with a mark, in the order tools, system, messages; each mark looks back 20 "
        "blocks. What is shorter than 512 to 4096 tokens, by model, is not remembered.",
        needs="none",
    ),
    Rule(
        "STR-3",
        (),
        "info",
        "A stream is of events, told apart by `type`: blocks begin with placeholders and grow, counts are totals so "
        "far, and an error may come after it had begun well.",
        needs="none",
    ),
    Rule(
        "USE-3",
        (),
        "info",
        "`input_tokens` does not count what was read from the cache or written to it; `output_tokens` includes "
        "thinking.",
        needs="none",
    ),
)

RULE: dict[str, Rule] = {rule.id: rule for rule in RULES}
"""Rules by id."""

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"unexpected role .?\"?(system|tool)|role.{0,20}input should be", "ANT-1"),
    (r"role 'system' is not supported", "ANT-1"),
    (r"first message must use the .?\"?user", "ANT-2"),
    (r"does not support assistant message prefill|must end with a user message", "ANT-4"),
    (r"cannot end with trailing whitespace", "ANT-5"),
    (r"must contain non-whitespace text", "ANT-8"),
    (r"text content blocks must be non-empty", "ANT-7"),
    (r"must have non-empty content|at least one message is required", "ANT-9"),
    (r"input should be a valid dictionary", "ANT-10"),
    (r"tool_use(_id|\.id).{0,40}string should match pattern", "ANT-11"),
    (r"`?tool_use`? ids must be unique", "ANT-12"),
    (r"`?tool_result`? block\(s\) at the beginning", "ANT-15"),
    (r"ids were found without `?tool_result", "ANT-13"),
    (r"unexpected `?tool_use_id", "ANT-14"),
    (r"must have a single result", "ANT-16"),
    (r"blocks can only be in `?(user|assistant)", "ANT-17"),
    (r"must define tools", "ANT-19"),
    (r"tools.{0,40}name.{0,40}string should match pattern", "ANT-20"),
    (r"cannot be modified", "ANT-22"),
    (r"bound to a different conversation", "ANT-25"),
    (r"expected `?thinking`? or `?redacted_thinking|thinking.{0,60}must be passed back", "ANT-23"),
    (r"signature.{0,20}field required|invalid `?signature", "ANT-24"),
    (r"tool_choice forces tool use|tool_choice.{0,60}(not supported|not compatible|incompatible)", "ANT-27"),
    (r"maximum of 4 blocks with cache_control|cache_control.{0,60}(cannot|ttl)", "ANT-28"),
    (r"was found without a corresponding", "ANT-29"),
    (r"input_schema|schema is too complex|json schema is invalid", "ANT-32"),
    (r"request_too_large", "ANT-33"),
    (r"compaction_", "ANT-34"),
    (r"thinking\.type\.|adaptive thinking is not supported|.(temperature|top_p|top_k).{0,3} is deprecated", "ANT-37"),
)
"""What refusals look like, in the order in which they are tried."""
