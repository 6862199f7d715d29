"""What all tests share: nobody's own journal is touched, and nothing of the user's environment is looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

FOREIGN = (
    "TENLINES_MODEL",
    "TENLINES_PRICES",
    "OPENAI_",
    "OLLAMA_",
    "ANTHROPIC_",
    "GEMINI_",
    "GOOGLE_",
    "MISTRAL_",
    "AWS_",
    "LITELLM_",
)
"""How variables begin that models look at."""


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal of its own for each test; no keys, no model and no prices from the environment."""
    journal = tmp_path_factory.mktemp("state") / "journal.db"
    monkeypatch.setenv("TENLINES_JOURNAL", str(journal))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(journal.parent / "config"))
    for name in [one for one in os.environ if one.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    return journal


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs in one of several processes: the tests of a file, and all those of the local model, so that what they
    share is started once."""
    for item in items:
        is_local = item.get_closest_marker("local_model") is not None
        item.add_marker(pytest.mark.xdist_group("the local model" if is_local else str(item.path)))


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Have a line in the summary of all tests: what was counted."""
    return lambda line: request.node.user_properties.append(("said", line))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was counted."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, line in report.user_properties:
            if name == "said" and report.when == "call":
                terminalreporter.write_line(line)
