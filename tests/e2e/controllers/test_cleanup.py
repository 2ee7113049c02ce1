"""`roost cleanup` on a real API server: a release's marks go, and nothing else does."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roost.controllers.popular_images.pull_pods import PopularPull
from roost.controllers.popular_images.pull_pods import pull_pod as build_pull_pod
from roost_core.placement.labels import attract_label, pulled_label, startup_taint
from tests.e2e.controllers.attacks import ACCOUNT
from tests.e2e.controllers.test_node_write_policy import labelled, manifests_of, refusal
from tests.harness.binaries import NEWEST_MINOR
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.popular_builders import node_state, popular_settings
from tests.stack import ROOST

pytestmark = pytest.mark.e2e
IMAGE = "quay.io/me/image:1"


def cleanup(kubeconfig: Path, namespace: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [
        str(ROOST),
        "cleanup",
        "--release=hub",
        f"--namespace={namespace}",
        f"--kubeconfig={kubeconfig}",
        *more,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def dirty(nodes: FakeNodes, name: str, namespace: str) -> None:
    label, mark = pulled_label("hub", namespace, IMAGE), attract_label("hub", namespace, "default")
    nodes.create(name, labels={label: "true", mark: "true", "mine": "stays"})
    nodes.set_taints(
        name, [f"{startup_taint('hub', namespace)}:NoSchedule", "mine=stays:NoSchedule"]
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
    return {
        pod["metadata"]["name"]
        for pod in cluster.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    }


def test_a_releases_marks_go_and_nothing_else(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes
) -> None:
    mine, other, kubeconfig = f"{namespace}-mine", f"{namespace}-other", control_plane.kubeconfig
    dirty(fake_nodes, mine, namespace)
    # The same release name in another namespace, and a namespace that this one's name begins.
    dirty(fake_nodes, other, f"{namespace}2")
    before = marks(fake_nodes.get(other))
    pulling = [pull_pod(control_plane, namespace, mine, release) for release in ("hub", "other")]

    shown = cleanup(kubeconfig, namespace, "--dry-run")
    assert shown.returncode == 0
    assert f"change node {mine}" in shown.stdout
    assert other not in shown.stdout
    assert f"delete pod {namespace}/{pulling[0]}" in shown.stdout
    assert pods(control_plane, namespace) == set(pulling)
    assert pulled_label("hub", namespace, IMAGE) in marks(fake_nodes.get(mine))[0]

    done = cleanup(kubeconfig, namespace)
    assert done.returncode == 0, done.stderr
    assert marks(fake_nodes.get(mine)) == ({"mine"}, {"mine"})
    assert marks(fake_nodes.get(other)) == before
    assert pods(control_plane, namespace) == {pulling[1]}

    again = cleanup(kubeconfig, namespace)
    assert (again.returncode, again.stdout) == (0, "nothing of this release is on any node\n")


def test_the_controllers_account_cleans_up_what_it_wrote_under_former_values(
    control_plane: ControlPlane,
    namespace: str,
    fake_nodes: FakeNodes,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    rendered: list[str] = []

    def apply(mode: str) -> None:
        rendered.append(
            manifests_of(namespace, tmp_path, {"imageGate": {"mode": mode}}, NEWEST_MINOR)
        )
        control_plane.kubectl("apply", "--filename=-", input=rendered[-1])

    node, label = f"{namespace}-n", pulled_label("hub", namespace, IMAGE)
    fake_nodes.create(node)
    write = labelled(f"/api/v1/nodes/{node}", label)
    apply("requireLabel")
    request.addfinalizer(
        lambda: control_plane.kubectl("delete", "--filename=-", "--wait", input=rendered[-1])
    )
    account = control_plane.api_as(control_plane.service_account_token(namespace, ACCOUNT))
    wait_until(lambda: refusal(account, write) == "", 30.0, "the rights to be at work")
    account.patch(write.path, write.body)
    apply("off")

    kubeconfig = control_plane.service_account_kubeconfig(namespace, ACCOUNT)
    done = cleanup(kubeconfig, namespace, f"--controllers={ACCOUNT}")
    assert done.returncode == 0, done.stderr
    assert label not in marks(fake_nodes.get(node))[0]
    scale = control_plane.api.get(
        f"/apis/apps/v1/namespaces/{namespace}/deployments/{ACCOUNT}/scale"
    )
    assert scale["spec"].get("replicas", 0) == 0


def test_an_unreachable_cluster_is_named_without_a_traceback(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\n")
    done = cleanup(kubeconfig, "hub")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert str(kubeconfig) in done.stderr
