"""The closed union of what can happen."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from tenlines import errors
from tenlines.core import events as ev
from tenlines.core.machine import _HANDLERS

KINDS: tuple[type[ev.Event], ...] = get_args(ev.AnyEvent)


def test_the_union_holds_every_kind_of_event() -> None:
    assert set(KINDS) == set(ev.Event.__subclasses__())


def test_the_machine_has_a_place_for_every_kind_of_event() -> None:
    assert set(_HANDLERS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_is_frozen_named_by_its_class_and_told_in_a_sentence(kind: type[ev.Event]) -> None:
    config = kind.__struct_config__
    assert config.frozen
    assert config.tag == kind.__name__
    assert (kind.__doc__ or "").endswith(".") or "." in (kind.__doc__ or "")


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_begins_with_its_place_and_its_time(kind: type[ev.Event]) -> None:
    names = [field.name for field in msgspec.structs.fields(kind)]
    assert names[:2] == ["seq", "at"]


def test_every_way_to_stop_has_its_exception() -> None:
    stops = set(get_args(ev.Status)) - {"answered", "awaiting_approval"}
    assert set(errors._STOPPED) == stops


@pytest.mark.parametrize("seconds", [0, -1.0, float("inf"), float("nan")])
def test_leave_that_is_over_at_once_is_a_mistake_in_the_settings(seconds: float) -> None:
    with pytest.raises(ValueError, match="approval_expires_s must be above 0"):
        ev.Settings(approval_expires_s=seconds)
