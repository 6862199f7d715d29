"""Several machines on this one: network namespaces, with a link of its own from each worker to each server.

    with Hosts(["one", "two"]) as hosts:
        with PostgresServer(hosts.ip("postgres"), hosts.inside("postgres")) as postgres:
            worker = hosts.run("one", ["tenlines", "worker", ...])
            hosts.cut("one", "postgres")  # what either side sends is lost, and nobody is told
            hosts.mend("one", "postgres")

Nothing of this machine's own network is touched. Each namespace is held by a process that ends with this one, so
nothing stays behind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from types import TracebackType
from typing import Any

import pytest

SERVERS = ("postgres", "temporal")
_LOSSES = (("blackhole",), ("netem", "loss", "100%"))
"""Kinds of queues that lose all that is put in; not every kernel has each."""


class NoNamespaces(Exception):
    """This machine may not make them."""


class Hosts:
    """The namespaces of the servers and of some workers.

    Raises:
        NoNamespaces: With what was said.
    """

    def __init__(self, workers: Sequence[str]) -> None:
        _check_commands()
        self._workers = tuple(workers)
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name in (*SERVERS, *workers):
                self._holders[name] = _namespace()
                self._configure(name, ["link set lo up"])
            for server in SERVERS:
                self._configure(server, [f"addr add {self.ip(server)}/32 dev lo"])
                for worker in workers:
                    self._join(worker, server)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Hosts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ip(self, server: str) -> str:
        """Where a server is to listen; all workers know it by that."""
        return f"10.77.0.{SERVERS.index(server) + 1}"

    def inside(self, name: str) -> tuple[str, ...]:
        """What goes before a command that is to run there. It keeps its process id."""
        return ("nsenter", f"--net=/proc/{self._holders[name].pid}/ns/net", "--")

    def run(self, name: str, command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command there."""
        return subprocess.Popen([*self.inside(name), *command], **options)

    def cut(self, worker: str, server: str) -> None:
        """Lose all that one sends to the other from now on, without a word to either."""
        for name, device in self._ends(worker, server):
            self._ask(name, ["tc", "qdisc", "replace", "dev", device, "root", *_loss()])

    def mend(self, worker: str, server: str) -> None:
        """Let everything through again."""
        for name, device in self._ends(worker, server):
            self._ask(name, ["tc", "qdisc", "del", "dev", device, "root"])

    def close(self) -> None:
        """Let go of the namespaces: each is gone with the last process in it."""
        for holder in self._holders.values():
            holder.communicate()
        self._holders = {}

    def _join(self, worker: str, server: str) -> None:
        """A link, over which the two find one another without asking: who asks in vain is told that nobody is there."""
        number = 4 * (len(SERVERS) * self._workers.index(worker) + SERVERS.index(server))
        near, far = f"10.77.1.{number + 1}", f"10.77.1.{number + 2}"
        near_mac, far_mac = f"02:77:00:00:01:{number + 1:02x}", f"02:77:00:00:01:{number + 2:02x}"
        (_, to), (_, back) = self._ends(worker, server)
        peer = f"peer name {back} address {far_mac} netns {self._holders[server].pid}"
        self._configure(
            worker,
            [
                f"link add {to} address {near_mac} type veth {peer}",
                f"addr add {near}/30 dev {to}",
                f"link set {to} up",
                f"neigh replace {far} lladdr {far_mac} dev {to} nud permanent",
                f"route add {self.ip(server)}/32 via {far}",
            ],
        )
        self._configure(
            server,
            [
                f"addr add {far}/30 dev {back}",
                f"link set {back} up",
                f"neigh replace {near} lladdr {near_mac} dev {back} nud permanent",
            ],
        )

    def _ends(self, worker: str, server: str) -> Iterator[tuple[str, str]]:
        """Both ends of a link: where, and as what."""
        yield worker, f"to-{server}"
        yield server, f"from-{self._workers.index(worker)}"  # names of devices are short

    def _configure(self, name: str, lines: Sequence[str]) -> None:
        self._ask(name, ["ip", "-batch", "-"], "\n".join(lines))

    def _ask(self, name: str, command: Sequence[str], text: str = "") -> None:
        _done([*self.inside(name), *command], text)


def hosts_or_skip(workers: Sequence[str]) -> Hosts:
    """The hosts. The test is skipped, loudly, where there can be none."""
    try:
        return Hosts(workers)
    except NoNamespaces as error:
        pytest.skip(f"NO NETWORK NAMESPACES: cuts of the network were NOT tested; {error}")


def _namespace() -> subprocess.Popen[bytes]:
    """A process that holds a namespace until its input ends, which it does with this process."""
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo made; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert holder.stdout is not None
    if holder.stdout.readline() != b"made\n":
        raise NoNamespaces(holder.communicate()[1].decode().strip())
    return holder


@cache
def _loss() -> tuple[str, ...]:
    """A kind of queue that this kernel has and that loses everything."""
    for kind in _LOSSES:
        tried = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", *kind]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return kind
    raise NoNamespaces("this kernel has no queue that loses packets: neither blackhole nor netem")


def _look_in_sbin() -> None:
    """Where `ip` and `tc` are on Debian, and where the path of a bare environment does not lead."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(path + [one for one in ("/usr/sbin", "/sbin") if one not in path])


def _check_commands() -> None:
    """Both come from Debian's iproute2, and the others from util-linux, which is always there.

    Raises:
        NoNamespaces: They are not here, and cannot be had.
    """
    _look_in_sbin()
    if not (shutil.which("ip") and shutil.which("tc")) and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet: dict[str, Any] = {"check": False, "capture_output": True}
        quiet["env"] = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "-qq", "update"], **quiet, timeout=120)
        subprocess.run(["apt-get", "-qq", "-y", "install", "iproute2"], **quiet, timeout=120)
    missing = [one for one in ("ip", "tc", "unshare", "nsenter") if shutil.which(one) is None]
    if missing:
        raise NoNamespaces(f"install {', '.join(missing)} (Debian: apt-get install iproute2 util-linux)")
    _loss()


def _done(command: Sequence[str], text: str) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()} ({text})")
