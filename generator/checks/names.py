"""Names and labels: those that the API server rejects, and those that make Roost's own pods
somebody else's.
"""

from __future__ import annotations

from generator.checks.contract import LintReport, at, mapping, named_by, of_core_pod, text
from generator.values.helm_release import Release


def check(report: LintReport, release: Release) -> None:
    """Find names that the API server rejects, and labels that put Roost's own pods into a class."""
    override = text(report.values.get("fullnameOverride"))
    if (
        at(report.values, "admission", "mode") == "webhook"
        and (override or release.name)[:1].isdigit()
    ):
        name = override or release.name
        reason = (
            f"the Service's name would begin with a digit ({name}), which the API server rejects."
        )
        report.refuse(("fullnameOverride",), reason, "Set it to a name that begins with a letter.")
    common = mapping(report.values.get("commonLabels"))
    for key in common:
        if key.startswith("app.kubernetes.io/"):
            report.warn(
                ("commonLabels", key), "Roost sets this label itself, and wins.", "Remove it."
            )
    for name, entry in mapping(report.values.get("podClasses")).items():
        labels = mapping(at(entry, "match", "labels"))
        for part in ("scheduler", "webhook", "controllers", "recorder", "prePuller"):
            given = (
                at(report.values, part, "labels")
                if part == "prePuller"
                else of_core_pod(report, part, "labels")
            )
            if labels and labels.items() <= {**common, **mapping(given)}.items():
                own = (part, "labels") if part == "prePuller" else named_by(report, part, "labels")
                where = own if not labels.items() <= common.items() else ("commonLabels",)
                reason = f"Roost's own pods would belong to podClasses.{name}."
                report.refuse(where, reason, f"Remove {', '.join(labels)}.")
