"""The image gate: what makes it require nothing, see nothing, or wait for too long."""

from __future__ import annotations

from typing import Final

from generator.checks.contract import LintReport
from generator.checks.placeholders import is_wanted, placeholder_sets
from generator.values.lookups import child, mapping, number, text
from generator.values.release_name import Release

# A user waits twice as long where the first node that is opened is the wrong one.
_PATIENT_SECONDS: Final = 15


def check(report: LintReport, _release: Release) -> None:
    """Find what makes the image gate prefer where it should require, or keeps it from seeing
    pullers.
    """
    with report.part():
        _lint_patience(report)
    mode = child(report.values, "imageGate", "mode")
    classes = mapping(report.values.get("podClasses"))
    gated = [entry for entry in classes.values() if child(entry, "imageGate") is True]
    if not gated:
        return
    has_other_namespaces = any(
        child(entry, "match", "namespaceSelector") is not None for entry in gated
    )
    puller_pods = child(report.values, "imageGate", "pullerPods")
    if puller_pods == "zeroToJupyterHub" and has_other_namespaces:
        reason = (
            "zeroToJupyterHub with a namespaceSelector: pullers outside of the release's namespace"
            " aren't seen."
        )
        report.warn(
            ("imageGate", "pullerPods"), reason, "Use roost, with prePuller.enabled, for all hubs."
        )
    has_placeholders = any(map(is_wanted, placeholder_sets(report)))
    is_pulled = child(report.values, "prePuller", "enabled") is True
    if mode in {"prefer", "off"} and is_pulled and has_placeholders:
        moved = ""
        if child(report.values, "placeholderMover", "enabled"):
            moved = ", to which placeholderMover attracts them"
        reason = (
            f"{text(mode)} with placeholders: a user who pre-empts one is put on its node whether"
            " that holds the image or not, since pre-emption ignores scores and takes the newest"
            f" node{moved}."
        )
        report.warn(("imageGate", "mode"), reason, "Use requireLabel.")
    if mode == "requireLabel" and child(report.values, "webhook", "readNodes") is False:
        has_warm_set = any(child(entry, "warm") for entry in classes.values())
        also = ", and no class has a warm set" if has_warm_set else ""
        reason = (
            "false: the webhook doesn't know which nodes have an image, so requireLabel only"
            f" prefers{also}."
        )
        report.warn(
            ("webhook", "readNodes"), reason, "Set it to true where a cluster role may be granted."
        )


def _lint_patience(report: LintReport) -> None:
    """Warn of what makes users wait longer than they would without Roost."""
    gate = mapping(report.values.get("imageGate"))
    requires_labels = (
        gate.get("mode") == "requireLabel"
        and child(report.values, "admission", "mode") == "webhook"
        and child(report.values, "controllers", "enabled") is True
    )
    if not requires_labels:
        return
    if number(gate.get("openAfterSeconds")) > _PATIENT_SECONDS:
        reason = (
            f"above {_PATIENT_SECONDS}, a user may start more than 30 s later than without Roost."
        )
        report.warn(("imageGate", "openAfterSeconds"), reason, f"Use {_PATIENT_SECONDS} or less.")
