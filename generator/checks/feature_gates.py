"""Lint `scheduler.featureGates`: kube-scheduler doesn't start with a gate that its minor doesn't
know or has locked.
"""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.faults import KeyPath
from generator.render.functions import for_cluster, minor_for_tag
from generator.render.kube_scheduler import SCHEDULER_GATES, SCHEDULER_TAGS, minor_of_tag
from generator.values.lookups import mapping, text
from generator.values.release_name import Release
from roost_core.scheduler.plugins import GATES, MODELLED, Gate, is_on


def scheduler_tag(scheduler: dict[str, object], release: Release) -> str:
    """The tag of the kube-scheduler that is deployed."""
    tag = text(mapping(scheduler.get("image")).get("tag"))
    return tag or str(for_cluster(SCHEDULER_TAGS, release.kube_minor))


def scheduler_minor(scheduler: dict[str, object], release: Release) -> int:
    """The minor of the kube-scheduler that is deployed: 37 for v1.37.2."""
    minor = minor_of_tag(scheduler_tag(scheduler, release))
    # The tag of a custom image.
    return release.kube_minor[1] if minor is None else minor


def gates_of(scheduler: dict[str, object], release: Release) -> dict[str, bool]:
    """The gates that it gets: Roost's own, and the values'; null there leaves a gate out."""
    tag = scheduler_tag(scheduler, release)
    own = SCHEDULER_GATES[minor_for_tag(SCHEDULER_GATES, tag, release.kube_minor)]
    gates = {**own, **mapping(scheduler.get("featureGates"))}
    return {gate: value for gate, value in gates.items() if isinstance(value, bool)}


def check(report: LintReport, release: Release) -> None:
    """Check the gates that this cluster's kube-scheduler gets."""
    scheduler = mapping(report.values.get("scheduler"))
    if scheduler.get("target") != "deploy":
        return
    minor = scheduler_minor(scheduler, release)
    given = gates_of(scheduler, release)
    for name, is_given in mapping(scheduler.get("featureGates")).items():
        if is_given is None:
            continue
        path: KeyPath = ("scheduler", "featureGates", name)
        gate = GATES.get(name)
        if gate is None:
            reason = (
                f"{name} is not a feature gate that Roost knows: kube-scheduler doesn't start with"
                " an unknown one."
            )
            report.warn(path, reason, "See `kube-scheduler --help` of its minor.")
        elif minor < gate.since:
            fix = f"It came with 1.{gate.since}, and kube-scheduler would not start: leave it out."
            report.error(path, name, f"a feature gate that kube-scheduler 1.{minor} has", fix)
        elif gate.until is not None and minor >= gate.until:
            fix = f"It went with 1.{gate.until}, and kube-scheduler would not start: leave it out."
            report.error(path, name, f"a feature gate that kube-scheduler 1.{minor} has", fix)
        elif _is_locked(gate, minor) and is_given != gate.is_on(minor):
            expected = f"{str(gate.is_on(minor)).lower()}, as 1.{gate.locked_since} locked it"
            report.error(path, is_given, expected, "kube-scheduler would not start.")
    for name, modelled in MODELLED.items():
        if minor >= GATES[name].since and is_on(name, minor, given) != modelled:
            found = str(not modelled).lower()
            wanted = str(modelled).lower()
            reason = (
                f"{name} is {found}: the mover, the recorder and the simulator go by a"
                f" kube-scheduler that has it {wanted}."
            )
            fix = f"Set {name}: {wanted} for 1.{minor}."
            report.warn(("scheduler", "featureGates"), reason, fix)


def _is_locked(gate: Gate, minor: int) -> bool:
    return gate.locked_since is not None and minor >= gate.locked_since
