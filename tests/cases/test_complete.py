"""Every case has its test, and every test its case."""

from __future__ import annotations

import ast
from pathlib import Path

from case_world import CASES, case_id


def test_each_case_of_the_file_has_exactly_one_test_and_each_test_its_case() -> None:
    tested = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        tested += [name for function in functions if (name := case_id(function.name)) is not None]
    assert sorted(tested) == sorted(CASES)
    assert len(CASES) == 128
