"""Read launches from scheduler-sniffer's log: its pods, and when they were scheduled, started and stopped.

The log names no images: pods share one if the part of their names that isn't generated is the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from roost_lab.recorder.answers.sniffer_log import SnifferReport, read_lines
from roost_lab.recorder.store.records import Phase, PhaseRecord, PodRecord, Record
from roost_lab.traces.files import BROKEN
from roost_lab.traces.launch_line import EXACT, LaunchDetails, LaunchLine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from roost_lab.traces.counts import InputCounts

_US: Final = 1_000_000
_FORMAT: Final = "scheduler-sniffer"
# The standard library's JSON reader has no bound for depth but the interpreter's stack.
_MOST_BRACKETS: Final = 200
# BinderHub's user names: owner, name and eight random characters, hyphens as KubeSpawner writes them.
_BINDER: Final = re.compile(r"(jupyter-.+?)-(?:2d)?[a-z0-9]{8}(?:---[a-f0-9]{8})?")
# What controllers add: a ReplicaSet's hash and five characters, five characters, or a number.
_GENERATED: Final = re.compile(
    r"(.+?)(?:-[bcdfghjklmnpqrstvwxz2456789]{8,10})?-(?:[bcdfghjklmnpqrstvwxz2456789]{5}|\d+)"
)
# Phases that say when a server was ready, the best first.
_BEGINS: Final = (Phase.READY, Phase.STARTED, Phase.SCHEDULED)


def read_file(
    file: str, first: bytes, others: Iterator[bytes], number: int, counts: InputCounts
) -> Iterator[LaunchLine]:
    """The launches of a file from its line `first` on, the file's `number`th, in order of time."""
    report = SnifferReport()
    broken = ""

    def lines() -> Iterator[str]:
        nonlocal broken
        yield _decode(first)
        for text in others:
            counts.lines += 1
            broken = BROKEN.get(text, "")
            if not broken:
                yield _decode(text)

    launches, timeless = read_log(lines(), report)
    for reason, skipped in report.skipped.items():
        counts.skip(reason, file, number - 1 + report.first_skipped[reason], skipped)
    if broken:
        counts.skip(broken, file, number + report.lines)
    counts.used += report.lines - report.skipped.total()
    counts.formats[_FORMAT] = counts.formats.get(_FORMAT, 0) + report.lines
    if timeless:
        counts.note("pods without any time: not played", file, 0, timeless)
    yield from launches


def _decode(line: bytes) -> str:
    if line.count(b"[") + line.count(b"{") > _MOST_BRACKETS:
        return "too deep"
    return line.decode(errors="replace")


def read_log(lines: Iterable[str], report: SnifferReport) -> tuple[list[LaunchLine], int]:
    """(launches in order of time, number of pods without any time); fills `report` in. Memory holds one entry a pod.

    Their line numbers are below 1: many lines make one launch.
    """
    pods: dict[str, PodRecord] = {}
    phases: dict[str, dict[Phase, int]] = {}
    for record in read_lines(lines, report):
        _keep(record, pods, phases)
    launches = [
        LaunchLine(pod.created_us / _US, -number, EXACT, _launch(pod, phases.get(uid, {})))
        for number, (uid, pod) in enumerate(pods.items(), start=1)
        if pod.created_us > 0
    ]
    return sorted(launches), len(pods) - len(launches)


def workload_of(name: str) -> str:
    """The part of a pod's name that the pods of its workload share."""
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
