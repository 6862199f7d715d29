"""What the models of a plan's run are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tenlines.core.events import ToolSpec
from tenlines.core.outcomes import bounded
from tenlines.core.transcript import JsonObject

_MAKE = """\
You split a task into steps; you do none of them. Each step is done by somebody who sees its `do` and the results of \
the steps that it `needs`, and nothing else: write there all that he has to know. Steps that do not need one another \
are done at the same time. A step can use the tools in its `tools` and no others. Make as few steps as the task takes, \
and none that only puts results together: the answer is written from all of them.

An example, for other tools and the task "Is Ann's newest invoice paid?":
{"steps": [{"id": "invoice", "do": "Find the newest invoice of Ann, and its number.", "needs": [], \
"tools": ["search_invoices"]}, {"id": "paid", "do": "Find out whether this invoice is paid.", "needs": ["invoice"], \
"tools": ["get_payment"]}]}"""
STEP = """\
You do one step of a larger task. Do just that. Then answer with its result, with every name, number and id that was \
found. Where it cannot be done, say so and why."""
ANSWER = """\
Answer the task from the results of its steps, all of them together. Claim nothing that they do not say; where \
something is missing, say what."""
SHOWN_CHARS = 4_000
"""How much of each result whoever makes a new plan is shown."""


def making(tools: Iterable[ToolSpec]) -> str:
    """The instructions of whoever makes a plan: the tools by name and description."""
    listed = [f"- {one.name}: {_first_lines(one.description)}" for one in tools]
    return "\n".join(
        [_MAKE, "", "Tools:", *listed] if listed else [_MAKE, "", "There are no tools: leave `tools` empty."]
    )


def _first_lines(description: str) -> str:
    return " ".join(description.split("\n\n")[0].split()) or "(says nothing of itself)"


def together(*parts: str) -> str:
    """Instructions, one after the other."""
    return "\n\n".join(filter(None, parts))


def new_plan(task: str, steps: Sequence[JsonObject], done: Mapping[str, str], failed: Mapping[str, str]) -> str:
    """The task of whoever makes a plan for the rest."""
    said = [f"The task:\n{task}", "A plan was made for it, and could not be followed to its end. Its steps:"]
    said += [f"- {one['id']}: {one['do']}" for one in steps]
    said.append(f"Finished, with these results:\n{results(done)}" if done else "None of them is finished.")
    said.append(f"Failed:\n{results(failed)}")
    said.append(
        "Make a plan for the rest: steps that are finished are not done again, and can be needed by their names. "
        "What failed has to be done in another way."
    )
    return "\n\n".join(said)


def results(found: Mapping[str, str]) -> str:
    """Results by the names of their steps."""
    return "\n\n".join(f"[{name}]\n{text}" for name, text in found.items())


def shortened(found: Mapping[str, str]) -> dict[str, str]:
    """The same, each of bounded length."""
    return {name: bounded(text, SHOWN_CHARS) for name, text in found.items()}
