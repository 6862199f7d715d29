"""The benchmarks run as documented. What they measure is looked at by people, not asserted here, but for memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
SCRIPT = FOLDER / "overhead.py"


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
    assert all(row["spans"] > row["off"] > row["bare"] > 0 for row in report["tracing"])
    assert len(report["verdicts"]) == 6


@pytest.mark.slow
def test_the_protocol_script_prints_its_tables_and_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    words = [sys.executable, str(FOLDER / "protocol.py"), "--quick", "--out", str(out)]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "against the targets" in run.stdout
    report = json.loads(out.read_text())
    assert [(row["command"], row["form"], row["MB"]) for row in report["rows"]] == [
        (command, form, size)
        for form in ("openai_chat", "anthropic")
        for size in (1, 4)
        for command in ("check", "repair")
    ]
    growth = next(value for name, value in report["verdicts"].items() if name.startswith("growth"))
    assert growth < 3  # a file that is held takes several times its size


@pytest.mark.slow
def test_the_journal_script_prints_its_tables_and_a_late_step_costs_what_an_early_one_does(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    words = [sys.executable, str(FOLDER / "journal.py"), "--quick", "--out", str(out)]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "against the targets" in run.stdout
    report = json.loads(out.read_text())
    assert [row["at step"] for row in report["growth"]] == [10, 100, 1_000]
    assert report["resume"][0]["events"] == 3_998
    assert len(report["verdicts"]) == 3
    assert report["verdicts"]["cost of a step, last place over first"] < 3  # what grows with the run would be far more


@pytest.mark.slow
def test_the_bounding_script_prints_its_tables_and_a_large_text_is_not_copied(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    words = [sys.executable, str(FOLDER / "bounding.py"), "--quick", "--out", str(out)]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "against the targets" in run.stdout
    report = json.loads(out.read_text())
    assert len(report["results"]) == 8
    assert all(row["s"] > 0 for row in report["results"])
    assert len(report["verdicts"]) == 5
    assert report["verdicts"]["peak beside 100 MB of text, MB"] < 10  # a copy of a tenth of it is 10 MB or more


@pytest.mark.slow
def test_the_simulation_of_fleets_prints_what_a_day_needs() -> None:
    words = [sys.executable, str(FOLDER / "scale.py"), "--runs-per-day", "1000"]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "1,000 runs a day" in run.stdout
    assert "p99" in run.stdout
