"""Every conformance vector is decided as it says, and cured where it is broken."""

from __future__ import annotations

import copy
from collections import Counter

import msgspec
import pytest
from protocol_vectors import Vector, vectors

from tenlines.wire.checking import check
from tenlines.wire.repairing import repair

KNOWN = [vector for vector in vectors() if vector.wire_format is not None]
BAD = [vector for vector in KNOWN if not vector.valid]
GOOD = [vector for vector in KNOWN if vector.valid]


def named(vector: Vector) -> str:
    return vector.id


def found(vector: Vector, body: dict[str, object] | None = None) -> list[str]:
    diagnostics = check(body or vector.request_fragment, vector.known, vector.profile, vector.artefacts)
    return [one.rule for one in diagnostics]


def test_all_vectors_are_here_and_every_format_is_known() -> None:
    assert len(vectors()) == 282
    assert Counter(vector.valid for vector in vectors()) == {False: 154, True: 128}
    missing = {vector.format for vector in vectors() if vector.wire_format is None}
    assert not missing, f"no wire format for the vectors of {', '.join(sorted(missing))}"


@pytest.mark.parametrize("vector", BAD, ids=named)
def test_what_the_other_side_refuses_is_found_under_its_rule(vector: Vector) -> None:
    assert vector.violated_rule in found(vector), f"{vector.why}: {vector.request_fragment}"


@pytest.mark.parametrize("vector", GOOD, ids=named)
def test_what_the_other_side_takes_has_no_errors(vector: Vector) -> None:
    diagnostics = check(vector.request_fragment, vector.known, vector.profile, vector.artefacts)
    assert [one for one in diagnostics if one.severity == "error"] == []


@pytest.mark.parametrize("vector", GOOD, ids=named)
def test_what_is_not_broken_is_not_repaired(vector: Vector) -> None:
    body = copy.deepcopy(vector.request_fragment)
    repaired = repair(body, vector.known, vector.profile, vector.artefacts)
    assert repaired.changes == ()
    assert msgspec.json.encode(repaired.body) == msgspec.json.encode(vector.request_fragment)


@pytest.mark.parametrize("vector", BAD, ids=named)
def test_a_repaired_body_has_no_faults_left(vector: Vector) -> None:
    body = copy.deepcopy(vector.request_fragment)
    repaired = repair(body, vector.known, vector.profile, vector.artefacts, warnings=True)
    assert repaired.changes, f"nothing was done about {found(vector)}"
    assert body == vector.request_fragment, "the body that was given was changed"
    assert check(repaired.body, vector.known, vector.profile, vector.artefacts) == []
    again = repair(repaired.body, vector.known, vector.profile, vector.artefacts, warnings=True)
    assert again.changes == ()
    assert again.body == repaired.body
