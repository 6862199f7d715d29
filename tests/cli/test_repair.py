"""`tenlines repair`: what it changes, what it shows, and that no file is ever half written."""

from __future__ import annotations

import fcntl
import io
import json
import os
import re
import resource
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import spoiled

from tenlines.cli.diffs import AHEAD, HUNK, LINE, body_hunks, line_hunks
from tenlines.cli.outputs import Style, encoded, style_of
from tenlines.wire.checking import check
from tenlines.wire.repairing import Repaired

Tenlines = Callable[..., Any]


def write(name: str, value: Any, **style: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value, **style).encode()
    Path(name).write_bytes(data)
    return name


# --- what is repaired -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", spoiled.BODIES)
def test_a_missing_result_is_filled_in_and_the_check_passes(name: str, tenlines: Tenlines) -> None:
    file = write("t.json", spoiled.BODIES[name])
    done = tenlines("repair", file, "-o", "out.json")
    assert (done.code, done.out) == (0, "")
    assert "PAIR-MISSING" in done.err
    assert "no result was recorded" in done.err
    assert "written to out.json" in done.err
    assert json.loads(Path(file).read_text()) == spoiled.BODIES[name]
    assert tenlines("check", "out.json", "--from", name, "--quiet").code == 0
    again = tenlines("repair", "out.json", "--from", name)
    assert "nothing to mend; nothing was written" in again.err


@pytest.mark.parametrize("name", spoiled.DUMPS)
def test_what_a_framework_wrote_is_to_be_converted(name: str, tenlines: Tenlines) -> None:
    done = tenlines("repair", write("t.json", spoiled.DUMPS[name]), "-o", "out.json")
    assert done.code == 2
    assert "tenlines convert t.json --to FORMAT" in done.err
    assert not Path("out.json").exists()


def test_a_form_that_the_target_does_not_take_is_to_be_converted(tenlines: Tenlines) -> None:
    done = tenlines("repair", write("t.json", spoiled.CHAT), "--for", "anthropic:claude-opus-5", "-o", "-")
    assert (done.code, done.out) == (2, "")
    assert "tenlines convert t.json --to anthropic:claude-opus-5" in done.err


def test_for_a_stricter_target_more_is_repaired(tenlines: Tenlines) -> None:
    done = tenlines("repair", write("t.json", spoiled.CHAT), "--for", "mistral", "-o", "out.json")
    assert "ID-CHARSET" in done.err
    assert tenlines("check", "out.json", "--for", "mistral").code == 0


def test_warnings_are_cured_on_demand(tenlines: Tenlines) -> None:
    file = write("t.json", [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}])
    assert "nothing to mend" in tenlines("repair", file, "--for", "compatible").err
    assert "nothing to mend" in tenlines("repair", file, "--for", "compatible").err
    done = tenlines("repair", file, "--for", "compatible", "--warnings", "-o", "-")
    assert len(json.loads(done.out)) < 3
    assert "ROLE-ORDER" in done.err
    several = write("t.jsonl", spoiled.lines(json.loads(Path(file).read_text())))
    assert "nothing to mend" in tenlines("repair", several, "--for", "compatible").err
    assert "ROLE-ORDER" in tenlines("repair", several, "--for", "compatible", "--warnings").err


def test_what_no_repair_can_cure_is_said(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    def helpless(body: Any, format: Any, profile: Any, **_: Any) -> Repaired:
        return Repaired(body, (), tuple(check(body, format, profile)))

    monkeypatch.setattr("tenlines.cli.mending.repair", helpless)  # every fault that we know can be cured
    done = tenlines("repair", write("t.json", spoiled.CHAT))
    assert done.code == 1
    assert "1 error left; `tenlines check` names" in done.err


def test_system_text_that_has_to_stand_beside_bare_messages_is_not_lost(tenlines: Tenlines) -> None:
    messages = [{"role": "system", "content": "be brief"}, *spoiled.ANTHROPIC["messages"]]
    done = tenlines("repair", write("t.json", messages), "--from", "anthropic", "-o", "-")
    body = json.loads(done.out)
    assert "be brief" in json.dumps(body["system"])
    assert "@ beside the messages" in done.err


# --- what stays as it is ----------------------------------------------------------------------------------

STYLES: list[dict[str, Any]] = [
    {"indent": 4},
    {"indent": "\t", "ensure_ascii": False},
    {"separators": (",", ":"), "ensure_ascii": False},
    {"indent": None},
]


@pytest.mark.parametrize("style", STYLES)
def test_a_document_keeps_the_way_it_is_written(style: dict[str, Any], tenlines: Tenlines) -> None:
    body = {**spoiled.CHAT, "messages": [{"role": "user", "content": "é\U0001f600"}, *spoiled.CHAT["messages"][1:]]}
    file = write("t.json", body, **style)
    assert tenlines("repair", file, "-o", "out.json").code == 0
    new = Path("out.json").read_text()
    assert new == json.dumps(json.loads(new), **style) + "\n"


@pytest.mark.parametrize("style", [{}, {"separators": (",", ":")}])
def test_lines_that_are_not_at_fault_stay_to_the_byte(style: dict[str, Any], tenlines: Tenlines) -> None:
    strange = b'{"role" :  "user", "content": "\\u00e9 \\/", "n": 1.50e2, "n": 1.5}'
    data = spoiled.lines(spoiled.CHAT["messages"], **style) + strange + b"\r\n"
    done = tenlines("repair", write("t.jsonl", data), "-o", "out.jsonl")
    assert done.code == 0
    old, new = data.replace(b"\r", b"").splitlines(), Path("out.jsonl").read_bytes().splitlines()
    assert [line for line in new if line not in old] == [new[2]]
    assert [line for line in old if line not in new] == []
    assert (b'"tool_call_id":"call_1"' in new[2]) == bool(style)


def test_the_last_line_that_is_cut_is_named_and_the_rest_is_written(tenlines: Tenlines) -> None:
    done = tenlines("repair", write("t.jsonl", spoiled.CUT), "-o", "out.jsonl")
    assert done.code == 0
    assert "line 2: the last record is cut off" in done.err
    assert "not in it" in done.err
    assert Path("out.jsonl").read_bytes() == spoiled.CUT.splitlines(keepends=True)[0]


def test_several_transcripts_come_out_one_a_line(tenlines: Tenlines) -> None:
    file = write("t.jsonl", spoiled.lines([{"request": spoiled.CHAT}, spoiled.CHAT, spoiled.ANTHROPIC]))
    done = tenlines("repair", file, "-o", "-")
    bodies = [json.loads(line) for line in done.out.splitlines()]
    assert [len(body["messages"]) for body in bodies] == [4, 4, 3]
    assert "stands in request; it is written without what is around it" in done.err
    refused = tenlines("repair", file, "--in-place")
    assert refused.code == 2
    assert "would be lost" in refused.err


def test_the_log_of_a_coding_agent_is_not_replaced_by_its_messages(tenlines: Tenlines) -> None:
    log = spoiled.lines([{"type": "entry", "message": one} for one in spoiled.ANTHROPIC["messages"]])
    file = write("log.jsonl", log)
    assert [json.loads(line)["line"] for line in tenlines("check", file, "--json").out.splitlines()] == [2]
    refused = tenlines("repair", file, "--in-place")
    assert refused.code == 2
    assert Path(file).read_bytes() == log
    done = tenlines("repair", file, "-o", "out.json")
    assert "without what is around it" in done.err
    assert tenlines("check", "out.json", "--from", "anthropic").code == 0


def test_standard_input_to_standard_output(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(spoiled.GEMINI).encode())))
    done = tenlines("repair", "-", "-o", "-", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert len(json.loads(done.out)["contents"]) == 3
    assert "functionResponse" in done.out


# --- files ------------------------------------------------------------------------------------------------


def test_nothing_is_written_and_nothing_overwritten_unless_it_is_asked_for(tenlines: Tenlines, home: Path) -> None:
    file = write("t.json", spoiled.CHAT)
    before = sorted(os.listdir())
    assert "nothing was written" in tenlines("repair", file).err
    for out in (file, "."):
        done = tenlines("repair", file, "-o", out)
        assert done.code == 2
        assert "not overwritten" in done.err or "directory" in done.err
    assert sorted(os.listdir()) == before
    assert json.loads(Path(file).read_text()) == spoiled.CHAT


def test_in_place_replaces_the_file_and_keeps_its_mode_and_the_links_to_it(tenlines: Tenlines) -> None:
    file = Path(write("t.json", spoiled.CHAT))
    file.chmod(0o640)
    Path("link.json").symlink_to("t.json")
    before = file.stat().st_ino
    done = tenlines("repair", "link.json", "--in-place")
    assert done.code == 0
    assert Path("link.json").is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.stat().st_ino != before
    assert len(json.loads(file.read_text())["messages"]) == 4
    untouched = file.stat()
    assert "t.json stays as it was" in tenlines("repair", "t.json", "--in-place").err
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (untouched.st_ino, untouched.st_mtime_ns)
    assert not list(Path().glob(".*.part"))


def test_a_new_file_has_the_mode_that_new_files_have(tenlines: Tenlines) -> None:
    before = os.umask(0o027)
    try:
        tenlines("repair", write("t.json", spoiled.CHAT), "-o", "out.json")
    finally:
        os.umask(before)
    assert Path("out.json").stat().st_mode & 0o777 == 0o640


def test_in_place_refuses_when_something_would_be_lost_and_not_for_zeros(tenlines: Tenlines) -> None:
    file = write("cut.jsonl", spoiled.CUT)
    done = tenlines("repair", file, "--in-place")
    assert done.code == 2
    assert "use -o" in done.err
    assert Path(file).read_bytes() == spoiled.CUT
    zeros = write("zeros.jsonl", spoiled.ZEROS)
    assert tenlines("repair", zeros, "--in-place").code == 0
    assert Path(zeros).read_bytes() == spoiled.ZEROS.replace(b"\0", b"")


@pytest.mark.parametrize("words", [("t.json", "--in-place", "-o", "x"), ("-", "--in-place")])
def test_in_place_goes_with_a_file_alone(words: tuple[str, ...], tenlines: Tenlines) -> None:
    assert tenlines("repair", *words).code == 2


def test_where_nothing_can_be_written_is_said(tenlines: Tenlines) -> None:
    done = tenlines("repair", write("t.json", spoiled.CHAT), "-o", "nowhere/out.json")
    assert done.code == 2
    assert "nowhere/out.json cannot be written: No such file" in done.err


def test_a_device_is_written_to(tenlines: Tenlines) -> None:
    assert tenlines("repair", write("t.json", spoiled.CHAT), "-o", "/dev/null").code == 0


def long_file() -> str:
    messages = [{"role": "user", "content": "x" * 1000}, {"role": "assistant", "content": "y" * 1000}] * 2000
    return write("long.jsonl", spoiled.lines([*messages, *spoiled.CHAT["messages"]]))


@pytest.mark.slow
@pytest.mark.parametrize("words", [("-o", "out.jsonl"), ("--in-place",)])
def test_a_full_disk_leaves_the_old_file_and_no_half_one(
    words: tuple[str, ...], process: Callable[..., Any], home: Path
) -> None:
    file = long_file()
    before = Path(file).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # inherited by the command
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
        command = process("repair", file, *words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    done = command.end()
    assert done.code == 2
    assert re.search(r"cannot be written: File too large", done.err)
    assert Path(file).read_bytes() == before
    assert not Path("out.jsonl").exists()
    assert not list(home.glob(".*.part"))


def _unread(pipe: int) -> int:
    """How many bytes wait in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


@pytest.mark.slow
def test_ctrl_c_leaves_no_half_file(process: Callable[..., Any], home: Path) -> None:
    read, write_end = os.pipe()
    command = process("repair", f"/dev/fd/{read}", "-o", "out.jsonl", pass_fds=(read,))
    os.close(read)
    os.write(write_end, spoiled.lines([{"role": "user", "content": "x" * 10_000}] * 5))  # and more is to come
    while _unread(write_end):  # until it waits for more
        assert command.popen.poll() is None
        time.sleep(0.01)
    time.sleep(0.1)
    assert list(home.glob(".*.part"))
    command.interrupt()
    done = command.end()
    os.close(write_end)
    assert done.code == 130
    assert not Path("out.jsonl").exists()
    assert not list(home.glob(".*.part"))


@pytest.mark.slow
def test_a_pipe_that_is_closed_is_no_error(process: Callable[..., Any], home: Path) -> None:
    command = process("repair", long_file(), "-o", "-", "--quiet")
    assert command.popen.stdout.read(10)
    command.popen.stdout.close()
    error = command.popen.stderr.read().decode()
    command.popen.wait(20)
    assert error == ""


# --- what is shown ------------------------------------------------------------------------------------------


def test_changes_as_json_go_to_standard_error(tenlines: Tenlines) -> None:
    done = tenlines("repair", write("t.jsonl", spoiled.lines(spoiled.CHAT["messages"])), "--json", "-o", "-")
    rows = [json.loads(line) for line in done.err.splitlines()]
    assert [(row["file"], row["line"], row["path"], row["kind"]) for row in rows] == [
        ("t.jsonl", 2, "tool_calls[0]", "PAIR-MISSING")
    ]
    done = tenlines("repair", write("cut.jsonl", spoiled.CUT), "--json")
    assert [json.loads(line)["kind"] for line in done.err.splitlines()] == ["DAMAGE"]


def test_quiet_says_nothing_but_damage(tenlines: Tenlines) -> None:
    assert tenlines("repair", write("t.json", spoiled.CHAT), "-q").err == ""
    assert "cut off" in tenlines("repair", write("cut.jsonl", spoiled.CUT), "-q").err


def test_what_is_shown_is_harmless_on_a_terminal(tenlines: Tenlines) -> None:
    evil = "\x1b[2J\u202e[bold]"
    call = {**spoiled.CALL, "function": {"name": evil, "arguments": evil}}
    messages = [{"role": "user", "content": evil}, {"role": "assistant", "content": evil, "tool_calls": [call]}]
    done = tenlines("repair", write("t.json", messages))
    assert "[bold]" in done.err
    assert not {"\x1b", "\u202e"} & set(done.err)


def test_a_diff_of_lines_shows_only_what_changed(tenlines: Tenlines) -> None:
    messages = [{"role": "user", "content": "zero"}, *spoiled.CHAT["messages"], {"role": "user", "content": "three"}]
    done = tenlines("repair", write("t.jsonl", spoiled.lines(messages)))
    shown = [line.strip() for line in done.err.splitlines()]
    assert [line for line in shown if line.startswith("@")] == ["@ line 4"]
    assert not [line for line in shown if line.startswith("-")]
    assert [line for line in shown if line.startswith("+")][1:3] == [
        '+  "role": "tool",',
        '+  "tool_call_id": "call_1",',
    ]


def chat(*texts: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} for text in texts]}


def test_a_diff_finds_its_place_again() -> None:
    old = [str(n) for n in range(100)]
    new = [*old[:10], "new", *old[10:50], *old[53:70], "other", *old[71:]]
    found = list(body_hunks(chat(*old), chat(*new), "messages"))
    assert [hunk.where for hunk in found] == ["messages[10]", "messages[50]", "messages[70]"]
    signs = [[line[0] for line in hunk.lines if '"content"' in line] for hunk in found]
    assert signs == [["+"], ["-", "-", "-"], ["-", "+"]]


def test_a_diff_of_messages_that_all_differ_goes_pair_by_pair() -> None:
    old, new = [str(n) for n in range(3 * AHEAD)], [f"x{n}" for n in range(3 * AHEAD)]
    found = list(body_hunks(chat(*old), chat(*new), "messages"))
    assert [hunk.where for hunk in found[:3]] == ["messages[0]", "messages[1]", "messages[2]"]
    assert all(line in found[1].lines for line in ('-  "content": "1"', '+  "content": "x1"'))


def test_a_diff_of_a_long_text_shows_where_it_differs() -> None:
    begin = "a" * 5000
    (hunk,) = body_hunks(chat(begin + "old"), chat(begin + "new"), "messages")
    removed, added = (next(line for line in hunk.lines if line[0] == sign) for sign in "-+")
    assert removed.endswith('old"')
    assert added.endswith('new"')
    assert max(map(len, hunk.lines)) <= LINE


def test_a_diff_is_bounded() -> None:
    (hunk,) = body_hunks(chat("x"), {"messages": [{"role": "user", "content": ["y"] * 500}]}, "messages")
    assert len(hunk.lines) == HUNK + 1
    assert hunk.lines[-1].endswith("more lines")


def test_a_diff_of_lines_names_them() -> None:
    assert [hunk.where for hunk in line_hunks(["a", "b"], ["a"], [7, 9])] == ["line 9"]
    assert [hunk.where for hunk in line_hunks(["a"], ["a", "b"], [7])] == ["line 7"]
    assert [hunk.where for hunk in line_hunks([], ["b"], [])] == [""]


# --- the style of JSON --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "style"),
    [
        (b'{"a":1}', Style(None, True, False)),
        (b'{"a": "\\u00e9"}', Style(None, False, True)),
        ('{"a": "é\\u00e9"}'.encode(), Style(None, False, False)),
        (b'{\n  "a": 1}', Style("  ", False, False)),
        (b'\n[\r\n\t{"a": 1}]', Style("\t", False, False)),
        (b'{"a": 1}\n{"a": 1}', Style(None, False, False)),
        (b"{}", Style(None, False, False)),
    ],
)
def test_the_style_of_a_file_is_seen_from_its_beginning(head: bytes, style: Style) -> None:
    assert style_of(head) == style


def test_halves_of_characters_stay_valid_json() -> None:
    data = encoded({"a": "\ud800"}, Style())
    assert data == b'{"a": "\\ud800"}\n'
    assert json.loads(data) == {"a": "\ud800"}


def test_a_terminal_gets_harmless_json(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenlines.cli.outputs import written

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with written(None, may_replace=False) as sink:
        sink.write(encoded({"a": "\u202ex\x7f"}, Style()))
    assert not {"\u202e", "\x7f"} & set(terminal.getvalue())
    assert json.loads(terminal.getvalue()) == {"a": "\u202ex\x7f"}
