"""From merged values to objects: release, schema, lint, render.

Every command and the importer use it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from generator.checks import find_hints, lint
from generator.faults import Fault, Path, ValuesError, show_path, sort_faults
from generator.render.manifests import Manifest
from generator.schema.check import find_faults, find_faults_by_path
from generator.values.helm_release import Release
from generator.values.merge import Merged

_EXPRESSION: Final = {"key": "stand-in", "operator": "Exists"}
_EDGES: Final = {"name": "stand-in", "timeZone": "UTC", "start": "0 0 * * *"}
# What may stand for a value that doesn't match the schema where there is no default: one of each
# kind.
_STAND_INS: Final[tuple[object, ...]] = (
    *("stand-in", 1, 0.5, ["stand-in"], {}, "UTC", "0 0 * * *", _EXPRESSION),
    *(
        {"matchExpressions": [_EXPRESSION]},
        {"weight": 1, "preference": {"matchExpressions": [_EXPRESSION]}},
    ),
    *(
        {"name": "stand-in"},
        {"name": "stand-in", "replicas": 1},
        {**_EDGES, "replicas": 1, "end": "0 1 * * *"},
    ),
    {**_EDGES, "people": 1},
)


def judge(merged: Merged, release: Release) -> list[Fault]:
    """Faults and warnings, unsorted: the schema's, or, if the values match the schema, the
    lint's.
    """
    return find_faults(merged) or lint(merged, release)


def check(merged: Merged, release: Release) -> list[Fault]:
    """The warnings, sorted. Raises ValuesError with every error."""
    faults = judge(merged, release)
    if any(fault.severity == "error" for fault in faults):
        # All at once, as `report` says them.
        raise ValuesError(
            [fault for fault in find_all_faults(merged, release) if fault.severity == "error"]
        )
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
    """Manifests and warnings.

    Raises as `check` does, and ValuesError for faults that only a template finds.
    """
    from generator.render.manifests import render  # noqa: PLC0415 - as above

    warnings = check(merged, release)
    return render(merged.values, release), warnings


def find_all_faults(merged: Merged, release: Release) -> list[Fault]:
    """The schema's faults, and the lint's for all values that match the schema."""
    faults = find_faults_by_path(merged)
    fitting, mended = _mend(merged, faults, _STAND_INS)
    said = lint(fitting, release)
    if faults:
        # What is said of values that stand in for others is nobody's fault, nor what depends on
        # which do.
        whatever = {*lint(_mend(merged, faults, _STAND_INS[::-1])[0], release)}
        keys = [show_path(path) for path in mended]
        made = tuple(f"{key}{end}" for key in keys for end in ".[")
        said = [
            fault
            for fault in said
            if fault in whatever and fault.key not in keys and not fault.key.startswith(made)
        ]
    return [*faults.values(), *said]


def _mend(
    merged: Merged, faults: dict[Path, Fault], stand_ins: Sequence[object]
) -> tuple[Merged, set[Path]]:
    """Values that match the schema, with others in place of those that didn't, and the paths of
    these.
    """
    fitting = merged._replace(values=copy.deepcopy(merged.values))
    tried: dict[Path, int] = {}
    while faults:
        places = set()
        for path in faults:
            place = path
            # Where nothing fits, what is around it is replaced.
            while place and tried.setdefault(place, 0) > len(stand_ins):
                place = place[:-1]
            places.add(place)
        if () in places:
            # Nothing helps: lint the defaults.
            return merged._replace(values=copy.deepcopy(dict(merged.defaults))), {*tried}
        # A deep one first: what is around it may be replaced, too.
        for place in sorted(places, key=len, reverse=True):
            _put(fitting, place, stand_ins[tried[place] - 1 :][:1] if tried[place] else ())
            tried[place] += 1
        faults = find_faults_by_path(fitting)
    return fitting, {*tried}


def _put(fitting: Merged, path: Path, stand_in: Sequence[object]) -> None:
    """Put a stand-in at a path; where none is given the default, or nothing."""
    holder: Any = fitting.values
    default: Any = fitting.defaults
    for step in path[:-1]:
        holder = holder[step]
        default = default.get(step) if isinstance(default, dict) else None
    if isinstance(default, dict) and path[-1] in default and not stand_in:
        stand_in = [default[path[-1]]]
    if stand_in:
        holder[path[-1]] = copy.deepcopy(stand_in[0])
    elif isinstance(holder, dict):
        holder.pop(path[-1], None)
