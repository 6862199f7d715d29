"""Plans: a task is split into steps first, which a person can change; then they are done, each with what it needs.

```text
plan.py       a plan as data: checked, read, written
course.py     pure: what has come of a plan, and what is next
conductor.py  the plan in the place of the model, so that following it is a run like any other
calls.py      the calls of such a run: runs of their own
setup.py      what such a run starts from
words.py      what the models are told
planner.py    Planner, the front door
```
"""

from tenlines.planning.plan import Plan, PlanStep, load_plan, read_plan
from tenlines.planning.planner import Planner

__all__ = ["Plan", "PlanStep", "Planner", "load_plan", "read_plan"]
