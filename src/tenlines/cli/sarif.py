"""What a check found, as SARIF 2.1.0: the form in which code review tools take findings of linters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tenlines.wire.rules import Rule, Severity

VERSION = "2.1.0"
_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}


def report(found: Iterable[Mapping[str, Any]], rules: Sequence[Rule], version: str) -> dict[str, Any]:
    """One run of the tool.

    Args:
        found: Findings as `tenlines check --json` writes them.
        rules: The rules; only those that were broken are listed.
        version: Version of tenlines.
    """
    results = [_result(one) for one in found]
    broken = {one["ruleId"] for one in results}
    listed = [rule for rule in rules if rule.id in broken]
    places = {rule.id: index for index, rule in enumerate(listed)}
    for one in results:
        if one["ruleId"] in places:
            one["ruleIndex"] = places[one["ruleId"]]
    driver = {"name": "tenlines check", "version": version, "rules": [_rule(rule) for rule in listed]}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": VERSION,
        "runs": [{"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}],
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


def _result(found: Mapping[str, Any]) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": found["file"]}}
    if found.get("line"):
        place["region"] = {"startLine": found["line"]}
    location: dict[str, Any] = {"physicalLocation": place}
    if found["path"]:
        location["logicalLocations"] = [{"fullyQualifiedName": found["path"]}]
    return {
        "ruleId": found["rule"],
        "level": _LEVELS[found["severity"]],
        "message": {"text": f"{found['message']} {found['fix']}".strip()},
        "locations": [location],
    }
