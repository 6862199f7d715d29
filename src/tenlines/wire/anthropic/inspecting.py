"""What is special to this format in a body: parameters, thinking, cache marks, tools of servers, compaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue, Text
from tenlines.wire.anthropic.blocks import is_compaction, is_empty_compaction, server_call, server_result
from tenlines.wire.anthropic.rules import RULE
from tenlines.wire.anthropic.thinking import is_thinking, looks_signed
from tenlines.wire.dialects.problems import find
from tenlines.wire.format import Inspector as BaseInspector
from tenlines.wire.json_values import items
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Diagnostic, Rule, Severity
from tenlines.wire.schemas import Dialect
from tenlines.wire.turns import Block, Turn

MOST_MARKS = 4
MOST_STRICT = 20
SAMPLING = ("temperature", "top_p", "top_k")


class Inspector(BaseInspector):
    """The rules that no general situation covers."""

    def __init__(self, profile: Profile, rules: Mapping[str, Rule], artefacts: Sequence[Artefact] = ()) -> None:
        super().__init__(profile, rules, artefacts)
        self._is_manual = self._thinks_back = False
        self._marks, self._is_short = 0, False
        self._previous: Turn | None = None
        self._speaker: Turn | None = None
        self._is_well_placed = True
        self._index = 0
        self._at_work: dict[str, Block] = {}
        """Calls of servers' tools without a result, by id."""

    # --- beside the messages

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """Parameters, tools, and marks on them."""
        config = body.get("thinking")
        kind = config.get("type") if isinstance(config, dict) else None
        self._is_manual = kind == "enabled" and self._profile.has("signed")
        self._thinks_back = self._profile.has("thinking-back") and kind != "disabled"
        for field, problem in parameter_problems(body, self._profile):
            yield _found("ANT-37", field, problem)
        problem = forcing_problem(body, self._profile)
        if problem:
            yield _found("ANT-27", "tool_choice", problem)
        yield from self._tools(body.get("tools"))
        if isinstance(body.get("cache_control"), dict):
            self._marks += 1  # one mark is then set by the provider
        for field in ("tools", "system"):
            entries = body.get(field)
            for index, entry in enumerate(items(entries)):
                yield from self._mark(entry, f"{field}[{index}]")

    def _tools(self, tools: JsonValue) -> Iterator[Diagnostic]:
        strict = 0
        for index, tool in enumerate(items(tools)):
            problem = schema_problem(tool)
            if problem:
                yield _found("ANT-32", f"tools[{index}].input_schema", problem)
            strict += isinstance(tool, dict) and tool.get("strict") is True
        if strict > MOST_STRICT:
            yield _found("ANT-32", "tools", f"{strict} tools are strict; at most {MOST_STRICT} may be")

    # --- messages

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """The next turn."""
        yield from self._place(turn)
        yield from self._servers(turn)
        for position, block in enumerate(turn.blocks):
            if block.kind == "result" and "text.empty" in self._profile.faults:
                yield from _inside(block)
            elif block.kind == "reasoning":
                yield from self._thinking(block)
            elif is_compaction(block.raw):
                yield from self._compaction(block, is_first=self._index == 0 and position == 0)
            yield from self._mark(block.raw, block.path)
        if self._thinks_back and lacks_thinking(turn):
            yield _found("ANT-23", turn.path, "the message has calls and no thinking")
        if turn.role == "assistant":
            self._speaker = turn
        self._previous, self._index = turn, self._index + 1

    def close(self) -> Iterator[Diagnostic]:
        """The end of the messages."""
        last = self._previous
        if last is None:
            return
        speaker = self._speaker
        is_due = last is speaker or (last.role == "user" and bool(last.of("result")))
        first = next((block for block in speaker.blocks if not is_compaction(block.raw)), None) if speaker else None
        if self._is_manual and is_due and first is not None and first.kind != "reasoning":
            what = "thinking has a budget, and the last message of the assistant begins without any"
            yield _found("ANT-23", first.path, what)
        if last is speaker and self._profile.has("prefill") and last.blocks:
            text = last.blocks[-1].text
            if last.blocks[-1].kind == "text" and text and text != text.rstrip():
                yield _found("ANT-5", last.blocks[-1].path, "the beginning of the reply ends with whitespace")

    def _place(self, turn: Turn) -> Iterator[Diagnostic]:
        """Where a system message may stand, where the model takes any."""
        if not self._profile.has("system-inside"):
            return
        before = self._previous
        if before is not None and before.role == "system" and turn.role == "user" and self._is_well_placed:
            yield _found("ANT-6", before.path, "a system message is followed by a user's")
        self._is_well_placed = may_precede_system(before) and not (before is not None and before.of("call"))
        if turn.role == "system" and not may_precede_system(before):
            what = "is the first message" if before is None else f"comes after {before.wire_role or before.role}"
            yield _found("ANT-6", turn.path, f"a system message {what}")

    def _thinking(self, block: Block) -> Iterator[Diagnostic]:
        if self._profile.has("signed") and not looks_signed(block.raw):
            if block.signature:
                yield _found("ANT-24", block.path, "the signature of this thinking is none", "RSN-FOREIGN")
            else:
                yield _found("ANT-24", block.path, "this thinking carries no signature", "RSN-UNSIGNED")

    def _compaction(self, block: Block, *, is_first: bool) -> Iterator[Diagnostic]:
        if not isinstance(block.raw, dict):
            return
        if is_empty_compaction(block.raw):
            yield _found("ANT-34", block.path, "the content of a compaction block is empty", "EMPTY-TEXT")
        if is_misplaced(block.raw, self._profile) and not is_first:
            yield _found("ANT-34", block.path, "a signed compaction block is not the first of the conversation")

    def _servers(self, turn: Turn) -> Iterator[Diagnostic]:
        """Calls of servers' tools: answered in their message, or in the next one when the client's tools run beside."""
        if not self._profile.has("signed"):
            return
        for block in turn.blocks:
            self._at_work.pop(server_result(block.raw), None)
        if turn.role == "assistant":
            joined = self._previous is not None and self._previous.role == "assistant"
            for block in [] if joined else self._at_work.values():
                yield _at_work(block)
            self._at_work = dict(self._at_work) if joined else {}
            done = {server_result(block.raw) for block in turn.blocks}
            for block in turn.blocks:
                call_id = server_call(block.raw)
                if call_id and call_id not in done:
                    self._at_work[call_id] = block
        elif turn.role == "user" and self._at_work and not is_only_results(turn):
            for block in self._at_work.values():
                yield _at_work(block)
            self._at_work = {}

    def _mark(self, block: JsonValue, path: str) -> Iterator[Diagnostic]:
        if not self._profile.has("signed"):
            return  # others pass over marks
        for mark, owner in marks_in(block):
            self._marks += 1
            if self._marks == MOST_MARKS + 1:
                yield _found("ANT-28", path, f"this is the fifth cache mark; at most {MOST_MARKS} are taken")
            if is_unmarkable(owner):
                yield _found("ANT-28", path, "there is a cache mark on thinking or on empty text")
            if is_long(mark) and self._is_short:
                yield _found("ANT-28", path, "a cache mark of an hour comes after one of five minutes")
            self._is_short = self._is_short or not is_long(mark)


def _found(rule_id: str, path: str, message: str, kind: str = "", severity: Severity | None = None) -> Diagnostic:
    rule = RULE[rule_id]
    return Diagnostic(rule_id, kind or rule.kinds[0], severity or rule.severity, path, message, rule.evidence, rule.fix)


def _inside(block: Block) -> Iterator[Diagnostic]:
    """What stands inside a result."""
    if has_empty_text(block):
        yield _found("ANT-21", block.path, "an empty text stands in the result", "EMPTY-TEXT")
    if block.is_error and says_nothing(block):
        yield _found("ANT-21", block.path, "the failed result has no text", "ERR-EMPTY", "warning")


def _at_work(block: Block) -> Diagnostic:
    name = block.raw.get("name") if isinstance(block.raw, dict) else None
    return _found("ANT-29", block.path, f"the call of the server's tool {str(name)[:80]!r} has no result")


# --- what inspecting and amending both ask ----------------------------------------------------------


def parameter_problems(body: JsonObject, profile: Profile) -> Iterator[tuple[str, str]]:
    """Parameters that the model does not take, and what is wrong with each."""
    config, output = body.get("thinking"), body.get("output_config")
    kind = config.get("type") if isinstance(config, dict) else None
    effort = output.get("effort") if isinstance(output, dict) else None
    trait = {"enabled": "no-manual", "adaptive": "no-adaptive", "disabled": "no-disabled"}.get(str(kind), "")
    if trait and profile.has(trait):
        yield "thinking", f"this model does not take thinking of the type {kind!r}"
    elif kind == "disabled" and effort in ("xhigh", "max") and profile.has("no-disabled-high"):
        yield "thinking", f"thinking cannot be disabled with the effort {effort!r}"
    for field in SAMPLING if profile.has("no-sampling") else ():
        if body.get(field) is not None:
            yield field, f"this model does not take {field}"


def forcing_problem(body: JsonObject, profile: Profile) -> str:
    """Why a call may not be forced, where one is; ""  else."""
    choice, config = body.get("tool_choice"), body.get("thinking")
    if not isinstance(choice, dict) or choice.get("type") not in ("any", "tool"):
        return ""
    if isinstance(config, dict) and config.get("type") == "enabled" and profile.has("signed"):
        return "a call is forced while thinking has a budget"
    if profile.has("no-forcing") and not (isinstance(config, dict) and config.get("type") == "disabled"):
        return "a call is forced, which this model does not take"
    return ""


def schema_problem(tool: JsonValue) -> str:
    """What is wrong with the parameters of a tool; "" for the provider's own tools."""
    if not isinstance(tool, dict) or tool.get("type") not in (None, "custom"):
        return ""
    dialect: Dialect = "anthropic_strict" if tool.get("strict") is True else "anthropic"
    for place, problem in find(tool.get("input_schema"), dialect):
        return f"{place}: {problem}" if place else problem
    return ""


def may_precede_system(before: Turn | None) -> bool:
    """Whether a system message may stand behind a turn."""
    if before is None or before.role == "system":
        return False
    if before.role == "assistant" and not before.of("call"):
        return bool(before.blocks) and bool(server_result(before.blocks[-1].raw))
    return True  # calls that wait for their results are found by the general check


def lacks_thinking(turn: Turn) -> bool:
    """Whether an assistant message has calls and no thinking."""
    return bool(turn.role == "assistant" and turn.of("call") and not turn.of("reasoning"))


def is_misplaced(raw: JsonObject, profile: Profile) -> bool:
    """Whether a compaction block has to be the first of the conversation."""
    return profile.has("compaction-signed") and bool(raw.get("signature"))


def is_only_results(turn: Turn) -> bool:
    """Whether a message holds results and nothing else."""
    return bool(turn.blocks) and all(block.kind == "result" for block in turn.blocks)


def marks_in(block: JsonValue) -> Iterator[tuple[JsonObject, JsonObject]]:
    """Cache marks on a block and on the blocks inside it, each with the block that carries it."""
    if not isinstance(block, dict):
        return
    for inner in items(block.get("content")):
        yield from marks_in(inner)
    mark = block.get("cache_control")
    if isinstance(mark, dict):
        yield mark, block


def is_long(mark: JsonObject) -> bool:
    """Whether a mark lasts an hour."""
    return mark.get("ttl") == "1h"


def is_unmarkable(block: JsonObject) -> bool:
    """Whether a block may carry no mark."""
    return is_thinking(block) or (block.get("type") == "text" and not block.get("text"))


def has_empty_text(block: Block) -> bool:
    """Whether an empty text stands in a result, or null in the place of its content."""
    content = block.raw.get("content", []) if isinstance(block.raw, dict) else []
    if content is None:
        return True
    return any(_is_empty_text(one) for one in content) if isinstance(content, list) else False


def _is_empty_text(raw: JsonValue) -> bool:
    return isinstance(raw, dict) and raw.get("type") == "text" and not raw.get("text")


def says_nothing(block: Block) -> bool:
    """Whether a result has neither text nor anything else."""
    return not block.text.strip() and all(isinstance(part, Text) for part in block.parts)
