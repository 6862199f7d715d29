"""Postgres, Temporal and workers on one machine, until Ctrl-C. What `./examples/fleet/up` runs."""

from __future__ import annotations

import argparse
import fcntl
import http.client
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

from local_postgres import LocalPostgres

from tenlines.errors import TenlinesError
from tenlines.fleet.dev_server import DevServer, free_port, watch

HERE = Path(__file__).resolve().parent
APP = HERE.parent / "support.py"
GRACE_S, HEARTBEAT_S = 20, 3
"""Seconds that runs have to be handed back in; silence after which a worker counts as dead (15 as it comes)."""
START_S = 60.0


class Worker:
    """One `tenlines worker`. What it says is said here, with its number."""

    def __init__(self, number: int, arguments: list[str], environment: Mapping[str, str]) -> None:
        self.number, self._health = number, f"127.0.0.1:{free_port()}"
        command = [str(Path(sys.executable).with_name("tenlines")), "worker", "--metrics", self._health, *arguments]
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for this process, which tells its workers
        )
        self._watcher = watch(self.process.pid)
        self._voice = threading.Thread(target=self._pass_on, daemon=True)
        self._voice.start()

    @property
    def metrics(self) -> str:
        """Where its metrics are."""
        return f"http://{self._health}/metrics"

    def wait(self) -> None:
        """Until it takes runs."""
        until = time.monotonic() + START_S
        while not _is_ready(self._health):
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"worker {self.number} does not start")
            time.sleep(0.1)

    def has_died(self) -> bool:
        """Whether it is gone; said once."""
        code = self.process.poll()
        if code is None:
            return False
        say(f"worker {self.number} is gone ({code}); others take its runs up within {HEARTBEAT_S} s or so")
        self._forget()
        return True

    def leave(self) -> None:
        """Tell it to hand its runs back."""
        self._forget()
        self.process.terminate()

    def end(self) -> None:
        """Wait until it has."""
        try:
            self.process.wait(GRACE_S + 10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._voice.join(1)

    def _forget(self) -> None:
        if self._watcher is not None:
            self._watcher.kill()  # before the id of the process can be that of somebody else
            self._watcher.communicate()

    def _pass_on(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            say(f"worker {self.number} | {line.rstrip()}")


def main() -> None:
    """Bring it up, and stay."""
    options = _options()
    state: Path = options.state.absolute()
    state.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        with ExitStack() as held:
            held.enter_context(_alone(state))
            _stay(_begun(held, state, options))
    except KeyboardInterrupt:
        say("all is stopped; it goes on with ./examples/fleet/up")
    except TenlinesError as error:
        raise SystemExit(str(error)) from None


def _begun(held: ExitStack, state: Path, options: argparse.Namespace) -> list[Worker]:
    """Everything, one after the other. It is stopped the other way round."""
    say("Postgres ...")
    postgres = held.enter_context(LocalPostgres(state / "postgres"))
    say("Temporal ...")
    (state / "temporal").mkdir(mode=0o700, exist_ok=True)
    temporal = held.enter_context(DevServer(state / "temporal" / "temporal.db", port=0))
    environment = {
        "TENLINES_JOURNAL": postgres.address,
        "TENLINES_TEMPORAL": temporal.address,
        "TENLINES_APP": str(APP),
    }
    if options.model:
        environment["TENLINES_MODEL"] = options.model
    say(f"{options.workers} workers ...")
    arguments = ["--grace", str(GRACE_S), "--heartbeat", str(HEARTBEAT_S)]
    workers = [Worker(number, arguments, environment) for number in range(1, options.workers + 1)]
    held.callback(_stop, workers)
    for one in workers:
        one.wait()
    _tell(held, state, environment)
    say(f"Postgres    process {postgres.pid}, data in {state / 'postgres'}")
    say(f"Temporal    process {temporal.pid}, at {temporal.address}, data in {state / 'temporal'}")
    for one in workers:
        say(f"worker {one.number}    process {one.process.pid}, {one.metrics}")
    say(f"the commands `tenlines runs`, `show`, `serve`, ... need:  source {shlex.quote(str(state / 'env'))}")
    say('up. In another terminal:  ./examples/fleet/run "Where is order 1042?"   Ctrl-C here stops it all.')
    return workers


def _tell(held: ExitStack, state: Path, environment: Mapping[str, str]) -> None:
    """Write down for other terminals how the fleet is reached. It has a password, so it is for this user alone."""
    file = state / "env"
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.writelines(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    held.callback(file.unlink, missing_ok=True)


def _stay(workers: list[Worker]) -> NoReturn:
    """Until Ctrl-C."""
    while True:
        time.sleep(0.2)
        for one in [*workers]:
            if one.has_died():
                workers.remove(one)
                if not workers:
                    say("no worker is left: runs wait. Ctrl-C, and up again, goes on with them.")


def _stop(workers: list[Worker]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is on its way
    say("stopping: runs that are under way are handed back ...")
    for one in workers:
        one.leave()
    for one in workers:
        one.end()


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    with (state / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"a fleet is up already in {state}; $FLEET_STATE names another folder") from None
        yield


def _is_ready(address: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples/fleet/up", description=__doc__)
    parser.add_argument("--model", help="the model of the agent, as for `tenlines run` [a function stands for it]")
    parser.add_argument("--workers", type=int, default=2, help="how many [2]")
    parser.add_argument("--state", type=Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def say(line: str) -> None:
    """A line, at once."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
