"""tenlines: the agent loop, and everything around it that makes a loop survive production."""

from tenlines.agent import Agent, Run
from tenlines.core.context import Compaction
from tenlines.core.events import Settings
from tenlines.core.limits import Limits, Price, Repeats, Retry
from tenlines.core.result import RunResult
from tenlines.core.transcript import File, Image, Json, Reply, Text, ToolCall, Usage
from tenlines.drivers.control import Control
from tenlines.errors import ConfigError, RunStopped, TenlinesError
from tenlines.ports import NOT_DONE, UNKNOWN, Ask, CallContext, Delta, Deny, Edit, GuardedCall
from tenlines.session import Session
from tenlines.teaching import agent_loop, run_agent
from tenlines.tools import Tool, tool

__all__ = [
    "NOT_DONE",
    "UNKNOWN",
    "Agent",
    "Ask",
    "CallContext",
    "Compaction",
    "ConfigError",
    "Control",
    "Delta",
    "Deny",
    "Edit",
    "File",
    "GuardedCall",
    "Image",
    "Json",
    "Limits",
    "Price",
    "Repeats",
    "Reply",
    "Retry",
    "Run",
    "RunResult",
    "RunStopped",
    "Session",
    "Settings",
    "TenlinesError",
    "Text",
    "Tool",
    "ToolCall",
    "Usage",
    "agent_loop",
    "run_agent",
    "tool",
]
__version__ = "0.1.0"
