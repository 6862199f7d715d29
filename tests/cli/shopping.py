"""A shop whose tools write down what they really did, and how a run of it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tenlines.journal import open_journal

SHOP = '''
import os, pathlib, time
from tenlines import CallContext, tool

def note(text):
    with open("done.txt", "a") as out:
        out.write(text + "\\n")

def take_back(amount, ctx: CallContext):
    if os.path.exists("bank-is-closed"):
        raise RuntimeError("the bank is closed")
    if os.path.exists("bank-is-slow"):
        pathlib.Path("taking-back").touch()
        while os.path.exists("bank-is-slow"):
            time.sleep(0.01)
    note(f"took back {amount} of {ctx.key.partition(':')[2]}")

@tool(approve=lambda call: call.arguments["amount"] > 100, undo=take_back)
def pay(amount: int, to: str = "Ann") -> str:
    """Pay somebody."""
    note(f"paid {amount} to {to}")
    return f"paid {amount} to {to}"

@tool
def mail(text: str) -> str:
    """Write a mail."""
    note(f"mailed {text}")
    return "sent"

@tool(read_only=True)
def look() -> str:
    """Look at the shop."""
    return "open"
'''


def done_in(home: Path) -> list[str]:
    """What the tools really did."""
    file = home / "done.txt"
    return file.read_text().splitlines() if file.exists() else []


def events_of(run_id: str = "") -> list[Any]:
    """The log of a run, or of the newest."""
    journal = open_journal()
    return list(journal.read(run_id or journal.runs(1)[0].run_id))


def starter(tenlines: Callable[..., Any], server: Any) -> Callable[..., Any]:
    """How to begin a run whose first reply asks for some calls; the second one answers."""

    def start(*calls: tuple[str, dict[str, Any]], options: tuple[str, ...] = (), last: str = "all done") -> Any:
        server.replies = [server.calls(*calls), server.says(last)]
        return tenlines("run", "Run the shop", "--model", server.model, "--tools", "shop.py", *options)

    return start
