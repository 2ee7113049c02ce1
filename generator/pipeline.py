"""From merged values to objects: release, schema, lint, render; every command and the importer go this way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator.checks.lint import lint
from generator.checks.schema import find_faults
from generator.faults import Fault, ValuesError, sort_faults
from generator.values.release import Release, check_release

if TYPE_CHECKING:
    from generator.render.manifests import Manifest
    from generator.values.merge import Merged


def judge(merged: Merged, release: Release) -> list[Fault]:
    """Faults and warnings, unsorted: the schema's, and where there are none the lint's, which needs values that fit."""
    return find_faults(merged) or lint(merged, release)


def check(merged: Merged, release: Release) -> list[Fault]:
    """The warnings, sorted. Raises UsageError for a release that can't be, ValuesError with every error."""
    check_release(release)
    faults = judge(merged, release)
    errors = [fault for fault in faults if fault.severity == "error"]
    if errors:
        raise ValuesError(errors)
    return sort_faults(faults)


def make(merged: Merged, release: Release) -> tuple[list[Manifest], list[Fault]]:
    """Manifests and warnings. Raises as `check` does, and ValuesError for what only a template finds."""
    from generator.render.manifests import render  # noqa: PLC0415 - who only checks needn't load Jinja2

    warnings = check(merged, release)
    return render(merged.values, release), warnings
