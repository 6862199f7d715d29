"""Cache breaks: what was new to the provider although it had been sent before.

Two kinds. Within a run, or from one run of a session to the next, the log says itself that the beginning of a request
changed. Between separate runs of one agent, the beginnings are compared here: a clock in the instructions, or tools in
another order each time, and no run finds anything in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

from tenlines.advise.facts import NOTHING, Run, Worth
from tenlines.advise.findings import Examples, Finding, percent, worth_words
from tenlines.core.economics import rates_of
from tenlines.core.events import RunStarted
from tenlines.core.prefix import beginning_change, system_change, tools_change
from tenlines.core.transcript import System, estimate_tokens
from tenlines.trace.redaction import Redaction
from tenlines.trace.text import one_line
from tenlines.trace.words import count

KEPT_S = 300.0
"""Seconds for which a provider keeps the beginning of a request at least: what was not sent for longer is in no cache
anyway."""
LEAST_BREAKS, SHARE = 5, 0.2
"""Runs that began otherwise than all of their time, and their part of those that could have found something."""
LEAST_WITHIN, LEAST_RUNS = 3, 3
"""Breaks within runs, and the runs that had some."""
_ON_PURPOSE = ("the transcript was cut",)
"""A cut has weighed what it costs."""

CAUSES = {
    "time": ("a date or time in the instructions", "put the time into the newest message, or give the model a tool"),
    "order": ("the tools come in another order", "give the tools in one order (a list, not a set)"),
    "tools": ("the tools are others, or described otherwise", "give every run the same tools, described the same"),
    "instructions": (
        "the instructions are others each time",
        "keep what differs (an id, a name, numbers) out of the instructions: say it in the task",
    ),
    "request": ("how requests begin changes", "keep tools, instructions and tool choice as they are while a run lasts"),
}
"""Cause -> what it is, and what to do."""


class _Seen(NamedTuple):
    """A beginning, and when it was sent last."""

    start: RunStarted
    at: float


class _Cause:
    def __init__(self) -> None:
        self.times, self.examples, self.worth = 0, Examples(), NOTHING
        self.runs = 0
        self.words = ""
        self._newest = ""

    def enter(self, run: Run, tokens: int) -> None:
        """Count a break, and what it costs that so many tokens were not in the cache."""
        self.times += 1
        self.runs += run.run_id != self._newest
        self._newest = run.run_id
        self.examples.add(run.run_id)
        self.worth = self.worth.plus(_dearer(run, tokens))


class _Lane:
    """Runs that are to begin alike: those of one agent with one model."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], _Seen] = {}
        """Beginnings of the last minutes."""
        self.followed = 0
        """Runs that could have found their beginning in the cache."""
        self.causes: dict[str, _Cause] = {}

    @property
    def is_broken(self) -> bool:
        """Whether so many runs found nothing that it is no chance."""
        missed = sum(cause.times for cause in self.causes.values())
        return missed >= max(LEAST_BREAKS, SHARE * self.followed)


class Breaks:
    """Takes runs of a group, the oldest first.

    Args:
        redaction: For what is quoted of the instructions.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._lanes: dict[tuple[str, str], _Lane] = {}
        self._within: dict[str, _Cause] = {}

    def take(self, run: Run) -> None:
        """Compare a run with those before it."""
        self._look_within(run)
        if not run.start.session or run.start.turn <= 1:  # a later turn begins as the one before, or says that not
            self._look_between(run)

    # --- within a run ---------------------------------------------------------------------------------

    def _look_within(self, run: Run) -> None:
        held = 0
        for line in run.ledger.steps:
            taken = (line.usage.input or 0) if line.usage is not None else 0
            if line.changed and not line.changed.startswith(_ON_PURPOSE):
                cause = self._within.setdefault(_cause(line.changed), _Cause())
                read = (line.usage.cache_read or 0) if line.usage is not None else 0
                could = min(held, taken) if line.step > 1 else taken - self._newest(run)
                cause.words = cause.words or self._told(run, line.changed)
                cause.enter(run, max(0, could - read))
            held = taken or held

    def _told(self, run: Run, changed: str) -> str:
        """What the log says, without the secrets that stand in the instructions."""
        self._redaction.learn([run.start])
        return one_line(self._redaction.text(changed), 200)

    @staticmethod
    def _newest(run: Run) -> int:
        """Tokens of the first request of a turn that were not in the turn before: the newest message, about."""
        return round(run.rate * estimate_tokens(run.start.messages[-1])) if run.start.messages else 0

    # --- between runs ---------------------------------------------------------------------------------

    def _look_between(self, run: Run) -> None:
        lane = self._lanes.setdefault((run.start.agent, run.start.model), _Lane())
        key, at = _key(run.start), run.start.at
        lane.seen = {one: seen for one, seen in lane.seen.items() if at - seen.at <= KEPT_S}
        if lane.seen:
            lane.followed += 1
            if key not in lane.seen:
                self._miss(lane, run, max(lane.seen.values(), key=lambda seen: seen.at).start)
        lane.seen[key] = _Seen(run.start, max(at, run.last_at))

    def _miss(self, lane: _Lane, run: Run, before: RunStarted) -> None:
        cause = lane.causes.setdefault(_between(before, run.start), _Cause())
        first = next((line.usage for line in run.ledger.steps if line.usage is not None), None)
        read = 0 if first is None else first.cache_read or 0
        cause.enter(run, max(0, run.beginning - read))
        cause.words = cause.words or self._quoted(before, run.start)

    def _quoted(self, before: RunStarted, after: RunStarted) -> str:
        """How they differ, without secrets: these are taken out before anything is quoted."""
        old, new = self._redaction.of(before), self._redaction.of(after)
        assert isinstance(old, RunStarted)
        assert isinstance(new, RunStarted)
        words = beginning_change((old.messages, old.tools), (new.messages, new.tools))
        return one_line(words or "the instructions: a secret in them", 200)

    # --- the view -------------------------------------------------------------------------------------

    def findings(self, group: str) -> list[Finding]:
        """What breaks the cache often enough."""
        broken = [lane for lane in self._lanes.values() if lane.is_broken]
        found = [
            self._between_finding(group, name, [lane for lane in broken if name in lane.causes]) for name in CAUSES
        ]
        within = [self._within_finding(group, *one) for one in self._within.items() if _is_often(one[1])]
        return [one for one in found if one is not None] + within

    def _between_finding(self, group: str, name: str, lanes: list[_Lane]) -> Finding | None:
        causes, followed = [lane.causes[name] for lane in lanes], sum(lane.followed for lane in lanes)
        times, worth = sum(cause.times for cause in causes), NOTHING
        for cause in causes:
            worth = worth.plus(cause.worth)
        if times < LEAST_BREAKS or not worth.tokens:
            return None
        what, do = CAUSES[name]
        return Finding(
            kind="cache",
            group=group,
            subject=what,
            seen=f"{times:,} of {count(followed, 'run')} that followed another within {KEPT_S / 60:.0f} min "
            f"({percent(times, followed)}) did not begin as any of them: {causes[0].words}",
            do=do,
            saves=f"{worth_words(worth)} that no cache had and could have had",
            tokens=worth.tokens,
            dollars=worth.dollars,
            sure="that the beginnings differ is exact; how long they are is an estimate, and a provider caches from "
            "some length on only (1,024 tokens, for many)",
            runs=tuple(causes[0].examples.runs),
        )

    def _within_finding(self, group: str, name: str, cause: _Cause) -> Finding:
        what, do = CAUSES[name]
        return Finding(
            kind="cache",
            group=group,
            subject=f"within runs: {what}",
            seen=f"the beginning of a request was not as before {cause.times:,} times in "
            f"{count(cause.runs, 'run')}: {cause.words}",
            do=do,
            saves=f"{worth_words(cause.worth)} that no cache had and could have had",
            tokens=cause.worth.tokens,
            dollars=cause.worth.dollars,
            sure="exact where the provider reports what it read from its cache",
            runs=tuple(cause.examples.runs),
        )


def _dearer(run: Run, tokens: int) -> Worth:
    """What it costs that tokens were not in the cache."""
    if run.ledger.price is None:
        return Worth(tokens, None)
    rates = rates_of(run.ledger.price, tokens)
    return Worth(tokens, max(0.0, rates.write - rates.read) * tokens)


def _is_often(cause: _Cause) -> bool:
    return cause.times >= LEAST_WITHIN and cause.runs >= LEAST_RUNS and cause.worth.tokens > 0


def _key(start: RunStarted) -> tuple[int, int]:
    """What a provider sees of the beginning, tools first; compared within one process."""
    tools = tuple((spec.name, spec.description, repr(spec.parameters)) for spec in start.tools)
    return hash(tools), hash(tuple(message.text for message in start.messages if isinstance(message, System)))


def _between(before: RunStarted, after: RunStarted) -> str:
    """Why two beginnings differ; tools stand first, so they decide."""
    return _cause(tools_change(before.tools, after.tools) or system_change(before.messages, after.messages))


def _cause(words: str) -> str:
    if words.startswith("the order of the tools"):
        return "order"
    if words.startswith("the tools"):
        return "tools"
    if "a date or time in them" in words:
        return "time"
    return "instructions" if words.startswith("the instructions") else "request"
