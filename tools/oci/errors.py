"""The one error of making images."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class ImageError(Exception):
    """The image can't be made; the message is what a user reads: what was tried, what was said, the fix."""


def run(
    command: Sequence[str | Path], *, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program and return its stdout. Raises ImageError with its stderr."""
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ImageError(f"found no program {command[0]!s}. Install it, then run this again.") from error
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise ImageError(f"{words}: status {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout
