"""Placeholder sets on the same nodes see one pool, and their parts are the whole."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.headroom.pool_view import see_pool
from roost.controllers.headroom.set_of_user import SetOfUser
from roost.controllers.headroom.settings import HeadroomSettings
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod, PodSpec
from roost_core.objects.selectors import NodeRules
from roost_core.placement.labels import PLACEHOLDER_SET_LABEL
from roost_core.release.placeholder_sets import LearnSettings, PlaceholderSet, others_on_same_nodes
from tests.builders import NAMESPACE, RELEASE

POOL = (("pool", "user"),)
LEARN = LearnSettings(
    min=0, max=9, waiting_hour_price=4.0, node_hour_price=0.4, monthly_ceiling=None, time_zone="UTC"
)
SETTINGS = HeadroomSettings(
    is_user=lambda pod, _namespaces: pod.labels.get("is") == "user",
    users_namespaces=lambda _namespaces: None,
)
NODES = [
    Node(f"n-{number}", dict(POOL), allocatable={"cpu": 4000, "memory": 2**34, "pods": 30})
    for number in range(3)
]


def a_set(name: str, cpu: int) -> PlaceholderSet:
    return PlaceholderSet(
        name=name,
        stateful_set=name,
        label=name,
        rules=NodeRules(node_selector=POOL),
        replicas=0,
        requests={"cpu": f"{cpu}m", "memory": "1Gi"},
        learn=LEARN,
    )


# (CPU, which node, or none: it waits; which set's placeholder, or none: a user)
PODS = st.lists(
    st.tuples(
        st.integers(50, 2000),
        st.sampled_from(["", *(node.name for node in NODES)]),
        st.none() | st.integers(0, 3),
    ),
    max_size=12,
)


@given(cpus=st.lists(st.integers(50, 2000), min_size=1, max_size=4), pods=PODS)
def test_each_node_and_each_person_is_the_pools_for_every_set_and_their_parts_are_the_whole(
    cpus: list[int], pods: list[tuple[int, str, int | None]]
) -> None:
    sets = [a_set(f"set-{number}", cpu) for number, cpu in enumerate(cpus)]
    there: dict[str, Pod] = {}
    for number, (users_cpu, node, of_set) in enumerate(pods):
        labels = {"is": "user"}
        cpu = users_cpu
        if of_set is not None:
            labels = {PLACEHOLDER_SET_LABEL: f"set-{of_set % len(sets)}"}
            cpu = cpus[of_set % len(sets)]
        spec = PodSpec(requests=(("cpu", cpu), ("memory", 2**30)), node_selector=POOL)
        pod = Pod(NAMESPACE, f"pod-{number}", labels=labels, node_name=node, spec=spec)
        there[pod.key] = pod
    snapshot = Snapshot(RELEASE, NAMESPACE, {node.name: node for node in NODES}, there)
    set_of_user = SetOfUser(sets, snapshot)
    settings = replace(SETTINGS, sets=tuple(sets))
    views = [
        see_pool(
            one,
            snapshot,
            settings,
            None,
            set_of_user.counts_for,
            others=others_on_same_nodes(one, sets),
        )
        for one in sets
    ]
    users = {key for key, pod in there.items() if "is" in pod.labels}
    first, *_ = views
    for view in views:
        assert view.users.keys() | view.neighbours.keys() == users
        assert not view.users.keys() & view.neighbours.keys()
        assert (view.empty, view.kept_by_learning) == (first.empty, first.kept_by_learning)
        assert not view.of_others
    assert sum(len(view.users) for view in views) == len(users)
    shares = [view.share for view in views if view.share is not None]
    if any(pod.node_name or "is" in pod.labels for pod in there.values()):
        assert len(shares) == len(sets)
        assert sum(shares) == pytest.approx(1)
    else:
        assert not shares
