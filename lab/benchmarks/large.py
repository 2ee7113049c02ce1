"""How large a cluster may be: processor time of a review, by nodes.

`python -m benchmarks.large --nodes 50 500 5000`. In one process, without HTTP. Each node holds 50
images and four users' pods, and is labelled as holding the hub's image. Reviews are of users of the
hub's image, of users whose image no puller brings, of these each after the watches have shown
another pod, too, and of builds, each of another repository. Then one of ten is a build, and the
watches have shown another pod before each. Nodes then change 20 times a second for a minute: half
of them get a label, half are cordoned or freed, and one user is reviewed after each.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.figures import machine, quantile, say, table
from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, read_node
from roost_core.placement.nodes import Nodes
from tests.builders import IMAGE as HUB_IMAGE
from tests.builders import held, settings
from webhook.facts.facts import Facts
from webhook.facts.placed_pod import PlacedPod
from webhook.facts.warm import WarmFacts
from webhook.review import Reviewer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

REVIEWS: Final = 500
IMAGES: Final = 3000
IMAGES_OF_A_NODE: Final = 50
PODS_OF_A_NODE: Final = 4
# Of pods that come, one in so many is a build.
PODS_A_BUILD: Final = 10
CHANGES_PER_SECOND: Final = 20
CHANGES: Final = 60 * CHANGES_PER_SECOND


def image(number: int) -> str:
    """One of the images that users bring."""
    return f"quay.io/binder/r2d-{number % IMAGES}:x"


def make_node(number: int) -> Node:
    """A node as its kubelet reports it."""
    name = f"node-{number}"
    images = [
        {"names": [image(7 * number + place)], "sizeBytes": 10**9}
        for place in range(IMAGES_OF_A_NODE)
    ]
    labels = {"kubernetes.io/hostname": name, "hub.jupyter.org/node-purpose": "user"}
    # The puller has brought the hub's image.
    labels |= held(HUB_IMAGE)
    return read_node(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "creationTimestamp": f"2026-01-{1 + number % 28:02d}T00:00:00Z",
                "labels": labels | {f"label-{place}": "x" for place in range(12)},
            },
            "status": {
                "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "images": images,
            },
        }
    )


class Desk:
    """A reviewer and its facts, which change as the watches would change them."""

    def __init__(self, nodes: int) -> None:
        self.nodes = Nodes([make_node(number) for number in range(nodes)])
        # Pods are read with the same objects.
        self._names = list(self.nodes)
        pods = {
            f"jhub/jupyter-{number}": PlacedPod(
                # Half of the users of a node run the hub's image.
                "user",
                self._names[number % nodes],
                (image(number) if number // nodes % 2 else HUB_IMAGE,),
            )
            for number in range(PODS_OF_A_NODE * nodes)
        }
        self.warm = WarmFacts(pods)
        self._builders = frozenset(self.nodes)
        rules = settings(podClasses={"user": {"warm": {"spare": 1}}})
        self.reviewer = Reviewer(lambda: rules, self._facts, time.monotonic, lambda *_: None)
        self._now: Facts | None = None

    def _facts(self) -> Facts:
        if self._now is None:
            self._now = Facts(
                nodes=self.nodes, warm={"user": self.warm}, builder_nodes={"build": self._builders}
            )
        return self._now

    def show_pod(self, number: int) -> None:
        """The watch shows another pod."""
        pod = PlacedPod("user", self._names[number % len(self._names)], (image(number),))
        self.warm = self.warm.updated({f"jhub/new-{number}": pod})
        self._now = None

    def change_node(self, number: int) -> None:
        """The watch shows a change of a node."""
        node = self.nodes[f"node-{number * 7 % len(self.nodes)}"]
        changed = (
            replace(node, unschedulable=not node.unschedulable)
            if number % 2
            else replace(node, labels={**node.labels, "turn": str(number)})
        )
        self.nodes = self.nodes.updated({node.name: changed})
        self._now = None


def user_review(number: int) -> bytes:
    """Of a user's pod, whose image no puller brings."""
    return _user_review(number, image(number))


def hub_review(number: int) -> bytes:
    """Of a user's pod with the hub's image, which all nodes hold."""
    return _user_review(number, HUB_IMAGE)


def _user_review(number: int, reference: str) -> bytes:
    container = {"image": reference, "resources": {"requests": {"cpu": "500m"}}}
    labels = {"component": "singleuser-server"}
    return _review(f"jupyter-{number}", labels, {}, container)


def build_review(number: int) -> bytes:
    """Of a build of a repository of its own."""
    annotations = {"binder-repo": f"https://example.org/{number}"}
    return _review(f"build-{number}", {"component": "binderhub-build"}, annotations, {"image": "x"})


def mixed_review(number: int) -> bytes:
    """Of users, half of them with the hub's image, and of a build now and then."""
    if number % PODS_A_BUILD == 0:
        return build_review(number)
    return hub_review(number) if number % 2 else user_review(number)


def _review(
    name: str, labels: dict[str, str], annotations: dict[str, str], container: JSONObject
) -> bytes:
    pod = {
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"containers": [{"name": "main", **container}]},
    }
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {
        "uid": name,
        "namespace": "jhub",
        "operation": "CREATE",
        "resource": resource,
        "object": pod,
    }
    kind = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
    return json.dumps({**kind, "request": request}).encode()


def time_reviews(
    desk: Desk, body_of: Callable[[int], bytes], before: Callable[[int], None]
) -> list[float]:
    """Milliseconds of processor time of each review. before: called before each."""
    took = []
    for number in range(REVIEWS):
        before(number)
        body = body_of(number)
        began_at = time.thread_time_ns()
        desk.reviewer.review(body)
        took.append((time.thread_time_ns() - began_at) / 1e6)
    return took


def time_changes(desk: Desk) -> float:
    """The share of a core that changes of nodes take, reviews after them included."""
    began_at = time.thread_time()
    for number in range(CHANGES):
        desk.change_node(number)
        desk.reviewer.review(user_review(number))
    return (time.thread_time() - began_at) / CHANGES * CHANGES_PER_SECOND


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[50, 500, 5000])
    given = parser.parse_args(argv)
    print(f"large: {machine()}; {REVIEWS} reviews of a kind")
    rows = []
    for nodes in given.nodes:
        desk = Desk(nodes)
        of_hub = time_reviews(desk, hub_review, lambda _: None)
        still = time_reviews(desk, user_review, lambda _: None)
        users = time_reviews(desk, user_review, desk.show_pod)
        builds = time_reviews(desk, build_review, lambda _: None)
        mixed = time_reviews(desk, mixed_review, desk.show_pod)
        share = time_changes(desk)
        rows.append(
            [
                str(nodes),
                *(
                    f"{median(took):.2f}, {quantile(took, 0.99):.2f}"
                    for took in (of_hub, still, users, builds, mixed)
                ),
                f"{100 * share:.1f} %",
            ]
        )
        say(f"  {nodes} nodes: {rows[-1]}")
    head = [
        "nodes",
        "review of a user of the hub's image, ms: p50, p99",
        "of another image",
        "the same, each after a change of pods",
        "review of a build",
        f"one build to {PODS_A_BUILD - 1} users, each after a change of pods",
        "20 changes of nodes a second, share of a core",
    ]
    print(table(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
