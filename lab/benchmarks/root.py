"""Where this checkout is, for benchmarks that run its programs and keep figures in it."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
