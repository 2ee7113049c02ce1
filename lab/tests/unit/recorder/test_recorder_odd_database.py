"""Databases that can't be used, and rows that they don't take, are said in a sentence without any
password.
"""

import contextlib
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lab.tests.objects import event_object, pod_object
from lab.tests.recorded import empty_store, pod_record
from lab.tests.recorder_run import Cluster, Run
from lab.tests.told import cases
from roost.cli import run
from roost_core.objects.fields import JSONObject
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import records_of
from roost_lab.recorder.recording.reading import read_event, read_node, read_pod
from roost_lab.recorder.recording.streams import Observation
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Refused, Store, StoreError, Unavailable
from roost_lab.recorder.store.records import (
    NODES,
    PODS,
    CandidatesRecord,
    GapRecord,
    PullRecord,
    Record,
    StoredState,
    WaitingRecord,
)
from tests.harness.postgres import Postgres
from tests.harness.waiting import wait_until

# Of four bytes each and none like the other: nothing that an index could make short.
LONG = "".join(chr(0x1F300 + number) for number in range(512))


@pytest.mark.parametrize("url", cases("database", "unreadable"))
def test_a_url_that_cannot_be_read_is_said_without_any_of_it(url: str) -> None:
    with pytest.raises(
        StoreError, match="the database's URL is not valid: give a file, or postgresql://"
    ) as caught:
        Store.open(url)
    assert "secret" not in str(caught.value)
    assert "sec" not in str(caught.value)


@pytest.mark.parametrize(("url", "shown", "found"), cases("database", "kinds"))
def test_a_database_of_another_kind_or_driver_is_named_with_what_is_accepted(
    capsys: pytest.CaptureFixture[str], url: str, shown: str, found: str
) -> None:
    assert run(["why", "p", "--database", url]) == 2
    accepted = "SQLite's own driver" if url.startswith("sqlite") else "SQLite or PostgreSQL"
    said = (
        f"roost why: database {shown}: found '{found}', expected {accepted}: give a file, or"
        " postgresql://user@host/"
    )
    assert capsys.readouterr().err == f"{said}name\n"


@pytest.mark.parametrize(
    "name", ["a%41.db", "b?timeout=1.db", "c#d.db", "e f&g.db", "h%.db", "\u00e9.db"]
)
def test_a_files_name_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    store = Store.open(str(tmp_path / name))
    store.migrate()
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    Store.open_for_reading(str(tmp_path / name)).close()


@pytest.mark.parametrize("driver", ["", "+asyncpg", "+psycopg2", "+psycopg"])
def test_a_postgresql_is_asked_by_our_driver_whatever_the_url_names(driver: str) -> None:
    store = Store.open(f"postgresql{driver}://u:secret@127.0.0.1:1/x")
    with pytest.raises(Unavailable, match="Connection refused"):
        store.migrate()
    store.close()


def test_what_only_the_driver_refuses_of_a_url_is_said_without_any_of_it(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/roost.db?cached_statements={10**30}")
    with pytest.raises(StoreError, match="the database's URL is not valid") as caught:
        store.migrate()
    assert "int" not in str(caught.value)


def test_a_text_that_no_index_of_the_database_takes_is_refused(server: Postgres) -> None:
    store = Store.open(server.create("long"))
    store.migrate()
    long = PullRecord(pod_uid="p", image=LONG, node_name=LONG[:253], at_us=1, warm=True)
    with pytest.raises(Refused, match="index row size"):
        store.write([pod_record("a"), long], {})
    assert not store.read_state().pods
    # Of each alone there is room.
    store.write([replace(long, node_name="n"), replace(long, image="i")], {})
    store.close()


@pytest.mark.parametrize("query", ["", "?immutable=1&mode=ro&uri=true"])
def test_who_only_reads_leaves_a_file_as_it_is(tmp_path: Path, query: str) -> None:
    store = empty_store(tmp_path)
    store.write([pod_record("p")], {})
    store.close()
    path = tmp_path / "roost.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        # Not as the recorder has it.
        connection.execute("PRAGMA journal_mode=DELETE")
    before = path.read_bytes()
    url = f"sqlite:///file:{path}{query}" if query else str(path)
    assert run(["why", "p", "--database", url]) == 0
    assert (
        run(
            [
                "report",
                "--database",
                url,
                "--format",
                "json",
                "--output",
                str(tmp_path / "report.json"),
            ]
        )
        == 0
    )
    assert path.read_bytes() == before


PULLED = 'Successfully pulled image "{}" in 1s (2s including waiting). Image size: 5 bytes.'


@pytest.mark.parametrize("odd", ["me/\0image", LONG])
def test_a_text_that_a_database_does_not_take_costs_no_other_row_and_the_recording_goes_on(
    store: Store, odd: str
) -> None:
    cluster = Cluster()
    names = [f"p{number}" for number in range(8)]
    for number, name in enumerate(names):
        image = odd if name == "p3" else "me/image"
        cluster.said.append(
            {
                "type": "ADDED",
                "object": pod_object(name, 11 + 2 * number, containers=[{"image": image}]),
            }
        )
        told = event_object("Pulled", PULLED.format(image), name, 12 + 2 * number)
        # Whoever makes Events may say that a kubelet has a name as long as a column is.
        told["deprecatedSource"] = {"host": odd[:253] if name in ("p3", "p5") else "n"}
        cluster.events.append({"type": "ADDED", "object": told})
    with Run(cluster, store) as run_:
        wait_until(
            lambda: store.positions().get("events", ("",))[0] == "26", 30, "all Events to be stored"
        )
        run_.wait_for("25")
        cluster.said.append({"type": "ADDED", "object": pod_object("later", 90)})
        run_.wait_for("90")
        assert run_.recording.readiness().passed
        assert run_.metric("store_errors_total") == 0.0
    others = {f"uid-{name}" for name in names if name not in ("p3", "p5")}
    assert uids(store, schema.pod.c.uid) >= others | {"uid-p5", "uid-later"}
    assert uids(store, schema.pull.c.pod_uid) >= others


def test_what_is_as_long_as_the_api_server_takes_it_is_stored(store: Store) -> None:
    word, name = "w" * 63, ".".join(["n" * 63] * 3 + ["n" * 61])
    label = f"{name}/{word}"
    image = f"registry.example/{'/'.join(['p' * 100] * 20)}:{'t' * 128}@sha256:{'a' * 64}"
    assembler = Assembler(lambda _labels, _namespace: word, StoredState())
    for kind in (NODES, PODS):
        assembler.streams.begin_list(kind)
        assembler.list_ended(kind, 1)

    def node(version: int, value: str) -> JSONObject:
        metadata = {
            "name": name,
            "uid": "node-uid",
            "resourceVersion": str(version),
            "labels": {label: value},
        }
        images = [{"names": [image, image.partition("@")[0]], "sizeBytes": 2**63 - 1}]
        return {
            "metadata": metadata,
            "spec": {},
            "status": {"images": images, "allocatable": {label: "1"}},
        }

    def stands(version: int, status: JSONObject, **spec: Any) -> JSONObject:
        found = pod_object("p", version, schedulerName="s" * 253, priority=2**31 - 1, **spec)
        found["metadata"] |= {"name": name, "namespace": word, "labels": {"release": word}}
        found["spec"]["containers"] = [{"name": word, "image": image}]
        return {**found, "status": status}

    waits = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "no node. " * 10_000,
    }
    runs = {
        "name": word,
        "image": image,
        "imageID": image,
        "state": {"running": {"startedAt": "2026-01-01T00:00:03Z"}},
    }
    gone = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    records = [
        *records_of(assembler.node(name, read_node(node(1, "")), Observation(2))),
        *records_of(assembler.node(name, read_node(node(2, word)), Observation(3))),
    ]
    for version, standing in enumerate(
        (
            stands(3, {}, schedulingGates=[{"name": label}]),
            stands(4, {"nominatedNodeName": name, "conditions": [waits]}),
            stands(5, {"conditions": [gone], "containerStatuses": [runs]}, nodeName=name),
        )
    ):
        records += records_of(
            assembler.pod("p", read_pod(standing, (), {}), Observation(4 + version))
        )
    pulled = (
        f'Successfully pulled image "{image}" in 2540400h10m10.123456789s. Image size: {2**63 - 1}'
        " bytes."
    )
    for version, (reason, note, controller) in enumerate(
        (
            ("Scheduled", f"assigned it to {name}", "c" * 128),
            (
                "FailedScheduling",
                f"0/{2**31 - 1} nodes are available: {2**31 - 1} of a kind.",
                "c" * 128,
            ),
            ("Pulled", pulled, "kubelet"),
            ("FailedMount", f'failed for volume "{"v" * 990}', "kubelet"),
            ("Failed", f'Failed to pull image "{image}"', "kubelet"),
            ("Preempted", f"Preempted by pod {'1' * 36} on node {name}", "c" * 128),
            ("r" * 128, "n" * 1024, f"cluster-autoscaler{'c' * 110}"),
        )
    ):
        more = {
            "reportingController": controller,
            "deprecatedSource": {"host": name},
            "series": {"count": 2**31 - 1},
        }
        records += assembler.event(
            read_event(event_object(reason, note, "p", 10 + version, **more))
        )
    tables = {type(record) for record in records}
    assert tables == set(Record.__subclasses__()) - {CandidatesRecord, WaitingRecord, GapRecord}
    store.write(records, {})


def uids(store: Store, column: sa.Column[str]) -> set[str]:
    with store.reading() as connection:
        return set(connection.execute(sa.select(column)).scalars())
