"""This checkout: the commit that it is at, and a copy of its tracked files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tools.root import ROOT


class BuildError(RuntimeError):
    """The release can't be built here; the message says why, and what to do."""


def checkout_state() -> tuple[str, str]:
    """(commit, digest of what differs from it in tracked files or ""). Raises BuildError."""
    changed = _git("diff", "--binary", "HEAD")
    digest = hashlib.sha256(changed).hexdigest() if changed else ""
    return _git("rev-parse", "HEAD").decode().strip(), digest


def copy(folder: Path) -> None:
    """Replace `folder` by the tracked files as they are on disk. Raises BuildError."""
    listed = _git("ls-files", "-z").decode()
    shutil.rmtree(folder, ignore_errors=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def _git(*arguments: str) -> bytes:
    try:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(
            f"{ROOT}: git doesn't know this folder. Make releases in a clone of the repository,"
            " with git installed."
        ) from error
