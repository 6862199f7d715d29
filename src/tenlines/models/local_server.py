"""The child process of the local model: llama.cpp behind an OpenAI-compatible address on loopback.

    python -m tenlines.models.local_server MODEL.gguf --context 8192 --threads 1 --parent PID

It writes one line to standard output, the address it listens on, and serves until its standard input is closed:
whoever started it holds the other end, so it ends with that process however that ends.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str] | None = None) -> None:
    """Serve a GGUF file until standard input is closed."""
    parser = argparse.ArgumentParser(prog="tenlines.models.local_server")
    parser.add_argument("model")
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parent", type=int, default=0)
    options = parser.parse_args(arguments)
    _die_with_parent(options.parent)
    report = os.dup(1)
    os.dup2(2, 1)  # llama.cpp prints what it likes; only the address may reach our starter
    try:
        server = _serve(options)
    except RuntimeError as error:
        sys.exit(f"{error} (the lines above are llama.cpp's own)")
    os.write(report, f"{server.listening_address}\n".encode())
    os.close(report)
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)  # llama.cpp's own shutdown can take seconds, and nothing here needs it


def _die_with_parent(parent: int) -> None:
    """Have the kernel end this process with its parent, where it can: a second rope beside standard input."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os._exit(1)  # it died before the rope was tied


def _serve(options: argparse.Namespace) -> Any:
    import xllamacpp  # type: ignore[import-untyped]  # it carries no types

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = options.context
    params.n_parallel = 1
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.use_jinja = True
    params.endpoint_slots = True
    params.ui = False
    params.cors_origins = "http://127.0.0.1"  # by default a page of any web site may talk to it
    params.verbosity = 2  # errors and warnings: its starter shows the end of them when loading fails
    params.fit_params = False
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
