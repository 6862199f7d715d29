"""What calls really use of what they were given: runs under a call, played by chance."""

from __future__ import annotations

from typing import Any

import msgspec
from alphabet import Chooser
from call_facts import Place
from money_facts import KINDS, MoneyFacts

from tenlines.core.limits import Left, Spent


class Child(msgspec.Struct):
    """What runs under one start of a call."""

    place: Place
    given: Left
    used: Spent = Spent()
    is_dead: bool = False
    """Its process died, or it waits for somebody: it uses nothing more, and nobody will say what it used. But a call
    that is one run takes it up again."""


class Purses:
    """All that runs, or ran, under the calls of a run, as it really is: no log knows of it before it is told."""

    def __init__(self, chooser: Chooser, honest: bool) -> None:
        self.chooser, self.honest = chooser, honest
        self.children: list[Child] = []

    def begin(self, place: Place, given: Left, *, is_one_run: bool = False) -> None:
        """A call has started that may spend."""
        for child in self.children if is_one_run else ():
            if child.place == place:
                child.given, child.is_dead = given, False
                return
        self.children.append(Child(place, given))

    def pause(self, place: Place) -> None:
        """The run under a call waits for somebody."""
        for child in self.children:
            child.is_dead = child.is_dead or child.place == place

    def spend(self) -> None:
        """Everything that is alive may use something more."""
        for child in self.children:
            if not child.is_dead:
                child.used = self._more(child)

    def _more(self, child: Child) -> Spent:
        """Some of what is left of what it was given; all of it, none, or, where it is not honest, more."""
        parts: dict[str, Any] = {}
        for kind in KINDS:
            given, used = getattr(child.given, kind), getattr(child.used, kind)
            room = (10 if kind != "dollars" else 0.01) if given is None else max(0, given - used)
            share = self.chooser.pick((0, 0, 0.5, 1.0, 1.0) if self.honest else (0, 0.5, 1.0, 3.0))
            more = room * share + (0 if self.honest else self.chooser.pick((0, 0, 7)))
            parts[kind] = more if kind == "dollars" else int(more)
        tokens = parts.pop("tokens")
        half = self.chooser.pick((tokens, tokens // 2, 0))
        return child.used.plus(Spent(**parts, input_tokens=half, output_tokens=tokens - half))

    def end(self, place: Place) -> Spent:
        """The call came back and says what was used under it."""
        child = next(one for one in reversed(self.children) if one.place == place and not one.is_dead)
        self.children.remove(child)
        used = msgspec.structs.replace(child.used, runs=("child",))
        if self.chooser.pick((True, True, True, False)):
            return used
        fields = {"unpriced": 1, "unmetered": 1, "output_tokens": 0, "presumed_tokens": used.output_tokens}
        return msgspec.structs.replace(used, **fields)  # nobody told the child how long its replies were

    def die(self) -> None:
        """The process died, with all that ran in it."""
        for child in self.children:
            child.is_dead = True

    def can_say(self, place: Place) -> bool:
        """Whether something that still lives ran under the call."""
        return any(one.place == place and not one.is_dead for one in self.children)

    def check(self, money: MoneyFacts) -> None:
        """What was really used and nobody has told is set aside, whatever became of those who used it."""
        if not self.honest:
            return
        for kind in KINDS:
            bounded = [one for one in self.children if getattr(one.given, kind) is not None]
            used = sum(min(getattr(one.used, kind), getattr(one.given, kind)) for one in bounded)
            assert used <= money.held(kind) + 1e-9, f"{used} {kind} are used, and {money.held(kind)} set aside"
