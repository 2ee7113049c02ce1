"""On a real kubelet: a pod whose volume can't be mounted for a while, and one whose init container
takes its time. `roost why` explains them live and from exported Events; `doctor --now` and start
notices tell of them.
"""

import json
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest

from lab.tests.e2e.recorder.witness import start_recorder
from roost.cli import run
from roost_core.objects.fields import JSONObject
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import or_give_up
from tests.harness.pods import is_ready
from tests.harness.real_nodes import RealNode
from tests.harness.registry import RealRegistry
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

HELD_SECONDS: Final = 25.0
INIT_SECONDS: Final = 22
VALUES: Final[dict[str, Any]] = {
    "placeholders": [],
    "prePuller": {"enabled": False},
    "imageGate": {"mode": "off"},
}


@pytest.fixture
def node() -> Iterator[tuple[ControlPlane, RealRegistry]]:
    cluster = ControlPlane()
    with or_give_up():
        cluster.start()
    try:
        with or_give_up(), start_scheduler(cluster) as scheduler, RealRegistry() as registry:
            scheduler.wait_serving()
            with RealNode(cluster, "node-1", registry):
                yield cluster, registry
    finally:
        cluster.stop()


def user(name: str, image: str, **spec: Any) -> JSONObject:
    labels = {"component": "singleuser-server", "app": "jupyterhub"}
    container = {"name": "notebook", "image": image, **spec.pop("container", {})}
    rest = {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}
    return {"metadata": {"name": name, "labels": labels}, "spec": rest}


def seconds_of(line: str) -> float:
    """Of a duration in words: 25 s, 1 min 5 s."""
    minutes = re.search(r"(\d+) min", line)
    seconds = re.search(r"([\d.]+) s\b", line)
    assert minutes or seconds, line
    return 60 * int(minutes[1] if minutes else 0) + float(seconds[1] if seconds else 0)


def test_a_volume_and_an_init_container_are_what_a_start_waited_for(
    node: tuple[ControlPlane, RealRegistry], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, registry = node
    namespace = cluster.create_namespace()
    image = registry.push_program("me/lab:1").reference
    sleeps = registry.push_program("me/chown:1", "sleep", str(INIT_SECONDS)).reference
    live = tmp_path / "live.db"
    recorder = start_recorder(cluster, namespace, str(live), tmp_path)
    recorder.wait_ready()

    def notices(pod: str) -> list[str]:
        events = cluster.api.list(
            f"/api/v1/namespaces/{namespace}/events", fieldSelector=f"involvedObject.name={pod}"
        )
        return [
            event["message"]
            for event in events
            if event.get("reportingComponent") == "roost-controllers"
        ]

    def why(pod: str, database: Path) -> str:
        assert run(["why", f"{namespace}/{pod}", "--database", str(database)]) == 0
        return capsys.readouterr().out

    with Stack(cluster, namespace, VALUES, scheduler=False, webhook=False, controllers=True):
        mounts = [{"name": "home", "mountPath": "/home"}]
        volume = {"name": "home", "secret": {"secretName": "later"}}
        began = time.monotonic()
        held = user("jupyter-held", image, container={"volumeMounts": mounts}, volumes=[volume])
        cluster.create_pod(held, namespace)
        init = {"name": "chown", "image": sleeps}
        cluster.create_pod(user("jupyter-init", image, initContainers=[init]), namespace)
        # Its kubelet can't make its sandbox: the runtime has no such handler.
        absent = {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "absent"},
            "handler": "absent",
        }
        cluster.api.create(absent)
        lost = user("jupyter-lost", image, runtimeClassName="absent")
        cluster.create_pod(lost, namespace)
        wait_until(lambda: notices("jupyter-held"), 60, "a start notice of the volume")
        wait_until(lambda: notices("jupyter-init"), 60, "a start notice of the init container")
        kubeconfig = str(cluster.kubeconfig)
        run(["doctor", "--now", "--namespace", namespace, "--kubeconfig", kubeconfig])
        now = capsys.readouterr().out
        age = time.monotonic() - began
        line = next(line for line in now.splitlines() if "jupyter-held" in line)
        assert abs(seconds_of(line.partition("newest ")[2].partition(",")[0]) - age) <= 4, now
        assert "FailedMount: MountVolume.SetUp failed for volume" in now
        assert "FailedCreatePodSandBox: " in now
        wait_until(
            lambda: "so far for its sandbox: " in why("jupyter-lost", live), 60, "its record"
        )
        assert " so far for its volume: " in why("jupyter-held", live)
        wait_until(lambda: notices("jupyter-lost"), 60, "a start notice of the sandbox")
        time.sleep(max(0.0, HELD_SECONDS - (time.monotonic() - began)))
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "later"}}
        cluster.api.create(secret, namespace)
        for pod in ("jupyter-held", "jupyter-init"):
            cluster.wait_for_pod(pod, namespace, is_ready, "become ready", 120)
        assert notices("jupyter-held")[0].startswith("Waiting for your server's volume, for ")
        said_of_init = " ".join(notices("jupyter-init"))
        assert "Preparing your server. The step chown has taken " in said_of_init
    wait_until(lambda: "its containers ran" in why("jupyter-held", live), 60, "it to be recorded")
    wait_until(lambda: "its containers ran" in why("jupyter-init", live), 60, "it to be recorded")
    recorder.process.stop()
    events = tmp_path / "events.json"
    exported = cluster.api.get("/api/v1/events")
    events.write_text(json.dumps(exported))
    database = tmp_path / "imported.db"
    assert run(["records", "import", str(events), "--database", str(database)]) == 0
    capsys.readouterr()
    warned = [event for event in exported["items"] if event["reason"] == "FailedMount"]
    first = min(datetime.fromisoformat(event["firstTimestamp"]) for event in warned)
    (ready,) = (
        condition["lastTransitionTime"]
        for condition in cluster.pod("jupyter-held", namespace)["status"]["conditions"]
        if condition["type"] == "Ready"
    )
    took = (datetime.fromisoformat(ready) - first).total_seconds()
    for source in (live, database):
        of_volume = next(
            line for line in why("jupyter-held", source).splitlines() if "for its volume" in line
        )
        assert "MountVolume.SetUp failed for volume home: secret later not found" in of_volume
        assert abs(seconds_of(of_volume.partition(" for ")[0]) - took) <= 5, (of_volume, took)
        of_init = next(
            line for line in why("jupyter-init", source).splitlines() if "init container" in line
        )
        assert abs(seconds_of(of_init.partition(" for ")[0]) - INIT_SECONDS) <= 3, of_init
    run(["report", "--database", str(live), "--format", "json"])
    said = json.loads(capsys.readouterr().out)["sentence"]
    assert "waited for its volume" in said
    assert "waited for its sandbox" in said
    assert "waited for init containers" in said
