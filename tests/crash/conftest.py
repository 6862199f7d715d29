"""Makes this folder's modules importable, and those that start a Postgres."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "journal"))

from postgres_server import postgres_address, postgres_server

__all__ = ["postgres_address", "postgres_server"]
