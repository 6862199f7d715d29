"""What all tests share: nobody's own journal is touched, and nothing of the user's environment is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal of its own for each test; no keys and no model from the environment."""
    journal = tmp_path_factory.mktemp("state") / "journal.db"
    monkeypatch.setenv("TENLINES_JOURNAL", str(journal))
    for name in ("TENLINES_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    return journal
