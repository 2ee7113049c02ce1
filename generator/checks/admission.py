"""Admission by policy: what it can't do."""

from __future__ import annotations

from typing import Final

from generator.checks.contract import LintReport, Phrase, at, mapping
from generator.values.helm_release import Release

# MutatingAdmissionPolicy is v1 from here on.
_POLICY_MINOR: Final = (1, 36)


def check(report: LintReport, release: Release) -> None:
    """Find what an admission policy can't do for these classes, or on this cluster."""
    if at(report.values, "admission", "mode") != "policy":
        return
    path = ("admission", "mode")
    if release.kube_minor < _POLICY_MINOR:
        expected = f"webhook or none for Kubernetes {release.kube_version}"
        fix = "policy needs 1.36: give the cluster's version with --kube-version."
        report.error(path, Phrase('"policy"'), expected, fix)
    for name, entry in mapping(report.values.get("podClasses")).items():
        if at(entry, "home") is not None:
            reason = "admission policies have no ring: pods of this class get no home."
            report.warn(
                ("podClasses", name, "home"),
                reason,
                "Set it to null, or use admission.mode: webhook.",
            )
        if at(entry, "warm") is not None and not report.is_default(("podClasses", name, "warm")):
            reason = "admission policies don't know nodes: pods of this class get no warm set."
            report.warn(
                ("podClasses", name, "warm"),
                reason,
                "Set it to null, or use admission.mode: webhook.",
            )
        if (
            at(entry, "imageGate") is True
            and at(report.values, "imageGate", "mode") == "requireLabel"
        ):
            reason = (
                "an admission policy can't see whether the controllers run: the gate only prefers"
                " nodes with the image."
            )
            report.warn(("podClasses", name, "imageGate"), reason, "Use admission.mode: webhook.")
