"""Roost installed as an operator does it: Helm, a real API server, and a real kubelet that runs
Roost's own image.

Nothing stands in for a part of Roost: its pods run as rendered, by the defaults, in a network of
their own and a namespace that takes `restricted` pods only. The cluster's own scheduler places what
names none; Roost's, from its own pods, places users and placeholders. What a cluster has and this
one hasn't: kube-proxy (the API server picks endpoints by itself), DNS, and a network plugin that
enforces NetworkPolicies.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import (
    attract_label,
    is_own_node_label,
    pulled_label,
    scheduler_name,
)
from tests.builders import merged
from tests.e2e.leftovers import leftovers
from tests.e2e.spawned import spawned_pod
from tests.e2e.storm import Storm
from tests.harness.cgroups import memory_bytes
from tests.harness.fixtures import networked_nodes, push_roost, require_binary
from tests.harness.real_nodes import RealNode, condition
from tests.harness.registry import RealRegistry
from tests.harness.talk import say
from tests.harness.waiting import wait_until
from tests.parity.renderers import CHART, run_helm
from tests.recorded_data import object_of

pytestmark = pytest.mark.e2e

RELEASE = "hub"
LAB, DATA, NEWER = "quay.io/me/lab:1", "quay.io/me/data:1", "quay.io/me/newer:1"
# Bounds for an overloaded machine.
TIMEOUT = "--timeout=8m"
SECONDS = 240.0
# So many at once create pods while an upgrade goes on, each with this pause: the API server keeps
# several connections.
CREATORS = 4
PAUSE_SECONDS = 0.1
VALUES: dict[str, Any] = object_of("values-to-install")
# Restarts each of Roost's programs, and has the puller bring one image more.
CHANGED: dict[str, Any] = object_of("values-to-upgrade")
# One pod a program: two on the host's network don't fit on one node.
ON_HOST: dict[str, Any] = merged(VALUES, object_of("values-on-the-host"))


class World:
    """A cluster with one real node, a registry that holds all images, and Helm."""

    def __init__(self, node: RealNode, folder: Path) -> None:
        self.cluster = node.cluster
        self.node = node
        self.folder = folder
        self._files = itertools.count(1)
        # Roost as it is, but for the webhook's wait: what is tried is the hand-over between pods,
        # not how late a machine with other things to do can be.
        self.tree = folder / "roost-that-waits"
        for name in ("chart", "generator", "roost", "roost_core", "templates", "webhook"):
            shutil.copytree(
                CHART.parent / name, self.tree / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in ("chart/templates/webhook/_entries.tpl", "templates/webhook/_entries.yaml.j2"):
            text = (self.tree / name).read_text()
            assert "timeoutSeconds: 2" in text
            (self.tree / name).write_text(text.replace("timeoutSeconds: 2", "timeoutSeconds: 10"))

    def helm(
        self,
        program: Path,
        verb: str,
        namespace: str,
        *,
        values: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        """Run `helm install|upgrade|uninstall --wait` as the cluster's administrator."""
        arguments = [verb, RELEASE, *([] if verb == "uninstall" else [str(self.tree / "chart")])]
        for value in values:
            path = self.folder / f"values-{next(self._files)}.yaml"
            path.write_text(yaml.safe_dump(dict(value)))
            arguments.append(f"--values={path}")
        run_helm(
            program,
            *arguments,
            f"--namespace={namespace}",
            "--wait",
            TIMEOUT,
            kubeconfig=self.cluster.kubeconfig,
        )

    def pods(self, namespace: str) -> list[JSONObject]:
        return self.cluster.api.list(f"/api/v1/namespaces/{namespace}/pods")

    def own_pods(self, namespace: str) -> dict[str, JSONObject]:
        """Roost's own pods by name, without those that are leaving."""
        return {
            pod["metadata"]["name"]: pod
            for pod in self.pods(namespace)
            if pod["metadata"]["labels"].get("app.kubernetes.io/part-of") == "roost"
            and not pod["metadata"].get("deletionTimestamp")
        }

    def all_ready(self, namespace: str) -> bool:
        return all(condition(pod, "Ready") == "True" for pod in self.own_pods(namespace).values())

    def leaving(self, namespace: str) -> list[str]:
        return [
            pod["metadata"]["name"]
            for pod in self.pods(namespace)
            if pod["metadata"].get("deletionTimestamp")
        ]

    def events(self, namespace: str, **fields: str) -> list[JSONObject]:
        selector = ",".join(f"involvedObject.{key}={value}" for key, value in fields.items())
        return self.cluster.api.list(
            f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector
        )

    def marks(self, namespace: str) -> set[str]:
        node = self.cluster.api.get(f"/api/v1/nodes/{self.node.name}")
        found = {
            key for key in node["metadata"]["labels"] if is_own_node_label(RELEASE, namespace, key)
        }
        return found | {taint["key"] for taint in node["spec"].get("taints", ())}

    def why(self, namespace: str) -> str:
        """What to read when the release doesn't come up."""
        lines = []
        for pod in self.pods(namespace):
            name, status = pod["metadata"]["name"], pod["status"]
            lines.append(f"{name}: {status.get('phase')}")
            states = [
                json.dumps(one["state"])
                for one in status.get("containerStatuses", ())
                if not one["ready"]
            ]
            lines += [f"  {state}" for state in states]
            lines += [
                f"  {event['reason']}: {event['message']}"
                for event in self.events(namespace, name=name)[-6:]
            ]
        for path in sorted(self.node.path_in_node("/var/log/pods").glob(f"{namespace}_*/*/*.log")):
            lines += [
                f"{path.parts[-3]}: {line}"
                for line in path.read_text(errors="replace").splitlines()[-15:]
            ]
        return "\n".join(lines)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("install")

    def fill(registry: RealRegistry) -> None:
        push_roost(registry)
        registry.push_program("me/lab:1", size_bytes=5_000_000)
        registry.push("me/data:1", size_bytes=1_000_000)
        registry.push("me/newer:1", size_bytes=1_000_000)

    labels = {"purpose": "user", "hub.jupyter.org/node-purpose": "user"}
    with networked_nodes(fill, {"node-a": labels}) as (node,):
        yield World(node, folder)


@pytest.fixture
def namespace(world: World, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace with the labels that are asked for; when the test failed, its pods' end is told:
    logs go with it.
    """
    failed_before = request.session.testsfailed
    name = world.cluster.create_namespace(labels=request.param)
    yield name
    if request.session.testsfailed > failed_before:
        world.cluster.keep_logs = True
        say(world.why(name))


def install(world: World, helm: Path, namespace: str, values: Mapping[str, Any]) -> float:
    started = time.monotonic()
    world.helm(helm, "install", namespace, values=(values,))
    return time.monotonic() - started


# It takes only pods that ask for no rights.
@pytest.mark.parametrize(
    "namespace",
    [{f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}],
    ids=["restricted"],
    indirect=True,
)
def test_a_hub_lives_with_roost_from_install_to_uninstall(world: World, namespace: str) -> None:
    api, helm = world.cluster.api, require_binary("helm")
    check_doctor(world, namespace, "--before-install")
    took = install(world, helm, namespace, VALUES)
    check_doctor(world, namespace)
    assert "Phase:          Succeeded" in run_helm(
        helm,
        "test",
        RELEASE,
        f"--namespace={namespace}",
        TIMEOUT,
        kubeconfig=world.cluster.kubeconfig,
    )
    assert "hub-roost-test" not in world.own_pods(namespace)

    check_all_run_as_rendered(world, namespace)
    wait_for_marks(world, expected_marks(namespace, LAB, DATA), namespace)
    ada = start_user(world, namespace, "ada")
    report("after the install", world, namespace, took)

    wanted = scheduler_name(RELEASE, namespace, "user")
    how: dict[str, Any] = {"threads": CREATORS, "pause_seconds": PAUSE_SECONDS}
    body = user_body(world, namespace, "load")
    with Storm(
        world.cluster,
        namespace,
        body=body,
        tried=lambda pod: bool(pod["spec"]["schedulerName"] == wanted),
        **how,
    ) as load:
        before = set(world.own_pods(namespace))
        started = time.monotonic()
        world.helm(helm, "upgrade", namespace, values=(VALUES, CHANGED))
        took = time.monotonic() - started
        # The API server keeps its connections to pods that leave, and these serve until the last
        # moment.
        wait_until(lambda: not world.leaving(namespace), SECONDS, "the old pods to be gone")
    assert load.refused == []
    print(  # noqa: T201
        f"{len(load.pods)} pods were admitted during the upgrade, the slowest in"
        f" {load.slowest_seconds:.2f} s"
    )
    after = set(world.own_pods(namespace))
    restarted = {name for name in before if "placeholder" not in name}
    assert not restarted & after, "each program was to be replaced"
    check_all_run_as_rendered(world, namespace)
    wait_for_marks(world, expected_marks(namespace, LAB, DATA, NEWER), namespace)
    start_user(world, namespace, "grace")
    report("after the upgrade", world, namespace, took)

    uninstall(world, helm, namespace)
    # Users stay: their pods are none of the release's.
    pod = world.cluster.pod(ada["metadata"]["name"], namespace)
    assert pod["metadata"]["uid"] == ada["metadata"]["uid"]
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    for user in ("ada", "grace"):
        api.delete(f"/api/v1/namespaces/{namespace}/pods/jupyter-{user}")


# It takes all pods: those on the host's network are never `restricted`.
@pytest.mark.parametrize("namespace", [{}], ids=["unrestricted"], indirect=True)
def test_helm_3_on_the_hosts_network_and_with_a_puller_that_runs_the_images(
    world: World, namespace: str
) -> None:
    helm = require_binary("helm3")
    took = install(world, helm, namespace, ON_HOST)
    # Helm 3 takes a Deployment for ready that may lack as many pods as it has: see
    # docs/install-helm.md.
    wait_until(
        lambda: world.all_ready(namespace),
        SECONDS,
        "pods to be Ready",
        explain=lambda: world.why(namespace),
    )
    check_all_run_as_rendered(world, namespace, programs=1, host_network=True)
    wait_for_marks(world, expected_marks(namespace, LAB), namespace)
    start_user(world, namespace, "ada")
    report("installed by Helm 3", world, namespace, took)
    uninstall(world, helm, namespace)


def check_doctor(world: World, namespace: str, *arguments: str) -> None:
    """`roost doctor` finds nothing wrong, and misses everything of a release that isn't there."""
    values = world.folder / "doctor.yaml"
    values.write_text(yaml.safe_dump(VALUES))

    def ask(release: str) -> tuple[int, str]:
        common = ["-f", str(values), "-n", namespace, "--release", release]
        where = ["--kubeconfig", str(world.cluster.kubeconfig), *arguments]
        command = [sys.executable, "-m", "roost", "doctor", *common, *where]
        environment = {**os.environ, "PYTHONPATH": str(world.tree)}
        # The working directory comes before PYTHONPATH.
        done = subprocess.run(
            command, env=environment, cwd=world.folder, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def all_is_well() -> str:
        code, said = ask(RELEASE)
        *checks, last = said.splitlines()
        good = last in ("The cluster takes this install.", "Users aren't affected.")
        return said if code == 0 and good and all(line.startswith("ok ") for line in checks) else ""

    # Helm waits for pods, not for what they find and write once they run.
    print(  # noqa: T201
        wait_until(
            all_is_well, SECONDS, "doctor to find nothing wrong", explain=lambda: ask(RELEASE)
        )
    )
    if not arguments:
        code, said = ask("absent")
        print(said)  # noqa: T201 - the same
        assert (code, "error    objects: " in said, "So also leaders: " in said) == (
            1,
            True,
            True,
        ), said


def wait_for_marks(world: World, wanted: set[str], namespace: str) -> None:
    wait_until(
        lambda: wanted <= world.marks(namespace),
        SECONDS,
        f"{sorted(wanted)} on the node",
        explain=lambda: f"{sorted(world.marks(namespace))}\n{world.why(namespace)}",
    )


def expected_marks(namespace: str, *images: str) -> set[str]:
    """What the controllers write on a node that holds these images and attracts the
    placeholders.
    """
    labels = {pulled_label(RELEASE, namespace, image) for image in images}
    return {*labels, attract_label(RELEASE, namespace, "default")}


def check_all_run_as_rendered(
    world: World, namespace: str, programs: int = 2, host_network: bool = False
) -> None:
    """Every part of the release is there, Ready, was never restarted, and has no rights.

    programs: pods of the webhook, the controllers and the scheduler each.
    """
    parts: Counter[str] = Counter()
    for name, pod in world.own_pods(namespace).items():
        part, spec = pod["metadata"]["labels"]["app.kubernetes.io/component"], pod["spec"]
        parts[part] += 1
        assert condition(pod, "Ready") == "True", world.why(namespace)
        restarts = {
            status["name"]: status["restartCount"] for status in pod["status"]["containerStatuses"]
        }
        assert set(restarts.values()) == {0}, f"{name}: {restarts}\n{world.why(namespace)}"
        assert all(
            container["securityContext"]["readOnlyRootFilesystem"]
            for container in spec["containers"]
        )
        is_program = part in ("webhook", "controllers", "scheduler")
        assert bool(spec.get("hostNetwork")) == (host_network and is_program)
        assert ("readinessProbe" in spec["containers"][0]) == is_program
        wanted = (
            scheduler_name(RELEASE, namespace, "placeholder")
            if part == "placeholder"
            else "default-scheduler"
        )
        assert spec["schedulerName"] == wanted
    assert parts == {
        "webhook": programs,
        "controllers": programs,
        "scheduler": programs,
        "puller": 1,
        "placeholder": 2,
    }


def user_body(world: World, namespace: str, name: str) -> JSONObject:
    confined = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    security = {**confined, "seccompProfile": {"type": "RuntimeDefault"}}
    traits = {"namespace": namespace, "node_selector": {"purpose": "user"}, "uid": 1000}
    return spawned_pod(
        name, world.cluster.kubeconfig, image=LAB, container_security_context=security, **traits
    )


def start_user(world: World, namespace: str, name: str) -> JSONObject:
    """Create a user's pod as KubeSpawner does: Roost places it, and its image is there already."""
    stored = world.cluster.create_pod(user_body(world, namespace, name), namespace)
    assert stored["spec"]["schedulerName"] == scheduler_name(RELEASE, namespace, "user")
    required = stored["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert pulled_label(RELEASE, namespace, LAB) in json.dumps(required)
    pod_name = stored["metadata"]["name"]
    pod = world.cluster.wait_for_pod_phase(pod_name, namespace, "Running", SECONDS)

    def events() -> dict[str, JSONObject]:
        return {event["reason"]: event for event in world.events(namespace, name=pod_name)}

    # Kubelets and schedulers tell of what they did afterwards.
    wait_until(
        lambda: {"Pulled", "Scheduled"} <= events().keys(),
        SECONDS,
        "Events of the user",
        explain=events,
    )
    said = events()
    assert "already present on machine" in said["Pulled"]["message"]
    assert "Pulling" not in said
    assert said["Scheduled"]["reportingComponent"] == scheduler_name(RELEASE, namespace, "user")
    return pod


def uninstall(world: World, helm: Path, namespace: str) -> None:
    mine = {pod["metadata"]["name"] for pod in world.pods(namespace)} - set(
        world.own_pods(namespace)
    )
    started = time.monotonic()
    world.helm(helm, "uninstall", namespace)
    print(f"uninstalled in {time.monotonic() - started:.1f} s")  # noqa: T201 (this test's measure)

    def reasons() -> set[str]:
        return {event["reason"] for event in world.events(namespace, kind="Job")}

    wait_until(lambda: "Completed" in reasons(), SECONDS, "the cleanup's Event", explain=reasons)
    assert world.marks(namespace) == set()

    def left() -> str:
        return "\n".join(leftovers(world.cluster.api, namespace, frozenset(mine)))

    wait_until(lambda: not left(), SECONDS, "everything to be gone", explain=left)


def report(when: str, world: World, namespace: str, took_seconds: float) -> None:
    """Say what it took: this test's measure, read with `pytest -s`."""
    lines = [f"{when}: ready in {took_seconds:.1f} s; resident memory of each pod:"]
    for name, pod in sorted(world.own_pods(namespace).items()):
        resident = memory_bytes(pod["metadata"]["uid"])
        lines.append(f"  {resident / 2**20:6.1f} MiB  {name}")
    print("\n".join(lines))  # noqa: T201
