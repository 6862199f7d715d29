"""What the tests of journals share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one

from postgres_server import postgres_address, postgres_server  # noqa: E402

__all__ = ["postgres_address", "postgres_server"]
