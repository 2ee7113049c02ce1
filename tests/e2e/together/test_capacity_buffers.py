"""An autoscaler keeps the room, without placeholder pods: a real Karpenter, and all of Roost around it."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from roost_core.placement.labels import EVENTS_LABEL
from tests.e2e.growing_hub import LEAVING_SECONDS, RELEASE, SINGLEUSER, USERS, GrowingHub, growing_cluster
from tests.harness.api import Api, ApiError, Object
from tests.harness.controlplane import ControlPlane
from tests.harness.karpenter import Karpenter
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.e2e

COURSE = "quay.io/me/course:1"
SOON_SECONDS = 60.0
NAME = "hub-roost-placeholder-default"
# Past, so that its end is what `apply` moves.
BEGAN = "2020-01-01T00:00"


class Buffered(GrowingHub):
    """A hub whose placeholders are CapacityBuffers."""

    @property
    def path(self) -> str:
        return f"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{self.namespace}/capacitybuffers/{NAME}"

    @property
    def spec(self) -> Object:
        found: Object = self.cluster.api.get(self.path)["spec"]
        return found

    @property
    def kept(self) -> int | None:
        """How many placeholders Karpenter keeps room for."""
        found: int | None = self.cluster.api.get(self.path).get("status", {}).get("replicas")
        return found

    def wait_for_replicas(self, replicas: int) -> None:
        wait_until(
            lambda: self.spec.get("replicas") == replicas,
            SOON_SECONDS,
            f"{replicas} replicas",
            explain=lambda: (self.spec, self.stack.controllers[-1].process.tail(8)),
        )
        assert self.spec["podTemplateRef"] == {"name": NAME}

    def is_warm(self, node: str) -> bool:
        """Whether a user may start there, with the managed image."""
        labels = self.nodes.get(node)["metadata"]["labels"]
        return self.taint not in self.taints(node) and labels.get(self.label) == "true"

    def wait_for_warm_nodes(self, count: int) -> list[str]:
        """Play the kubelets: a node holds the image once a puller's pod is there."""
        names = [node["metadata"]["name"] for node in self.karpenter.wait_for_nodes(count, timeout_seconds=120)]
        for name in names:
            there = partial(self.pods, "app.kubernetes.io/component=puller", name)
            wait_until(there, SOON_SECONDS, f"a puller's pod on {name}", explain=self.explain)
            self.pull(name)
        wait_until(lambda: all(map(self.is_warm, names)), SOON_SECONDS, "warm nodes", explain=self.explain)
        return names


def window(replicas: int, *, end: str = "2099-01-01T00:00") -> Object:
    return {"name": "lectures", "replicas": replicas, "timeZone": "UTC", "start": BEGAN, "end": end}


def values_for(*windows: Object, replicas: int = 0, **more: Any) -> dict[str, Any]:
    one = {
        "name": "default",
        "replicas": replicas,
        "resources": {"requests": {"cpu": "1"}},
        "nodeSelector": USERS,
        "windows": list(windows),
    }
    return {
        "singleuser": SINGLEUSER,
        "imageGate": {"mode": "startupTaint"},
        "placeholder": {"backend": "capacityBuffer"},
        "placeholderMover": {"enabled": False},
        "placeholders": [one],
        **more,
    }


@pytest.fixture(scope="module")
def growing(request: pytest.FixtureRequest) -> Iterator[tuple[ControlPlane, Karpenter]]:
    """A cluster whose Karpenter heeds CapacityBuffers."""
    with growing_cluster(request, CapacityBuffer=True) as found:
        yield found


@contextlib.contextmanager
def hub(growing: tuple[ControlPlane, Karpenter], values: Mapping[str, Any]) -> Iterator[Buffered]:
    with Buffered.of(*growing, values) as site:
        site.create_pool(consolidate_after="1s")
        yield site


def test_a_window_brings_nodes_that_are_warm_before_users_come_and_its_end_takes_them_away(
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    with hub(growing, values_for()) as site:
        # Without windows the values' number is rendered, and nobody needs to write it.
        assert site.spec == {
            "provisioningStrategy": "buffer.x-k8s.io/active-capacity",
            "podTemplateRef": {"name": NAME},
            "replicas": 0,
        }
        assert not site.karpenter.node_claims()

        site.stack.apply(values_for(window(6)))
        assert "replicas" not in site.stack.find("CapacityBuffer")["spec"]
        site.stack.controllers[0].process.stop()
        site.stack.start_controllers()
        site.wait_for_replicas(6)
        first, second = site.wait_for_warm_nodes(2)
        assert site.pods("component") == []

        site.add_user("user", cpu="500m")
        before = time.monotonic()
        assert site.stack.wait_for_node("user", 20) in (first, second)
        assert time.monotonic() - before < 10, "a user starts on a warm node at once"

        # An upgrade leaves the number alone, and somebody else's is set right.
        site.stack.apply({})
        assert site.spec["replicas"] == 6
        site.cluster.api.patch(site.path, {"spec": {"replicas": 1}})
        site.wait_for_replicas(6)
        told = site.cluster.api.list(f"/api/v1/namespaces/{site.namespace}/events")
        messages = [
            event["message"]
            for event in told
            if event["reason"] == "HeadroomChanged" and event["involvedObject"]["kind"] == "CapacityBuffer"
        ]
        assert any("window lectures" in message for message in messages), messages

        # An operator's own limit counts, and nobody takes it away.
        site.cluster.api.patch(site.path, {"spec": {"limits": {"cpu": "2"}}})
        wait_until(lambda: site.kept == 2, SOON_SECONDS, "two placeholders within the limit", explain=site.explain)
        site.stack.apply({})
        assert (site.spec["limits"], site.spec["replicas"]) == ({"cpu": "2"}, 6)
        site.cluster.api.patch(site.path, {"spec": {"limits": None}})
        wait_until(lambda: site.kept == 6, SOON_SECONDS, "all six again", explain=site.explain)

        site.cluster.api.delete(f"/api/v1/namespaces/{site.namespace}/pods/user")
        site.stack.apply(values_for(window(6, end="2020-02-01T00:00")))
        site.stack.controllers[-1].process.stop()
        site.stack.start_controllers()
        site.wait_for_replicas(0)
        wait_until(lambda: not site.node_names(), LEAVING_SECONDS, "the nodes to leave", explain=site.explain)


def test_a_booked_event_brings_nodes_and_its_image_to_them_though_there_are_no_placeholders(
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    events = {"enabled": True, "maxPlaceholders": 10}
    with hub(growing, values_for(events=events)) as site:
        site.wait_for_replicas(0)
        start = (datetime.now(UTC) + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M")
        booking = f"[{{name: lecture, people: 3, timeZone: UTC, start: '{start}', image: '{COURSE}'}}]"
        site.cluster.api.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "lecture", "labels": {EVENTS_LABEL: RELEASE}},
                "data": {"events.yaml": booking},
            },
            site.namespace,
        )
        site.wait_for_replicas(3)
        (node,) = site.wait_for_warm_nodes(1)

        pulls = partial(site.pods, "app.kubernetes.io/component=popular-puller")
        (pod,) = wait_until(pulls, 90, "a pod that pulls the event's image", explain=site.explain)
        assert COURSE in str(pod["spec"])
        assert node in str(pod["spec"])
        assert site.pods("component") == []


# Rights


def refusal(account: Api, path: str, patch: object) -> str:
    """What the API server answers to a merge patch that it doesn't take; "" if it does."""
    try:
        account.patch(path, patch, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


def test_the_controllers_may_size_their_own_buffers_within_the_values_and_nothing_else(
    growing: tuple[ControlPlane, Karpenter],
) -> None:
    with hub(growing, values_for(window(2), replicas=1)) as site:
        site.wait_for_replicas(2)
        api, namespace = site.cluster.api, site.namespace
        fixed = {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "others"}}
        api.create({**fixed, "spec": {"podTemplateRef": {"name": "t"}, "replicas": 0}}, namespace)
        account = site.cluster.api_as(site.cluster.service_account_token(namespace, "hub-roost-controllers"))
        others = site.path.replace(NAME, "others")
        assert refusal(account, site.path, {"spec": {"replicas": 1}}) == ""
        assert refusal(account, site.path, {"spec": {"replicas": 0, "podTemplateRef": {"name": NAME}}}) == ""
        replaced = refusal(account, site.path, {"metadata": {"uid": "another"}, "spec": {"replicas": 1}})
        # As the applier tells a buffer that was replaced since the plan.
        assert "metadata.uid" in replaced or "UID in precondition" in replaced
        assert "forbidden" in refusal(account, others, {"spec": {"replicas": 1}})
        assert "forbidden" in refusal(account, f"{site.path}/status", {"status": {"replicas": 50}})

        api.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "all-rights"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
                "subjects": [{"kind": "ServiceAccount", "name": "hub-roost-controllers", "namespace": namespace}],
            },
            namespace,
        )
        wait_until(
            lambda: "is forbidden: User" not in refusal(account, others, {"spec": {"replicas": 1}}), 20, "rights"
        )
        escapes: dict[str, tuple[str, object]] = {
            "more than the values say": (site.path, {"spec": {"replicas": 3}}),
            "another's buffer": (others, {"spec": {"replicas": 1}}),
            "another's pods": (site.path, {"spec": {"podTemplateRef": {"name": "t"}}}),
            "a workload's pods": (
                site.path,
                {"spec": {"podTemplateRef": None, "scalableRef": {"kind": "a", "name": "b"}}},
            ),
            "a limit": (site.path, {"spec": {"limits": {"cpu": "100"}}}),
            "another strategy": (site.path, {"spec": {"provisioningStrategy": "mine"}}),
            "a label": (site.path, {"metadata": {"labels": {"a": "b"}}}),
            "its status": (f"{site.path}/status", {"status": {"replicas": 50}}),
        }
        said = {name: refusal(account, *write) for name, write in escapes.items()}
        assert {name: text for name, text in said.items() if "ValidatingAdmissionPolicy" not in text} == {}
        # The same requests are fine for somebody else.
        assert {name: refusal(api, *write) for name, write in escapes.items()} == dict.fromkeys(escapes, "")
        with pytest.raises(ApiError, match="ValidatingAdmissionPolicy"):
            account.delete(site.path)
        with pytest.raises(ApiError, match="ValidatingAdmissionPolicy"):
            account.create({**fixed, "metadata": {"name": "mine"}, "spec": {}}, namespace)
