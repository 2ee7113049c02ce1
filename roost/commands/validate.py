"""`roost validate`: every fault and warning of a set of values."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from generator.faults import Fault, ValuesError, sort_faults
from generator.lint import lint
from generator.release import check_release
from generator.render import render
from generator.schema import find_faults
from generator.values import read_values

if TYPE_CHECKING:
    from roost.plain_render import RenderOptions


def run(options: RenderOptions, *, strict: bool) -> int:
    """Print faults and warnings to stdout, one a line; 0 when there is no fault (`strict`: and no warning)."""
    found = sort_faults(_find(options))
    for fault in found:
        sys.stdout.write(f"{fault}\n")
    errors = sum(fault.severity == "error" for fault in found)
    warnings = len(found) - errors
    if found:
        sys.stderr.write(f"{_count(errors, 'error')}, {_count(warnings, 'warning')}\n")
    else:
        sys.stderr.write("no faults\n")
    return 1 if errors or (strict and warnings) else 0


def _find(options: RenderOptions) -> list[Fault]:
    check_release(options.release)
    try:
        merged = read_values(options.files, options.settings)
        faults = find_faults(merged)
        # The lint reads values of the right shape only.
        if not faults:
            faults = lint(merged, options.release)
        if all(fault.severity == "warning" for fault in faults):
            render(merged.values, options.release)
    except ValuesError as error:
        return error.faults
    return faults


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
