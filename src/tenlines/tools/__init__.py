"""Tools: functions that a model can call. `@tool` makes them; the other modules check, bound and isolate them."""

from tenlines.tools.tool import Tool, tool

__all__ = ["Tool", "tool"]
