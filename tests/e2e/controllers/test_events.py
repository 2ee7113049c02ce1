"""Events booked by a ConfigMap, on a real API server: placeholders come and go, and who booked is told."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.waiting import wait_until
from tests.stack import Stack

if TYPE_CHECKING:
    from tests.harness.controlplane import ControlPlane

pytestmark = pytest.mark.e2e

SOON_SECONDS = 60.0


def _utc(seconds: float) -> str:
    """A local date-time of UTC, so long from now."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + seconds))


def _config_map(namespace: str, name: str, *events: dict[str, Any], release: str = "hub") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"roost.hub.jupyter.org/events": release}},
        "data": {"events.yaml": json.dumps(events)},
    }


def test_a_config_map_brings_placeholders_without_an_upgrade_and_they_go_again(
    control_plane: ControlPlane, namespace: str
) -> None:
    values: dict[str, Any] = {
        "placeholders": [{"name": "default", "replicas": 2, "resources": {"requests": {"cpu": "100m"}}}],
        "events": {"enabled": True, "settleMinutes": 1, "maxPlaceholders": 7},
        "singleuser": {"image": {"name": "nb", "tag": "1"}},
    }
    folder = f"/api/v1/namespaces/{namespace}/configmaps"
    with Stack(control_plane, namespace, values, controllers=True, webhook=False, scheduler=False) as stack:
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/hub-roost-placeholder-default"

        def there_are(number: int) -> None:
            wait_until(
                lambda: control_plane.api.get(path)["spec"]["replicas"] == number,
                SOON_SECONDS,
                f"{number} placeholders",
                explain=stack.controllers[0].process.tail,
            )

        there_are(2)
        lecture = {"name": "lecture", "people": 5, "timeZone": "UTC", "start": _utc(300)}
        control_plane.api.create(_config_map(namespace, "others", lecture, release="other"))
        faulty = {**lecture, "name": "faulty", "people": "many"}
        control_plane.api.create(_config_map(namespace, "course", lecture, faulty))
        there_are(2 + 5)

        def was_told() -> bool:
            events = control_plane.api.list(f"/api/v1/namespaces/{namespace}/events")
            told = {(event["reason"], event["involvedObject"]["name"]) for event in events}
            return {("EventBooked", "course"), ("EventRefused", "course")} <= told

        wait_until(was_told, SOON_SECONDS, "Events about both bookings", explain=stack.controllers[0].process.tail)

        # More than the limit, which the admission policy holds the controllers to as well.
        control_plane.api.patch(f"{folder}/course", {"data": {"events.yaml": json.dumps([{**lecture, "people": 50}])}})
        there_are(2 + 7)
        control_plane.api.delete(f"{folder}/course")
        there_are(2)

        # It began almost a minute ago: its placeholders are about to go by themselves.
        control_plane.api.create(_config_map(namespace, "late", {**lecture, "start": _utc(-35)}))
        there_are(2 + 5)
        there_are(2)
