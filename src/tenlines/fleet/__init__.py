"""Many runs on many machines: an engine hands them to workers, the journal keeps what is true of them."""

from tenlines.fleet.fleet import Fleet, Schedule
from tenlines.fleet.pacing import Rate
from tenlines.fleet.places import Queue

__all__ = ["Fleet", "Queue", "Rate", "Schedule"]
