"""Before it takes marks away, `roost cleanup` waits for the controllers to end, and for nobody who
can't write.
"""

from collections.abc import Callable
from typing import Any, cast

import pytest

from roost.controllers.cleanup import END_SECONDS, clean_up
from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.placement.beliefs import LEASE_SECONDS
from roost_core.placement.labels import pulled_label

CONTROLLERS = "hub-roost-controllers"
SELECTOR = "app.kubernetes.io/component=controllers"


class FakeCluster:
    """A cluster without nodes whose controllers' pods and Lease are functions of the seconds gone
    by.
    """

    def __init__(
        self,
        pods: Callable[[float], list[dict[str, Any]]],
        lease: Callable[[float], dict[str, Any] | None] = lambda _: None,
    ) -> None:
        self.now = 0.0
        self._pods = pods
        self._lease = lease

    def merge(self, path: str, body: object, manager: str) -> dict[str, Any]:
        assert path.endswith("/deployments/hub-roost-controllers/scale")
        assert body == {"spec": {"replicas": 0}}
        return {"status": {"selector": SELECTOR}}

    def get(self, path: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
        if (query or {}).get("labelSelector") == SELECTOR:
            return {"items": self._pods(self.now)}
        return {"items": []}

    def find(self, path: str) -> dict[str, Any] | None:
        assert path.endswith("/leases/hub-roost-controllers")
        spec = self._lease(self.now)
        return None if spec is None else {"spec": spec}

    def clean_up(self) -> float:
        """Clean up; returns how long that took, in seconds."""
        clean_up(
            cast("Client", self),
            "hub",
            "jhub",
            controllers=CONTROLLERS,
            sleep=self._sleep,
            clock=lambda: self.now,
        )
        return self.now

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def pod(name: str, phase: str = "Running", *, leaving: bool = False) -> dict[str, Any]:
    metadata = {"name": name, **({"deletionTimestamp": "2026-11-03T08:00:00Z"} if leaving else {})}
    return {"metadata": metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("pods", "renewed", "least", "most"),
    [
        (lambda _: [pod("evicted", "Failed"), pod("done", "Succeeded")], None, 0, 0),
        (lambda now: [pod("ends", leaving=True)] if now < 4 else [], None, 4, 4),
        # On a dead node.
        (lambda _: [pod("dead", leaving=True)], lambda _: 1, LEASE_SECONDS, LEASE_SECONDS + 2),
        # It ends slowly, and renews its Lease.
        (
            lambda _: [pod("slow", leaving=True)],
            lambda now: min(now, 30),
            30 + LEASE_SECONDS,
            30 + LEASE_SECONDS + 2,
        ),
    ],
    ids=["finished", "ends", "dead node", "slow"],
)
def test_pods_are_waited_for_until_they_end_or_their_lease_has_run_out(
    pods: Callable[[float], list[dict[str, Any]]],
    renewed: Callable[[float], float] | None,
    least: float,
    most: float,
) -> None:
    def lease(now: float) -> dict[str, Any] | None:
        return {"holderIdentity": "a", "renewTime": str(int(renewed(now)))} if renewed else None

    assert least <= FakeCluster(pods, lease).clean_up() <= most


def test_a_pod_that_nobody_deletes_stops_the_cleanup_with_its_name() -> None:
    cluster = FakeCluster(
        lambda _: [pod("stays"), pod("dead", leaving=True), pod("gone", "Failed")]
    )
    with pytest.raises(ClusterError, match=r"\(stays, dead\)"):
        cluster.clean_up()
    assert cluster.now > END_SECONDS


class NodesCluster(FakeCluster):
    """Nodes with a label of the hub's; each patch takes `patch_seconds`, and fails as often as
    `failures` says.
    """

    def __init__(self, names: list[str], *, failures: int = 0, patch_seconds: float = 0.0) -> None:
        super().__init__(lambda _: [])
        self._labels = {name: {pulled_label("hub", "jhub", "image:1"): "true"} for name in names}
        self._failures = failures
        self._patch_seconds = patch_seconds

    def get(self, path: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
        if path == "/api/v1/nodes":
            nodes = [
                {"metadata": {"name": name, "uid": name, "labels": it}}
                for name, it in self._labels.items()
            ]
            return {"items": nodes}
        return super().get(path, query)

    def merge(self, path: str, body: Any, manager: str) -> dict[str, Any]:
        if not path.startswith("/api/v1/nodes/"):
            return super().merge(path, body, manager)
        self.now += self._patch_seconds
        if self._failures:
            self._failures -= 1
            raise ApiError(500, "etcd changes its leader")
        labels = self._labels[path.rpartition("/")[2]]
        for key in body["metadata"]["labels"]:
            del labels[key]
        return {}

    def left(self) -> int:
        """Clean up; returns how many nodes are left with a label."""
        self.clean_up()
        return sum(map(bool, self._labels.values()))


def test_writes_that_fail_are_tried_again_in_bounds_and_many_nodes_take_as_long_as_they_take() -> (
    None
):
    assert NodesCluster(["a", "b"], failures=2).left() == 0
    assert NodesCluster([f"n{index}" for index in range(600)], patch_seconds=0.5).left() == 0
    cluster = NodesCluster(["a"], failures=10**6)
    assert cluster.left() == 1
    assert cluster.now < 120
