"""What model servers are there: a look at this machine's usual ports, with the standard library alone."""

from __future__ import annotations

import json
import os
import urllib.request
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

OLLAMA_PORT = 11434
LLAMA_CPP_PORT = 8080


class FoundServer(NamedTuple):
    """A server that answered."""

    kind: str
    """`ollama` or `llama.cpp`."""
    base_url: str
    """With `/v1`, ready for `OpenAICompatible`."""
    model: str
    """The first model that it names."""


def find_local_server(timeout_s: float = 0.3, llama_cpp_port: int = LLAMA_CPP_PORT) -> FoundServer | None:
    """The first model server on this machine that answers: Ollama, then llama.cpp; None where there is none.

    Asks loopback addresses only. `OLLAMA_HOST` is honoured when it names one.
    """
    ollama = ollama_address()
    tags = _get(f"{ollama}/api/tags", timeout_s) if _is_loopback(ollama) else None
    for name in _names(tags, "models", "name"):
        return FoundServer("ollama", f"{ollama}/v1", name)
    llama_cpp = f"http://127.0.0.1:{llama_cpp_port}/v1"
    for name in _names(_get(f"{llama_cpp}/models", timeout_s), "data", "id"):
        return FoundServer("llama.cpp", llama_cpp, name)
    return None


def ollama_address() -> str:
    """Where Ollama listens: `OLLAMA_HOST` in any of the forms that Ollama itself takes, else its usual port."""
    host = os.environ.get("OLLAMA_HOST", "").strip().rstrip("/")
    usual = f"http://127.0.0.1:{OLLAMA_PORT}"
    try:
        parts = urlsplit(host if "://" in host else f"http://{host}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return usual
    if not name:
        return f"http://127.0.0.1:{port}" if port else usual
    if name in ("0.0.0.0", "::"):  # what a server binds to; a client asks loopback
        name = "127.0.0.1"
    name = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{name}:{port or (443 if parts.scheme == 'https' else OLLAMA_PORT)}"


def model_names(base_url: str, api_key: str | None = None, timeout_s: float = 5.0) -> list[str] | None:
    """The models of an OpenAI-compatible server, or None when it does not answer as one."""
    data = _get(f"{base_url.rstrip('/')}/models", timeout_s, api_key)
    if not isinstance(data, dict) or not isinstance(data.get("data"), list):
        return None
    return _names(data, "data", "id")


def _names(data: Any, field: str, key: str) -> list[str]:
    entries = data.get(field) if isinstance(data, dict) else None
    found = [entry.get(key) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [name for name in found if isinstance(name, str) and name]


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _get(url: str, timeout_s: float, api_key: str | None = None) -> Any:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {api_key}"} if api_key else {})
    # a proxy from the environment must not stand between us and a server on this machine
    handlers = [urllib.request.ProxyHandler({})] if _is_loopback(url) else []
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as response:
            return json.loads(response.read(1 << 22))
    except (OSError, HTTPException, ValueError):
        return None  # nobody there, or somebody who speaks another language
