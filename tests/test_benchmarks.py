"""The benchmark runs as documented. What it measures is looked at by people, not asserted here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "overhead.py"


@pytest.mark.slow
def test_the_overhead_script_prints_its_tables_and_writes_them(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--out", str(out)], capture_output=True, text=True, check=True
    )
    assert "against the targets" in run.stdout
    report = json.loads(out.read_text())
    assert [row["steps"] for row in report["steps"]] == [1, 10, 100, 1_000]
    assert all(row["memory"] > row["bare"] > 0 for row in report["steps"])
    assert len(report["verdicts"]) == 6
