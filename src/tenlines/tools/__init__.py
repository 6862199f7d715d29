"""Tools: functions that a model can call. `@tool` makes them, `as_tool` takes those of others; the other modules check,
bound and isolate them."""

from tenlines.tools.foreign import as_tool
from tenlines.tools.tool import Tool, tool

__all__ = ["Tool", "as_tool", "tool"]
