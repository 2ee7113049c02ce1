"""Lint `scheduler.featureGates`: kube-scheduler doesn't start with a gate that its minor doesn't
know or has locked.
"""

from __future__ import annotations

from generator.checks.contract import LintReport, mapping, text
from generator.faults import Path
from generator.render.functions import for_cluster, minor_for_cluster
from generator.render.kube_scheduler import SCHEDULER_GATES, SCHEDULER_TAGS
from generator.values.helm_release import Release, kube_minor
from roost_core.scheduler.plugins import GATES, MODELLED, is_on


def scheduler_minor(scheduler: dict[str, object], release: Release) -> int:
    """The minor of the kube-scheduler that is deployed: 37 for v1.37.2."""
    tag = text(mapping(scheduler.get("image")).get("tag"))
    try:
        return kube_minor(tag or str(for_cluster(SCHEDULER_TAGS, release.kube_minor)))[1]
    except ValueError:
        # The tag of a custom image.
        return release.kube_minor[1]


def gates_of(scheduler: dict[str, object], release: Release) -> dict[str, bool]:
    """The gates that it gets: Roost's own, and the values'."""
    given = mapping(scheduler.get("featureGates"))
    own = SCHEDULER_GATES[minor_for_cluster(SCHEDULER_GATES, release.kube_minor)]
    return {**own, **{gate: is_on for gate, is_on in given.items() if isinstance(is_on, bool)}}


def check(report: LintReport, release: Release) -> None:
    """Check the gates that this cluster's kube-scheduler gets."""
    scheduler = mapping(report.values.get("scheduler"))
    if scheduler.get("target") != "deploy":
        return
    minor, given = scheduler_minor(scheduler, release), gates_of(scheduler, release)
    for name, is_given in given.items():
        path: Path = ("scheduler", "featureGates", name)
        gate = GATES.get(name)
        if gate is None:
            reason = (
                f"{name} is not a feature gate that Roost knows: kube-scheduler doesn't start with"
                " an unknown one."
            )
            report.warn(path, reason, "See `kube-scheduler --help` of its minor.")
        elif minor < gate.since:
            fix = f"It came with 1.{gate.since}: leave it out."
            report.error(
                path,
                name,
                f"a feature gate of kube-scheduler 1.{minor}, which would not start",
                fix,
            )
        elif gate.until is not None and minor >= gate.until:
            fix = f"It went with 1.{gate.until}: leave it out."
            report.error(
                path,
                name,
                f"a feature gate of kube-scheduler 1.{minor}, which would not start",
                fix,
            )
        elif (
            gate.locked_since is not None
            and minor >= gate.locked_since
            and is_given != gate.is_on(minor)
        ):
            expected = f"{str(gate.is_on(minor)).lower()}, as 1.{gate.locked_since} locked it"
            report.error(path, is_given, expected, "kube-scheduler would not start.")
    for name, modelled in MODELLED.items():
        if minor >= GATES[name].since and is_on(name, minor, given) != modelled:
            wanted = str(modelled).lower()
            reason = (
                f"{name} is {str(not modelled).lower()}: the mover, the recorder and the simulator"
                " go by"
            )
            fix = f"Set {name}: {wanted} for 1.{minor}."
            report.warn(
                ("scheduler", "featureGates"),
                f"{reason} a kube-scheduler that has it {wanted}.",
                fix,
            )
