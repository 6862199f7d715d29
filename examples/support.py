"""An agent of a fleet: it answers questions about orders with the tools of `orders.py`.

    tenlines worker --app examples/support.py --dev
    tenlines submit "Where is order 1042?" --app examples/support.py --wait

`TENLINES_MODEL` names its model. Without one it is asked by nobody: `clerk` stands for a model, so that no key, no
network and no gigabyte is needed. The tools, the journal and the fleet are real either way.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import Any

from orders import get_order, get_tracking, refund_order, search_orders
from tenlines import Agent, Reply, ToolCall
from tenlines.fleet import Fleet, Queue

THINKING_S = 1.0
"""A model takes its time too; and there is time to kill a worker."""


async def clerk(messages: list[dict[str, Any]]) -> str | Reply:
    """Stands for a model: looks up the order that the question names, then its parcel, then says where it is."""
    await asyncio.sleep(THINKING_S)
    question = next(one["content"] for one in messages if one["role"] == "user")
    results = [one["content"] for one in messages if one["role"] == "tool"]
    number = re.search(r"\d{4}", question)
    if number is None:
        return "Which order is it? Its number has four digits."
    try:
        found = [json.loads(one) for one in results]
    except ValueError:  # a tool says what is wrong
        return results[-1]
    match found:
        case []:
            return _call("get_order", order_id=number[0])
        case [{"tracking_id": None, **order}]:
            return f"Order {number[0]} ({', '.join(order['items'])}) is being packed."
        case [{"tracking_id": tracking_id}]:
            return _call("get_tracking", tracking_id=tracking_id)
        case [order, parcel, *_]:
            return f"Order {number[0]} ({', '.join(order['items'])}) is {parcel['status']}: {parcel['place']}."
    return "That cannot be said."


def _call(tool: str, **arguments: str) -> Reply:
    return Reply(calls=(ToolCall("", tool, json.dumps(arguments)),))


support = Agent(
    os.environ.get("TENLINES_MODEL") or clerk,
    [search_orders, get_order, get_tracking, refund_order],
    instructions="You answer questions about orders of a small shop. Look things up; make nothing up.",
    name="support",
    version="1",
)
fleet = Fleet([support], queues=[Queue("default", at_once=40)])
