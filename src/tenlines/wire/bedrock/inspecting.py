"""What is special to Converse in a body: tools and their choice, what may stand beside what, limits of media."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tenlines.core.transcript import JsonObject, JsonValue
from tenlines.wire.bedrock.binary import data_of
from tenlines.wire.bedrock.encoding import MOST_DOCUMENTS, MOST_IMAGES
from tenlines.wire.bedrock.turns import tool_entries
from tenlines.wire.format import Inspector as BaseInspector
from tenlines.wire.profile import Artefact, Profile
from tenlines.wire.rules import Diagnostic, Rule
from tenlines.wire.schemas import problems
from tenlines.wire.turns import Block, Turn

CHOICES = ("auto", "any", "tool")
IMAGE_BYTES, DOCUMENT_BYTES = 3_750_000, 4_500_000
LOOSE = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"})
"""Keywords that strict tools may not have, `minItems` of 0 and 1 aside."""


class Inspector(BaseInspector):
    """The rules that no general situation covers."""

    def __init__(self, profile: Profile, rules: Mapping[str, Rule], artefacts: Sequence[Artefact] = ()) -> None:
        super().__init__(profile, rules, artefacts)
        self._previous: Turn | None = None

    # --- beside the messages ---

    def frame(self, body: JsonObject) -> Iterator[Diagnostic]:
        """Tools and their choice."""
        config = body.get("toolConfig")
        if isinstance(config, dict):
            if not tool_entries(body):
                yield self._found("BED-10", "toolConfig.tools", "there is a toolConfig without any tool")
            for index, entry in enumerate(tool_entries(body)):
                yield from self._tool(entry, f"toolConfig.tools[{index}]")
            choice = config.get("toolChoice")
            if choice is not None and not is_choice(choice):
                named = ", ".join(choice) if isinstance(choice, dict) else "no object"
                yield self._found("BED-11", "toolConfig.toolChoice", f"the choice of a tool is {named or 'empty'}")

    def _tool(self, entry: JsonValue, path: str) -> Iterator[Diagnostic]:
        spec = entry.get("toolSpec") if isinstance(entry, dict) else None
        if not isinstance(spec, dict):
            return
        schema = schema_of(spec)
        if schema is None or schema.get("type") != "object":
            where = f"{path}.toolSpec.inputSchema"
            yield self._found("BED-10", where, "the schema of the tool is not that of an object", "SCHEMA-SUBSET")
        if spec.get("description") == "":
            yield self._found("BED-10", f"{path}.toolSpec.description", "the description is empty", "EMPTY-TEXT")
        if schema is not None and is_strict(spec) and self._profile.has("strict_subset"):
            for place, keyword in loose_keywords(schema):
                where = f"{path}.toolSpec.inputSchema.json.{place}"
                yield self._found("BED-20", where, f"the tool is strict, and its schema has {keyword}")

    # --- messages ---

    def take(self, turn: Turn) -> Iterator[Diagnostic]:
        """One turn."""
        yield from self._beside(turn)
        yield from self._refused(turn)
        if turn.role == "user":
            yield from self._behind(turn)
            yield from self._media(turn)
        self._previous = turn

    def _beside(self, turn: Turn) -> Iterator[Diagnostic]:
        if self._profile.has("no_documents_beside") and turn.of("result"):
            for block in turn.blocks:
                if is_file(block):
                    yield self._found("BED-13", block.path, "a document or a video stands beside results")
        if self._profile.has("calls_alone") and turn.of("call"):
            for block in turn.of("text")[:1]:
                yield self._found("BED-14", block.path, "text stands beside calls")

    def _behind(self, turn: Turn) -> Iterator[Diagnostic]:
        """The service joins neighbours, so what stands in the next message stands beside results all the same."""
        before = self._previous
        is_answer = before is not None and before.role == "user" and bool(before.of("result"))
        if is_answer and not turn.of("result") and "pair.beside" in self._profile.faults:
            yield self._found("BED-13", turn.path, "a user message comes directly after results")

    def _refused(self, turn: Turn) -> Iterator[Diagnostic]:
        if self._profile.has("no_status"):
            for block in turn.of("result"):
                if has_status(block):
                    yield self._found("BED-15", block.path, "the result has a status")
        if self._profile.has("no_reasoning"):
            for block in turn.of("reasoning"):
                yield self._found("BED-16", block.path, "this model takes no reasoning back")

    def _media(self, turn: Turn) -> Iterator[Diagnostic]:
        images, documents = kind_of(turn, "image"), kind_of(turn, "document")
        if documents and not turn.of("text"):
            yield self._found("BED-17", documents[0].path, "there is a document and no text in the message")
        for blocks, most, what in ((images, MOST_IMAGES, "images"), (documents, MOST_DOCUMENTS, "documents")):
            if len(blocks) > most:
                yield self._found("BED-17", blocks[most].path, f"{len(blocks)} {what} in one message; {most} are taken")
        for block in (*images, *documents):
            size, most = size_of(block), IMAGE_BYTES if block in images else DOCUMENT_BYTES
            if size > most:
                yield self._found("BED-17", block.path, f"{size:,} bytes; at most {most:,} are taken")

    def close(self) -> Iterator[Diagnostic]:
        """The end."""
        yield from ()


# --- small questions --------------------------------------------------------------------------------


def is_choice(choice: JsonValue) -> bool:
    """Whether it is a choice of a tool that the format knows."""
    return isinstance(choice, dict) and len(choice) == 1 and next(iter(choice)) in CHOICES


def schema_of(spec: JsonObject) -> JsonObject | None:
    """The schema of a tool, if it has one."""
    held = spec.get("inputSchema")
    schema = held.get("json") if isinstance(held, dict) else None
    return schema if isinstance(schema, dict) else None


def is_strict(spec: JsonObject) -> bool:
    """Whether a tool is strict."""
    return spec.get("strict") is True


def loose_keywords(schema: JsonObject) -> list[tuple[str, str]]:
    """Where a schema has keywords that strict tools may not have, and which."""
    found = []
    for place, _ in problems(schema, "bedrock_strict"):
        keyword = place.rsplit(".", 1)[-1]
        if keyword in LOOSE:
            found.append((place, keyword))
    return found


def kind_of(turn: Turn, kind: str) -> list[Block]:
    """The media blocks of a kind."""
    return [block for block in turn.of("media") if isinstance(block.raw, dict) and kind in block.raw]


def is_file(block: Block) -> bool:
    """Whether a block is a document or a video."""
    return block.kind == "media" and isinstance(block.raw, dict) and ("document" in block.raw or "video" in block.raw)


def has_status(block: Block) -> bool:
    """Whether a result says how it went."""
    result = block.raw.get("toolResult") if isinstance(block.raw, dict) else None
    return "status" in result if isinstance(result, dict) else block.is_error


def size_of(block: Block) -> int:
    """Bytes of an image or a document; 0 when they are elsewhere."""
    if not isinstance(block.raw, dict):
        return 0
    for held in block.raw.values():
        source = held.get("source") if isinstance(held, dict) else None
        if isinstance(source, dict):
            return len(data_of(source.get("bytes")))
    return 0
