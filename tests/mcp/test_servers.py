"""Which servers are meant, and how they are found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tenlines.errors import ConfigError
from tenlines.tools.mcp.servers import Server, from_source, name_of, read, read_file, source_of, unique


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("uvx mcp-server-time --local-timezone UTC", "time"),
        ("npx -y @modelcontextprotocol/server-everything@2.1 stdio", "everything"),
        ("python3.11 -m mcp_server_git", "mcp_server_git"),
        ("python servers/notes.py", "notes"),
        ("/usr/bin/orders-mcp", "orders"),
        ("docker run -i ghcr.io/x/github-mcp-server", "github"),
        ("mcp-server-fetch", "fetch"),
    ],
)
def test_a_command_has_a_short_name(command: str, name: str) -> None:
    assert name_of(command.split()) == name


def test_a_command_is_read_as_a_shell_would() -> None:
    [server] = read("uvx 'a server' --x", env={"A": "b"}, cwd="/tmp")
    assert server.command == ("uvx", "a server", "--x")
    assert (server.env, server.cwd, server.trust) == ({"A": "b"}, "/tmp", False)


def test_an_address_is_read() -> None:
    [server] = read("https://tools.example.com/mcp", headers={"Authorization": "Bearer x"}, trust=True)
    assert (server.name, server.url) == ("tools_example_com", "https://tools.example.com/mcp")
    assert server.trust


def test_equal_names_are_told_apart() -> None:
    assert [one.name for one in unique([*read("a"), *read("a"), *read("a_2")])] == ["a", "a_2", "a_2_2"]


def write(folder: Path, servers: Any, key: str = "mcpServers") -> Path:
    file = folder / "servers.json"
    file.write_text(json.dumps({key: servers}))
    return file


def test_a_file_of_servers_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "secret")
    entries = {
        "my notes": {
            "command": "uvx",
            "args": ["notes", 3],
            "env": {"API_KEY": "${KEY}", "B": "${NOT_SET:-c}"},
            "cwd": "x",
        },
        "far": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${env:KEY}"}},
        "off": {"command": "x", "disabled": True},
    }
    for key in ("mcpServers", "servers"):
        notes, far = read_file(write(tmp_path, entries, key))
        assert (notes.name, notes.command, notes.cwd) == ("my_notes", ("uvx", "notes", "3"), str(tmp_path / "x"))
        assert notes.env == {"API_KEY": "secret", "B": "c"}
        assert far.headers == {"Authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({}, "neither `command` nor `url`"),
        ({"command": ["a"]}, "where a text is expected"),
        ({"command": "a", "args": "b"}, "expected a list"),
        ({"command": "a", "env": ["b"]}, "an object of texts"),
        ({"command": "a", "args": ["${NOT_SET_ANYWHERE}"]}, "NOT_SET_ANYWHERE"),
        ({"command": "a", "args": ["${input:token}"]}, "token"),
        ({"url": "ftp://x"}, "no address"),
        ({"url": "http://x", "type": "sse"}, "streamable HTTP"),
        (3, "the int 3"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, entry: Any, words: str) -> None:
    with pytest.raises(ConfigError, match="server 'it'") as error:
        read_file(write(tmp_path, {"it": entry}))
    assert words in str(error.value)


@pytest.mark.parametrize(("text", "words"), [("{", "is not JSON"), ("[]", "has no servers"), ("[" * 99_999, "is not")])
def test_a_wrong_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ConfigError, match=words):
        read(str(tmp_path / "x.json"))
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "gone.json")


@pytest.mark.parametrize("thing", ["", "   ", "a 'b", [], [3]])
def test_what_is_no_server_is_refused(thing: Any) -> None:
    with pytest.raises(ConfigError, match=r"server|MCP"):
        read(thing)


# --- found again ----------------------------------------------------------------------------------------


def test_a_command_is_found_again_by_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    [server] = read("uvx notes", env={"API_KEY": "top secret"}, trust=True)
    source = source_of(server)
    assert "top secret" not in source
    with pytest.raises(ConfigError, match="API_KEY"):
        from_source(source)
    monkeypatch.setenv("API_KEY", "top secret")
    assert from_source(source) == server


def test_an_address_is_found_again_without_its_secrets() -> None:
    [server] = read("https://me:word@x.com:8/mcp?a=b")
    assert from_source(source_of(server)).url == "https://x.com:8/mcp?a=b"
    assert "word" not in server.title
    [server] = read("https://x.com/mcp", headers={"Authorization": "Bearer top"})
    assert "Bearer" not in source_of(server)
    with pytest.raises(ConfigError, match="Authorization"):
        from_source(source_of(server))


def test_a_server_of_a_file_is_read_from_it_again(tmp_path: Path) -> None:
    file = write(tmp_path, {"my notes": {"command": "uvx", "env": {"A": "secret"}}})
    server = unique([*read("my_notes"), *read_file(file, trust=True)])[1]
    assert server.name == "my_notes_2"
    assert "secret" not in source_of(server)
    assert from_source(source_of(server)) == server
    write(tmp_path, {})
    with pytest.raises(ConfigError, match="has no MCP server 'my notes' any more"):
        from_source(source_of(server))


def test_a_source_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="in a way that is not known"):
        from_source("mcp:{}")


def test_a_title_says_how_it_is_reached() -> None:
    assert Server("a", ("x", "y z")).title == "MCP server 'a' (x 'y z')"
