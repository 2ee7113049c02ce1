"""From merged values to objects: release, schema, lint, render. Every command and the importer use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator.checks.all_faults import find_all_faults
from generator.checks.hints import find_hints
from generator.checks.lint import lint
from generator.checks.schema import find_faults
from generator.faults import Fault, ValuesError, sort_faults
from generator.values.release import Release, check_release

if TYPE_CHECKING:
    from generator.render.manifests import Manifest
    from generator.values.merge import Merged


def judge(merged: Merged, release: Release, *, with_lint: bool = True) -> list[Fault]:
    """Faults and warnings, unsorted: the schema's, or, if the values match the schema, the lint's."""
    return find_faults(merged) or (lint(merged, release) if with_lint else [])


def check(merged: Merged, release: Release, *, with_lint: bool = True) -> list[Fault]:
    """The warnings, sorted. Raises UsageError for an invalid release, ValuesError with every error."""
    check_release(release)
    faults = judge(merged, release, with_lint=with_lint)
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise ValuesError(errors)
    return sort_faults(faults)


def report(merged: Merged, release: Release) -> list[Fault]:
    """Every fault, warning and hint, unsorted, also for values that don't match the schema. Raises UsageError."""
    check_release(release)
    faults = find_all_faults(merged, release)
    if all(fault.severity == "warning" for fault in faults):
        faults += find_hints(merged)
        try:
            _render(merged, release)
        except ValuesError as error:
            return [*faults, *error.faults]
    return faults


def make(merged: Merged, release: Release, *, with_lint: bool = True) -> tuple[list[Manifest], list[Fault]]:
    """Manifests and warnings. Raises as `check` does, and ValuesError for faults that only a template finds.

    with_lint: False for values that are rendered but never installed.
    """
    warnings = check(merged, release, with_lint=with_lint)
    return _render(merged, release), warnings


def _render(merged: Merged, release: Release) -> list[Manifest]:
    from generator.render.manifests import render  # noqa: PLC0415 - checking alone needs no Jinja2

    return render(merged.values, release)
