"""What goes wrong below Roost while users come without a pause: nobody is refused, stranded or
lost.

More of it: certificates that change in webhook/test_webhook_tls.py, a webhook killed and frozen in
webhook/test_webhook_kills.py, upgrade, rollback and uninstall in install/test_upgrade.py.
"""

import contextlib
import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Self

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import POLICY_REVISION_ANNOTATION, pulled_label
from tests.e2e.controllers.test_gate_never_hides import VALUES, Hub
from tests.e2e.pods import IMAGE, pod
from tests.e2e.relays import POLL_SECONDS, Balancer, CuttableProxy
from tests.e2e.storm import LATER_SECONDS, Storm
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import own_cluster
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.ports import ReservedPort
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.stack import FAST_ELECTION, Stack, Webhook

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

LARGE: JSONObject = {"cpu": "64", "memory": "64Gi", "pods": 5000}
# Placeholders take 240 CPU of a node with 256; each makes room for 48 users.
FULL: JSONObject = {**LARGE, "cpu": "256"}
PLACEHOLDERS = {"name": "default", "replicas": 20, "resources": {"requests": {"cpu": "12"}}}
USER_REQUESTS = {"cpu": "250m", "memory": "1Mi"}


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A control plane of our own, which is restarted here, with the cluster's own scheduler."""
    for cluster in own_cluster(request):
        with start_scheduler(cluster):
            yield cluster


class World:
    """A hub whose webhook and controllers reach the API server by a way that can be cut."""

    def __init__(
        self,
        cluster: ControlPlane,
        nodes: FakeNodes,
        proxy: CuttableProxy,
        *,
        values: JSONObject | None = None,
        leader_election: Mapping[str, str] = FAST_ELECTION,
        holder: JSONObject = LARGE,
    ) -> None:
        """holder: the node that holds the image."""
        self.cluster = cluster
        self.namespace = cluster.create_namespace()
        self.proxy = proxy
        self._holder = holder
        self.stack = Stack(
            cluster,
            self.namespace,
            {**VALUES, **(values or {})},
            webhook=False,
            leader_election=leader_election,
            own_certificates=True,
        )
        self.hub = Hub(cluster, self.namespace, nodes, self.stack)

    def __enter__(self) -> Self:
        self.stack.start()
        self.stack.start_controllers(self._through("controllers")).wait_leading()
        self.stack.start_webhook(self._through("webhook")).wait_ready()
        self.hub.hold("holds", **self._holder)
        wait_until(lambda: self.is_placed("holds"), 30, "a user to be placed", interval_seconds=0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.stop()
        self.cluster.api.delete(f"/api/v1/namespaces/{self.namespace}")

    def _through(self, component: str) -> str:
        direct = next(
            Path(argument.partition("=")[2])
            for argument in self.stack.arguments(component)
            if argument.startswith("--kubeconfig=")
        )
        return f"--kubeconfig={self.proxy.kubeconfig(direct)}"

    def is_placed(self, node: str) -> bool:
        """Whether a user for that node gets Roost's scheduler and the gate's term: all is known."""
        body = pod("asked", node=node)
        spec = self.cluster.api.create(body, self.namespace, dryRun="All")["spec"]
        terms = spec.get("affinity", {}).get("nodeAffinity", {})
        is_gated = "requiredDuringSchedulingIgnoredDuringExecution" in terms
        return is_gated and spec["schedulerName"] == self.stack.scheduler_name("user")

    def placeholders(self) -> list[str]:
        """Names of those that have a node."""
        return [
            one["metadata"]["name"]
            for one in self._pods("component=user-placeholder")
            if one["spec"].get("nodeName") and "deletionTimestamp" not in one["metadata"]
        ]

    def waits(self) -> dict[str, float]:
        """For how many seconds each user of a storm had no node."""

        def moment(text: str) -> float:
            return datetime.fromisoformat(text).timestamp()

        return {
            one["metadata"]["name"]: moment(condition["lastTransitionTime"])
            - moment(one["metadata"]["creationTimestamp"])
            for one in self._pods("component=singleuser-server")
            if one["metadata"]["name"].startswith("storm-")
            for condition in one["status"]["conditions"]
            if condition["type"] == "PodScheduled" and condition["status"] == "True"
        }

    def _pods(self, selector: str) -> list[JSONObject]:
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return self.cluster.api.list(path, labelSelector=selector)

    def storm(self) -> Storm:
        return Storm(self.cluster, self.namespace, IMAGE)


@pytest.fixture
def world(cluster: ControlPlane) -> Iterator[World]:
    with (
        FakeNodes(cluster.api) as nodes,
        PodKeeper(cluster.api),
        CuttableProxy(cluster) as proxy,
        World(cluster, nodes, proxy) as world,
    ):
        yield world


def compact(cluster: ControlPlane) -> None:
    """Have etcd forget all that was before."""

    def ask(path: str, body: JSONObject) -> JSONObject:
        request = urllib.request.Request(
            f"{cluster.etcd_url}{path}", json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: JSONObject = json.load(answer)
            return found

    revision = ask("/v3/maintenance/status", {})["header"]["revision"]
    ask("/v3/kv/compaction", {"revision": revision, "physical": True})


def test_an_etcd_that_was_compacted_while_watches_were_down_is_read_anew(world: World) -> None:
    with world.storm() as storm:
        world.proxy.refuse()
        storm.wait_for_more()
        with storm.lull():
            world.hub.nodes.create("late", images={IMAGE: 10**9}, **LARGE)
            world.cluster.apiserver.kill()
            compact(world.cluster)
            world.cluster.start_apiserver()
        # One that loses its Lease ends, and a kubelet starts it again; it may have kept it.
        for scheduler in world.stack.schedulers:
            if scheduler.process.is_running:
                scheduler.kill()
        world.stack.start_scheduler().wait_leading()
        world.proxy.refuse(on=False)
        storm.wait_for_more()
        world.hub.wait_for_value("late", "true", seconds=60.0)
        wait_until(lambda: world.is_placed("late"), 30, "the webhook to know the new node")
    storm.check()
    for replica in (*world.stack.webhooks, *world.stack.controllers):
        assert replica.process.log_lines("Expired"), "the server still knew where we stood"
        assert "Traceback" not in replica.process.log()


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_scheduler_that_restarts_in_a_burst_keeps_no_user_waiting_for_30_seconds(
    cluster: ControlPlane, how: str
) -> None:
    """With kube-scheduler's own Lease, and users who pre-empt placeholders all the time."""
    with (
        FakeNodes(cluster.api) as nodes,
        PodKeeper(cluster.api),
        CuttableProxy(cluster) as proxy,
        World(
            cluster,
            nodes,
            proxy,
            values={"placeholders": [PLACEHOLDERS]},
            leader_election={},
            holder=FULL,
        ) as world,
    ):
        placeholders = world.placeholders
        wait_until(lambda: len(placeholders()) == 20, 60, "all placeholders to have a node")
        (first,) = world.stack.schedulers
        body = pod("user", requests=USER_REQUESTS)
        with Storm(cluster, world.namespace, body=body, pause_seconds=0.1) as storm:
            wait_until(lambda: len(placeholders()) < 20, 60, "a user to pre-empt a placeholder")
            first.kill() if how == "killed" else first.stop()
            left = len(placeholders())
            world.stack.start_scheduler().wait_leading()
            ours = world.stack.scheduler_name("user")
            wait_until(
                lambda: storm.wait_for_more(5)[-1]["spec"]["schedulerName"] == ours,
                30,
                "the new scheduler to be named",
            )
            storm.wait_for_more(100)
        storm.check()
        waits = world.waits()
        assert len(waits) == len(storm.pods)
        assert max(waits.values()) <= LATER_SECONDS, waits
        assert len(placeholders()) < left, "nobody pre-empted a placeholder afterwards"


# Beyond five minutes the last beliefs have ended, too.
@pytest.mark.parametrize("seconds", [16, pytest.param(310, marks=pytest.mark.minors)])
def test_a_partition_costs_nobody_a_start_and_all_is_as_before_when_it_ends(
    world: World, seconds: int
) -> None:
    ours = world.stack.scheduler_name("user")
    with world.storm() as storm:
        world.proxy.hush()
        began = time.monotonic()

        def is_left_to_the_cluster() -> bool:
            return all(pod["spec"]["schedulerName"] != ours for pod in storm.wait_for_more(5))

        wait_until(is_left_to_the_cluster, 20, "users to be left to the cluster's scheduler")
        with storm.lull():
            # Nodes have room for two minutes' users.
            time.sleep(max(0.0, began + seconds - 10 - time.monotonic()))
        time.sleep(max(0.0, began + seconds - time.monotonic()))
        assert world.stack.controllers[0].metric("roost_controllers_leader") == 0.0
        storm.check()
        world.proxy.hush(on=False)
        world.hub.nodes.create("late", images={IMAGE: 10**9}, **LARGE)
        # A watch tries again after at most 30 s, and a try that hangs takes 10.
        world.hub.wait_for_value("late", "true", seconds=60.0)
        wait_until(lambda: world.is_placed("late"), 60, "all to be known again")
        assert storm.wait_for_more(5)[-1]["spec"]["schedulerName"] == ours
    storm.check()
    assert storm.slowest_seconds < 5.0


def test_old_and_new_webhooks_that_serve_together_refuse_nobody_and_agree_with_each_other(
    world: World,
) -> None:
    """As in an upgrade: a pod may even be seen by both."""
    stack = world.stack
    (old,) = stack.webhooks
    old_settings = stack.folder / "old.json"
    mounted = next(
        argument.partition("=")[2]
        for argument in stack.arguments("webhook")
        if argument.startswith("--settings=")
    )
    old_settings.write_text(Path(mounted).read_text())
    with contextlib.ExitStack() as exits:
        replicas: list[Webhook] = []
        old.process.kill()
        for flags in ([f"--settings={old_settings}"], []):
            port = exits.enter_context(ReservedPort())
            replica = stack.start_webhook(
                world._through("webhook"), f"--port={port.number}", *flags
            )
            replica.port = port.number
            replicas.append(replica)
        for replica in replicas:
            replica.wait_ready()
        balancer = exits.enter_context(Balancer(stack.port.number))
        balancer.replicas += replicas
        with world.storm() as storm:
            stack.apply({"podClasses": {"user": {"imageGate": False, "join": {"user": 50}}}})

            def revisions() -> set[str]:
                annotations = [
                    pod["metadata"].get("annotations", {}) for pod in storm.wait_for_more()
                ]
                return {
                    str(annotation.get(POLICY_REVISION_ANNOTATION, ""))
                    for annotation in annotations
                }

            wait_until(lambda: len(revisions() - {""}) == 2, 30, "both to place users")
        storm.check()
        for turn, (first, second) in enumerate((replicas, replicas[::-1])):
            body = pod(f"seen-twice-{turn}")
            for replica, how in ((first, {"dryRun": "All"}), (second, {})):
                balancer.replicas[:] = [replica]
                time.sleep(3 * POLL_SECONDS)
                balancer.cut()
                stored = world.cluster.api.create(body, world.namespace, **how)
                body = {**body, "spec": stored["spec"]}
            terms = stored["spec"]["affinity"]["nodeAffinity"][
                "preferredDuringSchedulingIgnoredDuringExecution"
            ]
            assert [term for term in terms if terms.count(term) > 1] == []
            assert stack.wait_for_node(f"seen-twice-{turn}") == "holds"


def test_old_and_new_controllers_lead_one_after_the_other_and_refuse_nobody(world: World) -> None:
    """As in an upgrade: the new ones bring an image that the old ones don't know."""
    stack, hub = world.stack, world.hub
    settings = next(
        argument
        for argument in stack.arguments("controllers")
        if argument.startswith("--settings=")
    )
    old_settings = stack.folder / "old-controllers.json"
    old_settings.write_text(Path(settings.partition("=")[2]).read_text())
    stack.controllers[0].process.stop()
    through = world._through("controllers")
    old = stack.start_controllers(through, f"--settings={old_settings}")
    old.wait_leading()
    course = "quay.io/me/course:1"
    profile = {"display_name": "course", "kubespawner_override": {"image": course}}
    label = pulled_label("hub", world.namespace, course)

    def value() -> str | None:
        found: JSONObject = world.cluster.api.get("/api/v1/nodes/holds")["metadata"]["labels"]
        return found.get(label)

    with world.storm() as storm:
        stack.apply({"singleuser": {"profileList": [profile]}})
        hub.nodes.set_images("holds", {IMAGE: 10**9, course: 10**9})
        new = stack.start_controllers(through)
        new.wait_ready()
        storm.wait_for_more()
        leads = "roost_controllers_leader"
        assert (old.metric(leads), new.metric(leads)) == (1.0, 0.0)
        assert (hub.value("holds"), value()) == ("true", None)
        old.process.stop()
        new.wait_leading()
        wait_until(lambda: value() == "true", 60, "the new ones to know the new image")
        assert hub.value("holds") == "true"
        storm.wait_for_more()
    storm.check()
    for replica in (old, new):
        assert "Traceback" not in replica.process.log()
