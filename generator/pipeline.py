"""From merged values to objects: release, schema, lint, render. Every command and the importer use it."""

from __future__ import annotations

import copy

from generator.checks import find_hints, lint
from generator.faults import Fault, Path, ValuesError, show_path, sort_faults
from generator.render.manifests import Manifest
from generator.schema.check import find_faults, find_faults_by_path
from generator.values.merge import Merged
from generator.values.release import Release


def judge(merged: Merged, release: Release) -> list[Fault]:
    """Faults and warnings, unsorted: the schema's, or, if the values match the schema, the lint's."""
    return find_faults(merged) or lint(merged, release)


def check(merged: Merged, release: Release) -> list[Fault]:
    """The warnings, sorted. Raises ValuesError with every error."""
    faults = judge(merged, release)
    if any(fault.severity == "error" for fault in faults):
        # All at once, as `report` says them.
        raise ValuesError([fault for fault in find_all_faults(merged, release) if fault.severity == "error"])
    return sort_faults(faults)


def report(merged: Merged, release: Release) -> list[Fault]:
    """Every fault, warning and hint, unsorted, also for values that don't match the schema."""
    faults = find_all_faults(merged, release)
    if all(fault.severity == "warning" for fault in faults):
        faults += find_hints(merged, release)
        from generator.render.manifests import render  # noqa: PLC0415 - faulty values need no Jinja2

        try:
            render(merged.values, release)
        except ValuesError as error:
            return [*faults, *error.faults]
    return faults


def make(merged: Merged, release: Release) -> tuple[list[Manifest], list[Fault]]:
    """Manifests and warnings. Raises as `check` does, and ValuesError for faults that only a template finds."""
    from generator.render.manifests import render  # noqa: PLC0415 - as above

    warnings = check(merged, release)
    return render(merged.values, release), warnings


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
        # Of two faults in one list, the second is mended with the first.
        earlier = frozenset(mended)
        for path in faults:
            place = path
            # A place that is still faulty is replaced one level up; lists as a whole, to keep indexes valid.
            while place and (place in earlier or isinstance(place[-1], int)):
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
