"""Find all faults at once: the schema's, and those across keys even if some values don't match the schema."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from generator.checks.lint import lint
from generator.checks.schema import find_faults_by_path
from generator.faults import Fault, Path, show_path

if TYPE_CHECKING:
    from generator.values.merge import Merged
    from generator.values.release import Release


def find_all_faults(merged: Merged, release: Release) -> list[Fault]:
    """The schema's faults, and the lint's for all values that match the schema."""
    faults = find_faults_by_path(merged)
    fitting, mended = _mend(merged, faults)
    keys = [show_path(path) for path in mended]
    said = [fault for fault in lint(fitting, release) if not any(_touch(fault.key, key) for key in keys)]
    return [*faults.values(), *said]


def _mend(merged: Merged, faults: dict[Path, Fault]) -> tuple[Merged, set[Path]]:
    """Values that match the schema, with defaults in place of those that didn't, and the paths of these."""
    fitting = merged._replace(values=copy.deepcopy(merged.values))
    mended: set[Path] = set()
    while faults:
        for path in faults:
            place = path
            # A place that is still faulty is replaced one level up; lists as a whole, to keep indexes valid.
            while place and (place in mended or isinstance(place[-1], int)):
                place = place[:-1]
            if not place:
                # Nothing helps: lint the defaults.
                return merged._replace(values=copy.deepcopy(dict(merged.defaults))), {*mended, *faults}
            mended |= {place, path}
            _put_default(fitting, place)
        faults = find_faults_by_path(fitting)
    return fitting, mended


def _put_default(fitting: Merged, path: Path) -> None:
    holder: object = fitting.values
    default: object = fitting.defaults
    for step in path[:-1]:
        if isinstance(holder, list) and isinstance(step, int) and step < len(holder):
            holder = holder[step]
        else:
            holder = holder.get(step) if isinstance(holder, dict) else None
        default = default.get(step) if isinstance(default, dict) else None
    if not isinstance(holder, dict):
        return
    if isinstance(default, dict) and path[-1] in default:
        holder[path[-1]] = copy.deepcopy(default[path[-1]])
    else:
        holder.pop(path[-1], None)


def _touch(one: str, other: str) -> bool:
    """Whether one key is the other, or above it."""
    shorter, longer = sorted((one, other), key=len)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))
