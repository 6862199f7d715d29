"""Temporal as the engine of a fleet. Needs the extra `fleet`."""

from tenlines.fleet.temporal.engine import Temporal

__all__ = ["Temporal"]
