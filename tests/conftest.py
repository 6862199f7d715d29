"""What all tests share: nobody's own journal is touched, and nothing of the user's environment is looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOREIGN = ("TENLINES_MODEL", "OPENAI_", "OLLAMA_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "MISTRAL_", "AWS_", "LITELLM_")
"""How variables begin that models look at."""


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal of its own for each test; no keys and no model from the environment."""
    journal = tmp_path_factory.mktemp("state") / "journal.db"
    monkeypatch.setenv("TENLINES_JOURNAL", str(journal))
    for name in [one for one in os.environ if one.startswith(FOREIGN)]:
        monkeypatch.delenv(name)
    return journal
