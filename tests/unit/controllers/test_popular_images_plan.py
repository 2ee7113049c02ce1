"""Which popular images are pulled where, and everything that stops a pull."""

from typing import Any

import pytest

from roost.controllers.contract.actions import Planned
from roost.controllers.popular_images.plan import PopularMemory, plan_popular_images
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


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("library/popular:1", "docker.io/library/popular:1"),
        ("popular", "docker.io/library/popular:latest"),
        (f"lab/popular@{DIGEST}", f"docker.io/lab/popular@{DIGEST}"),
    ],
)
def test_names_are_compared_in_their_full_form(written: str, listed: str) -> None:
    snapshot = cluster([node_state("n", images={listed: GB})], users(3, written))
    assert pulls(plan_after_a_while(snapshot, popular_settings())) == []


def test_pods_of_other_classes_are_no_users() -> None:
    placeholders = users(9, RARE, component="user-placeholder")
    assert pulls(plan_after_a_while(cluster([node_state("n")], placeholders), popular_settings())) == []


def test_images_go_only_where_their_pods_may_run() -> None:
    gpu = users(5, "quay.io/lab/cuda:1", nodeSelector={"gpu": "yes"})
    nodes = [node_state("cpu"), node_state("gpu", labels={"gpu": "yes"}, joined=WALL - 1)]
    planned = plan_after_a_while(cluster(nodes, [*gpu, *users(3, POPULAR)]), popular_settings())
    assert sorted(pulls(planned)) == [("cpu", POPULAR), ("gpu", "quay.io/lab/cuda:1")]


def test_the_image_that_most_users_run_comes_first_whatever_its_size() -> None:
    sizes = {"quay.io/lab/small:1": GB, "quay.io/lab/large:1": 9 * GB}
    holder = node_state("holder", images=sizes, joined=WALL - 9000)
    pods = [*users(10, "quay.io/lab/large:1", node="holder"), *users(9, "quay.io/lab/small:1", node="holder")]
    planned = plan_after_a_while(cluster([holder, node_state("n")], pods), popular_settings())
    assert pulls(planned) == [("n", "quay.io/lab/large:1")]


def test_a_node_gets_the_most_wanted_images_and_no_more() -> None:
    pods = [pod for index in range(9) for pod in users(20 - index, f"quay.io/lab/image-{index}:1")]
    for held in range(4):
        images = {f"quay.io/lab/image-{index}:1": GB for index in range(held)}
        planned = plan_after_a_while(cluster([node_state("n", images=images)], pods), popular_settings(perNode=3))
        assert planned.gauges["popular_images_missing"][()] == 3 - held
        assert pulls(planned) == ([("n", f"quay.io/lab/image-{held}:1")] if held < 3 else [])


def test_the_newest_of_equal_nodes_comes_first() -> None:
    nodes = [node_state("a", joined=WALL - 60), node_state("b", joined=WALL), node_state("c", joined=WALL - 30)]
    planned = plan_after_a_while(cluster(nodes, users(3, POPULAR)), popular_settings(parallel=2))
    assert [name for name, _ in pulls(planned)] == ["b", "c"]


def test_images_of_the_puller_are_the_pullers_business() -> None:
    document = {
        "imageGate": {"mode": "off", "pullers": [{"name": "p", "nodeSelector": {"pool": "a"}, "images": [POPULAR]}]}
    }
    nodes = [node_state("in", labels={"pool": "a"}), node_state("out", labels={"pool": "b"})]
    planned = plan_after_a_while(cluster(nodes, users(3, POPULAR)), popular_settings(document=document))
    assert pulls(planned) == [("out", POPULAR)]


STOPPED: dict[str, tuple[dict[str, Any], str]] = {
    "disk pressure": ({"conditions": {"DiskPressure": "True"}}, "pressure"),
    "memory pressure": ({"conditions": {"MemoryPressure": "True"}}, "pressure"),
    "pressure on process ids": ({"conditions": {"PIDPressure": "True"}}, "pressure"),
    "not ready": ({"ready": False}, "not-ready"),
    "cordoned, by hand or by an image cleaner": ({"unschedulable": True}, "cordoned"),
    "being deleted": ({"leaving": True}, "leaving"),
    "to be deleted by cluster-autoscaler": (
        {"taints": (Taint("ToBeDeletedByClusterAutoscaler", "1", "NoSchedule"),)},
        "leaving",
    ),
    "a candidate of cluster-autoscaler": (
        {"taints": (Taint("DeletionCandidateOfClusterAutoscaler", "1", "PreferNoSchedule"),)},
        "leaving",
    ),
    "disrupted by Karpenter": ({"taints": (Taint("karpenter.sh/disrupted", "", "NoSchedule"),)}, "leaving"),
    "still starting": ({"taints": (Taint(startup_taint(RELEASE, NAMESPACE), "", "NoSchedule"),)}, "starting"),
    "pulling the puller's images, which come first": (
        {"labels": {pulled_label(RELEASE, NAMESPACE, "quay.io/lab/managed:1"): PULLING}},
        "starting",
    ),
    "tainted for others": ({"taints": (Taint("team", "other", "NoSchedule"),)}, "tainted"),
    "without a known disk": ({"disk": None}, "disk-unknown"),
    "with images that it doesn't report": (
        {"images": {f"quay.io/lab/{index}:1": GB for index in range(50)}, "image_count": 50, "disk": 10**15},
        "disk-unknown",
    ),
    "full": ({"disk": 10 * GB, "images": {"quay.io/lab/other:1": 9 * GB}}, "full"),
}


@pytest.mark.parametrize("case", STOPPED)
def test_nothing_is_brought_to_a_node_that_is(case: str) -> None:
    details, state = STOPPED[case]
    planned = plan_after_a_while(cluster([node_state("n", **details)], users(3, POPULAR)), popular_settings())
    assert pulls(planned) == []
    assert planned.gauges["popular_images_nodes"] == {(state,): 1}


def test_a_node_that_reports_all_its_images_may_have_many() -> None:
    images = {f"quay.io/lab/{index}:1": GB for index in range(60)}
    snapshot = cluster([node_state("n", images=images, image_count=60)], users(3, POPULAR))
    for limit, expected in ((50, []), (60, []), (61, [("n", POPULAR)]), (-1, [("n", POPULAR)])):
        assert pulls(plan_after_a_while(snapshot, popular_settings(nodeStatusMaxImages=limit))) == expected, limit


def test_a_pull_ends_when_its_node_comes_under_pressure() -> None:
    people = users(3, POPULAR)
    planned = plan_after_a_while(cluster([node_state("n")], people), popular_settings())
    (body,) = created(planned)
    pressed = node_state("n", conditions={"DiskPressure": "True"})
    after = plan_popular_images(
        cluster([pressed], [*people, as_pod(body)]), planned.memory, popular_settings(), at(130)
    )
    assert deleted(after) == [body["metadata"]["name"]]
    gone = plan_popular_images(cluster([pressed], people), after.memory, popular_settings(), at(140))
    assert (pulls(gone), deleted(gone)) == ([], [])


def test_an_image_that_does_not_fit_leaves_room_for_a_smaller_one() -> None:
    holder = node_state("holder", images={"quay.io/lab/large:1": 30 * GB, "quay.io/lab/small:1": GB})
    pods = [*users(99, "quay.io/lab/large:1"), *users(3, "quay.io/lab/small:1")]
    planned = plan_after_a_while(cluster([holder, node_state("n", disk=100 * GB)], pods), popular_settings())
    assert pulls(planned) == [("n", "quay.io/lab/small:1")]


def test_two_names_of_one_image_fill_the_disk_once() -> None:
    names = {"quay.io/lab/other:1": 10 * GB, f"quay.io/lab/other@{DIGEST}": 10 * GB}
    snapshot = cluster([node_state("n", disk=100 * GB, images=names)], users(3, POPULAR))
    assert pulls(plan_after_a_while(snapshot, popular_settings())) == [("n", POPULAR)]


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


def test_a_node_whose_pods_are_all_taken_gets_none_that_would_push_out_placeholders() -> None:
    pods = [*users(3, POPULAR), *users(4, RARE, node="n", component="user-placeholder")]
    assert pulls(plan_after_a_while(cluster([node_state("n", pods=4)], pods), popular_settings())) == []
    assert pulls(plan_after_a_while(cluster([node_state("n", pods=5)], pods), popular_settings())) == [("n", POPULAR)]


def test_nothing_gets_in_the_way_of_a_user_who_starts() -> None:
    starting = user("starting", RARE, node="n", phase="Pending")
    planned = plan_after_a_while(cluster([node_state("n")], [*users(3, POPULAR), starting]), popular_settings())
    assert pulls(planned) == []
    stuck = user("stuck", RARE, node="n", phase="Pending", started=WALL - 2000)
    planned = plan_after_a_while(cluster([node_state("n")], [*users(3, POPULAR), stuck]), popular_settings())
    assert pulls(planned) == [("n", POPULAR)]


@pytest.mark.parametrize(("changes", "waits"), [({}, True), ({"node": ""}, False), ({"phase": "Running"}, False)])
def test_a_node_pulls_for_one_hub_after_another(changes: dict[str, Any], waits: bool) -> None:
    settings = popular_settings()
    free = cluster([node_state("n")], users(3, POPULAR))
    (body,) = created(plan_after_a_while(free, settings))
    # The same pod, of another hub.
    metadata = {**body["metadata"], "namespace": "another-hub"}
    other = {**body, "metadata": metadata}
    pull = as_pod(other, **changes)
    planned = plan_after_a_while(cluster([node_state("n")], [*users(3, POPULAR), pull]), settings)
    assert pulls(planned) == ([] if waits else [("n", POPULAR)])
    assert deleted(planned) == []


def test_an_empty_node_may_leave_in_peace() -> None:
    snapshot, settings = cluster([node_state("n", joined=WALL - 700)], users(3, POPULAR)), popular_settings()
    planned = plan_after_a_while(snapshot, settings)
    assert planned.gauges["popular_images_nodes"] == {("empty",): 1}
    assert pulls(planned) == []
    placeholder = user("placeholder", RARE, node="n", component="user-placeholder")
    held = cluster([node_state("n", joined=WALL - 700)], [*users(3, POPULAR), placeholder])
    assert pulls(plan_after_a_while(held, settings)) == [("n", POPULAR)]
