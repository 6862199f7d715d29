"""`Planner`: an agent that makes a plan first, and follows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from tenlines.agent import Agent
from tenlines.child import Brief
from tenlines.core.events import Settings, ToolSpec
from tenlines.core.limits import Counting, Limits, Price
from tenlines.core.outcomes import READ_RESULT
from tenlines.core.result import RunResult
from tenlines.core.transcript import User
from tenlines.drivers.control import Control
from tenlines.drivers.recorder import Parts
from tenlines.errors import ConfigError
from tenlines.planning import calls, words
from tenlines.planning.conductor import Conductor
from tenlines.planning.course import ANSWER, DO, MAKE, READ
from tenlines.planning.plan import Plan, as_json, draft_type, plan_of
from tenlines.planning.setup import Setup
from tenlines.ports import GuardedCall, Observer
from tenlines.tools.finish import reader_of

Review: TypeAlias = Literal["always", "never"]
MAKING = Limits(steps=4)
"""What making a plan may take: the first draft, and three more where it cannot be followed."""


FREE = Counting(rate=1e-6, margin=1.0, source="a plan uses none")
"""How the tokens of a plan's own requests count: it sends none, so none are reserved."""


class _Following(Agent):
    """An agent whose model is a plan."""

    def _begin(self, *args: Any, place: Mapping[str, Any] = MappingProxyType({}), **more: Any) -> Parts:
        return super()._begin(*args, place={**place, "counting": FREE}, **more)


class Planner:
    """An agent that works by a plan: made first, changed by whoever wants to, followed step by step.

    Each step is a run of its own: it knows what it is told and the results that it needs, and has the tools that the
    plan grants. Steps that only read and do not need one another run at once. When a step fails, a new plan is made for
    the rest, once. The answer is written from the results.

    Args:
        agent: Its model makes the plan, does the steps and writes the answer; its tools can be granted; its
            instructions hold for steps and answer; its limits are those of each step.
        limits: For the run of a plan and all runs under it together. By default there is none.
        review: Whether a person looks at plans that a model made before they are followed: the run is then
            `awaiting_approval`, with the plan as the arguments of a call, which `approve` allows or changes. A plan
            that is handed in needs no leave; a new one for the rest of it does.
        parallel: How many steps run at once.
        name: How runs of plans are called in the journal.
        observers: Who sees the events of these; by default those of the agent, which also see those of the steps.

    Raises:
        ConfigError: Something does not fit.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        limits: Limits | None = None,
        review: Review = "always",
        parallel: int = 8,
        name: str = "plan",
        observers: Sequence[Observer] | None = None,
    ) -> None:
        if review not in ("always", "never"):
            raise ConfigError(f"review={review!r}: write 'always' or 'never'")
        self._inner, self.review, self.name = agent, review, name
        self.agent = _Following(
            Conductor(agent.model.name),
            self._parts(),
            instructions=agent.instructions,
            limits=limits or Limits(steps=None),
            settings=self._own_settings(parallel),
            name=name,
            journal=agent.journal,
            observers=agent.observers if observers is None else observers,
            clock=agent.clock,
        )
        """The run behind it, for all that is not here: streams, `approve`, `deny`, undo."""

    # --- making a plan -------------------------------------------------------------------------------

    def plan_sync(self, task: str) -> Plan:
        """Make a plan, and nothing else: one run of the model without the tools, which is told what they are.

        Raises:
            RunStopped: The model made none that can be followed.
        """
        return self.made(self.drafter().run_sync(task), task)

    async def plan(self, task: str) -> Plan:
        """The same as `plan_sync`, for asyncio."""
        return self.made(await self.drafter().run(task), task)

    def drafter(self, done: Sequence[str] = ()) -> Agent:
        """The agent that makes plans. `made` reads what it answers.

        Args:
            done: Ids of steps that are finished, where it makes a new plan for the rest.
        """
        specs = self._granted()
        names = [one.name for one in specs]
        return self._part("make", words.making(specs), limits=MAKING, output=draft_type(names, done))

    def made(self, result: RunResult, task: str) -> Plan:
        """The plan that such a run has made."""
        return plan_of({"task": task, **msgspec.json.decode(result.answer or "{}")}, "the plan", self._names())

    # --- following it --------------------------------------------------------------------------------

    def run_sync(
        self,
        task: str | Plan,
        *,
        limits: Limits | None = None,
        control: Control | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """Make a plan for the task and follow it; or follow one.

        Args:
            task: What is to be done, or a plan.
            limits: Instead of the planner's, for this run.
            control: A hand on the run, for another thread.
            raise_on_stop: As in `Agent.run_sync`.

        Raises:
            ConfigError: The plan cannot be followed.
            RunStopped: There is no answer: a limit; a step failed, and the new plan failed too; ...
        """
        said, before = self._opening(task)
        ended = self.agent.run_sync(said, messages=before, limits=limits, control=control, raise_on_stop=raise_on_stop)
        return self._typed(ended)

    async def run(
        self,
        task: str | Plan,
        *,
        limits: Limits | None = None,
        control: Control | None = None,
        raise_on_stop: bool = True,
    ) -> RunResult:
        """The same as `run_sync`, for asyncio."""
        said, before = self._opening(task)
        begun = self.agent.run(said, messages=before, limits=limits, control=control, raise_on_stop=raise_on_stop)
        return self._typed(await begun)

    def resume_sync(self, run_id: str, *, limits: Limits | None = None, raise_on_stop: bool = True) -> RunResult:
        """Go on with a run of a plan. Finished steps are not repeated; one that was stopped goes on where it was.

        Raises:
            RunNotFound: The journal has no such run.
            RunStopped: As in `run_sync`.
        """
        return self._typed(self.agent.resume_sync(run_id, limits=limits, raise_on_stop=raise_on_stop))

    async def resume(self, run_id: str, *, limits: Limits | None = None, raise_on_stop: bool = True) -> RunResult:
        """The same as `resume_sync`, for asyncio."""
        return self._typed(await self.agent.resume(run_id, limits=limits, raise_on_stop=raise_on_stop))

    # --- wiring ----------------------------------------------------------------------------------------

    def _opening(self, task: str | Plan) -> tuple[str, list[User]]:
        """The task, and what the log has before it."""
        setup = Setup(self._granted(), self._inner.settings)
        if not isinstance(task, Plan):
            return task, [setup.message()]
        plan = plan_of(as_json(task), "the plan", self._names())
        if plan.done:
            raise ConfigError("the plan names finished steps in `done`, and nothing is finished yet: leave it out")
        return plan.task, [msgspec.structs.replace(setup, plan=as_json(plan)).message()]

    def _own_settings(self, parallel: int) -> Settings:
        inner = self._inner.settings
        return Settings(
            price=Price(input=0.0, output=0.0),
            max_parallel=parallel,
            max_output_tokens=1,
            on_stop=inner.on_stop,
            on_in_doubt=inner.on_in_doubt,
            approval_expires_s=inner.approval_expires_s,
        )

    def _granted(self) -> tuple[ToolSpec, ...]:
        """The tools that a plan can grant."""
        return tuple(one.spec for name, one in self._inner.tools.items() if name != READ_RESULT and not one.spec.answer)

    def _names(self) -> list[str]:
        return [one.name for one in self._granted()]

    def _parts(self) -> list[Any]:
        """The calls that a plan consists of, as tools."""
        bare = self._part("part", "")
        return [
            calls.PartTool(Brief(MAKE, task=calls.make_plan, max_result=calls.WHOLE), bare, self._maker),
            calls.UsePlan(self._names(), self._is_asked if self.review == "always" else None),
            calls.PartTool(Brief(READ, task=calls.do_step), self._inner, self._worker),
            calls.PartTool(Brief(DO, task=calls.do_step), self._inner, self._worker, reads=False),
            calls.PartTool(Brief(ANSWER, task=calls.answer, max_result=calls.WHOLE), bare, self._answerer, final=True),
        ]

    def _is_asked(self, call: GuardedCall) -> bool:
        """Whether a model made the plan. The first call of a run takes up one that was handed in."""
        return call.step > 1

    def _maker(self, arguments: Mapping[str, Any]) -> Agent:
        rest = arguments.get("rest")
        return self.drafter(() if rest is None else list(rest.done))

    def _worker(self, arguments: Mapping[str, Any]) -> Agent:
        """Whoever does a step, with the tools that the plan grants and no others."""
        tools = [self._inner.tools[name] for name in arguments["tools"]]
        return self._part(arguments["step"], words.together(self._inner.instructions, words.STEP), tools)

    def _answerer(self, arguments: Mapping[str, Any]) -> Agent:
        """Whoever writes the answer; where it has a type, as a value of that."""
        finish = [one for one in self._inner.tools.values() if one.spec.answer]
        return self._part("answer", words.together(self._inner.instructions, words.ANSWER), finish)

    def _typed(self, result: RunResult) -> RunResult:
        """The result, with the value where the answer has a type."""
        read = reader_of(self._inner.tools)
        if read is None or result.answer is None:
            return result
        return msgspec.structs.replace(result, output=read(result.answer))

    def _part(
        self, name: str, instructions: str, tools: Sequence[Any] = (), *, limits: Limits | None = None, **more: Any
    ) -> Agent:
        inner = self._inner
        return Agent(
            inner.model,
            tools,
            instructions=instructions,
            limits=limits,
            settings=msgspec.structs.replace(inner.settings, on_stop="keep", tool_choice="auto"),
            name=f"{self.name}.{name}",
            journal=inner.journal,
            observers=inner.observers,
            policy=inner.policy if tools else None,
            clock=inner.clock,
            **more,
        )
