"""Letters on their way to the runs of this process: one thread for each journal, while a run is under way.

It asks the mailboxes of all its runs at once, twice a second, and hands what came to each run's `Control`. No run waits
for it, and one that ends before it asks costs it nothing.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from tenlines.core.state import Phase
from tenlines.drivers.control import Control
from tenlines.drivers.letters import draft_of
from tenlines.drivers.recorder import Parts
from tenlines.errors import JournalError
from tenlines.ports import Journal, Letter, Mailbox

EVERY_S = 0.5
"""How often the mailboxes are looked at."""

_log = logging.getLogger("tenlines")
_nothing = threading.Event()  # never set: waiting for it is a pause


class _Address:
    """A run that is under way, and the last letter that was handed to it."""

    def __init__(self, run_id: str, control: Control, handed: int) -> None:
        self.run_id, self.control, self.handed = run_id, control, handed

    def take(self, letters: list[Letter]) -> None:
        for letter in letters:
            if letter.run_id == self.run_id and letter.number > self.handed:
                self.handed = letter.number
                self.control.deliver(draft_of(letter))


class Postman:
    """Delivers the letters of one journal.

    Args:
        mailbox: The journal. It is not kept alive.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = weakref.ref(mailbox)
        self._has_failed = False
        self.begin_anew()

    def begin_anew(self) -> None:
        """With nobody to deliver to, and no thread: that of another process stays there after a fork."""
        self._addresses: list[_Address] = []
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # guards the two above, and that nothing is handed over after `leave`

    def join(self, run_id: str, control: Control, handed: int) -> _Address:
        """From now on, deliver the letters of this run above that number."""
        address = _Address(run_id, control, handed)
        with self._lock:
            self._addresses.append(address)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tenlines-letters", daemon=True)
                self._thread.start()
        return address

    def leave(self, address: _Address) -> None:
        """Deliver to it no more. What was delivered and not heard waits in the mailbox for whoever resumes the run."""
        with self._lock:
            if address in self._addresses:
                self._addresses.remove(address)
            address.control.forget_letters()

    def _work(self) -> None:
        while True:
            _nothing.wait(EVERY_S)
            with self._lock:
                if not self._addresses:
                    self._thread = None
                    return
                above: dict[str, int] = {}
                for one in self._addresses:
                    above[one.run_id] = min(one.handed, above.get(one.run_id, one.handed))
            letters = self._fetched(above)
            if letters:
                with self._lock:
                    for one in self._addresses:
                        one.take(letters)

    def _fetched(self, above: dict[str, int]) -> list[Letter]:
        mailbox = self._mailbox()
        try:
            return [] if mailbox is None else mailbox.letters(above)
        except JournalError as error:
            if not self._has_failed:  # the run finds out by itself, when it writes
                self._has_failed = True
                _log.warning("the mailboxes of runs cannot be read; it is tried again: %s", error)
            return []


class _Office:
    """The postmen of this process."""

    def __init__(self) -> None:
        self._postmen: weakref.WeakKeyDictionary[Mailbox, Postman] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def postman(self, mailbox: Mailbox) -> Postman:
        """Who delivers the letters of this journal."""
        with self._lock:
            if mailbox not in self._postmen:
                self._postmen[mailbox] = Postman(mailbox)
            return self._postmen[mailbox]

    def begin_anew(self) -> None:
        """This is a new process: nobody delivers in it."""
        self._lock = threading.Lock()
        for postman in list(self._postmen.values()):
            postman.begin_anew()


_office = _Office()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_office.begin_anew)


def hearing(control: Control | None, journal: Journal) -> Control | None:
    """The hand on a run: the one that was given, else one that can only hear letters; None where none can come."""
    return control or (Control(interrupts=False) if isinstance(journal, Mailbox) else None)


@contextmanager
def delivered(parts: Parts) -> Iterator[None]:
    """While it is entered, letters to the run reach its `Control`. To be entered when the run is open.

    A run that is only undone hears none: half an undo helps nobody.
    """
    mailbox, control, state = parts.journal, parts.control, parts.machine.state
    if control is None or state.phase in (Phase.UNDOING, Phase.ENDED) or not isinstance(mailbox, Mailbox):
        yield
        return
    postman = _office.postman(mailbox)
    address = postman.join(parts.run_id, control, state.mail)
    try:
        yield
    finally:
        postman.leave(address)
