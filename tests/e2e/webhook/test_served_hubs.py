"""One central release serves the hubs of several namespaces: rendered, applied and run as they would be."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from roost_core.placement.labels import CENTRAL_LABEL, central_name, pulled_label
from tests.harness.controlplane import KubectlError
from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.controlplane import ControlPlane
    from tests.harness.nodes import FakeNodes
    from tests.stack import Webhook

pytestmark = pytest.mark.e2e

IMAGE: Final = "quay.io/jupyter/scipy-notebook:2026-11-03"
IMAGE_VALUES: Final = {"singleuser": {"image": {"name": IMAGE.rpartition(":")[0], "tag": IMAGE.rpartition(":")[2]}}}
# The promise: a hub that comes, changes or goes is in force by then.
IN_FORCE_SECONDS: Final = 60.0
CENTRAL_RELEASE: Final = "roost"
MINE: Final[dict[str, Any]] = {"profiles": {"mine": {"strategy": "pack"}}}


class Site:
    """A central release, and hubs in namespaces of their own."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self._running = ExitStack()
        values = {"hubs": {"serve": True}, "placeholders": [], "controllers": {"replicas": 1}}
        self.central = self._running.enter_context(Stack(cluster, namespace, values, release=CENTRAL_RELEASE))

    @property
    def hub_values(self) -> dict[str, Any]:
        return {
            "hubs": {"central": {"release": CENTRAL_RELEASE, "namespace": self.namespace}},
            "placeholders": [],
            **IMAGE_VALUES,
        }

    def add(self, *, labelled: bool = True, **more: Any) -> Stack:
        """A hub in a new namespace: its manifests are applied, and none of its programs runs."""
        name = self.cluster.create_namespace()
        self._running.callback(lambda: self.cluster.api.delete(f"/api/v1/namespaces/{name}"))
        if labelled:
            self.label(name)
        hub = Stack(self.cluster, name, {**self.hub_values, **more}, scheduler=False, webhook=False)
        return self._running.enter_context(hub)

    def label(self, namespace: str) -> None:
        label = {CENTRAL_LABEL: central_name(CENTRAL_RELEASE, self.namespace)}
        self.cluster.api.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": label}})

    def placed(self, namespace: str) -> dict[str, Any]:
        """The spec that a user's pod gets in this namespace."""
        created = self.cluster.api.create(user("asks"), namespace, dryRun="All")
        spec: dict[str, Any] = created["spec"]
        return spec

    def scheduler_of(self, namespace: str) -> str:
        return str(self.placed(namespace)["schedulerName"])

    def wait_for_scheduler(self, namespace: str, name: str) -> None:
        wait_until(
            lambda: self.scheduler_of(namespace) == name,
            IN_FORCE_SECONDS,
            f"pods of {namespace} to get {name}",
            explain=lambda: (self.scheduler_of(namespace), self.central.webhooks[0].get("/readyz")),
        )

    @property
    def own_scheduler(self) -> str:
        return f"{CENTRAL_RELEASE}.{self.namespace}.user"

    def close(self) -> None:
        self._running.close()


@pytest.fixture
def site(control_plane: ControlPlane, namespace: str) -> Iterator[Site]:
    found = Site(control_plane, namespace)
    yield found
    found.close()


def user(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": "100m"}}}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    metadata = {"name": name, "labels": {"component": "singleuser-server"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def is_refused(webhook: Webhook, hub: str, before: float) -> bool:
    return webhook.metric("roost_webhook_hub_policy_reload_failures_total", hub=hub) > before


@pytest.mark.usefixtures("pod_keeper")
def test_a_hub_comes_is_served_and_goes_while_the_webhook_runs(site: Site, fake_nodes: FakeNodes) -> None:
    first, second = site.add(), site.add()
    fake_nodes.create("node-1", labels={pulled_label("hub", second.namespace, IMAGE): "pulling"})
    fake_nodes.create("node-2", labels={pulled_label("hub", second.namespace, IMAGE): "true"})
    for hub in (first, second):
        site.wait_for_scheduler(hub.namespace, site.own_scheduler)
        hub.create_pod(user("ada"))
    # One scheduler binds both, and the gate reads the labels of the pod's own hub.
    assert first.wait_for_node("ada")
    assert second.wait_for_node("ada") == "node-2"
    preferred = json.dumps(site.placed(first.namespace)["affinity"])
    assert pulled_label("hub", first.namespace, IMAGE) in preferred
    assert second.namespace not in preferred

    site.cluster.kubectl("delete", "configmap", "roost-hub", "-n", first.namespace)
    site.wait_for_scheduler(first.namespace, "default-scheduler")
    assert site.scheduler_of(second.namespace) == site.own_scheduler
    assert site.central.webhooks[0].metric("roost_webhook_hubs") == 1
    assert site.central.webhooks[0].process.exit_code is None


def test_a_hub_is_served_only_with_its_operators_label(site: Site) -> None:
    hub = site.add(labelled=False)
    other = site.add()
    site.wait_for_scheduler(other.namespace, site.own_scheduler)
    assert site.scheduler_of(hub.namespace) == "default-scheduler"
    site.label(hub.namespace)
    site.wait_for_scheduler(hub.namespace, site.own_scheduler)


def test_placeholders_get_the_central_releases_scheduler_and_the_clusters_where_it_has_none(site: Site) -> None:
    sets = [{"name": "spare", "replicas": 1, "resources": {"requests": {"cpu": "100m"}}}]
    served = site.add(placeholders=sets)
    # Only the hub has this profile, so no scheduler runs it.
    lost = site.add(placeholders=sets, podClasses={"placeholder": {"profile": "mine"}}, scheduler=MINE)
    for hub in (served, lost):
        site.wait_for_scheduler(hub.namespace, site.own_scheduler)

    def scheduler_of_placeholder(hub: Stack) -> str:
        (manifest,) = [one for one in hub.manifests if one["kind"] == "StatefulSet"]
        pod = {"apiVersion": "v1", "kind": "Pod", **manifest["spec"]["template"]}
        pod["metadata"] = {**pod["metadata"], "name": "placeholder"}
        created = site.cluster.api.create(pod, hub.namespace, dryRun="All")
        return str(created["spec"]["schedulerName"])

    assert scheduler_of_placeholder(served) == f"{CENTRAL_RELEASE}.{site.namespace}.placeholder"
    assert scheduler_of_placeholder(lost) == "default-scheduler"


def test_a_broken_hub_keeps_its_last_good_rules_and_touches_no_other(site: Site) -> None:
    broken, whole = site.add(), site.add()
    for hub in (broken, whole):
        site.wait_for_scheduler(hub.namespace, site.own_scheduler)
    webhook = site.central.webhooks[0]
    config_map = f"/api/v1/namespaces/{broken.namespace}/configmaps/roost-hub"
    stolen = whole.find("ConfigMap", "roost-hub")["data"]
    refusals = "roost_webhook_hub_policy_reload_failures_total"
    for data in ({"policy.json": "{"}, stolen, {"policy.json": None}):
        before = webhook.metric(refusals, hub=broken.namespace)
        site.cluster.api.patch(config_map, {"data": data})
        wait_until(
            partial(is_refused, webhook, broken.namespace, before),
            IN_FORCE_SECONDS,
            "the rules to be refused",
            explain=webhook.process.tail,
        )
        assert pulled_label("hub", broken.namespace, IMAGE) in json.dumps(site.placed(broken.namespace))
        assert site.scheduler_of(whole.namespace) == site.own_scheduler
    assert webhook.metric(refusals, hub=whole.namespace) == 0


def test_the_central_webhook_reads_the_hubs_rules_and_no_other_config_map(site: Site) -> None:
    hub = site.add(clusterResources=False)
    # Without a cluster-scoped object of its own, the hub is served all the same.
    assert {manifest["kind"] for manifest in hub.manifests} <= {
        "ConfigMap", "Role", "RoleBinding", "ServiceAccount", "Service", "PodDisruptionBudget", "NetworkPolicy",
        "StatefulSet", "DaemonSet",
    }  # fmt: skip
    site.wait_for_scheduler(hub.namespace, site.own_scheduler)
    account = site.cluster.service_account_kubeconfig(site.namespace, "roost-roost-webhook")

    def can(*words: str) -> bool:
        try:
            answer = site.cluster.kubectl("auth", "can-i", *words, "-n", hub.namespace, kubeconfig=account)
        except KubectlError:
            return False
        return answer.strip() == "yes"

    assert can("get", "configmaps/roost-hub")
    assert can("list", "pods")
    assert not can("list", "configmaps")
    assert not can("get", "configmaps/hub-roost-controllers")
    assert not can("update", "configmaps/roost-hub")
    assert not can("list", "secrets")
    assert not can("create", "pods")


@pytest.mark.usefixtures("pod_keeper")
def test_a_hub_with_programs_of_its_own_moves_under_the_central_release(site: Site, fake_nodes: FakeNodes) -> None:
    namespace = site.cluster.create_namespace()
    values: dict[str, Any] = {"placeholders": [], **IMAGE_VALUES}
    label = pulled_label("hub", namespace, IMAGE)
    fake_nodes.create("node-1", labels={label: "true"})
    with Stack(site.cluster, namespace, values) as hub:
        before = hub.create_pod(user("ada"))
        assert before["spec"]["schedulerName"] == f"hub.{namespace}.user"
        assert hub.wait_for_node("ada") == "node-1"
        # As docs/many-hubs.md says: first the label, then the upgrade.
        site.label(namespace)
        assert site.scheduler_of(namespace) == f"hub.{namespace}.user"
        hub.apply({"hubs": site.hub_values["hubs"]})
        hub.webhooks[0].process.stop()
        hub.schedulers[0].stop()
        assert "MutatingWebhookConfiguration" not in {manifest["kind"] for manifest in hub.manifests}
        site.wait_for_scheduler(namespace, site.own_scheduler)
        # Its node labels are those it had, and who runs keeps running.
        assert label in json.dumps(site.placed(namespace))
        running = site.cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/ada")
        assert running["metadata"]["uid"] == before["metadata"]["uid"]
        hub.create_pod(user("bob"))
        assert hub.wait_for_node("bob") == "node-1"


@pytest.mark.usefixtures("pod_keeper")
def test_users_of_hubs_that_share_nodes_gather_on_common_warm_nodes(site: Site, fake_nodes: FakeNodes) -> None:
    pool = {"pool": site.namespace}
    # No puller brings the image, so each class has a set; a node's room is what the values say.
    values: dict[str, Any] = {"singleuser": {}, "podClasses": {"user": {"warm": {"podsPerNode": 3}}}}
    sharing: dict[str, Any] = {**values, "sharedPools": {"namespaceSelector": {"matchLabels": pool}}}
    first, second, unlabelled, alone = site.add(**sharing), site.add(**sharing), site.add(**sharing), site.add(**values)
    for hub in (first, second, alone):
        site.cluster.api.patch(f"/api/v1/namespaces/{hub.namespace}", {"metadata": {"labels": pool}})
    for name in ("node-1", "node-2", "node-3"):
        fake_nodes.create(name)
    for hub in (first, second, unlabelled, alone):
        site.wait_for_scheduler(hub.namespace, site.own_scheduler)

    def warm_nodes(hub: Stack) -> list[str]:
        """Those that a user's pod there would prefer, best first."""
        terms = site.placed(hub.namespace)["affinity"]["nodeAffinity"][
            "preferredDuringSchedulingIgnoredDuringExecution"
        ]
        fields = [term["preference"].get("matchFields") for term in terms]
        return [found[0]["values"][0] for found in fields if found]

    def wait_for_warm_node(hub: Stack, name: str) -> None:
        wait_until(
            lambda: warm_nodes(hub)[:1] == [name],
            20,
            f"users of {hub.namespace} to be sent to {name}",
            explain=lambda: (warm_nodes(hub), site.central.webhooks[0].process.tail()),
        )

    for number in range(3):
        wait_for_warm_node(first, "node-1")
        first.create_pod(user(f"ada-{number}"))
        assert first.wait_for_node(f"ada-{number}") == "node-1"
    # The first hub's users fill the first node; by its own pods alone, the second would send its first user there.
    wait_for_warm_node(second, "node-2")
    second.create_pod(user("ben"))
    assert second.wait_for_node("ben") == "node-2"
    # Its node is the first hub's next, so the third node stays empty.
    wait_for_warm_node(first, "node-2")
    for hub in (unlabelled, alone):
        assert warm_nodes(hub)[0] == "node-1"
    # The operator's label goes, and with it what the hub knew of others.
    site.cluster.api.patch(f"/api/v1/namespaces/{second.namespace}", {"metadata": {"labels": {"pool": None}}})
    wait_for_warm_node(second, "node-1")
    # All that with the rights that each hub's own Role gives.
    account = site.cluster.service_account_kubeconfig(site.namespace, "roost-roost-webhook")
    with pytest.raises(KubectlError):
        site.cluster.kubectl("auth", "can-i", "list", "pods", "--all-namespaces", kubeconfig=account)
