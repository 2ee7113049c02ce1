"""Which popular images are pulled where, everything that stops a pull, and what follows from its
outcome.
"""

from dataclasses import replace
from typing import Any

import pytest

from roost.controllers.contract.actions import EvictPod, Planned
from roost.controllers.contract.snapshot import Snapshot
from roost.controllers.popular_images.plan import (
    ASSUMED_IMAGE_BYTES,
    FIRST_REST_SECONDS,
    PopularMemory,
    plan_popular_images,
)
from roost.controllers.popular_images.plan import CONTROLLER as POPULAR_IMAGES
from roost.controllers.popular_images.user_counts import ImageDemand, count_users
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.objects.selectors import Taint
from roost_core.placement.kubelet_pulls import LONGEST_PULL_SECONDS
from roost_core.placement.labels import (
    OPT_OUT_ANNOTATION,
    PULLING,
    SAFE_TO_EVICT_ANNOTATION,
    pulled_label,
    startup_taint,
)
from tests.builders import NAMESPACE, RELEASE
from tests.popular_builders import (
    GB,
    WALL,
    as_pod,
    at,
    cluster,
    created,
    deleted,
    follow,
    node_state,
    notices,
    plan_after_a_while,
    popular_document,
    popular_settings,
    pulls,
    user,
    users,
)
from tests.recorded_data import rows
from tests.unit.controllers.planners import faults_of, planner_from

POPULAR = "quay.io/lab/popular:1"


def test_the_pod_that_pulls_asks_for_nothing_holds_nobody_and_passes_the_restricted_standard() -> (
    None
):
    (body,) = created(
        plan_after_a_while(cluster([node_state("n")], users(3, POPULAR)), popular_settings())
    )
    spec, metadata = body["spec"], body["metadata"]
    assert metadata["annotations"][SAFE_TO_EVICT_ANNOTATION] == "true"
    assert not any("do-not-disrupt" in key for key in metadata["annotations"])
    assert OPT_OUT_ANNOTATION not in metadata["annotations"]
    assert "component" not in metadata["labels"]
    assert spec["automountServiceAccountToken"] is False
    # It ends by itself after any pull that isn't given up while nobody leads.
    assert LONGEST_PULL_SECONDS < spec["activeDeadlineSeconds"] <= 2 * LONGEST_PULL_SECONDS
    assert spec["serviceAccountName"] == "hub-roost-puller"
    assert spec["priorityClassName"] == "hub.jhub.roost-puller"
    assert spec["imagePullSecrets"] == [{"name": "regcred"}]
    assert {"nodeName", "hostNetwork", "schedulerName"}.isdisjoint(spec)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in spec["containers"]:
        assert container["resources"] == {"requests": {"cpu": "0", "memory": "0"}}
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_without_image_volumes_roosts_own_pause_is_run_in_the_image() -> None:
    _, _, body = begun(popular_settings(document={"prePuller": {"method": "noop"}}))
    (container,), (init,) = body["spec"]["containers"], body["spec"]["initContainers"]
    assert (container["image"], container["command"]) == (POPULAR, ["/roost-pause/pause"])
    # As in the puller's DaemonSet.
    assert init["command"] == ["/usr/local/lib/roost/pause", "install", "/roost-pause/pause"]
    assert init["image"] == "quay.io/jupyterhub/roost:1"


def test_the_same_pull_has_the_same_name_and_every_other_another() -> None:
    def name(node: str = "n", image: str = POPULAR, joined: float = WALL) -> str:
        snapshot = cluster([node_state(node, joined=joined)], users(3, image))
        (body,) = created(plan_after_a_while(snapshot, popular_settings()))
        return str(body["metadata"]["name"])

    assert name() == name()
    other = "quay.io/lab/rare:1"
    names = {
        name(),
        name(node="m"),
        name(image=other),
        name(joined=WALL - 1),
        name(node="ip-10-0-0-1." + "x" * 200),
    }
    assert len(names) == 5
    assert all(len(one) <= 63 for one in names)


def begun(settings: Any = None) -> tuple[Snapshot, Any, dict[str, Any]]:
    """A cluster, the plan that began one pull, and its pod's body."""
    snapshot = cluster([node_state("n")], users(3, POPULAR))
    planned = plan_after_a_while(snapshot, settings or popular_settings())
    (body,) = created(planned)
    return snapshot, planned, body


def with_pod(snapshot: Snapshot, *pods: Pod) -> Snapshot:
    return replace(snapshot, pods={**snapshot.pods, **{pod.key: pod for pod in pods}})


def later(
    snapshot: Snapshot, planned: Planned[PopularMemory], seconds: float, *pods: Pod
) -> Planned[PopularMemory]:
    """The plan at this time, with these pods there as well."""
    return plan_popular_images(
        with_pod(snapshot, *pods), planned.memory, popular_settings(), at(seconds)
    )


@pytest.mark.parametrize(
    ("details", "seconds", "told", "is_resting"),
    [
        *rows("controllers/popular-ends"),
        ({}, 120 + LONGEST_PULL_SECONDS, ["PopularImageFailed"], False),
    ],
)
def test_what_becomes_of_a_pod_that_pulls_is_told_and_it_is_cleared_away_once(
    details: dict[str, Any], seconds: int, told: list[str], is_resting: bool
) -> None:
    snapshot, planned, body = begun()
    pod = as_pod(body, **details)
    assert seconds == 130 or not later(snapshot, planned, seconds - 141, pod).actions
    done = later(snapshot, planned, seconds, pod)
    assert (deleted(done), notices(done)) == ([pod.name], told)
    assert done.gauges["popular_images_backing_off"] == {(): int(told == ["PopularImageFailed"])}
    assert (done.gauges["popular_images_nodes"] == {("resting",): 1}) is is_resting
    # Asked for again until it is gone, but told once.
    again = later(snapshot, done, seconds + 10, pod)
    assert (deleted(again), notices(again)) == ([pod.name], [])
    # The kubelet hasn't reported the image yet.
    assert not later(snapshot, again, seconds + 10).actions


def test_an_image_that_was_removed_again_is_not_brought_back_for_a_while() -> None:
    snapshot, planned, body = begun()
    done = later(snapshot, planned, 130, as_pod(body, phase="Running"))
    waiting = later(snapshot, done, 400)
    assert not waiting.actions
    lost = later(snapshot, waiting, 500)
    assert notices(lost) == ["PopularImageRemoved"]
    assert lost.gauges["popular_images_nodes"] == {("resting",): 1}
    # As if a user had come meanwhile, so that the node isn't empty.
    here = user("here", "quay.io/lab/rare:1", node="n")
    assert pulls(later(snapshot, lost, 500 + 3000, here)) == []
    assert pulls(later(snapshot, lost, 500 + 3700, here)) == [("n", POPULAR)]


def test_an_image_below_what_a_kubelet_reports_is_not_taken_for_removed() -> None:
    snapshot, planned, body = begun()
    full_report = node_state(
        "n", images={f"quay.io/lab/{index}:1": GB for index in range(50)}, image_count=50
    )
    there = replace(snapshot, nodes={"n": full_report})
    done = later(there, planned, 130, as_pod(body, phase="Running"))
    assert not later(there, done, 5000).actions
    assert ASSUMED_IMAGE_BYTES < GB


def test_an_image_that_fails_backs_off_longer_each_time_and_holds_up_no_other() -> None:
    other = "quay.io/lab/other:1"
    people = [*users(9, POPULAR), *users(3, other)]
    nodes = [node_state("a"), node_state("b", joined=WALL - 1)]
    settings = popular_settings(parallel=1)
    snapshot = cluster(nodes, people)
    planned = plan_after_a_while(snapshot, settings)
    (body,) = created(planned)
    failing = with_pod(snapshot, as_pod(body, waiting="ImagePullBackOff"))
    young = plan_popular_images(failing, planned.memory, settings, at(150))
    assert not young.actions
    given_up = plan_popular_images(failing, young.memory, settings, at(190))
    assert deleted(given_up) == [body["metadata"]["name"]]
    assert notices(given_up) == ["PopularImageFailed"]
    assert given_up.gauges["popular_images_backing_off"][()] == 1
    after = plan_popular_images(snapshot, given_up.memory, settings, at(200))
    assert pulls(after) == [("a", other)]
    again = plan_popular_images(
        snapshot, given_up.memory, settings, at(190 + FIRST_REST_SECONDS + 1)
    )
    assert POPULAR in [image for _, image in pulls(again)]
    failing = with_pod(snapshot, as_pod(created(again)[0], waiting="ErrImagePull"))
    twice = follow(failing, settings, [600, 700], again.memory)
    assert twice.memory.rests[POPULAR].until == pytest.approx(600 + 2 * FIRST_REST_SECONDS)


def test_pulls_of_one_image_that_fail_together_count_once_and_their_nodes_go_on() -> None:
    other = "quay.io/lab/other:1"
    settings = popular_settings(parallel=2)
    snapshot = cluster([node_state("a"), node_state("b")], [*users(9, POPULAR), *users(3, other)])
    planned = plan_after_a_while(snapshot, settings)
    assert {image for _, image in pulls(planned)} == {POPULAR}
    failing = snapshot
    for body in created(planned):
        failing = with_pod(failing, as_pod(body, waiting="ErrImagePull"))
    given_up = plan_popular_images(failing, planned.memory, settings, at(190))
    assert len(deleted(given_up)) == 2
    assert given_up.memory.rests[POPULAR] == (1, 190 + FIRST_REST_SECONDS)
    after = plan_popular_images(snapshot, given_up.memory, settings, at(200))
    assert sorted(pulls(after)) == [("a", other), ("b", other)]


def test_a_node_where_one_image_after_the_other_fails_rests() -> None:
    other = "quay.io/lab/other:1"
    settings = popular_settings(parallel=1)
    snapshot = cluster([node_state("n")], [*users(9, POPULAR), *users(3, other)])
    first = plan_after_a_while(snapshot, settings)
    failing = with_pod(snapshot, as_pod(created(first)[0], waiting="ErrImagePull"))
    second = follow(
        snapshot, settings, [200], follow(failing, settings, [190], first.memory).memory
    )
    assert pulls(second) == [("n", other)]
    failing = with_pod(snapshot, as_pod(created(second)[0], waiting="ErrImagePull"))
    third = follow(
        snapshot, settings, [280], follow(failing, settings, [270], second.memory).memory
    )
    assert third.gauges["popular_images_nodes"] == {("resting",): 1}


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
@pytest.mark.parametrize(
    ("sets", "mover", "is_evicted"),
    [
        (["default"], {"enabled": True, "evictionsPerMinute": 5}, True),
        (["default"], {"enabled": True, "evictionsPerMinute": 0}, False),
        (["default"], {"enabled": False, "evictionsPerMinute": 5}, False),
        ([], {"enabled": True, "evictionsPerMinute": 5}, False),
    ],
)
def test_switched_off_what_is_left_is_evicted_where_the_mover_has_the_right_to(
    phase: str, sets: list[str], mover: dict[str, Any], *, is_evicted: bool
) -> None:
    snapshot, _, body = begun()
    left = as_pod(body, phase=phase)
    snapshot = with_pod(with_pod(snapshot, left), replace(left, name="goes", leaving=True))
    document = popular_document(popularImages={"enabled": False})
    document["placeholderMover"] = {**document.get("placeholderMover", {}), **mover}
    document["placeholders"] = [
        {"name": name, "statefulSet": name, "replicas": 1, "windows": []} for name in sets
    ]
    planned = planner_from(POPULAR_IMAGES, document).plan(snapshot, at(0))
    evicted = [action.name for action in planned.actions if isinstance(action, EvictPod)]
    assert evicted == ([left.name] if is_evicted else [])
    assert len(planned.actions) == len(evicted)


def test_a_busy_cluster_is_looked_at_a_few_times_a_minute_only() -> None:
    snapshot = cluster([node_state("n")], users(3, POPULAR))
    planner = planner_from(POPULAR_IMAGES, popular_document())
    first, soon = planner.plan(snapshot, at(0)), planner.plan(snapshot, at(4))
    assert soon.gauges == first.gauges
    assert soon.wake_after_seconds == pytest.approx(6)
    assert pulls(planner.plan(snapshot, at(20))) == [("n", POPULAR)]


def test_all_faults_of_the_settings_are_found_at_once() -> None:
    wrong = {"perNode": "5", "diskHeadroomPercent": 0.5, "nodeStatusMaxImages": None, "perNodes": 3}
    document = popular_document(popularImages=wrong, prePuller={"method": "magic"})
    assert {*faults_of(POPULAR_IMAGES, document)} == {
        *(f"popularImages.{key}" for key in wrong),
        "prePuller.method",
    }


RARE = "quay.io/lab/rare:1"


def planned_for(nodes: list[Node], pods: list[Pod], **settings: Any) -> Planned[PopularMemory]:
    return plan_after_a_while(cluster(nodes, pods), popular_settings(**settings))


USERS = users(3, POPULAR)


def told_node(
    name: str = "n",
    *,
    images: Any = None,
    disk: int | None = 1000,
    joined: int = 0,
    taints: Any = (),
    **more: Any,
) -> Node:
    """A node as tests/data/cases/controllers/popular-images.yaml says it."""
    if isinstance(images, int):
        more["image_count"], images = (
            images,
            {f"quay.io/lab/{index}:1": 1 for index in range(images)},
        )
    return node_state(
        name,
        images={image: size * GB for image, size in (images or {}).items()},
        disk=None if disk is None else disk * GB,
        joined=WALL - joined,
        taints=tuple(Taint(*taint) for taint in taints),
        **more,
    )


@pytest.mark.parametrize(
    ("_about", "nodes", "pods", "settings", "pulled"), rows("controllers/popular-images")
)
def test_exactly_the_images_of_the_case_are_pulled(
    _about: str, nodes: Any, pods: Any, settings: dict[str, Any], pulled: Any
) -> None:
    people: list[Pod] = []
    for count, image, *more in pods:
        details = more[0] if more else {}
        people += users(count, image, **{**details, "started": WALL - details.get("started", 0)})
    planned = planned_for([told_node(**one) for one in nodes], people, **settings)
    assert sorted(pulls(planned)) == [(node, image) for node, image in pulled]


def test_a_node_gets_the_most_wanted_images_and_no_more() -> None:
    pods = [pod for index in range(9) for pod in users(20 - index, f"quay.io/lab/image-{index}:1")]
    for held in range(4):
        images = {f"quay.io/lab/image-{index}:1": GB for index in range(held)}
        planned = plan_after_a_while(
            cluster([node_state("n", images=images)], pods), popular_settings(perNode=3)
        )
        assert planned.gauges["popular_images_missing"][()] == 3 - held
        assert pulls(planned) == ([("n", f"quay.io/lab/image-{held}:1")] if held < 3 else [])


STARTING = [
    ({"taints": [[startup_taint(RELEASE, NAMESPACE), "1", "NoSchedule"]]}, "starting"),
    # The puller's images come first.
    ({"labels": {pulled_label(RELEASE, NAMESPACE, "quay.io/lab/managed:1"): PULLING}}, "starting"),
]


@pytest.mark.parametrize(("details", "state"), [*rows("controllers/popular-stopped"), *STARTING])
def test_nothing_is_brought_to_a_node_that_is(details: dict[str, Any], state: str) -> None:
    stopped = told_node(**details)
    planned = planned_for([stopped], USERS)
    assert (pulls(planned), planned.gauges["popular_images_nodes"]) == ([], {(state,): 1})
    # A pull that has begun ends when its node comes under pressure.
    first = planned_for([node_state("n")], USERS)
    (body,) = created(first)
    there = cluster([stopped], [*USERS, as_pod(body)])
    after = plan_popular_images(there, first.memory, popular_settings(), at(130))
    if state == "pressure":
        assert deleted(after) == [body["metadata"]["name"]]
        gone = plan_popular_images(
            cluster(there.nodes.values(), USERS), after.memory, popular_settings(), at(140)
        )
        assert (pulls(gone), deleted(gone)) == ([], [])


def test_what_was_pulled_and_used_afterwards_is_counted() -> None:
    def counted(planned: Planned[PopularMemory]) -> tuple[float, float]:
        pulled = planned.gauges["popular_images_pulled"]
        return pulled[("yes",)], pulled[("no",)]

    people, settings = users(3, POPULAR), popular_settings()
    first = plan_after_a_while(cluster([node_state("n")], people), settings)
    done = as_pod(created(first)[0], phase="Running")
    second = plan_popular_images(
        cluster([node_state("n")], [*people, done]), first.memory, settings, at(130)
    )
    assert counted(second) == (0, 1)
    node = node_state("n", images={POPULAR: GB})
    # Another image, another node, a placeholder: none of them uses what was pulled.
    others = [
        user("a", RARE, "n"),
        user("b", POPULAR, "m"),
        user("c", POPULAR, "n", component="user-placeholder"),
    ]
    third = plan_popular_images(
        cluster([node], [*people, *others]), second.memory, settings, at(140)
    )
    assert counted(third) == (0, 1)
    came = [user("d", POPULAR, "n"), user("e", POPULAR, "n")]
    fourth = plan_popular_images(cluster([node], [*people, *came]), third.memory, settings, at(150))
    assert counted(fourth) == (1, 0)
    # Its node goes; the count stays.
    assert counted(plan_popular_images(cluster([], people), fourth.memory, settings, at(160))) == (
        1,
        0,
    )


@pytest.mark.parametrize(
    ("changes", "waits"), [({}, True), ({"node": ""}, False), ({"phase": "Running"}, False)]
)
def test_a_node_pulls_for_one_hub_after_another(changes: dict[str, Any], waits: bool) -> None:
    (body,) = created(planned_for([node_state("n")], USERS))
    # The same pod, of another hub.
    pull = as_pod({**body, "metadata": {**body["metadata"], "namespace": "another-hub"}}, **changes)
    planned = planned_for([node_state("n")], [*USERS, pull])
    assert pulls(planned) == ([] if waits else [("n", POPULAR)])
    assert deleted(planned) == []


HOUR = 3600.0


def counted(*steps: tuple[float, list[Pod]]) -> dict[str, float]:
    """Users by image after counting at each of these times, with a half-life of an hour."""
    demand = ImageDemand()
    for seconds, pods in steps:
        demand, _ = count_users(demand, pods, lambda _pod: True, HOUR, seconds)
    return dict(demand.users)


def test_a_running_pod_is_one_user_of_each_of_its_images_and_others_are_none() -> None:
    pods = [
        user("a", RARE),
        user("b", "lab/b"),
        user("c", RARE, phase="Pending"),
        user("d", RARE, phase="Failed"),
    ]
    assert counted((0, pods)) == {RARE: 1, "docker.io/lab/b:latest": 1}


def test_an_image_whose_name_may_be_cut_from_the_nodes_list_is_not_taken_for_removed() -> None:
    snapshot, planned, body = begun()
    done = later(snapshot, planned, 130, as_pod(body, phase="Running"))
    images = {f"quay.io/lab/other:{number}": GB for number in range(5)}
    snapshot = cluster([node_state("n", images=images)], users(3, POPULAR))
    waiting = later(snapshot, done, 400)
    assert not later(snapshot, waiting, 500).actions
