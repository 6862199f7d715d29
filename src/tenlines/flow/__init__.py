"""Workflows: a fixed path, written as a plain async function, whose stages ask a model one thing each.

```text
rounds.py     pure: runs the function until it needs results
stages.py     @stage: a question to a model, typed in and out
script.py     the function in the place of the model, so that a workflow is a run like any other
workflow.py   Flow, and steps: what is done once and recorded
```
"""

from tenlines.flow.rounds import Want, map_over, together
from tenlines.flow.stages import Stage, stage
from tenlines.flow.workflow import Flow, Step, step

__all__ = ["Flow", "Stage", "Step", "Want", "map_over", "stage", "step", "together"]
