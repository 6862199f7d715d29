"""Makes this folder's own modules importable."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("", "core", "property")]
