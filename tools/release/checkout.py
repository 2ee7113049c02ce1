"""This checkout: the commit that it is at, and a copy of its tracked files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tools.root import ROOT


class BuildError(RuntimeError):
    """The release can't be built here; the message says why, and what to do."""


def checkout_state(root: Path = ROOT) -> tuple[str, str]:
    """(commit, digest of what differs from it in tracked files or ""). Raises BuildError."""
    changed = _git(root, "diff", "--binary", "HEAD")
    digest = hashlib.sha256(changed).hexdigest() if changed else ""
    return _git(root, "rev-parse", "HEAD").decode().strip(), digest


def copy(folder: Path, root: Path = ROOT) -> None:
    """Replace `folder` by the tracked files as they are on disk. Raises BuildError."""
    listed = _git(root, "ls-files", "-z").decode()
    shutil.rmtree(folder, ignore_errors=True)
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)


def _git(root: Path, *arguments: str) -> bytes:
    try:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(
            f"{root}: git doesn't know this folder. Make releases in a clone of the repository,"
            " with git installed."
        ) from error
