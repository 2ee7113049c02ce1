"""Admission by policy: what it can't do."""

from __future__ import annotations

from generator.checks.contract import LintReport, Phrase, at, mapping
from generator.values.helm_release import Release
from roost_core.release.policy_mode import GATE_REASON, LEFT_OUT, POLICY_MINOR


def check(report: LintReport, release: Release) -> None:
    """Find what an admission policy can't do for these classes, or on this cluster."""
    if at(report.values, "admission", "mode") != "policy":
        return
    path = ("admission", "mode")
    if release.kube_minor < POLICY_MINOR:
        expected = f"webhook or none for Kubernetes {release.kube_version}"
        fix = "policy needs 1.36: give the cluster's version with --kube-version."
        report.error(path, Phrase('"policy"'), expected, fix)
    is_required = at(report.values, "imageGate", "mode") == "requireLabel"
    for name, entry in mapping(report.values.get("podClasses")).items():
        for part in LEFT_OUT:
            key = ("podClasses", name, part.key)
            is_used = part.reason and at(entry, part.key) is not None
            if is_used and (part.says_of_defaults or not report.is_default(key)):
                fix = "Set it to null, or use admission.mode: webhook."
                report.warn(key, part.reason, fix)
        if at(entry, "imageGate") is True and is_required:
            report.warn(
                ("podClasses", name, "imageGate"), GATE_REASON, "Use admission.mode: webhook."
            )
