"""One real cluster, recorded live and imported from its exports: each start once, at the times that
Events can tell.
"""

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from lab.tests.e2e.recorder.witness import Comparison, Told, Witness, start_recorder
from lab.tests.told import cases
from roost_core.objects.fields import JSONObject
from roost_lab.recorder.importing.history import ImportedHistory
from roost_lab.recorder.recording.metrics import StartResult
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.phases import WHOLE
from roost_lab.recorder.store.records import Phase, PodSource
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up
from tests.harness.pods import is_ready
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e

Phases = dict[tuple[str, str, str], tuple[int, int]]
US = 1_000_000
# Whole seconds on both sides, and a kubelet that stops a pod a moment after it was asked.
SECONDS_APART = 2 * US
STOP_APART = 5 * US
STORED_SECONDS = 120.0
# A cold pull takes some seconds.
IMAGE_BYTES, BYTES_PER_SECOND = 6_000_000, 2_000_000
USERS = 12


@dataclass(frozen=True)
class Exported:
    """What a cluster's operators could have: its Events, its pods, its audit log; and the
    recorder's own database.
    """

    namespace: str
    live: Path
    events: Path
    pods: Path
    audit: Path
    told: Told
    # The recorder's metrics: starts by result, and seconds of all.
    started: dict[str, float]
    start_seconds: float


@pytest.fixture(scope="module")
def exported(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Exported]:
    folder = tmp_path_factory.mktemp("exported")
    cluster = ControlPlane(audit_level="RequestResponse")
    with or_give_up():
        cluster.start()
    try:
        with or_give_up(), start_scheduler(cluster) as scheduler, RealRegistry() as registry:
            scheduler.wait_serving()
            with RealNode(cluster, "node-1", registry) as node:
                namespace = cluster.create_namespace()
                with Witness(cluster, namespace) as witness:
                    exported = _play(cluster, registry, node, folder, witness)
                yield exported
    finally:
        cluster.stop(keep_logs=request.session.testsfailed > 0)


def _play(
    cluster: ControlPlane, registry: RealRegistry, node: RealNode, folder: Path, witness: Witness
) -> Exported:
    """Users come: cold, warm, with two containers, and one that waits for a node; half of them
    leave.
    """
    namespace = witness.namespace
    images = [
        registry.push_program(f"me/image-{n}:1", size_bytes=IMAGE_BYTES).reference for n in range(2)
    ]
    registry.bytes_per_second = BYTES_PER_SECOND
    live = folder / "live.db"
    recorder = start_recorder(cluster, namespace, str(live), folder)
    recorder.wait_ready()
    names = [f"jupyter-user-{number}" for number in range(USERS)]
    for number, name in enumerate(names):
        containers = [{"name": "notebook", "image": images[number % 2]}]
        if number == 3:
            containers.append({"name": "sidecar", "image": images[0]})
        selector = {"nodeSelector": {"late": "true"}} if number == 4 else {}
        cluster.create_pod(
            {
                "metadata": {
                    "name": name,
                    "labels": {"component": "singleuser-server", "app": "jupyterhub"},
                },
                "spec": {"containers": containers, "terminationGracePeriodSeconds": 1, **selector},
            },
            namespace,
        )
        time.sleep(0.3)
    time.sleep(3)
    cluster.api.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": {"late": "true"}}})
    for name in names:
        cluster.wait_for_pod(name, namespace, is_ready, "become ready", 180)
    leaving = names[::2]
    for name in leaving:
        cluster.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")
    wait_until(
        lambda: (
            len(cluster.api.list(f"/api/v1/namespaces/{namespace}/pods")) == USERS - len(leaving)
        ),
        90,
        "leave",
    )
    wait_until(
        lambda: _is_stored(live, namespace, len(leaving)),
        STORED_SECONDS,
        "the recorder to store it all",
    )
    started = {
        str(one): recorder.metric("roost_starts_total", pod_class="user", result=one)
        for one in StartResult
    }
    started = {name: count for name, count in started.items() if count}
    seconds = recorder.metric("roost_start_phase_seconds_sum", pod_class="user", phase=WHOLE)
    recorder.process.stop()
    files = (live, folder / "events.json", folder / "pods.json", folder / "audit.log")
    exported = Exported(namespace, *files, witness.told(), started, seconds)
    exported.events.write_text(json.dumps(cluster.api.get("/api/v1/events"), indent=4))
    exported.pods.write_text(json.dumps(cluster.api.get("/api/v1/pods"), indent=4))
    exported.audit.write_bytes((cluster.folder / "audit.log").read_bytes())
    return exported


def _is_stored(database: Path, namespace: str, gone: int) -> bool:
    pods = [pod for pod in read(database, schema.pod) if pod["namespace"] == namespace]
    return len(pods) == USERS and sum(pod["deleted_us"] is not None for pod in pods) == gone


def read(database: Path, table: sa.FromClause) -> list[JSONObject]:
    store = Store.open(str(database))
    with store.reading() as connection:
        rows = [dict(row) for row in connection.execute(sa.select(table)).mappings()]
    store.close()
    return rows


def take_in(folder: Path, *files: Path) -> tuple[Path, ImportedHistory]:
    database = folder / "imported.db"
    store = Store.open(str(database))
    store.migrate()
    history = ImportedHistory(store)
    history.read([str(file) for file in files])
    store.close()
    return database, history


def users(database: Path, namespace: str) -> dict[str, JSONObject]:
    """The pods of the namespace, which must be stored once each."""
    pods = [pod for pod in read(database, schema.pod) if pod["namespace"] == namespace]
    assert len({pod["uid"] for pod in pods}) == len(pods)
    return {pod["uid"]: pod for pod in pods}


def phases(database: Path, uids: set[str] | dict[str, JSONObject]) -> Phases:
    return {
        (row["pod_uid"], row["phase"], row["detail"]): (row["at_us"], row["resolution_us"])
        for row in read(database, schema.phase)
        if row["pod_uid"] in uids
    }


def pulls(database: Path, uids: set[str] | dict[str, JSONObject]) -> list[JSONObject]:
    return sorted((row for row in read(database, schema.pull) if row["pod_uid"] in uids), key=repr)


def starts(database: Path, uids: set[str] | dict[str, JSONObject]) -> dict[str, JSONObject]:
    found = [row for row in read(database, schema.start) if row["pod_uid"] in uids]
    assert len(found) == len(uids)
    return {row["pod_uid"]: row for row in found}


def test_the_record_has_each_moment_of_its_source_and_live_metrics_each_start_once(
    exported: Exported,
) -> None:
    found = Comparison(exported.told, str(exported.live), exported.namespace)
    assert found.differences == []
    kinds = {
        *(
            "created",
            "unschedulable",
            "scheduled",
            "accepted",
            "pulling",
            "pulled",
            "started",
            "ready",
            "terminating",
        ),
        *("its binding", "its end", "when it ended", "warm", "cold pull as its kubelet tells"),
    }
    assert kinds <= found.compared.keys()
    with contextlib.closing(sqlite3.connect(exported.live)) as connection:
        query = (
            "SELECT count(*), sum(is_cold), sum(ready_seconds) FROM v_start WHERE pod_class ="
            " 'user'"
        )
        ((every, cold, seconds),) = connection.execute(query)
    assert exported.started == {"warm": every - cold, "cold": cold}
    assert exported.start_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(("change", "told"), cases("importing", "spoilt"))
def test_a_row_that_is_off_by_its_resolution_would_be_found(
    exported: Exported, tmp_path: Path, change: str, told: str
) -> None:
    spoilt = tmp_path / "spoilt.db"
    spoilt.write_bytes(exported.live.read_bytes())
    uid = "(SELECT max(pod_uid) FROM v_phase WHERE phase = 'ready')"
    with contextlib.closing(sqlite3.connect(spoilt)) as connection, connection:
        sql = change.format(uid=uid, scheduled=f"'{Phase.SCHEDULED}'", ready=f"'{Phase.READY}'")
        assert connection.execute(sql).rowcount > 0
    differences = Comparison(exported.told, str(spoilt), exported.namespace).differences
    assert any(told in difference for difference in differences)


def test_events_give_each_start_once_with_the_recorders_phases(
    exported: Exported, tmp_path: Path
) -> None:
    database, history = take_in(tmp_path, exported.events)
    live, told = users(exported.live, exported.namespace), users(database, exported.namespace)
    assert (set(told), len(told)) == (set(live), USERS)
    assert "malformed Events" not in history.counts.skipped
    for uid, pod in told.items():
        assert (pod["name"], pod["pod_class"], pod["source"]) == (
            live[uid]["name"],
            "user",
            PodSource.EVENT,
        )
        assert (pod["image"], pod["scheduler"]) == (live[uid]["image"], live[uid]["scheduler"])
        assert abs(pod["created_us"] - live[uid]["created_us"]) <= SECONDS_APART
        assert (pod["deleted_us"] is None) == (live[uid]["deleted_us"] is None)
    recorded, imported = phases(exported.live, live), phases(database, told)
    kinds = {Phase.SCHEDULED, Phase.PULLED, Phase.STARTED, Phase.UNSCHEDULABLE}
    assert {key for key in recorded if key[1] in kinds} == {
        key for key in imported if key[1] in kinds
    }
    for key, (at_us, resolution_us) in imported.items():
        if key[1] == Phase.TERMINATING:
            assert abs(at_us - recorded[key][0]) <= STOP_APART
        else:
            assert abs(at_us - recorded[key][0]) <= max(resolution_us, recorded[key][1]), key
    assert pulls(database, told) == pulls(exported.live, live)
    assert sum(not pull["warm"] for pull in pulls(database, told)) >= 2
    seen, estimated = starts(exported.live, live), starts(database, told)
    for uid, start in estimated.items():
        assert start["bound_us"] == seen[uid]["bound_us"]
        assert abs(start["ready_us"] - seen[uid]["ready_us"]) <= SECONDS_APART


def test_events_and_pods_know_what_the_recorder_knew_of_those_that_stayed(
    exported: Exported, tmp_path: Path
) -> None:
    database, _ = take_in(tmp_path, exported.events, exported.pods)
    live, told = users(exported.live, exported.namespace), users(database, exported.namespace)
    assert set(told) == set(live)
    stayed = {uid for uid, pod in told.items() if pod["source"] == PodSource.POD}
    assert len(stayed) == USERS // 2
    for uid in stayed:
        assert {**told[uid], "source": ""} == {**live[uid], "source": ""}
    seen, imported = starts(exported.live, live), starts(database, told)
    for uid in stayed:
        for column in ("created_us", "bound_us", "started_us", "ready_us"):
            assert imported[uid][column] == seen[uid][column], column


def test_the_audit_log_alone_gives_each_start_once(exported: Exported, tmp_path: Path) -> None:
    database, history = take_in(tmp_path, exported.audit)
    live, told = users(exported.live, exported.namespace), users(database, exported.namespace)
    assert set(told) == set(live)
    assert "malformed audit log entries" not in history.counts.skipped
    for uid, pod in told.items():
        for column in (
            "name",
            "pod_class",
            "image",
            "scheduler",
            "cpu_millicores",
            "created_us",
            "end_reason",
        ):
            assert pod[column] == live[uid][column], column
        assert (pod["deleted_us"] is None) == (live[uid]["deleted_us"] is None)
        if pod["deleted_us"] is not None:
            assert abs(pod["deleted_us"] - live[uid]["deleted_us"]) <= SECONDS_APART
    recorded, imported = phases(exported.live, live), phases(database, told)
    kinds = {
        Phase.CREATED,
        Phase.SCHEDULED,
        Phase.STARTED,
        Phase.READY,
        Phase.ACCEPTED,
        Phase.INITIALIZED,
        Phase.GONE,
    }
    assert {key for key in recorded if key[1] in kinds} == {
        key for key in imported if key[1] in kinds
    }
    for key in imported:
        if key[1] in kinds:
            assert abs(imported[key][0] - recorded[key][0]) <= SECONDS_APART, key


def test_importing_into_the_recorders_own_database_changes_no_start(
    exported: Exported, tmp_path: Path
) -> None:
    own = tmp_path / "own.db"
    own.write_bytes(exported.live.read_bytes())
    before = users(own, exported.namespace)
    store = Store.open(str(own))
    ImportedHistory(store).read([str(exported.events), str(exported.audit), str(exported.pods)])
    store.close()
    assert users(own, exported.namespace) == before
    seen, now = starts(exported.live, before), starts(own, before)
    for uid, start in now.items():
        for column in ("created_us", "started_us", "ready_us", "deleted_us"):
            assert start[column] == seen[uid][column], column
