"""`roost doctor` ends in a sentence: whether users are affected, and what to do first."""

from pkgutil import iter_modules
from typing import Any

import pytest

from roost.commands.doctor import _as_text, _exit_code
from roost.doctor import checks
from roost.doctor.checks import BEFORE, FELT_CHECKS, INSTALLED
from roost.doctor.findings import CheckOutcome, Finding, Severity
from tests.recorded_data import rows


def outcome(check: str, severity: Severity, is_felt: bool = False) -> CheckOutcome:
    finding = Finding(severity, "seen", f"Mend {check}.", is_felt=is_felt)
    return CheckOutcome(check, "", (finding,))


@pytest.mark.parametrize(("found", "said"), rows("doctor/last-lines"))
def test_the_last_line_says_whether_users_feel_it(found: list[Any], said: str) -> None:
    assert _as_text([outcome(*one) for one in found], before=False).splitlines()[-1] == said


@pytest.mark.parametrize(("found", "said"), rows("doctor/last-lines"))
def test_whatever_says_that_users_are_affected_exits_with_1(found: list[Any], said: str) -> None:
    outcomes = [outcome(*one) for one in found]
    has_error = any(one.findings[0].severity == "error" for one in outcomes)
    expected = 1 if has_error or said.startswith("Users are affected") else 0
    assert _exit_code(outcomes, before=False) == expected
    assert _exit_code(outcomes, before=True) == int(has_error)


def test_what_users_feel_comes_first_and_what_is_well_last() -> None:
    found: dict[str, Severity] = {
        "switches": "warning",
        "features": "unknown",
        "leaders": "error",
        "nodes": "warning",
    }
    outcomes = [
        CheckOutcome("version", "1.37", ()),
        *(outcome(check, one) for check, one in found.items()),
    ]
    lines = _as_text(outcomes, before=False).splitlines()
    checks = [line.split()[1] for line in lines[:-1] if "Fix:" not in line]
    assert checks == ["nodes:", "leaders:", "switches:", "features:", "version:"]


@pytest.mark.parametrize(("severity", "said"), rows("doctor/before-installs"))
def test_before_an_install_it_says_whether_it_can_go_ahead(severity: Severity, said: str) -> None:
    assert _as_text([outcome("rights", severity)], before=True).splitlines()[-1] == said


def test_what_users_feel_is_found_by_checks_that_there_are_and_each_file_is_in_a_table() -> None:
    assert INSTALLED.keys() >= FELT_CHECKS
    used = {
        check.__module__.rpartition(".")[2]
        for table in (INSTALLED, BEFORE)
        for check in table.values()
    }
    assert used == {module.name for module in iter_modules(checks.__path__)}
