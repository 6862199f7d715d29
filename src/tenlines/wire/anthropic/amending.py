"""Cures for what the inspector finds: parameters, thinking, cache marks, tools of servers. All of them idempotent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec.structs import replace

from tenlines.core.transcript import JsonObject, JsonValue, Text
from tenlines.wire.anthropic.blocks import first_said, is_compaction, is_empty_compaction, server_call, server_result
from tenlines.wire.anthropic.encoding import EMPTY_THINKING, SILENT_ERROR
from tenlines.wire.anthropic.inspecting import (
    MOST_MARKS,
    MOST_STRICT,
    forcing_problem,
    has_empty_text,
    is_long,
    is_misplaced,
    is_only_results,
    is_unmarkable,
    lacks_thinking,
    marks_in,
    may_precede_system,
    parameter_problems,
    says_nothing,
    schema_problem,
)
from tenlines.wire.anthropic.thinking import is_thinking, looks_signed
from tenlines.wire.anthropic.turns import fold_frame, frame, unfold
from tenlines.wire.json_values import items, obj
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Change
from tenlines.wire.schemas import convert
from tenlines.wire.turns import Block, Turn

SYSTEM_PREFIX = "[system message] "
_MARK = "cache_control"

# --- beside the messages ----------------------------------------------------------------------------


def amend_frame(body: JsonObject, profile: Profile) -> tuple[JsonObject, list[Change]]:
    """Cure parameters, tools and marks; the body itself is not changed."""
    body, changes = dict(body), list[Change]()
    changes += _amend_parameters(body, profile)
    changes += _amend_tools(body)
    changes += _amend_beginning(body, profile)
    if profile.has("signed"):
        changes += _amend_marks(body)
    return body, changes


def _amend_beginning(body: JsonObject, profile: Profile) -> list[Change]:
    """System messages before the conversation go beside it, where the model takes others inside."""
    messages = body.get("messages")
    if not profile.has("system-inside") or not isinstance(messages, list):
        return []
    leading = list(takewhile(_is_system, (unfold(one, f"messages[{at}]") for at, one in enumerate(messages))))
    if not leading:
        return []
    amended = fold_frame(body, [*frame(body).system, *leading], frame(body).tools)
    body.clear()
    body.update(amended)
    body["messages"] = messages[len(leading) :]
    said = "Moved the system message to its place beside the messages."
    return [Change("ROLE-SYSTEM", turn.path, said) for turn in leading]


def _is_system(turn: Turn) -> bool:
    return turn.role == "system"


def _amend_parameters(body: JsonObject, profile: Profile) -> list[Change]:
    changes = []
    for field, _ in list(parameter_problems(body, profile)):
        config = body.pop(field)
        said = f"Left {field} out, which this model does not take as it was."
        if isinstance(config, dict) and config.get("type") == "enabled":
            body[field] = {"type": "adaptive"}
            said = "Let the model decide how much to think: it takes no budget."
        changes.append(Change("PARAM-COMBO", field, said))
    choice = body.get("tool_choice")
    if forcing_problem(body, profile) and isinstance(choice, dict):
        rest = {key: value for key, value in choice.items() if key not in ("type", "name")}
        body["tool_choice"] = {"type": "auto", **rest}
        changes.append(Change("PARAM-COMBO", "tool_choice", "Let the model choose, as a call cannot be forced here."))
    if _stops_thinking(body, profile):
        del body["thinking"]
        said = "Switched thinking off for this reply, which goes on from a message without any."
        changes.append(Change("RSN-MISSING", "thinking", said))
    return changes


def _stops_thinking(body: JsonObject, profile: Profile) -> bool:
    """Whether thinking has a budget and the reply would go on from a message that does not begin with thinking."""
    config, messages = body.get("thinking"), body.get("messages")
    if not profile.has("signed") or not isinstance(config, dict) or config.get("type") != "enabled":
        return False
    for message in reversed(items(messages)):
        if not isinstance(message, dict) or message.get("role") != "assistant":
            if isinstance(message, dict) and message.get("role") == "user" and not _has_results(message):
                return False
            continue
        first = first_said(message.get("content"))
        return not (is_thinking(first) and looks_signed(first))
    return False


def _has_results(message: JsonObject) -> bool:
    blocks = items(message.get("content"))
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _amend_tools(body: JsonObject) -> list[Change]:
    tools = body.get("tools")
    if not isinstance(tools, list):
        return []
    cured, changes, strict = list(tools), [], 0
    for index, tool in enumerate(tools):
        path = f"tools[{index}]"
        if isinstance(tool, dict) and tool.get("strict") is True:
            strict += 1
            if strict > MOST_STRICT:
                cured[index] = tool = {key: value for key, value in tool.items() if key != "strict"}
                said = f"Took the mark `strict` off a tool: {MOST_STRICT} are the most."
                changes.append(Change("SCHEMA-SUBSET", path, said))
        if isinstance(tool, dict) and schema_problem(tool):
            cured[index], said = _with_schema(tool)
            changes.append(Change("SCHEMA-SUBSET", f"{path}.input_schema", said))
    if changes:
        body["tools"] = cured
    return changes


def _with_schema(tool: JsonObject) -> tuple[JsonObject, str]:
    """A tool whose parameters the provider takes: in its dialect; else not strict; else any object."""
    given = obj(tool.get("input_schema"))
    plain = {key: value for key, value in tool.items() if key != "strict"}
    tries: list[tuple[JsonObject, str]] = []
    if tool.get("strict") is True:
        strict = {**tool, "input_schema": convert(given, "anthropic_strict").schema}
        tries = [
            (strict, "Rewrote the parameters of a strict tool: what cannot be said stands in the descriptions."),
            (plain, "Took the mark `strict` off a tool whose parameters cannot be strict."),
        ]
    dialect = {**plain, "input_schema": convert(given, "anthropic").schema}
    tries.append((dialect, "Rewrote the parameters of a tool: what cannot be said stands in the descriptions."))
    for cured, said in tries:
        if not schema_problem(cured):
            return cured, said
    anything: JsonObject = {"type": "object", "properties": {}}
    return {**plain, "input_schema": anything}, "Let a tool take any object: its parameters could not be read."


# --- cache marks ------------------------------------------------------------------------------------


def _amend_marks(body: JsonObject) -> list[Change]:
    """Marks are counted over the whole body, so they are cured in one go, messages included."""
    surplus = -MOST_MARKS + isinstance(body.get(_MARK), dict)
    surplus += sum(1 for _, owner in _all_marks(body) if not is_unmarkable(owner))
    cure = _MarkCure(max(0, surplus))
    for field in ("tools", "system", "messages"):
        entries = body.get(field)
        if isinstance(entries, list) and any(True for _ in _marks_of(entries)):
            body[field] = [cure.take(entry, f"{field}[{index}]") for index, entry in enumerate(entries)]
    return cure.changes


def _all_marks(body: JsonObject) -> Iterator[tuple[JsonObject, JsonObject]]:
    for field in ("tools", "system", "messages"):
        entries = body.get(field)
        yield from _marks_of(items(entries))


def _marks_of(entries: list[JsonValue]) -> Iterator[tuple[JsonObject, JsonObject]]:
    for entry in entries:
        yield from marks_in(entry)


class _MarkCure:
    """Takes marks away as it walks through a body: the first surplus ones, and all that may not be."""

    def __init__(self, surplus: int) -> None:
        self._surplus, self._is_short = surplus, False
        self.changes: list[Change] = []

    def take(self, block: JsonValue, path: str) -> JsonValue:
        """A block as it may stay."""
        if not isinstance(block, dict) or not any(True for _ in marks_in(block)):
            return block
        content = block.get("content")
        if isinstance(content, list):
            block = {**block, "content": [self.take(one, f"{path}.content[{at}]") for at, one in enumerate(content)]}
        mark = block.get(_MARK)
        if not isinstance(mark, dict):
            return block
        if is_unmarkable(block) or self._surplus > 0:
            self._surplus -= not is_unmarkable(block)
            self.changes.append(Change("CACHE", path, "Took a cache mark away."))
            return {key: value for key, value in block.items() if key != _MARK}
        if is_long(mark) and self._is_short:
            self.changes.append(Change("CACHE", path, "Let a cache mark last five minutes, like one before it."))
            return {**block, _MARK: {key: value for key, value in mark.items() if key != "ttl"}}
        self._is_short = self._is_short or not is_long(mark)
        return block


# --- messages ---------------------------------------------------------------------------------------


def amend(
    turns: list[Turn], profile: Profile, artefacts: Sequence[Artefact], *, is_last: bool
) -> tuple[list[Turn], list[Change]]:
    """Cure one stretch of turns."""
    changes = list[Change]()
    cured = [_amend_blocks(turn, profile, changes) for turn in turns]
    if profile.has("signed"):
        cured = _amend_servers(cured, changes, is_last=is_last)
    if profile.has("system-inside"):
        cured = _amend_places(cured, changes, is_last=is_last)
    if is_last and profile.has("prefill") and cured and cured[-1].role == "assistant":
        cured[-1] = _amend_ending(cured[-1], changes)
    kept = [turn for turn, before in zip(cured, _padded(cured, turns), strict=True) if turn.blocks or not before]
    return kept, changes


def _padded(cured: list[Turn], turns: list[Turn]) -> list[bool]:
    """Whether each turn said something before it was cured."""
    said = {turn.path for turn in turns if turn.blocks}
    return [turn.path in said for turn in cured]


def _amend_blocks(turn: Turn, profile: Profile, changes: list[Change]) -> Turn:
    blocks = [cured for block in turn.blocks if (cured := _amend_block(block, profile, changes)) is not None]
    if profile.has("thinking-back") and lacks_thinking(replace(turn, blocks=tuple(blocks))):
        blocks.insert(0, Block("reasoning", turn.path, dict(EMPTY_THINKING)))
        changes.append(Change("RSN-MISSING", turn.path, "Put empty thinking in front of calls that had none."))
    same = len(blocks) == len(turn.blocks) and all(new is old for new, old in zip(blocks, turn.blocks, strict=True))
    return turn if same else replace(turn, blocks=tuple(blocks))


_FIRST = ("messages[0].content[0]", "line 1.content[0]")
"""Where the first block of a conversation stands: in a request, or in a file with one message a line."""


def _amend_block(block: Block, profile: Profile, changes: list[Change]) -> Block | None:
    """A block as it may go, or None."""
    if block.kind == "result" and "text.empty" in profile.faults:
        return _amend_result(block, changes)
    if block.kind == "reasoning" and profile.has("signed") and not _goes(block):
        kind = "RSN-FOREIGN" if block.signature else "RSN-UNSIGNED"
        changes.append(Change(kind, block.path, "Left out thinking without a genuine signature."))
        return None
    raw = block.raw
    if isinstance(raw, dict) and is_compaction(raw):
        if is_empty_compaction(raw):
            changes.append(Change("EMPTY-TEXT", block.path, "Left out a compaction block without content."))
            return None
        if is_misplaced(raw, profile) and block.path not in _FIRST:
            said = "Left out a compaction block that does not stand first: all that it summarises is still here."
            changes.append(Change("ROLE-ORDER", block.path, said))
            return None
    return block


def _goes(block: Block) -> bool:
    return looks_signed(block.raw if block.raw is not None else {"type": "thinking", "signature": block.signature})


def _amend_result(block: Block, changes: list[Change]) -> Block:
    if has_empty_text(block):
        changes.append(Change("EMPTY-TEXT", block.path, "Left empty text out of a result."))
        block = replace(block, raw=None)
    if block.is_error and says_nothing(block):
        changes.append(Change("ERR-EMPTY", block.path, "Let a failed result without text say that it failed."))
        block = replace(block, raw=None, text=SILENT_ERROR, parts=(Text(SILENT_ERROR),))
    return block


def _amend_servers(turns: list[Turn], changes: list[Change], *, is_last: bool) -> list[Turn]:
    """Leave out calls of servers' tools that have no result where one has to be."""
    dropped: set[str] = set()
    at_work: dict[str, str] = {}
    before: Turn | None = None
    for turn in turns:
        for block in turn.blocks:
            at_work.pop(server_result(block.raw), None)
        if turn.role == "assistant":
            if before is None or before.role != "assistant":
                dropped |= set(at_work.values())
                at_work = {}
            done = {server_result(block.raw) for block in turn.blocks}
            at_work |= {
                call: block.path for block in turn.blocks if (call := server_call(block.raw)) and call not in done
            }
        elif turn.role == "user" and not is_only_results(turn):
            dropped |= set(at_work.values())
            at_work = {}
        before = turn
    if not is_last:
        dropped |= set(at_work.values())
    if not dropped:
        return turns
    changes += [
        Change("PAIR-GAP", path, "Left out a call of a server's tool without a result.") for path in sorted(dropped)
    ]
    return [replace(turn, blocks=tuple(one for one in turn.blocks if one.path not in dropped)) for turn in turns]


def _amend_places(turns: list[Turn], changes: list[Change], *, is_last: bool) -> list[Turn]:
    """Turn system messages into user text where they may not stand. Those at the very beginning are left to
    `amend_frame`, which has a better place for them."""
    cured: list[Turn] = []
    for index, turn in enumerate(turns):
        after = turns[index + 1].role if index + 1 < len(turns) else "" if is_last else "user"
        is_leading = all(one.role == "system" for one in cured)
        if turn.role != "system" or is_leading or (may_precede_system(cured[-1]) and after in ("assistant", "")):
            cured.append(turn)
            continue
        text = "\n\n".join(block.text for block in turn.of("text"))
        changes.append(Change("ROLE-SYSTEM", turn.path, "Said a system message as a user, as it may not stand here."))
        cured.append(Turn("user", (Block("text", turn.path, text=SYSTEM_PREFIX + text),), turn.path))
    return cured


def _amend_ending(turn: Turn, changes: list[Change]) -> Turn:
    """The beginning of a reply without whitespace at its end."""
    blocks = list(turn.blocks)
    while blocks and blocks[-1].kind == "text" and blocks[-1].text != blocks[-1].text.rstrip():
        last = blocks.pop()
        changes.append(Change("WS-TRAILING", last.path, "Cut whitespace off the end of the beginning of the reply."))
        if last.text.strip():
            blocks.append(replace(last, raw=None, text=last.text.rstrip()))
    return (
        turn if len(blocks) == len(turn.blocks) and blocks == list(turn.blocks) else replace(turn, blocks=tuple(blocks))
    )
