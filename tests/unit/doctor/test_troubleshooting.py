"""docs/troubleshooting.md and `roost doctor` tell of the same checks, and each symptom there names what finds it."""

from __future__ import annotations

import re
from pathlib import Path

from roost.cli import groups
from roost.doctor.checks import BEFORE, INSTALLED

PAGE = Path(__file__).resolve().parents[3] / "docs" / "troubleshooting.md"
# A cell's separator; "|" inside of code is none.
_CELL = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"`([^`]+)`")


def rows(head: str) -> list[list[str]]:
    """The cells of the table that begins with this line."""
    lines = PAGE.read_text().splitlines()
    start = lines.index(head) + 2
    found = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in _CELL.split(line.strip("|"))])
    return found


def test_the_table_of_checks_has_each_check_once_and_says_which_go_before_an_install() -> None:
    installed, before = dict(INSTALLED), dict(BEFORE)
    told: dict[str, bool] = {}
    for names, _, is_before in rows("| check | asks | before an install, too |"):
        for name in _CODE.findall(names):
            assert name not in told, name
            # A row for two says which of them.
            told[name] = bool(is_before) and (not _CODE.findall(is_before) or name in _CODE.findall(is_before))
    assert told.keys() == installed.keys() | before.keys()
    assert {name for name, is_before in told.items() if is_before} == before.keys()


def test_each_symptom_names_a_check_or_a_command_that_finds_it() -> None:
    known = {name for group in groups() for name in group.commands}
    checks = dict(INSTALLED)
    symptoms = rows("| symptom | check | meaning | found by |")
    assert len(symptoms) > 20
    for symptom, look, _, found_by in symptoms:
        named = _CODE.findall(found_by)
        assert named, (symptom, look)
        for name in named:
            command = name.removeprefix("roost ")
            assert name in checks or (command != name and command in known), (symptom, look, name)


def test_what_is_shown_of_a_run_has_each_check_before_an_install_in_order() -> None:
    run = PAGE.read_text().split("--before-install\n")[1].split("$ ")[0]
    shown = re.findall(r"^ok       ([a-z-]+): ", run, re.MULTILINE)
    assert shown == [name for name, _ in BEFORE]
