"""Deliberate faults, and the quick version of the laws that has to catch each of them.

A test-suite is worth what it catches. Each fault is a small change to the source of the core, of the kind that a
tired person makes. `test_faults.py` seeds them one at a time into a copy and runs this file against it.
"""

from __future__ import annotations

import sys
from typing import NamedTuple


class Fault(NamedTuple):
    """A change that no test may let pass. `old` must occur exactly once."""

    what: str
    file: str
    old: str
    new: str


M, D, L, R = "machine.py", "deciding.py", "limits.py", "repeats.py"
H, O, V = "history.py", "outcomes.py", "leaving.py"  # noqa: E741

FAULTS = (
    # law 1: guard first
    Fault("1: one step too many", D, "state.account.steps >= steps and", "state.account.steps > steps and"),
    Fault("1: one step too few", D, "state.account.steps >= steps and", "state.account.steps + 1 >= steps and"),
    Fault(
        "1: no step guard where a driver starts one",
        M,
        "if spent := out_of_budget(state, reservation(state)):",
        "if spent := None:",
    ),
    Fault(
        "1: tool budget not held for a group", D, "room = None if room is None else room - (not one.counted)", "pass"
    ),
    Fault(
        "1: tool budget off by one", D, "if room is not None and room <= 0 and", "if room is not None and room < 0 and"
    ),
    Fault(
        "1: tool budget not held at the start of a call",
        M,
        "not one.counted and state.account.tool_calls >= budget:",
        "not one.counted and state.account.tool_calls > budget + 9:",
    ),
    Fault(
        "1: deadline off",
        D,
        "if deadline is not None and starts_at >= deadline:",
        "if deadline is not None and starts_at > deadline + 9:",
    ),
    Fault("1: estimate not kept", M, "    state.estimated_tokens += estimate_tokens(message)\n", ""),
    Fault("1: tools not in the estimate", M, "    state.estimated_tokens += state.tools_tokens - old\n", ""),
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
        M,
        "    if _is_at_last_words(state) and not state.last_words:\n",
        "    if state.limits.last_words and state.account.steps >= (state.limits.steps or 1):\n",
    ),
    Fault(
        "1: last words may call tools",
        D,
        'if state.last_words == "due":\n        return "none"',
        'if state.last_words == "no":\n        return "none"',
    ),
    Fault(
        "1: time of earlier owners forgotten", M, "state.worked_s += max(0.0, state.at - state.session_began)", "pass"
    ),
    Fault("1: raised limits ignored", M, "    state.limits = event.limits\n", "    pass\n"),
    Fault(
        "1: last words asked for again after a failure, whatever the limits say by then",
        M,
        'state.last_words = "due" if _is_at_last_words(state) else ""',
        'state.last_words = "due"',
    ),
    # law 2: pessimistic
    Fault(
        "2: a run without an end is an answer",
        M,
        'status="max_steps", reason="the run has not ended"',
        'status="answered", reason=""',
    ),
    Fault(
        "2: no more moves is an error",
        M,
        'state.stop = Stop("max_steps", event.message)',
        'state.stop = Stop("model_error", event.message)',
    ),
    # law 3: intent before act
    Fault(
        "3: any step's call may start",
        M,
        "if event.step != exchange.step or type(event.position)",
        "if type(event.position)",
    ),
    Fault("3: key not checked", M, "if event.key != call_key(state, event.step, event.position):", "if False:"),
    Fault(
        "3: key changes on resume",
        D,
        'return f"{state.start.run_id}:{step}:{position}"',
        'return f"{state.start.run_id}:{step}:{position}" + "!" * bool(state.worked_s)',
    ),
    Fault("3: a result before its start", M, "if started is not None and one.started != started:", "if False:"),
    # law 4: one result per call
    Fault(
        "4: second result taken",
        M,
        "    if one.outcome is not None:\n        raise InvalidEvent(",
        "    if False:\n        raise InvalidEvent(",
    ),
    Fault("4: equal ids kept", M, "if not wanted or wanted in state.ids or", "if not wanted or"),
    Fault("4: ids of the history forgotten", M, "state.ids.update(call.id for call in message.calls)", "pass"),
    Fault("4: empty ids kept", M, "if not wanted or wanted in state.ids or", "if wanted in state.ids or"),
    Fault(
        "4: closed one too early",
        M,
        "    if not exchange.unanswered:\n",
        "    if exchange.unanswered <= 1 < len(calls):\n",
    ),
    Fault(
        "4: negative positions reach back",
        M,
        "not 0 <= event.position < len(exchange.calls)",
        "not event.position < len(exchange.calls)",
    ),
    Fault(
        "4: position past the end",
        M,
        "not 0 <= event.position < len(exchange.calls)",
        "not 0 <= event.position <= len(exchange.calls)",
    ),
    # law 5: order
    Fault(
        "5: results in the order of running",
        M,
        "enumerate(exchange.calls):",
        "((p, exchange.calls[p]) for p in exchange.order):",
    ),
    Fault(
        "5: results in reverse",
        M,
        "for position, one in enumerate(exchange.calls):",
        "for position, one in reversed(list(enumerate(exchange.calls))):",
    ),
    Fault(
        "5: people speak inside an exchange",
        M,
        "    if state.phase is not Phase.READY:\n        state.queue",
        "    if state.phase is Phase.AWAITING_MODEL:\n        state.queue",
    ),
    Fault(
        "5: people speak before the results",
        M,
        "    _append(state, exchange.message)\n    state.sent",
        "    _append(state, exchange.message)\n    _release_queue(state)\n    state.sent",
    ),
    Fault(
        "5: message lost after a crash",
        M,
        "    state.phase = Phase.READY\n    _release_queue(state)\n\n\ndef _settle",
        "    state.phase = Phase.READY\n\n\ndef _settle",
    ),
    Fault("5: queue said twice", M, "    state.queue.clear()\n", "    pass\n"),
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
        M,
        'state.answer, state.stop = exchange.final, Stop("answered", "")',
        "pass",
    ),
    Fault(
        "6: an answered run can be resumed",
        M,
        'if state.ended is not None and state.ended.status == "answered":',
        "if False:",
    ),
    Fault("6: final tool does not go first", M, "        order.insert(0, final)", "        order.append(final)"),
    Fault(
        "6: messages taken after the end", M, "ev.MessageQueued: (_LIVE,", "ev.MessageQueued: ((*_LIVE, Phase.ENDED),"
    ),
    # law 7: truth
    Fault(
        "7: cancelled, though it may have taken effect",
        D,
        'outcome: Outcome = "cancelled" if one.spec.read_only else "in_doubt"',
        'outcome: Outcome = "cancelled"',
    ),
    Fault("7: a driver may say cancelled", M, '(event.outcome == "cancelled" and not harmless)', "False"),
    Fault(
        "7: not executed, though it had started before the crash", D, "    if one.counted:  #", "    if one.started:  #"
    ),
    Fault(
        "7: call in doubt runs again",
        M,
        "if one.counted and not (_may_repeat(one.spec) and _may_repeat(spec)):",
        "if False:",
    ),
    Fault(
        "7: call in doubt runs again if the new tool allows it",
        M,
        "(_may_repeat(one.spec) and _may_repeat(spec))",
        "_may_repeat(spec)",
    ),
    Fault(
        "7: refusal after a crash taken at its word",
        M,
        "if one.counted and not one.started and one.spec is not None and not one.spec.read_only:",
        "if False:",
    ),
    Fault(
        "7: text does not say that it may have happened",
        O,
        '"it may have. Check before you do it again."',
        '"try again."',
    ),
    Fault("7: not executed, said of what may run", M, "if one.counted or not (over or stopped):", "if False:"),
    Fault(
        "7: start forgotten for a plain call on resume",
        M,
        "return spec is not None and (spec.read_only or spec.idempotent)",
        "return spec is not None",
    ),
    # law 8: never guess
    Fault("8: unreadable arguments run as none", M, "elif spec is not None and parsed.value is None:", "elif False:"),
    Fault(
        "8: trailing text ignored",
        O,
        "value = msgspec.json.decode(text)",
        'value = msgspec.json.decode(text.replace("}{}", "}"))',
    ),
    Fault(
        "8: calls of a cut reply run",
        M,
        "if reply.stop not in _RUNS_CALLS:",
        'if reply.stop not in _RUNS_CALLS and reply.stop != "length":',
    ),
    Fault(
        "8: empty results dropped",
        M,
        "_append(state, Result(one.call.id, one.call.name, one.outcome, one.parts))",
        '_append(state, Result(one.call.id, one.call.name, one.outcome, one.parts or (Text("none"),)))',
    ),
    Fault(
        "8: a tool that is gone runs",
        M,
        "        elif spec is None:\n            one.refusal, one.refusal_text",
        "        elif False:\n            one.refusal, one.refusal_text",
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
        M,
        'if reply.stop in ("content_filter", "refusal"):\n        state.stop = Stop(\n',
        'if reply.stop == "content_filter":\n        state.stop = Stop(\n',
    ),
    Fault("9: a cut reply is an answer", M, '    elif reply.stop == "length":\n', "    elif False:\n"),
    # law 10: replay
    Fault(
        "10: asking changes the state",
        M,
        "        return next_effect(self.state, now)\n",
        "        self.state.at = max(self.state.at, now)\n        return next_effect(self.state, now)\n",
    ),
    Fault("10: refused, but changed", M, "    state.attempt += 1\n    state.last_error", "    state.last_error"),
    Fault(
        "10: half a handler before the check",
        M,
        "    _check_tools(event.tools)\n    _set_tools(state, event.tools)",
        "    _set_tools(state, event.tools)\n    _check_tools(event.tools)",
    ),
    Fault("10: late result taken twice", M, "    state.given_up.discard((event.step, event.position))\n", ""),
    Fault(
        "10: late result of any call taken", M, "if (event.step, event.position) not in state.given_up:", "if False:"
    ),
    Fault("10: sequence not checked", M, "if event.seq != state.seq + 1:", "if False:"),
    Fault("10: time not checked", M, "if not 0 <= event.at < 1e12:", "if not event.at < 1e12:"),
    Fault("10: wrong types go in", M, "        event = _as_read(event)\n", ""),
    # law 11: constant work
    Fault(
        "11: the transcript is copied",
        M,
        "    state.messages.append(message)\n",
        "    state.messages = [*state.messages, message]\n",
    ),
    Fault(
        "11: the transcript is added up",
        M,
        "    state.estimated_tokens += estimate_tokens(message)\n",
        "    state.estimated_tokens = state.tools_tokens + sum(map(estimate_tokens, state.messages))\n",
    ),
    Fault(
        "11: the transcript is checked again",
        M,
        "    state.sent = len(state.messages)\n    signatures = []",
        "    first_fault(state.messages)\n    state.sent = len(state.messages)\n    signatures = []",
    ),
    Fault(
        "11: the view is a copy",
        D,
        "return TranscriptView(state.messages, len(state.messages))",
        "return TranscriptView(list(state.messages), len(state.messages))",
    ),
    Fault(
        "11: every call is looked at for each result", M, "    exchange.cursor = cursor\n", "    exchange.cursor = 0\n"
    ),
    # cancel, retries, loops, order of running
    Fault(
        "cancel ignored between steps",
        M,
        "    if state.phase is Phase.READY:\n        _stop_if_cancelled(state)",
        "    pass",
    ),
    Fault(
        "cancel ignored after a reply",
        M,
        "    _take_words(state, reply)\n    _stop_if_cancelled(state)",
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
        M,
        "    _stop_if_cancelled(state)\n    if state.stop is None:\n        _go_on",
        "    if state.stop is None:\n        _go_on",
    ),
    Fault(
        "cancel ignored when a call starts",
        M,
        "if state.cancel or open_exchange(state).final is not None:",
        "if open_exchange(state).final is not None:",
    ),
    Fault(
        "retries without end", M, "elif state.attempt >= retry.attempts:", "elif state.attempt > retry.attempts + 50:"
    ),
    Fault(
        "what was refused is sent again for ever",
        M,
        "elif (left := concession(event.violation)) and left not in state.left_out:",
        "elif left := concession(event.violation):",
    ),
    Fault(
        "a leaner request that is not told anew", M, "    state.sent = 0  # the model must be told", "    # the model"
    ),
    Fault("what was refused is not left out", D, "    if state.left_out:\n", "    if False:\n"),
    Fault("media left out for reasoning", V, 'if violation.startswith("RSN-"):', 'if violation.startswith("RSN-E"):'),
    Fault(
        "what a broken attempt used is forgotten",
        M,
        "        state.account.enter(event.usage, _dollars(state, event.usage))\n",
        "        pass\n",
    ),
    Fault("one retry too many", M, "elif state.attempt >= retry.attempts:", "elif state.attempt > retry.attempts:"),
    Fault(
        "retry-after ignored", M, "max(event.retry_after_s or 0.0, _backoff(state, retry))", "_backoff(state, retry)"
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
        M,
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
        "if alone and (calls or exchange.under_way):",
        "if alone and calls:",
    ),
    Fault(
        "a driver may overlap calls that act",
        M,
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


def quick_check(walks: int = 700, depth: int = 3) -> None:
    """A short version of every test here: the first law that is broken raises."""
    from exhaustive import CASES, STARTS, enumerate_all, scene
    from work import check_work
    from world import Seeded, World, walk

    for seed in range(walks // 10):
        world = World(Seeded(seed))
        for event in world.hostile():
            world.run.refuse(event)
        world.begin()
        for _ in range(6):
            for event in world.hostile():
                world.run.refuse(event)
            world.drive()
    for seed in range(walks):
        walk(seed)
    check_work(20, 200)
    for name, settings, _ in CASES:
        for _ in enumerate_all(scene(name, STARTS[settings]), depth):
            pass
    for seed in range(walks, 8 * walks):
        walk(seed)


if __name__ == "__main__":
    try:
        quick_check()
    except Exception as caught:
        sys.exit(f"caught: {type(caught).__name__}: {caught}"[:300])
