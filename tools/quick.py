"""`make quick`: ruff, import directions, and the fast unit tests of the rooms that changed since
main.

A changed file's tests are those of its room: `lab/roost_lab/recorder/...` has
lab/tests/unit/recorder, `webhook/...` has tests/unit/webhook; templates and chart are the
generator's. What is changed: all that differs from where the branch left main, committed or not; on
main, from HEAD. Left out: tests marked `slow`, and those on PostgreSQL.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tools.root import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

BIN: Final = Path(sys.executable).parent
UNIT: Final = Path("tests", "unit")
LAB: Final = Path("lab", "roost_lab")
LAB_UNIT: Final = Path("lab", "tests", "unit")
# What has no folder of its own name in tests/unit.
ROOMS: Final = {
    "templates": "generator",
    "chart": "generator",
    "docs": "repository",
    "tools": "repository",
    "roost/cli.py": "commands",
    "roost/__main__.py": "commands",
}
# The same for the lab.
LAB_ROOMS: Final = {"traces": "simulator"}


def main() -> int:
    """0: all is well; 1: a check or a test failed."""
    started = time.monotonic()
    checks: dict[str, list[str | Path]] = {
        "ruff check": [BIN / "ruff", "check", "--quiet", "."],
        "ruff format": [BIN / "ruff", "format", "--quiet", "--check", "."],
        "import directions": [BIN / "lint-imports"],
    }
    failed = [name for name, command in checks.items() if not _passes(name, command)]
    tests = tests_of(changed_files())
    print(f"tests of what changed: {' '.join(map(str, tests)) or 'nothing changed'}", flush=True)
    if tests:
        options = (
            "-q",
            "-n",
            "2",
            "-m",
            "not slow and not e2e and not minors",
            "-k",
            "not postgresql",
        )
        status = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *map(str, tests)], cwd=ROOT, check=False
        )
        if status.returncode:
            failed.append("tests")
    print(f"{'FAIL: ' + ', '.join(failed) if failed else 'ok'}, {time.monotonic() - started:.0f} s")
    return int(bool(failed))


def changed_files() -> list[Path]:
    """Files that differ from where this branch left main, and new ones that git doesn't know
    yet.
    """
    base = (
        _git("merge-base", "HEAD", "main") or _git("merge-base", "HEAD", "origin/main") or ["HEAD"]
    )
    names = [
        *_git("diff", "--name-only", base[0]),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]
    return [Path(name) for name in names]


def tests_of(files: Iterable[Path]) -> list[Path]:
    """Folders and files of unit tests to run for changed files, each once."""
    found = {
        room for file in files if (room := _tests_of(file)) is not None and (ROOT / room).exists()
    }
    return sorted(test for test in found if test.parent not in found)


def _tests_of(file: Path) -> Path | None:
    if file.is_relative_to(UNIT) or file.is_relative_to(LAB_UNIT):
        return file if file.name.startswith("test_") else file.parent
    for start, room in ROOMS.items():
        if file.is_relative_to(start):
            return UNIT / room
    if file.is_relative_to(LAB):
        room = file.relative_to(LAB).parts[0]
        return LAB_UNIT / LAB_ROOMS.get(room, room)
    if file.parts[0] == "roost" and len(file.parts) > 1:
        return UNIT / file.parts[1]
    return UNIT / file.parts[0] if len(file.parts) > 1 else None


def _git(*arguments: str) -> list[str]:
    answer = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return answer.stdout.split("\n")[:-1]


def _passes(name: str, command: list[str | Path]) -> bool:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(f"{'ok   ' if done.returncode == 0 else 'FAIL '} {name}", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
