"""From merged values to objects, in three steps: read (values/), find faults, render.

Every command and the importer use it.
"""

from __future__ import annotations

from generator import checks
from generator.faults import Fault, ValuesError, raise_errors
from generator.render import manifests
from generator.render.manifests import Manifest
from generator.schema.check import find_faults_by_path
from generator.values.merge import Merged
from generator.values.release_name import Release


def find_faults(merged: Merged, release: Release, *, with_hints: bool = False) -> list[Fault]:
    """Every fault and warning, unsorted: the schema's, and those across keys.

    A check across keys isn't run if a key that it reads doesn't fit the schema.
    with_hints: if the values have no errors, hints follow, and what only a template refuses.
    """
    unfit = find_faults_by_path(merged)
    faults = [*unfit.values(), *checks.find_faults(merged, release, unfit)]
    if not with_hints or any(fault.severity == "error" for fault in faults):
        return faults
    faults += checks.find_hints(merged, release)
    try:
        manifests.render(merged.values, release)
    except ValuesError as error:
        faults += error.faults
    return faults


def render(merged: Merged, release: Release) -> tuple[list[Manifest], list[Fault]]:
    """Manifests and warnings, both sorted.

    Raises ValuesError with every error of the values, or with what a template refuses.
    """
    warnings = raise_errors(find_faults(merged, release))
    return manifests.render(merged.values, release), warnings
