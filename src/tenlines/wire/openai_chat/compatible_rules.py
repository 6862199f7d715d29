"""What servers demand that speak Chat Completions and are not OpenAI, and what all formats have in common (GEN)."""

from __future__ import annotations

from tenlines.core.transcript import JsonObject
from tenlines.wire.openai_chat.rules import PICTURE, TOOL, USER, call, calling, example, result
from tenlines.wire.rules import Rule

_SAID: JsonObject = {"role": "assistant", "content": "hello"}
_BROKEN = call(arguments='{"x": ')
_NAMED: JsonObject = {"type": "function", "function": {"name": "f"}}
_ANY: dict[str, str | bool] = {"server": "compatible"}
_DEEPSEEK: dict[str, str | bool] = {"server": "deepseek", "thinking": True}
_KIMI: dict[str, str | bool] = {"server": "moonshot", "thinking": True}
_LLAMA: dict[str, str | bool] = {"server": "llama.cpp"}

# --- what every format accepts ----------------------------------------------------------------------

_GENERAL: tuple[Rule, ...] = (
    Rule(
        "GEN-1",
        ("ROLE-FIRST", "ROLE-SYSTEM", "ROLE-ORDER"),
        "warning",
        "One system text at the front, then user and assistant in turn, a user first: every format accepts that.",
        evidence="inferred",
        fix="Join neighbours of one role, and put a short user message before an assistant that speaks first.",
        example=example(_SAID, USER),
        context=_ANY,
        needs="profile",
    ),
    Rule(
        "GEN-2",
        ("ID-CHARSET", "ID-LENGTH"),
        "warning",
        "Ids of calls are new in the whole transcript. Up to 40 letters, digits, underscores and hyphens suit every "
        "format but old ones of Mistral; exactly nine letters and digits suit all.",
        evidence="inferred",
        fix="Replace the id by a short one, in the call and in its result.",
        example=example(USER, calling(call("functions.f:0")), result("functions.f:0")),
        context=_ANY,
        needs="profile",
    ),
    Rule(
        "GEN-3",
        (),
        "info",
        "Each call has one result; the results of a message stand right behind it, in the order of the calls, before "
        "anything else.",
        evidence="inferred",
    ),
    Rule("GEN-4", (), "info", "No result stands without its call in the message before it.", evidence="inferred"),
    Rule("GEN-5", (), "info", "Arguments are one JSON object, and its text is what is kept.", evidence="inferred"),
    Rule(
        "GEN-6",
        (),
        "info",
        "Names of tools begin with a letter or an underscore and have up to 64 letters, digits, underscores and "
        "hyphens.",
        evidence="inferred",
    ),
    Rule(
        "GEN-7",
        ("TOOLS-ABSENT",),
        "warning",
        "While there are calls in the history, the same tools are declared in every request.",
        evidence="inferred",
        fix="Declare the tools again, and set tool_choice to none if they are not to be called.",
        example=example(USER, calling(call()), result(), tools=None),
        context=_ANY,
        needs="profile",
    ),
    Rule(
        "GEN-8",
        ("EMPTY-TEXT",),
        "warning",
        "No text is empty or only white space; a message of calls alone has none.",
        evidence="inferred",
        fix="Leave the text out, or the message.",
        example=example({"role": "user", "content": " "}),
        context=_ANY,
        needs="profile",
    ),
    Rule(
        "GEN-9",
        ("ROLE-LAST",),
        "warning",
        "A request ends with a user's text or with results. After the assistant's own text some servers continue it, "
        "and others refuse.",
        evidence="inferred",
        fix="Put a short user message at the end.",
        example=example(USER, _SAID),
        context=_ANY,
        needs="profile",
    ),
    Rule("GEN-10", (), "info", "Reasoning goes back only to the provider and the family of models that made it."),
    Rule("GEN-11", (), "info", "Calls of a reply that was cut off or refused are never executed."),
    Rule("GEN-12", (), "info", "A history is shortened only between whole exchanges, and reasoning behind a cut goes."),
)

# --- compatible servers -----------------------------------------------------------------------------

_COMPATIBLE: tuple[Rule, ...] = (
    Rule("CMP-1", (), "info", "What calls itself compatible is a family of servers, and each has rules of its own."),
    Rule(
        "CMP-2",
        ("PAIR-MISSING", "PAIR-GAP", "PAIR-ORPHAN", "PAIR-DUP"),
        "error",
        "Each call has one result in the tool messages right behind it, and each result has its call there.",
        "tool call result does not follow tool call",
        evidence="reported",
        fix="Bring the one result of each call right behind it, and take out results without a call.",
        example=example(USER, calling(call()), USER),
        context={"server": "minimax-like"},
        needs="profile",
    ),
    Rule(
        "CMP-3",
        ("ARGS-JSON",),
        "error",
        "Arguments of earlier calls are the JSON of an object: these servers parse them, and what was broken once is "
        "refused in every later request.",
        "Failed to parse tool call arguments as JSON",
        evidence="source",
        fix="Send {} for what cannot be parsed, and quote the broken text in the result.",
        example=example(USER, calling(_BROKEN), result()),
        context={"server": "sglang"},
        needs="profile",
    ),
    Rule(
        "CMP-4",
        (),
        "warning",
        "The content of a message of calls alone is null at OpenAI; a few servers want empty text, and a few chat "
        "templates break on null.",
        evidence="uncertain",
        fix="Send empty text to servers that are not known to take null.",
        needs="none",
    ),
    Rule(
        "CMP-5",
        ("MEDIA-PLACE", "ROLE-ORDER"),
        "error",
        "Results hold text only. Where a user may not speak right after results either, a word of the assistant has "
        "to stand between them.",
        "Input should be <ChunkTypes.text: 'text'>",
        evidence="reported",
        fix="Put the image into a user message, behind a short one of the assistant.",
        example=example(USER, calling(call()), result(content=[PICTURE])),
        context={"server": "mistral-backed"},
        needs="profile",
    ),
    Rule(
        "CMP-6",
        ("ID-DUP",),
        "error",
        "Two calls of a message never share an id. Some gateways give the same one twice; read by id, a call is lost.",
        "tool call result does not follow tool call",
        evidence="reported",
        fix="Give the second call an id of its own, and its result as well, by position.",
        example=example(USER, calling(call(), call()), result(), result()),
        context={"server": "minimax-like"},
        needs="profile",
    ),
    Rule(
        "CMP-7",
        ("TOOLS-COUNT",),
        "error",
        "An empty list of tools is refused.",
        "empty_array",
        evidence="reported",
        fix="Leave the field out.",
        example=example(USER, tools=[]),
        context={"server": "vllm"},
        needs="profile",
    ),
    Rule(
        "CMP-8",
        ("ROLE-SYSTEM", "ROLE-ORDER", "ROLE-FIRST", "ROLE-LAST"),
        "error",
        "Many chat templates want one system message, at the front, and then user and assistant in turn.",
        "Conversation roles must alternate",
        evidence="source",
        fix="Join neighbours of one role, and move system messages to the front.",
        example=example(USER, {"role": "system", "content": "be brief"}, USER),
        context={"server": "strict-template"},
        needs="profile",
    ),
    Rule(
        "CMP-9",
        ("PARAM-COMBO",),
        "error",
        "Not every tool_choice is taken: none that is named by Kimi while it thinks, no required by Qwen, only auto "
        "by GLM and Meta.",
        "is incompatible with thinking enabled",
        evidence="secondary",
        fix="Set tool_choice to auto.",
        example=example(USER, tools=[TOOL], tool_choice=_NAMED),
        context=_KIMI,
        needs="profile",
    ),
    Rule(
        "CMP-10",
        (),
        "warning",
        "A finish_reason of stop, or none, may stand beside calls: whether there are calls decides. Only length "
        "beside calls means that they were cut.",
        evidence="reported",
        fix="Look at the calls, not at the reason.",
        needs="none",
    ),
    Rule(
        "LCP-1",
        ("EMPTY-MSG",),
        "error",
        "llama.cpp wants content or calls in every message, and a name and parameters in every tool.",
        "Expected 'content' or 'tool_calls'",
        evidence="source",
        fix="Leave the empty message out; give the tool what it lacks.",
        example=example(USER, {"role": "assistant"}, USER),
        context=_LLAMA,
        needs="profile",
    ),
    Rule(
        "LCP-2",
        ("ROLE-LAST",),
        "error",
        "llama.cpp continues one message of the assistant at the end, refuses two, and refuses even one while "
        "thinking is on.",
        "Cannot have 2 or more assistant messages at the end of the list",
        evidence="source",
        fix="Put a short user message at the end.",
        example=example(USER, _SAID, _SAID),
        context=_LLAMA,
        needs="profile",
    ),
    Rule(
        "DSK-1",
        ("RSN-MISSING",),
        "error",
        "While DeepSeek thinks, messages with calls keep their reasoning_content in every later request. That the "
        "field is there is what is checked; it may be empty.",
        "in the thinking mode must be passed back to the API",
        fix="Send the reasoning back as it came, or empty text where it is lost.",
        example=example(USER, calling(call()), result()),
        context=_DEEPSEEK,
        needs="profile",
    ),
    Rule(
        "DSK-2",
        ("RSN-FOREIGN",),
        "error",
        "DeepSeek R1 refuses reasoning_content in what it is sent.",
        "reasoning_content",
        fix="Leave the field out.",
        example=example(USER, {**_SAID, "reasoning_content": "hm"}, USER),
        context={"server": "deepseek", "model": "deepseek-r1"},
        needs="profile",
    ),
    Rule(
        "DSK-3",
        ("PARAM-COMBO",),
        "error",
        "While DeepSeek thinks, tool_choice is auto or none.",
        "tool_choice",
        fix="Set tool_choice to auto.",
        example=example(USER, tools=[TOOL], tool_choice="required"),
        context=_DEEPSEEK,
        needs="profile",
    ),
    Rule(
        "KIM-1",
        ("RSN-MISSING",),
        "error",
        "While Kimi K2.5 and later think, messages with calls keep their reasoning_content; so it is with MiMo.",
        "reasoning_content is missing in assistant tool call message",
        evidence="reported",
        fix="Send the reasoning back as it came, or empty text where it is lost.",
        example=example(USER, calling(call("functions.f:0")), result("functions.f:0")),
        context=_KIMI,
        needs="profile",
    ),
    Rule(
        "GRQ-1",
        (),
        "error",
        "Groq checks what the model wrote and answers 400 when a call is not well made: the model's fault, not the "
        "request's.",
        "tool_use_failed",
        evidence="reported",
        fix="Ask again, and tell the model what was wrong.",
        needs="none",
    ),
    Rule(
        "OPR-1",
        ("TOOLS-ABSENT",),
        "warning",
        "OpenRouter wants the tools in every request of the loop, and reasoning_details back unchanged and in order.",
        "Provider returned error",
        evidence="secondary",
        fix="Declare the tools again, and set tool_choice to none if they are not to be called.",
        example=example(USER, calling(call()), result(), tools=None),
        context={"server": "openrouter"},
        needs="profile",
    ),
    Rule(
        "XAI-1",
        (),
        "info",
        "xAI does not count reasoning as part of the output, and takes up to 350 tools.",
        evidence="secondary",
    ),
)

RULES: tuple[Rule, ...] = _GENERAL + _COMPATIBLE

REJECTIONS: tuple[tuple[str, str], ...] = (
    (r"reasoning_content is missing in assistant tool call", "KIM-1"),
    (r"in the thinking mode must be passed back", "DSK-1"),
    (r"tool_choice .{0,30}incompatible with thinking", "CMP-9"),
    (r"cannot have 2 or more assistant messages|prefill is incompatible with enable_thinking", "LCP-2"),
    (r"expected 'content' or 'tool_calls'", "LCP-1"),
    (r"tool_use_failed|failed to call a function|tool call validation failed", "GRQ-1"),
    (r"failed to parse tool call arguments as json|unterminated string starting at|jsondecodeerror", "CMP-3"),
    (r"must be a response to a preceding message with 'tool_calls'|insufficient tool messages", "CMP-2"),
    (r"tool call result does not follow tool call|mismatch between tool calls and tool results", "CMP-2"),
    (r"tool message must have tool_call_id", "CMP-2"),
    (r"chunktypes\.text|unexpected role 'user' after role 'tool'", "CMP-5"),
    (r"roles must alternate|system message must be at the beginning|raise_exception", "CMP-8"),
)
