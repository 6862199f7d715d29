"""Makes what the tests of the formats share importable: `from transcripts import transcripts`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
