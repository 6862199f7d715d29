"""The rules themselves: complete, consistent, each with an example that breaks it, each refusal with its rule."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from protocol_vectors import NAMES, Vector, vectors

from tenlines.wire.checking import check
from tenlines.wire.finding.situations import KINDS
from tenlines.wire.format import Format
from tenlines.wire.formats import FORMATS, all_rules, rule
from tenlines.wire.profile import Profile, Situation
from tenlines.wire.rules import Rule

EVERY = pytest.mark.parametrize("format", FORMATS.values(), ids=lambda one: one.name)
RULES = [(format, one) for format in FORMATS.values() for one in format.rules]
DECIDABLE = [(f, one) for f, one in RULES if one.severity != "info" and one.needs in ("static", "profile")]
REFUSED = [one for one in vectors() if one.provider_error and one.violated_rule]
RECOGNISED = 0.93
"""Share of the quoted refusals that are led back to the very rule, or to one of the same kind. The rest cannot be: a
bare status or code, a constraint without the field that breaks it, and texts that a server has for several rules."""


def contexts(format: Format) -> list[dict[str, str | bool] | None]:
    own = [one.context for one in vectors() if NAMES.get(one.format, one.format) == format.name]
    return [None, *(one for one in own if one), *(one.context for one in format.rules if one.context)]


def profiles(format: Format) -> list[Profile]:
    return [format.profile(context) for context in contexts(format)]


def test_ids_are_unique_and_found() -> None:
    seen: dict[str, Rule] = {}
    for _, one in RULES:
        assert seen.setdefault(one.id, one) == one, f"{one.id} is two different rules"
    assert {one.id for one in all_rules()} == set(seen)
    assert rule("ant-13").id == "ANT-13"


def test_every_rule_that_a_vector_covers_exists() -> None:
    known = {one.id for _, one in RULES}
    covered = {one for vector in vectors() for one in vector.covers}
    assert covered - known == set()


def test_every_rule_says_what_it_demands() -> None:
    for _, one in RULES:
        assert one.text.strip().endswith((".", "!", "?", ")")), one.id
        if one.severity != "info" and one.needs != "none":
            assert one.kinds, one.id
            assert one.fix, one.id


def test_every_situation_has_a_kind() -> None:
    assert set(KINDS) == set(get_args(Situation))


@EVERY
def test_profiles_name_rules_that_exist(format: Format) -> None:
    known = {one.id for one in format.rules}
    for profile in profiles(format):
        assert set(profile.faults) <= set(get_args(Situation))
        assert set(profile.faults.values()) <= known, profile.name
        assert profile.format == format.name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", profile.as_of)
        re.compile(profile.id_pattern)
        re.compile(profile.name_pattern)


@pytest.mark.parametrize(("format", "one"), DECIDABLE, ids=lambda one: getattr(one, "id", ""))
def test_every_rule_that_can_be_decided_has_an_example_that_breaks_it(format: Format, one: Rule) -> None:
    assert one.example, "a rule that a body can break shows one that does"
    body = json.loads(one.example)
    found = check(body, format, format.profile(one.context or None))
    assert one.id in {diagnostic.rule for diagnostic in found}
    diagnostic = next(diagnostic for diagnostic in found if diagnostic.rule == one.id)
    assert diagnostic.severity in ("error", "warning")
    assert diagnostic.message
    assert diagnostic.fix == one.fix


@EVERY
def test_refusals_name_rules_that_exist(format: Format) -> None:
    known = {one.id for one in all_rules()}
    for pattern, rule_id in format.rejections:
        re.compile(pattern, re.IGNORECASE)
        assert rule_id in known, f"{pattern} names {rule_id}"


def recognised(vector: Vector) -> str:
    """The rule that a quoted refusal looks like."""
    for pattern, rule_id in vector.known.rejections:
        if re.search(pattern, vector.provider_error, re.IGNORECASE):
            return rule_id
    return ""


def is_led_back(vector: Vector) -> bool:
    found = recognised(vector)
    if found == vector.violated_rule:
        return True
    kinds = {one.id: set(one.kinds) for one in all_rules()}
    return bool(kinds.get(found, set()) & kinds[str(vector.violated_rule)])


def test_what_providers_say_is_led_back_to_the_rule() -> None:
    hits = [one for one in REFUSED if is_led_back(one)]
    missed = [
        f"{one.id}: {recognised(one) or 'nothing'} for {one.provider_error[:70]!r}"
        for one in REFUSED
        if one not in hits
    ]
    ratio = len(hits) / len(REFUSED)
    exact = sum(recognised(one) == one.violated_rule for one in REFUSED)
    print(f"{len(hits)} of {len(REFUSED)} refusals recognised ({ratio:.0%}), {exact} exactly")
    assert len(REFUSED) > 80
    assert ratio >= RECOGNISED, "\n".join(missed)
