"""`roost book` on a real control plane: the controllers keep what is booked."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack

pytestmark = pytest.mark.e2e

SOON_SECONDS = 60.0


def test_a_hub_admin_with_rights_on_one_config_map_books_changes_and_cancels(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    entry = {"name": "default", "replicas": 2, "resources": {"requests": {"cpu": "100m"}}}
    large = {**entry, "name": "large", "replicas": 0, "nodeSelector": {"pool": "large"}}
    values: dict[str, Any] = {"placeholders": [entry, large], "events": {"enabled": True}}
    override = {"node_selector": {"pool": "large"}, "image": "quay.io/me/course:1"}
    values["singleuser"] = {
        "profileList": [{"display_name": "Large", "kubespawner_override": override}]
    }

    def number(of: str = "default") -> int:
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/hub-roost-placeholder-{of}"
        replicas: int = control_plane.api.get(path)["spec"]["replicas"]
        return replicas

    def create(kind: str, version: str = "v1", **body: Any) -> None:
        control_plane.api.create({"apiVersion": version, "kind": kind, **body}, namespace)

    with Stack(control_plane, namespace, values, controllers=True, webhook=False, scheduler=False):
        version = "rbac.authorization.k8s.io/v1"
        create("ServiceAccount", metadata={"name": "teacher"})
        create("ConfigMap", metadata={"name": "hub-roost-bookings"})
        create("ResourceQuota", metadata={"name": "course"}, spec={"hard": {"requests.cpu": "1"}})
        rule = {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["hub-roost-bookings"],
        }
        create(
            "Role", version, metadata={"name": "books"}, rules=[rule | {"verbs": ["get", "patch"]}]
        )
        subject = {"kind": "ServiceAccount", "name": "teacher", "namespace": namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "books"}
        create(
            "RoleBinding",
            version,
            metadata={"name": "books"},
            subjects=[subject],
            roleRef=reference,
        )
        kubeconfig = control_plane.service_account_kubeconfig(namespace, "teacher")

        def book(*arguments: str, kubeconfig: Path = kubeconfig) -> str:
            command = [
                str(ROOST),
                "book",
                *arguments,
                "--release",
                "hub",
                "--kubeconfig",
                str(kubeconfig),
            ]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        start = time.strftime("%Y-%m-%d %H:%M", time.gmtime(time.time() + 600)).split()
        assert "Not checked" in book("12", *start, "--zone", "UTC", "--name", "lecture")
        wait_until(lambda: number() == 14, SOON_SECONDS, "placeholders for twelve")
        told = book(
            "20",
            *start,
            "--zone",
            "UTC",
            "--name",
            "lecture",
            "-n",
            namespace,
            kubeconfig=control_plane.kubeconfig,
        )
        assert told.startswith("Changed: lecture: 20 people, ")
        assert "set default has 20 placeholders more" in told
        assert (
            "course has room for 10 of 20 placeholders now; others are refused. Raise requests.cpu"
            " to 2000m." in told
        )
        wait_until(lambda: number() == 22, SOON_SECONDS, "placeholders for twenty")
        assert book().startswith("lecture: 20 people, ")
        told = book(
            "5",
            *start,
            "--profile",
            "large",
            "--name",
            "lab",
            "-n",
            namespace,
            kubeconfig=control_plane.kubeconfig,
        )
        assert "quay.io/me/course:1.\n" in told
        assert "set large has 5 placeholders more" in told
        wait_until(lambda: number("large") == 5, SOON_SECONDS, "the profile's placeholders")
        assert book("--cancel", "lab") == "Cancelled: lab.\n"
        assert book("--cancel", "lecture") == "Cancelled: lecture.\n"
        wait_until(lambda: number() == 2, SOON_SECONDS, "the values' number again")
        assert book() == "No bookings in ConfigMap hub-roost-bookings.\n"
        day, clock = start
        weekday = time.strftime("%A", time.strptime(day, "%Y-%m-%d"))
        classes = tmp_path / "classes.csv"
        classes.write_text(f"weekday,time,people,until,name\n{weekday},{clock},7,{day},logic\n")
        timetable = ("--timetable", str(classes), "--zone", "UTC")
        assert book(*timetable).startswith("Booked: logic: 7 people, ")
        wait_until(lambda: number() == 9, SOON_SECONDS, "placeholders for the class")
        assert "0 booked, 0 changed, 1 as before." in book(*timetable)
