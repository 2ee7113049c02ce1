"""Pull images on fake nodes as the simulator's kubelets do: users start when theirs are there, and nodes report them.

Owns when a user's pod runs and what `status.images` of a fake node says. The moments follow from the simulator's model
of pulls and from the bindings of the real kube-scheduler. Disks are endless: nothing is removed within an hour.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Self

from roost.simulator.chance import Chance
from roost.simulator.engine.node_images import Images, NodeImages, PullFigures
from tests.e2e.simulator.played_hour import USER_PREFIX

if TYPE_CHECKING:
    from roost.simulator.setup.assumptions import Assumptions
    from tests.harness.nodes import FakeNodes
    from tests.harness.pods import PodKeeper

START: Final = "start"
ARRIVED: Final = "arrived"
SHOW: Final = "show"


class ModelledKubelets:
    """`hold` is for a PodKeeper, which `run` is then given.

    assumptions: with times and sizes compressed as the hour is. seed: of the simulated world, whose images are equal.
    """

    def __init__(self, nodes: FakeNodes, assumptions: Assumptions, seed: int) -> None:
        self.figures = PullFigures()
        self.faults: list[str] = []
        self._api_nodes = nodes
        self._assumed = assumptions
        self._images = Images(assumptions, Chance(seed))
        self._nodes: dict[str, NodeImages] = {}
        # By the pod's uid: when it runs.
        self._runs_at: dict[str, float] = {}
        self._showing: set[str] = set()
        self._due: list[tuple[float, int, str, str]] = []
        self._order = itertools.count()
        self._lock = threading.Lock()
        self._over = threading.Event()

    def hold(self, pod: dict[str, Any]) -> bool:
        """Whether a bound pod doesn't run yet: a user whose image is still being pulled."""
        metadata, now = pod["metadata"], time.monotonic()
        if not metadata["name"].startswith(USER_PREFIX):
            return False
        with self._lock:
            runs_at = self._runs_at.get(metadata["uid"])
            if runs_at is None:
                runs_at = self._bound(pod["spec"]["nodeName"], pod["spec"]["containers"][0]["image"], now)
                self._runs_at[metadata["uid"]] = runs_at
        return now < runs_at

    def _bound(self, node: str, image: str, now: float) -> float:
        images = self._nodes.get(node)
        if images is None:
            images = self._nodes[node] = NodeImages(self._images, self._assumed, now, self.figures)
        images.use(image, now)
        pull = images.pull(image, now + self._assumed.bind_seconds)
        if pull.is_cold:
            self._at(pull.finish, ARRIVED, node)
        self._at(pull.finish + self._assumed.start_seconds, START, "")
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
        try:
            while not self._over.wait(0.005):
                self._step()
        except Exception as error:  # noqa: BLE001 - a thread's end is told of by whoever compares
            self.faults.append(repr(error))

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
