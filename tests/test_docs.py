"""Every block of Python in the documentation runs as it stands, page by page, in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[str]:
    """Blocks that are whole programs; excerpts of the source name what they do not define."""
    return [block for block in BLOCK.findall(page.read_text()) if "driver.perform" not in block]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENLINES_JOURNAL", str(tmp_path / "journal.db"))
    names: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(blocks(page)):
        exec(compile(block, f"{page.name}[{number}]", "exec", dont_inherit=True), names)  # noqa: S102  # our own documentation


@pytest.mark.local_model
def test_the_twenty_lines_of_the_readme_run_on_the_local_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TENLINES_JOURNAL", str(tmp_path / "journal.db"))
    (block,) = blocks(ROOT / "README.md")
    exec(compile(block, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102  # our own documentation
    assert "Hamburg" in capsys.readouterr().out


def test_every_link_of_the_documentation_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *PAGES]:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
