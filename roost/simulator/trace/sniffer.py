"""Read launches from scheduler-sniffer's log: pods seen, and when they were scheduled, started and stopped.

The log names no images. Pods are told to share one by the part of their names that is not generated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from roost.recorder.answers.sniffer_log import SnifferReport, read_lines
from roost.recorder.store.records import Phase, PhaseRecord, PodRecord, Record
from roost.simulator.trace.records import EXACT, LaunchDetails
from roost.simulator.trace.records import Record as Timed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_US: Final = 1_000_000
# BinderHub's user names: owner, name and eight random characters, hyphens as KubeSpawner writes them.
_BINDER: Final = re.compile(r"(jupyter-.+?)-(?:2d)?[a-z0-9]{8}(?:---[a-f0-9]{8})?")
# What controllers add: a ReplicaSet's hash and five characters, five characters, or a number.
_GENERATED: Final = re.compile(
    r"(.+?)(?:-[bcdfghjklmnpqrstvwxz2456789]{8,10})?-(?:[bcdfghjklmnpqrstvwxz2456789]{5}|\d+)"
)
# From asking to running, in the order in which they tell when a server was ready.
_BEGINS: Final = (Phase.READY, Phase.STARTED, Phase.SCHEDULED)


def read_log(lines: Iterable[str], report: SnifferReport) -> tuple[list[Timed], int]:
    """(records in order of time, pods without any time); `report` tells of the lines. Holds one entry a pod.

    Their lines are below 1: many lines make one launch.
    """
    pods: dict[str, PodRecord] = {}
    phases: dict[str, dict[Phase, int]] = {}
    for record in read_lines(lines, report):
        _keep(record, pods, phases)
    timed = [
        Timed(pod.created_us / _US, -number, EXACT, _launch(pod, phases.get(uid, {})))
        for number, (uid, pod) in enumerate(pods.items(), start=1)
        if pod.created_us > 0
    ]
    return sorted(timed), len(pods) - len(timed)


def workload_of(name: str) -> str:
    """The part of a pod's name that its fellows share."""
    for pattern in (_BINDER, _GENERATED):
        match = pattern.fullmatch(name)
        if match is not None:
            return match.group(1)
    return "jupyter" if name.startswith("jupyter-") else name


def _keep(record: Record, pods: dict[str, PodRecord], phases: dict[str, dict[Phase, int]]) -> None:
    if isinstance(record, PodRecord):
        pods[record.uid] = record
    elif isinstance(record, PhaseRecord):
        phases.setdefault(record.pod_uid, {})[record.phase] = record.at_us


def _launch(pod: PodRecord, reached: Mapping[Phase, int]) -> LaunchDetails:
    workload = workload_of(pod.name)
    begin_us = next((reached[phase] for phase in _BEGINS if phase in reached), None)
    end_us = reached.get(Phase.TERMINATING, pod.deleted_us)
    seconds = None
    if begin_us is not None and end_us is not None and end_us >= begin_us:
        seconds = (end_us - begin_us) / _US
    return LaunchDetails(workload, workload, session_seconds=seconds)
