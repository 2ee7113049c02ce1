"""Pull images on fake nodes as the simulator's kubelets do: pods start when theirs are there, and nodes report them.

Owns when users and pullers run and what `status.images` of a fake node says; binds pullers, as the cluster's own
scheduler does. The moments follow from the simulator's model
of pulls and from the bindings of the real kube-scheduler. Disks are endless: nothing is removed within an hour.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Self

from lab.tests.e2e.simulator.played_hour import USER_PREFIX, is_puller
from roost_lab.simulator.engine.node_images import Images, NodeImages, PullFigures
from roost_lab.simulator.setup.assumptions import Assumptions
from roost_lab.traces.chance import Chance
from tests.harness.controlplane import ControlPlane
from tests.harness.nodes import FakeNodes
from tests.harness.pods import PodKeeper

START: Final = "start"
ARRIVED: Final = "arrived"
SHOW: Final = "show"
PULLERS: Final = "app.kubernetes.io/component=puller"
BIND_SECONDS: Final = 0.2


class ModelledKubelets:
    """`hold` is for a PodKeeper, which `run` is then given.

    assumptions: with times and sizes compressed as the hour is. seed: of the simulated world, whose images are equal.
    sizes: bytes on disk of images, by reference, where they aren't drawn.
    """

    def __init__(
        self, cluster: ControlPlane, nodes: FakeNodes, assumptions: Assumptions, seed: int, sizes: Mapping[str, int]
    ) -> None:
        self.figures = PullFigures()
        self.faults: list[str] = []
        self._api = cluster.api
        self._api_nodes = nodes
        self._assumed = assumptions
        self._images = Images(assumptions, Chance(seed))
        for name, size in sizes.items():
            self._images.get(name, size)
        self._nodes: dict[str, NodeImages] = {}
        # By the pod's uid: when it runs.
        self._runs_at: dict[str, float] = {}
        self._showing: set[str] = set()
        self._due: list[tuple[float, int, str, str]] = []
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._over = threading.Event()

    def hold(self, pod: dict[str, Any]) -> bool:
        """Whether a bound pod doesn't run yet: its images are still being pulled."""
        metadata, now = pod["metadata"], time.monotonic()
        if not metadata["name"].startswith(USER_PREFIX) and not is_puller(pod):
            return False
        with self._lock:
            runs_at = self._runs_at.get(metadata["uid"])
            if runs_at is None:
                images = [container["image"] for container in pod["spec"]["containers"]]
                runs_at = max(
                    self._pull(pod["spec"]["nodeName"], image, now, in_background=is_puller(pod)) for image in images
                )
                self._at(runs_at, START, "")
                self._runs_at[metadata["uid"]] = runs_at
        return now < runs_at

    def _pull(self, node: str, image: str, now: float, *, in_background: bool) -> float:
        """Pull an image for a pod that was just bound; returns when its container runs."""
        images = self._nodes.get(node)
        if images is None:
            images = self._nodes[node] = NodeImages(self._images, self._assumed, now, self.figures)
        images.use(image, now)
        pull = images.pull(image, now + self._assumed.bind_seconds, in_background=in_background)
        if pull.is_cold:
            self._at(pull.finish, ARRIVED, node)
        return pull.finish + self._assumed.start_seconds

    def _at(self, moment: float, what: str, node: str) -> None:
        heapq.heappush(self._due, (moment, next(self._order), what, node))

    def run(self, keeper: PodKeeper) -> Self:
        """Begin; `with kubelets.run(keeper): ...` ends it."""
        self._keeper = keeper
        self._thread = threading.Thread(target=self._work, name="modelled-kubelets", daemon=True)
        self._thread.start()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        next_look = 0.0
        try:
            while not self._over.wait(0.005):
                self._step()
                if time.monotonic() >= next_look:
                    self._bind_pullers()
                    next_look = time.monotonic() + BIND_SECONDS
        except Exception as error:  # noqa: BLE001 - a thread's end is told of by whoever compares
            self.faults.append(repr(error))

    def _bind_pullers(self) -> None:
        """Each to its node."""
        waiting = self._api.list("/api/v1/pods", labelSelector=PULLERS, fieldSelector="spec.nodeName=")
        for pod in waiting:
            metadata = pod["metadata"]
            affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            (node,) = affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"]
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}, "target": target}
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
            self._api.request("POST", path, binding)

    def _step(self) -> None:
        now, starts = time.monotonic(), False
        shown: dict[str, dict[str, int]] = {}
        with self._lock:
            while self._due and self._due[0][0] <= now:
                moment, _, what, node = heapq.heappop(self._due)
                if what == START:
                    starts = True
                elif what == SHOW:
                    self._showing.discard(node)
                    shown[node] = dict(self._nodes[node].status_images(now))
                elif node not in self._showing:
                    self._showing.add(node)
                    self._at(moment + self._assumed.status_delay_seconds, SHOW, node)
        if starts:
            self._keeper.release(self.hold)
        for node, images in shown.items():
            self._api_nodes.set_images(node, images)
