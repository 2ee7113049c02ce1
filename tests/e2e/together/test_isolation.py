"""Hostile bookings and pods of one namespace, on a real control plane: others are served as before."""

import datetime as dt
import time
from typing import Any

import pytest

from roost_core.placement import labels
from tests.e2e.together.test_one_release import SOON_SECONDS, booking, values_for
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.properties.controllers.test_hostile_bookings import calendar
from tests.stack import Stack

pytestmark = pytest.mark.e2e

LEASE_SECONDS = 15.0
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
    with Stack(control_plane, namespace, values, controllers=True, webhook=False, scheduler=False) as stack:
        (controllers,) = stack.controllers
        kinds = ("never", "hardly ever", "counted from long ago", "moved away", "dates taken out")
        for number, kind in enumerate(kinds * 2):
            name = f"hostile-{number}"
            metadata = {"name": name, "namespace": namespace, "labels": {labels.EVENTS_LABEL: "hub"}}
            body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            api.create({**body, "data": {"a.ics": calendar(kind, 900, 27_000)}})
        finished = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "nobody"}
        control_plane.create_pod({"metadata": {"name": "theirs", "labels": PULLS}, "spec": finished}, stranger)
        # Read last, by its name.
        api.create(booking(namespace, 7, name="z-lecture"))
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/hub-roost-controllers"
        oldest = [0.0]

        def is_booked() -> bool:
            renewed = dt.datetime.fromisoformat(api.get(lease)["spec"]["renewTime"]).timestamp()
            oldest[0] = max(oldest[0], time.time() - renewed)
            events = api.list(f"/api/v1/namespaces/{namespace}/events", fieldSelector="involvedObject.name=z-lecture")
            return "EventBooked" in {event["reason"] for event in events}

        # Some of a minute's time for reading may be used up by the others.
        wait_until(is_booked, SOON_SECONDS + 60.0, "the lecture to be booked", explain=controllers.process.tail)
        assert oldest[0] < LEASE_SECONDS
        assert controllers.metric("roost_controllers_leader") == 1.0
        assert "deletionTimestamp" not in api.get(f"/api/v1/namespaces/{stranger}/pods/theirs")["metadata"]
    api.delete(f"/api/v1/namespaces/{stranger}")
