import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from lab.tests.moments import BEGIN, MINUTE
from lab.tests.objects import (
    BOUND,
    event_object,
    node_object,
    node_reading,
    pod_object,
    pod_reading,
)
from lab.tests.recorder_run import Cluster, Run
from lab.tests.told import cases
from roost_core.kube.client import ApiError
from roost_core.kube.event_stream import EventStream
from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from roost_lab.pages.dates import as_date
from roost_lab.recorder.recording import recorder as module
from roost_lab.recorder.recording.assembler import Assembler
from roost_lab.recorder.recording.changes import records_of
from roost_lab.recorder.recording.judging import Judging
from roost_lab.recorder.recording.pod_records import pod_record
from roost_lab.recorder.recording.reading import MICRO_US, read_event, read_pod
from roost_lab.recorder.recording.recorder import RecordingError
from roost_lab.recorder.recording.scheduler_model import Model
from roost_lab.recorder.recording.streams import How, Observation
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store, Unavailable
from roost_lab.recorder.store.records import (
    NODES,
    PODS,
    DecisionRecord,
    Phase,
    PhaseRecord,
    PullRecord,
    Record,
    StoredState,
)
from tests.harness.waiting import wait_until

# For the end-to-end tests, too.
__all__ = ["Run"]
US = 1_000_000
PAST = "2026-01-01T00:00:00Z"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(str(tmp_path / "roost.db"))
    store.migrate()
    yield store
    store.close()


def rows(store: Store, table: sa.FromClause) -> list[JSONObject]:
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


def test_an_end_that_is_told_late_says_how_much_earlier_it_may_have_been(store: Store) -> None:
    cluster = Cluster()
    cluster.pods = [pod_object("late", 5, created=PAST), pod_object("live", 6, created=PAST)]
    with Run(cluster, store) as run:
        run.wait_for("10")
    heard_us = store.positions()[PODS][1]
    time.sleep(0.5)
    # It went while nobody watched: the list of the old position still has it.
    cluster.version = "20"
    cluster.said += [
        {"type": "DELETED", "object": pod_object("late", 15, created=PAST)},
        {"type": "DELETED", "object": pod_object("live", 21, created=PAST)},
    ]
    with Run(cluster, store) as run:
        run.wait_for("21")
    gone = {row["pod_uid"]: row for row in rows(store, schema.phase) if row["phase"] == "gone"}
    late, live = gone["uid-late"], gone["uid-live"]
    assert (late["at_us"] - late["resolution_us"], live["resolution_us"]) == (heard_us, 1)


NEWS = (
    "2027-01-15T08:00:09.5Z [I 2027-01-15 08:00:09.500 JupyterHub base:1192] User ada took 9.750"
    " seconds to start"
)

ODD = '2026-01-15T08:00:09.5Z {"message": "User ada took 9.750 seconds to start"}'


@pytest.mark.parametrize(
    ("log", "said", "answered"),
    [
        (["Loading /usr/local/etc/jupyterhub/secret/values.yaml", NEWS], "", [BEGIN + 9_500_000]),
        (
            None,
            (
                "its log can't be read: pods/log is forbidden; when its users' servers answer isn't"
                " recorded"
            ),
            [],
        ),
        ([ODD] * 60, "expected lines of JupyterHub's own format", []),
        ([ODD], "expected lines of JupyterHub's own format", []),
    ],
)
def test_a_hubs_log_is_read_once_all_pods_are_known_and_one_that_cannot_be_is_said(
    log: list[str] | None,
    said: str,
    answered: list[int],
    store: Store,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    cluster.hub_log = log
    cluster.log_errors.extend(
        [ApiError(400, "ContainerCreating"), ApiError(500, "dial tcp: connection refused")]
    )
    hub = pod_object("hub", 5, labels={"component": "hub"}, status={"phase": "Running"})
    server = pod_object("jupyter-ada", 6, labels={"component": "singleuser-server"})
    server["metadata"]["annotations"] = {"hub.jupyter.org/username": "ada"}
    cluster.pods = [hub, server]
    classes = {"user": {"match": {"labels": {"component": "singleuser-server"}}}}

    def told() -> list[int]:
        return [row["at_us"] for row in rows(store, schema.phase) if row["phase"] == "answered"]

    with Run(cluster, store, podClasses=classes) as run:
        run.wait_for("10")
        wait_until(
            lambda: told() == answered and said in caplog.text, 30, "the hub's log to be read"
        )
        if answered:
            # It goes on where it broke off.
            wait_until(
                lambda: cluster.log_queries == ["None", *2 * [NEWS.partition(" ")[0]]],
                30,
                "it to be read on",
            )
        wait_until(
            lambda: bool(store.positions().get("log:hub", [not answered])[0]) == bool(answered),
            30,
            "that it is",
        )
        assert run.recording.readiness().passed
    assert caplog.text.count("found a log like") == ("own format" in said)


def test_what_seating_asked_for_is_known_after_recorder_and_hub_have_restarted(
    store: Store,
) -> None:
    """As an upgrade of the chart does: the new hub's log tells only of the person who comes."""
    line = "2027-01-15T08:{}Z [I 2027-01-15 08:00:00.000 JupyterHub log:192] {}"
    cluster = Cluster()
    hub = pod_object("hub", 5, labels={"component": "hub"}, status={"phase": "Running"})
    server = pod_object("jupyter-ada", 6, labels={"component": "singleuser-server"})
    server["metadata"]["annotations"] = {"hub.jupyter.org/username": "ada"}
    cluster.pods = [hub, server]
    cluster.hub_log = [
        line.format("00:00.5", "202 POST /hub/api/users/ada/server (roost-seating@::1) 700.00ms"),
        line.format("00:09.5", "User ada took 9.500 seconds to start"),
    ]
    classes = {"user": {"match": {"labels": {"component": "singleuser-server"}}}}

    def told() -> dict[str, int]:
        return {
            row["phase"]: row["at_us"] - BEGIN
            for row in rows(store, schema.phase)
            if row["phase"] in ("seated", "opened", "unused")
        }

    with Run(cluster, store, podClasses=classes) as run:
        run.wait_for("10")
        wait_until(lambda: told() == {"seated": -200_000}, 30, "seating's request to be stored")
    cluster.log_queries.clear()
    cluster.hub_log = [line.format("20:00", "302 GET /hub/ -> /user/ada/ (ada@::1) 4.00ms")]
    opened_us = 20 * 60 * US
    with Run(cluster, store, podClasses=classes):
        wait_until(lambda: told().get("opened") == opened_us, 30, "the visit to be stored")


def test_the_log_of_a_hub_that_has_just_begun_may_have_nothing_of_jupyterhubs_yet(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    cluster.hub_log = [f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} Loading extra config"]
    cluster.pods = [pod_object("hub", 5, labels={"component": "hub"}, status={"phase": "Running"})]
    with Run(cluster, store) as run:
        run.wait_for("10")
        wait_until(lambda: len(cluster.log_queries) >= 3, 30, "its log to be read")
    assert "found a log like" not in caplog.text


def test_while_the_database_is_down_the_stream_waits_and_afterwards_nothing_is_missing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 40)
    monkeypatch.setattr(module, "MAX_WAITING", 30)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.05)
    cluster = Cluster()
    cluster.said += [
        {"type": "ADDED", "object": pod_object(f"p{number}", 11 + number)} for number in range(500)
    ]
    write, is_down = store.write, threading.Event()
    is_down.set()

    def fail(records: list[Record], positions: Mapping[str, tuple[str, int]]) -> None:
        if is_down.is_set():
            raise Unavailable("it is down")
        write(records, positions)

    monkeypatch.setattr(store, "write", fail)
    with Run(cluster, store) as run:
        wait_until(
            lambda: not run.recording.readiness().passed and cluster.read > 40, 60, "rows to wait"
        )
        time.sleep(1.0)
        # What was read is in the queue, in rows, or in the stream's hand; the rest stays where it
        # is.
        assert cluster.read < 100
        assert (run.metric("database_failing"), run.metric("recording")) == (1.0, 0.0)
        assert run.metric("behind_seconds") > 1.0
        is_down.clear()
        run.wait_for("510")
        wait_until(lambda: run.metric("recording") == 1.0, 10, "it to record again")
        assert (run.metric("database_failing"), run.metric("last_gap_timestamp_seconds")) == (
            0.0,
            0.0,
        )
        wait_until(lambda: run.metric("behind_seconds") == 0.0, 10, "nothing to wait")
    assert len(rows(store, schema.pod)) == 500


def test_while_the_database_answers_nothing_it_does_not_say_that_it_records(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a PostgreSQL whose disk hangs, or another session's lock: no statement fails, or ends."""
    monkeypatch.setattr(module, "UNSTORED_SECONDS", 0.5)
    cluster = Cluster()
    write, answers = store.write, threading.Event()

    def hang(records: list[Record], positions: Mapping[str, tuple[str, int]]) -> None:
        answers.wait(60)
        write(records, positions)

    with Run(cluster, store) as run:
        run.wait_for("10")
        wait_until(lambda: run.metric("recording") == 1.0, 10, "it to record")
        monkeypatch.setattr(store, "write", hang)
        cluster.said.append({"type": "ADDED", "object": pod_object("p", 11)})
        wait_until(lambda: run.metric("recording") == 0.0, 10, "it to say that nothing is stored")
        assert "waited for the database" in run.recording.readiness().detail
        answers.set()
        run.wait_for("11")
        wait_until(lambda: run.metric("recording") == 1.0, 10, "it to record again")


def test_a_pod_that_cannot_be_read_is_counted_and_is_not_said_to_have_gone(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    cluster.pods = [pod_object("odd", 5), pod_object("plain", 6)]
    with Run(cluster, store) as run:
        run.wait_for("10")
    odd = pod_object("odd", 15)
    odd["spec"] = []
    cluster.oldest, cluster.version, cluster.pods = 50, "60", [odd, pod_object("plain", 6)]
    with Run(cluster, store) as run:
        run.wait_for("60")
        assert (
            run.metrics.registry.get_sample_value(
                "roost_recorder_odd_objects_total", {"kind": PODS}
            )
            == 1.0
        )
    assert "hub/odd" in caplog.text
    assert {row["name"]: row["end_reason"] for row in rows(store, schema.pod)} == {
        "odd": None,
        "plain": None,
    }


def test_a_binding_is_not_judged_before_all_nodes_are_known() -> None:
    def words(*synced: str) -> list[str | None]:
        model = Model({"default-scheduler": default_profile(NEWEST_MINOR)})
        model.node_changed("n", node_reading(node_object("n")), 1)
        assembler = Assembler(lambda _labels, _namespace: "", StoredState())
        judging = Judging(model)
        for kind in synced:
            assembler.streams.begin_list(kind)
            for change in assembler.list_ended(kind, 1):
                judging.follow(change)
        bound = read_pod(pod_object("p", 1, on="n"), (), {})
        (change,) = assembler.pod("hub/p", bound, Observation(2))
        return [one.model for one in judging.follow(change) if isinstance(one, DecisionRecord)]

    assert words(PODS) == ["unknown"]
    assert words(PODS, NODES) == ["agrees"]


def created(told: list[Record]) -> list[list[int]]:
    return [
        [one.at_us % MINUTE, one.resolution_us]
        for one in told
        if isinstance(one, PhaseRecord) and one.phase is Phase.CREATED
    ]


@pytest.mark.parametrize(("told_us", "how", "stored"), cases("reading", "creations"))
def test_the_watch_tells_when_in_its_second_a_pod_was_created(
    told_us: int, how: dict[str, Any], stored: list[list[int]]
) -> None:
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())
    listed = How.FOUND if how.get("listed") else How.WATCHED
    seen = Observation(BEGIN + told_us, how.get("late_us", MICRO_US), listed)
    first = assembler.pod("hub/p", pod_reading(pod_object("p", 1)), seen)
    assert created(records_of(first)) == stored
    later = pod_reading(pod_object("p", 2, on="n", conditions=[BOUND]))
    assert created(records_of(assembler.pod("hub/p", later, Observation(BEGIN + 2 * US)))) == []


@pytest.mark.parametrize(("seconds", "corrected"), [(28, 28), (-40, -40), (1, 0)])
def test_what_a_kubelet_dates_by_a_wrong_clock_has_the_api_servers_time(
    seconds: int, corrected: int
) -> None:
    """seconds: how far the node's clock is behind."""
    assembler = Assembler(lambda _labels, _namespace: "", StoredState())

    def at(second: int) -> str:
        return as_date(BEGIN + second * US).strftime("%Y-%m-%dT%H:%M:%SZ")

    def pulled(number: int, late: int) -> int:
        event = event_object(
            "Pulled", 'Container image "me/image:1" already present on machine', version=number
        )
        event |= {"eventTime": None, "deprecatedFirstTimestamp": at(100 + number - seconds)}
        event |= {
            "reportingController": "kubelet",
            "deprecatedSource": {"component": "kubelet", "host": "n"},
        }
        event["metadata"]["creationTimestamp"] = at(100 + number + late)
        (pull,) = [one for one in assembler.event(read_event(event)) if isinstance(one, PullRecord)]
        return pull.at_us - BEGIN - (100 + number - seconds) * US

    # Two are too few; one that comes late changes nothing.
    told = [pulled(number, late) for number, late in ((0, 0), (1, 9), (2, 0), (3, 5))]
    assert told == [0, 0, corrected * US, corrected * US]
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": at(10 - seconds)}
    pod = pod_reading(pod_object("p", 1, on="n", conditions=[BOUND, ready]))
    told_of_pod = records_of(assembler.pod("hub/p", pod, Observation(BEGIN + 60 * US)))
    phases = [one for one in told_of_pod if isinstance(one, PhaseRecord)]
    found = {phase.phase: (phase.at_us - BEGIN) // US for phase in phases}
    assert (found[Phase.SCHEDULED], found[Phase.READY]) == (1, 10 - seconds + corrected)
    # Another node of that name has a clock of its own.
    assembler.node("n", node_reading(node_object("n")), Observation(BEGIN))
    assembler.node_deleted("n", BEGIN)
    assert (pulled(4, 0), assembler.clocks.behind) == (0, {})


def test_the_warm_sets_choice_is_recorded_as_far_as_a_name_is_long() -> None:
    for told, stored in (("node-7", "node-7"), ("n" * 300, "n" * 253)):
        body = pod_object("p", 2)
        body["metadata"]["annotations"] = {WARM_TARGET_ANNOTATION: told}
        assert pod_record(pod_reading(body), "user").warm_target == stored


@pytest.mark.parametrize("broken", ["judge", "pod_changed"])
def test_a_model_that_fails_of_one_pod_costs_no_row(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broken: str
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    model = Model({"default-scheduler": default_profile(NEWEST_MINOR)})
    monkeypatch.setattr(model, broken, fail)
    cluster = Cluster()
    with Run(cluster, store, model) as run:
        wait_until(lambda: run.recording.readiness().passed, 30, "lists")
        bound = pod_object("p", 12, on="n")
        cluster.said += [
            {"type": "ADDED", "object": pod_object("p", 11)},
            {"type": "MODIFIED", "object": bound},
            {
                "type": "DELETED",
                "object": bound | {"metadata": bound["metadata"] | {"resourceVersion": "13"}},
            },
        ]
        run.wait_for("13")
        assert (
            run.metrics.registry.get_sample_value(
                "roost_recorder_odd_objects_total", {"kind": PODS}
            )
            is None
        )
    (row,) = rows(store, schema.pod)
    assert (row["name"], row["end_reason"]) == ("p", "deleted")
    (decision,) = rows(store, schema.decision)
    if broken == "judge":
        assert (decision["model"], decision["model_note"]) == (
            "unknown",
            "the model failed, see the recorder's log",
        )
    assert "ZeroDivisionError" in caplog.text


def test_a_recorder_whose_stream_has_ended_ends_too_and_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = EventStream.run
    # Namespaces are still listed: their watch cache is such a stream, too.
    monkeypatch.setattr(
        EventStream, "run", lambda one, stop: run(one, stop) if one.kind == "namespaces" else None
    )
    stop = threading.Event()
    recording = Run(Cluster(), store).recording
    with pytest.raises(RecordingError, match="stream-nodes has ended"):
        recording.run(stop)
