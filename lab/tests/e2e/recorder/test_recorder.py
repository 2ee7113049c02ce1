"""The recorder on a real control plane, under load and with faults: its database against the API
server's audit log.
"""

import contextlib
import itertools
import json
import random
import shutil
import sqlite3
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import pytest
import sqlalchemy as sa

from lab.tests.e2e.recorder.witness import Comparison, Witness, moment_us, start_recorder
from lab.tests.unit.recorder.test_recorder_recording import Run
from roost.cli import run
from roost_core.kube.account import connect
from roost_core.objects.fields import JSONObject
from roost_lab.recorder.answers.pod_story import PodStory, find_pods, read_story
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from roost_lab.recorder.store.records import DecisionKind, Verdict
from roost_lab.recorder.store.schema import POSTGRESQL, SQLITE
from tests.e2e.relays import CuttableProxy
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up, own_cluster
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.postgres import Postgres
from tests.harness.scheduler import start_scheduler
from tests.harness.talk import say
from tests.harness.waiting import wait_until
from tests.stack import Replica

pytestmark = pytest.mark.e2e

US = 1_000_000
LOW, HIGH = "recorder-low", "recorder-high"
# From a change until its row is there, on a machine that does other things, too.
STORED_SECONDS = 90.0
# From the API server's answer to the moment that an observer tells, likewise.
DELIVERED_US = 20 * US
SQLITE_WAITS_SECONDS = 30.0


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of our own with a scheduler: it is restarted here, and writes an audit
    log.
    """
    own = ControlPlane(audit_level="Metadata")
    with or_give_up():
        own.start()
    for name, value in ((LOW, 0), (HIGH, 1000)):
        own.api.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )
    with start_scheduler(own) as scheduler:
        scheduler.wait_serving()
        yield own
    own.stop(keep_logs=request.session.testsfailed > 0)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with or_give_up(), Postgres() as own:
        yield own


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file or a URL of a database that isn't there yet, or is empty."""
    if request.param == SQLITE:
        return str(tmp_path / "roost.db")
    own: Postgres = request.getfixturevalue("server")
    return own.create(tmp_path.name)


class World:
    """One namespace with nodes, pods that come and go, and a recorder that can be failed."""

    def __init__(self, cluster: ControlPlane, database: str, folder: Path) -> None:
        self.cluster = cluster
        self.database = database
        self.namespace = cluster.create_namespace()
        self.nodes = FakeNodes(cluster.api)
        self.folder = folder
        self._exits = contextlib.ExitStack()
        self._starts = 0
        self._numbers = iter(range(100_000))
        self._chance = random.Random(7)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self.proxy = self._exits.enter_context(CuttableProxy(self.cluster))
        self.kubeconfig = self.proxy.kubeconfig(self.cluster.kubeconfig)
        self._exits.enter_context(self.nodes)
        self._exits.enter_context(PodKeeper(self.cluster.api))
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(AttributeError):
            self.recorder.process.kill()
        for pod in self.cluster.api.list(f"/api/v1/namespaces/{self.namespace}/pods"):
            self.delete_pod(pod["metadata"]["name"])
        self._exits.close()
        self.cluster.api.delete(f"/api/v1/namespaces/{self.namespace}")

    # The recorder

    def start(self, *, ready: bool = True) -> Replica:
        """Start the recorder; returns when it says that it records."""
        self._starts += 1
        name = f"record-{self.namespace}-{self._starts}"
        self.recorder = start_recorder(
            self.cluster,
            self.namespace,
            self.database,
            self.folder,
            kubeconfig=self.kubeconfig,
            name=name,
        )
        if ready:
            self.recorder.wait_ready()
        return self.recorder

    def memory_mib(self) -> float:
        """Of the recorder, as the kernel counts it now."""
        status = Path(f"/proc/{self.recorder.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    # Load

    def add_nodes(self, count: int) -> list[str]:
        names = [f"{self.namespace}-{next(self._numbers)}" for _ in range(count)]
        self.nodes.create_many(
            names, cpu="4", labels={"pool": self.namespace}, images={"me/image:1": 10**9}
        )
        return names

    def create_pod(self, priority: str = LOW, name: str = "", cpu: str = "") -> str:
        with self._lock:
            name = name or f"pod-{next(self._numbers)}"
            cpu = cpu or f"{self._chance.choice([200, 500, 1000])}m"
        requests = {"cpu": cpu, "memory": "256Mi"}
        self.cluster.create_pod(
            {
                "metadata": {
                    "name": name,
                    "labels": {"component": "singleuser-server", "app": "jupyterhub"},
                },
                "spec": {
                    "containers": [
                        {"name": "c", "image": "me/image:1", "resources": {"requests": requests}}
                    ],
                    "nodeSelector": {"pool": self.namespace},
                    "priorityClassName": priority,
                    "terminationGracePeriodSeconds": 1,
                },
            },
            self.namespace,
        )
        return name

    def delete_pod(self, name: str) -> None:
        self.cluster.api.delete(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def churn(self, pods: int) -> None:
        """So many pods come, and most go again: some at once, some later, some for others; nodes
        come and go, too.
        """

        def one(number: int) -> None:
            name = self.create_pod(HIGH if number % 4 == 0 else LOW)
            with self._lock:
                fate = self._chance.random()
            if fate < 0.7:
                time.sleep(fate)
                self.delete_pod(name)

        extra: list[str] = []
        with ThreadPoolExecutor(6) as pool:
            for start in range(0, pods, 50):
                list(pool.map(one, range(start, min(pods, start + 50))))
                extra += self.add_nodes(1)
                self.nodes.cordon(extra[-1])
                if len(extra) > 2:
                    self.nodes.delete(extra.pop(0))

    # The truth

    def truth(self) -> "Truth":
        """What the API server did with pods of the namespace, so far."""
        truth = Truth()
        for event in self.cluster.audit_events():
            about = event.get("objectRef") or {}
            is_done = event.get("responseStatus", {}).get("code", 0) < 300
            if (
                about.get("resource") != "pods"
                or about.get("namespace") != self.namespace
                or not is_done
            ):
                continue
            between = (
                moment_us(event["requestReceivedTimestamp"]),
                moment_us(event["stageTimestamp"]),
            )
            what = (event["verb"], about.get("subresource", ""))
            if what == ("create", ""):
                truth.created[about["name"]] = between
            elif what == ("create", "binding"):
                truth.bound.setdefault(about["name"], []).append(between)
            elif what == ("delete", ""):
                # The first one asks a pod that runs to go; with the last it is gone.
                truth.deleted[about["name"]] = max(
                    between, truth.deleted.get(about["name"], between)
                )
        here = self.cluster.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        for pod in here:
            truth.deleted.pop(pod["metadata"]["name"], None)
            truth.here[pod["metadata"]["name"]] = pod["spec"].get("nodeName", "")
        return truth

    def record(self) -> "Recorded":
        """What the database holds of the namespace."""
        store = Store.open(self.database)
        with store.reading() as connection:

            def rows(query: sa.Select[Any]) -> list[JSONObject]:
                return [dict(row) for row in connection.execute(query).mappings()]

            pods = rows(sa.select(schema.pod).where(schema.pod.c.namespace == self.namespace))
            ours = sa.select(schema.pod.c.uid).where(schema.pod.c.namespace == self.namespace)
            recorded = Recorded(
                pods=pods,
                decisions=rows(
                    sa.select(schema.decision).where(schema.decision.c.pod_uid.in_(ours))
                ),
                phases=rows(sa.select(schema.phase).where(schema.phase.c.pod_uid.in_(ours))),
                gaps=rows(sa.select(schema.gap)),
                runs=rows(sa.select(schema.run)),
            )
        store.close()
        return recorded

    def is_leaving(self) -> bool:
        """Whether a pod waits for its end."""
        pods = self.cluster.api.list(f"/api/v1/namespaces/{self.namespace}/pods")
        return any("deletionTimestamp" in pod["metadata"] for pod in pods)

    def settle(self) -> None:
        """Wait until nothing is left to be done: no pod that waits for its end, and the database
        has the last one.
        """

        wait_until(lambda: not self.is_leaving(), STORED_SECONDS, "deletions to end")
        marker = self.create_pod()
        self.delete_pod(marker)

        def has_marker() -> bool:
            found = [pod for pod in self.record().pods if pod["name"] == marker]
            return bool(found and found[0]["deleted_us"] is not None)

        wait_until(
            has_marker,
            STORED_SECONDS,
            "the last pod to be stored",
            interval_seconds=0.5,
            explain=self.recorder_tail,
        )
        # Events are a stream of their own.
        time.sleep(2.0)

    def wait_queued(self, seconds: float) -> None:
        """Until the recorder says that it can't store."""
        said = self.recorder.process.log
        wait_until(
            lambda: "rows are queued" in said(), seconds, "it to notice", explain=self.recorder_tail
        )

    def recorder_tail(self) -> str:
        return f"{self.recorder.get('/readyz')}\n{self.recorder.process.tail(40)}"

    def check(self) -> "Recorded":
        """The database holds what the API server did, once each, at the moments that it can know.
        Returns it.

        Only what began and ended within a marked gap may be missing; most tests allow no gap.
        """
        truth, record = self.truth(), self.record()
        for name in truth.created.keys() - {pod["name"] for pod in record.pods}:
            # Nobody could see it: it came and went while the API server had forgotten where the
            # recorder was.
            from_us, to_us = truth.created[name][0], truth.deleted[name][1]
            spans = [(gap["from_us"], gap["to_us"]) for gap in record.gaps if gap["kind"] == "pods"]
            assert any(first <= from_us and to_us <= last for first, last in spans), (
                name,
                from_us,
                to_us,
                spans,
            )
            for told in (truth.created, truth.bound, truth.deleted):
                told.pop(name, None)
        assert Counter(pod["name"] for pod in record.pods) == Counter(truth.created.keys())
        names = {pod["uid"]: pod["name"] for pod in record.pods}
        for pod in record.pods:
            first, last = truth.created[pod["name"]]
            assert first // US * US <= pod["created_us"] <= last, pod
        binds = [decision for decision in record.decisions if decision["kind"] == "bind"]
        assert Counter(names[bind["pod_uid"]] for bind in binds) == Counter(truth.bound.keys())
        for bind in binds:
            (first, last), resolution_us = (
                truth.bound[names[bind["pod_uid"]]][0],
                bind["resolution_us"],
            )
            assert first // resolution_us * resolution_us <= bind["at_us"], bind
            assert bind["at_us"] <= last + (DELIVERED_US if bind["source"] == "event" else 0), bind
            assert truth.here.get(names[bind["pod_uid"]]) in (None, bind["node_name"]), bind
        ended = {pod["name"] for pod in record.pods if pod["deleted_us"] is not None}
        assert ended == set(truth.deleted)
        for phase in record.phases:
            if phase["phase"] == "gone":
                first, last = truth.deleted[names[phase["pod_uid"]]]
                assert first <= phase["at_us"], (first, last, phase)
                assert phase["at_us"] - phase["resolution_us"] <= last + DELIVERED_US, (
                    first,
                    last,
                    phase,
                )
        return record


@dataclass
class Truth:
    """What the audit log says of pods, by name: between which two moments (µs) each thing was
    done.
    """

    created: dict[str, tuple[int, int]] = field(default_factory=dict)
    bound: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    deleted: dict[str, tuple[int, int]] = field(default_factory=dict)
    # Pods that are there now, and their nodes.
    here: dict[str, str] = field(default_factory=dict)


@dataclass
class Recorded:
    """Rows of the database."""

    pods: list[JSONObject]
    decisions: list[JSONObject]
    phases: list[JSONObject]
    gaps: list[JSONObject]
    runs: list[JSONObject]


@pytest.fixture
def world(cluster: ControlPlane, database: str, tmp_path: Path) -> Iterator[World]:
    with World(cluster, database, tmp_path) as made:
        yield made


@pytest.fixture
def sqlite_world(cluster: ControlPlane, tmp_path: Path) -> Iterator[World]:
    with World(cluster, str(tmp_path / "roost.db"), tmp_path) as made:
        yield made


def test_under_load_everything_is_stored_once(world: World) -> None:
    world.add_nodes(8)
    world.start()
    with Witness(world.cluster, world.namespace) as witness:
        world.churn(300)
        world.settle()
    record = world.check()
    assert record.gaps == []
    found = Comparison(witness.told(), world.database, world.namespace)
    assert found.differences == []
    assert min(found.compared["pre-empted"], found.compared["unschedulable"]) > 0
    words = Counter(
        decision["model"] for decision in record.decisions if decision["kind"] == "bind"
    )
    kinds = Counter(decision["kind"] for decision in record.decisions)
    ends = Counter(pod["end_reason"] for pod in record.pods)
    rate = words[Verdict.AGREES] / max(1, words[Verdict.AGREES] + words[Verdict.DIFFERS])
    say(
        f"in a burst the model agrees with {rate:.1%} of {sum(words.values())} bindings:"
        f" {dict(words)}"
    )
    say(f"decisions {dict(kinds)}, ends {dict(ends)}, {world.memory_mib():.0f} MiB")
    assert min(kinds["fail"], kinds["preempt"], ends["preempted"]) > 0
    # Each binding was judged. A burst is told in another order than it happens: where the model
    # differs, that is why.
    notes = {row["model_note"] for row in record.decisions if row["model"] == Verdict.UNKNOWN}
    assert None not in words
    assert all(note.endswith("pods or nodes had just changed") for note in notes)
    assert rate >= 0.9


def test_of_a_pod_that_waits_each_node_lacks_what_the_scheduler_counts(
    sqlite_world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world = sqlite_world
    full, cordoned, tainted, elsewhere = world.add_nodes(4)
    world.nodes.cordon(cordoned)
    world.nodes.set_taints(tainted, ["gpu=yes:NoSchedule"])
    world.nodes.set_labels(elsewhere, {"pool": "other"})
    world.start()
    name = world.create_pod(name="jupyter-zoe", cpu="500")

    store = Store.open_for_reading(world.database)

    def examined() -> PodStory | None:
        stories = [read_story(store, pod) for pod in find_pods(store, name, world.namespace)]
        return next(
            (
                story
                for story in stories
                if story.of_kind(DecisionKind.FAIL) and story.waiting is not None
            ),
            None,
        )

    told = wait_until(
        examined, STORED_SECONDS, "the attempt to be stored", explain=world.recorder_tail
    )
    assert told.waiting is not None
    lacks = {
        node["node_name"]: [lack["kind"] for lack in node["lacks"]]
        for node in told.waiting["nodes"]
    }
    assert {node: lacks[node] for node in (full, cordoned, tainted, elsewhere)} == {
        full: ["room"],
        cordoned: ["cordon", "room"],
        tainted: ["taint", "room"],
        elsewhere: ["label", "room"],
    }
    # kube-scheduler counts each node once, by its first fault.
    first = Counter(kinds[0] for kinds in lacks.values())
    reasons = json.loads(told.of_kind(DecisionKind.FAIL)[-1]["reasons"])
    assert reasons.get("Insufficient cpu") == first["room"], (reasons, lacks)
    assert sum(reasons.values()) == len(lacks)
    assert run(["why", f"{world.namespace}/{name}", "--database", world.database]) == 0
    out = capsys.readouterr().out
    assert "asks 500 CPU, the largest node has 4 CPU" in out
    say(out)


def churn_beside(world: World, action: Callable[[threading.Event], None]) -> None:
    """Let pods come and go while an action goes on, until its event is set."""
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(action, over)
        try:
            world.churn(200)
        finally:
            over.set()
        going.result()


def test_killed_again_and_again_under_load_it_loses_and_doubles_nothing(world: World) -> None:
    world.add_nodes(4)
    world.start()

    def kill_and_start(over: threading.Event) -> None:
        chance = random.Random(3)
        for number in itertools.count():
            if over.wait(chance.uniform(0.5, 3.0)) and number >= 4:
                return
            world.recorder.process.kill()
            time.sleep(chance.uniform(0.0, 1.5))
            # One that dies while it starts leaves no run: every second is left to begin, however
            # slow the machine is.
            world.start(ready=number % 2 == 1)

    churn_beside(world, kill_and_start)
    world.settle()
    record = world.check()
    assert len(record.runs) >= 3
    assert record.gaps == []


def test_watches_that_break_and_stay_away_lose_nothing(sqlite_world: World) -> None:
    world = sqlite_world
    world.add_nodes(4)
    world.start()

    def cut(over: threading.Event) -> None:
        for number in range(1000):
            if over.wait(0.7):
                return
            world.proxy.cut()
            if number % 5 == 4:
                world.proxy.refuse()
                over.wait(3.0)
                world.proxy.refuse(on=False)

    churn_beside(world, cut)
    world.settle()
    assert world.check().gaps == []
    assert world.recorder.metric("roost_recorder_stream_errors_total") > 3


def test_an_api_server_that_restarts_loses_nothing_but_what_a_gap_tells(
    sqlite_world: World,
) -> None:
    world = sqlite_world
    world.add_nodes(4)
    world.start()
    world.churn(60)
    world.settle()
    world.cluster.apiserver.kill()
    world.cluster.start_apiserver()
    world.churn(60)
    world.settle()
    world.check()


def test_what_the_api_server_forgot_is_a_gap_and_ends_that_nobody_saw(world: World) -> None:
    world.add_nodes(4)
    world.start()
    stays, goes = world.create_pod(HIGH), world.create_pod(HIGH)
    world.settle()
    world.recorder.process.kill()
    killed_us = time.time_ns() // 1000
    missed = world.create_pod()
    for name in (goes, missed):
        world.delete_pod(name)
    wait_until(lambda: goes in world.truth().deleted, STORED_SECONDS, "the pod to go")
    forget_the_past(world.cluster)
    world.start()
    new = world.create_pod()
    world.settle()
    record = world.record()
    pods = {pod["name"]: pod for pod in record.pods}
    assert missed not in pods
    assert (pods[goes]["end_reason"], pods[stays]["deleted_us"]) == ("unseen", None)
    assert pods[new]["deleted_us"] is None
    gap = next(gap for gap in record.gaps if gap["kind"] == "pods")
    truth = world.truth()
    # It spans all that wasn't seen, and no more than bookmarks allow.
    assert gap["from_us"] < truth.created[missed][0]
    assert killed_us - 120 * US < gap["from_us"] < killed_us
    assert truth.deleted[goes][1] < gap["to_us"] == pods[goes]["deleted_us"]


def forget_the_past(cluster: ControlPlane) -> None:
    """Compact etcd up to now, while the API server is away and forgets what it kept in memory."""
    cluster.apiserver.kill()

    def post(path: str, body: JSONObject) -> JSONObject:
        request = urllib.request.Request(f"{cluster.etcd_url}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: JSONObject = json.load(answer)
            return found

    revision = post("/v3/maintenance/status", {})["header"]["revision"]
    post("/v3/kv/compaction", {"revision": revision, "physical": True})
    cluster.start_apiserver()


def test_a_postgresql_that_goes_and_comes_back_is_waited_for(
    cluster: ControlPlane, server: Postgres, tmp_path: Path
) -> None:
    with World(cluster, server.create(tmp_path.name), tmp_path) as world:
        world.add_nodes(4)
        world.start()
        world.churn(50)
        for kill in (False, True):
            before_mib = world.memory_mib()
            server.down(kill=kill)
            world.churn(100)
            world.wait_queued(60)
            assert world.recorder.get("/readyz")[0] == 503
            assert world.memory_mib() < before_mib + 100
            server.up()
            world.settle()
            assert world.recorder.get("/readyz")[0] == 200
        assert world.check().gaps == []


def test_a_file_that_another_writer_holds_longer_than_sqlite_waits_is_written_afterwards(
    sqlite_world: World,
) -> None:
    world = sqlite_world
    world.add_nodes(4)
    world.start()
    world.churn(30)
    writer = sqlite3.connect(world.database, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    began_at = time.monotonic()
    world.churn(100)
    world.wait_queued(SQLITE_WAITS_SECONDS + 60)
    assert time.monotonic() - began_at > SQLITE_WAITS_SECONDS
    writer.execute("ROLLBACK")
    writer.close()
    world.settle()
    assert world.check().gaps == []


@pytest.fixture
def own(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of our own: nobody else survives what is done to it."""
    yield from own_cluster(request)


class Etcd:
    """The cluster's memory, to be saved and put back."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._command = Path(f"/proc/{cluster.etcd.pid}/cmdline").read_text().split("\0")[:-1]
        self._data = cluster.folder / "etcd"
        self._saved = cluster.folder / "etcd-saved"

    def save(self) -> None:
        self._with_all_down(lambda: shutil.copytree(self._data, self._saved))

    def put_back(self) -> None:
        def replace() -> None:
            shutil.rmtree(self._data)
            shutil.copytree(self._saved, self._data)

        self._with_all_down(replace)

    def _with_all_down(self, act: Any) -> None:
        self._cluster.apiserver.kill()
        self._cluster.etcd.kill()
        act()
        program, *flags = self._command
        self._cluster.etcd = self._cluster.run.start("etcd", Path(program), flags)
        self._cluster.start_apiserver()


def ends(store: Store, namespace: str) -> dict[str, str | None]:
    """Why each pod of the namespace went, by name; None: it is there."""
    query = sa.select(schema.pod.c.name, schema.pod.c.end_reason).where(
        schema.pod.c.namespace == namespace
    )
    with store.reading() as connection:
        return {row.name: row.end_reason for row in connection.execute(query)}


@pytest.mark.parametrize("is_running", [True, False], ids=["while it runs", "while it is away"])
def test_it_marks_a_gap_lists_again_and_goes_on(
    own: ControlPlane, tmp_path: Path, *, is_running: bool
) -> None:
    namespace = own.create_namespace()

    def create(name: str) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        own.create_pod({"metadata": {"name": name}, "spec": spec}, namespace)

    def wait_for(names: set[str]) -> None:
        wait_until(
            lambda: ends(store, namespace).keys() >= names, STORED_SECONDS, f"{names} to be stored"
        )

    create("stays")
    etcd = Etcd(own)
    etcd.save()
    store = Store.open(str(tmp_path / "roost.db"))
    store.migrate()
    lost = {f"lost-{number}" for number in range(20)}
    with Run(cast("Any", connect(own.kubeconfig)), store):
        for name in sorted(lost):
            create(name)
        wait_for({"stays", *lost})
        if is_running:
            etcd.put_back()
            create("new")
            wait_for({"new"})
    if not is_running:
        etcd.put_back()
        create("new")
        with Run(cast("Any", connect(own.kubeconfig)), store):
            wait_for({"new"})
    assert ends(store, namespace) == {"stays": None, "new": None, **dict.fromkeys(lost, "unseen")}
    with store.reading() as connection:
        gaps = connection.execute(sa.select(schema.gap.c.kind, schema.gap.c.why)).all()
    assert {kind for kind, _ in gaps} >= {"pods"}
    assert all("before the last position" in why for _, why in gaps)
    store.close()
