"""Extended resources of Dynamic Resource Allocation: no node lists them, and the gate holds for
their users, too.
"""

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import pulled_label
from tests.e2e.pods import IMAGE, SINGLEUSER, pod
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

API = "resource.k8s.io/v1"
VALUES: JSONObject = {"placeholders": [], "singleuser": SINGLEUSER}


def test_a_user_of_a_device_is_kept_off_the_node_that_pulls_until_no_other_has_one(
    control_plane: ControlPlane, namespace: str, fake_nodes: FakeNodes, pod_keeper: PodKeeper
) -> None:
    api, driver, label = (
        control_plane.api,
        f"gpu.{namespace}.example.com",
        pulled_label("hub", namespace, IMAGE),
    )
    resource = f"{driver}/gpu"

    def create(kind: str, name: str, spec: JSONObject) -> None:
        """A cluster-wide object, which no other test needs to mind: its names are this test's
        own.
        """
        api.create({"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec})

    def add_node(name: str, *, has_device: bool) -> None:
        fake_nodes.create(name, images={IMAGE: 10**9} if "holds" in name else {})
        if has_device:
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            create(
                "ResourceSlice",
                f"{namespace}-{name}",
                {"driver": driver, "nodeName": name, "pool": pool, "devices": [{"name": "gpu-0"}]},
            )

    selectors = [{"cel": {"expression": f"device.driver == '{driver}'"}}]
    create("DeviceClass", namespace, {"selectors": selectors, "extendedResourceName": resource})
    add_node("small-holds", has_device=False)
    add_node("device-holds", has_device=True)
    with Stack(control_plane, namespace, VALUES, controllers=True) as stack:

        def says(name: str, value: str) -> bool:
            node = api.get(f"/api/v1/nodes/{name}")
            return node["metadata"]["labels"].get(label) == value and not node["spec"].get("taints")

        for name in ("small-holds", "device-holds"):
            wait_until(lambda: says(name, "true"), 30, f"{name} to be known to hold the image")  # noqa: B023
        add_node("device-pulls", has_device=True)
        wait_until(lambda: says("device-pulls", "pulling"), 30, "the other to be known to pull it")
        implicit = f"deviceclass.resource.kubernetes.io/{namespace}"
        for name, asks, node in (
            ("ada", resource, "device-holds"),
            ("bob", implicit, "device-pulls"),
        ):
            body = pod(name, requests={"cpu": "100m", asks: "1"})

            def is_gated() -> bool:
                spec = api.create(body, namespace, dryRun="All")["spec"]  # noqa: B023
                return label in str(
                    spec["affinity"]["nodeAffinity"].get(
                        "requiredDuringSchedulingIgnoredDuringExecution"
                    )
                )

            # The webhook hears of a label later than who asks for it.
            wait_until(is_gated, 30, f"{name} to be kept off the node that pulls")
            stack.create_pod(body)
            # Where no other node has a device, the gate opens.
            assert stack.wait_for_node(name, 30) == node
        assert says("device-pulls", "open")
        assert not stack.webhooks[0].process.log_lines("forbidden")
