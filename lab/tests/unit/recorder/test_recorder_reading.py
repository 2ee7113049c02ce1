from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lab.tests.objects import event_object, node_object, node_reading, pod_reading
from lab.tests.told import cases
from roost.cli import run
from roost_core.kube import logs
from roost_core.kube.client import Client
from roost_core.objects.fields import JSONObject
from roost_core.objects.timestamps import read_span
from roost_core.release.pod_classes import KeySource
from roost_core.release.reader import SettingsError
from roost_lab.recorder.main import scheduler_profiles
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import records_of
from roost_lab.recorder.recording.decision_records import read_reasons
from roost_lab.recorder.recording.pod_records import end_reason, steps_of
from roost_lab.recorder.recording.reading import PodReading, micros, read_event, read_node, read_pod
from roost_lab.recorder.recording.streams import Observation
from roost_lab.recorder.store.records import (
    DecisionRecord,
    Phase,
    PhaseRecord,
    PreemptionRecord,
    StoredState,
)
from tests.recorded_data import object_of

BINDER = [{"name": "BINDER_REPO_URL", "value": "https://example.org/repo"}]


@pytest.mark.parametrize(("text", "wanted"), cases("reading", "moments"))
def test_moments_are_read_to_the_microsecond(text: object, wanted: int | None) -> None:
    assert micros(text) == wanted


@pytest.mark.parametrize(("text", "wanted"), cases("reading", "spans"))
def test_gos_spans_are_read(text: str, wanted: int | None) -> None:
    assert read_span(text) == wanted


def pod(**changes: Any) -> JSONObject:
    item: JSONObject = object_of("started-pod")
    item["status"] |= changes.pop("status", {})
    item["metadata"] |= changes.pop("metadata", {})
    return {**item, **changes}


def binder_reading(item: JSONObject) -> PodReading:
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
    assert pod_reading(pod(metadata=metadata)).deletion_us == micros("2026-01-01T00:01:00Z")


@pytest.mark.parametrize(("status", "reason"), cases("reading", "ends"))
def test_why_a_pod_went_is_told(status: JSONObject, reason: str) -> None:
    assert end_reason(pod_reading(pod(status=status))) == reason


@pytest.mark.parametrize(
    "body", [{"metadata": {}}, {"metadata": {"name": 5}, "spec": {}}, {"metadata": {}, "spec": []}]
)
def test_a_pod_of_another_shape_is_none(body: JSONObject) -> None:
    assert read_pod(body, (), {}) is None


@pytest.mark.parametrize("reason", ["DeletionByTaintManager", "TerminationByKubelet"])
def test_what_node_controllers_and_kubelets_take_away_is_evicted(reason: str) -> None:
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())
    gone = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    reading = read_pod(pod(status={"conditions": [gone]}), (), {})
    told = records_of(assembler.pod("hub/p", reading, Observation(1)))
    assert [one.kind for one in told if isinstance(one, PreemptionRecord)] == ["evicted"]


@pytest.mark.parametrize("length", [1000, 1024, 1025, 3000])
def test_a_failure_is_one_whether_the_condition_tells_it_whole_or_the_event_cut(
    length: int,
) -> None:
    message = "0/9 nodes are available: ".ljust(length, "x")
    # As kube-scheduler's truncateMessage does.
    note = message if length <= 1024 else message[:1020] + " ..."
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
    }
    body = pod(status={"conditions": [condition], "phase": "Pending"})
    body["spec"].pop("nodeName")
    event = event_object("FailedScheduling", note, "jupyter-a")
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())
    told = records_of(assembler.pod("hub/p", read_pod(body, (), {}), Observation(1)))
    told += assembler.event(read_event(event))
    ids = [one.id for one in told if isinstance(one, DecisionRecord)]
    assert (len(ids), len(set(ids))) == (2, 1)


@pytest.mark.parametrize(("repo", "kept"), cases("reading", "repositories"))
def test_a_repository_is_kept_without_who_may_read_it(repo: str, kept: str) -> None:
    body = pod()
    body["spec"]["containers"][0]["env"][1]["value"] = repo
    assert binder_reading(body).repo == kept


@pytest.mark.parametrize(("container", "ref"), cases("reading", "references"))
def test_the_reference_within_the_repository_is_read_of_users_and_builds(
    container: JSONObject, ref: str
) -> None:
    body = pod()
    body["spec"]["containers"][0] |= {**container, "env": [*BINDER, *container.get("env", [])]}
    assert binder_reading(body).ref == ref


def test_each_gate_of_a_pod_is_told_by_its_name_and_when_the_last_of_them_went() -> None:
    body = pod(
        status={
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
        }
    )
    del body["spec"]["nodeName"]
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())

    def told(*gates: str, at_us: int) -> set[tuple[str, str, int]]:
        body["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
        records = records_of(assembler.pod("hub/p", read_pod(body, (), {}), Observation(at_us)))
        steps = (Phase.GATED, Phase.UNGATED)
        return {
            (record.phase, record.detail, record.at_us)
            for record in records
            if isinstance(record, PhaseRecord) and record.phase in steps
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


@pytest.mark.parametrize(
    ("capacity", "told"), [({"cpu": "3920m", "odd": "many"}, '{"cpu": 3920}'), (["4"], None)]
)
def test_a_nodes_capacity_is_read_as_far_as_it_has_amounts(
    capacity: object, told: str | None
) -> None:
    item = node_object()
    item["status"]["capacity"] = capacity
    assert node_reading(item).capacity == told


def test_reasons_are_read_by_count() -> None:
    message = (
        "0/8 nodes are available: 3 Insufficient cpu, 5 node(s) had untolerated taint(s). no new"
        " claims to deallocate, preemption: 0/8 nodes are available: 8 Preemption is not helpful"
        " for scheduling."
    )
    assert read_reasons(message) == (
        8,
        {"Insufficient cpu": 3, "node(s) had untolerated taint(s)": 5},
    )
    # As from 1.37 on: nothing of claims, and a pre-emption that begins.
    failed = (
        "0/8 nodes are available: 3 Insufficient cpu, 5 node(s) had untolerated taint(s)."
        " preemption: "
    )
    nominated = "found a potential placement for pod on node n.example.com, preempting 1 victims"
    for after in (
        nominated,
        "0/8 nodes are available: 8 Preemption is not helpful for scheduling.",
    ):
        assert read_reasons(failed + after) == (
            8,
            {"Insufficient cpu": 3, "node(s) had untolerated taint(s)": 5},
        )
    assert read_reasons("no nodes available to schedule pods") == (None, {})


def test_events_of_both_kinds_are_read() -> None:
    series = {"count": 3, "lastObservedTime": "2026-01-01T00:00:09.000001Z"}
    newer = read_event(event_object(eventTime="2026-01-01T00:00:04.123456Z", series=series))
    assert (*newer.when, newer.count) == (micros("2026-01-01T00:00:04.123456Z"), 1, 3)
    assert newer.last_us == micros("2026-01-01T00:00:09.000001Z")
    old = {
        "deprecatedFirstTimestamp": "2026-01-01T00:00:04Z",
        "deprecatedLastTimestamp": "2026-01-01T00:00:06Z",
    }
    source = {"component": "kubelet", "host": "node-a"}
    named = {"metadata": {"uid": "e2"}, "eventTime": None, "reason": "Pulled"}
    older = read_event({**named, **old, "deprecatedCount": 2, "deprecatedSource": source})
    assert (older.host, older.controller, older.count, older.when.resolution_us) == (
        "node-a",
        "kubelet",
        2,
        1_000_000,
    )


# Stands in for cluster.client.Client: a cluster of version 1.36.
SERVER = cast("Client", SimpleNamespace(get=lambda _path: {"minor": "36+"}))


@pytest.mark.parametrize(("text", "says"), cases("reading", "scheduler_configurations"))
def test_a_file_that_is_no_configuration_of_the_scheduler_is_said(
    tmp_path: Path, text: str, says: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        scheduler_profiles(path, SERVER)
    assert str(caught.value).startswith(f"{path}: found ")
    assert says in str(caught.value)


def test_the_clusters_default_profile_is_known_beside_those_of_the_configuration(
    tmp_path: Path,
) -> None:
    path = tmp_path / "config.yaml"
    odd = "{schedulerName: odd, pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {}}}]}"
    names = "{schedulerName: hub-user}, {schedulerName: hub-build}"
    path.write_text(f"kind: KubeSchedulerConfiguration\nprofiles: [{names}, {odd}]")
    assert scheduler_profiles(path, SERVER).keys() == {"default-scheduler", "hub-user", "hub-build"}
    assert scheduler_profiles(None, SERVER).keys() == {"default-scheduler"}


@pytest.mark.parametrize(("text", "says"), cases("reading", "releases"))
def test_settings_that_cannot_be_used_are_said_with_their_file_named_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    says: str,
) -> None:
    # The log's handlers are pytest's here.
    monkeypatch.setattr(logs, "configure", lambda _level: None)
    path = tmp_path / "release.json"
    if text is not None:
        path.write_text(text)
    assert run(["record", "--settings", str(path), "--database", str(tmp_path / "roost.db")]) == 1
    assert capsys.readouterr().err.startswith(f"roost record: {path}: {says}")
