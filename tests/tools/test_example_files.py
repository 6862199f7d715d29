"""The folder of files of the examples: useful inside, and no way out, with real links, pipes and races."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tenlines.ports import Bound, CallContext
from tenlines.tools import Tool
from tenlines.tools.load import load_tools

FILE = Path(__file__).parents[2] / "examples" / "files.py"
TOOLS: dict[str, Tool[..., Any]] = {one.spec.name: one for one in load_tools(FILE)}
SECRET = "the secret"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a secret beside it."""
    (tmp_path / "secret.txt").write_text(SECRET)
    folder = tmp_path / "root"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "today.txt").write_text("Call the plumber.\nThe Boiler leaks.\n")
    (folder / "readme.md").write_text("boiler manual: see notes\n")
    monkeypatch.setenv("FILES_ROOT", str(folder))
    return folder


def call(name: str, **arguments: Any) -> str:
    bound = TOOLS[name].check(arguments)
    assert isinstance(bound, Bound), bound
    return str(TOOLS[name].call(bound, CallContext("r:1:0", name, None)))


def outcome(name: str, **arguments: Any) -> str:
    try:
        return call(name, **arguments)
    except (OSError, ValueError) as error:
        return str(error)


# --- useful inside ------------------------------------------------------------------------------------


def test_files_are_listed_with_sizes_and_folders_with_a_slash(root: Path) -> None:
    assert call("list_files") == "notes/\nreadme.md  25 bytes"
    assert call("list_files", folder="notes/") == "today.txt  36 bytes"


def test_an_empty_folder_says_so(root: Path) -> None:
    (root / "empty").mkdir()
    assert call("list_files", folder="empty") == "empty is empty"


def test_a_long_list_says_what_is_not_listed(root: Path) -> None:
    (root / "many").mkdir()
    for number in range(503):
        (root / "many" / f"{number:04}").touch()
    lines = call("list_files", folder="many").splitlines()
    assert len(lines) == 501
    assert lines[-1] == "... 3 of 503 entries are not listed"


def test_a_file_is_read_whole_or_by_lines(root: Path) -> None:
    assert call("read_file", path="notes/today.txt") == "Call the plumber.\nThe Boiler leaks.\n"
    assert call("read_file", path="./notes//today.txt", first_line=2) == "(lines 2 to 2 of 2)\nThe Boiler leaks.\n"
    assert call("read_file", path="notes/today.txt", max_lines=1) == "(lines 1 to 1 of 2)\nCall the plumber.\n"
    (root / "nothing").touch()
    assert call("read_file", path="nothing") == ""


def test_lines_that_do_not_exist_are_an_error(root: Path) -> None:
    assert "has 2 lines; there is no line 3" in outcome("read_file", path="notes/today.txt", first_line=3)
    assert "count from 1" in outcome("read_file", path="notes/today.txt", first_line=0)


def test_search_finds_lines_in_all_folders(root: Path) -> None:
    (root / "data.bin").write_bytes(b"boiler\0")
    assert call("search_files", text="BOILER") == (
        "notes/today.txt:2: The Boiler leaks.\nreadme.md:1: boiler manual: see notes"
    )
    assert call("search_files", text="boiler", folder="notes") == "notes/today.txt:2: The Boiler leaks."
    assert call("search_files", text="boiler", names="*.md") == "readme.md:1: boiler manual: see notes"
    assert call("search_files", text="zebra") == "no line contains 'zebra' (2 text files were searched)"
    assert "give a text" in outcome("search_files", text=" ")


def test_search_stops_at_its_limit_and_says_so(root: Path) -> None:
    (root / "long.txt").write_text("boiler\n" * 500)
    lines = call("search_files", text="boiler").splitlines()
    assert len(lines) == 101
    assert "more than 100 lines" in lines[-1]


def test_a_file_is_written_replaced_and_nothing_is_left_over(root: Path) -> None:
    assert call("write_file", path="new/deep/a.txt", content="é") == "new/deep/a.txt is written: 2 bytes"
    assert (root / "new/deep/a.txt").read_text() == "é"
    (root / "new/deep/a.txt").chmod(0o600)
    call("write_file", path="new/deep/a.txt", content="b")
    assert (root / "new/deep/a.txt").read_text() == "b"
    assert (root / "new/deep/a.txt").stat().st_mode & 0o777 == 0o600
    assert os.listdir(root / "new/deep") == ["a.txt"]


def test_a_reader_never_sees_half_a_file(root: Path) -> None:
    old, new = "a" * 200_000, "b" * 200_000
    call("write_file", path="big.txt", content=old)
    seen, stop = set[str](), threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add((root / "big.txt").read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(10):
        call("write_file", path="big.txt", content=new)
        call("write_file", path="big.txt", content=old)
    stop.set()
    reader.join()
    assert seen <= {old, new}


def test_a_write_that_fails_leaves_the_old_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*names: Any, **handles: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    assert "disk full" in outcome("write_file", path="readme.md", content="new")
    assert (root / "readme.md").read_text() == "boiler manual: see notes\n"
    assert sorted(os.listdir(root)) == ["notes", "readme.md"]


def test_the_current_folder_is_the_default(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FILES_ROOT")
    monkeypatch.chdir(root / "notes")
    assert call("list_files") == "today.txt  36 bytes"


# --- bounds -------------------------------------------------------------------------------------------


def test_binary_and_large_files_are_named_as_such(root: Path) -> None:
    (root / "data.bin").write_bytes(b"\x89PNG\0\0")
    (root / "latin.txt").write_bytes(b"caf\xe9")
    (root / "large.txt").write_bytes(b"x" * 1_000_001)
    assert outcome("read_file", path="data.bin") == "data.bin is a binary file of 6 bytes, not a text"
    assert "is a binary file of 4 bytes" in outcome("read_file", path="latin.txt")
    assert outcome("read_file", path="large.txt") == "large.txt has 1,000,001 bytes; files up to 1,000,000 can be read"
    assert "are too many" in outcome("write_file", path="b.txt", content="x" * 1_000_001)
    assert not (root / "b.txt").exists()


def test_what_is_missing_or_of_another_kind_is_said_in_words(root: Path) -> None:
    assert outcome("read_file", path="none.txt") == "none.txt does not exist; list_files shows what there is"
    assert "there is no folder 'none'" in outcome("read_file", path="none/a.txt")
    assert "is a folder; list_files shows" in outcome("read_file", path="notes")
    assert "is a folder" in outcome("read_file", path=".")
    assert "is a folder" in outcome("write_file", path="notes", content="x")
    assert "'readme.md' is a file, not a folder" in outcome("list_files", folder="readme.md")
    assert "'readme.md' is a file, not a folder" in outcome("write_file", path="readme.md/a", content="x")


# --- no way out ---------------------------------------------------------------------------------------

WAYS_OUT = [
    "../secret.txt",
    "notes/../../secret.txt",
    "/etc/passwd",
    "~/x",
    "..",
    "notes/..",
    "a\0b",
    "/".join("a" * 30),
]


@pytest.mark.parametrize("path", WAYS_OUT)
def test_a_path_that_leads_out_is_refused_by_every_tool(root: Path, path: str) -> None:
    before = sorted(Path(root.parent).rglob("*"))
    for name, arguments in (
        ("read_file", {"path": path}),
        ("list_files", {"folder": path}),
        ("search_files", {"text": "secret", "folder": path}),
        ("write_file", {"path": path, "content": "x"}),
    ):
        with pytest.raises((OSError, ValueError), match=r"absolute|leads out|NUL|parts"):
            call(name, **arguments)
    assert sorted(Path(root.parent).rglob("*")) == before


def test_links_are_never_followed(root: Path) -> None:
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    (root / "inner.txt").symlink_to("readme.md")
    (root / "out").symlink_to(root.parent)
    (root / "dangling").symlink_to(root.parent / "made.txt")
    for path in ("link.txt", "inner.txt", "out/secret.txt", "dangling"):
        assert "is a link, and links are not followed" in outcome("read_file", path=path)
        assert "is a link, and links are not followed" in outcome("write_file", path=path, content="x")
    assert "is a link" in outcome("list_files", folder="out")
    assert "is a link" in outcome("search_files", text="secret", folder="out")
    assert SECRET not in outcome("search_files", text="secret")
    assert (root.parent / "secret.txt").read_text() == SECRET
    assert not (root.parent / "made.txt").exists()
    assert "link.txt  (link, cannot be opened)" in call("list_files")


@pytest.mark.parametrize("name", ["read_file", "write_file"])
def test_a_link_that_is_put_in_place_between_the_look_and_the_use_is_not_followed(
    root: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder on the way becomes a link the moment before it is opened."""
    (root.parent / "outside").mkdir()
    (root.parent / "outside" / "today.txt").write_text(SECRET)
    real = os.open

    def swap_first(path: Any, flags: int, *rest: Any, **names: Any) -> int:
        if path == "notes" and not (root / "notes").is_symlink():
            (root / "notes").rename(root / "away")
            (root / "notes").symlink_to(root.parent / "outside")
        return real(path, flags, *rest, **names)

    monkeypatch.setattr(os, "open", swap_first)
    arguments = {"path": "notes/today.txt", **({"content": "x"} if name == "write_file" else {})}
    assert "is a link" in outcome(name, **arguments)
    assert (root.parent / "outside" / "today.txt").read_text() == SECRET


def test_a_folder_that_is_moved_away_after_it_was_opened_is_still_the_one_that_is_written(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root.parent / "outside").mkdir()
    real = os.replace

    def swap_first(*names: Any, **handles: Any) -> None:
        (root / "notes").rename(root / "away")
        (root / "notes").symlink_to(root.parent / "outside")
        real(*names, **handles)

    monkeypatch.setattr(os, "replace", swap_first)
    call("write_file", path="notes/today.txt", content="x")
    assert os.listdir(root.parent / "outside") == []
    assert (root / "away" / "today.txt").read_text() == "x"


@pytest.mark.slow
def test_a_racing_link_never_lets_the_secret_out(root: Path) -> None:
    """Another thread swaps a file and a link all the time: what is read is the file, or an error."""
    (root / "plain.txt").write_text("harmless")
    stop = threading.Event()

    def swap() -> None:
        target, spare = root / "target.txt", root / "spare.txt"
        while not stop.is_set():
            os.link(root / "plain.txt", spare)
            os.replace(spare, target)
            os.symlink(root.parent / "secret.txt", spare)
            os.replace(spare, target)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for round_ in range(2_000):
            assert SECRET not in outcome("read_file", path="target.txt")
            if round_ % 50 == 0:
                outcome("write_file", path="target.txt", content="mine")
    finally:
        stop.set()
        thread.join()
    assert (root.parent / "secret.txt").read_text() == SECRET


def test_pipes_devices_and_sockets_are_refused_at_once(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert "device, pipe or socket" in outcome("read_file", path="pipe")
    assert "device, pipe or socket" in outcome("write_file", path="pipe", content="x")
    assert "no line contains" in outcome("search_files", text="zebra")
    assert "pipe  (special, cannot be opened)" in call("list_files")


def test_no_handle_is_left_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        for name, arguments in (
            ("read_file", {"path": "notes/today.txt"}),
            ("read_file", {"path": "notes/none"}),
            ("read_file", {"path": "notes"}),
            ("list_files", {"folder": "readme.md"}),
            ("search_files", {"text": "boiler"}),
            ("write_file", {"path": "a/b", "content": "x"}),
        ):
            outcome(name, **arguments)
    assert len(os.listdir("/proc/self/fd")) == before
