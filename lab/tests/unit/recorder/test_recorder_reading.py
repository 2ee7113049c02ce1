import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.tests.objects import Object, event_object, pod_object, pod_reading
from roost_core.objects.timestamps import read_span
from roost_core.release.pod_classes import KeySource
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.decision_records import read_reasons
from roost_lab.recorder.recording.pod_records import end_reason, steps_of
from roost_lab.recorder.recording.reading import PodReading, micros, read_event, read_node, read_pod
from roost_lab.recorder.store.records import DecisionRecord, Phase, PhaseRecord, PreemptionRecord, StoredState

BINDER = [{"name": "BINDER_REPO_URL", "value": "https://example.org/repo"}]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@given(st.datetimes(min_value=dt.datetime(1970, 1, 2), max_value=dt.datetime(2100, 1, 1)))  # noqa: DTZ001 - naive: UTC
def test_moments_are_exact_to_the_microsecond(moment: dt.datetime) -> None:
    text = moment.isoformat(timespec="microseconds") + "Z"
    assert micros(text) == (moment.replace(tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)
    assert micros(moment.isoformat(timespec="seconds") + "Z") == (micros(text) or 0) // 1_000_000 * 1_000_000


@pytest.mark.parametrize("text", [None, 5, "", "yesterday", "2026-11-21", "2026-11-21T10:00:00"])
def test_what_is_no_moment_is_none(text: object) -> None:
    assert micros(text) is None


def test_more_digits_than_microseconds_are_cut() -> None:
    assert micros("1970-01-01T00:00:01.9999999Z") == 1_999_999
    assert micros("1970-01-01T01:00:00.5+01:00") == 500_000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("257ms", 257_000),
        ("2.873s", 2_873_000),
        ("31m47.355s", 1_907_355_000),
        ("1h0m0s", 3_600_000_000),
        ("17µs", 17),
        ("0s", 0),
        ("", None),
        ("soon", None),
        ("3s ago", None),
    ],
)
def test_gos_spans_are_read(text: str, wanted: int | None) -> None:
    assert read_span(text) == wanted


def pod(**changes: Any) -> Object:
    status: Object = {
        "phase": "Running",
        "startTime": "2026-01-01T00:00:02Z",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"},
            {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-01-01T00:00:03Z"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:09Z"},
        ],
        "containerStatuses": [
            {
                "name": "notebook",
                "image": "docker.io/me/image:1",
                "imageID": "docker.io/me/image@sha256:abc",
                "state": {"running": {"startedAt": "2026-01-01T00:00:08Z"}},
            }
        ],
        **changes.pop("status", {}),
    }
    containers = [
        {
            "name": "notebook",
            "image": "me/image:1",
            "env": [{"name": "JUPYTERHUB_API_TOKEN", "value": "secret"}, *BINDER],
        }
    ]
    item = pod_object("jupyter-a", created="2026-01-01T00:00:00Z", on="node-a", status=status, containers=containers)
    item["metadata"] |= changes.pop("metadata", {})
    return {**item, **changes}


def binder_reading(item: Object) -> PodReading:
    found = read_pod(item, (KeySource("env", "BINDER_REPO_URL"),), {})
    assert found is not None
    return found


def test_each_phase_is_told_with_its_moment() -> None:
    seen = pod_reading(pod())
    start = micros("2026-01-01T00:00:00Z") or 0
    after = {key: (step.at_us - start) // 1_000_000 for key, step in steps_of(seen).items()}
    assert after == {
        (Phase.CREATED, ""): 0,
        (Phase.SCHEDULED, ""): 1,
        (Phase.ACCEPTED, ""): 2,
        (Phase.INITIALIZED, ""): 3,
        (Phase.STARTED, "notebook"): 8,
        (Phase.READY, ""): 9,
    }


def test_of_an_environment_only_the_named_variable_is_kept() -> None:
    seen = binder_reading(pod())
    assert seen.repo == "https://example.org/repo"
    assert "secret" not in repr(seen)


def test_deletion_began_a_grace_period_before_it_must_be_over() -> None:
    metadata = {"deletionTimestamp": "2026-01-01T00:01:30Z", "deletionGracePeriodSeconds": 30}
    seen = pod_reading(pod(metadata=metadata))
    assert seen.deletion_us == micros("2026-01-01T00:01:00Z")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"phase": "Succeeded"}, "finished"),
        ({"phase": "Failed"}, "failed"),
        ({"phase": "Failed", "reason": "Evicted"}, "evicted"),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
            "preempted",
        ),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
            "evicted",
        ),
        ({"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]}, "node-gone"),
        ({}, "deleted"),
    ],
)
def test_why_a_pod_went_is_told(status: Object, reason: str) -> None:
    seen = pod_reading(pod(status=status))
    assert end_reason(seen) == reason


@pytest.mark.parametrize(
    "body", [{"metadata": {}}, {"metadata": {"name": 5}, "spec": {}}, {"metadata": {}, "spec": []}]
)
def test_a_pod_of_another_shape_is_none(body: Object) -> None:
    assert read_pod(body, (), {}) is None


@pytest.mark.parametrize("reason", ["DeletionByTaintManager", "TerminationByKubelet"])
def test_what_node_controllers_and_kubelets_take_away_is_evicted(reason: str) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())
    told = assembler.pod("hub/p", read_pod(pod(status={"conditions": [condition]}), (), {}), 1)
    assert [one.kind for one in told if isinstance(one, PreemptionRecord)] == ["evicted"]


@pytest.mark.parametrize("length", [1000, 1024, 1025, 3000])
def test_a_failure_is_one_whether_the_condition_tells_it_whole_or_the_event_cut(length: int) -> None:
    message = "0/9 nodes are available: ".ljust(length, "x")
    # As kube-scheduler's truncateMessage does.
    note = message if length <= 1024 else message[:1020] + " ..."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    body = pod(status={"conditions": [condition], "phase": "Pending"})
    body["spec"].pop("nodeName")
    event = event_object("FailedScheduling", note, "jupyter-a")
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())
    told = [*assembler.pod("hub/p", read_pod(body, (), {}), 1), *assembler.event(read_event(event))]
    ids = [one.id for one in told if isinstance(one, DecisionRecord)]
    assert len(ids) == 2
    assert len(set(ids)) == 1


@pytest.mark.parametrize(
    ("repo", "kept"),
    [
        ("https://me:ghp_token@github.com/me/repo", "https://github.com/me/repo"),
        ("https://ghp_token@github.com/me/repo@v1", "https://github.com/me/repo@v1"),
        ("https://example.org/@me/repo", "https://example.org/@me/repo"),
        ("git@github.com:me/repo", "git@github.com:me/repo"),
    ],
)
def test_a_repository_is_kept_without_who_may_read_it(repo: str, kept: str) -> None:
    body = pod()
    body["spec"]["containers"][0]["env"][1]["value"] = repo
    seen = binder_reading(body)
    assert seen.repo == kept


COMMIT = "d1c7a09b9a1a4b5c6f2b7f1d1f7c2f3f8ee61b0a"


@pytest.mark.parametrize(
    ("container", "ref"),
    [
        ({"env": [{"name": "BINDER_PERSISTENT_REQUEST", "value": f"v2/gh/me/repo/{COMMIT}"}]}, COMMIT),
        ({"args": ["jupyter-repo2docker", f"--ref={COMMIT}", "--no-clean"]}, COMMIT),
        ({"command": ["jupyter-repo2docker", "--ref=3242074"]}, "3242074"),
        ({}, ""),
    ],
)
def test_the_reference_within_the_repository_is_read_of_users_and_builds(container: Object, ref: str) -> None:
    body = pod()
    body["spec"]["containers"][0] |= {**container, "env": [*BINDER, *container.get("env", [])]}
    seen = binder_reading(body)
    assert seen.ref == ref


def test_each_gate_of_a_pod_is_told_by_its_name_and_when_the_last_of_them_went() -> None:
    body = pod(status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]})
    del body["spec"]["nodeName"]
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())

    def told(*gates: str, at_us: int) -> set[tuple[str, str, int]]:
        body["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
        records = assembler.pod("hub/p", read_pod(body, (), {}), at_us)
        steps = (Phase.GATED, Phase.UNGATED)
        return {
            (one.phase, one.detail, one.at_us) for one in records if isinstance(one, PhaseRecord) and one.phase in steps
        }

    created_us = micros("2026-01-01T00:00:00Z") or 0
    assert told("a.example/quota", "b.example/room", at_us=1) == {
        (Phase.GATED, "a.example/quota", created_us),
        (Phase.GATED, "b.example/room", created_us),
    }
    assert told("b.example/room", at_us=2) == set()
    assert told(at_us=3) == {(Phase.UNGATED, "", 3)}


def test_a_node_of_another_shape_is_none() -> None:
    assert read_node({"metadata": {}}) is None


def test_reasons_are_read_by_count() -> None:
    message = (
        "0/8 nodes are available: 3 Insufficient cpu, 5 node(s) had untolerated taint(s). no new claims to deallocate, "
        "preemption: 0/8 nodes are available: 8 Preemption is not helpful for scheduling."
    )
    assert read_reasons(message) == (8, {"Insufficient cpu": 3, "node(s) had untolerated taint(s)": 5})
    # As from 1.37 on: nothing of claims, and a pre-emption that begins.
    failed = "0/8 nodes are available: 3 Insufficient cpu, 5 node(s) had untolerated taint(s). preemption: "
    nominated = "found a potential placement for pod on node n.example.com, preempting 1 victims"
    for after in (nominated, "0/8 nodes are available: 8 Preemption is not helpful for scheduling."):
        assert read_reasons(failed + after) == (8, {"Insufficient cpu": 3, "node(s) had untolerated taint(s)": 5})
    assert read_reasons("no nodes available to schedule pods") == (None, {})


def test_events_of_both_kinds_are_read() -> None:
    newer = read_event(
        {
            "metadata": {"uid": "e1", "creationTimestamp": "2026-01-01T00:00:05Z"},
            "eventTime": "2026-01-01T00:00:04.123456Z",
            "series": {"count": 3, "lastObservedTime": "2026-01-01T00:00:09.000001Z"},
            "reason": "FailedScheduling",
            "note": "n",
            "type": "Warning",
            "regarding": {"kind": "Pod", "namespace": "hub", "name": "p", "uid": "u"},
            "reportingController": "hub.hub.user",
        }
    )
    assert (*newer.when, newer.count) == (micros("2026-01-01T00:00:04.123456Z"), 1, 3)
    assert newer.last_us == micros("2026-01-01T00:00:09.000001Z")
    older = read_event(
        {
            "metadata": {"uid": "e2"},
            "eventTime": None,
            "deprecatedFirstTimestamp": "2026-01-01T00:00:04Z",
            "deprecatedLastTimestamp": "2026-01-01T00:00:06Z",
            "deprecatedCount": 2,
            "deprecatedSource": {"component": "kubelet", "host": "node-a"},
            "reason": "Pulled",
        }
    )
    assert (older.host, older.controller, older.count, older.when.resolution_us) == ("node-a", "kubelet", 2, 1_000_000)
