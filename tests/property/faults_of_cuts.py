"""Faults in how a transcript is cut, in summaries, in the size of requests, and in what is said of their beginning."""

from __future__ import annotations

from seeding import B, D, E, Fault, G, M, N, P, X, Y

CUTS: tuple[Fault, ...] = (
    # what may be cut, and where
    Fault(
        "cut: nobody wanted it",
        Y,
        "if state.compaction is None or state.stop is not None or waits:",
        "if state.stop is not None or waits:",
    ),
    Fault(
        "cut: in a run that stops",
        Y,
        "if state.compaction is None or state.stop is not None or waits:",
        "if state.compaction is None or waits:",
    ),
    Fault(
        "cut: before the time to ask again",
        Y,
        "if state.compaction is None or state.stop is not None or waits:",
        "if state.compaction is None or state.stop is not None:",
    ),
    Fault(
        "cut: never after a request that failed",
        Y,
        "waits = state.retry_at is not None and event.at < state.retry_at",
        "waits = state.retry_at is not None",
    ),
    Fault("cut: anywhere", Y, "if problem := context.problem(state.messages, span):", 'if problem := "":'),
    Fault(
        "cut: through an exchange", N, "if not (_is_edge(messages, start) and _is_edge(messages, end)):", "if False:"
    ),
    Fault("cut: the newest exchange goes", N, "if end > protected_from(messages, 1):", "if False:"),
    Fault(
        "cut: a gap in the middle",
        N,
        "if any(isinstance(messages[index], Assistant) for index in range(start)):",
        "if False:",
    ),
    Fault(
        "cut: what people said goes",
        N,
        "return isinstance(message, System | User) or",
        "return isinstance(message, System) or",
    ),
    Fault(
        "cut: an error becomes a success",
        N,
        "Result(message.call_id, message.name, message.outcome, (Text(text),))",
        'Result(message.call_id, message.name, "ok", (Text(text),))',
    ),
    Fault(
        "cut: signed reasoning is taken for whole",
        N,
        "return whole[:first] + [_rebased(message) for message in whole[first:]]",
        "return whole",
    ),
    Fault(
        "cut: views of the old transcript change",
        Y,
        "    state.messages = messages\n",
        "    old = list(old)\n    state.messages[:] = messages\n",
    ),
    Fault(
        "cut: the size stays as it was",
        Y,
        "    state.estimated_tokens = state.tools_tokens + sum(map(estimate_tokens, messages))\n",
        "",
    ),
    Fault(
        "cut: the tools are forgotten",
        Y,
        "state.tools_tokens + sum(map(estimate_tokens, messages))",
        "sum(map(estimate_tokens, messages))",
    ),
    Fault("cut: the reckoning stays as it was", Y, "    metering.forget_part(state, before)\n", ""),
    Fault(
        "cut: again and again",
        Y,
        "cuts.is_fresh = None, now * shrinking.FLOOR, True",
        "cuts.is_fresh = None, now * shrinking.FLOOR, False",
    ),
    # summaries
    Fault("summary: at any time", Y, "if not shrinking.may_summarise(state):", "if False:"),
    Fault("summary: twice in one step", Y, "    state.cuts.tried_at = state.account.steps\n", ""),
    Fault("summary: twice in one step is allowed", X, " or cuts.tried_at == state.account.steps:", ":"),
    Fault("summary: for ever", X, "if cuts.failures >= MOST_FAILURES or", "if"),
    Fault("summary: a failure is none", Y, "        state.cuts.failures += 1\n", ""),
    Fault(
        "summary: a success does not count",
        Y,
        "state.cuts.failures, state.cuts.summary = 0, (",
        "state.cuts.summary = (",
    ),
    Fault("summary: nothing at all is no failure", Y, ' or "the request failed"', ""),
    Fault(
        "summary: is free",
        Y,
        "        state.account.enter(usage, dollars, state.reserved)",
        "        pass",
    ),
    Fault(
        "summary: what people said meanwhile is lost",
        Y,
        "    release_queue(state)\n    stop_if_cancelled(state)\n\n\ndef on_context",
        "    stop_if_cancelled(state)\n\n\ndef on_context",
    ),
    Fault(
        "summary: a cancelled run goes on", Y, "    stop_if_cancelled(state)\n\n\ndef on_context", "\n\ndef on_context"
    ),
    Fault(
        "summary: any text will do",
        Y,
        'if event.strategy == "summarise" and cuts.summary !=',
        "if False and cuts.summary !=",
    ),
    Fault(
        "summary: is not used",
        X,
        "    if state.cuts.summary is not None:\n        return _with_summary",
        "    if False:\n        return _with_summary",
    ),
    Fault(
        "summary: with calls",
        N,
        '    if reply.calls:\n        return "it calls',
        '    if False:\n        return "it calls',
    ),
    Fault("summary: empty", N, "    if not reply.text.strip():\n", "    if False:\n"),
    Fault("summary: cut off", N, 'if reply.stop not in ("end", "stop_sequence", "unknown"):', "if False:"),
    Fault("summary: too long", N, "    if tokens > limit:\n", "    if False:\n"),
    Fault("summary: longer than what it stands for", N, "    if tokens >= span.tokens:\n", "    if False:\n"),
    Fault(
        "summary: a cancel does not stop it",
        M,
        "if state.phase in (Phase.AWAITING_MODEL, Phase.SUMMARISING) and event",
        "if state.phase is Phase.AWAITING_MODEL and event",
    ),
    Fault(
        "summary: a crash in it is free",
        E,
        "if state.phase in (Phase.AWAITING_MODEL, Phase.SUMMARISING):",
        "if state.phase is Phase.AWAITING_MODEL:",
    ),
    Fault("summary: of nothing", D, "[*state.messages, question]", "[question]"),
    Fault(
        "summary: a tool is forced",
        D,
        '    choice = choice if choice in ("auto", "none") and state.finish is None else "none"\n',
        "",
    ),
    Fault(
        "summary: the question is not reserved for",
        D,
        "asked = metering.most(state) + estimate_tokens(question)",
        "asked = metering.most(state)",
    ),
    Fault(
        "summary: nobody pays for it",
        X,
        "    return not reserve(state.account, state.limits, settings.price, asked, room_for_output(state)).refusal",
        "    return True",
    ),
    Fault(
        "summary: given up for good",
        E,
        "    cuts.failures, cuts.tried_at, cuts.summarising = 0, -1, None\n",
        "    cuts.summarising = None\n",
    ),
    # the window
    Fault(
        "window: a summary that does not fit",
        X,
        "if cuts.window is not None and asked + room_for_output(state) > cuts.window:",
        "if False:",
    ),
    Fault(
        "window: what is uncertain is not looked at",
        X,
        "cuts, held = state.cuts, float(metering.most(state))",
        "cuts, held = state.cuts, now",
    ),
    Fault("window: sent all the same", X, "    if after + ground.output > window:\n", "    if False:\n"),
    Fault(
        "window: ends, though it may fit",
        X,
        "    if after + ground.output > window:\n",
        "    if span is None or after + ground.output > window:\n",
    ),
    Fault(
        "window: the reply is not looked at",
        D,
        "room = None if output is None else most_output(state, asked)",
        "room = None",
    ),
    Fault(
        "window: what was said of it is forgotten",
        M,
        "state.cuts.window = None if state.compaction is None else state.compaction.window",
        "pass",
    ),
    Fault(
        "window: what is said of another model is not believed", E, "if was_refused and not is_news:", "if was_refused:"
    ),
    Fault(
        "window: a new owner's word does not count",
        E,
        "state.compaction, cuts.window = event.compaction, told",
        "state.compaction = event.compaction",
    ),
    Fault(
        "window: nothing is learnt from a refusal",
        P,
        "        if not metering.learn_window(state):\n",
        "        if state.compaction is None:\n",
    ),
    Fault(
        "window: an end that is none by another clock",
        D,
        "    if isinstance(smaller, Finish):\n        return smaller",
        "    if False:\n        return smaller",
    ),
    Fault("at: a cut that nobody asked for", X, "now > max(compaction.at, cuts.floor) and", "now > 0 and"),
    # the beginning of a request
    Fault("beginning: the model is taken to know what was cut", Y, "        state.sent = first\n", ""),
    Fault("beginning: told anew for nothing", Y, "    if first < state.sent:\n", "    if True:\n"),
    Fault(
        "beginning: a cut is not said",
        Y,
        '        note_change(state, f"the transcript was cut ({event.strategy})")\n',
        "",
    ),
    Fault("beginning: what is left out is not said", P, '    note_change(state, f"{left} is left out")\n', ""),
    Fault("beginning: said for ever", P, '    state.changed, state.tools_changed = "", ""\n', ""),
    Fault(
        "beginning: other tools are not said",
        G,
        "tools_change(state.last_specs, tools) if state.last_choice else",
        '"" if state.last_choice else',
    ),
    Fault(
        "beginning: tools against those of an owner that asked nothing",
        G,
        "tools_change(state.last_specs, tools)",
        "tools_change(state.specs, tools)",
    ),
    Fault(
        "beginning: another choice is not said",
        P,
        "state.last_choice, state.last_specs = state.asked_choice, state.specs",
        'state.last_choice, state.last_specs = "", state.specs',
    ),
    Fault(
        "beginning: the order of tools does not matter",
        B,
        'return "" if list(old) == list(new) else "the order of the tools"',
        'return "" if new else "the order of the tools"',
    ),
    Fault(
        "beginning: what was said before the first request is lost",
        M,
        "state.session_began, state.changed = event.at, event.changed",
        "state.session_began = event.at",
    ),
)
