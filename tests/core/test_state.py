"""What the machine knows."""

from __future__ import annotations

import msgspec

from tenlines.core.state import State


def test_two_fresh_states_are_equal_and_share_nothing() -> None:
    one, other = State(), State()
    assert one == other
    for name in State.__struct_fields__:
        value = getattr(one, name)
        if isinstance(value, list | dict | set) or (
            isinstance(value, msgspec.Struct) and not value.__struct_config__.frozen
        ):
            assert value is not getattr(other, name), f"two runs would share {name}"
