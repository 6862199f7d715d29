"""What the tests of fleets share: a real Postgres, a real Temporal."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for the modules beside this one
sys.path.insert(0, str(Path(__file__).parent.parent / "journal"))  # for the Postgres

from postgres_server import postgres_address, postgres_server
from temporal_server import temporal_server

__all__ = ["postgres_address", "postgres_server", "temporal_server"]
