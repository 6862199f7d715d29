"""What all tests share: nobody's own journal is touched, and nothing of the user's environment is looked at."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

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

APART = ("tests/property/test_faults.py",)
"""Long files whose tests share nothing."""


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal of its own for each test; no keys, no model and no prices from the environment."""
    journal = tmp_path_factory.mktemp("state") / "journal.db"
    monkeypatch.setenv("TENLINES_JOURNAL", str(journal))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(journal.parent / "config"))
    for name in [one for one in os.environ if one.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    return journal


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What is there by now stays: it is not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What runs in one of several processes: the tests of a file, and all files with the local model, so that what they
    share is started once. Files whose tests share nothing are dealt out test by test."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file in APART:
                return nodeid
            return "the local model" if needs_local_model(config.rootpath / file) else file

    return ByFile(config, log)


@cache
def needs_local_model(file: Path) -> bool:
    """Whether tests in the file are marked so."""
    return "mark.local_model" in file.read_text()


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
