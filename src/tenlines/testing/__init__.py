"""For tests of agents: doubles that do what they are told, runs that are recorded once, crashes at every record.

```python
from tenlines import Agent
from tenlines.testing import FakeClock, RecordingObserver, ScriptedModel

model, seen = ScriptedModel(["It is 3 C."]), RecordingObserver()
agent = Agent(model, journal="memory", observers=[seen], clock=FakeClock())
assert agent.run_sync("Weather in Oslo?").answer == "It is 3 C."
assert [type(event).__name__ for event in seen.events][0] == "RunStarted"
assert model.requests[0].messages[-1].text == "Weather in Oslo?"
```
"""

from tenlines.models.plain import ScriptedModel
from tenlines.testing.crashing import CrashingJournal, SimulatedCrash, crash_after
from tenlines.testing.differences import ReplayMismatch
from tenlines.testing.doubles import FakeClock, RecordingObserver
from tenlines.testing.everywhere import CrashReport, crash_everywhere
from tenlines.testing.recordings import Recorded
from tenlines.testing.replaying import replay

__all__ = [
    "CrashReport",
    "CrashingJournal",
    "FakeClock",
    "Recorded",
    "RecordingObserver",
    "ReplayMismatch",
    "ScriptedModel",
    "SimulatedCrash",
    "crash_after",
    "crash_everywhere",
    "replay",
]
