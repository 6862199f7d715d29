"""`tenlines check`, as a person or a pipeline runs it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import spoiled

from tenlines.wire.formats import FORMATS

Tenlines = Callable[..., Any]
OTHER_TARGETS = {
    "openai_chat": "claude",
    "anthropic": "openai",
    "gemini": "bedrock:amazon.nova-pro",
    "langchain": "vllm",
}


def write(name: str, value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    Path(name).write_bytes(data)
    return name


def found(tenlines: Tenlines, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tenlines("check", "--json", *words).out.splitlines()]


# --- what is found ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*spoiled.BODIES, *spoiled.DUMPS])
def test_a_call_without_a_result_is_found_in_every_form(name: str, tenlines: Tenlines) -> None:
    file = write("t.json", {**spoiled.BODIES, **spoiled.DUMPS}[name])
    done = tenlines("check", file)
    assert done.code == 1
    assert f"taken as {name}" in done.out
    assert "1 error" in done.out.splitlines()[-2]
    rows = [row for row in found(tenlines, file) if row["severity"] == "error"]
    assert [(row["kind"], row["line"]) for row in rows] == [("PAIR-MISSING", 1)]
    assert "[1]" in rows[0]["path"]
    assert rows[0]["fix"]
    assert rows[0]["rule"] in {rule.id for format in FORMATS.values() for rule in format.rules}


def test_a_finding_is_a_line_with_path_severity_rule_and_sentence_and_a_line_with_the_cure(tenlines: Tenlines) -> None:
    done = tenlines("check", write("t.json", spoiled.CHAT))
    first, second, *_ = done.out.splitlines()
    assert first.startswith("t.json:1: messages[1].tool_calls[0]: error OAI-C-8 The call 'call_1' of 'look' has no")
    assert first.endswith(".")
    assert second.startswith("    ")
    assert done.err == ""


def test_nothing_wrong_is_one_line_and_no_line_when_it_should_be_quiet(tenlines: Tenlines) -> None:
    file = write("t.json", {"messages": [{"role": "user", "content": "hi"}]})
    done = tenlines("check", file)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "✓ 1 transcript, nothing to complain of"
    assert tenlines("check", file, "--quiet").out == ""
    assert tenlines("check", file, "--json").out == ""


def test_standard_input_is_read(tenlines: Tenlines, monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.dumps(spoiled.ANTHROPIC).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    done = tenlines("check", "-")
    assert done.code == 1
    assert done.out.startswith("-:1: messages[1].content[0]: error ANT-13 ")


def test_several_files_and_several_transcripts_of_one_file(tenlines: Tenlines) -> None:
    log = spoiled.lines([{"request": spoiled.CHAT}, spoiled.ANTHROPIC, {"request": spoiled.CHAT}])
    rows = found(tenlines, write("a.jsonl", log), write("b.json", [spoiled.CHAT, spoiled.CHAT]))
    assert [(row["file"], row["line"], row["path"]) for row in rows] == [
        ("a.jsonl", 1, "request.messages[1].tool_calls[0]"),
        ("a.jsonl", 2, "messages[1].content[0]"),
        ("a.jsonl", 3, "request.messages[1].tool_calls[0]"),
        ("b.json", 1, "[0].messages[1].tool_calls[0]"),
        ("b.json", 1, "[1].messages[1].tool_calls[0]"),
    ]
    assert "5 errors, 0 warnings in 5 transcripts" in tenlines("check", "a.jsonl", "b.json").out


def test_messages_one_a_line_are_one_transcript_and_a_finding_names_its_line(tenlines: Tenlines) -> None:
    messages = [*spoiled.CHAT["messages"], {"role": "critic", "content": "x"}]
    rows = found(tenlines, write("t.jsonl", b"\n" + spoiled.lines(messages)))
    assert sorted((row["line"], row["path"], row["kind"]) for row in rows) == [
        (3, "tool_calls[0]", "PAIR-MISSING"),
        (5, "", "ROLE-UNKNOWN"),
    ]


def test_a_bare_list_has_paths_that_begin_with_the_index(tenlines: Tenlines) -> None:
    (row,) = found(tenlines, write("t.json", spoiled.CHAT["messages"]))
    assert row["path"] == "[1].tool_calls[0]"


@pytest.mark.parametrize("target", ["anthropic", "gemini", "mistral", "vllm"])
def test_messages_alone_may_end_with_a_reply_and_say_nothing_of_tools(target: str, tenlines: Tenlines) -> None:
    part = "parts" if target == "gemini" else "content"
    texts = [("user", "one"), ("model" if target == "gemini" else "assistant", "two")]
    messages = [{"role": role, part: [{"text": text}] if part == "parts" else text} for role, text in texts]
    assert tenlines("check", write("t.json", messages), "--for", target).code == 0
    assert tenlines("check", write("t.jsonl", spoiled.lines(messages)), "--for", target).code == 0
    request = {"contents" if target == "gemini" else "messages": messages}
    as_request = found(tenlines, write("t.json", request), "--for", target)
    assert [row["kind"] for row in as_request] == ([] if target == "vllm" else ["ROLE-LAST"])


def test_warnings_count_only_when_they_should(tenlines: Tenlines) -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]
    file = write("t.json", messages)
    rows = found(tenlines, file, "--for", "compatible")
    assert {row["severity"] for row in rows} == {"warning"}
    assert tenlines("check", file, "--for", "compatible").code == 0
    assert tenlines("check", file, "--for", "compatible", "--strict").code == 1


# --- whom it is for -----------------------------------------------------------------------------------


def test_a_target_that_takes_the_form_is_asked_by_its_own_rules(tenlines: Tenlines) -> None:
    file = write("t.json", spoiled.CHAT)
    assert {row["rule"] for row in found(tenlines, file, "--for", "mistral")} == {"MIS-4", "MIS-5"}
    assert {row["rule"] for row in found(tenlines, file, "--for", "vllm")} == {"CMP-2"}


def test_the_name_of_a_model_is_no_part_of_the_form(tenlines: Tenlines) -> None:
    rows = found(tenlines, write("t.json", spoiled.MISTRAL), "--for", "openrouter")
    assert "CMP-2" in {row["rule"] for row in rows}
    assert "FILE" not in {row["rule"] for row in rows}


@pytest.mark.parametrize("name", OTHER_TARGETS)
def test_another_form_than_the_target_takes_is_one_finding_with_the_command_that_converts(
    name: str, tenlines: Tenlines
) -> None:
    file, target = write("my file.json", {**spoiled.BODIES, **spoiled.DUMPS}[name]), OTHER_TARGETS[name]
    (row,) = found(tenlines, file, "--for", target)
    assert (row["rule"], row["kind"], row["severity"]) == ("FILE", "FORM", "error")
    command = f"tenlines convert 'my file.json' --to {target}"
    assert row["fix"] == f"Convert it: {command}"
    done = tenlines("check", file, "--for", target)
    assert done.code == 1
    assert command in done.out
    assert "tenlines rules ID" not in done.out
    assert tenlines("convert", file, "--to", target, "-o", "out.json").code == 0
    assert tenlines("check", "out.json", "--for", target, "--quiet").code == 0


def test_from_says_what_a_file_is(tenlines: Tenlines) -> None:
    file = write("t.json", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]})
    assert "taken as anthropic, as you said" in tenlines("check", file, "--from", "claude").out
    strange = write("s.json", {"messages": [{"speaker": "me", "words": "x"}]})
    assert tenlines("check", strange).code == 2
    assert {row["kind"] for row in found(tenlines, strange, "--from", "openai_chat")} >= {"ROLE-UNKNOWN"}
    alone = write("s.jsonl", spoiled.lines([{"speaker": "me"}, {"speaker": "you"}]))
    assert [row["line"] for row in found(tenlines, alone, "--from", "openai") if row["kind"] == "ROLE-UNKNOWN"] == [
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--for", "antropic"), "Did you mean anthropic?"),
        (("--from", "klaude"), "--from klaude: there is no such format"),
        (("--json", "--sarif"), "give one of them"),
    ],
)
def test_options_that_are_not_right(words: tuple[str, ...], says: str, tenlines: Tenlines) -> None:
    done = tenlines("check", write("t.json", spoiled.CHAT), *words)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


# --- files that are no transcripts, and damage in those that are ----------------------------------------


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xff\xfe{\0}\0", "UTF-16"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "neither JSON nor JSON Lines"),
        (b"\x7fELF" + b"\0" * 500 + b"\n{" + bytes(range(256)) * 20, "neither JSON nor JSON Lines"),
        (b"To be, or not to be\nthat is the question\n", "neither JSON nor JSON Lines: it begins with 'To be, or not"),
        (b'{"a": 1}', "there is no transcript in it"),
        (b'{"a": 1}\n{"b": 2}\n', "there is no transcript in it"),
        (b'{"messages": []}', "there is no transcript in it"),
    ],
)
def test_a_file_that_holds_no_transcript_is_an_error(data: bytes, says: str, tenlines: Tenlines) -> None:
    done = tenlines("check", write("t.json", data))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("tenlines: t.json")
    assert says in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(("name", "says"), [("missing.json", "No such file"), (".", "directory"), ("a\0b", "null")])
def test_what_cannot_be_opened_is_an_error(name: str, says: str, tenlines: Tenlines) -> None:
    done = tenlines("check", name)
    assert done.code == 2
    assert says in done.err
    assert "bug" not in done.err


def test_one_bad_file_does_not_keep_the_others_from_being_checked(tenlines: Tenlines) -> None:
    done = tenlines("check", "missing.json", write("t.json", spoiled.CHAT))
    assert done.code == 2
    assert "missing.json" in done.err
    assert "OAI-C-8" in done.out


@pytest.mark.parametrize(
    ("data", "line", "says"),
    [
        (spoiled.CUT, 2, "cut off"),
        (spoiled.ZEROS, 2, "64 zero bytes"),
        (b'{"messages": [{"role": "user", "content": "x"}', 1, "cut off"),
        (b'{"role": "user", "content": "x"}\nnonsense\n{"role": "user", "content": "y"}\n', 2, "left out"),
    ],
)
def test_damage_inside_a_file_is_a_finding(data: bytes, line: int, says: str, tenlines: Tenlines) -> None:
    done = tenlines("check", write("t.jsonl", data), "--json")
    rows = [json.loads(text) for text in done.out.splitlines()]
    assert done.code == 1
    assert [(row["rule"], row["kind"], row["line"]) for row in rows] == [("FILE", "DAMAGE", line)]
    assert says in rows[0]["message"]


def test_lines_that_hold_no_transcript_are_told_once(tenlines: Tenlines) -> None:
    data = spoiled.lines([{"event": n} for n in range(3)] + [spoiled.CHAT])
    rows = found(tenlines, write("t.jsonl", data))
    assert [(row["kind"], row["line"], row["severity"]) for row in rows] == [
        ("PAIR-MISSING", 4, "error"),
        ("SKIPPED", 1, "warning"),
    ]
    assert "2 more" in rows[1]["message"]


def test_a_document_that_is_too_large_is_refused_unless_it_is_allowed(tenlines: Tenlines) -> None:
    text = "x" * 700_000
    document = {"messages": [{"role": "user", "content": text}] * 2}
    done = tenlines("check", write("t.json", document), "--max-document", "1")
    assert done.code == 2
    assert "more than 1 MB" in done.err
    assert "--max-document" in done.err
    assert tenlines("check", "t.json", "--max-document", "2").code == 0
    several = spoiled.lines(document["messages"] * 2)  # the same again in lines, of which each is small
    assert tenlines("check", write("t.jsonl", several), "--max-document", "1").code == 0


def test_what_a_file_says_is_harmless_on_a_terminal(tenlines: Tenlines) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\u202e[bold]"
    messages = [{"role": evil, "content": "x"}, {"role": "user", "content": "y"}]
    done = tenlines("check", write("t.json", messages))
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out + done.err)
    assert "[bold]" in done.out
    done = tenlines("check", write("evil.json", f"{evil} none".encode()))
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out + done.err)


# --- SARIF ----------------------------------------------------------------------------------------------

MESSAGE = {"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}, "required": ["text"]}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
SARIF = {
    "type": "object",
    "required": ["version", "runs", "$schema"],
    "properties": {
        "version": {"const": "2.1.0"},
        "$schema": {"type": "string", "pattern": "sarif.*2\\.1\\.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "additionalProperties": False,
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["message"],
                                        "additionalProperties": False,
                                        "properties": {"level": LEVEL, "message": MESSAGE},
                                    },
                                },
                            },
                        },
                    },
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string", "minLength": 1},
                                                "shortDescription": MESSAGE,
                                                "help": MESSAGE,
                                                "defaultConfiguration": {"properties": {"level": LEVEL}},
                                                "properties": {"type": "object"},
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "properties": {"type": "object"},
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "required": ["uri"],
                                                        "properties": {
                                                            "uri": {"type": "string", "pattern": '^[^ \\\\"<>^`{|}]+$'}
                                                        },
                                                    },
                                                    "region": {
                                                        "properties": {"startLine": {"type": "integer", "minimum": 1}}
                                                    },
                                                },
                                            },
                                            "logicalLocations": {
                                                "items": {
                                                    "required": ["fullyQualifiedName"],
                                                    "properties": {"fullyQualifiedName": {"type": "string"}},
                                                }
                                            },
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}
"""What of SARIF 2.1.0 we write, as the standard has it: objects are closed where a typing mistake would hide."""


def test_sarif_has_the_structure_of_the_standard(tenlines: Tenlines) -> None:
    files = [write(f"a {name}.json", body) for name, body in {**spoiled.BODIES, **spoiled.DUMPS}.items()]
    done = tenlines("check", "--sarif", *files, write("cut.jsonl", spoiled.CUT))
    report = json.loads(done.out)
    jsonschema.validate(report, SARIF)
    (run,) = report["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert done.code == 1
    assert run["invocations"] == [{"executionSuccessful": True}]
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
    assert {rule["id"] for rule in rules} == {one["ruleId"] for one in run["results"]}
    first = run["results"][0]["locations"][0]
    assert first["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20openai_chat.json"},
        "region": {"startLine": 1},
    }
    assert first["logicalLocations"] == [{"fullyQualifiedName": "messages[1].tool_calls[0]"}]


def test_sarif_says_which_files_could_not_be_read_and_is_whole_when_nothing_is_wrong(tenlines: Tenlines) -> None:
    done = tenlines("check", "--sarif", "missing.json")
    report = json.loads(done.out)
    jsonschema.validate(report, SARIF)
    (invocation,) = report["runs"][0]["invocations"]
    assert done.code == 2
    assert not invocation["executionSuccessful"]
    assert "missing.json" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    done = tenlines("check", "--sarif", write("t.json", {"messages": [{"role": "user", "content": "hi"}]}))
    report = json.loads(done.out)
    jsonschema.validate(report, SARIF)
    assert (done.code, report["runs"][0]["results"]) == (0, [])


# --- what it costs ----------------------------------------------------------------------------------------


def test_the_help_loads_no_format(process: Callable[..., Any], home: Path) -> None:
    done = process("--help", env={"PYTHONPROFILEIMPORTTIME": "1"}).end()
    assert done.code == 0
    loaded = {line.rsplit("|", 1)[1].strip() for line in done.err.splitlines() if line.startswith("import time:")}
    assert "tenlines.cli.app" in loaded
    assert {name for name in loaded if name.startswith("tenlines.wire")} <= {"tenlines.wire", "tenlines.wire.plain"}
    commands = {name for name in loaded if name.startswith("tenlines.cli.")}
    assert not {f"tenlines.cli.{name}" for name in ("findings", "inputs", "mending", "outputs", "sarif")} & commands


@pytest.mark.slow
def test_a_pipe_that_is_closed_is_no_error(process: Callable[..., Any], home: Path) -> None:
    file = write("t.jsonl", spoiled.lines([{"role": "critic", "content": "x"}, *spoiled.CHAT["messages"]] * 3000))
    command = process("check", file)
    assert command.popen.stdout.readline()
    command.popen.stdout.close()
    error = command.popen.stderr.read().decode()
    command.popen.wait(20)
    assert error == ""
