"""From 0.1.0 to this version and back while users run, as docs/upgrade.md and docs/how-to/rollback.md say.

The control plane, the schedulers and Roost's programs of both versions are real; nodes and kubelets are stand-ins.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from roost_core.placement.labels import (
    POLICY_REVISION_ANNOTATION,
    images_condition,
    pulled_label,
)
from tests.e2e.installed import THIS, InstalledRelease, Version, unpack_release
from tests.e2e.together.test_promises import IMAGE, user
from tests.harness.fixtures import require_binary
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until
from tests.parity.renderers import by_identity, run_helm
from tests.stack import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.harness.controlplane import ControlPlane

pytestmark = pytest.mark.e2e

ROLLBACK = REPOSITORY / "docs" / "how-to" / "rollback.md"
# Bounds for an overloaded machine.
SECONDS = 120.0
NODES = ("rolled-a", "rolled-b")
# Joins while the newer version runs, and still pulls when that goes.
LATE_NODE = "rolled-late"
PLACEHOLDERS = 2
# What a record is refused with.
UNREADABLE = (
    "written by a Roost whose schema this version cannot read: start with a new database, and export the old one with "
    "the version that wrote it"
)
NEWER = "written by a newer Roost: use that version"
Object = dict[str, Any]


class Hub:
    """A hub with users, on a cluster where Roost's version changes."""

    def __init__(self, release: InstalledRelease, nodes: FakeNodes, folder: Path) -> None:
        self.release = release
        self.cluster = release.cluster
        self.namespace = release.namespace
        self.nodes = nodes
        name, _, tag = IMAGE.rpartition(":")
        # Both versions know these keys.
        values = {
            "webhook": {"url": release.webhook_url},
            "singleuser": {"image": {"name": name, "tag": tag}},
            "imageGate": {"nodeCondition": True},
            "recorder": {"enabled": True},
            "placeholders": [{"name": "default", "replicas": PLACEHOLDERS}],
        }
        self.values = folder / "values.json"
        self.values.write_text(json.dumps(values))
        self._users: dict[str, Object] = {}

    def helm(self, verb: str, *arguments: str) -> None:
        run_helm(
            require_binary("helm"), verb, self.release.release, *arguments, f"--namespace={self.namespace}",
            kubeconfig=self.cluster.kubeconfig,
        )  # fmt: skip

    def render(self, version: Version) -> str:
        """What a version's own `roost render` prints."""
        return subprocess.run(
            [
                version.roost, "render", f"--values={self.values}", f"--release={self.release.release}",
                f"--namespace={self.namespace}", f"--kube-version=v{self.cluster.minor}.0",
            ],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    def kubectl(self, verb: str, version: Version) -> None:
        """`kubectl apply` or `delete` of a version's manifests."""
        self.cluster.kubectl(verb, "-f", "-", "--wait=false", input=self.render(version))

    def left_by_apply(self, version: Version) -> set[str]:
        """What `kubectl apply` of this version's manifests left of the later one's: kinds and names."""

        def names(rendered: str) -> set[tuple[str, str, str, str]]:
            return set(by_identity(rendered))

        found = set()
        for api_version, kind, namespace, name in names(self.render(THIS)) - names(self.render(version)):
            manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
            if self.cluster.api.find(self.cluster.api.path_of(manifest, namespace or None)):
                found.add(f"{kind} {name}")
        return found

    def delete_as_documented(self, kind: str) -> None:
        """Run the line of docs/how-to/rollback.md that deletes this kind; there, `roost` is installed in `hub`."""
        section = ROLLBACK.read_text().partition("### To 0.1.0")[2]
        (line,) = (line for line in section.splitlines() if line.startswith(f"kubectl delete {kind}"))
        for theirs, ours in (
            ("--namespace hub", f"--namespace {self.namespace}"),
            (" roost.hub.", f" {self.release.release}.{self.namespace}."),
            (" roost-", f" {self.release.release}-"),
        ):
            line = line.replace(theirs, ours)
        self.cluster.kubectl(*line.split()[1:])

    # Users

    def start_user(self, name: str, scheduler: str | None = None) -> Object:
        """Create a user's pod and wait until it runs; returns it as it was admitted.

        scheduler: whose pod it must be; by default Roost's.
        """
        stored = self.release.create_pod(user(name))
        assert stored["spec"]["schedulerName"] == (scheduler or self.release.scheduler_name("user"))
        self._users[name] = self.cluster.wait_for_pod_phase(name, self.namespace, "Running", SECONDS)
        return stored

    def check_users_run(self) -> None:
        """All users' pods are the ones that were started, where they were."""
        for name, before in self._users.items():
            now = self.cluster.pod(name, self.namespace)
            assert now["metadata"]["uid"] == before["metadata"]["uid"], name
            assert now["spec"]["nodeName"] == before["spec"]["nodeName"], name
            assert now["status"] == before["status"], name

    # What is seen

    def wait_for_placeholders(self) -> None:
        def placed() -> bool:
            pods = self.cluster.api.list(
                f"/api/v1/namespaces/{self.namespace}/pods", labelSelector="component=user-placeholder"
            )
            names = [pod["spec"]["schedulerName"] for pod in pods if pod["status"]["phase"] == "Running"]
            return names == [self.release.scheduler_name("placeholder")] * PLACEHOLDERS

        wait_until(placed, SECONDS, "all placeholders to run, placed by Roost's scheduler")

    def entries(self) -> dict[str, str]:
        """Each entry of the webhook's configuration, and the certificates that API servers trust there."""
        name = f"hub.{self.namespace}.roost-webhook"
        found = self.cluster.api.get(f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}")
        return {one["name"]: one["clientConfig"].get("caBundle", "") for one in found["webhooks"]}

    def wait_until_trusted(self) -> str:
        """The certificate that all entries have once the leader has looked."""
        (bundle,) = wait_until(
            lambda: set(self.entries().values()) if all(self.entries().values()) else None,
            SECONDS,
            "a certificate in each entry",
            explain=lambda: str(self.entries()),
        )
        return str(bundle)

    def pulled(self, node: str) -> str | None:
        """A node's label for the users' image."""
        labels: dict[str, str] = self.nodes.get(node)["metadata"]["labels"]
        return labels.get(pulled_label("hub", self.namespace, IMAGE))

    def wait_for_pulled(self, name: str, value: str) -> None:
        """Wait until a node's label for the users' image says so, and its condition the same."""
        kind = images_condition("hub", self.namespace)

        def said() -> tuple[str | None, dict[str, str]]:
            conditions = {one["type"]: one["status"] for one in self.nodes.get(name)["status"]["conditions"]}
            return self.pulled(name), conditions

        def agrees() -> bool:
            label, conditions = said()
            return label == value and conditions.get(kind) == ("True" if value == "true" else "False")

        wait_until(agrees, SECONDS, f"the users' image to be {value} on {name}", explain=lambda: str(said()))


@pytest.fixture
def keeper(control_plane: ControlPlane) -> Iterator[PodKeeper]:
    def hold(pod: Object) -> bool:
        return pod["spec"]["nodeName"] == LATE_NODE and "puller" in pod["metadata"]["name"]

    with PodKeeper(control_plane.api, hold=hold) as running:
        yield running


@pytest.fixture
def hub(control_plane: ControlPlane, namespace: str, keeper: PodKeeper, tmp_path: Path) -> Iterator[Hub]:
    with (
        FakeNodes(control_plane.api) as nodes,
        start_scheduler(control_plane, leader_elect=False),
        InstalledRelease(control_plane, namespace) as release,
    ):
        for name in NODES:
            nodes.create(name, cpu="8", memory="32Gi", images={IMAGE: 1_000_000_000})
        yield Hub(release, nodes, tmp_path)


def gate_of(pod: Object) -> tuple[str, list[str]]:
    """What a user's pod requires of a node's label for its image."""
    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    (expression,) = term["matchExpressions"]
    return expression["operator"], expression["values"]


def revision_of(pod: Object) -> str:
    return str(pod["metadata"]["annotations"][POLICY_REVISION_ANNOTATION])


def record(version: Version, release: InstalledRelease) -> subprocess.CompletedProcess[str]:
    """What the export of the installed recorder's database says, asked of this version."""
    return subprocess.run(
        [version.roost, "records", "export"],
        env={**os.environ, **release.recorder_environment()}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def refusal(version: Version, database: str) -> str:
    """Why a version can't read a database, without the database's name."""
    done = subprocess.run(
        [version.roost, "records", "export", f"--database={database}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done
    return done.stderr.strip().partition(".db: ")[2]


def wait_for_launches(version: Version, release: InstalledRelease, number: int) -> None:
    """Wait until the installed recorder's database holds so many starts of users."""
    wait_until(
        lambda: len(record(version, release).stdout.splitlines()) == number,
        SECONDS,
        f"{number} launches in the record",
        explain=lambda: str(record(version, release)),
    )


@pytest.mark.parametrize("program", ["helm", "kubectl"])
def test_from_0_1_0_and_back_while_users_run(hub: Hub, keeper: PodKeeper, tmp_path: Path, program: str) -> None:
    release, old = hub.release, unpack_release("0.1.0", tmp_path)
    if program == "helm":
        hub.helm("install", str(old.chart), f"--values={hub.values}")
    else:
        hub.kubectl("apply", old)
    release.run(old)
    release.start_recorder().wait_ready()
    authority = hub.wait_until_trusted()
    for name in NODES:
        hub.wait_for_pulled(name, "true")
    ada = hub.start_user("ada")
    assert gate_of(ada) == ("In", ["true"])
    hub.wait_for_placeholders()
    wait_for_launches(old, release, 1)
    entries, database = hub.entries().keys(), release.recorder_environment()["ROOST_DATABASE"]

    if program == "helm":
        hub.helm("upgrade", str(THIS.chart), f"--values={hub.values}")
    else:
        hub.kubectl("apply", THIS)
    # The webhook's entries are new, and until their certificate is there, users start without Roost.
    assert set(hub.entries().values()) == {""}
    assert not entries & hub.entries().keys()
    hub.start_user("between", scheduler="default-scheduler")
    release.run(THIS)
    assert hub.wait_until_trusted() == authority
    hub.check_users_run()
    grace = hub.start_user("grace")
    assert gate_of(grace) == ("NotIn", ["pulling"])
    assert revision_of(grace) != revision_of(ada)
    hub.wait_for_placeholders()
    for name in NODES:
        hub.wait_for_pulled(name, "true")
    # Beside the old record, which this version can't read.
    assert release.recorder_environment()["ROOST_DATABASE"] != database
    release.start_recorder().wait_ready()
    wait_for_launches(THIS, release, 3)
    assert refusal(THIS, database) == UNREADABLE
    hub.nodes.create(LATE_NODE, cpu="8", memory="32Gi")
    hub.wait_for_pulled(LATE_NODE, "pulling")
    newer_database = release.recorder_environment()["ROOST_DATABASE"]

    hub.delete_as_documented("lease")
    if program == "helm":
        hub.helm("rollback", "1")
    else:
        hub.kubectl("apply", old)
    assert hub.entries().keys() == entries
    release.run(old)
    assert hub.wait_until_trusted() == authority
    hub.check_users_run()
    linus = hub.start_user("linus")
    assert gate_of(linus) == ("In", ["true"])
    assert revision_of(linus) == revision_of(ada)
    hub.wait_for_placeholders()
    assert hub.pulled(LATE_NODE) != "true"
    keeper.release()
    hub.wait_for_pulled(LATE_NODE, "true")
    # It goes on with its own record: ada, and who came since or still runs.
    assert release.recorder_environment()["ROOST_DATABASE"] == database
    release.start_recorder().wait_ready()
    wait_for_launches(old, release, 4)
    assert refusal(old, newer_database) == NEWER
    hub.check_users_run()
    if program == "helm":
        hub.helm("uninstall", "--no-hooks")
    else:
        assert hub.left_by_apply(old) != set()
        hub.delete_as_documented("validatingadmissionpolicy")
        assert hub.left_by_apply(old) == set()
        hub.kubectl("delete", old)
