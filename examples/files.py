"""Work on the files of one folder, and of no other.

    FILES_ROOT=notes tenlines run "Which note mentions the boiler?" --tools examples/files.py

The folder is `FILES_ROOT`, or else the current one. Nothing outside it can be reached: not by `..`, not by an
absolute path, not by a link, and not by a link that is put in place while a call runs, because every folder on the
way is opened from the one before it and links are never followed. Devices and pipes are refused. (A hard link to a
file outside is a file of this folder; whoever can make one can read the file anyway.) POSIX only.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from typing import NamedTuple

from tenlines import tool

MAX_BYTES = 1_000_000
"""Of a file that is read, searched or written."""
MAX_LISTED = 500
MAX_FOUND = 100
MAX_SEARCHED = 5_000
"""Files that one search opens."""
MAX_DEPTH = 20

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# without O_NONBLOCK, opening a named pipe would wait for a writer for ever
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@tool(read_only=True)
def list_files(folder: str = ".") -> str:
    """List the files and folders in a folder, with their sizes in bytes.

    Args:
        folder: Path of the folder, relative to the top.
    """
    with _open_folder(_parts(folder), folder) as handle:
        entries = sorted(_entries(handle), key=lambda one: one.name)
    lines = [one.line() for one in entries[:MAX_LISTED]]
    if len(entries) > MAX_LISTED:
        lines.append(f"... {len(entries) - MAX_LISTED:,} of {len(entries):,} entries are not listed")
    return "\n".join(lines) or f"{folder} is empty"


@tool(read_only=True)
def read_file(path: str, first_line: int = 1, max_lines: int = 400) -> str:
    """Read a text file, or some of its lines.

    Args:
        path: Path of the file, relative to the top.
        first_line: Number of the line to begin with, from 1.
        max_lines: How many lines to read.
    """
    if first_line < 1 or max_lines < 1:
        raise ValueError("first_line and max_lines count from 1")
    parts = _file_parts(path)
    with _open_folder(parts[:-1], path) as handle:
        data = _read(handle, parts[-1], path)
    lines = _text(data, path).splitlines(keepends=True)
    if lines and first_line > len(lines):
        raise ValueError(f"{path} has {len(lines):,} lines; there is no line {first_line:,}")
    shown = lines[first_line - 1 : first_line - 1 + max_lines]
    if len(shown) == len(lines):
        return "".join(shown)
    last = first_line + len(shown) - 1
    return f"(lines {first_line:,} to {last:,} of {len(lines):,})\n{''.join(shown)}"


@tool(read_only=True)
def search_files(text: str, folder: str = ".", names: str = "*") -> str:
    """Find the lines that contain a text, in all text files of a folder and the folders in it.

    Args:
        text: What to look for. Upper and lower case are the same; it is no pattern.
        folder: Where to look, relative to the top.
        names: Only files with such names, for example *.md
    """
    if not text.strip():
        raise ValueError("give a text to look for")
    found: list[str] = []
    searched = 0
    parts = _parts(folder)
    with _open_folder(parts, folder) as handle:
        for where, data in _texts(handle, "/".join(parts), names, 0):
            searched += 1
            found.extend(_matches(where, data, text.lower()))
            if len(found) > MAX_FOUND or searched >= MAX_SEARCHED:
                break
    if not found:
        return f"no line contains {text!r} ({searched:,} text files were searched)"
    more = [f"... more than {MAX_FOUND} lines: look for something rarer"] if len(found) > MAX_FOUND else []
    return "\n".join(found[:MAX_FOUND] + more)


@tool(idempotent=True)
def write_file(path: str, content: str) -> str:
    """Write a text file: make it, or replace all of it. Folders on the way are made.

    Args:
        path: Path of the file, relative to the top.
        content: All of the new text.
    """
    data = content.encode()
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path}: {len(data):,} bytes are too many; a file may have {MAX_BYTES:,}")
    parts = _file_parts(path)
    with _open_folder(parts[:-1], path, make=True) as handle:
        mode = _mode_of_old(handle, parts[-1], path)
        _replace(handle, parts[-1], data, mode)
    return f"{path} is written: {len(data):,} bytes"


# --- getting there ------------------------------------------------------------------------------------


def _parts(path: str) -> list[str]:
    """The names on the way; nothing in them can lead out."""
    if "\0" in path:
        raise ValueError("a path cannot contain NUL")
    if path.startswith(("/", "~")):
        raise PermissionError(f"{path} is an absolute path; give one relative to the top, such as notes/today.txt")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise PermissionError(f"{path} leads out of the folder; `..` is not allowed")
    if len(parts) > MAX_DEPTH:
        raise ValueError(f"the path has {len(parts)} parts; {MAX_DEPTH} are allowed")
    return parts


def _file_parts(path: str) -> list[str]:
    parts = _parts(path)
    if not parts or path.endswith("/"):
        raise IsADirectoryError(f"{path!r} is a folder; give the path of a file")
    return parts


@contextmanager
def _open_folder(parts: list[str], path: str, *, make: bool = False) -> Iterator[int]:
    """A handle on a folder, reached from the top one name at a time."""
    handle = os.open(os.environ.get("FILES_ROOT") or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            inner = _step(handle, part, path, make)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _step(handle: int, part: str, path: str, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=handle)
    try:
        return os.open(part, _FOLDER, dir_fd=handle)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no folder {part!r}; list_files shows what there is") from None
    except OSError as error:
        raise _refusal(handle, part, path, error) from None


def _refusal(handle: int, name: str, path: str, error: OSError) -> OSError:
    """Say in words what stands in the way."""
    kind = _kind(handle, name)
    if kind == "link":
        return PermissionError(f"{path}: {name!r} is a link, and links are not followed")
    if kind == "file":
        return NotADirectoryError(f"{path}: {name!r} is a file, not a folder")
    if kind == "folder" and not isinstance(error, PermissionError):
        return IsADirectoryError(f"{path} is a folder; list_files shows what is in it")
    if kind == "special":
        return PermissionError(f"{path} is a device, pipe or socket, not a file")
    return OSError(f"{path}: {error.strerror or 'cannot be opened'}")


def _kind(handle: int, name: str) -> str:
    try:
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
    except OSError:
        return ""
    return _kind_of(mode)


def _kind_of(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special"


# --- reading ------------------------------------------------------------------------------------------


class _Entry(NamedTuple):
    name: str
    kind: str
    size: int

    def line(self) -> str:
        """As `list_files` shows it."""
        name = self.name.encode("utf-8", "replace").decode()
        if self.kind == "file":
            return f"{name}  {self.size:,} bytes"
        return f"{name}/" if self.kind == "folder" else f"{name}  ({self.kind}, cannot be opened)"


def _entries(handle: int) -> Iterator[_Entry]:
    with os.scandir(handle) as entries:
        for one in entries:
            with suppress(FileNotFoundError):  # it went away in between
                info = one.stat(follow_symlinks=False)
                yield _Entry(one.name, _kind_of(info.st_mode), info.st_size)


def _read(handle: int, name: str, path: str) -> bytes:
    """The bytes of a plain file. What was opened is looked at, not what the name meant before."""
    try:
        file = os.open(name, _READ, dir_fd=handle)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist; list_files shows what there is") from None
    except OSError as error:
        raise _refusal(handle, name, path, error) from None
    try:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise _refusal(handle, name, path, OSError())
        with open(file, "rb", closefd=False) as opened:
            data = opened.read(MAX_BYTES + 1)
    finally:
        os.close(file)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} has {info.st_size:,} bytes; files up to {MAX_BYTES:,} can be read")
    return data


def _text(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"{path} is a binary file of {len(data):,} bytes, not a text")
    return text


def _texts(handle: int, where: str, names: str, depth: int) -> Iterator[tuple[str, str]]:
    """All text files below a folder. What cannot be read is passed over."""
    for entry in sorted(_entries(handle)):
        path = f"{where}/{entry.name}" if where else entry.name
        with suppress(OSError, ValueError):
            if entry.kind == "file" and fnmatch(entry.name, names):
                yield path, _text(_read(handle, entry.name, path), path)
            elif entry.kind == "folder" and depth < MAX_DEPTH:
                inner = os.open(entry.name, _FOLDER, dir_fd=handle)
                try:
                    yield from _texts(inner, path, names, depth + 1)
                finally:
                    os.close(inner)


def _matches(where: str, data: str, text: str) -> Iterator[str]:
    for number, line in enumerate(data.splitlines(), 1):
        if text in line.lower():
            yield f"{where}:{number}: {line.strip()[:200]}"


# --- writing ------------------------------------------------------------------------------------------


def _mode_of_old(handle: int, name: str, path: str) -> int:
    try:
        info = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    if not stat.S_ISREG(info.st_mode):
        raise _refusal(handle, name, path, OSError())
    return stat.S_IMODE(info.st_mode)


def _replace(handle: int, name: str, data: bytes, mode: int) -> None:
    """Write beside it and rename: a reader, and a crash, sees the old file or the new one."""
    temporary = f".tenlines-{secrets.token_hex(8)}"
    file = os.open(temporary, _WRITE, mode, dir_fd=handle)
    try:
        with os.fdopen(file, "wb") as opened:
            os.fchmod(file, mode)
            opened.write(data)
            opened.flush()
            os.fsync(file)
        os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=handle)
        raise
    os.fsync(handle)
