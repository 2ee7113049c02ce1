"""Admission by policy: what it can't do."""

from __future__ import annotations

from generator.checks.contract import LintReport, Phrase
from generator.checks.faulty_keys import sound_items
from generator.values.lookups import child
from generator.values.release_name import Release
from roost_core.release.policy_mode import GATE_REASON, LEFT_OUT, POLICY_MINOR, LeftOut


def check(report: LintReport, release: Release) -> None:
    """Find what an admission policy can't do for these classes, or on this cluster."""
    if child(report.values, "admission", "mode") != "policy":
        return
    path = ("admission", "mode")
    if release.kube_minor < POLICY_MINOR:
        expected = f"webhook or none for Kubernetes {release.kube_version}"
        fix = "policy needs 1.36: give the cluster's version with --kube-version."
        report.error(path, Phrase('"policy"'), expected, fix)
    for name, entry in sound_items(report.values.get("podClasses")):
        for part in LEFT_OUT:
            with report.part():
                _lint_left_out(report, name, entry, part)
        with report.part():
            is_required = child(report.values, "imageGate", "mode") == "requireLabel"
            if is_required and child(entry, "imageGate") is True:
                key = ("podClasses", name, "imageGate")
                report.warn(key, GATE_REASON, "Use admission.mode: webhook.")


def _lint_left_out(report: LintReport, name: str, entry: object, part: LeftOut) -> None:
    key = ("podClasses", name, part.key)
    if not part.reason or child(entry, part.key) is None:
        return
    if part.says_of_defaults or not report.is_default(key):
        report.warn(key, part.reason, "Set it to null, or use admission.mode: webhook.")
