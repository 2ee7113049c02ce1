"""Argo CD and Flux see no difference between Git and the cluster while Roost works, and can remove
it all.

They are here with their own code (tests/controlplane/gitops): Argo CD's engine, which synchronizes,
compares and judges health; the comparison of Flux's helm-controller beside the real Helm; and how
Flux's kustomize-controller applies.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from roost_core.placement.labels import attract_label, pulled_label, startup_taint
from tests.e2e.leftovers import leftovers
from tests.e2e.pods import pod
from tests.harness.binaries import ensure_binary
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import require_binary
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.parity.renderers import CHART, HelmError, run_helm
from tests.recorded_data import object_of
from tests.stack import Stack
from tools.root import ROOT

pytestmark = pytest.mark.e2e

VALUES: dict[str, Any] = object_of("values-of-git")
UNINSTALL = (ROOT / "docs" / "uninstall.md").read_text()
RELEASE = "hub"
CLEANUP = "hub-roost-cleanup"
SECONDS = 90.0
Found = list[dict[str, str]]


def documented(kind: str) -> dict[str, Any]:
    """The object of a kind in docs/how-to/gitops.md."""
    page = (ROOT / "docs" / "how-to" / "gitops.md").read_text()
    blocks = [yaml.safe_load(block.partition("```")[0]) for block in page.split("```yaml\n")[1:]]
    (found,) = [block for block in blocks if block.get("kind") == kind]
    return dict(found)


class Installed(Stack):
    """Roost as a GitOps tool installs it: Deployments, too, though its programs run as processes of
    ours.
    """

    changed = "Configured"  # what the tool calls an object that somebody changed
    values: ClassVar[dict[str, Any]] = {}  # of docs/how-to/gitops.md
    # what docs/uninstall.md says stays, of all objects by name
    stays: ClassVar[frozenset[str]] = frozenset()

    def bring(self, values: Mapping[str, Any]) -> None:
        self.values_file = self.folder / "values.yaml"
        self.values_file.write_text(yaml.safe_dump(dict(values)))
        self.install()

    def install(self) -> None:
        """Put the chart with `values_file` into the cluster."""
        raise NotImplementedError

    def drift(self) -> Found:
        """What the tool finds that isn't as in Git, and what it warns of."""
        raise NotImplementedError

    def uninstall(self) -> None:
        """Remove it although no cleanup can run, as docs/uninstall.md says."""
        raise NotImplementedError

    def helm(self, *arguments: str, program: Path | None = None) -> str:
        helm = program or require_binary("helm3")
        return run_helm(
            helm, *arguments, f"--namespace={self.namespace}", kubeconfig=self.cluster.kubeconfig
        )

    def template(self, *more: str) -> str:
        """The chart's manifests, hooks included, as a tool renders them that doesn't let Helm
        install.
        """
        chart = (
            RELEASE,
            str(CHART),
            f"--values={self.values_file}",
            f"--kube-version=v{self.cluster.minor}.0",
        )
        return self.helm("template", *chart, *more)

    def tool(self, *command: str, manifests: str = "") -> Found:
        """Run the tool's own code; tests/controlplane/gitops."""
        environment = {
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "NAME": RELEASE,
            "NAMESPACE": self.namespace,
            "PATH": "/usr/bin:/bin",
        }
        # In a folder of its own, for the caches of kubectl's that come into where it works.
        done = subprocess.run(
            [require_binary("gitops"), *command],
            input=manifests,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=self.folder,
        )
        assert done.returncode == 0, done.stderr
        found: Found = json.loads(done.stdout)
        return found


class ArgoCD(Installed):
    """Argo CD renders by `helm template`, and its engine does the rest."""

    changed = "OutOfSync"
    values: ClassVar[dict[str, Any]] = documented("Application")["spec"]["source"]["helm"][
        "valuesObject"
    ]
    stays: ClassVar[frozenset[str]] = frozenset({"hub-roost-scheduler"})

    def install(self) -> None:
        synced = self.tool("argo", "sync", manifests=self.template())
        # Helm's tests and the cleanup are hooks that no synchronization runs.
        hooks = {one["object"] for one in synced if one["says"] == "HookOfNoSync"}
        assert f"Job/{CLEANUP}" in hooks
        assert {one["says"] for one in synced if one["object"] not in hooks} == {"Synced"}
        assert not {one["object"] for one in synced if one["says"] == "Synced"} & hooks

    def drift(self) -> Found:
        manifests = self.template()
        return self.tool("argo", "diff", manifests=manifests) + self.tool(
            "argo", "server-diff", manifests=manifests
        )

    def health(self, manifests: str) -> Found:
        return self.tool("argo", "health", manifests=manifests)

    def uninstall(self) -> None:
        # Its controller creates the hook, and deletes nothing while the hook isn't healthy.
        cleanup = self.template("--show-only=templates/controllers/cleanup-job.yaml")
        self.cluster.kubectl("create", "-f", "-", input=cleanup)
        assert [one["says"] for one in self.health(cleanup)] == ["Progressing"]
        job = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{CLEANUP}"
        self.cluster.api.patch(job, {"spec": {"activeDeadlineSeconds": 1}})
        wait_until(
            lambda: self.health(cleanup)[0]["says"] == "Degraded",
            SECONDS,
            "the cleanup to be given up",
        )
        self.cluster.api.delete(job, propagationPolicy="Background")
        setting = UNINSTALL.partition("argocd app set roost --helm-set ")[2]
        without = self.template(f"--set={setting.split()[0]}")
        assert "pre-delete" not in without
        pruned = self.tool("argo", "prune")
        assert {one["says"] for one in pruned} == {"Pruned"}


class HelmRelease(Installed):
    """Flux's helm-controller is Helm, with a comparison of its own."""

    changed = "update"
    values: ClassVar[dict[str, Any]] = documented("HelmRelease")["spec"]["values"]

    @property
    def program(self) -> Path:
        """Helm under the name that its field manager has in Flux."""
        path = self.folder / "helm-controller"
        if not path.exists():
            path.symlink_to(require_binary("helm"))
        return path

    def install(self) -> None:
        self.helm(
            "install", RELEASE, str(CHART), f"--values={self.values_file}", program=self.program
        )

    def drift(self) -> Found:
        manifests = self.helm("get", "manifest", RELEASE, program=self.program)
        return self.tool("helm-controller", "diff", manifests=manifests)

    def uninstall(self) -> None:
        with pytest.raises(HelmError, match=f"{CLEANUP} not ready"):
            self.helm("uninstall", RELEASE, "--timeout=3s", program=self.program)
        assert self.drift() == []  # all is still there
        self.helm("uninstall", RELEASE, "--no-hooks", program=self.program)
        job = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{CLEANUP}"
        self.cluster.api.delete(job, propagationPolicy="Background")


class Kustomization(Installed):
    """Flux's kustomize-controller applies what `roost render` wrote; there are no hooks."""

    changed = "configured"

    def manifests_in_git(self) -> str:
        return yaml.safe_dump_all([*self.manifests, *self.deployments.values()])

    def install(self) -> None:
        made = self.tool("kustomize-controller", "apply", manifests=self.manifests_in_git())
        assert {one["says"] for one in made} == {"created"}

    def drift(self) -> Found:
        return self.tool("kustomize-controller", "diff", manifests=self.manifests_in_git())

    def uninstall(self) -> None:
        self.tool("kustomize-controller", "prune", manifests=self.manifests_in_git())


@pytest.mark.parametrize("tool", [ArgoCD, HelmRelease, Kustomization])
def test_a_tool_sees_no_drift_in_what_roost_writes_and_removes_all_of_it(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, tool: type[Installed]
) -> None:
    api = control_plane.api
    node = f"{namespace}-a"
    fake_nodes.create(node, cpu="4", memory="8Gi", images={"quay.io/a/b:1": 1_000_000})
    with tool(control_plane, namespace, VALUES | tool.values, controllers=True) as roost:
        (webhook,) = [
            manifest
            for manifest in roost.manifests
            if manifest["kind"] == "MutatingWebhookConfiguration"
        ]
        wait_until(
            lambda: all(
                one["clientConfig"].get("caBundle")
                for one in api.get(api.path_of(webhook))["webhooks"]
            ),
            SECONDS,
            "the leader to write caBundle",
        )
        sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
        wait_until(
            lambda: api.get(f"{sets}/hub-roost-placeholder-timed")["spec"]["replicas"] == 4,
            SECONDS,
            "the leader to scale placeholders by the clock",
        )
        assert roost.drift() == []
        # And a change by hand is seen.
        fixed = f"{sets}/hub-roost-placeholder-fixed"
        api.patch(f"{fixed}/scale", {"spec": {"replicas": 9}}, fieldManager="somebody")
        seen = {(one["object"], one["says"]) for one in roost.drift()}
        assert seen == {("StatefulSet/hub-roost-placeholder-fixed", tool.changed)}
        api.patch(f"{fixed}/scale", {"spec": {"replicas": 2}}, fieldManager="somebody")
        for replica in (*roost.controllers, *roost.webhooks):
            replica.process.kill()
        for scheduler in roost.schedulers:
            scheduler.kill()
        roost.uninstall()
        keep = tool.stays | {"hub-roost-recorder", node}  # the recorder's volume stays on purpose

        def left() -> list[str]:
            return leftovers(api, namespace, keep)

        wait_until(lambda: not left(), SECONDS, "all to go", explain=lambda: "\n".join(left()))


def test_the_scheduler_makes_the_lease_that_argo_cd_leaves_out(
    control_plane: ControlPlane, namespace: str
) -> None:
    values = {"scheduler": {"leaderElection": {"renderLease": False}}, "placeholders": []}
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/hub-roost-scheduler"
    with Stack(control_plane, namespace, values, webhook=False) as stack:
        assert not [body for body in stack.manifests if body["kind"] == "Lease"]
        # `Stack` returns when the scheduler leads.
        assert control_plane.api.get(lease)["spec"]["holderIdentity"]
    control_plane.api.delete(lease)


def test_nodes_can_be_cleaned_with_kubectl_alone(
    control_plane: ControlPlane, fake_nodes: FakeNodes, tmp_path: Path
) -> None:
    """As docs/uninstall.md says for when Roost's image can't be pulled."""
    section = UNINSTALL.partition("## Without Roost's image")[2]
    script = section.partition("```sh\n")[2].partition("```")[0].partition("# 2.")[2]
    assert "kubectl label" in script
    own = {
        pulled_label("roost", "jhub", "a/b:1"): "true",
        attract_label("roost", "jhub", "default"): "true",
    }
    other = {pulled_label("roost2", "jhub", "a/b:1"): "true", "mine": "too"}
    taint = {"key": startup_taint("roost", "jhub"), "effect": "NoSchedule"}
    kept = {"key": "mine", "effect": "NoSchedule"}
    fake_nodes.create(
        "marked", cpu="4", memory="8Gi", labels={**own, **other}, taints=[taint, kept]
    )
    fake_nodes.create("bare", cpu="4", memory="8Gi")
    (tmp_path / "kubectl").symlink_to(ensure_binary("kubectl", control_plane.minor))
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "KUBECONFIG": str(control_plane.kubeconfig),
        "NS": "jhub",
    }
    done = subprocess.run(
        # In a folder of its own: without a HOME, kubectl's caches come into where it works.
        ["sh", "-eu", "-c", f"#{script}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    node = control_plane.api.get("/api/v1/nodes/marked")
    assert not own.keys() & node["metadata"]["labels"].keys()
    assert other.items() <= node["metadata"]["labels"].items()
    assert [one["key"] for one in node["spec"]["taints"]] == ["mine"]


def test_the_page_lists_only_pods_that_have_no_node_and_name_roosts_scheduler(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, tmp_path: Path
) -> None:
    """Whoever deletes what docs/uninstall.md lists ends no start that succeeds by itself."""
    section = UNINSTALL.partition("## 4. Delete pods that still wait")[2]
    listing = section.partition("```sh\n")[2].partition("```")[0]
    fake_nodes.create("pulls-for-long", cpu="4", memory="8Gi")
    roosts = f"roost.{namespace}.user"
    specs: dict[str, dict[str, Any]] = {
        "waits": {"schedulerName": roosts},
        "starts": {"schedulerName": roosts, "nodeName": "pulls-for-long"},
        "anothers": {"schedulerName": "hub-user-scheduler"},
    }
    for name, spec in specs.items():
        control_plane.api.create(pod(name, **spec), namespace)
    (tmp_path / "kubectl").symlink_to(ensure_binary("kubectl", control_plane.minor))
    done = subprocess.run(
        ["sh", "-eu", "-c", listing],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "KUBECONFIG": str(control_plane.kubeconfig),
            "NS": namespace,
        },
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["waits", roosts], done.stderr
