"""Faults in answers that have a schema: what ends such a run, what is asked for, what last words are."""

from __future__ import annotations

from seeding import C, D, E, Fault, P, Q

ANSWERS: tuple[Fault, ...] = (
    # words
    Fault(
        "answers: words end the run",
        P,
        "    elif state.finish is not None:\n        ask",
        "    elif False:\n        ask",
    ),
    Fault("answers: words for ever", Q, "blank_replies:\n        reason", "blank_replies + 99:\n        reason"),
    Fault(
        "answers: words once too often",
        Q,
        "if state.blanks > state.settings.blank_replies:\n        reason",
        "if state.blanks > state.settings.blank_replies + 1:\n        reason",
    ),
    Fault("answers: the model is not told", Q, "    append(state, Note(outcomes.finish_wanted(finish.name)))\n", ""),
    Fault("answers: the tool is not forced", Q, "    state.finish_due = True\n", ""),
    Fault(
        "answers: the tool is forced for ever",
        C,
        "else state.partial, False\n",
        "else state.partial, state.finish_due\n",
    ),
    # an object as the whole reply
    Fault("answers: an object is words", Q, 'not text.startswith("{"):', "True:"),
    Fault(
        "answers: an object that was cut is taken",
        Q,
        "or reply.calls or reply.stop not in RUNS_CALLS or not",
        "or reply.calls or not",
    ),
    Fault("answers: two objects are one", Q, "if outcomes.parse_arguments(text).value is None:", "if False:"),
    Fault("answers: an object is a call and words too", Q, 'replace(reply, text="", calls', "replace(reply, calls"),
    # last words
    Fault(
        "answers: last words without the tool", D, '(state.finish_due or state.last_words == "due")', "state.finish_due"
    ),
    Fault(
        "answers: any call in last words",
        C,
        '"" if spared and asked.name == spared else block',
        '"" if spared else block',
    ),
    Fault("answers: last words cannot be given", C, '"" if spared and asked.name == spared else block', "block"),
    Fault(
        "answers: last words are the answer",
        C,
        "    if exchange.stop is not None:  #",
        "    if exchange.stop and exchange.final is None:  #",
    ),
    Fault(
        "answers: last words are lost",
        C,
        "state.partial if exchange.final is None else exchange.final",
        "state.partial",
    ),
    Fault(
        "answers: last words are the answer after a crash",
        E,
        '    if state.finish is None or exchange.stop is None or exchange.stop.status != "max_steps":\n',
        "    if True:\n",
    ),
    # the limit of tool calls
    Fault(
        "answers: the answer is a tool call",
        D,
        "return one.counted or (one.spec is not None and bool(one.spec.answer))",
        "return one.counted",
    ),
    # summaries
    Fault(
        "answers: a summary is an answer",
        D,
        ' if choice in ("auto", "none") and state.finish is None else "none"',
        ' if choice in ("auto", "none") else "none"',
    ),
)
