"""Popular images on real kubelets: brought where they are missing, by the controllers as rendered.

Users of two hubs run on one node; a second node joins with nothing. Nothing is made faster for the
test: the kubelet reports its images, and Roost plans, at their own intervals.
"""

from collections.abc import Callable

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.placement.labels import OWN_COMPONENT_LABEL, OWN_POPULAR_PULLER
from tests.e2e.pods import pod
from tests.harness.fixtures import kubelet_cluster, or_give_up, pause_registry
from tests.harness.real_nodes import RealNode
from tests.harness.waiting import wait_until
from tests.stack import Stack

pytestmark = pytest.mark.e2e

# A node's images are reported within 40 s, a leader saves up its bytes for a while, and then the
# pull and its report.
ARRIVES_SECONDS = 180.0
# The disk is known: without it nothing would be brought.
KUBELET = {"localStorageCapacityIsolation": True}


def test_an_image_that_two_hubs_use_is_brought_to_the_empty_node_and_a_rare_one_is_not() -> None:
    """Two hubs in namespaces of their own, one Roost for both."""
    with (
        kubelet_cluster() as cluster,
        pause_registry() as registry,
        or_give_up(),
        RealNode(cluster, "busy", registry, kubelet=KUBELET),
    ):
        home, other = cluster.create_namespace(), cluster.create_namespace()
        popular, rare = (
            registry.push_program(f"me/{name}:1", size_bytes=3_000_000)
            for name in ("popular", "rare")
        )
        selector = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [home, other]}
        resources = {"requests": {"cpu": "10m", "memory": "16Mi"}}
        values = {
            "placeholders": [{"name": "placeholders", "replicas": 0, "resources": resources}],
            "prePuller": {"enabled": False},
            "imageGate": {"mode": "off"},
            "podClasses": {
                "user": {"match": {"namespaceSelector": {"matchExpressions": [selector]}}}
            },
            "popularImages": {"enabled": True, "diskHeadroomPercent": 84, "perNode": 5},
        }

        def start_user(name: str, namespace: str, image: str, node: str) -> None:
            cluster.create_pod(
                pod(name, image=image, nodeName=node, automountServiceAccountToken=False), namespace
            )
            cluster.wait_for_pod_phase(name, namespace, "Running", 120)

        def pull_pods() -> list[JSONObject]:
            label = f"{OWN_COMPONENT_LABEL}={OWN_POPULAR_PULLER}"
            return cluster.api.list(f"/api/v1/namespaces/{home}/pods", labelSelector=label)

        # It takes both hubs to make an image popular.
        start_user("jupyter-1", home, popular.reference, "busy")
        start_user("jupyter-2", other, popular.reference, "busy")
        start_user("jupyter-3", home, rare.reference, "busy")
        with (
            RealNode(cluster, "empty", registry, kubelet=KUBELET) as empty,
            Stack(cluster, home, values, scheduler=False, webhook=False, controllers=True) as stack,
        ):
            (controllers,) = stack.controllers

            def wait(state: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
                wait_until(
                    state,
                    seconds,
                    what,
                    explain=lambda: f"{controllers.process.tail()}\n{pull_pods()}",
                )

            wait(
                lambda: popular.digest in empty.images().values(),
                "the image on the empty node",
                ARRIVES_SECONDS,
            )
            # Nothing is left of the pull, and nothing more is pulled.
            wait(lambda: not pull_pods(), "the pulling pod to be cleared away")
            wait(
                lambda: popular.reference in empty.status_images(),
                "the kubelet to report the image",
            )
            missing, count = (
                "roost_controllers_popular_images_missing",
                "roost_controllers_popular_images",
            )
            wait(lambda: controllers.metric(missing) == 0, "nothing to be missing")
            assert controllers.metric(count) == 1
            assert rare.digest not in empty.images().values()
            events = cluster.api.list(
                "/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=empty"
            )
            assert "PopularImagePulled" in {event["reason"] for event in events}
            # The kubelet knows the tag: a user starts without the registry, and the pull was worth
            # it.
            registry.down()
            start_user("jupyter-4", home, popular.reference, "empty")
            about = "involvedObject.name=jupyter-4,reason=Pulled"
            (told,) = cluster.api.list(f"/api/v1/namespaces/{home}/events", fieldSelector=about)
            assert "already present on machine" in told["message"]
            wait(lambda: controllers.metric(f"{count}_pulled", used="yes") == 1, "its use to count")
