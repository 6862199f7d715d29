"""Faults in calls that are runs of their own: what they are given again, that they wait, when they have their turn."""

from __future__ import annotations

from seeding import C, D, E, Fault, G, K, T

CHILDREN: tuple[Fault, ...] = (
    # what a run that is taken up again is given
    Fault(
        "children: what a run had stays held when it is taken up",
        K,
        "    if one.allowance is not None and one.spec.child:\n        _give_back",
        "    if False:\n        _give_back",
    ),
    Fault(
        "children: a run that is taken up loses what it had",
        K,
        "min(new + (getattr(back, name) or 0), most",
        "min(new, most",
    ),
    Fault(
        "children: what it had passes a limit that is lower by now",
        K,
        "min(new + (getattr(back, name) or 0), most - getattr(kept, name))",
        "new + (getattr(back, name) or 0)",
    ),
    Fault(
        "children: any call gives back what it had",
        K,
        "if one.allowance is not None and one.spec is not None and one.spec.child:",
        "if one.allowance is not None:",
    ),
    Fault("children: found by its key, whoever had it before", E, "        child=was.child and spec.child,\n", ""),
    # a run that waits
    Fault("children: a run that waits starts again at once", D, " or one.paused is not None\n", "\n"),
    Fault(
        "children: one that waits is given a share",
        K,
        " or one.outcome or one.refusal or one.paused)",
        " or one.outcome or one.refusal)",
    ),
    Fault(
        "children: anybody can start one that waits", G, "if started is False and one.paused is not None:", "if False:"
    ),
    Fault(
        "children: one that waits is never taken up", E, "one.started, one.paused = False, None", "one.started = False"
    ),
    Fault("children: the run does not pause for it", D, "    names += [one.call.name for one in paused]\n", ""),
    Fault("children: any call can wait for a run", K, "if not state.tools[one.spec.name].child:", "if False:"),
    Fault("children: one that waits is still under way", K, "    open_exchange(state).under_way -= 1\n", ""),
    Fault(
        "children: who waits is not listed",
        T,
        "if one.paused is not None and one.outcome is None",
        "if one.paused is not None and one.outcome",
    ),
    # handing over
    Fault("children: handed over first", C, "return [*first, *(position", "return [*first, *last, *(position"),
    # how it ended
    Fault("children: the record does not name the run", C, 'one.doubt, one.child = "", event.child', 'one.doubt = ""'),
    Fault("children: a failed one is not named", C, "or over_limit\n    one.child = event.child\n", "or over_limit\n"),
)
