"""What the host network shares: ports, and its nodes' names."""

from __future__ import annotations

from typing import Final

from generator.checks.contract import LintReport, at, of_core_pod
from generator.faults import describe
from generator.values.helm_release import Release

# What may be on the host network: its key, what turns it on, its ports. `metricsPort` is of
# `corePods`.
_PROGRAMS: Final = (
    ("scheduler", ("scheduler", "target"), "deploy", ("port",)),
    ("webhook", ("admission", "mode"), "webhook", ("port", "metricsPort")),
    ("controllers", ("controllers", "enabled"), True, ("metricsPort",)),
    ("recorder", ("recorder", "enabled"), True, ("metricsPort",)),
    ("seating", ("seating", "enabled"), True, ("metricsPort",)),
)


def check(report: LintReport, _release: Release) -> None:
    """Find ports that programs on the host network share: Kubernetes treats them as ports of the
    node.
    """
    first: dict[object, str] = {}
    for part, switch, on, keys in _PROGRAMS:
        if at(report.values, *switch) != on or of_core_pod(report, part, "hostNetwork") is not True:
            continue
        for key in keys:
            port = of_core_pod(report, part, key) or at(report.values, part, key)
            other = first.setdefault(port, f"{part}.{key}")
            # Two ports of one program are checked elsewhere.
            if not other.startswith(f"{part}."):
                reason = (
                    f"{other} is {describe(port)} too, and both are on the host network: no node"
                    " takes a pod of each, and where nodes are few one stays Pending."
                )
                report.warn((part, key), reason, "Use another port.")
        if part == "scheduler":
            reason = (
                "the webhook can't tell if the scheduler that leads has the values' profiles"
                " (docs/beliefs.md)."
            )
            report.warn(
                (part, "hostNetwork"), reason, "Add a profile in one upgrade, use it in the next."
            )
