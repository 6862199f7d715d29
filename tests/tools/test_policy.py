"""Who may run what: the policy of an agent, over what each tool says for itself."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tenlines.core.events import ToolSpec
from tenlines.errors import ConfigError
from tenlines.ports import Allow, Ask, Deny, Edit, GuardedCall, Verdict
from tenlines.tools import Tool, tool
from tenlines.tools.policy import as_policy, settle

pay = tool(lambda amount, to="": amount, name="pay", approve=True)
look = tool(lambda q="": q, name="look", read_only=True)


def guarded(one: Tool[..., Any], **arguments: Any) -> GuardedCall:
    """As a driver hands it over: an agent with a policy marks all its tools."""
    return GuardedCall(ToolSpec(one.name, approve=True), arguments, "run-1", 1, 0)


def decided(policy: Any, one: Tool[..., Any] = pay, **arguments: Any) -> tuple[str, Verdict]:
    """The name of the verdict too."""
    verdict = settle(as_policy(policy), one, guarded(one, **arguments))
    return type(verdict).__name__, verdict


# --- what a policy may be -----------------------------------------------------------------------------


def test_no_policy_leaves_every_call_to_its_tool() -> None:
    assert as_policy(None) is None
    assert decided(None, pay) == ("Ask", Ask())
    assert decided(lambda _: None, look) == ("Allow", Allow())


def test_a_call_that_was_marked_by_a_policy_which_is_gone_is_asked_about() -> None:
    name, verdict = decided(None, look)
    assert name == "Ask"
    assert "under a policy that is not here now" in verdict.reason  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("opinion", "verdict"),
    [
        ("allow", Allow()),
        ("deny", Deny()),
        ("ask", Ask()),
        (Allow(), Allow()),
        (Deny("no"), Deny("no")),
        (Ask("sure?"), Ask("sure?")),
        (Edit({"amount": 1}, "less"), Edit({"amount": 1}, "less")),
    ],
)
def test_an_opinion_is_the_same_as_a_word_a_verdict_and_from_a_function(opinion: Any, verdict: Verdict) -> None:
    expected = (type(verdict).__name__, verdict)
    assert decided({"pay": opinion}) == expected
    assert decided({"pay": lambda call: opinion}) == expected
    assert decided(lambda call: opinion) == expected


def test_the_first_name_that_fits_decides() -> None:
    policy = {"delete_user": "allow", "delete_*": "deny", "*": "ask"}
    names = ("delete_user", "delete_all", "DELETE_all", "pay")
    found = [decided(policy, tool(lambda: 0, name=name))[0] for name in names]
    assert found == ["Allow", "Deny", "Ask", "Ask"]


def test_no_opinion_leaves_a_call_to_its_tool_and_not_to_the_next_name() -> None:
    for nothing in (None, lambda call: None):
        assert decided({"look": nothing, "*": "deny"}, look)[0] == "Allow"
        assert decided({"pay": nothing, "*": "deny"}, pay)[0] == "Ask"
    assert decided({}, look)[0] == "Allow"
    assert decided({"other": "deny"}, pay)[0] == "Ask"


def test_a_policy_overrides_what_the_tool_says_in_both_directions() -> None:
    assert decided({"*": "allow"}, pay)[0] == "Allow"
    assert decided({"*": "deny"}, look)[0] == "Deny"


def test_a_policy_is_what_it_was_when_it_was_given() -> None:
    rules = {"*": "deny"}
    policy = as_policy(rules)
    rules["*"] = "allow"
    assert type(settle(policy, pay, guarded(pay))) is Deny


async def later(call: GuardedCall) -> None:
    """Too late."""


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("ask", r"policy='ask' names no tools: give a mapping, as in policy=\{'\*': 'ask'\}, or a function"),
        (Ask(), "names no tools"),
        (7, r"policy is the int 7: give 'allow', 'deny', 'ask', a verdict of tenlines.ports, or a function"),
        ({"pay": "alow"}, r"policy\['pay'\] is the str 'alow': give 'allow', 'deny', 'ask'"),
        ({"pay": True}, r"policy\['pay'\] is the bool True"),
        ({"pay": Ask}, r"policy\['pay'\] is the class Ask"),
        ({"pay": later}, r"policy\['pay'\] is async or yields"),
        (later, "policy is async or yields"),
        ({"pay": lambda: "ask"}, r"policy\['pay'\] has to take one argument"),
        ({7: "ask"}, r"a name of tools is a text such as 'pay' or 'delete_\*', not the int 7"),
        ({"": "ask"}, "a name of tools is a text"),
    ],
)
def test_a_policy_that_can_give_no_opinion_is_refused_at_once(policy: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        as_policy(policy)


# --- what fails asks a person -------------------------------------------------------------------------


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError


def raising(error: BaseException) -> Any:
    def policy(call: GuardedCall) -> None:
        raise error

    return policy


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("amount"), "KeyError: 'amount'"),
        (SystemExit(3), "SystemExit: 3"),
        (RecursionError("deep"), "RecursionError: deep"),
        (Mute(), "exception str() failed"),
        (ValueError("x" * 100_000), "characters left out"),
        (ValueError("\x1b[2J \ud800"), "\\x1b[2J \ufffd"),
    ],
)
def test_a_policy_that_raises_asks_a_person(error: BaseException, words: str) -> None:
    for policy in (raising(error), {"*": raising(error)}):
        name, verdict = decided(policy)
        assert name == "Ask"
        assert isinstance(verdict, Ask)
        assert verdict.reason.startswith("the policy failed: ")
        assert words in verdict.reason
        assert len(verdict.reason) < 5_000


def test_an_approve_that_raises_asks_a_person() -> None:
    made = tool(lambda amount: amount, name="pay", approve=lambda call: call.arguments["amuont"])
    assert decided(None, made, amount=1) == ("Ask", Ask("approve of pay failed: KeyError: 'amuont'"))
    assert decided(lambda call: None, made, amount=1)[0] == "Ask"


@pytest.mark.parametrize(
    "nonsense",
    [
        True,
        False,
        0,
        "Allow",
        "",
        (),
        Allow,
        Deny(None),  # type: ignore[arg-type]
        Ask(7),  # type: ignore[arg-type]
        Edit([]),  # type: ignore[arg-type]
        Edit({"amount": object()}),
        Edit({"amount": "\ud800"}),
        Edit({}, b"x"),  # type: ignore[arg-type]
        object(),
    ],
    ids=lambda nonsense: re.sub(" at 0x[0-9a-f]+", "", repr(nonsense)),
)
def test_a_policy_that_returns_no_opinion_asks_a_person(nonsense: Any) -> None:
    name, verdict = decided(lambda call: nonsense, look)
    assert name == "Ask"
    assert isinstance(verdict, Ask)
    assert verdict.reason.startswith("the policy failed: ")


def test_an_approve_without_an_opinion_asks_a_person() -> None:
    made = tool(lambda: 0, name="pay", approve=lambda call: None)
    assert decided(None, made) == (
        "Ask",
        Ask("approve of pay failed: it returned None, which is no opinion"),
    )


def test_ctrl_c_is_no_failure_of_a_policy() -> None:
    with pytest.raises(KeyboardInterrupt):
        decided(raising(KeyboardInterrupt()))


def test_a_recursive_policy_asks_a_person() -> None:
    def policy(call: GuardedCall) -> Any:
        return policy(call)

    assert decided(policy)[0] == "Ask"


# --- what it sees -------------------------------------------------------------------------------------


def test_whoever_is_asked_cannot_change_the_call() -> None:
    def policy(call: GuardedCall) -> None:
        call.arguments["to"] = "me"
        call.arguments["list"].append(1)  # type: ignore[union-attr]

    seen: list[Any] = []

    def approve(call: GuardedCall) -> bool:
        seen.append(call.arguments)
        return False

    made = tool(lambda to: to, name="pay", approve=approve)
    call = guarded(made, to="you", list=[])
    settle(as_policy(policy), made, call)
    assert call.arguments == {"to": "you", "list": []}
    assert seen == [{"to": "you", "list": []}]


def test_edited_arguments_are_plain_json() -> None:
    edit = {"amount": (1, 2)}
    name, verdict = decided(lambda call: Edit(edit))  # type: ignore[arg-type]
    assert name == "Edit"
    assert isinstance(verdict, Edit)
    assert verdict.arguments == {"amount": [1, 2]}


def test_a_tool_that_wants_leave_and_cannot_say_for_what_asks() -> None:
    class Foreign:
        spec = ToolSpec("pay", approve=True)

    verdict = settle(None, Foreign(), guarded(pay))  # type: ignore[arg-type]
    assert type(verdict) is Ask
    Foreign.spec = ToolSpec("pay")
    assert type(settle(lambda _: None, Foreign(), guarded(pay))) is Allow  # type: ignore[arg-type]
