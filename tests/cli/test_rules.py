"""`tenlines rules`: the list, one rule, one kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tenlines.wire.formats import FORMATS, all_rules

Tenlines = Callable[..., Any]


def test_all_rules_are_listed_a_line_each_under_their_format(tenlines: Tenlines) -> None:
    done = tenlines("rules")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == [rule.id for rule in all_rules()]
    assert [line for line in lines if line in {one.title for one in FORMATS.values()}]


@pytest.mark.parametrize("typed", ["ANT-13", "ant-13"])
def test_one_rule_is_explained_with_an_example_that_breaks_it(typed: str, tenlines: Tenlines) -> None:
    done = tenlines("rules", typed)
    assert done.code == 0
    assert done.out.startswith("ANT-13 Anthropic Messages PAIR-MISSING")
    for word in ("severity    error: the provider refuses", "it says", "known from", "what to do", '"messages": ['):
        assert word in done.out
    assert "What `tenlines check` says of it:" in done.out
    assert "messages[1].content[0]: ANT-13" in done.out


@pytest.mark.slow
def test_every_rule_can_be_explained_and_breaks_its_own_example(tenlines: Tenlines) -> None:
    for rule in all_rules():
        done = tenlines("rules", rule.id)
        assert done.code == 0, rule.id
        assert rule.text in done.out
        if rule.needs == "provenance":
            assert "it needs to know where an artefact came from" in done.out
        elif rule.example:
            _, _, findings = done.out.partition("says of it:")
            assert f"{rule.id} " in findings, rule.id


def test_a_kind_is_listed_in_every_format_that_has_it(tenlines: Tenlines) -> None:
    rows = [json.loads(line) for line in tenlines("rules", "pair-missing", "--json").out.splitlines()]
    assert {row["format"] for row in rows} >= {"openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"}
    assert all("PAIR-MISSING" in row["kinds"] for row in rows)
    assert "ANT-13" in tenlines("rules", "PAIR-MISSING").out


@pytest.mark.parametrize("typed", ["anthropic", "claude", "Anthropic"])
def test_one_format_alone(typed: str, tenlines: Tenlines) -> None:
    rows = [json.loads(line) for line in tenlines("rules", "--format", typed, "--json").out.splitlines()]
    assert [row["id"] for row in rows] == [rule.id for rule in FORMATS["anthropic"].rules]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ANT-1300",), "ANT-13"),
        (("PAIR-MISING",), "PAIR-MISSING"),
        (("FILE",), "the file itself"),
        (("xyz",), "`tenlines rules` lists all of them"),
        (("--format", "klaude"), "there is no such format"),
    ],
)
def test_what_there_is_not(words: tuple[str, ...], says: str, tenlines: Tenlines) -> None:
    done = tenlines("rules", *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
