"""Names of tools: valid, different, and always the same."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tenlines.tools.mcp.names import Origin, _forms, wire_names

odd = st.text("ab _-./é\u202e9", max_size=6)
pairs = st.lists(st.builds(Origin, st.sampled_from(["a", "b", "a_b"]), odd, st.booleans()), max_size=8)


@given(pairs, st.sets(odd, max_size=4))
def test_names_are_valid_and_different(tools: list[Origin], taken: set[str]) -> None:
    names = wire_names(tools, taken)
    assert set(names) == set(tools)
    assert len(set(names.values())) == len(names)
    assert not set(names.values()) & taken
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", name) for name in names.values())


@given(pairs.flatmap(lambda tools: st.tuples(st.just(tools), st.permutations(tools))))
def test_names_do_not_depend_on_the_order(both: tuple[list[Origin], list[Origin]]) -> None:
    assert wire_names(both[0]) == wire_names(both[1])


@given(st.lists(st.builds(Origin, st.sampled_from(["a", "b"]), odd), min_size=1, max_size=3))
def test_a_server_cannot_take_the_names_of_others(tools: list[Origin]) -> None:
    hostile = [Origin("evil", form) for one in tools for form in _forms(one)]
    names = wire_names([*tools, *hostile])
    assert len(set(names.values())) == len({*tools, *hostile})


def test_what_fits_is_kept_and_what_clashes_gets_its_server() -> None:
    one, other, free = Origin("time", "now"), Origin("clock", "now"), Origin("clock", "set")
    assert wire_names([one, other, free]) == {one: "time_now", other: "clock_now", free: "set"}
    assert wire_names([free], {"set"}) == {free: "clock_set"}


def test_what_does_not_fit_gets_a_short_form() -> None:
    names = wire_names(
        [Origin("s", "a b"), Origin("s", "a.b"), Origin("s", "x" * 300), Origin("s", "9"), Origin("s", "")]
    )
    assert len(set(names.values())) == 5
    assert names[Origin("s", "a b")].startswith("a_b_")
    assert all(len(name) <= 64 for name in names.values())
