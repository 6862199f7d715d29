"""The order desk of the examples: the story works, and money moves once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tenlines.ports import Bound, CallContext
from tenlines.tools import Tool
from tenlines.tools.load import load_tools

FILE = Path(__file__).parents[2] / "examples" / "orders.py"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Tool[..., Any]]:
    monkeypatch.setenv("ORDERS_STATE", str(tmp_path / "state"))
    return {one.spec.name: one for one in load_tools(FILE)}


def call(one: Tool[..., Any], key: str = "run-1:1:0", **arguments: Any) -> Any:
    bound = one.check(arguments)
    assert isinstance(bound, Bound), bound
    return one.call(bound, CallContext(key, one.spec.name, None))


def ledger(folder: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "state" / "refunds.jsonl").read_text().splitlines()]


def test_the_story_of_order_1042_leads_to_a_place(tools: dict[str, Tool[..., Any]]) -> None:
    assert list(tools) == ["search_orders", "get_order", "get_tracking", "refund_order"]
    (found, _) = call(tools["search_orders"], customer="alice")
    order = call(tools["get_order"], order_id=found["order_id"])
    assert (order["order_id"], order["customer"], order["tracking_id"]) == ("1042", "Alice", "TRK77")
    parcel = call(tools["get_tracking"], tracking_id=order["tracking_id"])
    assert (parcel["status"], parcel["place"]) == ("in transit", "Hamburg sorting centre")


def test_only_the_refund_has_an_effect_and_it_may_be_repeated_with_its_key(tools: dict[str, Tool[..., Any]]) -> None:
    assert [one.spec.read_only for one in tools.values()] == [True, True, True, False]
    assert tools["refund_order"].spec.idempotent
    assert "ctx" not in str(tools["refund_order"].spec.parameters)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        (
            "get_tracking",
            {"tracking_id": "1042"},
            "1042 is an order number. First get_order tells the tracking id",
        ),
        ("get_tracking", {"tracking_id": "TRK1"}, "First get_order tells the tracking id"),
        ("get_order", {"order_id": "TRK77"}, "call get_tracking with it"),
        ("get_order", {"order_id": "9"}, "call search_orders"),
        ("search_orders", {"customer": "Zoe"}, "Alice, Bob, Chioma"),
        ("search_orders", {"customer": " "}, "Customers with orders"),
        ("refund_order", {"order_id": "9", "reason": "late"}, "call search_orders"),
    ],
)
def test_a_wrong_guess_is_told_the_next_move(
    tools: dict[str, Tool[..., Any]], name: str, arguments: dict[str, str], words: str
) -> None:
    with pytest.raises(LookupError, match=words):
        call(tools[name], **arguments)


def test_an_order_that_was_not_sent_has_no_parcel(tools: dict[str, Tool[..., Any]]) -> None:
    order = call(tools["get_order"], order_id="1043")
    assert (order["state"], order["tracking_id"]) == ("being packed", None)


def test_the_same_call_is_refunded_once_and_says_the_same(tools: dict[str, Tool[..., Any]], tmp_path: Path) -> None:
    first = call(tools["refund_order"], order_id="1042", reason="late")
    assert first == "order 1042 is refunded: 118.50 EUR go back to Alice"
    assert call(tools["refund_order"], order_id="1042", reason="late") == first
    assert ledger(tmp_path) == [{"key": "run-1:1:0", "order_id": "1042", "reason": "late"}]


def test_an_order_is_not_refunded_by_a_second_call(tools: dict[str, Tool[..., Any]], tmp_path: Path) -> None:
    call(tools["refund_order"], order_id="1042", reason="late")
    call(tools["refund_order"], key="run-1:2:0", order_id="1041", reason="broken")
    with pytest.raises(ValueError, match=r"1042 was refunded before \(late\); nothing was paid again"):
        call(tools["refund_order"], key="run-1:3:0", order_id="1042", reason="again")
    assert [line["order_id"] for line in ledger(tmp_path)] == ["1042", "1041"]
