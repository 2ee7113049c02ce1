"""The chart as others get it: packaged, pushed to a registry and installed from there; its test, as
its pod runs it.
"""

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import require_binary
from tests.harness.registry import RealRegistry
from tests.parity.renderers import CHART, run_helm
from tests.stack import ROOST, Stack

pytestmark = pytest.mark.e2e

POD = '--pod={"metadata": {"labels": {"component": "singleuser-server"}}}'


@pytest.mark.parametrize("program", ["helm", "helm3"])
def test_the_chart_is_installed_from_a_registry(
    control_plane: ControlPlane, namespace: str, tmp_path: Path, program: str
) -> None:
    helm = require_binary(program)
    version = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))["version"]
    run_helm(helm, "package", str(CHART), f"--destination={tmp_path}")
    with RealRegistry() as registry:
        charts = f"oci://{registry.host}/charts"
        run_helm(helm, "push", str(tmp_path / f"roost-{version}.tgz"), charts, "--plain-http")
        shown = yaml.safe_load(
            run_helm(
                helm, "show", "chart", f"{charts}/roost", f"--version={version}", "--plain-http"
            )
        )
        run_helm(
            helm,
            "install",
            "hub",
            f"{charts}/roost",
            f"--version={version}",
            "--plain-http",
            f"--namespace={namespace}",
            kubeconfig=control_plane.kubeconfig,
        )
    assert shown["icon"].startswith("data:image/svg+xml;base64,")
    deployments = control_plane.api.list(f"/apis/apps/v1/namespaces/{namespace}/deployments")
    names = {body["metadata"]["name"] for body in deployments}
    assert names == {f"hub-roost-{part}" for part in ("webhook", "controllers", "scheduler")}
    # The test's objects come with the test only.
    accounts = control_plane.api.list(f"/api/v1/namespaces/{namespace}/serviceaccounts")
    assert not [body for body in accounts if body["metadata"]["name"].endswith("-test")]
    # No kubelet runs the cleanup's Job here; tests/e2e/install/test_install.py does.
    kubeconfig = control_plane.kubeconfig
    run_helm(
        helm, "uninstall", "hub", f"--namespace={namespace}", "--no-hooks", kubeconfig=kubeconfig
    )


def test_the_charts_test_tells_a_webhook_that_places_from_one_that_is_away(
    control_plane: ControlPlane, namespace: str
) -> None:
    helm = require_binary("helm")
    rights = run_helm(
        helm,
        "template",
        "hub",
        str(CHART),
        f"--namespace={namespace}",
        "--show-only=templates/tests/rights.yaml",
    )
    control_plane.kubectl("apply", "--filename=-", input=rights)
    account = control_plane.service_account_kubeconfig(namespace, "hub-roost-test")

    def try_pod() -> subprocess.CompletedProcess[str]:
        command = [str(ROOST), "doctor", f"--namespace={namespace}", POD, f"--kubeconfig={account}"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with Stack(control_plane, namespace, {"placeholders": []}, scheduler=False) as stack:
        placed = try_pod()
        assert placed.returncode == 0, placed.stderr
        assert "is placed by policy" in placed.stdout
        for webhook in stack.webhooks:
            webhook.process.stop()
        missed = try_pod()
    assert missed.returncode == 1
    assert "came back untouched (scheduler default-scheduler)" in missed.stderr
    assert control_plane.api.list(f"/api/v1/namespaces/{namespace}/pods") == []
