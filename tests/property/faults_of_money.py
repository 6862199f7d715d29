"""Faults in what is set aside, for requests and for calls that spend, and in how tokens are reckoned."""

from __future__ import annotations

from seeding import C, D, E, Fault, K, L, M, T, Z

MONEY: tuple[Fault, ...] = (
    # what a call is given
    Fault("money: a call is given the run's own last step", K, "kept = Left(1, calls", "kept = Left(0, calls"),
    Fault(
        "money: a call is given the calls beside it",
        K,
        "Left(1, calls, own",
        "Left(1, 0, own",
    ),
    Fault("money: a call is given the run's own next request", K, "calls, own, reserved", "calls, 0, reserved"),
    Fault(
        "money: a call is given the run's own dollars",
        K,
        "own, reserved.dollars or 0.0)",
        "own, 0.0)",
    ),
    Fault(
        "money: each call is given all dollars",
        K,
        "(kept.dollars or 0.0)) / count",
        "(kept.dollars or 0.0))",
    ),
    Fault("money: what is over is given to each", K, "return each + (rank < over)", "return each + bool(over)"),
    Fault("money: what is over is given to nobody", K, "return each + (rank < over)", "return each"),
    Fault("money: any call may be given something", K, "if (given is not None) != one.spec.spends:", "if False:"),
    Fault("money: less than nothing is given", K, "not 0 <= (amount or 0) <= (", "not (amount or 0) <= ("),
    Fault("money: more is given than there is", K, " <= (getattr(left, name) or 0) * (1 + 1e-9):", ":"),
    Fault("money: given without a limit", K, "(limit is None) != (amount is None) or ", ""),
    Fault(
        "money: the call itself is not counted", K, "if left.tool_calls is not None and not one.counted:", "if False:"
    ),
    Fault(
        "money: what is given is not held",
        K,
        "state.account.held, state.account.holders = _plus(state.account.held, given), state.account.holders + 1",
        "state.account.holders += 1",
    ),
    Fault(
        "money: what was given before a crash is given back",
        K,
        "    one.allowance = given\n",
        "    if one.allowance is not None:\n"
        "        state.account.held = _minus(state.account.held, one.allowance)\n"
        "        state.account.holders -= 1\n"
        "    one.allowance = given\n",
    ),
    # what it says that it used
    Fault(
        "money: who says nothing has used nothing",
        K,
        "    if spent is None:\n        return\n    if one.allowance is None:",
        "    if spent is None and one.allowance is None:\n        return\n    spent = spent or Spent()\n"
        "    if one.allowance is None:",
    ),
    Fault(
        "money: spent without having been given anything",
        K,
        '        raise InvalidEvent(f"{one.call.name!r} was given nothing to spend on its own")',
        "        one.allowance, state.account.holders = NOTHING, state.account.holders + 1",
    ),
    Fault("money: less than nothing is spent", K, "    if any(value < 0 for", "    if False and any(value < 0 for"),
    Fault(
        "money: a rest is held for nobody",
        K,
        "_minus(account.held, given) if account.holders else NOTHING",
        "_minus(account.held, given)",
    ),
    Fault(
        "money: the first end frees everything",
        K,
        "_minus(account.held, given) if account.holders else NOTHING",
        "NOTHING",
    ),
    Fault(
        "money: only the last call counts",
        K,
        "account.children = account.children.plus(spent)",
        "account.children = spent",
    ),
    Fault(
        "money: a late end does not count",
        C,
        "    settle(state, state.given_up[event.step, event.position], event.spent)\n",
        "",
    ),
    Fault(
        "money: a failed call has used nothing",
        C,
        "    settle(state, one, event.spent)\n    exchange.over_limit",
        "    exchange.over_limit",
    ),
    Fault(
        "money: what is given up gives back what it may still spend",
        C,
        '    answer(state, event.position, "timeout", (Text(text),))',
        "    if one.allowance is not None:\n"
        "        account, one.allowance = state.account, None\n"
        "        account.held, account.holders = type(account.held)(), account.holders - 1\n"
        '    answer(state, event.position, "timeout", (Text(text),))',
    ),
    Fault(
        "money: refused, but changed",
        C,
        "        over_limit = over and not stopped\n",
        "        exchange.over_limit = exchange.over_limit or (over and not stopped)\n",
    ),
    # the account
    Fault(
        "money: held tokens do not count",
        L,
        "children.all_tokens + (held.tokens or 0)",
        "children.all_tokens",
    ),
    Fault(
        "money: the steps of children do not count", L, "self.also_steps = children.steps + (", "self.also_steps = ("
    ),
    Fault(
        "money: held calls do not count",
        L,
        "children.tool_calls + (held.tool_calls or 0)",
        "children.tool_calls",
    ),
    Fault(
        "money: held dollars do not count",
        L,
        "children.all_dollars + (held.dollars or 0.0)",
        "children.all_dollars",
    ),
    Fault(
        "money: what a call is given is not entered",
        K,
        "account.holders + 1\n    state.account.recount()\n",
        "account.holders + 1\n",
    ),
    Fault(
        "money: what a call says is not entered",
        K,
        "account.children.plus(spent)\n    account.recount()\n",
        "account.children.plus(spent)\n",
    ),
    Fault("money: whoever pays is not told what is held", L, "        if not self.holders:\n", "        if True:\n"),
    Fault(
        "money: the cost is told while some is held",
        T,
        "spent.unpriced == 0 and not account.holders",
        "spent.unpriced == 0",
    ),
    Fault(
        "money: a child without a price costs nothing",
        T,
        "is_priced = spent.unpriced == 0",
        "is_priced = account.unpriced == 0",
    ),
    Fault(
        "money: a request that was cancelled is free",
        M,
        "        state.account.lose(state.reserved)\n",
        "        pass\n",
    ),
    Fault(
        "money: a request that a crash cut off is free",
        E,
        "        state.account.lose(state.reserved)\n",
        "        pass\n",
    ),
    Fault(
        "money: a reply without counts is free",
        L,
        "            self.presumed_tokens += _unsaid(usage, reserved)\n            self.recount()\n",
        "",
    ),
    Fault(
        "money: a reply without a price is free",
        L,
        "            if reserved.dollars:\n                self._presume(reserved.dollars)\n",
        "",
    ),
    Fault(
        "money: no call budget for what children called",
        C,
        "if budget is not None and not is_free(one) and state.account.all_tool_calls >= budget:",
        "if budget is not None and not is_free(one) and state.account.tool_calls >= budget:",
    ),
    Fault(
        "money: calls are offered that children have used up",
        D,
        "else budget - state.account.all_tool_calls",
        "else budget - state.account.tool_calls",
    ),
    Fault(
        "money: no step limit for children",
        D,
        "state.account.all_steps >= steps and",
        "state.account.steps >= steps and",
    ),
    # what a request may cost
    Fault(
        "money: the dearer tier is not reserved", L, "self.tiers if tier.above < input_tokens)", "self.tiers if False)"
    ),
    Fault(
        "money: writing to the cache is not reserved",
        L,
        "max(price.input, price.cache_read or 0.0, price.cache_write or 0.0)",
        "price.input",
    ),
    Fault(
        "money: children are not in the token budget",
        L,
        "limits.tokens - account.tokens - input",
        "limits.tokens - account.input_tokens - account.output_tokens - input",
    ),
    Fault(
        "money: children are not in the dollar budget",
        L,
        "limits.dollars - account.all_dollars - price",
        "limits.dollars - account.dollars - price",
    ),
    # how tokens are reckoned
    Fault(
        "tokens: a report of nothing counts",
        Z,
        "if usage is None or not usage.input or not state.estimated_tokens:",
        "if usage is None or usage.input is None:",
    ),
    Fault("tokens: what was cut is still counted", Z, "    state.known_tokens -= state.rate * gone\n", ""),
    Fault("tokens: a cut before any report takes nothing away", Z, "    if state.known_tokens <= 0:", "    if False:"),
    Fault("tokens: nothing is added for what is uncertain", Z, "(new * state.margin if new > 0 else new)", "new"),
    Fault("tokens: the same request again after it was too long", Z, "REFUSED = 0.9", "REFUSED = 1.0"),
    Fault(
        "tokens: a refusal makes the window larger",
        Z,
        "else min(window, held * REFUSED)",
        "else max(window, held * REFUSED)",
    ),
)
