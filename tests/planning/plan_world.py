"""A model that does what its steps say, and tools that remember what they did.

What a step does is a script: `look x; write y` calls these tools in turn, and answers with what they gave. `refuse`
refuses, `gone` cannot be reached while `World.is_gone`, `talk` goes on asking for ever.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from tenlines import Agent, CallContext, Reply, Tool, ToolCall, Usage, tool
from tenlines.errors import AuthRejected
from tenlines.planning import Plan, PlanStep

NOT_DONE = "was not executed"


def step(id: str, do: str, *needs: str, tools: tuple[str, ...] = ()) -> PlanStep:
    return PlanStep(id=id, do=do, needs=needs, tools=tools)


def plan(*steps: PlanStep) -> Plan:
    return Plan(task="the task", steps=steps)


class World:
    """What was asked, and what was done.

    Args:
        plans: What the model writes when it is to make a plan, one after the other: steps, or text.
    """

    def __init__(self, *plans: Any) -> None:
        self.plans = list(plans)
        self.asked: list[list[dict[str, Any]]] = []
        """The messages of each request that was not for a plan."""
        self.makers: list[list[dict[str, Any]]] = []
        self.looked: list[str] = []
        self.written: list[str] = []
        self.is_gone = False
        self.lock = threading.Lock()

    def agent(self, **options: Any) -> Agent:
        return Agent(self.model, self.tools(), **{"journal": "memory", **options})

    def tools(self, **options: Any) -> list[Tool[..., Any]]:
        def look(what: str) -> str:
            """Look at something."""
            self.looked.append(what)
            return f"seen {what}"

        def write(what: str, ctx: CallContext) -> str:
            """Write something down."""
            self.written.append(what)
            return f"written {what}"

        return [tool(look, read_only=True), tool(write, **options)]

    def model(self, messages: list[dict[str, Any]]) -> Reply:
        system, usage = messages[0]["content"], Usage(100, 10)
        if system.startswith("You split"):
            self.makers.append(messages)
            made = self._next_plan(messages)
            if isinstance(made, str):
                return Reply(made, usage=usage)
            steps = [one.model_dump(mode="json") for one in made]
            return Reply("", (ToolCall("", "finish", json.dumps({"steps": steps})),), usage=usage)
        with self.lock:
            self.asked.append([dict(one) for one in messages])
        if "Answer the task" in system:
            return Reply(
                "so it is: " + messages[-1]["content"].split("\n\nThe task")[0].partition(":\n\n")[2], usage=usage
            )
        return self._step(messages, usage)

    def _next_plan(self, messages: list[dict[str, Any]]) -> Any:
        """The last one is for the rest; others are gone through as often as nothing better is written."""
        if "A plan was made for it" in messages[1]["content"]:
            return self.plans[-1]
        return self.plans[min(len(messages) // 2, len(self.plans)) - 1 if len(messages) > 2 else 0]

    def _step(self, messages: list[dict[str, Any]], usage: Usage) -> Reply:
        script = [one.strip() for one in messages[1]["content"].partition("\n")[0].split(";")]
        results = [one["content"] for one in messages if one["role"] == "tool" and NOT_DONE not in one["content"]]
        if len(results) >= len(script):
            return Reply(", ".join(results) or "nothing", usage=usage)
        word, _, what = script[len(results)].partition(" ")
        if word == "refuse":
            return Reply("I will not", stop="refusal", usage=usage)
        if word == "gone" and self.is_gone:
            raise AuthRejected("no such key")
        if word in ("say", "gone"):
            return Reply(what or "here", usage=usage)
        return Reply("", (ToolCall("", word, json.dumps({"what": what})),), usage=usage)
