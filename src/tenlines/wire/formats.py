"""All wire formats, their rules and profiles, by name."""

from __future__ import annotations

from tenlines.errors import ConfigError
from tenlines.wire.anthropic.format import FORMAT as ANTHROPIC
from tenlines.wire.bedrock.format import FORMAT as BEDROCK
from tenlines.wire.cohere.format import FORMAT as COHERE
from tenlines.wire.format import Format
from tenlines.wire.gemini.format import FORMAT as GEMINI
from tenlines.wire.mistral.format import FORMAT as MISTRAL
from tenlines.wire.ollama.format import FORMAT as OLLAMA
from tenlines.wire.openai_chat.format import FORMAT as OPENAI_CHAT
from tenlines.wire.openai_responses.format import FORMAT as OPENAI_RESPONSES
from tenlines.wire.rules import Rule

_ALL: tuple[Format, ...] = (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC, GEMINI, BEDROCK, MISTRAL, OLLAMA, COHERE)

FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
"""Name -> format."""


def all_rules() -> tuple[Rule, ...]:
    """Every rule of every format, each once."""
    found: dict[str, Rule] = {}
    for format in FORMATS.values():
        for rule in format.rules:
            found.setdefault(rule.id, rule)
    return tuple(found.values())


def rule(rule_id: str) -> Rule:
    """A rule by its id, whatever the case of its letters.

    Raises:
        ConfigError: There is none of that id.
    """
    wanted = rule_id.upper()
    for one in all_rules():
        if one.id == wanted:
            return one
    raise ConfigError(f"there is no rule {rule_id!r}")
