"""A process of a fleet that does nothing but keep to limits, and says when it did what. Started by the tests.

    limited_process.py pace ADDRESS SECONDS RATES      one line of JSON: [model, due, sent, tokens] of each request
    limited_process.py places ADDRESS FILE AT_ONCE     to FILE: "PID TASK + TIME" and "PID TASK - TIME", until killed

It says "ready" and begins when it is told something.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time

import msgspec

from tenlines.fleet import postgres_places
from tenlines.fleet.pacing import Rate
from tenlines.fleet.places import Queue
from tenlines.fleet.postgres_pace import PostgresPace

MODELS_TASKS, QUEUE_TASKS = 20, 8


def begin() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


async def ask(pace: PostgresPace, model: str, until: float, sent: list[tuple[str, float, float, int]]) -> None:
    while True:
        tokens = random.randint(1, 200)
        wait = await pace.take(model, tokens)
        due = time.time() + wait
        if due > until:
            return
        await asyncio.sleep(wait)
        sent.append((model, due, time.time(), tokens))


async def keep_pace(address: str, seconds: str, rates: str) -> None:
    models = msgspec.json.decode(rates, type=dict[str, Rate])
    pace = PostgresPace(address, models)
    begin()
    until = time.time() + float(seconds)
    sent: list[tuple[str, float, float, int]] = []
    tasks = [asyncio.create_task(ask(pace, model, until, sent)) for model in models for _ in range(MODELS_TASKS)]
    await asyncio.wait(tasks, timeout=float(seconds) + 0.4)
    for task in tasks:
        task.cancel()
    pace.close()
    print(json.dumps(sent), flush=True)


async def hold(places: postgres_places.PostgresPlaces, queue: Queue, name: str, log: int) -> None:
    while True:
        async with places.of(queue):
            os.write(log, f"{name} + {time.monotonic()}\n".encode())
            await asyncio.sleep(random.uniform(0.02, 0.4))
            os.write(log, f"{name} - {time.monotonic()}\n".encode())


async def keep_places(address: str, file: str, at_once: str) -> None:
    postgres_places.POLL_S, postgres_places.KEPT_S = (0.02, 0.1), 0.1
    postgres_places.WATCH_S, postgres_places.SETTLE_S = 0.1, 0.6
    places, queue = postgres_places.PostgresPlaces(address), Queue("reports", at_once=int(at_once))
    log = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    begin()
    await asyncio.gather(*(hold(places, queue, f"{os.getpid()} {task}", log) for task in range(QUEUE_TASKS)))


if __name__ == "__main__":
    what, *told = sys.argv[1:]
    asyncio.run(keep_pace(*told) if what == "pace" else keep_places(*told))
