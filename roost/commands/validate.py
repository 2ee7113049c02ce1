"""`roost validate`: every fault, warning and hint of a set of values."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from generator.checks.schema import find_faults
from generator.faults import Fault, UsageError, sort_faults
from generator.pipeline import report
from generator.values.files import read_what_loads
from generator.values.release import check_release

if TYPE_CHECKING:
    from roost.commands.render import RenderOptions


def run(options: RenderOptions, *, strict: bool) -> int:
    """Print faults, warnings and hints to stdout, one per line; 0 if there are no faults (strict: and no warnings)."""
    faults, unread = _find(options)
    ordered = sort_faults(faults)
    for fault in ordered:
        sys.stdout.write(f"{fault}\n")
    errors = sum(fault.severity == "error" for fault in ordered)
    warnings = sum(fault.severity == "warning" for fault in ordered)
    if errors or warnings:
        sys.stderr.write(f"{_count(errors, 'error')}, {_count(warnings, 'warning')}\n")
    else:
        sys.stderr.write("no faults\n")
    if unread:
        raise UsageError("\n".join(map(str, unread)))
    return 1 if errors or (strict and warnings) else 0


def _find(options: RenderOptions) -> tuple[list[Fault], list[UsageError]]:
    """Faults, and the errors of files that can't be read."""
    check_release(options.release)
    merged, faults, unread = read_what_loads(options.files, options.settings)
    if faults or unread:
        # When a file is missing, check the others against the schema only, not across keys.
        return [*faults, *find_faults(merged)], unread
    return report(merged, options.release), []


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
