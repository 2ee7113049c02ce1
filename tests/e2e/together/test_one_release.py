"""One release serves three hubs' namespaces, on a real control plane: one warm set, one gate,
bookings of each.
"""

import json
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from roost_core.placement.labels import EVENTS_LABEL, HUB_BOOKINGS, pulled_label
from tests.harness.api import ApiError
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

IMAGE: Final = "quay.io/jupyter/scipy-notebook:2026-11-03"
SOON_SECONDS: Final = 60.0
HUBS: Final = ("physics", "biology", "history")


@pytest.fixture
def hubs(control_plane: ControlPlane, namespace: str) -> Iterator[list[str]]:
    """Namespaces of three hubs with the release's label, which is its own namespace."""
    names = [control_plane.create_namespace(f"{hub}-{namespace}") for hub in HUBS]
    for name in names:
        label(control_plane, name, namespace)
    yield names
    for name in names:
        control_plane.api.delete(f"/api/v1/namespaces/{name}")


def label(cluster: ControlPlane, name: str, release: str) -> None:
    cluster.api.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"users": release}}})


def values_for(namespace: str) -> dict[str, Any]:
    name, _, tag = IMAGE.rpartition(":")
    pool = {"pool": namespace}
    selector = {"matchLabels": {"users": namespace}}
    user = {"match": {"namespaceSelector": selector}, "warm": {"podsPerNode": 10}}
    return {
        "podClasses": {"user": user},
        "singleuser": {"image": {"name": name, "tag": tag}, "nodeSelector": pool},
        "placeholders": [
            {
                "name": "default",
                "replicas": 0,
                "resources": {"requests": {"cpu": "100m"}},
                "nodeSelector": pool,
            }
        ],
        "events": {"enabled": True, "maxPlaceholders": 40},
    }


def user(name: str, namespace: str) -> dict[str, Any]:
    container = {"name": "main", "image": IMAGE, "resources": {"requests": {"cpu": "100m"}}}
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "nodeSelector": {"pool": namespace},
    }
    metadata = {"name": name, "labels": {"component": "singleuser-server"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def booking(
    namespace: str, people: int, events: int = 1, name: str = HUB_BOOKINGS
) -> dict[str, Any]:
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 300))
    entries = [
        {"name": f"e{index}", "people": people, "timeZone": "UTC", "start": start}
        for index in range(events)
    ]
    metadata = {"name": name, "namespace": namespace, "labels": {EVENTS_LABEL: "hub"}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"events.yaml": json.dumps(entries)},
    }


def test_users_of_all_hubs_join_on_one_node_behind_one_gate_and_a_hub_that_comes_is_served_at_once(
    control_plane: ControlPlane,
    namespace: str,
    hubs: list[str],
    fake_nodes: FakeNodes,
    pod_keeper: PodKeeper,
) -> None:
    assert pod_keeper
    nodes = [f"{letter}-{namespace}" for letter in "abc"]
    for node in nodes:
        fake_nodes.create(node, labels={"pool": namespace}, images={IMAGE: 1_500_000_000}, cpu="8")
    with Stack(control_plane, namespace, values_for(namespace), controllers=True) as stack:
        gate = pulled_label("hub", namespace, IMAGE)
        for node in nodes:
            wait_until(
                lambda node=node: control_plane.api.get(f"/api/v1/nodes/{node}")["metadata"][
                    "labels"
                ].get(gate),  # type: ignore[misc]
                SOON_SECONDS,
                f"the release's own label on {node}",
                explain=stack.controllers[0].process.tail,
            )

        def place(name: str, hub: str) -> str:
            control_plane.create_pod(user(name, namespace), hub)
            return control_plane.wait_for_pod_node(name, hub, SOON_SECONDS)

        first = place("first", hubs[2])
        found = {place(f"user-{number}", hub) for number, hub in enumerate(hubs * 2)}
        assert found == {first}, "users of all hubs are on one node"
        body = control_plane.api.get(f"/api/v1/namespaces/{hubs[0]}/pods/user-0")
        assert body["spec"]["schedulerName"] == stack.scheduler_name("user")
        assert gate in json.dumps(body["spec"]["affinity"])

        late = control_plane.create_namespace(f"late-{namespace}")
        try:
            asked = control_plane.api.create(user("asks", namespace), late, dryRun="All")
            assert asked["spec"]["schedulerName"] == "default-scheduler"
            label(control_plane, late, namespace)

            def is_served() -> bool:
                asked = control_plane.api.create(user("asks", namespace), late, dryRun="All")
                return bool(asked["spec"]["schedulerName"] == stack.scheduler_name("user"))

            wait_until(
                is_served,
                SOON_SECONDS,
                "the new hub to be served",
                explain=stack.webhooks[0].process.tail,
            )
            assert place("newcomer", late) == first
        finally:
            control_plane.api.delete(f"/api/v1/namespaces/{late}")


def test_each_hub_books_within_its_bounds_and_what_is_refused_harms_no_other(
    control_plane: ControlPlane, namespace: str, hubs: list[str]
) -> None:
    physics, biology, history = hubs
    with Stack(
        control_plane,
        namespace,
        values_for(namespace),
        controllers=True,
        webhook=False,
        scheduler=False,
    ) as stack:
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/hub-roost-placeholder-default"

        def there_are(number: int) -> None:
            wait_until(
                lambda: control_plane.api.get(path)["spec"]["replicas"] == number,
                SOON_SECONDS,
                f"{number} placeholders",
                explain=lambda: (
                    control_plane.api.get(path)["spec"]["replicas"],
                    stack.controllers[0].process.tail(),
                ),
            )

        def told(hub: str) -> dict[str, str]:
            events = control_plane.api.list(f"/api/v1/namespaces/{hub}/events")
            return {event["reason"]: event["message"] for event in events}

        control_plane.api.create(booking(physics, 7))
        there_are(7)
        # Neither another name, nor another namespace.
        control_plane.api.create(booking(physics, 9, name="others"))
        stranger = control_plane.create_namespace(f"stranger-{namespace}")
        control_plane.api.create(booking(stranger, 9))
        # Too many, and too large.
        control_plane.api.create(booking(biology, 5, events=60))
        large = booking(history, 5)
        large["data"]["notes"] = "x" * 200_000
        control_plane.api.create(large)
        for hub, words in (
            (biology, "at most 50 bookings of one hub"),
            (history, "at most 131072 of one hub"),
        ):
            wait_until(
                lambda hub=hub: "EventRefused" in told(hub),  # type: ignore[misc]
                SOON_SECONDS,
                f"a notice in {hub}",
                explain=stack.controllers[0].process.tail,
            )
            assert words in told(hub)["EventRefused"]
        assert "EventBooked" in told(physics)
        assert not told(stranger)
        there_are(7)
        # More than the values allow in all: the hub that needs little gets it.
        many = f"/api/v1/namespaces/{biology}/configmaps/{HUB_BOOKINGS}"
        control_plane.api.patch(many, {"data": booking(biology, 400)["data"]})
        there_are(40)

        # The account may read that one name, and nothing else there.
        account = stack.find("ServiceAccount", "hub-roost-controllers")["metadata"]["name"]
        api = control_plane.api_as(control_plane.service_account_token(namespace, account))
        assert api.list("/api/v1/configmaps", fieldSelector=f"metadata.name={HUB_BOOKINGS}")
        for refused in (f"/api/v1/namespaces/{physics}/configmaps/others", "/api/v1/configmaps"):
            with pytest.raises(ApiError) as error:
                api.get(refused)
            assert error.value.status == 403
        control_plane.api.delete(f"/api/v1/namespaces/{stranger}")
