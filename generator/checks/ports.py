"""What the host network shares: ports, and its nodes' names."""

from __future__ import annotations

from typing import Final, NamedTuple

from generator.checks.contract import LintReport, of_core_pod
from generator.faults import describe
from generator.values.lookups import child
from generator.values.release_name import Release


class _Program(NamedTuple):
    """What may be on the host network."""

    # Its key in the values.
    part: str
    # The key that turns it on, and the value with which it does.
    switch: tuple[str, str]
    on: object
    # Its ports; `metricsPort` may be that of `corePods`.
    ports: tuple[str, ...]


_PROGRAMS: Final = (
    _Program("scheduler", ("scheduler", "target"), "deploy", ("port",)),
    _Program("webhook", ("admission", "mode"), "webhook", ("port", "metricsPort")),
    _Program("controllers", ("controllers", "enabled"), True, ("metricsPort",)),
    _Program("recorder", ("recorder", "enabled"), True, ("metricsPort",)),
    _Program("seating", ("seating", "enabled"), True, ("metricsPort",)),
)


def check(report: LintReport, _release: Release) -> None:
    """Find ports that programs on the host network share: Kubernetes treats them as ports of the
    node. Warn of a scheduler there, whose leader the webhook doesn't know.
    """
    # Port -> the first program that has it, and that program's key.
    taken: dict[object, tuple[_Program, str]] = {}
    for program in _PROGRAMS:
        # One program at a time: `of_core_pod` ends the whole check at a faulty key, and what was
        # found of earlier programs stays.
        if not _is_on_host_network(report, program):
            continue
        for key in program.ports:
            if key == "metricsPort":
                port = of_core_pod(report, program.part, key)
            else:
                port = child(report.values, program.part, key)
            other, other_key = taken.setdefault(port, (program, key))
            # Two ports of one program are checked in `webhook.py`.
            if other is not program:
                reason = (
                    f"{other.part}.{other_key} is {describe(port)} too, and both are on the host"
                    " network: no node takes a pod of each, and where nodes are few one stays"
                    " Pending."
                )
                report.warn((program.part, key), reason, "Use another port.")
        if program.part == "scheduler":
            _warn_of_unknown_leader(report)


def _warn_of_unknown_leader(report: LintReport) -> None:
    reason = (
        "the webhook can't tell if the scheduler that leads has the values' profiles"
        " (docs/beliefs.md)."
    )
    fix = "Add a profile in one upgrade, use it in the next."
    report.warn(("scheduler", "hostNetwork"), reason, fix)


def _is_on_host_network(report: LintReport, program: _Program) -> bool:
    is_on = child(report.values, *program.switch) == program.on
    return is_on and of_core_pod(report, program.part, "hostNetwork") is True
