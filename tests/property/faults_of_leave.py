"""Faults in who may run, what becomes of a doubt, and what is taken back."""

from __future__ import annotations

from seeding import A, C, D, E, Fault, G, M, T, U

LEAVE: tuple[Fault, ...] = (
    # leave to run
    Fault(
        "leave: a guarded call starts without it",
        C,
        'or (one.spec.approve and one.permission != "allowed")',
        "or False",
    ),
    Fault("leave: nobody is asked", C, "            guard(exchange, position, one)", "            pass"),
    Fault(
        "leave: a question is taken for an answer",
        A,
        '_settle(state, event, one, "asked")',
        '_settle(state, event, one, "allowed")',
    ),
    Fault(
        "leave: an answer for any call will do",
        A,
        "if event.digest != binding(",
        "if not event.digest and event.digest != binding(",
    ),
    Fault(
        "leave: not bound to what the model wrote",
        D,
        "position, bound, written, starts]",
        "position, bound, None, starts]",
    ),
    Fault("leave: not bound to the tool", D, "position, bound, written, starts]", "position, None, written, starts]"),
    Fault(
        "leave: not bound to the place",
        D,
        "[state.start.run_id, step, position, bound",
        "[state.start.run_id, step, 0, bound",
    ),
    Fault(
        "leave: kept for a tool that has changed",
        E,
        "if one.permission and one.digest != binding(",
        "if False and one.digest != binding(",
    ),
    Fault("leave: never over", D, "return one.expires_at is not None and now >= one.expires_at", "return False"),
    Fault("leave: over, and good again for a new owner", E, "if has_expired(one, at):", "if False:"),
    Fault("leave: taken after the time", A, 'if one.permission == "asked" and expired:', "if False:"),
    Fault("leave: given twice", A, 'if one.permission == "allowed" and not expired:', "if False:"),
    Fault("leave: denied and run all the same", A, "        _deny(event, one)\n        return\n", "        return\n"),
    Fault("leave: a denial may put in arguments", A, 'if event.verdict == "deny" or one.doubt:', "if one.doubt:"),
    Fault(
        "leave: an edit is not used",
        A,
        "one.arguments, one.edited_by = edited.value, event.by",
        "one.edited_by = event.by",
    ),
    Fault("leave: an edit is not told", C, "if one.edited_by is not None and one.counted:", "if False:"),
    Fault(
        "leave: an edit that nobody signed is not told",
        C,
        "if one.edited_by is not None and one.counted:",
        "if one.edited_by and one.counted:",
    ),
    Fault(
        "leave: an edit outlives the leave that it came with",
        G,
        "        one.edited_by, one.arguments = None, outcomes",
        "        _ = outcomes",
    ),
    Fault(
        "leave: the mark of a tool can be taken off", G, "approve=spec.name in state.marked)", "approve=spec.approve)"
    ),
    Fault(
        "leave: asked about what has no room to run",
        D,
        "return is_free(one) or budget is None or state.account.all_tool_calls < budget",
        "return True",
    ),
    Fault(
        "leave: a call that waits lets the others pass",
        D,
        "or (alone and (waits or calls)):",
        "or (alone and calls):",
    ),
    Fault(
        "leave: over, and asked for before what can run",
        D,
        "    if not (refusals or calls):\n        if stale",
        "    if True:\n        if stale",
    ),
    Fault("leave: over, and never asked for", D, "            stale.append(position)\n", "            pass\n"),
    Fault(
        "leave: nobody was asked about a doubt",
        A,
        "is_for_a_person = state.phase is Phase.ENDED or one.doubt or",
        "is_for_a_person = state.phase is Phase.ENDED or",
    ),
    # the pause
    Fault(
        "pause: though something can be done",
        D,
        "    if not (refusals or calls):\n        if stale",
        "    if not calls:\n        if stale",
    ),
    Fault(
        "pause: though calls are under way",
        D,
        "if not exchange.under_way and (end := _pause(exchange)):",
        "if end := _pause(exchange):",
    ),
    Fault("pause: is an end like any other", M, 'if event.status != "awaiting_approval":', "if True:"),
    Fault(
        "pause: what waits is not listed",
        T,
        'if one.permission == "asked" and one.refusal is None',
        "if False and one.refusal is None",
    ),
    Fault("pause: what was answered still waits", A, '_settle(state, event, one, "allowed")', "pass"),
    Fault(
        "pause: nobody can answer a run that has paused",
        M,
        "ev.ApprovalGiven: ((*_TOOLS, Phase.ENDED),",
        "ev.ApprovalGiven: (_TOOLS,",
    ),
    Fault(
        "pause: the time of the pause is charged",
        G,
        "worked_until = state.at if state.ended is None else state.ended.at",
        "worked_until = state.at",
    ),
    # doubt
    Fault("doubt: a plain call runs again", C, "if (one.doubt and is_unsettled(one)) or (one", "if (one"),
    Fault("doubt: its tool is not asked", E, "    if one.spec.reconcilable:\n", "    if False:\n"),
    Fault(
        "doubt: not done, and not run again",
        E,
        '    if event.verdict == "not_done":\n        one.doubt = ""',
        '    if event.verdict == "not_done":\n        _tell_doubt(one)',
    ),
    Fault(
        "doubt: not known, and run again",
        E,
        '        one.doubt = ""\n    elif state.settings.on_in_doubt == "ask":\n        one.doubt = "ask"',
        '        one.doubt = ""\n    elif state.settings.on_in_doubt == "ask":\n        one.doubt = ""',
    ),
    Fault("doubt: an old answer lets it run once more", D, 'one.starts if one.doubt == "ask" else 0', "0"),
    Fault(
        "doubt: settled, and asked about again after a crash",
        E,
        '    if one.doubt == "ask" and not was_started:\n        return',
        "    if False:\n        return",
    ),
    Fault(
        "doubt: dropped by a driver", C, "if is_unsettled(one) and one.refusal is None and not stopped:", "if False:"
    ),
    Fault(
        "doubt: refused for its arguments",
        C,
        "    if is_unsettled(one):\n        raise",
        "    if False:\n        raise",
    ),
    Fault(
        "doubt: denied is told as not run", A, "if one.doubt or (one.counted and not one.spec.read_only):", "if False:"
    ),
    Fault(
        "doubt: any call can be reconciled",
        E,
        'if one.doubt != "reconcile" or one.refusal is not None:',
        "if one.refusal is not None:",
    ),
    Fault(
        "doubt: a tool that cannot tell is asked",
        E,
        "reconcilable=was.reconcilable and spec.reconcilable,",
        "reconcilable=True,",
    ),
    # undoing
    Fault(
        "undo: in the order in which they started",
        D,
        "_undo_call(state, undoable[-1])",
        "_undo_call(state, undoable[0])",
    ),
    Fault("undo: forwards", U, "still_to_undo(state), event.seq", "still_to_undo(state)[::-1], event.seq"),
    Fault(
        "undo: what only reads is undone too",
        C,
        "    if not one.spec.read_only:\n        state.acted",
        "    if True:\n        state.acted",
    ),
    Fault("undo: what is undone is undone again", D, " and not is_undone(state, place)]", "]"),
    Fault(
        "undo: a failed one is never tried again",
        D,
        "and not is_undone(state, place)",
        "and place not in state.undone",
    ),
    Fault(
        "undo: a failed one is tried for ever",
        U,
        "    state.undo.pop()\n",
        '    state.undo.pop() if event.outcome == "ok" else None\n',
    ),
    Fault("undo: any key will do", U, "if event.key != call_key(state, *place):", "if False:"),
    Fault(
        "undo: twice at once",
        U,
        ' or state.undo_under_way:\n        raise InvalidEvent(f"UndoStarted',
        ':\n        raise InvalidEvent(f"UndoStarted',
    ),
    Fault("undo: comes back without a start", U, "if not state.undo_under_way or type", "if not state.undo or type"),
    Fault(
        "undo: by tools that are gone",
        E,
        "    state.undo = [place for place in still_to_undo(state) if place not in tried]\n",
        "",
    ),
    Fault(
        "undo: what was tried is tried again after a crash",
        E,
        "if place not in tried]\n    state.undo_under",
        "]\n    state.undo_under",
    ),
    Fault("undo: a crash in the middle of it stops it for ever", E, "    state.undo_under_way = False  # a", "    # a"),
    Fault("undo: a stop does not undo", D, 'if state.settings.on_stop == "undo" and', "if False and"),
    Fault(
        "undo: an answer undoes",
        D,
        '[] if effect.status == "answered" else still_to_undo(state)',
        "still_to_undo(state)",
    ),
    Fault("undo: the model is not told", E, "    _tell_undone(state)\n\n", "\n"),
    Fault("undo: the model is told each time", E, "    state.undone_told.update(new)\n", ""),
    Fault("undo: what was undone still stands", T, " and not is_undone(state, place)\n", "\n"),
    Fault("undo: a paused run can be undone", U, "    if state.exchange is not None:\n", "    if False:\n"),
    Fault(
        "undo: whoever takes it over goes on with the run",
        E,
        "    if state.phase is Phase.UNDOING:\n",
        "    if False:\n",
    ),
    Fault(
        "undo: ends otherwise than it had",
        U,
        "Stop(state.ended.status, state.ended.reason)",
        'Stop("cancelled", state.ended.reason)',
    ),
)
