"""What the leader's metrics say of starts: those that ran, those that failed, the oldest that is
pending.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.runtime.metrics import ControllersMetrics
from roost.controllers.runtime.starts import Starts
from roost_core.objects.pod import Pod
from roost_core.release.reader import Reader
from tests.builders import NAMESPACE, RELEASE, policy_document

USER = {"component": "singleuser-server", "app": "jupyterhub", "release": "hub"}
ADA = Pod(NAMESPACE, "jupyter-ada", "ada", USER, created=1000.0)
ROOM = Pod(
    NAMESPACE,
    "room-0",
    "room",
    {"component": "user-placeholder", "app": "jupyterhub"},
    created=1000.0,
)
HUB = Pod(NAMESPACE, "hub", "hub", {"component": "hub"}, created=1000.0)
PREFIX = "roost_controllers_"


class Watched:
    """Metrics after each sight of some pods."""

    def __init__(self) -> None:
        self.metrics = ControllersMetrics("test")
        self.starts = Starts(ReleaseDocument(Reader(), policy_document()), self.metrics)

    def see(self, now: float, *pods: Pod, waits_for: str = "node-or-image") -> dict[str, Any]:
        """started, failed, seconds: of the class user; pending: by class."""
        self.starts.follow(Snapshot(RELEASE, NAMESPACE, pods={pod.key: pod for pod in pods}), now)
        read = self.metrics.registry.get_sample_value
        labels: Mapping[str, str] = {"pod_class": "user", "hub": f"hub.{NAMESPACE}"}
        counted = [
            read(f"{PREFIX}starts_total", {**labels, "result": one})
            for one in ("started", "failed")
        ]
        names = {family.name: family for family in self.metrics.registry.collect()}
        pending = {
            one.labels["pod_class"]: one.value
            for one in names[f"{PREFIX}oldest_pending_seconds"].samples
            if one.labels["waits_for"] == waits_for
        }
        return {
            "counted": counted,
            "seconds": read(f"{PREFIX}start_seconds_sum", dict(labels)),
            "pending": pending,
        }


def test_a_start_counts_once_when_its_containers_run_and_others_pods_never() -> None:
    watched = Watched()
    watched.see(1000.0)
    waits = watched.see(1030.0, ADA, ROOM, HUB)
    assert waits == {"counted": [0.0, 0.0], "seconds": 0.0, "pending": {"user": 30.0}}
    runs = {"counted": [1.0, 0.0], "seconds": 40.0, "pending": {"user": 0.0}}
    assert watched.see(1040.0, replace(ADA, phase="Running"), ROOM) == runs
    assert watched.see(1090.0, replace(ADA, phase="Running", leaving=True)) == runs
    assert watched.see(1091.0) == {**runs, "pending": {}}


@pytest.mark.parametrize("last", [None, replace(ADA, leaving=True), replace(ADA, phase="Failed")])
def test_a_pod_that_goes_before_it_ran_has_failed(last: Pod | None) -> None:
    watched = Watched()
    watched.see(1000.0)
    watched.see(1010.0, ADA)
    for _ in range(2):
        assert watched.see(1020.0, *([last] if last else []))["counted"] == [0.0, 1.0]


def test_a_pod_never_seen_waiting_counts_but_not_what_ran_before_this_replica_led() -> None:
    watched = Watched()
    assert watched.see(2000.0, replace(ADA, phase="Running"))["counted"] == [0.0, 0.0]
    bob = replace(ADA, name="jupyter-bob", uid="bob", created=2000.0, phase="Running")
    assert watched.see(2003.0, replace(ADA, phase="Running"), bob)["counted"] == [1.0, 0.0]
    watched.starts.forget()
    assert watched.see(2010.0)["counted"] == [1.0, 0.0], "another replica led meanwhile"


def test_hubs_beyond_a_bound_are_one() -> None:
    watched = Watched()
    named = [
        replace(ADA, name=f"a-{one}", uid=f"{one}", labels={**USER, "release": f"h-{one}"})
        for one in range(60)
    ]
    watched.see(1010.0, *named)
    names = {family.name: family for family in watched.metrics.registry.collect()}
    hubs = {one.labels["hub"] for one in names[f"{PREFIX}oldest_pending_seconds"].samples}
    assert (len(hubs), "other" in hubs) == (51, True)


@pytest.mark.parametrize(
    ("changes", "waits_for"),
    [
        ({}, "node-or-image"),
        ({"node_name": "a"}, "volume-or-address"),
        ({"node_name": "a", "has_sandbox": True}, "node-or-image"),
    ],
)
def test_what_a_pod_waits_for_on_its_node_is_told_apart(
    changes: dict[str, Any], waits_for: str
) -> None:
    pod = replace(ADA, **changes)
    for cause in ("node-or-image", "volume-or-address"):
        seconds = 30.0 if cause == waits_for else 0.0
        assert Watched().see(1030.0, pod, waits_for=cause)["pending"] == {"user": seconds}


def test_pods_are_late_a_minute_before_hubs_give_up_on_them() -> None:
    watched = Watched()

    def late(now: float, *pods: Pod) -> list[float | None]:
        watched.see(now, *pods)
        labels = {"pod_class": "user", "hub": f"hub.{NAMESPACE}"}
        return [
            watched.metrics.registry.get_sample_value(
                f"{PREFIX}late_pods", {**labels, "waits_for": cause}
            )
            for cause in ("node-or-image", "volume-or-address")
        ]

    bound = [
        replace(ADA, name=f"jupyter-{name}", uid=name, node_name="a", created=created)
        for name, created in (("bob", 1000.0), ("cy", 1010.0), ("dot", 1020.0))
    ]
    assert late(1240.0, ADA, *bound) == [0.0, 0.0]
    assert late(1251.0, ADA, *bound) == [1.0, 2.0]
    assert late(1290.0, *(replace(pod, phase="Running") for pod in bound[:2]), bound[2]) == [
        0.0,
        1.0,
    ]
    assert late(1291.0) == [None, None]
