"""What a check found, as SARIF 2.1.0: the form in which code review tools take findings of linters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tenlines.wire.rules import Rule, Severity

if TYPE_CHECKING:
    from tenlines.cli.findings import Finding

VERSION = "2.1.0"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def report(found: Sequence[Finding], rules: Sequence[Rule], version: str, failed: Sequence[str] = ()) -> dict[str, Any]:
    """One run of the tool.

    Args:
        found: What was found.
        rules: The rules; only those that were broken are listed.
        version: Version of tenlines.
        failed: Why files could not be checked.
    """
    broken = {one.rule for one in found}
    listed = [rule for rule in rules if rule.id in broken]
    places = {rule.id: index for index, rule in enumerate(listed)}
    driver = {"name": "tenlines check", "version": version, "rules": [_rule(rule) for rule in listed]}
    invocation: dict[str, Any] = {"executionSuccessful": not failed}
    if failed:
        invocation["toolExecutionNotifications"] = [{"level": "error", "message": {"text": text}} for text in failed]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": VERSION,
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [invocation],
                "results": [_result(one, places) for one in found],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    help_text = "\n\n".join(text for text in (rule.text, rule.fix and f"What to do: {rule.fix}") if text)
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.text},
        "help": {"text": help_text},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"kinds": list(rule.kinds), "evidence": rule.evidence, "providerSays": rule.answer},
    }


def _result(found: Finding, places: dict[str, int]) -> dict[str, Any]:
    uri = "stdin" if found.file == "-" else quote(found.file)
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": found.line}}
    }
    if found.path:
        location["logicalLocations"] = [{"fullyQualifiedName": found.path}]
    return {
        "ruleId": found.rule,
        "ruleIndex": places[found.rule],
        "level": _LEVELS[found.severity],
        "message": {"text": f"{found.message} {found.fix}".strip()},
        "locations": [location],
        "properties": {"kind": found.kind},
    }
