"""Print how large each room is: characters, lines, classes and files of its Python, beside an
earlier revision's.

.venv/bin/python -m tools.sizes              beside the last release's tag, where there is one
.venv/bin/python -m tools.sizes REVISION     beside that revision of git

Nothing fails by it. Characters count most, because lines can be packed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

from tools.root import ROOT

# What is installed, and nothing else.
PACKAGES: Final = ("roost_core", "generator", "webhook", "roost", "lab/roost_lab")
_CLASS: Final = re.compile(r"^ *class \w+", re.MULTILINE)


class Size(NamedTuple):
    """How large a room is."""

    characters: int = 0
    lines: int = 0
    classes: int = 0
    files: int = 0

    def with_text(self, text: str) -> Size:
        """Return the size with one more file."""
        return Size(
            self.characters + len(text),
            self.lines + len(text.splitlines()),
            self.classes + len(_CLASS.findall(text)),
            self.files + 1,
        )


def room_of(path: str) -> str:
    """Return the room of a file of Python: a folder directly below a package, or the package; "":
    not installed.
    """
    for package in PACKAGES:
        below = path.removeprefix(f"{package}/").split("/")
        if path.startswith(f"{package}/") and path.endswith(".py"):
            return package if len(below) == 1 else f"{package}/{below[0]}"
    return ""


def sizes(texts: Mapping[str, str]) -> dict[str, Size]:
    """Return each room's size. texts: of files, by path from the top of the repository."""
    found: dict[str, Size] = {}
    for path, text in sorted(texts.items()):
        room = room_of(path)
        if room:
            found[room] = found.get(room, Size()).with_text(text)
    return found


def texts_here() -> dict[str, str]:
    """Return the texts of all files of Python below the packages."""
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def texts_at(revision: str) -> dict[str, str]:
    """Return the same at a revision of git."""
    paths = [
        path
        for path in _git("ls-tree", "-r", "--name-only", revision).splitlines()
        if room_of(path)
    ]
    return {path: _git("show", f"{revision}:{path}") for path in paths}


def last_release() -> str:
    """Return the newest tag of a version; "": there is none."""
    tags = _git("tag", "--list", "v*", "--sort=-creatordate").splitlines()
    return tags[0] if tags else ""


def _git(*arguments: str) -> str:
    answer = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        sys.exit(f"sizes: git {' '.join(arguments)}: {answer.stderr.strip()}")
    return answer.stdout


def main(arguments: list[str]) -> int:
    """Print a line for each room, and one for all."""
    revision = arguments[0] if arguments else last_release()
    now = sizes(texts_here())
    before = sizes(texts_at(revision)) if revision else {}
    rooms = sorted(now.keys() | before.keys())
    print(
        f"{'room':28} {'characters':>11} {'lines':>7} {'classes':>8} {'files':>6} "
        f" {revision and f'at {revision}'}"
    )
    for room in [*rooms, "all"]:
        own, old = (
            (
                Size(*map(sum, zip(*counted.values(), strict=True)))
                if room == "all" and counted
                else counted.get(room)
            )
            for counted in (now, before)
        )
        size = own or Size()
        beside = f"{old.characters:>11,}" if old else ""
        print(
            f"{room:28} {size.characters:>11,} {size.lines:>7,} {size.classes:>8} {size.files:>6} "
            f" {beside}".rstrip()
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
