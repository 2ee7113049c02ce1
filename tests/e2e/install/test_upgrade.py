"""Changes of a running install: values by server-side apply, and a version by Helm, with the way
back.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import POLICY_REVISION_ANNOTATION, pulled_label
from tests.e2e.installed import InstalledRelease
from tests.e2e.leftovers import leftovers
from tests.e2e.pods import IMAGE, SINGLEUSER, USER, pod
from tests.e2e.storm import Storm
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import require_binary
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.parity.renderers import CHART, run_helm
from tests.stack import READY_SECONDS, ROOST, Stack

pytestmark = pytest.mark.e2e


WORKER = {"match": {"labels": {"component": "dask-worker"}}, "profile": "user"}


def test_a_class_comes_and_goes_by_values_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The controllers own caBundle in every entry of the configuration, which must not keep an
    entry that goes.
    """
    with Stack(
        control_plane, namespace, {"placeholders": []}, scheduler=False, controllers=True
    ) as stack:
        scheduler_name = stack.scheduler_name("user")
        assert (
            stack.create_pod(pod("before", "dask-worker"))["spec"]["schedulerName"]
            == "default-scheduler"
        )

        stack.apply({"podClasses": {"worker": WORKER}})

        def scheduler_of_worker() -> str:
            body = pod("ignored", "dask-worker")
            body["metadata"] = {"generateName": "worker-", "labels": {"component": "dask-worker"}}
            return str(stack.create_pod(body)["spec"]["schedulerName"])

        wait_until(
            lambda: scheduler_of_worker() == scheduler_name,
            30,
            "the webhook to place the new class",
        )
        stack.apply({"podClasses": {}})
        wait_until(
            lambda: scheduler_of_worker() == "default-scheduler", 30, "the class to be forgotten"
        )
        assert stack.create_pod(pod("user", USER))["spec"]["schedulerName"] == scheduler_name


def test_an_upgrade_keeps_the_gate_and_closes_it_for_a_new_image_once_a_node_holds_it(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    """Dry runs of users' pods while the programs are replaced as their Deployments do it: first an
    image is brought ahead, then the hub's users get it.
    """
    newer = "quay.io/jupyter/scipy-notebook:2026-11-24"
    fake_nodes.create("warm", images={IMAGE: 10**9})
    fake_nodes.create("cold", images={"registry.k8s.io/pause:3.10.1": 1000})
    values = {"singleuser": SINGLEUSER, "placeholders": []}

    def users_of(image: str) -> Storm:
        """Users who must keep off the node that pulls their image."""

        def keeps_off(stored: JSONObject) -> bool:
            return pulled_label("hub", namespace, image) in json.dumps(required_nodes(stored))

        body = pod("user", image=image, requests={"cpu": "100m", "memory": "256Mi"})
        return Storm(
            control_plane, namespace, body=body, tried=keeps_off, threads=1, pause_seconds=0.1
        )

    with Stack(control_plane, namespace, values, scheduler=False, controllers=True) as stack:
        stack.start_controllers()
        known = [*stack.webhooks, *stack.controllers]

        def upgrade(more: JSONObject) -> None:
            """As `maxSurge: 1, maxUnavailable: 0` does it."""
            leaving = [*known]
            known.clear()
            stack.apply(more)
            for old in leaving:
                start = stack.start_webhook if old in stack.webhooks else stack.start_controllers
                known.append(start())
                known[-1].wait_ready()
                old.process.stop(grace_seconds=READY_SECONDS)

        def is_required(image: str) -> bool:
            with users_of(image) as users:
                pass
            return not users.refused

        wait_until(lambda: is_required(IMAGE), 60, "the gate")
        with users_of(IMAGE) as users:
            name, _, tag = newer.rpartition(":")
            upgrade({"prePuller": {"extraImages": {"newer": {"name": name, "tag": tag}}}})
        assert users.refused == []
        # Nobody holds the new image: nowhere would its users start sooner.
        with users_of(newer) as users:
            pass
        assert len(users.refused) == len(users.pods)

        fake_nodes.set_images("warm", {IMAGE: 10**9, newer: 10**9})
        wait_until(lambda: is_required(newer), 60, "the gate for the new image")
        with users_of(newer) as users:
            upgrade({"singleuser": {"image": {"name": name, "tag": tag}}, "prePuller": {}})
        assert users.refused == []


class Hub:
    """A hub with users while Roost's version and values change."""

    def __init__(self, release: InstalledRelease, folder: Path) -> None:
        self.release = release
        self._folder = folder
        self._users: dict[str, JSONObject] = {}

    def helm(self, verb: str, *arguments: str, run: bool = True) -> str:
        """Run Helm on the release, then (`run`) its programs as they are installed now."""
        cluster, namespace = self.release.cluster, self.release.namespace
        done = run_helm(
            require_binary("helm"),
            verb,
            self.release.release,
            *arguments,
            f"--namespace={namespace}",
            kubeconfig=cluster.kubeconfig,
        )
        if run:
            self.release.run()
        return done

    def cleanup(self, *arguments: str, kubeconfig: Path) -> subprocess.Popen[str]:
        given = [f"--namespace={self.release.namespace}", f"--kubeconfig={kubeconfig}", *arguments]
        return subprocess.Popen(
            [ROOST, "cleanup", f"--release={self.release.release}", *given], text=True
        )

    def uninstall_with_hooks(self) -> None:
        """As a kubelet, run the Job that Helm waits for, and end the controllers that it scales to
        0.
        """
        api, namespace = self.release.cluster.api, self.release.namespace
        base = f"{self.release.release}-roost"

        def pod_of_job() -> JSONObject | None:
            pods = api.list(
                f"/api/v1/namespaces/{namespace}/pods", labelSelector=f"job-name={base}-cleanup"
            )
            return next((one for one in pods if one["status"]["phase"] == "Running"), None)

        with ThreadPoolExecutor(1) as pool:
            helm = pool.submit(self.helm, "uninstall", run=False)
            job = wait_until(pod_of_job, 60.0, "the Job's pod")
            account = self.release.cluster.service_account_kubeconfig(
                namespace, job["spec"]["serviceAccountName"]
            )
            cleanup = self.cleanup(f"--controllers={base}-controllers", kubeconfig=account)
            scale = f"/apis/apps/v1/namespaces/{namespace}/deployments/{base}-controllers/scale"
            wait_until(
                lambda: not api.get(scale)["spec"].get("replicas"),
                60.0,
                "the controllers to be scaled to 0",
            )
            self.release.controllers[0].process.stop()
            assert cleanup.wait(60) == 0
            path = f"/api/v1/namespaces/{namespace}/pods/{job['metadata']['name']}/status"
            api.patch(path, {"status": {"phase": "Succeeded"}})
            helm.result(60)

    def version(self, number: str, *, gate: str, placeholders: int) -> tuple[str, str]:
        """Helm's arguments for a version with values of its own."""
        chart = self._folder / number
        shutil.copytree(CHART, chart)
        described = (chart / "Chart.yaml").read_text().splitlines()
        (chart / "Chart.yaml").write_text(
            "\n".join(
                f"version: {number}" if line.startswith("version:") else line for line in described
            )
        )
        values = {
            "webhook": {"url": self.release.webhook_url},
            "singleuser": SINGLEUSER,
            "imageGate": {"mode": gate},
            "placeholders": [
                {"name": f"set-{index}", "replicas": 1} for index in range(placeholders)
            ],
        }
        (chart / "values.json").write_text(json.dumps(values))
        return str(chart), f"--values={chart / 'values.json'}"

    def start_user(self, name: str) -> JSONObject:
        stored = self.release.create_pod(pod(name, requests={"cpu": "100m", "memory": "256Mi"}))
        assert stored["spec"]["schedulerName"] == self.release.scheduler_name("user")
        self._users[name] = self.release.cluster.wait_for_pod_phase(
            name, self.release.namespace, "Running", 60.0
        )
        return stored

    def check_users_run(self) -> None:
        """All users' pods are those that were started, where they were."""
        for name, before in self._users.items():
            now = self.release.cluster.pod(name, self.release.namespace)
            assert now["metadata"]["uid"] == before["metadata"]["uid"], name
            assert now["spec"]["nodeName"] == before["spec"]["nodeName"], name
            assert now["status"] == before["status"], name

    def wait_for_placeholders(self, number: int) -> None:
        path = f"/api/v1/namespaces/{self.release.namespace}/pods"

        def are_placed() -> bool:
            pods = self.release.cluster.api.list(path, labelSelector="component=user-placeholder")
            names = [
                pod["spec"]["schedulerName"] for pod in pods if pod["status"]["phase"] == "Running"
            ]
            return names == [self.release.scheduler_name("placeholder")] * number

        wait_until(are_placed, 60.0, f"{number} placeholders to run, placed by Roost's scheduler")

    def specs(self) -> JSONObject:
        return {
            f"{kind}/{body['metadata']['name']}": body["spec"]
            for kind in ("deployments", "statefulsets", "daemonsets")
            for body in self.release.objects("apps/v1", kind)
        }

    def authority(self) -> str:
        """The one certificate that API servers trust in every entry of the webhook's
        configuration.
        """
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        entries = self.release.cluster.api.get(
            f"{path}/hub.{self.release.namespace}.roost-webhook"
        )["webhooks"]
        (bundle,) = {entry["clientConfig"].get("caBundle", "") for entry in entries}
        return str(bundle)


def revision(stored: JSONObject) -> str:
    return str(stored["metadata"]["annotations"][POLICY_REVISION_ANNOTATION])


def required_nodes(stored: JSONObject) -> object:
    affinity: JSONObject = stored["spec"]["affinity"]["nodeAffinity"]
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution")


@pytest.fixture
def hub(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Hub]:
    """A hub on a node that has its image, and one whose puller never ends."""

    def pulls(pod: JSONObject) -> bool:
        labels: JSONObject = pod["metadata"].get("labels", {})
        return (pod["spec"]["nodeName"], labels.get("app.kubernetes.io/component")) == (
            "cold",
            "puller",
        )

    with (
        PodKeeper(control_plane.api, hold=pulls),
        FakeNodes(control_plane.api) as nodes,
        start_scheduler(control_plane, leader_elect=False),
        InstalledRelease(control_plane, namespace) as release,
    ):
        nodes.create("warm", cpu="64", memory="64Gi", pods=5000, images={IMAGE: 1_000_000_000})
        nodes.create("cold", cpu="64", memory="64Gi", pods=5000)
        yield Hub(release, tmp_path)


def test_a_version_comes_and_goes_while_users_run(hub: Hub) -> None:
    hub.helm("install", *hub.version("1.0.0", gate="prefer", placeholders=1))
    ada = hub.start_user("ada")
    assert required_nodes(ada) is None
    hub.wait_for_placeholders(1)
    authority, specs = hub.authority(), hub.specs()

    hub.helm("upgrade", *hub.version("1.1.0", gate="requireLabel", placeholders=2))
    assert hub.authority() == authority
    hub.check_users_run()
    grace = hub.start_user("grace")
    assert required_nodes(grace) is not None
    assert revision(grace) != revision(ada)
    hub.wait_for_placeholders(2)

    hub.helm("rollback", "1")
    assert hub.authority() == authority
    # What was there, and nothing else.
    assert hub.specs() == specs
    hub.check_users_run()
    linus = hub.start_user("linus")
    assert required_nodes(linus) is None
    assert revision(linus) == revision(ada)
    hub.wait_for_placeholders(1)
    hub.check_users_run()


@pytest.mark.parametrize("hooks", [True, False])
def test_users_who_come_during_a_rollback_and_the_uninstall_all_start(
    hub: Hub, *, hooks: bool
) -> None:
    """Users are required to keep off the node that pulls until the last one."""
    release = hub.release
    api, namespace = release.cluster.api, release.namespace
    hub.helm("install", *hub.version("1.0.0", gate="requireLabel", placeholders=0), run=False)
    hub.helm("upgrade", *hub.version("1.1.0", gate="prefer", placeholders=0))
    with Storm(release.cluster, namespace, IMAGE) as storm:
        hub.helm("rollback", "1", *([] if hooks else ["--no-hooks"]))
        last = storm.wait_for_more()[-1]
        assert last["spec"]["schedulerName"] == release.scheduler_name("user")
        assert required_nodes(last) is not None
        if hooks:
            hub.uninstall_with_hooks()
        else:
            hub.helm("uninstall", "--no-hooks", run=False)
        release.end_programs()
        assert storm.wait_for_more()[-1]["spec"]["schedulerName"] == "default-scheduler"
    storm.check()

    def left() -> list[str]:
        return leftovers(api, namespace, frozenset(pod["metadata"]["name"] for pod in storm.pods))

    def is_all(*nodes: str) -> bool:
        return [one.partition(": .metadata.labels")[0] for one in left()] == [
            f"nodes//{name}" for name in nodes
        ]

    if not hooks:
        wait_until(
            lambda: is_all("cold", "warm"), 60.0, "all to be gone but nodes' labels", explain=left
        )
        assert hub.cleanup(kubeconfig=release.cluster.kubeconfig).wait(60) == 0
    wait_until(is_all, 60.0, "all to be gone", explain=left)
