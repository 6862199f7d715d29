"""Stands between clients and a server on loopback, and cuts the line where a test says so."""

from __future__ import annotations

import contextlib
import socket
import threading
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Literal

Cut = Literal["before", "during", "after"]
"""When: before the client's next message is passed on, right after it was, or when the server's answer to it has come,
which is dropped."""


class CuttingProxy:
    """Listens on `port`, and passes on to another port of loopback.

    Attributes:
        messages: How many the clients have sent.
        is_deaf: Whether new connections are ended at once.
        has_cut: Set when a line was cut.
    """

    def __init__(self, to: int) -> None:
        self.to = to
        self.messages, self.is_deaf, self.has_cut = 0, False, threading.Event()
        self._cut: Cut | None = None
        self._is_deaf_then = False
        proxy = self

        class Line(BaseRequestHandler):
            def handle(self) -> None:
                if not proxy.is_deaf:
                    proxy.serve(self.request)

        class Server(ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False

        self._server = Server(("127.0.0.1", 0), Line)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def cut(self, when: Cut, *, then_be_deaf: bool = False) -> None:
        """Cut the line of whoever sends the next message."""
        self.has_cut.clear()
        self._is_deaf_then, self._cut = then_be_deaf, when

    def serve(self, client: socket.socket) -> None:
        """One client, until either side ends."""
        try:
            server = socket.create_connection(("127.0.0.1", self.to))
        except ConnectionError:
            return
        is_dropped = threading.Event()
        answers = threading.Thread(target=_pass_answers, args=(server, client, is_dropped), daemon=True)
        answers.start()
        was_cut = self._pass_messages(client, server, is_dropped)
        _end(server)
        _end(client)
        answers.join()
        server.close()
        if was_cut:
            self.has_cut.set()

    def _pass_messages(self, client: socket.socket, server: socket.socket, is_dropped: threading.Event) -> bool:
        """Returns whether the line is to be cut."""
        with contextlib.suppress(OSError):
            while message := client.recv(1 << 20):
                self.messages += 1
                how, self._cut = self._cut, None
                if how is not None:
                    self.is_deaf = self._is_deaf_then
                if how == "after":
                    is_dropped.set()  # a message may come in pieces: they are passed on until there is an answer
                if how != "before":
                    server.sendall(message)
                if how in ("before", "during"):
                    return True
        return is_dropped.is_set()


def _pass_answers(server: socket.socket, client: socket.socket, is_dropped: threading.Event) -> None:
    with contextlib.suppress(OSError):
        while (answer := server.recv(1 << 20)) and not is_dropped.is_set():
            client.sendall(answer)
    _end(client)  # which ends the waiting for its messages too


def _end(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
