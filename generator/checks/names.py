"""Names and labels together: a release whose Service can't have its name, and labels that make
Roost's own pods somebody else's.

What a name alone may be is in `chart/values.schema.json`.
"""

from __future__ import annotations

from typing import Final

from generator.checks.contract import LintReport, named_by, of_core_pod
from generator.checks.faulty_keys import sound_items
from generator.values.lookups import child, mapping, text
from generator.values.merge import Values
from generator.values.release_name import Release

# The values' keys of components whose pods are Roost's own, and have labels.
_COMPONENTS: Final = ("scheduler", "webhook", "controllers", "recorder", "seating", "prePuller")


def check(report: LintReport, release: Release) -> None:
    """Find a name that no Service may have, labels that Roost sets itself, and labels that put
    Roost's own pods into a class.
    """
    with report.part():
        _lint_first_letter(report, release)
    common = mapping(report.values.get("commonLabels"))
    for key in common:
        if key.startswith("app.kubernetes.io/"):
            report.warn(
                ("commonLabels", key), "Roost sets this label itself, and wins.", "Remove it."
            )
    for name, entry in sound_items(report.values.get("podClasses")):
        for component in _COMPONENTS:
            with report.part():
                labels = mapping(child(entry, "match", "labels"))
                _lint_own_pods(report, name, labels, component)


def _lint_first_letter(report: LintReport, release: Release) -> None:
    name = text(report.values.get("fullnameOverride")) or release.name
    if child(report.values, "admission", "mode") == "webhook" and name[:1].isdigit():
        reason = (
            f"the Service's name would begin with a digit ({name}), which the API server rejects."
        )
        report.refuse(("fullnameOverride",), reason, "Set it to a name that begins with a letter.")


def _lint_own_pods(report: LintReport, name: str, labels: Values, component: str) -> None:
    common = mapping(report.values.get("commonLabels"))
    is_core = component != "prePuller"
    if is_core:
        given = of_core_pod(report, component, "labels")
    else:
        given = child(report.values, component, "labels")
    if labels and labels.items() <= {**common, **mapping(given)}.items():
        own_path = named_by(report, component, "labels") if is_core else (component, "labels")
        is_common = labels.items() <= common.items()
        where = ("commonLabels",) if is_common else own_path
        reason = f"Roost's own pods would belong to podClasses.{name}."
        report.refuse(where, reason, f"Remove {', '.join(labels)}.")
