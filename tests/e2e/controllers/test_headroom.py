"""Placeholders by what was learned, as rendered, on a real API server. By the clock: install/test_gitops.py."""

import subprocess
import time
from array import array
from pathlib import Path
from typing import Any

import pytest

from roost_core.placement.headroom_history import History
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack

pytestmark = pytest.mark.e2e

SOON_SECONDS = 60.0


def test_a_learned_number_scales_the_set_and_what_is_learned_survives_an_upgrade(
    control_plane: ControlPlane, namespace: str
) -> None:
    learn = {"quantile": 0.9, "min": 1, "max": 30, "costPercent": 100, "timeZone": "UTC"}
    placeholders = {"name": "default", "replicas": 2, "resources": {"requests": {"cpu": "100m"}}, "learn": learn}
    values: dict[str, Any] = {"placeholders": [placeholders], "singleuser": {"image": {"name": "nb", "tag": "1"}}}
    path = f"/api/v1/namespaces/{namespace}/configmaps/hub-roost-headroom-history"
    now = int(time.time() // 60)

    def history(people: int) -> dict[str, Any]:
        # They come and go all the time.
        levels = array("i", [each // 3 % 2 * people for each in range(14 * 1440)])
        return {"data": {"default": History(now - 14 * 1440, levels).as_text()}}

    def number() -> int:
        sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        replicas: int = control_plane.api.get(f"{sets}/hub-roost-placeholder-default")["spec"]["replicas"]
        return replicas

    with Stack(control_plane, namespace, values, controllers=True, webhook=False, scheduler=False) as stack:
        assert "data" not in stack.find("ConfigMap", "hub-roost-headroom-history")
        wait_until(lambda: number() == 2, SOON_SECONDS, "the values' number, while nothing is learned")
        control_plane.api.patch(path, history(17))
        wait_until(lambda: number() == 17, SOON_SECONDS, "what the history says")
        # No more than `max`, which the admission policy holds the controllers to as well.
        control_plane.api.patch(path, history(900))
        wait_until(lambda: number() == 30, SOON_SECONDS, "at most `max`")
        control_plane.api.patch(path, {"data": {"default": "garbled"}})
        stack.apply({})
        events = f"/api/v1/namespaces/{namespace}/events"
        wait_until(
            lambda: any(event["reason"] == "HeadroomHistoryUnusable" for event in control_plane.api.list(events)),
            SOON_SECONDS,
            "an Event about the garbled history",
        )
        # This leader still knows better; an upgrade resets neither the number nor the history.
        assert number() == 30
        assert control_plane.api.get(path)["data"] == {"default": "garbled"}
        stack.controllers[0].process.stop()
        stack.start_controllers()
        wait_until(lambda: number() == 2, 2 * SOON_SECONDS, "the values' number, as the next one can't use it")


def test_a_hub_admin_with_rights_on_one_config_map_books_changes_and_cancels(
    control_plane: ControlPlane, namespace: str
) -> None:
    entry = {"name": "default", "replicas": 2, "resources": {"requests": {"cpu": "100m"}}}
    values: dict[str, Any] = {"placeholders": [entry], "events": {"enabled": True}}

    def number() -> int:
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/hub-roost-placeholder-default"
        replicas: int = control_plane.api.get(path)["spec"]["replicas"]
        return replicas

    def create(kind: str, version: str = "v1", **body: Any) -> None:
        control_plane.api.create({"apiVersion": version, "kind": kind, **body}, namespace)

    with Stack(control_plane, namespace, values, controllers=True, webhook=False, scheduler=False):
        version = "rbac.authorization.k8s.io/v1"
        create("ServiceAccount", metadata={"name": "teacher"})
        create("ConfigMap", metadata={"name": "hub-roost-bookings"})
        rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["hub-roost-bookings"]}
        create("Role", version, metadata={"name": "books"}, rules=[rule | {"verbs": ["get", "patch"]}])
        subject = {"kind": "ServiceAccount", "name": "teacher", "namespace": namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "books"}
        create("RoleBinding", version, metadata={"name": "books"}, subjects=[subject], roleRef=reference)
        kubeconfig = control_plane.service_account_kubeconfig(namespace, "teacher")

        def book(*arguments: str, kubeconfig: Path = kubeconfig) -> str:
            command = [str(ROOST), "book", *arguments, "--release", "hub", "--kubeconfig", str(kubeconfig)]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        start = time.strftime("%Y-%m-%d %H:%M", time.gmtime(time.time() + 600)).split()
        assert "Not checked" in book("12", *start, "--zone", "UTC", "--name", "lecture")
        wait_until(lambda: number() == 14, SOON_SECONDS, "placeholders for twelve")
        told = book(
            "20", *start, "--zone", "UTC", "--name", "lecture", "-n", namespace, kubeconfig=control_plane.kubeconfig
        )
        assert told.startswith("Changed: lecture: 20 people, ")
        assert "set default has 20 placeholders more" in told
        wait_until(lambda: number() == 22, SOON_SECONDS, "placeholders for twenty")
        assert book().startswith("lecture: 20 people, ")
        assert book("--cancel", "lecture") == "Cancelled: lecture.\n"
        wait_until(lambda: number() == 2, SOON_SECONDS, "the values' number again")
        assert book() == "No bookings in ConfigMap hub-roost-bookings.\n"
