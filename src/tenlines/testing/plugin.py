"""For pytest: a fixture that runs an agent for real once, and from then on replays what was recorded.

```python
def test_order(recorded):
    result = recorded(agent, "Where is order 1042?")
    assert "Hamburg" in result.answer
```

The recording is `recordings/TEST MODULE/TEST NAME.jsonl` beside the test file, the file of a run. Nothing is imported
before the first test that uses it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tenlines.testing.recordings import Recorded


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two options."""
    group = parser.getgroup("tenlines", "recorded runs of agents")
    group.addoption(
        "--tenlines-record", action="store_true", help="run agents for real and record them anew (fixture `recorded`)"
    )
    group.addoption(
        "--tenlines-replay-only",
        action="store_true",
        help="fail where a recording is missing in place of recording it; so also where CI is set",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what contradicts itself."""
    if config.getoption("tenlines_record") and config.getoption("tenlines_replay_only"):
        raise pytest.UsageError("--tenlines-record and --tenlines-replay-only contradict one another: give one of them")


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Recorded:
    """Runs an agent once for real, and replays the recording ever after: `recorded(agent, task)`."""
    from tenlines.testing.recordings import Recorded

    config = request.config
    records_anew = bool(config.getoption("tenlines_record"))
    may_record = records_anew or not (config.getoption("tenlines_replay_only") or _is_in_ci())
    return Recorded(request.node.path, request.node.nodeid, may_record=may_record, records_anew=records_anew)


def _is_in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")
