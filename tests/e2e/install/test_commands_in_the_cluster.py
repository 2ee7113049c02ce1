"""The commands that the documentation gives for a cluster: `kubectl exec` in roost-lab's image, and
a forwarded port.

A real kubelet serves them. Of Roost only the recorder is there, by the values that only record.
"""

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest
import yaml

from tests.harness.binaries import ensure_binary
from tests.harness.controlplane import ControlPlane
from tests.harness.fixtures import networked_nodes, require_binary, require_image
from tests.harness.waiting import wait_until
from tests.parity.renderers import CHART, run_helm
from tests.recorded_data import object_of
from tools.image import LAB

pytestmark = pytest.mark.e2e

SECONDS = 120.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    helm, image = require_binary("helm"), require_image(LAB)
    values = tmp_path_factory.mktemp("install") / "values.yaml"
    values.write_text(yaml.safe_dump(object_of("values-that-only-record")))
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    name = f"library/roost-lab:{version}"
    with networked_nodes(lambda registry: registry.push_image(name, image), {"node-a": {}}) as (
        node,
    ):
        made = node.cluster
        made.create_namespace("hub")
        arguments = (f"--values={values}", "--namespace=hub", "--wait", "--timeout=4m")
        run_helm(helm, "install", "hub", str(CHART), *arguments, kubeconfig=made.kubeconfig)
        yield made


def kubectl(cluster: ControlPlane, *arguments: str) -> subprocess.Popen[str]:
    """A kubectl that goes on until it is ended."""
    return subprocess.Popen(
        [str(ensure_binary("kubectl", cluster.minor)), "--namespace", "hub", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(cluster.folder)},
    )


def test_the_view_is_reached_by_a_forwarded_port(cluster: ControlPlane) -> None:
    view_command = ("exec", "deployment/hub-roost-recorder", "--", "roost", "view")
    with (
        kubectl(cluster, *view_command) as view,
        kubectl(cluster, "port-forward", "deployment/hub-roost-recorder", ":8095") as forward,
    ):
        try:
            check_page(view, forward)
        finally:
            for process in (forward, view):
                process.terminate()


def check_page(view: subprocess.Popen[str], forward: subprocess.Popen[str]) -> None:
    """The address that the one prints is the page at the port that the other one forwards."""
    assert view.stdout is not None
    assert forward.stdout is not None
    # Forwarding from 127.0.0.1:PORT -> 8095
    port = int(forward.stdout.readline().partition(" -> ")[0].rpartition(":")[2])
    address = view.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:8095/?token=")
    opener = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(), urllib.request.ProxyHandler({})
    )
    # As the page's own script asks.
    opener.addheaders = [("X-Roost-View", "1")]

    def read(address: str) -> bytes:
        with opener.open(address.replace(":8095/", f":{port}/"), timeout=30) as answer:
            return bytes(answer.read())

    def opened() -> bool:
        try:
            return b"view.js" in read(address)
        except OSError:
            return False

    wait_until(opened, SECONDS, "the page")
    moment = json.loads(read("http://127.0.0.1:8095/api/moment"))
    assert [node["name"] for node in moment["nodes"]] == ["node-a"]
