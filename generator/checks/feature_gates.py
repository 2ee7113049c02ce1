"""Lint `scheduler.featureGates`: kube-scheduler doesn't start with a gate that its minor doesn't
know or has locked.
"""

from __future__ import annotations

from generator.checks.contract import LintReport
from generator.faults import KeyPath
from generator.render.deployed_scheduler import gates_of, scheduler_minor
from generator.values.lookups import mapping
from generator.values.release_name import Release
from roost_core.scheduler.plugins import GATES, MODELLED, Gate, is_on


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
