"""`roost cleanup` on a real API server: a release's marks go, and nothing else does."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roost.controllers.popular_images.pull_pods import PopularPull
from roost.controllers.popular_images.pull_pods import pull_pod as build_pull_pod
from roost_core.placement.labels import attract_label, pulled_label, startup_taint
from tests.e2e.controllers.test_node_write_policy import ACCOUNT, manifests_of
from tests.harness.api import STRATEGIC, ApiError
from tests.harness.binaries import NEWEST_MINOR
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.popular_builders import node_state, popular_settings

pytestmark = pytest.mark.e2e
ROOST = Path(sys.executable).parent / "roost"


def cleanup(cluster: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOST, "cleanup", "--kubeconfig", str(cluster.kubeconfig), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def dirty(cluster: ControlPlane, nodes: FakeNodes, name: str, release: str, namespace: str) -> None:
    labels = {
        pulled_label(release, namespace, "quay.io/me/image:1"): "true",
        attract_label(release, namespace, "default"): "true",
        "mine": "stays",
    }
    nodes.create(name, labels=labels)
    nodes.set_taints(
        name,
        [
            {"key": startup_taint(release, namespace), "effect": "NoSchedule"},
            {"key": "mine", "effect": "NoSchedule", "value": "stays"},
        ],
    )


def marks(node: dict[str, Any]) -> tuple[set[str], set[str]]:
    own = {key for key in node["metadata"]["labels"] if not key.startswith("kubernetes.io/")}
    taints = {taint["key"] for taint in node["spec"].get("taints") or ()}
    return own, taints


def pull_pod(cluster: ControlPlane, namespace: str, node: str, release: str) -> str:
    """A pod that pulls a popular image, left behind by that release's controllers; its name."""
    settings = replace(
        popular_settings(document={"release": release, "namespace": namespace}),
        pull_secrets=(),
        pod_tolerations=(),
        priority_class="",
        service_account="",
        pod_security={},
        container_security={},
    )
    body = build_pull_pod(settings, node_state(node), PopularPull("i:1", node, 1))
    cluster.api.create(body)
    return str(body["metadata"]["name"])


def pods(cluster: ControlPlane, namespace: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in cluster.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]}


def test_a_releases_marks_go_and_nothing_else(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    mine, other = f"{namespace}-mine", f"{namespace}-other"
    dirty(control_plane, fake_nodes, mine, "hub", namespace)
    # The same release name in another namespace, and a namespace that this one's name begins.
    dirty(control_plane, fake_nodes, other, "hub", f"{namespace}2")
    before = marks(control_plane.api.get(f"/api/v1/nodes/{other}"))
    pulling = [pull_pod(control_plane, namespace, mine, release) for release in ("hub", "other")]

    shown = cleanup(control_plane, "--release", "hub", "--namespace", namespace, "--dry-run")
    assert shown.returncode == 0
    assert f"change node {mine}" in shown.stdout
    assert other not in shown.stdout
    assert f"delete pod {namespace}/{pulling[0]}" in shown.stdout
    assert pods(control_plane, namespace) == set(pulling)
    assert (
        pulled_label("hub", namespace, "quay.io/me/image:1") in marks(control_plane.api.get(f"/api/v1/nodes/{mine}"))[0]
    )

    done = cleanup(control_plane, "--release", "hub", "--namespace", namespace)
    assert done.returncode == 0, done.stderr
    labels, taints = marks(control_plane.api.get(f"/api/v1/nodes/{mine}"))
    assert labels == {"mine"}
    assert taints == {"mine"}
    assert marks(control_plane.api.get(f"/api/v1/nodes/{other}")) == before
    assert pods(control_plane, namespace) == {pulling[1]}

    again = cleanup(control_plane, "--release", "hub", "--namespace", namespace)
    assert (again.returncode, again.stdout) == (0, "nothing of this release is on any node\n")


def test_the_controllers_account_cleans_up_what_it_wrote_under_former_values(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rendered: list[str] = []

    def apply(**gate: object) -> None:
        rendered.append(manifests_of(namespace, tmp_path, {"imageGate": gate}, NEWEST_MINOR))
        control_plane.kubectl("apply", "--filename=-", input=rendered[-1])

    node = f"{namespace}-n"
    fake_nodes.create(node)
    label = pulled_label("hub", namespace, "quay.io/me/image:1")
    write = {"metadata": {"labels": {label: "true"}}}

    def may_write() -> bool:
        try:
            account.request("PATCH", f"/api/v1/nodes/{node}", write, {"dryRun": "All"}, STRATEGIC)
        except ApiError:
            return False
        return True

    apply(mode="requireLabel")
    request.addfinalizer(lambda: control_plane.kubectl("delete", "--filename=-", "--wait", input=rendered[-1]))
    account = control_plane.api_as(control_plane.service_account_token(namespace, ACCOUNT))
    wait_until(may_write, 30.0, "the rights to be at work")
    account.request("PATCH", f"/api/v1/nodes/{node}", write, {}, STRATEGIC)
    apply(mode="off")

    done = subprocess.run(
        [
            ROOST,
            "cleanup",
            f"--kubeconfig={control_plane.service_account_kubeconfig(namespace, ACCOUNT)}",
            "--release=hub",
            f"--namespace={namespace}",
            f"--controllers={ACCOUNT}",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert label not in marks(control_plane.api.get(f"/api/v1/nodes/{node}"))[0]
    scale = control_plane.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/{ACCOUNT}/scale")
    assert scale["spec"].get("replicas", 0) == 0


def test_an_unreachable_cluster_is_named_without_a_traceback(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\n")
    done = subprocess.run(
        [ROOST, "cleanup", "--release", "hub", "-n", "hub", "--kubeconfig", kubeconfig],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(kubeconfig) in done.stderr


def test_it_wants_to_know_how_to_reach_the_cluster() -> None:
    done = subprocess.run(
        [ROOST, "cleanup", "--release", "hub", "-n", "hub"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--kubeconfig" in done.stderr
