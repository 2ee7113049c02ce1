"""The image gate keeps nobody waiting who would have started without it: the real scheduler,
webhook and controllers.

Nodes are objects that join as kubelets register them, not ready at first; the kubelets' pulls are
played by hand.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import pulled_label
from tests.e2e.pods import IMAGE, SINGLEUSER, pod
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

ZONE = "topology.kubernetes.io/zone"
PAUSE = "registry.k8s.io/pause:3.10.1"
# Promise 9.
LATER_SECONDS = 30.0
VALUES: dict[str, Any] = {"singleuser": SINGLEUSER, "placeholders": []}


class Hub:
    def __init__(
        self, cluster: ControlPlane, namespace: str, nodes: FakeNodes, stack: Stack
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.nodes = nodes
        self.stack = stack
        self.label = pulled_label("hub", namespace, IMAGE)
        self.numbers = itertools.count()

    def value(self, node: str) -> str | None:
        """What the node's label says of the image."""
        found = self.cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"].get(self.label)
        return None if found is None else str(found)

    def wait_for_value(self, node: str, value: str | None, seconds: float = LATER_SECONDS) -> None:
        wait_until(
            lambda: self.value(node) == value,
            seconds,
            f"{node} to say {value}",
            explain=lambda: (self.value(node), self.stack.controllers[-1].process.tail()),
        )

    def join(
        self, node: str, *, taints: Sequence[str] = (), marked: bool = True, **details: Any
    ) -> None:
        """A node registers, the controllers see it (unless not `marked`), and it becomes ready."""
        self.nodes.create(node, ready=False, images={PAUSE: 1000}, **details)
        if marked:
            self.wait_for_value(node, "pulling")
        self.nodes.set_ready(node)
        self.nodes.set_taints(node, taints)

    def hold(self, node: str, **details: Any) -> None:
        self.nodes.create(node, images={PAUSE: 1000, IMAGE: 10**9}, **details)
        self.wait_for_value(node, "true")

    def bind_puller(self, node: str) -> None:
        """The puller's pod gets its node, and pulls for ever."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"

        def find() -> JSONObject | None:
            found = self.cluster.api.list(pods, labelSelector="app.kubernetes.io/component=puller")
            return next((pod for pod in found if node in str(pod["spec"]["affinity"])), None)

        name = wait_until(find, 30, f"a puller pod for {node}")["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name},
            "target": target,
        }
        self.cluster.api.request("POST", f"{pods}/{name}/binding", binding)

    def user(self, name: str, requests: Mapping[str, str] | None = None, **spec: Any) -> bool:
        """Post a user's pod; tell whether it must keep off nodes that pull its image."""
        body = self.stack.create_pod(
            pod(name, requests=requests or {"cpu": "1", "memory": "1Gi"}, **spec)
        )
        terms = body["spec"]["affinity"]["nodeAffinity"].get(
            "requiredDuringSchedulingIgnoredDuringExecution", {}
        )
        return {"key": self.label, "operator": "NotIn", "values": ["pulling"]} in [
            expression
            for term in terms.get("nodeSelectorTerms", ())
            for expression in term["matchExpressions"]
        ]

    def node_of(self, name: str) -> str:
        return self.stack.wait_for_node(name, timeout_seconds=LATER_SECONDS)

    def degraded(self, reason: str) -> float:
        return self.stack.webhooks[0].metric("roost_webhook_gate_degradations_total", reason=reason)


@pytest.fixture
def hub(control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes) -> Any:
    with Stack(control_plane, namespace, VALUES, controllers=True) as stack:
        yield Hub(control_plane, namespace, fake_nodes, stack)


def wait_for_facts(hub: Hub) -> None:
    """Post users argument nobody binds until the webhook knows of a holder."""
    wait_until(
        lambda: hub.user(f"asks-{next(hub.numbers)}", schedulerName="nobody"),
        LATER_SECONDS,
        "the webhook to know a node that holds the image",
        interval_seconds=0.2,
    )


def test_users_go_to_the_holder_with_room_then_one_of_two_pulling_nodes_opens_within_30_s(
    hub: Hub,
) -> None:
    hub.hold("old", cpu="2")
    for node in ("new-1", "new-2"):
        hub.join(node, cpu="8")
        hub.bind_puller(node)
    wait_for_facts(hub)
    assert [hub.user(f"first-{index}") for index in range(2)] == [True, True]
    # Promise 1: both new nodes are empty, and lack the image.
    assert {hub.node_of(f"first-{index}") for index in range(2)} == {"old"}
    assert [hub.user(f"second-{index}") for index in range(4)] == [True] * 4
    (opened,) = {hub.node_of(f"second-{index}") for index in range(4)}
    (closed,) = {"new-1", "new-2"} - {opened}
    assert (hub.value(opened), hub.value(closed)) == ("open", "pulling")
    events = "/api/v1/namespaces/default/events"
    (message,) = wait_until(
        lambda: [
            one["message"]
            for one in hub.cluster.api.list(events, fieldSelector="reason=ImageGateOpened")
            if opened in one["message"]
        ],
        LATER_SECONDS,
        "an Event",
    )
    assert "a user waits for nothing else" in message
    opened_now = "roost_controllers_gate_nodes_opened"
    controllers = hub.stack.controllers[-1]
    wait_until(
        lambda: controllers.metric(opened_now, reason="user-waits") == 1.0,
        40,
        "a metric that says so",
    )


def test_while_the_controllers_hang_new_nodes_are_open_and_closed_ones_open_when_they_are_missed(
    hub: Hub,
) -> None:
    hub.hold("old", cpu="1")
    hub.join("frozen", cpu="1")
    hub.bind_puller("frozen")
    wait_for_facts(hub)
    assert hub.user("before") is True
    assert hub.node_of("before") == "old"
    controllers, (webhook,) = hub.stack.controllers[-1].process, hub.stack.webhooks
    controllers.freeze()
    # Who came before they are missed must keep off the closed node, and may use every new one.
    assert hub.user("early") is True
    hub.join("new", cpu="1", marked=False)
    assert hub.node_of("early") == "new"
    wait_until(
        lambda: webhook.metric("roost_webhook_part_away", part="controllers") == 1,
        50,
        "the webhook to miss them",
    )
    assert hub.user("late") is False
    wait_until(lambda: hub.degraded("controllers-stale") > 0, 20, "the user to be counted")
    assert hub.node_of("late") == "frozen"
    assert hub.value("frozen") == "pulling"

    controllers.resume()
    wait_until(
        lambda: webhook.metric("roost_webhook_part_away", part="controllers") == 0,
        30,
        "them to be back",
    )
    wait_for_facts(hub)


def _bound_home(hub: Hub, name: str, zone: str) -> None:
    """A user's volume, which exists in one zone."""
    api = hub.cluster.api
    volume = f"{hub.namespace}-{name}"
    spec: JSONObject = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    size = {"storage": "1Gi"}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "annotations": bound},
            "spec": {**spec, "resources": {"requests": size}, "volumeName": volume},
        },
        hub.namespace,
    )
    uid = claim["metadata"]["uid"]
    here = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    api.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": {
                **spec,
                "capacity": size,
                "claimRef": {"namespace": hub.namespace, "name": name, "uid": uid},
                "csi": {"driver": "csi.example.com", "volumeHandle": volume},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
            },
        }
    )


def test_a_home_in_the_zone_of_a_closed_node_opens_it_though_the_pod_names_both_zones(
    hub: Hub,
) -> None:
    """KubeSpawner's `node_affinity_required` names both; the volume alone says which."""
    hub.hold("holds", cpu="8", labels={ZONE: "b"})
    hub.join("pulls", cpu="8", labels={ZONE: "a"})
    hub.bind_puller("pulls")
    wait_for_facts(hub)
    _bound_home(hub, "home", "a")
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}
    assert hub.user("at-home", affinity={"nodeAffinity": required}, volumes=[home])
    assert hub.node_of("at-home") == "pulls"


def test_pods_of_daemon_sets_go_to_closed_nodes_as_to_others(hub: Hub) -> None:
    hub.hold("holds", cpu="8")
    hub.join("pulls", cpu="8")
    hub.bind_puller("pulls")
    labels = {"app": "agent"}
    container = {"name": "agent", "image": "busybox:1", "resources": {"requests": {"cpu": "1"}}}
    # This cluster has no other scheduler.
    bound_by = hub.stack.scheduler_name("user")
    pod_spec = {"schedulerName": bound_by, "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}}
    hub.cluster.api.create({**body, "spec": spec}, hub.namespace)
    pods = f"/api/v1/namespaces/{hub.namespace}/pods"

    def nodes() -> set[str]:
        found = hub.cluster.api.list(pods, labelSelector="app=agent")
        return {one["spec"].get("nodeName", "") for one in found}

    wait_until(
        lambda: {"holds", "pulls"} <= nodes(),
        LATER_SECONDS,
        "an agent on each node",
        explain=lambda: hub.cluster.api.list(pods, labelSelector="app=agent"),
    )
    assert hub.value("pulls") == "pulling"
