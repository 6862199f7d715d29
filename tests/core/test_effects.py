"""The closed union of what to do next."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from tenlines.core import effects

KINDS: tuple[type[msgspec.Struct], ...] = get_args(effects.Effect)


def test_the_union_holds_every_effect() -> None:
    parts = {effects.RunnableCall, effects.Refusal, effects.Question}
    structs = {one for one in vars(effects).values() if isinstance(one, type) and one.__module__ == effects.__name__}
    assert structs - parts == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_an_effect_cannot_be_changed_by_who_does_it(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    assert kind.__doc__
