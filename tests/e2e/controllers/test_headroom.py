"""Placeholders by what was learned, as rendered, on a real API server.

By the clock: install/test_gitops.py.
"""

import time
from array import array
from typing import Any

import pytest

from roost_core.placement.headroom_history import History
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

SOON_SECONDS = 60.0


def test_a_learned_number_scales_the_set_and_what_is_learned_survives_an_upgrade(
    control_plane: ControlPlane, namespace: str
) -> None:
    learn = {"min": 1, "max": 30, "timeZone": "UTC"}
    placeholders = {
        "name": "default",
        "replicas": 2,
        "resources": {"requests": {"cpu": "100m"}},
        "learn": learn,
    }
    values: dict[str, Any] = {
        "placeholders": [placeholders],
        "singleuser": {"image": {"name": "nb", "tag": "1"}},
    }
    path = f"/api/v1/namespaces/{namespace}/configmaps/hub-roost-headroom-history"
    now = int(time.time() // 60)

    def history(people: int) -> dict[str, Any]:
        # They come and go all the time.
        levels = array("i", [index // 3 % 2 * people for index in range(14 * 1440)])
        return {"data": {"default": History(now - 14 * 1440, levels).as_text()}}

    def number() -> int:
        sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        replicas: int = control_plane.api.get(f"{sets}/hub-roost-placeholder-default")["spec"][
            "replicas"
        ]
        return replicas

    with Stack(
        control_plane, namespace, values, controllers=True, webhook=False, scheduler=False
    ) as stack:
        assert "data" not in stack.find("ConfigMap", "hub-roost-headroom-history")
        wait_until(
            lambda: number() == 2, SOON_SECONDS, "the values' number, while nothing is learned"
        )
        control_plane.api.patch(path, history(17))
        wait_until(lambda: number() == 17, SOON_SECONDS, "what the history says")
        # No more than `max`, which the admission policy holds the controllers to as well.
        control_plane.api.patch(path, history(900))
        wait_until(lambda: number() == 30, SOON_SECONDS, "at most `max`")
        control_plane.api.patch(path, {"data": {"default": "garbled"}})
        stack.apply({})
        events = f"/api/v1/namespaces/{namespace}/events"
        wait_until(
            lambda: any(
                event["reason"] == "HeadroomHistoryUnusable"
                for event in control_plane.api.list(events)
            ),
            SOON_SECONDS,
            "an Event about the garbled history",
        )
        # This leader still knows better; an upgrade resets neither the number nor the history.
        assert number() == 30
        assert control_plane.api.get(path)["data"] == {"default": "garbled"}
        stack.controllers[0].process.stop()
        stack.start_controllers()
        wait_until(
            lambda: number() == 2,
            2 * SOON_SECONDS,
            "the values' number, as the next one can't use it",
        )
