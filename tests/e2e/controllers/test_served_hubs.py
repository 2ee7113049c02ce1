"""One set of controllers works for the hubs of several namespaces, as each hub's own account."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from roost_core.placement.labels import CENTRAL_LABEL, attract_prefix, central_name, pulled_label
from tests.harness.api import ApiError
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.controlplane import ControlPlane
    from tests.harness.nodes import FakeNodes

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("pod_keeper")]

IMAGE: Final = "quay.io/jupyter/scipy-notebook:2026-11-03"
CENTRAL_RELEASE: Final = "roost"
IN_FORCE_SECONDS: Final = 60.0
TIMES: Final = {"markAfterSeconds": 1, "keepMarkSeconds": 5, "flapSeconds": 5}


class Site:
    """A central release with its programs, and hubs that run none."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._running = ExitStack()
        values = {"hubs": {"serve": True}, "placeholders": []}
        self.central = self._running.enter_context(
            Stack(cluster, namespace, values, release=CENTRAL_RELEASE, controllers=True)
        )

    def values(self, pool: str, **more: Any) -> dict[str, Any]:
        selector = {"pool": pool}
        resources = {"requests": {"cpu": "100m", "memory": "1Gi"}}
        image = {"name": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]}
        central = {"release": CENTRAL_RELEASE, "namespace": self.namespace, "controllers": True}
        return {
            "hubs": {"central": central},
            "singleuser": {"image": image, "nodeSelector": selector},
            "placeholders": [{"name": "default", "replicas": 2, "resources": resources, "nodeSelector": selector}],
            "placeholderMover": TIMES,
            **more,
        }

    def create_namespace(self) -> str:
        name = self.cluster.create_namespace(None, {CENTRAL_LABEL: central_name(CENTRAL_RELEASE, self.namespace)})
        self._running.callback(lambda: self.cluster.api.delete(f"/api/v1/namespaces/{name}"))
        return name

    def add(self, pool: str, **more: Any) -> Stack:
        hub = Stack(self.cluster, self.create_namespace(), self.values(pool, **more), scheduler=False, webhook=False)
        return self._running.enter_context(hub)

    def labels(self, node: str) -> dict[str, str]:
        labels: dict[str, str] = self.cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]
        return labels

    def wait_for_labels(self, hub: Stack, node: str) -> None:
        """Until the controllers have said that the node has the hub's image, and marked it for placeholders."""
        image = pulled_label(hub.release, hub.namespace, IMAGE)
        mark = attract_prefix(hub.release, hub.namespace)
        wait_until(
            lambda: self.labels(node).get(image) == "true" and any(key.startswith(mark) for key in self.labels(node)),
            IN_FORCE_SECONDS,
            f"the labels of {hub.namespace} on {node}",
            explain=lambda: (self.labels(node), self.central.controllers[0].process.tail()),
        )

    def lease_holder(self, hub: Stack) -> str:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{hub.namespace}/leases/hub-roost-controllers"
        return str((self.cluster.api.find(path) or {}).get("spec", {}).get("holderIdentity") or "")

    def close(self) -> None:
        self._running.close()


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str) -> Iterator[Site]:
    found = Site(control_plane, namespace)
    yield found
    found.close()


def add_nodes(fake_nodes: FakeNodes, *names: str, pool: str) -> None:
    for name in names:
        fake_nodes.create(name, labels={"pool": pool}, images={IMAGE: 1_500_000_000})


def test_two_hubs_get_their_labels_marks_and_placeholders_from_one_process(site: Site, fake_nodes: FakeNodes) -> None:
    pool = site.namespace
    first, second = site.add(pool), site.add(pool)
    add_nodes(fake_nodes, f"{pool}-1", pool=pool)
    for hub in (first, second):
        assert "Deployment" not in {manifest["kind"] for manifest in hub.manifests}
        assert hub.deployments == {}
        site.wait_for_labels(hub, f"{pool}-1")
    controllers = site.central.controllers[0]
    for hub in (first, second):
        name = f"hub.{hub.namespace}"
        assert controllers.metric("roost_controllers_leader", hub=name) == 1
        assert controllers.metric("roost_controllers_actions_total", hub=name, kind="ChangeNode", outcome="done") >= 1
    # A hub whose ConfigMap goes is let go, and the other is worked for on.
    site.cluster.kubectl("delete", "configmap", "roost-hub", "-n", first.namespace)
    wait_until(lambda: not site.lease_holder(first), IN_FORCE_SECONDS, "the Lease to be released")
    assert site.lease_holder(second)
    add_nodes(fake_nodes, f"{pool}-2", pool=pool)
    site.wait_for_labels(second, f"{pool}-2")
    assert pulled_label("hub", first.namespace, IMAGE) not in site.labels(f"{pool}-2")


def test_a_dry_run_shows_each_hubs_plans_and_does_nothing(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    node = f"{namespace}-1"
    add_nodes(fake_nodes, node, pool=namespace)
    image = {"name": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]}
    central = {"release": CENTRAL_RELEASE, "namespace": namespace, "controllers": True}
    values = {"hubs": {"central": central}, "singleuser": {"image": image}, "placeholders": []}
    with ExitStack() as running:

        def start(where: str, values: dict[str, Any], release: str) -> Stack:
            return running.enter_context(
                Stack(control_plane, where, values, release=release, scheduler=False, webhook=False)
            )

        own = start(namespace, {"hubs": {"serve": True}, "placeholders": []}, CENTRAL_RELEASE)
        hubs = []
        for _ in range(2):
            where = control_plane.create_namespace(None, {CENTRAL_LABEL: central_name(CENTRAL_RELEASE, namespace)})
            running.callback(control_plane.api.delete, f"/api/v1/namespaces/{where}")
            hubs.append(start(where, values, "hub"))
        printed = own.plan()
        for hub in hubs:
            lines = printed.partition(f"\nhub hub.{hub.namespace}:\n")[2]
            label = pulled_label("hub", hub.namespace, IMAGE)
            assert lines.startswith("  image-gate: ")
            assert f"    change node {node}: +{label}=true" in lines
            assert label not in control_plane.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]
        # Of a hub with faulty settings it says so, and shows the others.
        config_map = f"/api/v1/namespaces/{hubs[0].namespace}/configmaps/roost-hub"
        control_plane.api.patch(config_map, {"data": {"controllers.json": "{"}})
        faulty = f"hub {hubs[0].namespace} not shown: its settings are refused: "
        with pytest.raises(RuntimeError, match=f"exit code 1: roost controllers: {faulty}"):
            own.plan()


def test_what_is_written_for_a_hub_is_held_to_that_hubs_rights(site: Site, fake_nodes: FakeNodes) -> None:
    pool = site.namespace
    first, second = site.add(pool), site.add(pool)
    add_nodes(fake_nodes, f"{pool}-1", pool=pool)
    site.wait_for_labels(first, f"{pool}-1")
    # As the central account borrows it.
    own = site.cluster.api_as(site.cluster.service_account_token(site.namespace, "roost-roost-controllers"))
    path = f"/api/v1/namespaces/{first.namespace}/serviceaccounts"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = own.request("POST", f"{path}/hub-roost-controllers/token", body=request)["status"]["token"]
    with pytest.raises(ApiError, match="forbidden"):
        own.request("POST", f"{path}/default/token", body=request)
    hub = site.cluster.api_as(token)
    foreign = {pulled_label("hub", second.namespace, IMAGE): "true"}
    with pytest.raises(ApiError, match="labels of their own release only"):
        hub.patch(f"/api/v1/nodes/{pool}-1", {"metadata": {"labels": {**foreign, "x": "y"}}})
    with pytest.raises(ApiError, match="forbidden"):
        hub.get(f"/api/v1/namespaces/{second.namespace}/configmaps/roost-hub")


def test_a_broken_hub_keeps_its_last_settings_and_touches_no_other(site: Site, fake_nodes: FakeNodes) -> None:
    pool = site.namespace
    broken, whole = site.add(pool), site.add(pool)
    add_nodes(fake_nodes, f"{pool}-1", pool=pool)
    for hub in (broken, whole):
        site.wait_for_labels(hub, f"{pool}-1")
    controllers = site.central.controllers[0]
    config_map = f"/api/v1/namespaces/{broken.namespace}/configmaps/roost-hub"
    stolen = whole.find("ConfigMap", "roost-hub")["data"]["controllers.json"]
    for number, text in enumerate(("{", stolen), start=1):
        site.cluster.api.patch(config_map, {"data": {"controllers.json": text}})

        def refused() -> float:
            return controllers.metric("roost_controllers_hub_settings_refused_total", hub=broken.namespace)

        wait_until(lambda wanted=number: refused() == wanted, IN_FORCE_SECONDS, "a refusal", explain=refused)  # type: ignore[misc]
    add_nodes(fake_nodes, f"{pool}-2", pool=pool)
    for hub in (broken, whole):
        site.wait_for_labels(hub, f"{pool}-2")


def test_a_hubs_own_controllers_hand_over_and_its_cleanup_takes_everything_back(
    site: Site, fake_nodes: FakeNodes
) -> None:
    pool = site.namespace
    name = site.create_namespace()
    own = {key: value for key, value in site.values(pool).items() if key != "hubs"}
    central = {"release": CENTRAL_RELEASE, "namespace": site.namespace}
    add_nodes(fake_nodes, f"{pool}-1", pool=pool)
    served = {"hubs": {"central": {**central, "controllers": False}}}
    with Stack(site.cluster, name, {**own, **served}, scheduler=False, webhook=False, controllers=True) as hub:
        hub.controllers[0].wait_leading()
        site.wait_for_labels(hub, f"{pool}-1")
        first_holder = site.lease_holder(hub)
        # Both ask for the same Lease, so never do two write.
        hub.apply({"hubs": {"central": {**central, "controllers": True}}})
        hub.controllers[0].process.stop()
        wait_until(
            lambda: site.lease_holder(hub) not in ("", first_holder), IN_FORCE_SECONDS, "the central release to lead"
        )
        add_nodes(fake_nodes, f"{pool}-2", pool=pool)
        site.wait_for_labels(hub, f"{pool}-2")
        kubeconfig = site.cluster.service_account_kubeconfig(name, "hub-roost-controllers")
        cleanup = site.cluster.run.start(
            f"cleanup-{name}",
            ROOST,
            [
                "cleanup", "--release=hub", f"--namespace={name}", f"--kubeconfig={kubeconfig}",
                "--controllers=hub-roost-controllers",
            ],
        )  # fmt: skip
        wait_until(lambda: cleanup.exit_code is not None, 90, "roost cleanup to end", explain=cleanup.tail)
        assert cleanup.exit_code == 0, cleanup.tail()
        left = [key for node in (f"{pool}-1", f"{pool}-2") for key in site.labels(node) if name in key]
        assert left == []
