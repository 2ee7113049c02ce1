"""Checks of the values: each file is a check that the table has, or a helper of the checks."""

import pkgutil
from importlib import import_module

from generator import checks

HELPERS = {"contract", "terms"}


def test_the_table_has_the_check_of_every_file() -> None:
    files = {module.name for module in pkgutil.iter_modules(checks.__path__)} - HELPERS
    assert {import_module(f"generator.checks.{name}").check for name in files} == {*checks.CHECKS, *checks.HINTS}
    assert len(files) == len(checks.CHECKS + checks.HINTS)
