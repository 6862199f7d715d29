"""What a Responses request must be like: the rules, and the refusals that tell of them."""

from __future__ import annotations

import json

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.rules import Rule

MOST_OUTPUT = 10_485_760
"""Characters of a result."""
ENCRYPTED = "gAAAA"
"""How encrypted content of OpenAI begins: it is a token of a well-known kind, and they all begin so."""
PREFIXES = {"function_call": "fc", "reasoning": "rs", "message": "msg", "custom_tool_call": "ctc"}
"""Type of an item -> how ids of such items begin, where that is known."""

# --- examples ---------------------------------------------------------------------------------------


def say(text: str = "hi", role: str = "user") -> JsonObject:
    """A message, for an example."""
    return {"type": "message", "role": role, "content": text}


def call(call_id: str = "a", arguments: JsonValue = "{}", **fields: JsonValue) -> JsonObject:
    """A call, for an example."""
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": arguments, **fields}


def output(call_id: str = "a", output: JsonValue = "1") -> JsonObject:
    """A result, for an example."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def thought(**fields: JsonValue) -> JsonObject:
    """Reasoning, for an example."""
    return {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABo", **fields}


def example(*items: JsonObject, **fields: JsonValue) -> str:
    """A body as JSON text."""
    return json.dumps({**fields, "input": list(items)})


# --- the rules --------------------------------------------------------------------------------------

_LONG = "c" * 65

RULES: tuple[Rule, ...] = (
    Rule(
        "OAI-R-1",
        ("ROLE-UNKNOWN",),
        "error",
        "A message has one of the roles user, assistant, system, developer. Results are items of their own here, so "
        "there is no role tool.",
        "invalid_request_error",
        fix="Write a result as a function_call_output item, and name any other role as this format does.",
        example=example(say(), {"role": "tool", "tool_call_id": "a", "content": "1"}),
    ),
    Rule(
        "OAI-R-2",
        ("ARGS-TYPE",),
        "error",
        "A function_call has a call_id, a name, and arguments, which are JSON text and not an object.",
        "expected a string, but got an object instead",
        fix="Write the arguments as JSON text.",
        example=example(say(), call(arguments={}), output()),
    ),
    Rule(
        "OAI-R-3",
        ("ID-LENGTH",),
        "error",
        "A call_id has 1 to 64 characters.",
        "string too long. Expected a string with maximum length 64",
        fix="Replace the id by a short one, in the call and in its output.",
        example=example(say(), call(_LONG), output(_LONG)),
    ),
    Rule(
        "OAI-R-4",
        ("PAIR-MISSING",),
        "error",
        "Every call has an output, in this request or in the stored conversation that it continues.",
        "No tool output found for function call",
        evidence="reported",
        fix="Add the output; where there was none, one that says so.",
        example=example(say(), call(), say()),
    ),
    Rule(
        "OAI-R-5",
        ("PAIR-ORPHAN", "ID-MISSING"),
        "error",
        "Every output names by its call_id a call that comes before it, in this request or in the stored conversation "
        "that it continues.",
        "No tool call found for function call output",
        evidence="reported",
        fix="Bring the call back, or take its output out as well.",
        example=example(say(), output()),
    ),
    Rule(
        "OAI-R-6",
        ("PAIR-GAP",),
        "error",
        "OpenAI finds the output of a call wherever it stands. DeepSeek wants all calls of a turn in a row, and their "
        "outputs right behind, with nothing in between.",
        "No tool output found for tool call",
        evidence="reported",
        fix="Write the reasoning, then the text, then all calls, then all outputs, and only then anything else.",
        example=example(say(), call(), say("note", "developer"), output()),
        context={"server": "deepseek"},
        needs="profile",
    ),
    Rule(
        "OAI-R-7",
        ("ID-DUP", "PAIR-DUP"),
        "error",
        "No item stands there twice: ids of items are unique, a call_id belongs to one call, a call has one output.",
        "Duplicate item found with id",
        evidence="reported",
        fix="Take the second one out, or give it an id of its own.",
        example=example(say(), call(id="fc_1"), call(id="fc_1"), output()),
    ),
    Rule(
        "OAI-R-8",
        ("ID-PREFIX",),
        "error",
        "The id of an item begins with the letters of its type: fc for a function_call, rs for reasoning, msg for a "
        "message, ctc for a custom_tool_call. It is not the call_id, and it need not be sent.",
        "Expected an ID that begins with",
        evidence="reported",
        fix="Leave out ids that the server did not give.",
        example=example(say(), call(id="a"), output()),
    ),
    Rule(
        "OAI-R-9",
        ("RSN-MISSING",),
        "error",
        "Reasoning and the item that it led to belong together: with the server's ids, neither is taken without the "
        "other, and reasoning stands before an item of the model.",
        "was provided without its required",
        evidence="reported",
        fix="Send both, or leave the reasoning and the ids of the items behind it out.",
        example=example(say(), thought(), say("next")),
        needs="provenance",
    ),
    Rule(
        "OAI-R-10",
        ("RSN-MISSING",),
        "error",
        "Under store: false nothing can be looked up by its id: reasoning carries its encrypted_content, and an "
        "item_reference has nothing to refer to.",
        "Items are not persisted when `store` is set to false",
        evidence="reported",
        fix="Leave the item out, and ask for reasoning.encrypted_content.",
        example=example(say(), thought(encrypted_content=None), call(), output(), store=False),
    ),
    Rule(
        "OAI-R-11",
        ("RSN-FOREIGN", "RSN-EDITED"),
        "error",
        "Encrypted reasoning goes back byte for byte, to the organisation that it was made for and to models of the "
        "family that made it.",
        "encrypted content",
        evidence="reported",
        fix="Leave out reasoning that another model or account made.",
        example=example(say(), thought(encrypted_content="EDITED"), call(), output(), store=False),
        needs="provenance",
    ),
    Rule(
        "OAI-R-12",
        ("RSN-EDITED",),
        "error",
        "Reasoning has a summary: a list, which may be empty.",
        "Missing required parameter",
        fix="Add an empty list.",
        example=example(say(), thought(summary=None), call(), output()),
    ),
    Rule(
        "OAI-R-13",
        ("ARGS-TYPE", "EMPTY-MSG"),
        "error",
        "The output of a call is text, or a list of input_text, input_image and input_file parts; at most 10,485,760 "
        "characters.",
        "expected one of a string or array of objects",
        evidence="reported",
        fix="Write anything else as JSON text.",
        example=example(say(), call(), output(output={"temp": 18})),
    ),
    Rule(
        "OAI-R-14",
        ("RSN-EDITED",),
        "warning",
        "The phase of an assistant's message (commentary or final_answer) goes back with it; models that have it do "
        "worse without.",
        fix="Keep the field.",
        needs="none",
    ),
    Rule(
        "OAI-R-15",
        ("ROLE-ORDER",),
        "error",
        "A compaction item stands for everything before it. A compaction_trigger is the last item of a request.",
        "compaction_trigger",
        fix="Ask for compaction in the last item, and leave older requests for it out.",
        example=example(say(), {"type": "compaction_trigger"}, say("more")),
    ),
    Rule(
        "OAI-R-16",
        ("PARAM-COMBO",),
        "error",
        "A request continues either a response (previous_response_id) or a conversation, not both. With either, only "
        "what is new is sent, and instructions are sent again.",
        "previous_response_id",
        fix="Leave one of the two out.",
        example=example(say(), previous_response_id="resp_1", conversation="conv_1"),
    ),
    Rule(
        "OAI-R-17",
        ("NAME-CHARSET", "NAME-LENGTH"),
        "error",
        "Names of tools are 1 to 64 letters, digits, underscores and hyphens, in earlier calls as well.",
        "string does not match pattern",
        fix="Replace what is not allowed, everywhere alike.",
        example=example(say(), {**call(), "name": "fs.read"}, output()),
    ),
    Rule(
        "OAI-R-18",
        ("ARGS-JSON",),
        "error",
        "OpenAI takes back the arguments of a call as they are, broken JSON included. Servers that fill a chat "
        "template parse them, and refuse what is not an object.",
        "Failed to parse tool call arguments as JSON",
        evidence="reported",
        fix="Send {} and let the result tell what the model wrote.",
        example=example(say(), call(arguments='{"city":'), output()),
        context={"server": "vllm"},
        needs="profile",
    ),
    Rule(
        "OAI-R-19",
        ("RSN-MISSING",),
        "warning",
        "While a turn of calls goes on, all reasoning, calls and outputs since the last user message go back. What "
        "older reasoning the model looks at is set by reasoning.context.",
        fix="Send the items of the whole turn.",
        needs="none",
    ),
    Rule(
        "OAI-R-20",
        (),
        "info",
        "Encrypted reasoning comes back by itself now; older models want include: reasoning.encrypted_content. In a "
        "stream it is complete in response.output_item.done only.",
        needs="none",
    ),
    Rule(
        "OAI-R-21",
        (),
        "info",
        "A request that is too long is refused, unless truncation is auto: then items are dropped on the way.",
        needs="none",
    ),
    Rule(
        "DSK-4",
        ("PAIR-GAP",),
        "error",
        "DeepSeek takes the calls behind one reasoning item as one batch: all calls, then all outputs. A call, its "
        "output and another call behind the same reasoning are refused, with a text that speaks of missing reasoning.",
        "must be passed back to the API",
        evidence="reported",
        fix="Move the later calls up, before the first output.",
        example=example(say(), thought(), call("a"), output("a"), call("b"), output("b")),
        context={"server": "deepseek"},
        needs="profile",
    ),
)

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"No tool output found for (function|tool|custom tool) call", "OAI-R-4"),
    (r"No tool call found for (function|tool|custom tool) call output", "OAI-R-5"),
    (r"reasoning_text.{0,60}must be passed back", "DSK-4"),
    (r"Duplicate item found with id", "OAI-R-7"),
    (r"Expected an ID that begins with", "OAI-R-8"),
    (r"was provided without its required", "OAI-R-9"),
    (r"Items are not persisted when|Item with id .{1,80} not found", "OAI-R-10"),
    (r"invalid_encrypted_content|encrypted content .{0,80}could not be (verified|decrypted)", "OAI-R-11"),
    (r"Failed to parse tool call arguments as JSON", "OAI-R-18"),
    (r"input\[\d+\]\.call_id.{0,40}(too long|maximum length)", "OAI-R-3"),
    (r"(missing|required).{0,40}call_id", "OAI-R-5"),
    (r"input\[\d+\]\.summary", "OAI-R-12"),
    (r"input\[\d+\]\.arguments", "OAI-R-2"),
    (r"input\[\d+\]\.output", "OAI-R-13"),
    (r"(input|tools)\[\d+\]\.name", "OAI-R-17"),
    (r"previous_response_id.{0,80}conversation|conversation.{0,80}previous_response_id", "OAI-R-16"),
    (r"compaction_trigger", "OAI-R-15"),
    (r"input\[\d+\]\.role|Invalid value: '(tool|function|model)'\.", "OAI-R-1"),
)
