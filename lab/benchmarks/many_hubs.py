"""Compare what one release costs that serves many hubs with what it costs for one hub.

    python -m benchmarks.many_hubs --hubs 50 --users 40 --nodes 200

Each hub has an image of its own, and users and placeholders that are bound to nodes; each node
reports all images. Three releases run on the same control plane, one after the other: one hub's
while the hub is alone, the same beside the pods of all the others, and one for all. Lines say how
much memory each program takes once all labels are there, and the ratios.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from benchmarks.servers import memory_mib
from roost_core.placement.labels import PULLED_LABEL_PREFIX
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.waiting import wait_until
from tests.stack import Stack

LABEL: Final = "hub.jupyter.org/users"
IMAGES: Final = {f"quay.io/example/image-{number}:1": 1_000_000_000 for number in range(50)}
PLACEHOLDERS: Final = 3
PARALLEL_REQUESTS: Final = 8
LABELS_SECONDS: Final = 900


def user(name: str, component: str, node: str, image: str) -> dict[str, Any]:
    """A pod that is bound already; component: its class's."""
    container = {
        "name": "main",
        "image": image,
        "resources": {"requests": {"cpu": "10m", "memory": "1Mi"}},
    }
    spec = {"nodeName": node, "containers": [container]}
    metadata = {"name": name, "labels": {"component": component, "app": "jupyterhub"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def values_for(hubs: int) -> dict[str, Any]:
    """Values of one hub's own release, or of one release for so many."""
    name, _, tag = next(iter(IMAGES)).rpartition(":")
    values: dict[str, Any] = {
        "placeholders": [],
        "singleuser": {"image": {"name": name, "tag": tag}},
    }
    if hubs > 1:
        values["podClasses"] = {
            "user": {"match": {"namespaceSelector": {"matchLabels": {LABEL: "true"}}}}
        }
        profiles = [
            {"display_name": image, "kubespawner_override": {"image": image}}
            for image in list(IMAGES)[:hubs]
        ]
        values["singleuser"]["profileList"] = profiles
    return values


class Site:
    """A cluster with nodes, and the namespaces of its hubs."""

    def __init__(self, cluster: ControlPlane, nodes: int, users: int) -> None:
        self.cluster = cluster
        self.nodes = [f"node-{number:04d}" for number in range(nodes)]
        self.users = users
        FakeNodes(cluster.api).create_many(
            self.nodes, cpu="64", memory="256Gi", pods=1000, images=IMAGES
        )

    def add_hub(self, number: int) -> str:
        """A namespace with a hub's pods; returns its name."""
        namespace = self.cluster.create_namespace(f"hub-{number:03d}")
        self.cluster.api.patch(
            f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {LABEL: "true"}}}
        )
        names = [(f"jupyter-{index}", "singleuser-server") for index in range(self.users)]
        names += [(f"placeholder-{index}", "user-placeholder") for index in range(PLACEHOLDERS)]
        images = list(IMAGES)
        with ThreadPoolExecutor(PARALLEL_REQUESTS) as pool:
            for index, (name, component) in enumerate(names):
                node = self.nodes[(number * len(names) + index) % len(self.nodes)]
                body = user(name, component, node, images[number % len(images)])
                pool.submit(self.cluster.api.create, body, namespace)
        return namespace

    def labels(self) -> int:
        """How many of nodes' labels say that the node holds an image."""
        nodes = self.cluster.api.list("/api/v1/nodes")
        names = (name for node in nodes for name in node["metadata"].get("labels", {}))
        return sum(name.startswith(PULLED_LABEL_PREFIX) for name in names)


def show(what: str, stack: Stack) -> dict[str, float]:
    """Print and return the memory of each program, MiB, once it no longer grows."""
    programs = {
        "webhook": stack.webhooks[0].process,
        "controllers": stack.controllers[0].process,
        "scheduler": stack.schedulers[0].process,
    }
    before = 0.0
    found = {name: memory_mib(process.pid)[0] for name, process in programs.items()}
    while sum(found.values()) > before * 1.01:
        before = sum(found.values())
        time.sleep(5)
        found = {name: memory_mib(process.pid)[0] for name, process in programs.items()}
    for name, mib in found.items():
        print(f"{what}: {name} {mib:.0f} MiB", flush=True)
    return found


def run(what: str, site: Site, namespace: str, hubs: int) -> dict[str, float]:
    """Start a release for so many hubs, wait for its labels, and measure its memory."""
    with Stack(site.cluster, namespace, values_for(hubs), controllers=True) as stack:
        began = time.monotonic()
        wanted = len(site.nodes) * min(hubs, len(IMAGES))
        wait_until(
            lambda: site.labels() >= wanted,
            LABELS_SECONDS,
            "all labels",
            explain=stack.controllers[0].process.tail,
        )
        print(
            f"{what}: {wanted} labels of images on nodes after {time.monotonic() - began:.0f} s",
            flush=True,
        )
        found = show(what, stack)
    # What the release wrote on nodes.
    for node in site.nodes:
        names = site.cluster.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"]
        gone = {name: None for name in names if name.startswith(PULLED_LABEL_PREFIX)}
        site.cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": gone}})
    return found


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--hubs", type=int, default=50, help=f"{len(IMAGES)} at most have an image of their own"
    )
    parser.add_argument("--users", type=int, default=40, help="of each hub")
    parser.add_argument("--nodes", type=int, default=200)
    options = parser.parse_args()
    with ControlPlane() as cluster:
        site = Site(cluster, options.nodes, options.users)
        first = site.add_hub(0)
        alone = run("one hub alone", site, first, 1)
        for number in range(1, options.hubs):
            site.add_hub(number)
        beside = run("one hub beside the others", site, "hub-001", 1)
        cluster.create_namespace("roost-system")
        many = run(f"one release, {options.hubs} hubs", site, "roost-system", options.hubs)
        for what, single in (("one hub alone", alone), ("one hub beside the others", beside)):
            print(
                f"against {what}:",
                ", ".join(f"{name} {many[name] / single[name]:.2f}" for name in single),
            )


if __name__ == "__main__":
    main()
