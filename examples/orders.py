"""Where is order 1042? Four tools of a small shop, over data that is always the same.

    tenlines run "Where is order 1042?" --tools examples/orders.py

Three of them only read. `refund_order` takes effect: it appends a line to `refunds.jsonl`, in the folder that
`ORDERS_STATE` names or else in the current one. The same call is never refunded twice, also after a crash: the
key of the call stands in the line.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from tenlines import CallContext, tool

ORDERS: dict[str, dict[str, Any]] = {
    "1041": {"customer": "Bob", "items": ["desk lamp"], "total": "39.00 EUR", "tracking_id": "TRK52"},
    "1042": {"customer": "Alice", "items": ["rain coat", "umbrella"], "total": "118.50 EUR", "tracking_id": "TRK77"},
    "1043": {"customer": "Alice", "items": ["tea pot"], "total": "24.90 EUR", "tracking_id": None},
    "1044": {"customer": "Chioma", "items": ["bicycle bell"], "total": "12.00 EUR", "tracking_id": "TRK80"},
}
PARCELS: dict[str, dict[str, str]] = {
    "TRK52": {"status": "delivered", "place": "Bergen", "when": "2026-03-02"},
    "TRK77": {"status": "in transit", "place": "Hamburg sorting centre", "expected": "2026-03-09"},
    "TRK80": {"status": "returned to sender", "place": "Lagos customs", "when": "2026-02-27"},
}


@tool(read_only=True)
def search_orders(customer: str) -> list[dict[str, str]]:
    """Find the orders of a customer. Use this when you know a name but no order number.

    Args:
        customer: First name of the customer, or the part of it that you know.
    """
    wanted = customer.strip().lower()
    found = [
        {"order_id": order_id, "customer": order["customer"], "items": ", ".join(order["items"])}
        for order_id, order in ORDERS.items()
        if wanted and wanted in order["customer"].lower()
    ]
    if not found:
        names = sorted({order["customer"] for order in ORDERS.values()})
        raise LookupError(f"no customer is called {customer!r}. Customers with orders: {', '.join(names)}")
    return found


@tool(read_only=True)
def get_order(order_id: str) -> dict[str, Any]:
    """Look up an order: customer, items, state, tracking id.

    Args:
        order_id: Order number, four digits.
    """
    order = {"order_id": order_id, **_order(order_id)}
    return {**order, "state": "shipped" if order["tracking_id"] else "being packed"}


@tool(read_only=True)
def get_tracking(tracking_id: str) -> dict[str, str]:
    """Where a parcel is now.

    Args:
        tracking_id: As get_order gives it.
    """
    wanted = tracking_id.strip().upper()
    if wanted in PARCELS:
        return {"tracking_id": wanted, **PARCELS[wanted]}
    if wanted.lstrip("#") in ORDERS:
        raise LookupError(
            f"{tracking_id} is an order number. First get_order tells the tracking id, then get_tracking takes it."
        )
    raise LookupError(
        f"there is no parcel {tracking_id!r}. First get_order tells the tracking id, then get_tracking takes it."
    )


@tool(idempotent=True)
def refund_order(order_id: str, reason: str, ctx: CallContext) -> str:
    """Pay an order back. This moves money and cannot be undone: only do it when the user asks for a refund.

    Args:
        order_id: Order number, four digits.
        reason: Why, in a few words.
    """
    order = _order(order_id)
    done = f"order {order_id} is refunded: {order['total']} go back to {order['customer']}"
    with _ledger().open("a+", encoding="utf-8") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)  # two processes may refund at once
        ledger.seek(0)
        for line in ledger.readlines():
            entry = json.loads(line)
            if entry["key"] == ctx.key:
                return done  # this very call, repeated after a crash
            if entry["order_id"] == order_id:
                raise ValueError(f"order {order_id} was refunded before ({entry['reason']}); nothing was paid again")
        ledger.write(json.dumps({"key": ctx.key, "order_id": order_id, "reason": reason}) + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    return done


def _order(order_id: str) -> dict[str, Any]:
    if order_id in ORDERS:
        return ORDERS[order_id]
    if order_id.strip().upper() in PARCELS:
        raise LookupError(f"{order_id} is a tracking id, not an order number; call get_tracking with it")
    raise LookupError(f"there is no order {order_id!r}; call search_orders with the name of the customer to find it")


def _ledger() -> Path:
    folder = Path(os.environ.get("ORDERS_STATE") or ".")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "refunds.jsonl"
