"""Faults in how a run goes on: limits, order, truth, replay, work."""

from __future__ import annotations

from seeding import C, D, E, Fault, G, H, L, M, O, P, R, S, T, V

LOOP: tuple[Fault, ...] = (
    # law 1: guard first
    Fault("1: one step too many", D, "state.account.all_steps >= steps and", "state.account.all_steps > steps and"),
    Fault("1: one step too few", D, "state.account.all_steps >= steps and", "state.account.all_steps + 1 >= steps and"),
    Fault(
        "1: no step guard where a driver starts one",
        P,
        "if spent := why_no_step(state):",
        "if spent := None:",
    ),
    Fault(
        "1: tool budget not held for a group", D, "room = None if room is None else room - (not is_free(one))", "pass"
    ),
    Fault("1: tool budget off by one", D, "or room is None or room > 0", "or room is None or room >= 0"),
    Fault(
        "1: tool budget not held at the start of a call",
        C,
        "if budget is not None and not is_free(one) and state.account.all_tool_calls >= budget:",
        "if budget is not None and not is_free(one) and state.account.all_tool_calls > budget + 9:",
    ),
    Fault(
        "1: deadline off",
        D,
        "if deadline is not None and starts_at >= deadline:",
        "if deadline is not None and starts_at > deadline + 9:",
    ),
    Fault("1: estimate not kept", G, "    state.estimated_tokens += tokens\n", ""),
    Fault("1: tools not in the estimate", G, "    state.estimated_tokens += state.tools_tokens - old\n", ""),
    Fault("1: unknown price taken for free", L, "    if price is None:\n", "    if False:\n"),
    Fault(
        "1: token limit does not bound the reply",
        L,
        "output = min(output or room, room)\n    if limits.dollars",
        "pass\n    if limits.dollars",
    ),
    Fault("1: what was used is not counted", L, "            self.output_tokens += usage.output or 0\n", ""),
    Fault(
        "1: last words asked for again and again",
        G,
        "    if is_at_last_words(state) and not state.last_words:\n",
        "    if state.limits.last_words and state.account.steps >= (state.limits.steps or 1):\n",
    ),
    Fault(
        "1: last words may call tools",
        D,
        'if state.last_words == "due":\n        return "none"',
        'if state.last_words == "no":\n        return "none"',
    ),
    Fault(
        "1: time of earlier owners forgotten",
        G,
        "state.worked_s += max(0.0, worked_until - state.session_began)",
        "pass",
    ),
    Fault("1: raised limits ignored", M, "    state.limits = event.limits\n", "    pass\n"),
    Fault(
        "1: last words asked for again after a failure, whatever the limits say by then",
        P,
        'state.last_words = "due" if is_at_last_words(state) else ""',
        'state.last_words = "due"',
    ),
    # law 2: pessimistic
    Fault(
        "2: a run without an end is an answer",
        T,
        'status="max_steps", reason="the run has not ended"',
        'status="answered", reason=""',
    ),
    Fault(
        "2: no more moves is an error",
        P,
        'state.stop = Stop("max_steps", event.message)',
        'state.stop = Stop("model_error", event.message)',
    ),
    # law 3: intent before act
    Fault(
        "3: any step's call may start",
        G,
        "if event.step != exchange.step or type(event.position)",
        "if type(event.position)",
    ),
    Fault("3: key not checked", C, "if event.key != call_key(state, event.step, event.position):", "if False:"),
    Fault(
        "3: key changes on resume",
        S,
        'return f"{state.start.run_id}:{step}:{position}"',
        'return f"{state.start.run_id}:{step}:{position}" + "!" * bool(state.worked_s)',
    ),
    Fault("3: a result before its start", G, "if started is not None and one.started != started:", "if False:"),
    # law 4: one result per call
    Fault(
        "4: second result taken",
        G,
        "    if one.outcome is not None:\n        raise InvalidEvent(",
        "    if False:\n        raise InvalidEvent(",
    ),
    Fault("4: equal ids kept", C, "if not wanted or wanted in state.ids or", "if not wanted or"),
    Fault("4: ids of the history forgotten", M, "state.ids.update(call.id for call in message.calls)", "pass"),
    Fault("4: empty ids kept", C, "if not wanted or wanted in state.ids or", "if wanted in state.ids or"),
    Fault(
        "4: closed one too early",
        C,
        "    if not exchange.unanswered:\n",
        "    if exchange.unanswered <= 1 < len(calls):\n",
    ),
    Fault(
        "4: negative positions reach back",
        G,
        "not 0 <= event.position < len(exchange.calls)",
        "not event.position < len(exchange.calls)",
    ),
    Fault(
        "4: position past the end",
        G,
        "not 0 <= event.position < len(exchange.calls)",
        "not 0 <= event.position <= len(exchange.calls)",
    ),
    # law 5: order
    Fault(
        "5: results in the order of running",
        C,
        "in enumerate(exchange.calls):\n        signatures",
        "in ((p, exchange.calls[p]) for p in exchange.order):\n        signatures",
    ),
    Fault(
        "5: results in reverse",
        C,
        "for position, one in enumerate(exchange.calls):\n        signatures",
        "for position, one in reversed(list(enumerate(exchange.calls))):\n        signatures",
    ),
    Fault(
        "5: people speak inside an exchange",
        M,
        "    if state.phase is not Phase.READY:\n        state.queue",
        "    if state.phase is Phase.AWAITING_MODEL:\n        state.queue",
    ),
    Fault(
        "5: people speak before the results",
        C,
        "    append(state, exchange.message)\n    state.sent",
        "    append(state, exchange.message)\n    release_queue(state)\n    state.sent",
    ),
    Fault(
        "5: message lost after a crash",
        E,
        "    state.phase = Phase.READY\n    release_queue(state)\n    _tell_undone",
        "    state.phase = Phase.READY\n    _tell_undone",
    ),
    Fault("5: queue said twice", G, "    state.queue.clear()\n", "    pass\n"),
    # law 6: nothing after the end
    Fault(
        "6: end not checked",
        M,
        "if expected != Finish(event.status, event.reason, event.answer):",
        "if not isinstance(expected, Finish):",
    ),
    Fault(
        "6: any answer may end the run",
        M,
        "if expected != Finish(event.status, event.reason, event.answer):",
        "if expected != Finish(event.status, event.reason, expected.answer):",
    ),
    Fault(
        "6: final tool does not stop the others",
        D,
        "if exchange.final is not None:\n        return",
        "if False:\n        return",
    ),
    Fault(
        "6: final tool does not end the run",
        C,
        'state.answer, state.stop = exchange.final, Stop("answered", "")',
        "pass",
    ),
    Fault(
        "6: an answered run can be resumed",
        E,
        'if state.ended is not None and state.ended.status == "answered" and state.phase is Phase.ENDED:',
        "if False:",
    ),
    Fault("6: final tool does not go first", C, "return [*first, *(position", "return [*(position"),
    Fault(
        "6: messages taken after the end", M, "ev.MessageQueued: (_OPEN,", "ev.MessageQueued: ((*_OPEN, Phase.ENDED),"
    ),
    # law 7: truth
    Fault(
        "7: cancelled, though it may have taken effect",
        D,
        'outcome: Outcome = "cancelled" if one.spec.read_only else "in_doubt"',
        'outcome: Outcome = "cancelled"',
    ),
    Fault("7: a driver may say cancelled", C, '(event.outcome == "cancelled" and not harmless)', "False"),
    Fault(
        "7: not executed, though it had started before the crash", D, "    if one.counted:  #", "    if one.started:  #"
    ),
    Fault(
        "7: call in doubt runs again",
        E,
        "if one.counted and not _may_repeat(one.spec):",
        "if False:",
    ),
    Fault(
        "7: call in doubt runs again if the new tool allows it",
        E,
        "one.spec = _weaker(one.spec, spec) if one.counted else spec",
        "one.spec = spec",
    ),
    Fault(
        "7: refusal after a crash taken at its word",
        C,
        "if one.counted and not one.started and one.spec is not None and not one.spec.read_only:",
        "if False:",
    ),
    Fault(
        "7: text does not say that it may have happened",
        O,
        '"it may have. Check before you do it again."',
        '"try again."',
    ),
    Fault("7: not executed, said of what may run", C, "if one.counted or not (over or stopped):", "if False:"),
    Fault(
        "7: start forgotten for a plain call on resume",
        E,
        "return spec.read_only or spec.idempotent",
        "return True",
    ),
    # law 8: never guess
    Fault("8: unreadable arguments run as none", C, "elif spec is not None and parsed.value is None:", "elif False:"),
    Fault(
        "8: trailing text ignored",
        O,
        "value = msgspec.json.decode(text)",
        'value = msgspec.json.decode(text.replace("}{}", "}"))',
    ),
    Fault(
        "8: calls of a cut reply run",
        C,
        "if reply.stop not in RUNS_CALLS:",
        'if reply.stop not in RUNS_CALLS and reply.stop != "length":',
    ),
    Fault(
        "8: empty results dropped",
        C,
        "append(state, Result(one.call.id, one.call.name, one.outcome, parts))",
        'append(state, Result(one.call.id, one.call.name, one.outcome, parts or (Text("none"),)))',
    ),
    Fault(
        "8: a tool that is gone runs",
        E,
        "if spec is None and not one.counted:\n        one.refusal",
        "if spec is None and not one.counted:\n        return\n        one.refusal",
    ),
    # law 9: only an answer is an answer
    Fault(
        "9: partial words passed off as the answer",
        D,
        'steps was reached without an answer", None)',
        'steps was reached without an answer", state.partial or None)',
    ),
    Fault(
        "9: a refusal is an answer",
        P,
        'if reply.stop in ("content_filter", "refusal"):\n        state.stop = Stop("refused", "the',
        'if reply.stop == "content_filter":\n        state.stop = Stop("refused", "the',
    ),
    Fault("9: a cut reply is an answer", P, '    elif reply.stop == "length":\n', "    elif False:\n"),
    # law 10: replay
    Fault(
        "10: asking changes the state",
        M,
        "        return next_effect(self.state, now)\n",
        "        self.state.at = max(self.state.at, now)\n        return next_effect(self.state, now)\n",
    ),
    Fault("10: refused, but changed", P, "    state.attempt += 1\n    state.last_error", "    state.last_error"),
    Fault(
        "10: half a handler before the check",
        E,
        "    check_tools(event.tools)\n    set_tools(state, event.tools)\n    restart",
        "    set_tools(state, event.tools)\n    check_tools(event.tools)\n    restart",
    ),
    Fault("10: late result taken twice", C, "    del state.given_up[event.step, event.position]\n", ""),
    Fault(
        "10: late result of any call taken", C, "if (event.step, event.position) not in state.given_up:", "if False:"
    ),
    Fault("10: sequence not checked", M, "if event.seq != state.seq + 1:", "if False:"),
    Fault("10: time not checked", M, "if not 0 <= event.at < 1e12:", "if not event.at < 1e12:"),
    Fault("10: wrong types go in", M, "            event = codec.as_read(event)\n", "            pass\n"),
    # law 11: constant work
    Fault(
        "11: the transcript is copied",
        G,
        "    state.messages.append(message)\n",
        "    state.messages = [*state.messages, message]\n",
    ),
    Fault(
        "11: the transcript is added up",
        G,
        "    state.estimated_tokens += tokens\n",
        "    state.estimated_tokens = state.tools_tokens + sum(map(estimate_tokens, state.messages))\n",
    ),
    Fault(
        "11: the transcript is checked again",
        C,
        "    state.sent = len(state.messages)\n    signatures = []",
        "    first_fault(state.messages)\n    state.sent = len(state.messages)\n    signatures = []",
    ),
    Fault(
        "11: the view is a copy",
        D,
        "return TranscriptView(messages, len(messages))",
        "return TranscriptView(list(messages), len(messages))",
    ),
    Fault(
        "11: every call is looked at for each result", C, "    exchange.cursor = cursor\n", "    exchange.cursor = 0\n"
    ),
    # cancel, retries, loops, order of running
    Fault(
        "cancel ignored between steps",
        M,
        "    if state.phase is Phase.READY:\n        stop_if_cancelled(state)",
        "    pass",
    ),
    Fault(
        "cancel ignored after a reply",
        P,
        "    _take_words(state, reply)\n    stop_if_cancelled(state)",
        "    _take_words(state, reply)",
    ),
    Fault(
        "cancel ignored in an exchange",
        D,
        '    if state.cancel:\n        return "the run was cancelled before it started"\n',
        "",
    ),
    Fault(
        "cancel ignored when an exchange closes",
        C,
        "    stop_if_cancelled(state)\n    if state.stop is None:\n        _go_on",
        "    if state.stop is None:\n        _go_on",
    ),
    Fault(
        "cancel ignored when a call starts",
        C,
        "if state.cancel or open_exchange(state).final is not None:",
        "if open_exchange(state).final is not None:",
    ),
    Fault(
        "retries without end", P, "elif state.attempt >= retry.attempts:", "elif state.attempt > retry.attempts + 50:"
    ),
    Fault(
        "what was refused is sent again for ever",
        P,
        "elif (left := concession(event.violation)) and left not in state.left_out:",
        "elif left := concession(event.violation):",
    ),
    Fault(
        "a leaner request that is not told anew", P, "    state.sent = 0  # the model must be told", "    # the model"
    ),
    Fault("what was refused is not left out", D, "    if state.left_out:\n", "    if False:\n"),
    Fault("media left out for reasoning", V, 'if violation.startswith("RSN-"):', 'if violation.startswith("RSN-E"):'),
    Fault(
        "what a broken attempt used is forgotten",
        P,
        "        state.account.enter(event.usage, metering.dollars(state, event.usage, None), state.reserved)\n",
        "        pass\n",
    ),
    Fault("one retry too many", P, "elif state.attempt >= retry.attempts:", "elif state.attempt > retry.attempts:"),
    Fault(
        "retry-after ignored", P, "max(event.retry_after_s or 0.0, _backoff(state, retry))", "_backoff(state, retry)"
    ),
    Fault(
        "loop ended one round early", R, "run >= period * (told_after - 1) and", "run >= period * (told_after - 2) and"
    ),
    Fault("loop ended one round late", R, "run >= period * (told_after - 1) and", "run >= period * told_after and"),
    Fault("loop told and never ended", R, "        self.told.extend(periods)\n", ""),
    Fault(
        "short loop hides the long one",
        R,
        "        again = [period for period in periods if period in self.told]",
        "        again = [period for period in periods[:1] if period in self.told]",
    ),
    Fault(
        "polling is taken for a loop",
        C,
        'if one.spec is not None and one.spec.repeatable and one.outcome == "ok":',
        "if False:",
    ),
    Fault(
        "results do not matter for loops",
        R,
        "hash((name, arguments, outcome, text))",
        "hash((name, arguments, outcome))",
    ),
    Fault(
        "invalid calls off by one",
        R,
        "self.invalid < rules.invalid_in_a_row:",
        "self.invalid <= rules.invalid_in_a_row:",
    ),
    Fault("calls that act run together", D, "        if alone:\n            break\n    return", "    return"),
    Fault(
        "a call that acts does not wait for readers",
        D,
        "is_beside = exchange.under_way and (alone or exchange.alone)",
        "is_beside = exchange.under_way and exchange.alone",
    ),
    Fault(
        "a reader does not wait for a call that acts",
        D,
        "is_beside = exchange.under_way and (alone or exchange.alone)",
        "is_beside = exchange.under_way and alone",
    ),
    Fault(
        "a driver may overlap calls that act",
        C,
        "if exchange.under_way and (runs_alone(one.spec) or exchange.alone):",
        "if False:",
    ),
    Fault(
        "drain gives up what runs",
        D,
        " or (drains and one.started and one.refusal is None):",
        ":",
    ),
    Fault(
        "nothing to do under a drain",
        D,
        " or (drains and one.started and one.refusal is None):",
        " or drains:",
    ),
    Fault("a history that is broken is taken", M, "if broken := first_fault(event.messages):", "if broken := None:"),
    Fault(
        "an unanswered call in the history is not seen",
        H,
        'return f"the call {owed[0]!r} at the end has no result" if owed else ""',
        'return ""',
    ),
)
