"""The tables of `docs/protocol.md` are those of the code; `python tests/wire/test_protocol_page.py` writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tenlines.wire.dumps.sources import TITLES
from tenlines.wire.formats import FORMATS, all_rules
from tenlines.wire.recognising import ORDER
from tenlines.wire.refusals import KIND_WORDS

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
COLUMNS = {
    "images": "images",
    "files": "files",
    "result_images": "images in results",
    "result_files": "files in results",
    "result_json": "JSON in results",
    "errors": "results marked as errors",
    "names": "names of results",
    "reasoning": "reasoning",
}
"""What `Profile.carries` may hold."""


def table(header: list[str], rows: list[list[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, ["---"] * len(header), *rows))


def carries() -> str:
    rows = [
        [one.title, *("●" if name in one.profile().carries else " " for name in COLUMNS)] for one in FORMATS.values()
    ]
    return table(["", *COLUMNS.values()], rows)


def kinds() -> str:
    rows = []
    for kind, words in KIND_WORDS.items():
        names = [name for name, one in FORMATS.items() if any(kind in rule.kinds for rule in one.rules)]
        if names:
            rows.append([kind, words, ", ".join(names)])
    return table(["kind", "what", "formats with a rule on it"], rows)


def forms() -> str:
    rows = [
        [f"`{name}`", FORMATS[name].title if name in FORMATS else TITLES[name], "yes" if name in FORMATS else ""]
        for name in ORDER
    ]
    return table(["`--from`", "what", "a provider takes it"], rows)


TABLES: dict[str, Callable[[], str]] = {"carries": carries, "kinds": kinds, "forms": forms}
PLACE = re.compile(rf"(<!-- ({'|'.join(TABLES)}) -->\n).*?(<!-- end -->)", re.DOTALL)


def renewed(page: str) -> str:
    """The page with every table as it is now."""
    return PLACE.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", page)


def test_the_tables_are_those_of_the_code() -> None:
    page = PAGE.read_text()
    assert {found[2] for found in PLACE.finditer(page)} == TABLES.keys()
    assert renewed(page) == page, "run `python tests/wire/test_protocol_page.py`"


def test_every_kind_of_a_rule_has_its_words() -> None:
    assert {kind for rule in all_rules() for kind in rule.kinds} <= KIND_WORDS.keys()


def test_everything_that_a_profile_carries_has_a_column() -> None:
    servers = {what for one in FORMATS.values() for what in one.profile().carries}
    assert servers <= COLUMNS.keys()


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
