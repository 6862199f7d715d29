"""Who may run what, in one place: the policy of an agent, over what each tool says for itself.

```python
Agent(model, tools=[...], policy={"read_*": "allow", "delete_*": "deny", "pay": large_sums, "*": "ask"})
```

It fails closed: whatever a policy raises, and whatever it returns that is no opinion, asks a person.
"""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import msgspec

from tenlines.core.outcomes import bounded, sendable
from tenlines.errors import ConfigError
from tenlines.ports import Allow, Ask, Deny, Edit, GuardedCall, Opinion, Policy, ToolPort, Verdict
from tenlines.tools.careful import described, refuse_parameters, refuse_waiting

WORDS: dict[str, Verdict] = {"allow": Allow(), "deny": Deny(), "ask": Ask()}


def as_policy(value: Any) -> Policy | None:
    """Make a policy of what an agent was given.

    Args:
        value: A function of the `tenlines.ports.GuardedCall`, or a mapping of names of tools to what is said of their
            calls: "allow", "deny", "ask", a verdict, a function, or None. Names are patterns (`delete_*`, `*`), and the
            first that fits decides. None, and what no name fits, leaves a call to the tool's own `approve`.

    Raises:
        ConfigError: A word is not known, or something can give no opinion.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return _by_name(tuple((_pattern(name), _rule(f"policy[{name!r}]", one)) for name, one in value.items()))
    if isinstance(value, str | Allow | Deny | Ask | Edit):
        raise ConfigError(
            f"policy={value!r} names no tools: give a mapping, as in policy={{'*': 'ask'}}, or a function"
        )
    return _function("policy", value)


def settle(policy: Policy | None, tool: ToolPort, call: GuardedCall) -> Verdict:
    """What becomes of a call: what the policy says, or else the tool's own `approve`.

    Never raises anything but `KeyboardInterrupt`.

    Args:
        policy: From `as_policy`.
        tool: The tool itself. What `call.tool` says of `approve` is the agent's word, not the tool's.
        call: The call. Whoever is asked gets a copy.
    """
    if policy is None and not tool.spec.approve:
        return Ask("the run was begun under a policy that is not here now")
    own = f"approve of {call.name}"
    for who, one in (("the policy", policy), (own, partial(_permit, tool))):
        verdict = None if one is None else _asked(who, one, call)
        if verdict is not None:
            return verdict
    return _unsettled(own, None)


def _permit(tool: ToolPort, call: GuardedCall) -> Opinion:
    """What the tool says for itself; a tool that wants leave and cannot say for what asks a person."""
    if not tool.spec.approve:
        return Allow()
    permit: Policy = getattr(tool, "permit", lambda _: Ask())
    return permit(call)


def _asked(who: str, policy: Policy, call: GuardedCall) -> Verdict | None:
    try:
        return _verdict(who, policy(call._replace(arguments=copy.deepcopy(call.arguments))))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        words = "".join(traceback.format_exception_only(error)).strip()
        return Ask(f"{who} failed: {bounded(sendable(words))}")


def _verdict(who: str, opinion: Any) -> Verdict | None:
    """An opinion as a verdict, or None where there is none."""
    if opinion is None:
        return None
    if isinstance(opinion, str):
        return WORDS[opinion] if opinion in WORDS else _unsettled(who, opinion)
    if isinstance(opinion, Allow):
        return opinion
    if isinstance(opinion, Deny | Ask | Edit) and isinstance(opinion.reason, str):
        return _edit(who, opinion) if isinstance(opinion, Edit) else opinion
    return _unsettled(who, opinion)


def _edit(who: str, edit: Edit) -> Verdict:
    """The same with plain JSON, which is what will be recorded and run."""
    arguments = msgspec.json.decode(msgspec.json.encode(edit.arguments))
    return Edit(arguments, edit.reason) if isinstance(arguments, dict) else _unsettled(who, edit)


def _unsettled(who: str, opinion: object) -> Ask:
    return Ask(f"{who} failed: it returned {described(opinion)}, which is no opinion")


def _by_name(rules: tuple[tuple[str, Policy], ...]) -> Policy:
    def policy(call: GuardedCall) -> Opinion:
        for pattern, rule in rules:
            if fnmatchcase(call.name, pattern):
                return rule(call)
        return None

    return policy


def _pattern(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise ConfigError(f"policy: a name of tools is a text such as 'pay' or 'delete_*', not {described(name)}")
    return name


def _rule(where: str, value: Any) -> Policy:
    if isinstance(value, str) and value in WORDS:
        value = WORDS[value]
    if value is None or isinstance(value, Allow | Deny | Ask | Edit):
        verdict: Verdict | None = value
        return lambda _: verdict
    return _function(where, value)


def _function(where: str, value: Any) -> Policy:
    if not callable(value) or isinstance(value, type):
        raise ConfigError(
            f"{where} is {described(value)}: give 'allow', 'deny', 'ask', a verdict of tenlines.ports, or a function"
        )
    refuse_waiting(where, value)
    refuse_parameters(where, value)
    function: Callable[[GuardedCall], Opinion] = value
    return function
