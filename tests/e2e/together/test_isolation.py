"""Hostile bookings, pods and Events of one namespace, on a real control plane: others are served as
before.
"""

import datetime as dt
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from roost_core.objects.pod import REQUIRED
from roost_core.placement import labels
from roost_core.release.bookings import MOST_TEXT
from tests.e2e.together.test_one_release import (
    IMAGE,
    SOON_SECONDS,
    booking,
    label,
    user,
    values_for,
)
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.properties.controllers.test_hostile_bookings import ENTRIES, written
from tests.stack import Stack

pytestmark = pytest.mark.e2e

LEASE_SECONDS = 15.0
OF_ROOST = f"{labels.PART_OF_LABEL}={labels.OWN_PART}"
PULLS = {
    labels.PART_OF_LABEL: labels.OWN_PART,
    labels.OWN_INSTANCE_LABEL: "hub",
    labels.OWN_COMPONENT_LABEL: labels.OWN_POPULAR_PULLER,
}


def test_hostile_bookings_and_pods_cost_neither_the_lease_nor_anybody_elses_booking(
    control_plane: ControlPlane, namespace: str
) -> None:
    api, stranger = control_plane.api, control_plane.create_namespace()
    values = {**values_for(namespace), "popularImages": {"enabled": True}}
    with Stack(
        control_plane, namespace, values, controllers=True, webhook=False, scheduler=False
    ) as stack:
        (controllers,) = stack.controllers
        for number, kind in enumerate(sorted(ENTRIES)):
            name = f"hostile-{number}"
            metadata = {
                "name": name,
                "namespace": namespace,
                "labels": {labels.EVENTS_LABEL: "hub"},
            }
            body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            # The API server takes a MiB, the controllers an eighth of it.
            api.create({**body, "data": {"events.yaml": written(kind, 200)[:MOST_TEXT]}})
        finished = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "nobody"}
        control_plane.create_pod(
            {"metadata": {"name": "theirs", "labels": PULLS}, "spec": finished}, stranger
        )
        # Read last, by its name.
        api.create(booking(namespace, 7, name="z-lecture"))
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/hub-roost-controllers"
        oldest = [0.0]

        def is_booked() -> bool:
            renewed = dt.datetime.fromisoformat(api.get(lease)["spec"]["renewTime"]).timestamp()
            oldest[0] = max(oldest[0], time.time() - renewed)
            events = api.list(
                f"/api/v1/namespaces/{namespace}/events",
                fieldSelector="involvedObject.name=z-lecture",
            )
            return "EventBooked" in {event["reason"] for event in events}

        # Some of a minute's time for reading may be used up by the others.
        wait_until(
            is_booked,
            SOON_SECONDS + 60.0,
            "the lecture to be booked",
            explain=controllers.process.tail,
        )
        assert oldest[0] < LEASE_SECONDS
        assert controllers.metric("roost_controllers_leader") == 1.0
        assert (
            "deletionTimestamp"
            not in api.get(f"/api/v1/namespaces/{stranger}/pods/theirs")["metadata"]
        )
    api.delete(f"/api/v1/namespaces/{stranger}")


def test_thousands_of_hostile_events_leave_labels_lease_reviews_and_others_pages_as_they_were(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    api, good, evil = control_plane.api, *(control_plane.create_namespace() for _ in range(2))
    for hub in (good, evil):
        label(control_plane, hub, namespace)
    holder, lacks = f"holder-{namespace}", f"lacks-{namespace}"
    fake_nodes.create(holder, labels={"pool": namespace}, images={IMAGE: 10**9})
    fake_nodes.create(lacks, labels={"pool": namespace})
    waits = user("waits", namespace)
    waits["spec"]["nodeName"] = lacks
    marks = {
        "name": "hub-roost-puller-x",
        "labels": {**PULLS, labels.OWN_COMPONENT_LABEL: labels.OWN_PULLER},
    }
    puller = {
        "metadata": marks,
        "spec": {"nodeName": lacks, "containers": [{"name": "image-0", "image": IMAGE}]},
    }
    pods = [control_plane.create_pod(waits, good), control_plane.create_pod(puller, namespace)]
    gate, lease = labels.pulled_label("hub", namespace, IMAGE), "leases/hub-roost-controllers"
    says = (
        f'Successfully pulled image "{IMAGE}" in 9h0m1s',
        f'Container image "{IMAGE}" already present on machine',
    )

    def gate_of(node: str) -> str | None:
        found: str | None = api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"].get(gate)
        return found

    def told() -> set[tuple[str, str, str]]:
        folders = [(hub, f"/api/v1/namespaces/{hub}/events") for hub in (good, namespace)]
        return {
            (hub, one["reason"], one["message"])
            for hub, at in folders
            for one in api.list(at, labelSelector=OF_ROOST)
        }

    def others_get() -> list[Any]:
        spec = api.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/{lease}")["spec"]
        placed = api.create(user("next", namespace), good, dryRun="All")
        required = placed["spec"]["affinity"]["nodeAffinity"][REQUIRED]
        return [gate_of(holder), spec["holderIdentity"], spec["leaseTransitions"], required]

    def forge(number: int) -> None:
        about = {"kind": "Pod", "namespace": evil, "name": pods[number % 2]["metadata"]["name"]}
        about |= {"uid": pods[number % 2]["metadata"]["uid"]}
        message = says[number // 2 % 2] + "x" * (number % 5 * 3000)
        said: dict[str, Any] = {"message": message, "reason": "Pulled", "type": "Normal"}
        said |= {"involvedObject": about, "source": {"component": "kubelet", "host": lacks}}
        api.create(
            {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"forged-{number}"}, **said},
            evil,
        )

    with Stack(control_plane, namespace, values_for(namespace), controllers=True, scheduler=False):
        wait_until(
            lambda: (
                gate_of(holder) == "true"
                and "DownloadsImage" in {reason for _, reason, _ in told()}
            ),
            SOON_SECONDS,
            "the holder's label, and a user to be told",
        )
        before, said = others_get(), told()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(forge, range(3000)))
        # Planned after all of them.
        new = f"new-{namespace}"
        fake_nodes.create(new, labels={"pool": namespace}, images={IMAGE: 10**9})
        wait_until(lambda: gate_of(new) == "true", SOON_SECONDS, "a new holder's label")
        after = told()
        assert others_get() == before
        assert gate_of(lacks) != "true"
        assert said <= after
        more = {(good, "StillDownloadsImage"), (good, "DownloadTakesLonger")}
        assert {(hub, reason) for hub, reason, _ in after - said} <= more
    for hub in (good, evil):
        api.delete(f"/api/v1/namespaces/{hub}")
