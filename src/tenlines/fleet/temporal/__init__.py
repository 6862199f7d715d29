"""Temporal as the engine of a fleet. Needs the extra `fleet`."""

from tenlines.fleet.temporal.engine import HEARTBEAT_S, Temporal

__all__ = ["HEARTBEAT_S", "Temporal"]
