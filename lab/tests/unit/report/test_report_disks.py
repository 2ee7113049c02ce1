"""What a report says of disks: pressure, evictions, images that went and were pulled again."""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.tests.moments import BEGIN as T
from lab.tests.moments import HOUR, MINUTE
from lab.tests.recorded import pod_record, pull_record
from lab.tests.unit.report.reported import report_of, tables_of
from roost_lab.recorder.store.records import (
    ImageRecord,
    NodeChangeRecord,
    NodeRecord,
    PreemptionRecord,
    Record,
)
from roost_lab.report.disks import PressureChange, pressure_spans
from roost_lab.report.statistics import Span

PRESSURE = "node.kubernetes.io/disk-pressure=:NoSchedule"
OTHER = "node.kubernetes.io/unreachable=:NoSchedule"


def node_record(name: str, created_us: int, **more: Any) -> NodeRecord:
    return NodeRecord(uid=name, name=name, created_us=created_us, **more)


def change(node: str, at_us: int, old: str, new: str) -> NodeChangeRecord:
    return NodeChangeRecord(
        node_uid=node,
        resource_version=str(at_us),
        field="taints",
        at_us=at_us,
        resolution_us=1,
        old=old,
        new=new,
    )


def image(node: str, name: str, gone_us: int | None) -> ImageRecord:
    return ImageRecord(node_uid=node, image=name, first_us=T, image_bytes=10**9, gone_us=gone_us)


def eviction(uid: str, node: str, at_us: int, kind: str = "evicted") -> PreemptionRecord:
    return PreemptionRecord(victim_uid=uid, node_name=node, at_us=at_us, kind=kind)


def disks(folder: Path, records: list[Record]) -> list[dict[str, Any]]:
    whole = [pod_record("p", created_us=T), *records]
    report = report_of(folder, whole, heard_us=T + 10 * HOUR)
    rows: list[dict[str, Any]] = tables_of(report)["disks_by_node"]
    return rows


def test_pressure_removed_images_and_what_came_back_are_told_by_node(tmp_path: Path) -> None:
    found = disks(
        tmp_path,
        [
            node_record("full", T),
            node_record("well", T),
            node_record("gone", T, gone_us=T + 5 * HOUR),
            change("full", T + HOUR, OTHER, f"{PRESSURE}, {OTHER}"),
            change("full", T + HOUR + MINUTE, f"{PRESSURE}, {OTHER}", PRESSURE),
            change("full", T + HOUR + 10 * MINUTE, PRESSURE, ""),
            change("full", T + 3 * HOUR, "", PRESSURE),
            change("full", T + 3 * HOUR + 5 * MINUTE, PRESSURE, ""),
            change("well", T + HOUR, "", OTHER),
            # Removed; its digest is another name of the same.
            image("full", "quay.io/a:1", T + HOUR),
            image("full", "quay.io/a@sha256:00", T + HOUR),
            image("full", "quay.io/b:1", T + 2 * HOUR),
            image("full", "quay.io/c:1", None),
            # Went with its node.
            image("gone", "quay.io/a:1", T + 5 * HOUR),
            pull_record("before", T + MINUTE, "quay.io/a:1", node_name="full", warm=False),
            pull_record("again", T + 2 * HOUR, "quay.io/a:1", node_name="full", warm=False),
            pull_record("warm", T + 3 * HOUR, "quay.io/a:1", node_name="full", warm=True),
            pull_record("elsewhere", T + 3 * HOUR, "quay.io/a:1", node_name="well", warm=False),
            eviction("e1", "full", T + HOUR + MINUTE),
            eviction("e2", "full", T + HOUR + 10 * MINUTE + 30_000_000),
            eviction("by-hand", "full", T + 2 * HOUR),
            eviction("for-a-user", "full", T + HOUR + MINUTE, "preempted"),
            eviction("other", "well", T + HOUR + MINUTE),
        ],
    )
    assert found == [
        {
            "node": "full",
            "pressure_seconds": 900.0,
            "pressures": 2,
            "evicted": 2,
            "removed": 2,
            "removed_bytes": 2 * 10**9,
            "pulled_again": 1,
        }
    ]


def test_a_node_that_is_under_pressure_since_before_or_until_now_counts(tmp_path: Path) -> None:
    found = disks(
        tmp_path,
        [
            node_record("always", T - HOUR, taints=PRESSURE),
            node_record("before", T - HOUR),
            change("before", T + HOUR, PRESSURE, ""),
            node_record("since", T - HOUR, taints=PRESSURE),
            change("since", T + 8 * HOUR, "", PRESSURE),
        ],
    )
    seconds = {row["node"]: round(row["pressure_seconds"]) for row in found}
    assert seconds == {"always": 36_000, "before": 3600, "since": 7200}


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    states=st.lists(st.booleans(), min_size=2, max_size=12),
    gaps=st.lists(st.integers(1, 1000), min_size=12, max_size=12),
)
def test_spans_hold_exactly_the_time_under_pressure(states: list[bool], gaps: list[int]) -> None:
    moments = [sum(gaps[: index + 1]) for index in range(len(states))]
    changes = [
        PressureChange(moments[index], before=states[index - 1], after=states[index])
        for index in range(1, len(states))
        if states[index - 1] or states[index]
    ]
    end = moments[-1] + 7
    found = pressure_spans(changes, 0, end, is_under=states[-1])
    # What holds until the first change held since the node's beginning.
    expected = 0
    edges = [0, *moments[1:], end]
    for index, state in enumerate(states):
        expected += state * (edges[index + 1] - edges[index])
    assert sum(span.to_us - span.from_us for span in found) == expected
    assert found == sorted(found)
    assert all(isinstance(span, Span) and span.from_us < span.to_us for span in found)
