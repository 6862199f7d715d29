"""llama.cpp with a chat template of the tests' own (`calls.jinja`): with it the small model writes calls that the
server's parser knows, which it does not with the template in its file. Run as a script, like `local_server`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xllamacpp

from tenlines.models import local_server

TEMPLATE = (Path(__file__).parent / "calls.jinja").read_text()
_PARAMS = xllamacpp.CommonParams


def _templated() -> Any:
    params = _PARAMS()
    params.chat_template = TEMPLATE
    return params


if __name__ == "__main__":
    xllamacpp.CommonParams = _templated
    local_server.main()
