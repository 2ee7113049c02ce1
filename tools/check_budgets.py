"""Check that no room has outgrown its budget: `[tool.roost.budgets]` of pyproject.toml, in lines of Python.

.venv/bin/python -m tools.check_budgets            exit 1 where a room has more lines than its budget, or has none
.venv/bin/python -m tools.check_budgets --counts   print the lines, the classes and the budget of every room

Raising a budget is a decision that someone reads: say in the commit which users gain by it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
# What is installed, and nothing else.
PACKAGES: Final = ("roost_core", "generator", "webhook", "roost", "lab/roost_lab")
KEY: Final = "pyproject.toml: tool.roost.budgets"
_CLASS: Final = re.compile(r"^ *class \w+", re.MULTILINE)


def rooms(root: Path = ROOT) -> dict[str, list[Path]]:
    """The Python files of each room: a folder directly below a package, or the package's own files."""
    found: dict[str, list[Path]] = {}
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            below = file.relative_to(root / package).parts
            room = package if len(below) == 1 else f"{package}/{below[0]}"
            found.setdefault(room, []).append(file)
    return found


def faults(counts: dict[str, int], budgets: dict[str, int]) -> list[str]:
    """A line for each room over its budget, without one, or with one and no room."""
    over = [
        f"{KEY}.{room}: found {lines} lines of Python, expected at most {budgets[room]}. Take something out, or raise "
        "the budget and say which users gain by it."
        for room, lines in counts.items()
        if lines > budgets.get(room, lines)
    ]
    without = [
        f"{KEY}: found no budget for {room}, expected one. Write {lines * 11 // 10}."
        for room, lines in counts.items()
        if room not in budgets
    ]
    gone = [f"{KEY}.{room}: found no such room. Remove it." for room in budgets if room not in counts]
    return [*over, *without, *gone]


def main(arguments: list[str]) -> int:
    """Print the faults, or with --counts every room."""
    texts = {room: [file.read_text(encoding="utf-8") for file in files] for room, files in rooms().items()}
    counts = {room: sum(len(text.splitlines()) for text in room_texts) for room, room_texts in texts.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    budgets: dict[str, int] = project["tool"]["roost"]["budgets"]
    if arguments == ["--counts"]:
        classes = {room: sum(len(_CLASS.findall(text)) for text in room_texts) for room, room_texts in texts.items()}
        for room, lines in counts.items():
            print(f"{room:32} {lines:6} lines {classes[room]:4} classes, budget {budgets.get(room, 0)}")
        print(f"{'together':32} {sum(counts.values()):6} lines {sum(classes.values()):4} classes")
        return 0
    found = faults(counts, budgets)
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
