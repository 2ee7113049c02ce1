"""`roost book` on a real control plane: the controllers keep what is booked."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.stack import ROOST, Stack
from tools.root import ROOT

pytestmark = pytest.mark.e2e

SOON_SECONDS = 60.0
CRON_JOB = ROOT / "docs/how-to/calendar-cronjob.yaml"


def teachers_kubeconfig(control_plane: ControlPlane, namespace: str) -> Path:
    """Of somebody with rights on the ConfigMap of bookings alone."""

    def create(kind: str, version: str = "v1", **body: Any) -> None:
        control_plane.api.create({"apiVersion": version, "kind": kind, **body}, namespace)

    version = "rbac.authorization.k8s.io/v1"
    create("ServiceAccount", metadata={"name": "teacher"})
    create("ConfigMap", metadata={"name": "hub-roost-bookings"})
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["hub-roost-bookings"]}
    create("Role", version, metadata={"name": "books"}, rules=[rule | {"verbs": ["get", "patch"]}])
    subject = {"kind": "ServiceAccount", "name": "teacher", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "books"}
    create(
        "RoleBinding", version, metadata={"name": "books"}, subjects=[subject], roleRef=reference
    )
    return control_plane.service_account_kubeconfig(namespace, "teacher")


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

    def create(kind: str, **body: Any) -> None:
        control_plane.api.create({"apiVersion": "v1", "kind": kind, **body}, namespace)

    with Stack(control_plane, namespace, values, controllers=True, webhook=False, scheduler=False):
        # Room for all of the controllers' placeholders, beside as many people.
        hard = {"requests.cpu": "5400m"}
        create("ResourceQuota", metadata={"name": "course"}, spec={"hard": hard})
        control_plane.api.patch(
            f"/api/v1/namespaces/{namespace}/resourcequotas/course/status",
            {"status": {"used": {"requests.cpu": "1500m"}}},
        )
        kubeconfig = teachers_kubeconfig(control_plane, namespace)

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
            "course: 5400m requests.cpu allowed, 1500m used, 20 people booked: 19 of 20"
            " placeholders are kept, so that people find room. Ask for 5500m requests.cpu." in told
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


def test_what_a_calendar_says_raises_placeholders_and_follows_it(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    sets = [{"name": "default", "replicas": 2, "resources": {"requests": {"cpu": "100m"}}}]
    values: dict[str, Any] = {"placeholders": sets, "events": {"enabled": True}}
    file = tmp_path / "course.ics"
    begin = time.strftime("%Y%m%dT%H%M00Z", time.gmtime(time.time() + 600))

    def write(*people: int) -> None:
        """A calendar with a lecture each day for each of these numbers of people."""
        lines = ["BEGIN:VCALENDAR", "VERSION:2.0"]
        for number, count in enumerate(people):
            lines += ["BEGIN:VEVENT", f"UID:{number}", f"SUMMARY:lecture {number}"]
            lines += [f"DTSTART:{begin}", "RRULE:FREQ=DAILY;COUNT=3"]
            lines += [f"X-ALT-DESC;FMTTYPE=text/html:<p><b>people:</b> {count}</p>", "END:VEVENT"]
        file.write_text("\r\n".join([*lines, "END:VCALENDAR", ""]))

    def number() -> int:
        path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/hub-roost-placeholder-default"
        replicas: int = control_plane.api.get(path)["spec"]["replicas"]
        return replicas

    with Stack(control_plane, namespace, values, controllers=True, webhook=False, scheduler=False):
        kubeconfig = teachers_kubeconfig(control_plane, namespace)

        def book(*arguments: str) -> str:
            command = [str(ROOST), "book", *arguments, "--release", "hub"]
            command += ["--kubeconfig", str(kubeconfig)]
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        start = time.strftime("%Y-%m-%d %H:%M", time.gmtime(time.time() + 600)).split()
        book("3", *start, "--zone", "UTC", "--name", "by hand")
        write(12, 4)
        told = book("--calendar", str(file))
        assert told.startswith("Booked: lecture 0: 12 people, ")
        assert "then 2 times until" in told
        wait_until(lambda: number() == 2 + 3 + 12 + 4, SOON_SECONDS, "placeholders for all three")
        write(20)
        told = book("--calendar", str(file))
        assert "course.ics: 0 booked, 1 changed, 0 as before, 1 cancelled." in told
        wait_until(lambda: number() == 2 + 3 + 20, SOON_SECONDS, "placeholders for twenty")
        write()
        # An empty file may be another calendar, unless its name is said.
        told = book("--calendar", str(file), "--name", "course.ics")
        assert "Cancelled: lecture 0" in told
        wait_until(lambda: number() == 2 + 3, SOON_SECONDS, "what was booked by hand")
        path = f"/api/v1/namespaces/{namespace}/configmaps/hub-roost-bookings"
        (entry,) = yaml.safe_load(control_plane.api.get(path)["data"]["events.yaml"])
        assert entry["name"] == "by hand"
    for body in yaml.safe_load_all(CRON_JOB.read_text()):
        control_plane.api.create(body, namespace, dryRun="All", fieldValidation="Strict")
