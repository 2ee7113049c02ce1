"""What the leader's metrics say of starts: those that ran, those that failed, the oldest that is
pending.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.contract.release import ReleaseDocument
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.runtime.metrics import ControllersMetrics
from roost.controllers.runtime.starts import Starts
from roost_core.objects.pod import Pod
from roost_core.objects.pod_reader import read_pod
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
            sample.labels["pod_class"]: sample.value
            for sample in names[f"{PREFIX}oldest_pending_seconds"].samples
            if sample.labels["waits_for"] == waits_for
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
        replace(ADA, name=f"a-{index}", uid=f"{index}", labels={**USER, "release": f"h-{index}"})
        for index in range(60)
    ]
    watched.see(1010.0, *named)
    names = {family.name: family for family in watched.metrics.registry.collect()}
    hubs = {sample.labels["hub"] for sample in names[f"{PREFIX}oldest_pending_seconds"].samples}
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


@given(
    st.lists(
        st.tuples(
            st.integers(0, 900),
            # Seconds until it is bound; None: it isn't yet.
            st.none() | st.integers(0, 900),
            # Whether its status says when it was bound, and that its sandbox is there.
            st.booleans(),
            st.booleans(),
        ),
        max_size=6,
    )
)
def test_only_the_time_on_its_node_is_a_wait_for_a_volume(
    drawn: list[tuple[int, int | None, bool, bool]],
) -> None:
    now = 2000.0
    pods = []
    waits: dict[str, list[float]] = {"node-or-image": [], "volume-or-address": []}
    for number, (age, node_after, is_told, has_sandbox) in enumerate(drawn):
        created = now - age
        is_bound = node_after is not None and node_after <= age
        bound_at = None
        if node_after is not None and is_bound and is_told:
            bound_at = created + node_after
        pods.append(
            replace(
                ADA,
                name=f"jupyter-{number}",
                uid=f"{number}",
                created=created,
                node_name="a" if is_bound else "",
                bound_at=bound_at,
                has_sandbox=is_bound and has_sandbox,
            )
        )
        if is_bound and not has_sandbox:
            waits["volume-or-address"].append(now - (created if bound_at is None else bound_at))
        else:
            waits["node-or-image"].append(now - created)
    for cause, seconds in waits.items():
        watched = Watched()
        pending = watched.see(now, *pods, waits_for=cause)["pending"]
        assert pending == ({"user": max(seconds, default=0.0)} if pods else {})
        labels = {"pod_class": "user", "hub": f"hub.{NAMESPACE}", "waits_for": cause}
        late = watched.metrics.registry.get_sample_value(f"{PREFIX}late_pods", labels)
        assert late == (sum(wait > 240.0 for wait in seconds) if pods else None)


def test_pods_whose_node_comes_after_four_minutes_do_not_wait_for_volumes_at_once() -> None:
    watched = Watched()
    # As the API server writes it; 1970-01-01T00:20:44Z is 1244.
    status = {
        "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:25:00Z"},
            {
                "type": "PodScheduled",
                "status": "True",
                "lastTransitionTime": "1970-01-01T00:20:44Z",
            },
        ]
    }
    body = {"metadata": {"name": "ada"}, "spec": {"nodeName": "a"}, "status": status}
    bound_at = read_pod(body).bound_at
    assert bound_at == 1244.0
    bound = [
        replace(ADA, name=f"jupyter-{index}", uid=f"{index}", node_name="a", bound_at=bound_at)
        for index in range(30)
    ]
    labels = {"pod_class": "user", "hub": f"hub.{NAMESPACE}", "waits_for": "volume-or-address"}
    for now, expected in ((1244.0, 0.0), (1484.0, 0.0), (1485.0, 30.0)):
        watched.see(now, *bound)
        late = watched.metrics.registry.get_sample_value(f"{PREFIX}late_pods", labels)
        assert late == expected


def test_a_pod_that_is_not_bound_says_no_time_of_it() -> None:
    condition = {"type": "PodScheduled", "lastTransitionTime": "1970-01-01T00:20:44Z"}
    for status in ("False", "Unknown"):
        body = {"spec": {}, "status": {"conditions": [{**condition, "status": status}]}}
        assert read_pod(body).bound_at is None


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
