"""Runs as views, with the runs that served their calls, and with what can be done about each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from urllib.parse import urlsplit

from tenlines.cli import moves
from tenlines.cli import options as opt
from tenlines.core.events import AnyEvent, RunStarted
from tenlines.core.limits import Price
from tenlines.errors import InvalidEvent, JournalDamaged
from tenlines.journal.integrity import Watch
from tenlines.ports import Journal
from tenlines.report import ChildRef, Reading, RunView
from tenlines.trace.redaction import Redaction
from tenlines.trace.story import Story
from tenlines.trace.words import count, money


class Shelf:
    """Reads runs out of a journal.

    Args:
        found: The ids of those that are asked for.
        prices: A file of prices, for runs that recorded none.
        journal: The journal as it was named, for the commands that are suggested.
    """

    def __init__(
        self, store: Journal, found: Sequence[str], redaction: Redaction, prices: str | None, journal: str | None
    ) -> None:
        self._store, self._asked, self._redaction = store, found, redaction
        self._prices, self._journal = prices, journal
        self._logs: dict[str, list[AnyEvent]] = {}
        self._keys: dict[str, str] = {}

    def views(self, watch: Watch) -> Iterator[RunView]:
        """Those that are asked for, each behind the runs that served its calls. `watch` is told how far it is."""
        for number, run_id in enumerate(self._asked):
            watch(number, len(self._asked))
            self._load(run_id)
        for run_id in self._logs:
            self._redaction.learn(self._logs[run_id])  # before anything is shown: one run may name what another tells
        done: set[str] = set()
        for run_id in self._asked:
            yield from self._of(run_id, done)

    # --- reading ---

    def _load(self, run_id: str) -> None:
        """Read a run, and those under its calls."""
        if run_id in self._logs:
            return
        log = self._logs[run_id] = list(self._store.read(run_id))
        is_alone = not self._keys and len(self._asked) == 1
        self._keys[run_id] = "" if is_alone else f"r{len(self._keys) + 1}"
        for child in self._served(log):
            self._load(child)

    def _served(self, log: Sequence[AnyEvent]) -> list[str]:
        """The runs under the calls of a run. They are looked for only where a tool spends at all."""
        start = log[0]
        if not isinstance(start, RunStarted) or not any(spec.spends or spec.child for spec in start.tools):
            return []
        return self._under.get(start.run_id, [])

    @cached_property
    def _under(self) -> dict[str, list[str]]:
        """The runs that say that they served a call of another, by that one: the heads of all are read that are no
        older than the oldest one that is asked for."""
        listed = self._store.runs()
        since = min((one.started_at for one in listed if one.run_id in set(self._asked)), default=0.0)
        under: dict[str, list[str]] = {}
        for one in reversed(listed):
            head = next(iter(self._store.read(one.run_id)), None) if one.started_at >= since else None
            if isinstance(head, RunStarted) and head.parent:
                under.setdefault(head.parent.rsplit(":", 2)[0], []).append(head.run_id)
        return under

    # --- views ---

    def _of(self, run_id: str, done: set[str]) -> Iterator[RunView]:
        if run_id in done:
            return
        done.add(run_id)
        refs: dict[str, list[ChildRef]] = {}
        for child in self._served(self._logs[run_id]):
            found = list(self._of(child, done))
            yield from found
            if found:
                refs.setdefault(self._start(child).parent, []).append(_ref(found[-1]))
        yield self._view(run_id, refs)

    def _view(self, run_id: str, refs: dict[str, list[ChildRef]]) -> RunView:
        reading = Reading(
            self._redaction,
            key=self._keys[run_id],
            price=self._price(run_id),
            moves=self._moves,
            children=refs,
            parent=self._parent(run_id),
        )
        try:
            for event in self._logs[run_id]:
                reading.take(event)
        except InvalidEvent as error:
            raise JournalDamaged(
                f"run {run_id} cannot be shown, its log is not that of a run: {error}; `tenlines doctor` looks closer"
            ) from error
        return reading.view()

    def _start(self, run_id: str) -> RunStarted:
        start = self._logs[run_id][0]
        assert isinstance(start, RunStarted)
        return start

    def _parent(self, run_id: str) -> str:
        """The element of the call that a run serves, where that is on the page and the run was not asked for itself."""
        if run_id in self._asked:
            return ""
        parent, step, position = self._start(run_id).parent.rsplit(":", 2)
        key = self._keys[parent]
        return f"{key}-" * bool(key) + f"call-{step}-{int(position) + 1}"

    def _price(self, run_id: str) -> Price | None:
        start = self._logs[run_id][0]
        if not isinstance(start, RunStarted) or start.settings.price is not None:
            return None
        return opt.price_at(None, self._prices, start.model, start.at).price

    def _moves(self, story: Story) -> Sequence[tuple[str, str]]:
        return next_moves(story, shareable(self._journal))


def next_moves(story: Story, journal: str | None) -> Sequence[tuple[str, str]]:
    """What can be done about a run: why, and the command.

    Args:
        journal: The journal as it was named.
    """
    from tenlines.cli.owners import is_gone
    from tenlines.cli.waiting import commands

    result, is_of_fleet = story.machine.result(), story.start is not None and bool(story.start.queue)
    if story.end is None:
        if is_of_fleet:
            return [("its fleet works on it", moves.command("wait", [result.run_id], journal))]
        gone_on = ("go on where it stopped", moves.command("resume", [result.run_id], journal))
        return () if is_gone(story.owner) is False else [gone_on]
    if result.status == "answered":
        return ()
    if result.status == "awaiting_approval" and result.pending:
        whys = ("allow it and go on", "deny it and go on", "allow all and go on")
        answers = commands(result.run_id, journal, result.pending, is_of_fleet=is_of_fleet)
        return list(zip(whys, answers, strict=False))
    if result.status == "awaiting_approval" and result.paused:
        places = [(one.run_id, one.place) for paused in result.paused for one in paused.waiting]
        leave = [("allow it", moves.command("approve", place, journal)) for place in places[:_LISTED]]
        then = ("then it goes on", "wait") if is_of_fleet else ("then go on", "resume")
        return [*leave, (then[0], moves.command(then[1], [result.run_id], journal))]
    return [moves.next_move(result, story.machine.state.limits, journal, is_of_fleet=is_of_fleet)]


_LISTED = 5


def shareable(journal: str | None) -> str | None:
    """A journal as it may be named in what is passed on: an address without its password."""
    if journal is None or "://" not in journal:
        return journal
    parts = urlsplit(journal)
    if not parts.password:
        return journal
    return parts._replace(netloc=f"{parts.username or ''}@{parts.netloc.rpartition('@')[2]}").geturl()


def _ref(view: RunView) -> ChildRef:
    head = view.head
    cost = "" if head.dollars is None else f", {money(head.dollars)}"
    return ChildRef(head.key, head.run_id, f"{head.status}, {count(head.steps, 'step')}{cost}")
