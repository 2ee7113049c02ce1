"""Lint `scheduler.featureGates`: kube-scheduler doesn't start with a gate that its minor doesn't
know or has locked.
"""

from __future__ import annotations

from generator.checks.contract import LintReport, mapping, text
from generator.render.functions import minor_for_cluster
from generator.values.helm_release import Release, kube_minor
from roost_core.scheduler.plugins import GATES, MODELLED, is_on


def scheduler_minor(scheduler: dict[str, object], release: Release) -> int:
    """The minor of the kube-scheduler that is deployed: 37 for v1.37.2."""
    image = mapping(scheduler.get("image"))
    tag = text(image.get("tag")) or minor_for_cluster(
        mapping(image.get("tags")), release.kube_minor
    )
    try:
        return kube_minor(tag)[1]
    except ValueError:
        # The tag of a custom image.
        return release.kube_minor[1]


def gates_of(scheduler: dict[str, object], release: Release) -> dict[str, bool]:
    """The gates that it gets."""
    by_minor = mapping(scheduler.get("featureGates"))
    chosen = mapping(by_minor.get(minor_for_cluster(by_minor, release.kube_minor)))
    return {gate: is_given for gate, is_given in chosen.items() if isinstance(is_given, bool)}


def check(report: LintReport, release: Release) -> None:
    """Check the gates that this cluster's kube-scheduler gets."""
    scheduler = mapping(report.values.get("scheduler"))
    if scheduler.get("target") != "deploy":
        return
    minor, given = scheduler_minor(scheduler, release), gates_of(scheduler, release)
    entry = minor_for_cluster(mapping(scheduler.get("featureGates")), release.kube_minor)
    for name, is_given in given.items():
        path, gate = ("scheduler", "featureGates", entry, name), GATES.get(name)
        if gate is None:
            reason = (
                f"{name} is not a feature gate that Roost knows: kube-scheduler doesn't start with"
                " an unknown one."
            )
            report.warn(path, reason, "See `kube-scheduler --help` of its minor.")
        elif minor < gate.since:
            fix = f"It came with 1.{gate.since}: give it under that minor."
            report.error(
                path,
                name,
                f"a feature gate of kube-scheduler 1.{minor}, which would not start",
                fix,
            )
        elif gate.until is not None and minor >= gate.until:
            fix = f'It went with 1.{gate.until}: give "1.{gate.until}" an entry without it.'
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
                ("scheduler", "featureGates", entry),
                f"{reason} a kube-scheduler that has it {wanted}.",
                fix,
            )
