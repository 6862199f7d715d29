"""The skeleton of the program that would replace an agent: valid Python, to be completed where it says so."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence

from tenlines.advise.chart import ends
from tenlines.advise.workflow import Argument, Stage, Way, Workflow
from tenlines.trace.text import one_line

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list[Any]",
    "object": "dict[str, Any]",
}
_TAKEN = frozenset(
    {
        *("any", "ask", "asked", "answer", "asyncio", "bool", "call", "calls", "choose", "dict", "flow", "float"),
        *("int", "last", "list", "next", "one", "question", "results", "reversed", "str", "take", "task", "tools"),
        *("way"),
    }
)
"""Names that the skeleton uses itself."""

HEAD = '''\
"""{title}

{covered} of {answered} answered runs took {ways}. A skeleton: complete whatever raises NotImplementedError.
"""

from __future__ import annotations

{imports}
from typing import Any, NamedTuple

Ask = Callable[[str, Any], Awaitable[Any]]
"""One model call: what is asked, and the type of what comes back."""
Tools = dict[str, Callable[..., Awaitable[str]]]
"""The tools of the agent, by name."""
Results = dict[str, str]
"""What the stages so far came to, by the name of the stage."""
'''
TAKE = '''

def take(argument: str, result: str) -> Any:
    """The value of an argument, out of the result that holds it."""
    raise NotImplementedError(f"{argument}: take it out of {result[:80]!r}")
'''
LAST = '''

def last(results: Results) -> str:
    """The newest result."""
    return next(reversed(results.values()), "")
'''
CHOOSE = '''

def choose(task: str, results: Results) -> int:
    """Which of the ways the task takes from here: 1 to {ways}."""
    raise NotImplementedError("say by what the ways part")
'''
ANSWER = '''

async def answer(task: str, results: Results, ask: Ask) -> str:
    """The answer. One model call, which sees the task and all results."""
    found = "\\n\\n".join(results.values())
    return str(await ask(f"Answer the task from the results.\\n\\nTask: {task}\\n\\nResults:\\n{found}", str))
'''


def skeleton_of(flow: Workflow) -> str:
    """The program."""
    writer = _Writer()
    body = writer.body(flow.ways)
    written = "".join(writer.functions)
    head = HEAD.format(
        title=_doc(f"What `{flow.group}` does, as a workflow."),
        covered=f"{flow.covered:,}",
        answered=f"{flow.answered:,}",
        ways="this path" if len(flow.ways) == 1 else f"these {len(flow.ways)} paths",
        imports="import asyncio\n" * ("asyncio." in written) + "from collections.abc import Awaitable, Callable",
    )
    helpers = TAKE * ("take(" in written) + LAST * ("last(results)" in written)
    helpers += CHOOSE.format(ways=len(flow.ways)) * (len(flow.ways) > 1)
    lines = [
        "",
        "",
        "async def flow(task: str, ask: Ask, tools: Tools) -> str:",
        '    """The workflow, from the task to the answer."""',
        "    results: Results = {}",
        *body,
        "    return await answer(task, results, ask)",
        "",
    ]
    return f"{head}{helpers}{written}{ANSWER}" + "\n".join(lines)


class _Writer:
    """Writes a function for each stage; a stage that all ways share is written once."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self._names: set[str] = set(_TAKEN)
        self._stages: dict[int, str] = {}
        """The functions of the way that is being written, by place."""

    def body(self, ways: Sequence[Way]) -> list[str]:
        """What `flow` does."""
        start, end = ends([[stage.tools for stage in way.stages] for way in ways])
        first, many = ways[0], len(ways[0].stages)
        if len(ways) == 1:
            return self._calls(first, range(many), "    ")
        lines = [*self._calls(first, range(start), "    "), "    way = choose(task, results)"]
        shared = dict(self._stages)
        kept = shared
        for number, way in enumerate(ways, 1):
            self._stages = dict(shared)
            lines.append(f"    {'if' if number == 1 else 'elif'} way == {number}:  # {way.runs:,} runs")
            lines += self._calls(way, range(start, len(way.stages) - end), "        ") or ["        pass"]
            kept = self._stages if number == 1 else kept
        self._stages = kept  # where its arguments come from, what follows has from the most frequent way
        return lines + self._calls(first, range(many - end, many), "    ")

    def _calls(self, way: Way, places: Iterable[int], indent: str) -> list[str]:
        lines = []
        for place in places:
            for first, last in way.loops:
                if first == place:
                    lines.append(f"{indent}# in some runs, stages {first + 1} to {last + 1} came again: make it a loop")
            name = self._stages[place] = self._stage(place, way.stages[place])
            lines.append(f"{indent}results[{_quoted(name)}] = await {name}(task, results, ask, tools)")
        return lines

    def _stage(self, place: int, stage: Stage) -> str:
        """Write the function of a stage; its name."""
        name = self._name("_and_".join(stage.tools))
        asked = [one for one in stage.arguments if _is_asked(one, stage)]
        record = "".join(part.capitalize() for part in name.split("_")) + "Arguments"
        lines = ["", "", *_record(record, asked, name)] if asked else []
        lines += ["", "", f"async def {name}(task: str, results: Results, ask: Ask, tools: Tools) -> str:"]
        lines.append(f'    """Stage {place + 1}. {_doc(_what(stage, asked))}"""')
        lines += _asking(stage, asked, record, self._stages)
        lines += _calling(stage, asked, self._stages)
        self.functions.append("\n".join([*lines, ""]))
        return name

    def _name(self, wanted: str) -> str:
        plain = name = _identifier(wanted)
        number = 1
        while name in self._names:
            number += 1
            name = f"{plain}_{number}"
        self._names.add(name)
        return name


def _is_asked(argument: Argument, stage: Stage) -> bool:
    return argument.source in ("task", "model") or (stage.is_loop and argument.source == "result")


def _what(stage: Stage, asked: Sequence[Argument]) -> str:
    times = "" if not stage.is_loop else f", {stage.fewest} to {stage.most} calls"
    call = "One model call for its arguments" if asked else "No model call"
    return f"{call}, then {' + '.join(stage.tools)}{times}."


def _record(name: str, asked: Sequence[Argument], stage: str) -> list[str]:
    lines = [f"class {name}(NamedTuple):", f'    """What the model is asked for before `{stage}`."""', ""]
    fields = zip(_fields(asked), asked, strict=True)
    return lines + [f"    {field}: {_TYPES.get(one.type, 'Any')}  # {one_line(one.words, 80)}" for field, one in fields]


def _fields(asked: Sequence[Argument]) -> list[str]:
    """A name for each argument. Those of several tools of one stage may be alike."""
    names, taken = [], set[str]()
    for one in asked:
        name = _identifier(one.name)
        name = f"{_identifier(one.tool)}_{name}" if name in taken else name
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
    return names


def _asking(stage: Stage, asked: Sequence[Argument], record: str, names: Mapping[int, str]) -> list[str]:
    """The model call of a stage. It sees the task, and the results that its arguments come from."""
    if not asked:
        return []
    sees = sorted({one.stage for one in asked if one.stage is not None})
    seen = "".join(f"\\n\\n{{results[{names[place]!r}]}}" for place in sees)
    seen += "\\n\\n{last(results)}" * (bool(names) and any(one.source == "model" for one in asked))
    what = _quoted(f"The arguments for {' and '.join(one_line(tool, 64) for tool in stage.tools)}, for the task below.")
    wanted = f"list[{record}]" if stage.is_loop else record
    return [f'    question = {what} f"\\n\\nTask: {{task}}{seen}"', f"    asked = await ask(question, {wanted})"]


def _calling(stage: Stage, asked: Sequence[Argument], names: Mapping[int, str]) -> list[str]:
    calls = [_call(tool, stage, asked, names) for tool in stage.tools]
    listed = ", ".join(calls)
    if stage.is_loop:
        gathered = f"[call for one in asked for call in ({listed},)]" if asked else f"[{listed}]  # as often as needed"
        return [f"    calls = {gathered}", '    return "\\n\\n".join(await asyncio.gather(*calls))']
    if len(calls) == 1:
        return [f"    return await {listed}"]
    return [f'    return "\\n\\n".join(await asyncio.gather({listed}))']


def _call(tool: str, stage: Stage, asked: Sequence[Argument], names: Mapping[int, str]) -> str:
    source = "one" if stage.is_loop else "asked"
    fields = dict(zip(((one.tool, one.name) for one in asked), _fields(asked), strict=True))
    given: dict[str, str] = {}
    for one in stage.arguments:
        if one.tool != tool:
            continue
        if (one.tool, one.name) in fields:
            given[one.name] = f"{source}.{fields[one.tool, one.name]}"
        elif one.stage is not None:
            given[one.name] = f"take({_quoted(one.name)}, results[{_quoted(names[one.stage])}])"
        else:
            given[one.name] = _quoted(one.value) if isinstance(one.value, str) else repr(one.value)
    if all(name.isidentifier() and name.isascii() and not keyword.iskeyword(name) for name in given):
        return f"tools[{_quoted(tool)}]({', '.join(f'{name}={value}' for name, value in given.items())})"
    pairs = ", ".join(f"{_quoted(name)}: {value}" for name, value in given.items())
    return f"tools[{_quoted(tool)}](**{{{pairs}}})"


def _identifier(text: str) -> str:
    """A name that Python takes."""
    name = re.sub(r"\W+|^(?=\d)", "_", one_line(text, 60), flags=re.ASCII).strip("_").lower() or "stage"
    name = f"n{name}" if name[0].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) or keyword.issoftkeyword(name) else name


def _quoted(text: str) -> str:
    """A string of Python, in double quotes where it has none."""
    plain = repr(text)
    return plain if '"' in plain or "\\'" in plain else f'"{plain[1:-1]}"'


def _doc(text: str) -> str:
    """Text that may stand in a docstring."""
    return one_line(text, 90).replace("\\", "/").replace('"', "'")
