"""The recorder when its cluster is put back from a backup: etcd's own files of an hour ago."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from roost_core.kube.account import connect
from roost_lab.recorder.recording.metrics import RecorderMetrics
from roost_lab.recorder.recording.recorder import Recording
from roost_lab.recorder.recording.settings import parse_settings
from roost_lab.recorder.store import schema
from roost_lab.recorder.store.database import Store
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import own_cluster
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e

STORED_SECONDS = 120.0


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
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


class Recorder:
    """A recorder in this process, while the block lasts."""

    def __init__(self, cluster: ControlPlane, store: Store) -> None:
        settings = parse_settings(
            {
                "version": 1,
                "release": "hub",
                "namespace": "hub",
                "podClasses": {},
                "retentionDays": 0,
                "imageGate": {"mode": "off"},
            }
        )
        self._stop = threading.Event()
        recording = Recording(connect(cluster.kubeconfig), settings, store, RecorderMetrics("test"))
        self._thread = threading.Thread(target=recording.run, args=(self._stop,))

    def __enter__(self) -> "Recorder":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def ends(store: Store, namespace: str) -> dict[str, str | None]:
    """Why each pod of the namespace went, by name; None: it is there."""
    query = sa.select(schema.pod.c.name, schema.pod.c.end_reason).where(schema.pod.c.namespace == namespace)
    with store.reading() as connection:
        return {row.name: row.end_reason for row in connection.execute(query)}


@pytest.mark.parametrize("is_running", [True, False], ids=["while it runs", "while it is away"])
def test_it_marks_a_gap_lists_again_and_goes_on(cluster: ControlPlane, tmp_path: Path, *, is_running: bool) -> None:
    namespace = cluster.create_namespace()

    def create(name: str) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        cluster.create_pod({"metadata": {"name": name}, "spec": spec}, namespace)

    def wait_for(names: set[str]) -> None:
        wait_until(lambda: ends(store, namespace).keys() >= names, STORED_SECONDS, f"{names} to be stored")

    create("stays")
    etcd = Etcd(cluster)
    etcd.save()
    store = Store.open(str(tmp_path / "roost.db"))
    store.migrate()
    lost = {f"lost-{number}" for number in range(20)}
    with Recorder(cluster, store):
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
        with Recorder(cluster, store):
            wait_for({"new"})
    assert ends(store, namespace) == {"stays": None, "new": None, **dict.fromkeys(lost, "unseen")}
    with store.reading() as connection:
        gaps = connection.execute(sa.select(schema.gap.c.kind, schema.gap.c.why)).all()
    assert {kind for kind, _ in gaps} >= {"pods"}
    assert all("before the last position" in why for _, why in gaps)
    store.close()
