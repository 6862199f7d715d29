"""`LiteLLM`: the scenarios, and that it asks nobody when it is imported."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tenlines.errors import ConfigError, MissingExtra
from tenlines.models.litellm import LiteLLM

HERE = Path(__file__).parent


def test_making_one_does_not_import_the_library() -> None:
    code = (
        "import sys; from tenlines.models.litellm import LiteLLM; m = LiteLLM('groq/llama-4'); m.session()\n"
        "print(m.name, 'litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["litellm:groq/llama-4", "False"]


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"tenlines\[litellm\]"):
        LiteLLM("groq/llama-4")


def test_a_name_is_needed() -> None:
    with pytest.raises(ConfigError, match="PROVIDER/MODEL"):
        LiteLLM(" ")


@pytest.mark.slow
def test_the_scenarios() -> None:
    ours = [sys.executable, "-W", "ignore", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ours += ["-p", "no:unraisableexception", "-p", "no:threadexception", "-W", "ignore"]
    done = subprocess.run([*ours, str(HERE / "litellm_scenarios.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout


@pytest.mark.slow
def test_the_library_asks_nobody_when_it_is_imported() -> None:
    code = (
        "import socket\n"
        "def refuse(*args): raise SystemExit('it asked for ' + repr(args))\n"
        "socket.getaddrinfo = socket.create_connection = refuse\n"
        "from tenlines.models import litellm\n"
        "litellm._library()\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
