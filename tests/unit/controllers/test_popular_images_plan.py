"""Which popular images are pulled where, and everything that stops a pull."""

from typing import Any

import pytest

from roost.controllers.contract.actions import Planned
from roost.controllers.popular_images.demand import Demand, count_users
from roost.controllers.popular_images.plan import PopularMemory, plan_popular_images
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import PULLING, pulled_label, startup_taint
from tests.builders import NAMESPACE, RELEASE
from tests.popular_builders import (
    DIGEST,
    GB,
    WALL,
    as_pod,
    at,
    cluster,
    created,
    deleted,
    node_state,
    plan_after_a_while,
    popular_settings,
    pulls,
    user,
    users,
)

POPULAR = "quay.io/lab/popular:1"
RARE = "quay.io/lab/rare:1"


def planned_for(nodes: list[Node], pods: list[Pod], **settings: Any) -> Planned[PopularMemory]:
    return plan_after_a_while(cluster(nodes, pods), popular_settings(**settings))


N, USERS = node_state("n"), users(3, POPULAR)
SMALL, LARGE, CUDA = "quay.io/lab/small:1", "quay.io/lab/large:1", "quay.io/lab/cuda:1"
SIXTY = node_state("n", images={f"quay.io/lab/{index}:1": GB for index in range(60)}, image_count=60)
TWO_NAMES = {"quay.io/lab/other:1": 10 * GB, f"quay.io/lab/other@{DIGEST}": 10 * GB}
HOLDER = node_state("holder", images={SMALL: GB, LARGE: 30 * GB}, joined=WALL - 9000)
OLD = node_state("n", joined=WALL - 700)
PLACEHOLDER = user("placeholder", RARE, node="n", component="user-placeholder")
FOUR = users(4, RARE, node="n", component="user-placeholder")
PULLER = {"imageGate": {"mode": "off", "pullers": [{"name": "p", "nodeSelector": {"pool": "a"}, "images": [POPULAR]}]}}
CASES: dict[str, tuple[list[Node], list[Pod], dict[str, Any], list[tuple[str, str]]]] = {
    # Names are compared in their full form.
    "docker.io": ([node_state("n", images={"docker.io/library/popular:1": GB})], users(3, "library/popular:1"), {}, []),
    "latest": ([node_state("n", images={"docker.io/library/popular:latest": GB})], users(3, "popular"), {}, []),
    "digest": ([node_state("n", images={f"docker.io/lab/a@{DIGEST}": GB})], users(3, f"lab/a@{DIGEST}"), {}, []),
    "other classes": ([N], users(9, RARE, component="user-placeholder"), {}, []),
    "where pods may run": (
        [node_state("cpu"), node_state("gpu", labels={"gpu": "yes"}, joined=WALL - 1)],
        [*users(5, CUDA, nodeSelector={"gpu": "yes"}), *USERS],
        {},
        [("cpu", POPULAR), ("gpu", CUDA)],
    ),
    "most users, whatever the size": ([HOLDER, N], [*users(10, LARGE), *users(9, SMALL)], {}, [("n", LARGE)]),
    "room for a smaller one": (
        [HOLDER, node_state("n", disk=100 * GB)], [*users(99, LARGE), *users(3, SMALL)], {}, [("n", SMALL)]
    ),
    "two names fill the disk once": ([node_state("n", disk=100 * GB, images=TWO_NAMES)], USERS, {}, [("n", POPULAR)]),
    "the newest of equal nodes": (
        [node_state("a", joined=WALL - 60), node_state("b", joined=WALL), node_state("c", joined=WALL - 30)],
        USERS,
        {"parallel": 2},
        [("b", POPULAR), ("c", POPULAR)],
    ),
    "the puller's business": (
        [node_state("in", labels={"pool": "a"}), node_state("out", labels={"pool": "b"})],
        USERS,
        {"document": PULLER},
        [("out", POPULAR)],
    ),
    **{
        f"{limit} of 60 are reported": ([SIXTY], USERS, {"nodeStatusMaxImages": limit}, [("n", POPULAR)] * is_room)
        for limit, is_room in ((50, 0), (60, 0), (61, 1), (-1, 1))
    },
    # A pod more would push out placeholders.
    "all pods are taken": (
        [node_state("n", pods=4)], [*USERS, *FOUR], {}, []
    ),
    "a pod is left": (
        [node_state("n", pods=5)], [*USERS, *FOUR], {}, [("n", POPULAR)]
    ),
    "a user starts": ([N], [*USERS, user("starting", RARE, node="n", phase="Pending")], {}, []),
    "a user is stuck": (
        [N], [*USERS, user("stuck", RARE, node="n", phase="Pending", started=WALL - 2000)], {}, [("n", POPULAR)]
    ),
    "an empty node may leave in peace": ([OLD], USERS, {}, []),
    "a placeholder holds it": ([OLD], [*USERS, PLACEHOLDER], {}, [("n", POPULAR)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_pulled(case: str) -> None:
    nodes, pods, settings, expected = CASES[case]
    assert sorted(pulls(planned_for(nodes, pods, **settings))) == expected


def test_a_node_gets_the_most_wanted_images_and_no_more() -> None:
    pods = [pod for index in range(9) for pod in users(20 - index, f"quay.io/lab/image-{index}:1")]
    for held in range(4):
        images = {f"quay.io/lab/image-{index}:1": GB for index in range(held)}
        planned = plan_after_a_while(cluster([node_state("n", images=images)], pods), popular_settings(perNode=3))
        assert planned.gauges["popular_images_missing"][()] == 3 - held
        assert pulls(planned) == ([("n", f"quay.io/lab/image-{held}:1")] if held < 3 else [])


STOPPED: dict[str, tuple[dict[str, Any], str]] = {
    "disk pressure": ({"conditions": {"DiskPressure": "True"}}, "pressure"),
    "memory pressure": ({"conditions": {"MemoryPressure": "True"}}, "pressure"),
    "pressure on process ids": ({"conditions": {"PIDPressure": "True"}}, "pressure"),
    "not ready": ({"ready": False}, "not-ready"),
    "cordoned, by hand or by an image cleaner": ({"unschedulable": True}, "cordoned"),
    "being deleted": ({"leaving": True}, "leaving"),
    **{
        f"tainted by {key}": ({"taints": (Taint(key, "1", "NoSchedule"),)}, state)
        for key, state in (
            ("ToBeDeletedByClusterAutoscaler", "leaving"),
            ("DeletionCandidateOfClusterAutoscaler", "leaving"),
            ("karpenter.sh/disrupted", "leaving"),
            (startup_taint(RELEASE, NAMESPACE), "starting"),
            ("team", "tainted"),
        )
    },
    "pulling the puller's images, which come first": (
        {"labels": {pulled_label(RELEASE, NAMESPACE, "quay.io/lab/managed:1"): PULLING}},
        "starting",
    ),
    "without a known disk": ({"disk": None}, "disk-unknown"),
    "with images that it doesn't report": (
        {"images": {f"quay.io/lab/{index}:1": GB for index in range(50)}, "image_count": 50, "disk": 10**15},
        "disk-unknown",
    ),
    "full": ({"disk": 10 * GB, "images": {"quay.io/lab/other:1": 9 * GB}}, "full"),
    "empty for a while": ({"joined": WALL - 700}, "empty"),
}


@pytest.mark.parametrize("case", STOPPED)
def test_nothing_is_brought_to_a_node_that_is(case: str) -> None:
    details, state = STOPPED[case]
    planned = planned_for([node_state("n", **details)], USERS)
    assert (pulls(planned), planned.gauges["popular_images_nodes"]) == ([], {(state,): 1})
    # A pull that has begun ends when its node comes under pressure.
    first = planned_for([N], USERS)
    (body,) = created(first)
    there = cluster([node_state("n", **details)], [*USERS, as_pod(body)])
    after = plan_popular_images(there, first.memory, popular_settings(), at(130))
    if state == "pressure":
        assert deleted(after) == [body["metadata"]["name"]]
        gone = plan_popular_images(cluster(there.nodes.values(), USERS), after.memory, popular_settings(), at(140))
        assert (pulls(gone), deleted(gone)) == ([], [])


def test_what_was_pulled_and_used_afterwards_is_counted() -> None:
    def counted(planned: Planned[PopularMemory]) -> tuple[float, float]:
        pulled = planned.gauges["popular_images_pulled"]
        return pulled[("yes",)], pulled[("no",)]

    people, settings = users(3, POPULAR), popular_settings()
    first = plan_after_a_while(cluster([node_state("n")], people), settings)
    done = as_pod(created(first)[0], phase="Running")
    second = plan_popular_images(cluster([node_state("n")], [*people, done]), first.memory, settings, at(130))
    assert counted(second) == (0, 1)
    node = node_state("n", images={POPULAR: GB})
    # Another image, another node, a placeholder: none of them uses what was pulled.
    others = [user("a", RARE, "n"), user("b", POPULAR, "m"), user("c", POPULAR, "n", component="user-placeholder")]
    third = plan_popular_images(cluster([node], [*people, *others]), second.memory, settings, at(140))
    assert counted(third) == (0, 1)
    came = [user("d", POPULAR, "n"), user("e", POPULAR, "n")]
    fourth = plan_popular_images(cluster([node], [*people, *came]), third.memory, settings, at(150))
    assert counted(fourth) == (1, 0)
    # Its node goes; the count stays.
    assert counted(plan_popular_images(cluster([], people), fourth.memory, settings, at(160))) == (1, 0)


@pytest.mark.parametrize(("changes", "waits"), [({}, True), ({"node": ""}, False), ({"phase": "Running"}, False)])
def test_a_node_pulls_for_one_hub_after_another(changes: dict[str, Any], waits: bool) -> None:
    (body,) = created(planned_for([N], USERS))
    # The same pod, of another hub.
    pull = as_pod({**body, "metadata": {**body["metadata"], "namespace": "another-hub"}}, **changes)
    planned = planned_for([N], [*USERS, pull])
    assert pulls(planned) == ([] if waits else [("n", POPULAR)])
    assert deleted(planned) == []


HOUR = 3600.0


def counted(*steps: tuple[float, list[Pod]]) -> dict[str, float]:
    """Users by image after counting at each of these times, with a half-life of an hour."""
    demand = Demand()
    for seconds, pods in steps:
        demand, _ = count_users(demand, pods, lambda _pod: True, HOUR, seconds)
    return dict(demand.users)


def test_a_running_pod_is_one_user_of_each_of_its_images_and_others_are_none() -> None:
    pods = [user("a", RARE), user("b", "lab/b"), user("c", RARE, phase="Pending"), user("d", RARE, phase="Failed")]
    assert counted((0, pods)) == {RARE: 1, "docker.io/lab/b:latest": 1}


def test_a_user_that_left_counts_half_after_the_half_life_however_often_and_by_whichever_clock_users_are_counted() -> (
    None
):
    here = [user("a", RARE), user("b", RARE)]
    seldom = counted((0, here), (0, here[:1]), (HOUR, here[:1]))
    often = counted((0, here), *[(seconds, here[:1]) for seconds in range(0, 3601, 100)])
    assert seldom == pytest.approx({RARE: 1.5})
    assert often == pytest.approx(seldom)
    assert counted((0, here), (1, []), (1000 * HOUR, [])) == {}
    # A jump of the clock backwards raises nobody, and a user that runs long does not fade.
    assert counted((5 * HOUR, here[:1]), (5 * HOUR, []), (0, [])) == {RARE: 1}
    assert counted((0, here[:1]), (100 * HOUR, here[:1])) == {RARE: 1}
