"""`Fleet`: the agents that workers have, by name and version, and what holds for all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tenlines.agent import Agent
from tenlines.errors import ConfigError
from tenlines.fleet.pacing import Rate
from tenlines.fleet.places import Queue
from tenlines.ports import Lane, Timetable


class Schedule(msgspec.Struct, frozen=True):
    """A task that is begun again and again, at times of the clock."""

    name: str
    """What it is known by; with the time it is the key of each of its runs."""
    agent: str
    task: str
    cron: str | tuple[str, ...]
    """As in `crontab`: minute, hour, day of the month, month, day of the week; or several of these."""
    time_zone: str = "UTC"
    queue: str = "default"
    priority: int = 3

    @property
    def times(self) -> tuple[str, ...]:
        """`cron` as a tuple."""
        return (self.cron,) if isinstance(self.cron, str) else self.cron


class Fleet:
    """What a worker has: give one to `tenlines worker --app FILE.py`, at the top level of the file.

    Args:
        agents: By their names, which have to differ, or else their versions.
        queues: What is to be known of queues. One that is not named has no limit of its own.
        rates: How fast models may be asked by the whole fleet, by their names (`openai:gpt-5`).
        schedules: Tasks that are begun at times of the clock.
        also: Older versions of an agent whose runs it goes on with, by its name: `{"support": ["1"]}`.

    Raises:
        ConfigError: Two agents cannot be told apart, or something names an agent that there is not.
    """

    def __init__(
        self,
        agents: Iterable[Agent],
        *,
        queues: Sequence[Queue] = (),
        rates: Mapping[str, Rate] | None = None,
        schedules: Sequence[Schedule] = (),
        also: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._queues = {one.name: one for one in queues}
        self.rates = dict(rates or {})
        self._agents: dict[tuple[str, str], Agent] = {}
        for agent in agents:
            self._add(agent, (also or {}).get(agent.name, ()))
        for name in also or {}:
            self.named(name)
        self.schedules = {one.name: one for one in schedules}
        for one in schedules:
            self.named(one.agent)

    def _add(self, agent: Agent, also: Sequence[str]) -> None:
        if not agent.name.strip() or "/" in agent.name or "@" in agent.name:
            raise ConfigError(f"an agent of a fleet is called {agent.name!r}: give it a name without / and @")
        for version in (agent.version, *also):
            if (agent.name, version) in self._agents:
                which = f"{agent.name!r}" + f" in version {version!r}" * bool(version)
                raise ConfigError(f"two agents are called {which}: give each a name (name=) or a version of its own")
            self._agents[agent.name, version] = agent

    @property
    def agents(self) -> tuple[Agent, ...]:
        """All that there are, each once."""
        return tuple({id(one): one for one in self._agents.values()}.values())

    def agent(self, lane: Lane) -> Agent | None:
        """Who works on the runs of a lane; None where there is nobody."""
        return self._agents.get((lane.agent, lane.version))

    def named(self, name: str) -> Agent:
        """The agent of that name that new runs are begun with: the one that was given last.

        Raises:
            ConfigError: There is none.
        """
        found = [agent for (one, _), agent in self._agents.items() if one == name]
        if not found:
            known = ", ".join(dict.fromkeys(one for one, _ in self._agents)) or "none"
            raise ConfigError(f"there is no agent named {name!r} in this fleet; agents: {known}")
        return found[-1]

    @property
    def queues(self) -> tuple[str, ...]:
        """Those that have a name here: what is to be known of them, or a schedule uses them."""
        return tuple(dict.fromkeys((*self._queues, *(one.queue for one in self.schedules.values()))))

    def queue(self, name: str) -> Queue:
        """What is to be known of a queue."""
        return self._queues.get(name) or Queue(name)

    def lanes(self, queues: Sequence[str]) -> list[Lane]:
        """Where the runs of these agents wait, in these queues."""
        return [Lane(queue, agent, version) for queue in queues for agent, version in self._agents]

    def timetables(self) -> list[Timetable]:
        """The schedules as an engine knows them."""
        return [
            Timetable(one.name, one.times, Lane(one.queue, one.agent, self.named(one.agent).version), one.time_zone)
            for one in self.schedules.values()
        ]
