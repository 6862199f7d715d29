"""Which servers there are: from a command, an address, or the JSON file that other clients use.

`source_of` says in one text what is needed to start a server again, so that a run can be resumed by its id. Values of
environment variables and headers are never in it, only their names.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from tenlines.errors import ConfigError
from tenlines.tools.careful import described

SOURCE = "mcp:"
"""`ToolSpec.source` of a tool of a server begins with this."""
_RUNNERS = {"uvx", "npx", "bunx", "pipx", "uv", "python", "python3", "node", "deno", "bun", "docker", "podman", "env"}
_WORDS = {"run", "exec", "tool", "x"}
_VARIABLE = re.compile(r"\$\{(?:(env|input):)?([^}:]+?)(?::-([^}]*))?\}")


class Server(msgspec.Struct, frozen=True):
    """One server: a command that is run, or the address of one that runs.

    Attributes:
        name: What it is called here, and what stands before names that clash.
        command: The program and its arguments; empty for an address.
        url: The address of its endpoint.
        env: Environment variables that it is given besides those that programs need (PATH, HOME, ...).
        cwd: The folder that it works in.
        headers: HTTP headers of every request.
        trust: Whether what it says of its tools (`readOnlyHint`, `idempotentHint`) is believed.
        file: The file that it was read from.
        entry: Its name in that file.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    cwd: str = ""
    headers: dict[str, str] = {}
    trust: bool = False
    file: str = ""
    entry: str = ""

    @property
    def label(self) -> str:
        """The server in a message that a model may read."""
        return f"MCP server {self.name!r}"

    @property
    def title(self) -> str:
        """The server in a message for its owner: its name and how it is reached."""
        return f"{self.label} ({shlex.join(self.command) if self.command else without_user(self.url)})"


# --- from what people name ------------------------------------------------------------------------------


def read(
    thing: str | Sequence[str] | Mapping[str, Any] | PurePath,
    *,
    trust: bool = False,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> list[Server]:
    """The servers that somebody means.

    Args:
        thing: A command as it is typed or as a list of words; an address; a file `NAME.json`; or the contents of one.
        trust: Whether their hints are believed.
        env: For a command: environment variables.
        headers: For an address: headers.
        cwd: For a command: its folder; by default the one that this process is in.

    Raises:
        ConfigError: It is none of these.
    """
    if isinstance(thing, Mapping):
        return _from_table(thing, "", trust)
    if isinstance(thing, PurePath) or (isinstance(thing, str) and thing.endswith(".json") and " " not in thing.strip()):
        return read_file(thing, trust=trust)
    if isinstance(thing, str) and thing.startswith(("http://", "https://")):
        return [Server(_host(thing), url=thing, headers=dict(headers or {}), trust=trust)]
    words = _words(thing)
    return [Server(name_of(words), words, env=dict(env or {}), cwd=str(Path(cwd or "").absolute()), trust=trust)]


def _words(thing: str | Sequence[str]) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(thing) if isinstance(thing, str) else thing)
    except ValueError as error:
        raise ConfigError(f"MCP server {thing!r}: the command cannot be read: {error}") from error
    if not words or not all(isinstance(one, str) for one in words) or not words[0].strip():
        raise ConfigError(
            f"{described(thing)} is no MCP server: give a command, an address (http://...) or a file of servers (.json)"
        )
    return words


def name_of(command: Sequence[str]) -> str:
    """A short name: `uvx mcp-server-time --local-timezone UTC` is `time`."""
    program, *rest = command
    words = [one for one in rest if not one.startswith("-") and one not in _WORDS and "=" not in one]
    is_runner = PurePath(program).name.split(".")[0].rstrip("0123456789") in _RUNNERS
    chosen = words[0] if is_runner and words else program
    stem = re.sub(r"(?<=.)(@|==).*", "", chosen.strip("/").rpartition("/")[2])
    stem = re.sub(r"\.(py|js|mjs|ts|exe|sh)$", "", stem)
    short = re.sub(r"^(mcp-server-|server-|mcp-)|(-mcp-server|-mcp|-server)$", "", stem)
    return re.sub(r"[^A-Za-z0-9_-]+", "_", short or stem) or "server"


def _host(url: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", urlsplit(url).hostname or "server")


def unique(servers: Iterable[Server]) -> list[Server]:
    """The servers, each with a name of its own. Names are what tools are told apart by."""
    used: set[str] = set()
    made = []
    for server in servers:
        name, number = server.name, 2
        while name in used:
            name, number = f"{server.name}_{number}", number + 1
        used.add(name)
        made.append(msgspec.structs.replace(server, name=name))
    return made


# --- from a file ----------------------------------------------------------------------------------------


def read_file(file: str | PurePath, *, trust: bool = False) -> list[Server]:
    """The servers of a JSON file as other clients have them: `{"mcpServers": {NAME: {...}}}`, or `"servers"`.

    Raises:
        ConfigError: It is missing, no JSON, or has something that cannot be used.
    """
    path = Path(file).expanduser().absolute()
    try:
        table = json.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"the file of MCP servers {file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the file of MCP servers {file} is not JSON: {error}") from error
    return _from_table(table, str(path), trust)


def _from_table(table: Any, file: str, trust: bool) -> list[Server]:
    where = file or "the table of MCP servers"
    named = table.get("mcpServers", table.get("servers")) if isinstance(table, Mapping) else None
    if not isinstance(named, Mapping):
        raise ConfigError(f'{where} has no servers: expected {{"mcpServers": {{"NAME": {{"command": ...}}}}}}')
    return [
        _from_entry(str(name), entry, f"{where}: server {name!r}", file, trust)
        for name, entry in named.items()
        if not (isinstance(entry, Mapping) and entry.get("disabled") is True)
    ]


def _from_entry(name: str, entry: Any, where: str, file: str, trust: bool) -> Server:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} is {described(entry)}: expected an object with `command` or `url`")
    short = re.sub(r"[^A-Za-z0-9_-]+", "_", name) or "server"
    if "command" in entry:
        command = (_text(entry["command"], where), *(_text(one, where) for one in _list(entry.get("args"), where)))
        cwd = _text(entry["cwd"], where) if entry.get("cwd") else ""
        folder = Path(file).parent / cwd if file and cwd else Path(cwd)
        return Server(
            short, command, "", _texts(entry.get("env"), where), str(folder.absolute()), {}, trust, file, name
        )
    if "url" not in entry:
        raise ConfigError(f"{where} has neither `command` nor `url`")
    if entry.get("type") == "sse":
        raise ConfigError(
            f"{where} speaks the older `sse`, which is not supported: ask for its streamable HTTP address"
        )
    url, headers = _text(entry["url"], where), _texts(entry.get("headers"), where)
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{where}: its url is no address: it begins with neither http:// nor https://")
    return Server(short, (), url, {}, "", headers, trust, file, name)


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list | None):
        raise ConfigError(f"{where}: its `args` are {described(value)}: expected a list of texts")
    return value or []


def _texts(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping | None):
        raise ConfigError(f"{where}: {described(value)} stands where an object of texts is expected")
    return {str(key): _text(one, where) for key, one in (value or {}).items()}


def _text(value: Any, where: str) -> str:
    """A text of the file; `${NAME}` and `${env:NAME}` stand for environment variables, `${NAME:-X}` for X without one.

    Raises:
        ConfigError: It is no text, or a variable is not set.
    """
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {described(value)} stands where a text is expected")

    def found(variable: re.Match[str]) -> str:
        kind, name, default = variable.groups()
        value = None if kind == "input" else os.environ.get(name, default)
        if value is None:
            raise ConfigError(f"{where} needs {variable[0]}: set the environment variable {name}")
        return value

    return _VARIABLE.sub(found, value)


# --- so that a run can be resumed -----------------------------------------------------------------------


class _Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the journal has of a server: no value of a variable or a header, no name and password of an address."""

    name: str
    file: str = ""
    entry: str = ""
    command: tuple[str, ...] = ()
    url: str = ""
    cwd: str = ""
    env: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    trust: bool = False


def source_of(server: Server) -> str:
    """What is needed to start the server again, in one text."""
    if server.file:
        source = _Source(server.name, server.file, server.entry, cwd=server.cwd, trust=server.trust)
    else:
        names = (tuple(sorted(server.env)), tuple(sorted(server.headers)))
        url = without_user(server.url)
        source = _Source(server.name, "", "", server.command, url, server.cwd, *names, server.trust)
    return SOURCE + msgspec.json.encode(source).decode()


def from_source(text: str) -> Server:
    """The server that a tool came from.

    Raises:
        ConfigError: The text is not from `source_of`, the file has no such server any more, or a value is not known.
    """
    try:
        source = msgspec.json.decode(text.removeprefix(SOURCE).encode(), type=_Source)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"the journal names an MCP server in a way that is not known: {error}") from error
    if source.file:
        return _from_its_file(source)
    if source.headers:
        raise ConfigError(
            f"MCP server {source.name!r} at {source.url} was given the headers {', '.join(source.headers)}, whose "
            "values are not recorded: name it again with --mcp and a file that has them"
        )
    if missing := [name for name in source.env if name not in os.environ]:
        raise ConfigError(
            f"MCP server {source.name!r} was given the environment variables {', '.join(missing)}, whose values are "
            "not recorded: set them, or name it again with --mcp"
        )
    env = {name: os.environ[name] for name in source.env}
    return Server(source.name, source.command, source.url, env, source.cwd, {}, source.trust)


def _from_its_file(source: _Source) -> Server:
    for server in read_file(source.file, trust=source.trust):
        if server.entry == source.entry:
            return msgspec.structs.replace(server, name=source.name, cwd=source.cwd)
    raise ConfigError(f"{source.file} has no MCP server {source.entry!r} any more: name it with --mcp")


def without_user(url: str) -> str:
    """An address without a name and a password in it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
