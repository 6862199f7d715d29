"""A server of tools without the SDK: quick to start, of the older revision, and free to do what is wrong.

It is started as `python -S raw_server.py [WORD ...]`; the words at the bottom say how it misbehaves.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

FILE = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
READS, REPEATS = {"readOnlyHint": True}, {"idempotentHint": True}
TOOLS: list[dict[str, Any]] = [
    {"name": "echo", "inputSchema": TEXT, "description": "Say it\u202e again.\u200b", "annotations": READS},
    {"name": "pid", "inputSchema": {"type": "object"}},
    {"name": "die", "inputSchema": FILE},
    {"name": "die_reading", "inputSchema": FILE, "annotations": READS},
    {"name": "die_repeatable", "inputSchema": FILE, "annotations": REPEATS},
    {"name": "lies", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True, "destructiveHint": True}},
    {"name": "wait", "inputSchema": FILE},
    {"name": "grow", "inputSchema": {"type": "object"}},
    {"name": "junk", "inputSchema": {"type": "object"}},
    {"name": "no_result", "inputSchema": {"type": "object"}},
    {"name": "error", "inputSchema": {"type": "object"}},
    {"name": "many", "inputSchema": {"type": "object"}},
    {"name": "environment", "inputSchema": {"type": "object"}},
    {"name": "meet", "inputSchema": {"type": "object"}, "annotations": READS},
    {"name": "wrong", "inputSchema": {"type": "object", "properties": {"a": {"type": "no such type"}}}},
    {"name": "huge", "inputSchema": {"type": "object", "properties": {"a": {"enum": ["x" * 200_000]}}}},
]
DEATHS = int(os.environ.get("DEATHS", "1"))
waiting: dict[Any, str] = {}
meeting: list[Any] = []


def send(message: dict[str, Any]) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(number: Any, said: str) -> None:
    send({"id": number, "result": {"content": [{"type": "text", "text": said}]}})


def note(file: str, word: str) -> int:
    """Write a word into a file; how often it stands there now."""
    with open(file, "a") as stream:
        stream.write(f"{word}\n")
    with open(file) as stream:
        return stream.read().count(f"{word}\n")


def die(number: Any, file: str, word: str) -> None:
    if note(file, word) <= DEATHS:
        print("the disk is on fire", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    answer(number, "lived")


def call(number: Any, name: str, arguments: dict[str, Any]) -> None:
    match name:
        case "echo":
            answer(number, arguments["text"])
        case "pid":
            answer(number, str(os.getpid()))
        case "die" | "die_reading" | "die_repeatable":
            die(number, arguments["file"], name)
        case "wait":
            waiting[number] = arguments["file"]
            note(arguments["file"], "waiting")
        case "grow":
            TOOLS.append({"name": "extra", "inputSchema": {"type": "object"}})
            send({"method": "notifications/tools/list_changed"})
            answer(number, "grown")
        case "junk":
            os.write(1, b"Starting up...\n\xff\xfe\x00\n{}\n[1]\n" + b"x" * 300_000 + b"\n")
            answer(number, "after junk")
        case _:
            call_badly(number, name)


def call_badly(number: Any, name: str) -> None:
    match name:
        case "no_result":
            send({"id": number, "result": {"content": "no list"}})
        case "error":
            send({"id": number, "error": {"code": -32000, "message": "no \x1b[31msuch\u202e thing"}})
        case "many":
            answer(number, "row\u202e\x1b[2J\n" * 150_000)
        case "environment":
            answer(number, " ".join(os.environ))
        case "meet":
            meeting.append(number)
            if len(meeting) == 2:
                answer(meeting.pop(), "met")
                answer(meeting.pop(), "met")
        case _:
            answer(number, "new")


def take(message: dict[str, Any]) -> None:
    number, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case "initialize":
            can: dict[str, Any] = {"tools": {"listChanged": True}}
            if "boasting" in sys.argv:
                can |= {"resources": {}, "prompts": {}}
            told = {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": {"name": "raw", "version": "1"}}
            send({"id": number, "result": told})
        case "tools/list":
            send({"id": number, "result": {"tools": TOOLS}})
        case "tools/call":
            call(number, params["name"], params.get("arguments") or {})
        case "notifications/cancelled" if params.get("requestId") in waiting:
            note(waiting.pop(params["requestId"]), "cancelled")
        case _:
            if number is not None:
                send({"id": number, "error": {"code": -32601, "message": "no such method"}})


if __name__ == "__main__":
    if "silent" in sys.argv:
        print("still \x1b[31mthinking", file=sys.stderr, flush=True)
        time.sleep(60)
    if "broken" in sys.argv:
        sys.exit("no such database")
    if "once" in sys.argv and note(sys.argv[-1], "started") > 1:
        sys.exit("only once")
    if "no-list" in sys.argv:
        TOOLS.append({"name": "list", "inputSchema": {"type": "array"}})
    if "stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(300)
    for line in sys.stdin:
        take(json.loads(line))
    if "stubborn" in sys.argv:
        time.sleep(300)
