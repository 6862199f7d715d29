"""The functions beside a tool: `approve`, `undo` and `reconcile`."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from tenlines.core.events import ToolSpec
from tenlines.errors import ConfigError
from tenlines.ports import NOT_DONE, Allow, Ask, CallContext, Deny, Edit, GuardedCall, Opinion
from tenlines.tools import Tool, tool
from tenlines.tools.load import as_tools, load_tools

CTX = CallContext("run-1:2:3", "t", None)


def guarded(one: Tool[..., Any], **arguments: Any) -> GuardedCall:
    return GuardedCall(one.spec, arguments, "run-1", 2, 3)


def nothing() -> None:
    """Take nothing back."""


# --- approve ------------------------------------------------------------------------------------------


def test_a_tool_that_says_nothing_of_leave_gives_it() -> None:
    made = tool(lambda q: q, name="look")
    assert not made.spec.approve
    assert type(made.permit(guarded(made, q=1))) is Allow


def test_approve_true_asks_a_person_about_every_call() -> None:
    made = tool(lambda q: q, name="pay", approve=True)
    assert made.spec.approve
    assert type(made.permit(guarded(made, q=1))) is Ask


@pytest.mark.parametrize(
    "opinion", [Allow(), Deny("too much"), Ask("is it?"), Edit({"amount": 1}, "less"), "allow", "deny", "ask", None]
)
def test_an_approve_function_says_what_it_says(opinion: Opinion) -> None:
    made = tool(lambda amount: amount, name="pay", approve=lambda call: opinion)
    said = made.permit(guarded(made, amount=5))
    assert said is opinion
    assert made.spec.approve


@pytest.mark.parametrize(("amount", "verdict"), [(100, Allow), (101, Ask)])
def test_a_bool_says_whether_a_person_has_to_be_asked(amount: int, verdict: type) -> None:
    made = tool(lambda amount: amount, name="pay", approve=lambda call: call.arguments["amount"] > 100)
    assert type(made.permit(guarded(made, amount=amount))) is verdict


def test_an_approve_function_sees_which_call_of_which_run_it_is() -> None:
    seen: list[GuardedCall] = []

    def approve(call: GuardedCall) -> bool:
        seen.append(call)
        return False

    made = tool(lambda amount: amount, name="pay", approve=approve)
    made.permit(guarded(made, amount=5))
    assert [(one.name, one.run_id, one.step, one.position, one.arguments) for one in seen] == [
        ("pay", "run-1", 2, 3, {"amount": 5})
    ]


async def later(call: GuardedCall) -> bool:
    return True


def pieces(call: GuardedCall) -> Iterator[bool]:
    yield True


@pytest.mark.parametrize(
    ("approve", "message"),
    [
        ("ask", r"approve of tool 'pay' is the str 'ask': give True, or a function of the tenlines.ports.GuardedCall"),
        (None, "is None: give True"),
        (bool, "is the class bool"),
        (nothing, r"has to take one argument, the tenlines.ports.GuardedCall"),
        (lambda call, amount: True, r"has to take one argument.*'amount'"),
        (later, "is async or yields.*make it a plain function"),
        (functools.partial(later), "is async or yields"),
        (pieces, "is async or yields"),
        (lambda self, call: True, "is a method, and the tool is none"),
    ],
)
def test_an_approve_that_cannot_answer_is_refused_at_once(approve: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tool(name="pay", approve=approve)(lambda amount: amount)


# --- undo ---------------------------------------------------------------------------------------------


@dataclass
class Seat:
    row: int
    letter: str


def recorder(seen: list[Any]) -> Callable[..., None]:
    def undo(day: date, seat: Seat, count: int, result: str, ctx: CallContext) -> None:
        seen.append((day, seat, count, result, ctx.key))

    return undo


def test_an_undo_gets_what_the_tool_got_and_what_it_returned() -> None:
    seen: list[Any] = []

    @tool(undo=recorder(seen))
    def book(day: date, seat: Seat, count: int = 2) -> str:
        return f"{day} {seat} {count}"

    assert book.spec.undoable
    book.undo({"day": "2026-03-01", "seat": {"row": 4, "letter": "A"}}, "B-1", CTX)
    assert seen == [(date(2026, 3, 1), Seat(4, "A"), 2, "B-1", "run-1:2:3")]


def test_an_undo_takes_only_what_it_names() -> None:
    seen: list[Any] = []
    made = tool(lambda a, b, c: a, name="act", undo=lambda b: seen.append(b))
    made.undo({"a": 1, "b": 2, "c": 3}, "", CTX)
    assert seen == [2]


def test_an_undo_with_kwargs_takes_all_the_others() -> None:
    seen: list[Any] = []
    made = tool(lambda a, b, c: a, name="act", undo=lambda b, **rest: seen.append((b, rest)))
    made.undo({"a": 1, "b": 2, "c": 3}, "not asked for", CTX)
    assert seen == [(2, {"a": 1, "c": 3})]


SEVEN: int = Field(7)


def test_the_default_of_the_tool_counts_and_not_that_of_its_undo() -> None:
    seen: list[Any] = []
    made = tool(lambda count=3, extra=SEVEN: 0, name="act")
    tool(made, undo=lambda count=5, extra=5, other=6: seen.append((count, extra, other))).undo({}, "", CTX)
    assert seen == [(3, 7, 6)]


def test_what_extra_keys_a_tool_took_its_undo_gets_too() -> None:
    seen: list[Any] = []

    def put(path: str, **rest: int) -> None:
        """Put."""

    made = tool(put, undo=lambda path, mode=0: seen.append((path, mode)))
    made.undo({"path": "x", "mode": 7, "size": 1}, "", CTX)
    assert seen == [("x", 7)]


def test_an_async_undo_is_for_the_caller_to_await() -> None:
    async def undo(a: int) -> int:
        await asyncio.sleep(0)
        return a + 1

    waiting = tool(lambda a: a, name="act", undo=undo).undo({"a": 1}, "", CTX)
    assert asyncio.run(waiting) == 2


def test_an_undo_that_is_a_tool_stands_for_its_function() -> None:
    seen: list[Any] = []

    @tool
    def cancel(seat: str) -> None:
        seen.append(seat)

    made = tool(name="book", undo=cancel)(lambda seat: seat)
    made.undo({"seat": "4A"}, "", CTX)
    assert seen == ["4A"]


def test_arguments_that_the_tool_does_not_take_any_more_are_an_error() -> None:
    made = tool(lambda a: a, name="act", undo=lambda a: a)
    with pytest.raises(TypeError, match="do not fit act as it is now"):
        made.undo({"b": 1}, "", CTX)


def test_a_tool_without_an_undo_says_so() -> None:
    made = tool(lambda a: a, name="act")
    with pytest.raises(ConfigError, match=r"'act' has no undo: give it one, as @tool\(undo=...\)"):
        made.undo({"a": 1}, "", CTX)
    with pytest.raises(ConfigError, match="has no reconcile"):
        made.reconcile({"a": 1}, CTX)


def yielding(seat: str) -> Iterator[None]:
    yield


async def yielding_later(seat: str) -> Any:
    yield


@pytest.mark.parametrize(
    ("undo", "message"),
    [
        (lambda place: 0, r"undo of tool 'book' takes 'place', which the tool does not have: it may take seat, day, "),
        (lambda place: 0, r"result, and a CallContext"),
        ("cancel", r"is the str 'cancel': give a function"),
        (Seat, "give a function"),
        (yielding, "yields, so that calling it would do nothing"),
        (yielding_later, "yields, so that calling it would do nothing"),
        (lambda *seats: 0, r"undo of tool 'book': parameter '\*seats' takes arguments without names"),
        (lambda self, seat: 0, "is a method, and the tool is none: take it from an object"),
    ],
)
def test_an_undo_that_cannot_be_called_is_refused_at_once(undo: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tool(name="book", undo=undo)(lambda seat, day, ctx=None: seat)


def test_a_name_that_would_mean_two_things_is_refused() -> None:
    made = tool(lambda result: result, name="keep")
    with pytest.raises(ConfigError, match="'result', which is what the call returned, and the tool has a parameter"):
        tool(made, undo=lambda result: 0)
    assert tool(made, undo=lambda ctx=None: 0).spec.undoable


def test_what_only_reads_has_nothing_to_undo() -> None:
    with pytest.raises(ConfigError, match=r"'look' is read_only, so there is nothing to undo"):
        tool(name="look", read_only=True, undo=nothing)(lambda q: q)


# --- reconcile ----------------------------------------------------------------------------------------


def test_reconcile_finds_out_what_became_of_a_call() -> None:
    sent = {"run-1:2:3": "M-1"}

    def find(to: str, ctx: CallContext) -> Any:
        return sent.get(ctx.key, NOT_DONE)

    made = tool(lambda to, ctx=None: to, name="send", reconcile=find)
    assert made.spec.reconcilable
    assert made.reconcile({"to": "a", "ctx": 0}, CTX) == "M-1"
    sent.clear()
    assert made.reconcile({"to": "a"}, CTX) is NOT_DONE


def test_an_async_reconcile_is_for_the_caller_to_await() -> None:
    async def find() -> object:
        return NOT_DONE

    assert asyncio.run(tool(lambda: 0, name="send", reconcile=find).reconcile({}, CTX)) is NOT_DONE


def test_reconcile_knows_no_result() -> None:
    with pytest.raises(ConfigError, match="reconcile of tool 'send' takes 'result', which the tool does not have"):
        tool(name="send", reconcile=lambda result: 0)(lambda: 0)
    with pytest.raises(ConfigError, match=r"does not have: it may take a CallContext$"):
        tool(name="send", reconcile=lambda to: 0)(lambda: 0)
    tool(name="send", reconcile=lambda result: 0)(lambda result: 0)


@pytest.mark.parametrize("word", ["read_only", "idempotent"])
def test_nobody_asks_what_became_of_a_call_that_just_runs_again(word: str) -> None:
    with pytest.raises(ConfigError, match=rf"'send' is {word}, so after a crash a call just runs again"):
        tool(name="send", reconcile=nothing, **{word: True})(lambda: 0)  # type: ignore[call-overload]


# --- methods, other forms of the same tool --------------------------------------------------------------


class Shop:
    sold: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.orders: dict[str, str] = {}

    def large(self, call: GuardedCall) -> bool:
        return len(self.orders) > 1

    def cancel(self, item: str) -> None:
        self.orders.pop(item, None)

    async def find(self, item: str, ctx: CallContext) -> Any:
        return self.orders.get(item, NOT_DONE)

    @tool(approve=large, undo=cancel, reconcile=find)
    def order(self, item: str, ctx: CallContext) -> str:
        self.orders[item] = ctx.key
        return item

    @classmethod
    def take_back(cls, item: str) -> None:
        cls.sold = tuple(one for one in cls.sold if one != item)

    @staticmethod
    def never(call: GuardedCall) -> Opinion:
        return "deny"

    @tool(undo=take_back, approve=never)
    @classmethod
    def sell(cls, item: str) -> None:
        cls.sold += (item,)

    @tool(undo=take_back)
    def sell_here(self, item: str) -> None:
        self.sell(item)

    def plain(self, item: str) -> None:
        self.orders[item] = ""


def test_methods_beside_a_method_work_on_the_same_object() -> None:
    one, other = Shop(), Shop()
    one.orders = {"tea": "k", "cup": "k"}
    assert type(one.order.permit(guarded(one.order, item="tea"))) is Ask
    assert type(other.order.permit(guarded(other.order, item="tea"))) is Allow
    assert asyncio.run(one.order.reconcile({"item": "tea"}, CTX)) == "k"
    assert asyncio.run(other.order.reconcile({"item": "tea"}, CTX)) is NOT_DONE
    one.order.undo({"item": "tea"}, "", CTX)
    assert one.orders == {"cup": "k"}


def test_class_methods_and_static_methods_may_stand_beside_a_tool() -> None:
    class Kiosk(Shop):
        pass

    for made in (Kiosk.sell, Kiosk().sell_here):
        Kiosk.sold = ("tea", "cup")
        made.undo({"item": "tea"}, "", CTX)
        assert Kiosk.sold == ("cup",)
        assert Shop.sold == ()
    assert Kiosk.sell.permit(guarded(Kiosk.sell)) == "deny"


def test_a_bound_method_becomes_a_tool_with_functions_of_its_class() -> None:
    shop = Shop()
    shop.orders = {"tea": ""}
    made = tool(shop.plain, undo=Shop.cancel)
    made.undo({"item": "tea"}, "", CTX)
    assert shop.orders == {}


def test_other_forms_of_a_tool_keep_what_stands_beside_it() -> None:
    seen: list[Any] = []
    made = tool(lambda q: q, name="act", approve=True, undo=lambda q: seen.append(q), reconcile=lambda: "done")
    forms = [made.renamed("b"), made.loaded_from("x.py"), made.in_process(), tool(made, timeout_s=1.0)]
    for one in [*forms, tool(final=True)(made)]:
        assert (one.spec.approve, one.spec.undoable, one.spec.reconcilable) == (True, True, True)
        one.undo({"q": one.name}, "", CTX)
        assert one.reconcile({"q": 1}, CTX) == "done"
        assert type(one.permit(guarded(one))) is Ask
    assert seen == ["b", "act", "act", "act", "act"]


def test_a_tool_that_is_made_again_keeps_what_it_is_not_told_anew() -> None:
    first = tool(lambda q: q, name="look", read_only=True, description="Look.").renamed("see")
    again = tool(first, repeatable=True)
    assert (again.name, again.spec.read_only, again.spec.description) == ("see", True, "Look.")
    assert not tool(again, read_only=False).spec.read_only
    with pytest.raises(ConfigError, match=r"@tool.*nonsense"):
        tool(again, nonsense=1)  # type: ignore[call-overload]


ISOLATED = """
import os
from datetime import date
from tenlines import tool

def undo(day: date, result: str):
    return os.getpid(), day, result

@tool(isolate=True, approve=lambda call: os.getpid() > 0, undo=undo, reconcile=lambda day: (os.getpid(), day))
def book(day: date) -> int:
    return os.getpid()
"""


def test_what_stands_beside_an_isolated_tool_runs_in_this_process(tmp_path: Path) -> None:
    (tmp_path / "booking.py").write_text(ISOLATED)
    (book,) = load_tools(tmp_path / "booking.py")
    assert book.is_killable
    day = date(2026, 3, 1)
    assert book.undo({"day": "2026-03-01"}, "7", CTX) == (os.getpid(), day, "7")
    assert book.reconcile({"day": "2026-03-01"}, CTX) == (os.getpid(), day)
    assert type(book.permit(guarded(book))) is Ask


def test_an_object_that_promises_care_must_have_the_methods() -> None:
    class Foreign:
        spec = ToolSpec("pay", approve=True, undoable=True)
        is_async = is_killable = False
        check = call = render = permit = nothing

    with pytest.raises(ConfigError, match=r"'pay' lacks undo: see tenlines.ports.CarefulTool"):
        as_tools([Foreign()])
