"""Popular images are switched off while a pod pulls: Roost clears it away, by the right that it has
then.
"""

import pytest

from roost_core.placement.labels import (
    OWN_COMPONENT_LABEL,
    OWN_INSTANCE_LABEL,
    OWN_POPULAR_PULLER,
    PART_OF_LABEL,
    popular_pull_name,
)
from tests.e2e.pods import pod
from tests.harness.controlplane import ControlPlane
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

# A new leader waits for a whole minute before it evicts.
GONE_SECONDS = 120.0


@pytest.mark.usefixtures("pod_keeper")
def test_pods_that_pulled_are_gone_after_the_feature_and_nobody_elses_with_them(
    control_plane: ControlPlane, namespace: str
) -> None:
    labels = {
        PART_OF_LABEL: "roost",
        OWN_INSTANCE_LABEL: "hub",
        OWN_COMPONENT_LABEL: OWN_POPULAR_PULLER,
    }
    left = popular_pull_name("hub", "a-node", "uid", "quay.io/me/popular:1")
    for name, given in ((left, labels), ("hub-popular-chart-0123456789ab", {"app": "chart"})):
        body = pod(name)
        body["metadata"]["labels"] = given
        control_plane.create_pod(body, namespace)

    def names() -> set[str]:
        pods = control_plane.api.list(f"/api/v1/namespaces/{namespace}/pods")
        return {one["metadata"]["name"] for one in pods} & {left, "hub-popular-chart-0123456789ab"}

    with Stack(
        control_plane, namespace, {}, scheduler=False, webhook=False, controllers=True
    ) as stack:
        (controllers,) = stack.controllers
        wait_until(
            lambda: left not in names(), GONE_SECONDS, "it to go", explain=controllers.process.tail
        )
    assert names() == {"hub-popular-chart-0123456789ab"}
