"""What others made judges our requests and repairs: a validator, an inspector, a framework's reader, the SDKs' types.

Each judge looks at a thousand requests that we build and at a thousand that we repair, and refuses none; and what it
refuses of the broken ones, our check refuses too. Where a judge is wrong stands in `judges.WRONG`, with an example.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest
from judges import JUDGES, WRONG, Wrong, broken_bodies, encoded, profile_of, transcripts_made, verdict

from tenlines.wire.checking import check
from tenlines.wire.formats import FORMATS
from tenlines.wire.repairing import repair

COUNT = 1_000
EVERY = pytest.mark.parametrize("name", JUDGES)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.judge)
def test_where_a_judge_is_wrong(wrong: Wrong) -> None:
    name, judge = JUDGES[wrong.judge]
    body = {"model": "m", "messages": json.loads(json.dumps(wrong.example)), "tools": [{}]}
    assert judge(body)
    assert [one for one in check(body, FORMATS[name], profile_of(name)) if one.path.startswith("messages")] == []
    assert verdict(wrong.judge, body) == ("", True)


@pytest.mark.slow
@EVERY
def test_what_we_build_is_taken(name: str, judged: Counter[str]) -> None:
    format, profile = FORMATS[JUDGES[name][0]], profile_of(JUDGES[name][0])
    for messages in transcripts_made(COUNT):
        body = encoded(messages, format, profile)
        judged[f"{name}: built"] += 1
        assert JUDGES[name][1](body) == "", json.dumps(body)


@pytest.mark.slow
@EVERY
def test_what_was_broken_is_refused_by_us_and_what_we_repair_is_taken(name: str, judged: Counter[str]) -> None:
    format, profile = FORMATS[JUDGES[name][0]], profile_of(JUDGES[name][0])
    for body in broken_bodies(format.name, COUNT):
        errors = [one for one in check(body, format, profile) if one.severity == "error"]
        said, _ = verdict(name, body)
        judged[f"{name}: broken, refused by it"] += bool(said)
        judged[f"{name}: broken, refused by us"] += bool(errors)
        assert errors or not said, f"{said}: {json.dumps(body)}"
        repaired = repair(body, format, profile).body
        said, was_wrong = verdict(name, repaired)
        judged[f"{name}: repaired"] += 1
        judged[f"{name}: repaired, wrongly refused"] += was_wrong
        assert said == "", f"{json.dumps(body)} became {json.dumps(repaired)}"
