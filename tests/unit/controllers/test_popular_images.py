"""Popular images: what is in demand, what is pulled where, and all that stops it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from roost.controllers.contract.actions import CreatePod, DeletePod, Done, Outcome
from roost.controllers.contract.planner import Sources
from roost.controllers.popular_images.memory import PopularMemory
from roost.controllers.popular_images.plan import note_popular_images, plan_at_pace, plan_popular_images
from roost.controllers.popular_images.planner import make_popular_images
from roost.controllers.popular_images.popularity import Popularity, count_users, launch_from, users_by_use
from roost.controllers.popular_images.pulls import FIRST_BACK_OFF_SECONDS
from roost.controllers.popular_images.settings import ASSUMED_IMAGE_BYTES, PULL_SECONDS, read_popular_settings
from roost.controllers.runtime.apply import Applier
from roost.controllers.runtime.budget import MinuteBudget
from roost.controllers.runtime.events import EventWriter
from roost_core.placement.labels import (
    OPT_OUT_ANNOTATION,
    OWN_INSTANCE_LABEL,
    SAFE_TO_EVICT_ANNOTATION,
    pulled_label,
    startup_taint,
)
from roost_core.placement.selectors import Taint
from roost_core.placement.settings_reader import Reader
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

if TYPE_CHECKING:
    from roost.controllers.contract.planner import Planner
    from roost.controllers.contract.snapshot import Snapshot
    from roost_core.scheduler.objects import PodState

POPULAR = "quay.io/lab/popular:1"
RARE = "quay.io/lab/rare:1"
HOUR = 3600.0


def counted(*steps: tuple[float, list[PodState]], half_life: float = HOUR) -> Popularity:
    """Popularity after counting these pods at these moments."""
    popularity = Popularity()
    for seconds, pods in steps:
        popularity = count_users(popularity, pods, launch_from, half_life, seconds)
    return popularity


def by_image(popularity: Popularity) -> dict[str, float]:
    found: dict[str, float] = {}
    for use, amount in users_by_use(popularity).items():
        found[use.image] = found.get(use.image, 0.0) + amount
    return found


# Demand


def test_a_running_pod_is_one_user() -> None:
    assert by_image(counted((0, users(3, POPULAR)))) == {POPULAR: 3}


def test_pods_that_do_not_run_are_no_users() -> None:
    pending = users(2, POPULAR, phase="Pending")
    going = [replace(pod, leaving=True) for pod in users(2, RARE)]
    assert by_image(counted((0, [*pending, *going]))) == {}


def test_a_user_that_left_counts_half_after_the_half_life() -> None:
    pods = users(4, POPULAR)
    assert by_image(counted((0, pods), (0, []), (HOUR, []))) == {POPULAR: 2}
    assert by_image(counted((0, pods), (0, []), (HOUR, []), (3 * HOUR, []))) == {POPULAR: 0.5}


def test_counting_often_gives_what_counting_seldom_gives() -> None:
    pods = users(4, POPULAR)
    often = counted((0, pods), *((60.0 * minute, []) for minute in range(121)))
    assert by_image(often)[POPULAR] == pytest.approx(by_image(counted((0, pods), (0, []), (2 * HOUR, [])))[POPULAR])


def test_a_new_leader_counts_all_that_run_again() -> None:
    pods = users(5, POPULAR)
    led_long = counted((0, pods), (HOUR, pods))
    assert by_image(counted((HOUR, pods))) == by_image(led_long)


def test_a_user_that_runs_long_does_not_fade() -> None:
    pods = users(2, POPULAR)
    assert by_image(counted((0, pods), (100 * HOUR, pods))) == {POPULAR: 2}


def test_a_jump_of_the_clock_backwards_raises_nobody() -> None:
    assert by_image(counted((HOUR, users(4, POPULAR)), (HOUR, []), (0, []))) == {POPULAR: 4}


def test_the_digest_is_that_of_most_pods_that_run() -> None:
    two = users(2, POPULAR, image_id=f"quay.io/lab/popular@{DIGEST}")
    other = user("moved", POPULAR, image_id=f"quay.io/lab/popular@sha256:{'e' * 64}")
    assert counted((0, [*two, other])).digests == {POPULAR: f"quay.io/lab/popular@{DIGEST}"}


@pytest.mark.parametrize("image_id", ["", "sha256:" + "a" * 64, f"mirror.example.org/popular@{DIGEST}"])
def test_an_id_that_cannot_be_pulled_is_no_digest(image_id: str) -> None:
    assert counted((0, users(2, POPULAR, image_id=image_id))).digests == {POPULAR: ""}


# What is pulled


def test_a_popular_image_is_brought_to_the_empty_node_and_a_rare_one_is_not() -> None:
    snapshot = cluster([node_state("empty")], [*users(3, POPULAR), *users(1, RARE)])
    planned = plan_after_a_while(snapshot, popular_settings(min_users=2))
    assert pulls(planned) == [("empty", POPULAR)]
    assert planned.gauges["popular_images"][()] == 1


def test_what_is_there_is_not_pulled() -> None:
    snapshot = cluster([node_state("full", images={POPULAR: GB})], users(3, POPULAR))
    assert pulls(plan_after_a_while(snapshot, popular_settings())) == []


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


def test_a_copy_under_its_digest_alone_is_there() -> None:
    digest = f"quay.io/lab/popular@{DIGEST}"
    snapshot = cluster([node_state("n", images={digest: GB})], users(3, POPULAR, image_id=digest))
    assert pulls(plan_after_a_while(snapshot, popular_settings())) == []


def test_what_pods_use_by_tag_is_pulled_by_the_digest_that_runs() -> None:
    digest = f"quay.io/lab/popular@{DIGEST}"
    snapshot = cluster([node_state("n")], users(3, POPULAR, image_id=digest))
    assert pulls(plan_after_a_while(snapshot, popular_settings())) == [("n", digest)]


def test_users_of_all_hubs_count() -> None:
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}]}
    document = {"podClasses": {"user": {"match": {"namespaceSelector": selector}}}}
    pods = [user("one", POPULAR, namespace="a"), user("two", POPULAR, namespace="b"), user("x", RARE, namespace="c")]
    planned = plan_after_a_while(cluster([node_state("n")], pods), popular_settings(document=document, min_users=2))
    assert pulls(planned) == [("n", POPULAR)]


def test_pods_of_other_classes_are_no_users() -> None:
    placeholders = users(9, RARE, component="user-placeholder")
    assert pulls(plan_after_a_while(cluster([node_state("n")], placeholders), popular_settings())) == []


def test_images_go_only_where_their_pods_may_run() -> None:
    gpu = users(5, "quay.io/lab/cuda:1", nodeSelector={"gpu": "yes"})
    nodes = [node_state("cpu"), node_state("gpu", labels={"gpu": "yes"}, joined=WALL - 1)]
    planned = plan_after_a_while(cluster(nodes, [*gpu, *users(3, POPULAR)]), popular_settings(parallel_per_node=5))
    assert sorted(pulls(planned)) == [("cpu", POPULAR), ("gpu", "quay.io/lab/cuda:1"), ("gpu", POPULAR)]


def test_a_pod_that_the_gate_holds_to_pulled_nodes_counts_for_nodes_that_are_not_pulled_yet() -> None:
    label = pulled_label(RELEASE, NAMESPACE, "quay.io/lab/managed:1")
    expression = {"key": label, "operator": "In", "values": ["true"]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        }
    }
    snapshot = cluster([node_state("n")], users(3, POPULAR, affinity=affinity))
    assert pulls(plan_after_a_while(snapshot, popular_settings())) == [("n", POPULAR)]


def test_the_image_that_most_users_run_comes_first_whatever_its_size() -> None:
    sizes = {"quay.io/lab/small:1": GB, "quay.io/lab/large:1": 9 * GB}
    holder = node_state("holder", images=sizes, joined=WALL - 9000)
    pods = [*users(10, "quay.io/lab/large:1", node="holder"), *users(9, "quay.io/lab/small:1", node="holder")]
    planned = plan_after_a_while(cluster([holder, node_state("n")], pods), popular_settings())
    assert pulls(planned) == [("n", "quay.io/lab/large:1")]


def test_a_node_gets_the_most_wanted_images_and_no_more() -> None:
    pods = [pod for index in range(9) for pod in users(20 - index, f"quay.io/lab/image-{index}:1")]
    settings = popular_settings(perNode=3, parallel_per_node=9, parallel_per_cluster=9)
    planned = plan_after_a_while(cluster([node_state("n")], pods), settings)
    assert pulls(planned) == [("n", f"quay.io/lab/image-{index}:1") for index in range(3)]


def test_the_newest_of_equal_nodes_comes_first() -> None:
    nodes = [node_state("a", joined=WALL - 60), node_state("b", joined=WALL), node_state("c", joined=WALL - 30)]
    planned = plan_after_a_while(cluster(nodes, users(3, POPULAR)), popular_settings(parallel_per_cluster=2))
    assert [name for name, _ in pulls(planned)] == ["b", "c"]


def test_images_of_the_puller_are_the_pullers_business() -> None:
    document = {"gate": {"mode": "off", "pullers": [{"name": "p", "nodeSelector": {"pool": "a"}, "images": [POPULAR]}]}}
    nodes = [node_state("in", labels={"pool": "a"}), node_state("out", labels={"pool": "b"})]
    planned = plan_after_a_while(cluster(nodes, users(3, POPULAR)), popular_settings(document=document))
    assert pulls(planned) == [("out", POPULAR)]


# The pod


def test_the_pod_that_pulls_asks_for_nothing_holds_nobody_and_passes_the_restricted_standard() -> None:
    (body,) = created(plan_after_a_while(cluster([node_state("n")], users(3, POPULAR)), popular_settings()))
    spec, metadata = body["spec"], body["metadata"]
    assert metadata["annotations"][SAFE_TO_EVICT_ANNOTATION] == "true"
    assert not any("do-not-disrupt" in key for key in metadata["annotations"])
    assert OPT_OUT_ANNOTATION not in metadata["annotations"]
    assert "component" not in metadata["labels"]
    assert spec["automountServiceAccountToken"] is False
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
    settings = popular_settings(document={"puller": {"method": "noop"}})
    (body,) = created(plan_after_a_while(cluster([node_state("n")], users(3, POPULAR)), settings))
    (container,) = body["spec"]["containers"]
    assert (container["image"], container["command"]) == (POPULAR, ["/roost-pause/pause"])
    (init,) = body["spec"]["initContainers"]
    # As in the puller's DaemonSet.
    assert init["command"] == ["/usr/local/lib/roost/pause", "install", "/roost-pause/pause"]
    assert init["image"] == "quay.io/jupyterhub/roost:1"


def test_the_pod_is_made_as_the_controllers_own() -> None:
    made: list[dict[str, Any]] = []

    class Client:
        def create(self, path: str, body: dict[str, Any]) -> None:
            assert path == f"/api/v1/namespaces/{NAMESPACE}/pods"
            made.append(body)

    client: Any = Client()
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "hub-roost-controllers", "uid": "1"}
    applier = Applier(
        client,
        NAMESPACE,
        writes=MinuteBudget(9, lambda: 0.0),
        evictions=MinuteBudget(0, lambda: 0.0),
        events=EventWriter(client, "me"),
        may_write=lambda: True,
        owner=lambda: account,
    )
    planned = plan_after_a_while(cluster([node_state("n")], users(3, POPULAR)), popular_settings())
    assert [done.outcome for done in applier.apply(planned.actions)] == [Outcome.DONE]
    assert made[0]["metadata"]["ownerReferences"] == [{**account, "controller": True}]
    assert made[0]["metadata"]["name"] == created(planned)[0]["metadata"]["name"]


def test_the_pod_ends_by_itself_after_any_pull_that_is_not_given_up_while_nobody_leads() -> None:
    (body,) = created(plan_after_a_while(cluster([node_state("n")], users(3, POPULAR)), popular_settings()))
    assert PULL_SECONDS < body["spec"]["activeDeadlineSeconds"] <= 2 * PULL_SECONDS


def test_the_same_pull_has_the_same_name_and_every_other_another() -> None:
    def name(node: str = "n", image: str = POPULAR, joined: float = WALL) -> str:
        snapshot = cluster([node_state(node, joined=joined)], users(3, image))
        (body,) = created(plan_after_a_while(snapshot, popular_settings()))
        return str(body["metadata"]["name"])

    assert name() == name()
    names = {name(), name(node="m"), name(image=RARE), name(joined=WALL - 1), name(node="ip-10-0-0-1." + "x" * 200)}
    assert len(names) == 5
    assert all(len(one) <= 63 for one in names)


# What stops it

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


def managed_node(*, labels: dict[str, str], joined: float) -> tuple[Any, Any]:
    managed = "quay.io/lab/managed:1"
    document = {"gate": {"pullers": [{"name": "puller", "nodeSelector": {}, "images": [managed]}]}}
    return node_state("n", labels=labels, joined=joined), popular_settings(document=document)


def test_managed_images_come_first() -> None:
    label = pulled_label(RELEASE, NAMESPACE, "quay.io/lab/managed:1")
    node, settings = managed_node(labels={}, joined=WALL)
    assert pulls(plan_after_a_while(cluster([node], users(3, POPULAR)), settings)) == []
    node, settings = managed_node(labels={label: "true"}, joined=WALL)
    assert pulls(plan_after_a_while(cluster([node], users(3, POPULAR)), settings)) == [("n", POPULAR)]


def test_a_managed_image_that_never_comes_holds_popular_ones_up_until_the_deadline_only() -> None:
    node, settings = managed_node(labels={}, joined=WALL - 700)
    snapshot = cluster([node], [*users(3, POPULAR), user("here", RARE, node="n")])
    assert pulls(plan_after_a_while(snapshot, settings)) == [("n", POPULAR)]


def test_images_end_below_the_share_of_the_disk_that_they_may_fill() -> None:
    # 100 GB x 70 % = 70 GB; containerd's bytes count 3.8 times: 15 GB are 57 GB, and 4 GB more would be 72 GB.
    other = {"quay.io/lab/other:1": 15 * GB}
    holder = node_state("holder", images={POPULAR: 4 * GB})
    nodes = [holder, node_state("n", disk=100 * GB, images=other)]
    assert pulls(plan_after_a_while(cluster(nodes, users(3, POPULAR)), popular_settings())) == []
    roomy = [holder, node_state("n", disk=110 * GB, images=other)]
    assert pulls(plan_after_a_while(cluster(roomy, users(3, POPULAR)), popular_settings())) == [("n", POPULAR)]


def test_an_image_that_does_not_fit_leaves_room_for_a_smaller_one() -> None:
    holder = node_state("holder", images={"quay.io/lab/large:1": 30 * GB, "quay.io/lab/small:1": GB})
    pods = [*users(99, "quay.io/lab/large:1"), *users(3, "quay.io/lab/small:1")]
    planned = plan_after_a_while(cluster([holder, node_state("n", disk=100 * GB)], pods), popular_settings())
    assert pulls(planned) == [("n", "quay.io/lab/small:1")]


def test_two_names_of_one_image_fill_the_disk_once() -> None:
    names = {"quay.io/lab/other:1": 10 * GB, f"quay.io/lab/other@{DIGEST}": 10 * GB}
    snapshot = cluster([node_state("n", disk=100 * GB, images=names)], users(3, POPULAR))
    assert pulls(plan_after_a_while(snapshot, popular_settings())) == [("n", POPULAR)]


def test_pulls_at_once_are_bounded_for_a_node_and_for_the_cluster() -> None:
    pods = [pod for index in range(4) for pod in users(9 - index, f"quay.io/lab/image-{index}:1")]
    nodes = [node_state(name) for name in "abcd"]
    planned = plan_after_a_while(cluster(nodes, pods), popular_settings(parallel_per_node=2, parallel_per_cluster=5))
    by_node = [name for name, _ in pulls(planned)]
    assert len(by_node) == 5
    assert max(by_node.count(name) for name in by_node) == 2


def test_pulls_that_are_not_seen_yet_count_as_well() -> None:
    snapshot, settings = cluster([node_state("n")], users(3, POPULAR)), popular_settings()
    planned = plan_after_a_while(snapshot, settings)
    assert len(pulls(planned)) == 1
    assert pulls(plan_popular_images(snapshot, planned.memory, settings, at(121))) == []


def test_bytes_a_minute_are_bounded() -> None:
    nodes = [node_state(f"n{index}", joined=WALL - index) for index in range(9)]
    holder = node_state("holder", images={POPULAR: GB})
    settings = popular_settings(bytes_per_minute=2 * GB, parallel_per_cluster=9)
    snapshot = cluster([*nodes, holder], users(3, POPULAR))
    first = follow(snapshot, settings, [0, 60])
    assert len(pulls(first)) == 2
    assert len(pulls(plan_popular_images(snapshot, first.memory, settings, at(90)))) == 1


def test_an_image_larger_than_a_minutes_bytes_is_paid_off_before_the_next() -> None:
    holder = node_state("holder", images={POPULAR: 5 * GB})
    nodes = [holder, node_state("a"), node_state("b")]
    settings = popular_settings(bytes_per_minute=GB, parallel_per_cluster=9)
    snapshot = cluster(nodes, users(3, POPULAR))
    first = follow(snapshot, settings, [0, 61])
    assert len(pulls(first)) == 1
    for seconds, expected in ((120, 0), (300, 0), (361, 1)):
        planned = plan_popular_images(snapshot, first.memory, settings, at(seconds))
        assert len(pulls(planned)) == expected, seconds


def test_a_new_leader_has_no_bytes_to_spend() -> None:
    planned = plan_popular_images(
        cluster([node_state("n")], users(3, POPULAR)), PopularMemory(), popular_settings(), at(0)
    )
    assert pulls(planned) == []


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


def test_an_empty_node_may_leave_in_peace() -> None:
    snapshot, settings = cluster([node_state("n", joined=WALL - 700)], users(3, POPULAR)), popular_settings()
    planned = plan_after_a_while(snapshot, settings)
    assert planned.gauges["popular_images_nodes"] == {("empty",): 1}
    assert pulls(planned) == []
    # No autoscaler waits an hour.
    assert pulls(follow(snapshot, settings, [0, 120, 3700])) == [("n", POPULAR)]
    placeholder = user("placeholder", RARE, node="n", component="user-placeholder")
    held = cluster([node_state("n", joined=WALL - 700)], [*users(3, POPULAR), placeholder])
    assert pulls(plan_after_a_while(held, settings)) == [("n", POPULAR)]


# What becomes of it


def begun(settings: Any = None) -> tuple[Snapshot, Any, dict[str, Any]]:
    """A cluster, the plan that began one pull, and its pod's body."""
    snapshot = cluster([node_state("n")], users(3, POPULAR))
    planned = plan_after_a_while(snapshot, settings or popular_settings())
    (body,) = created(planned)
    return snapshot, planned, body


def with_pod(snapshot: Snapshot, pod: PodState) -> Snapshot:
    return replace(snapshot, pods={**snapshot.pods, pod.key: pod})


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_pod_that_has_pulled_is_told_of_and_cleared_away_once(phase: str) -> None:
    snapshot, planned, body = begun()
    pod = as_pod(body, phase=phase)
    done = plan_popular_images(with_pod(snapshot, pod), planned.memory, popular_settings(), at(130))
    assert deleted(done) == [pod.name]
    assert notices(done) == ["PopularImagePulled"]
    again = plan_popular_images(with_pod(snapshot, pod), done.memory, popular_settings(), at(131))
    assert not again.actions
    # The kubelet hasn't reported the image yet.
    gone = plan_popular_images(snapshot, again.memory, popular_settings(), at(140))
    assert not gone.actions


def test_a_deletion_that_nobody_heard_of_is_asked_for_again() -> None:
    snapshot, planned, body = begun()
    there = with_pod(snapshot, as_pod(body, phase="Running"))
    done = plan_popular_images(there, planned.memory, popular_settings(), at(130))
    later = plan_popular_images(there, done.memory, popular_settings(), at(170))
    assert deleted(later) == [body["metadata"]["name"]]
    assert notices(later) == []


def test_an_image_that_was_removed_again_is_not_brought_back_for_a_while() -> None:
    snapshot, planned, body = begun()
    done = plan_popular_images(
        with_pod(snapshot, as_pod(body, phase="Running")), planned.memory, popular_settings(), at(130)
    )
    waiting = plan_popular_images(snapshot, done.memory, popular_settings(), at(400))
    assert not waiting.actions
    lost = plan_popular_images(snapshot, waiting.memory, popular_settings(), at(500))
    assert notices(lost) == ["PopularImageRemoved"]
    assert lost.gauges["popular_images_nodes"] == {("resting",): 1}
    # As if a user had come meanwhile, so that the node isn't empty.
    occupied = with_pod(snapshot, user("here", RARE, node="n"))
    assert pulls(plan_popular_images(occupied, lost.memory, popular_settings(), at(500 + 3000))) == []
    assert pulls(plan_popular_images(occupied, lost.memory, popular_settings(), at(500 + 3700))) == [("n", POPULAR)]


def test_a_tag_that_moved_is_no_removed_image_but_a_new_one_to_bring() -> None:
    old, new = (f"quay.io/lab/popular@sha256:{letter * 64}" for letter in "ab")
    # A placeholder, so that the node isn't empty.
    people = [*users(4, POPULAR, image_id=old), user("placeholder", RARE, node="n", component="user-placeholder")]
    settings = popular_settings()
    planned = plan_after_a_while(cluster([node_state("n")], people), settings)
    (body,) = created(planned)
    there = node_state("n", images={old: GB})
    done = plan_popular_images(
        cluster([there], [*people, as_pod(body, phase="Running")]), planned.memory, settings, at(130)
    )
    quiet = follow(cluster([there], people), settings, [160, 1000], done.memory)
    assert not quiet.actions
    moved = [replace(pod, uid=f"{pod.uid}-new", name=f"{pod.name}-new") for pod in users(6, POPULAR, image_id=new)]
    after = plan_popular_images(cluster([there], [*people, *moved]), quiet.memory, settings, at(1100))
    assert notices(after) == []
    assert pulls(after) == [("n", new)]
    assert created(after)[0]["metadata"]["name"] != body["metadata"]["name"]


def test_an_old_digest_that_is_still_coming_is_not_the_new_one() -> None:
    old, new = (f"quay.io/lab/popular@sha256:{letter * 64}" for letter in "ab")
    settings = popular_settings(parallel_per_node=2)
    people = users(4, POPULAR, image_id=old)
    planned = plan_after_a_while(cluster([node_state("n")], people), settings)
    pod = as_pod(created(planned)[0])
    moved = [replace(one, uid=f"{one.uid}-new", name=f"{one.name}-new") for one in users(6, POPULAR, image_id=new)]
    after = plan_popular_images(cluster([node_state("n")], [*people, *moved, pod]), planned.memory, settings, at(130))
    assert pulls(after) == [("n", new)]


@pytest.mark.parametrize("method", ["imageVolume", "noop"])
def test_a_new_leader_learns_from_the_pod_what_it_pulls(method: str) -> None:
    digest = f"quay.io/lab/popular@{DIGEST}"
    settings = popular_settings(document={"puller": {"method": method}})
    people = users(3, POPULAR, image_id=digest)
    (body,) = created(plan_after_a_while(cluster([node_state("n")], people), settings))
    led = plan_popular_images(
        cluster([node_state("n")], [*people, as_pod(body, phase="Running")]), PopularMemory(), settings, at(0)
    )
    assert list(led.memory.pulled["uid-n-1800000000"]) == [digest]


def test_an_image_below_what_a_kubelet_reports_is_not_taken_for_removed() -> None:
    snapshot, planned, body = begun()
    full_report = node_state("n", images={f"quay.io/lab/{index}:1": GB for index in range(50)}, image_count=50)
    there = replace(snapshot, nodes={"n": full_report})
    done = plan_popular_images(
        with_pod(there, as_pod(body, phase="Running")), planned.memory, popular_settings(), at(130)
    )
    later = plan_popular_images(there, done.memory, popular_settings(), at(5000))
    assert not later.actions
    assert ASSUMED_IMAGE_BYTES < GB


def test_an_image_that_fails_backs_off_longer_each_time_and_holds_up_no_other() -> None:
    other = "quay.io/lab/other:1"
    people = [*users(9, POPULAR), *users(3, other)]
    nodes = [node_state("a"), node_state("b", joined=WALL - 1)]
    settings = popular_settings(parallel_per_cluster=1)
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
    again = plan_popular_images(snapshot, given_up.memory, settings, at(190 + FIRST_BACK_OFF_SECONDS + 1))
    assert POPULAR in [image for _, image in pulls(again)]
    failing = with_pod(snapshot, as_pod(created(again)[0], waiting="ErrImagePull"))
    twice = follow(failing, settings, [600, 700], again.memory)
    assert twice.memory.backing_off[POPULAR].until == pytest.approx(600 + 2 * FIRST_BACK_OFF_SECONDS)


def test_pulls_of_one_image_that_fail_together_count_once_and_their_nodes_go_on() -> None:
    other = "quay.io/lab/other:1"
    settings = popular_settings(parallel_per_cluster=2)
    snapshot = cluster([node_state("a"), node_state("b")], [*users(9, POPULAR), *users(3, other)])
    planned = plan_after_a_while(snapshot, settings)
    assert {image for _, image in pulls(planned)} == {POPULAR}
    failing = snapshot
    for body in created(planned):
        failing = with_pod(failing, as_pod(body, waiting="ErrImagePull"))
    given_up = plan_popular_images(failing, planned.memory, settings, at(190))
    assert len(deleted(given_up)) == 2
    assert given_up.memory.backing_off[POPULAR] == (1, 190 + FIRST_BACK_OFF_SECONDS)
    after = plan_popular_images(snapshot, given_up.memory, settings, at(200))
    assert sorted(pulls(after)) == [("a", other), ("b", other)]


def test_a_node_where_one_image_after_the_other_fails_rests() -> None:
    other = "quay.io/lab/other:1"
    settings = popular_settings(parallel_per_cluster=1)
    snapshot = cluster([node_state("n")], [*users(9, POPULAR), *users(3, other)])
    first = plan_after_a_while(snapshot, settings)
    failing = with_pod(snapshot, as_pod(created(first)[0], waiting="ErrImagePull"))
    second = follow(snapshot, settings, [200], follow(failing, settings, [190], first.memory).memory)
    assert pulls(second) == [("n", other)]
    failing = with_pod(snapshot, as_pod(created(second)[0], waiting="ErrImagePull"))
    third = follow(snapshot, settings, [280], follow(failing, settings, [270], second.memory).memory)
    assert third.gauges["popular_images_nodes"] == {("resting",): 1}


def test_a_pod_that_finds_no_room_is_the_nodes_fault_not_the_images() -> None:
    snapshot, planned, body = begun()
    unbound = with_pod(snapshot, as_pod(body, node=""))
    later = plan_popular_images(unbound, planned.memory, popular_settings(), at(260))
    assert deleted(later) == [body["metadata"]["name"]]
    assert later.memory.backing_off == {}
    assert later.gauges["popular_images_nodes"] == {("resting",): 1}


@pytest.mark.parametrize("reason", ["Evicted", "OutOfcpu", "OutOfpods", "Preempting", "NodeShutdown"])
def test_a_pod_that_its_kubelet_ends_for_the_nodes_sake_is_no_fault_of_the_image(reason: str) -> None:
    snapshot, planned, body = begun()
    pod = as_pod(body, phase="Failed", reason=reason)
    later = plan_popular_images(with_pod(snapshot, pod), planned.memory, popular_settings(), at(130))
    assert deleted(later) == [pod.name]
    assert notices(later) == []
    assert later.memory.backing_off == {}
    assert later.gauges["popular_images_nodes"] == {("resting",): 1}


@pytest.mark.parametrize(("ran", "told"), [(True, "PopularImagePulled"), (False, "PopularImageFailed")])
def test_a_pod_that_came_to_its_deadline_has_pulled_if_it_ran(ran: bool, told: str) -> None:
    snapshot, planned, body = begun()
    pod = as_pod(body, phase="Failed", reason="DeadlineExceeded", ran=ran)
    later = plan_popular_images(with_pod(snapshot, pod), planned.memory, popular_settings(), at(130))
    assert (deleted(later), notices(later)) == ([pod.name], [told])


def test_a_pull_that_takes_for_ever_is_given_up() -> None:
    snapshot, planned, body = begun()
    slow = with_pod(snapshot, as_pod(body))
    assert not plan_popular_images(slow, planned.memory, popular_settings(), at(120 + PULL_SECONDS - 1)).actions
    late = plan_popular_images(slow, planned.memory, popular_settings(), at(120 + PULL_SECONDS))
    assert notices(late) == ["PopularImageFailed"]


def test_a_pod_that_never_appeared_or_was_evicted_lets_its_node_rest() -> None:
    snapshot, planned, _ = begun()
    lost = plan_popular_images(snapshot, planned.memory, popular_settings(), at(190))
    assert lost.gauges["popular_images_nodes"] == {("resting",): 1}
    assert pulls(lost) == []


def test_the_next_leader_finds_the_pulls_of_the_last_and_begins_none_twice() -> None:
    snapshot, _, body = begun()
    pulling = with_pod(snapshot, as_pod(body))
    planned = follow(pulling, popular_settings(), [0, 120])
    assert pulls(planned) == []
    assert planned.gauges["popular_images_pulling"][()] == 1
    done = plan_popular_images(
        with_pod(snapshot, as_pod(body, phase="Running")), planned.memory, popular_settings(), at(130)
    )
    assert deleted(done) == [body["metadata"]["name"]]


def test_pulls_of_another_release_are_left_alone() -> None:
    snapshot, _, body = begun()
    foreign = {**body, "metadata": {**body["metadata"], "namespace": "elsewhere"}}
    planned = follow(with_pod(snapshot, as_pod(foreign, phase="Running")), popular_settings(), [0])
    assert deleted(planned) == []


def switched_off() -> Planner:
    read = Reader()
    planner = make_popular_images(read, Sources(popular_document(popularImages={"enabled": False}), None, 36))
    assert not read.faults
    return planner


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
def test_switched_off_the_pods_that_pull_are_deleted_and_nothing_else(phase: str) -> None:
    snapshot, _, body = begun()
    pod = as_pod(body, phase=phase)
    foreign = as_pod({**body, "metadata": {**body["metadata"], "namespace": "elsewhere"}}, phase=phase)
    labels = {**body["metadata"]["labels"], OWN_INSTANCE_LABEL: "other"}
    theirs = as_pod({**body, "metadata": {**body["metadata"], "name": "theirs", "labels": labels}}, phase=phase)
    leaving = as_pod({**body, "metadata": {**body["metadata"], "name": "leaving"}}, phase=phase, leaving=True)
    for one in (pod, foreign, theirs, leaving):
        snapshot = with_pod(snapshot, one)
    planner = switched_off()
    planned = planner.plan(snapshot, at(0))
    assert [(one.namespace, one.name, one.uid) for one in planned.actions if isinstance(one, DeletePod)] == [
        (NAMESPACE, pod.name, pod.uid)
    ]
    assert len(planned.actions) == 1
    planner.note([Done(planned.actions[0], Outcome.DONE)], at(0))
    assert not planner.plan(snapshot, at(5)).actions
    assert len(planner.plan(snapshot, at(40)).actions) == 1


def test_switched_off_a_deletion_that_failed_is_asked_for_again() -> None:
    snapshot, _, body = begun()
    planner = switched_off()
    planned = planner.plan(with_pod(snapshot, as_pod(body)), at(0))
    planner.note([Done(planned.actions[0], Outcome.FAILED)], at(0))
    assert len(planner.plan(with_pod(snapshot, as_pod(body)), at(1)).actions) == 1


def test_switched_off_without_pods_that_pull_nothing_happens() -> None:
    snapshot, _, _ = begun()
    planned = switched_off().plan(snapshot, at(0))
    assert (planned.actions, planned.wake_after_seconds) == ([], None)


def test_what_could_not_be_asked_for_gives_its_bytes_back() -> None:
    holder = node_state("holder", images={POPULAR: GB})
    settings = popular_settings(bytes_per_minute=GB)
    snapshot = cluster([holder, node_state("n")], users(3, POPULAR))
    planned = follow(snapshot, settings, [0, 60])
    (action,) = [action for action in planned.actions if isinstance(action, CreatePod)]
    memory = note_popular_images(planned.memory, [Done(action, Outcome.HELD_BACK)], at(60))
    assert pulls(plan_popular_images(snapshot, memory, settings, at(61))) == [("n", POPULAR)]
    assert pulls(plan_popular_images(snapshot, planned.memory, settings, at(61))) == []


def test_what_failed_may_have_been_done_and_keeps_its_bytes() -> None:
    images = {f"quay.io/lab/{index}:1": GB for index in range(6)}
    settings = popular_settings(bytes_per_minute=GB, perNode=20, parallel_per_node=50, parallel_per_cluster=50)
    people = [one for image in images for one in users(3, image)]
    nodes = [node_state("holder", images=images, unschedulable=True), node_state("n")]
    memory = plan_popular_images(cluster(nodes, people), PopularMemory(), settings, at(0)).memory
    begun_pods: list[PodState] = []
    for seconds in range(60, 120, 10):
        planned = plan_popular_images(cluster(nodes, [*people, *begun_pods]), memory, settings, at(seconds))
        makes = [action for action in planned.actions if isinstance(action, CreatePod)]
        begun_pods += [as_pod(action.body) for action in makes]
        memory = note_popular_images(planned.memory, [Done(action, Outcome.FAILED) for action in makes], at(seconds))
    assert len(begun_pods) == 1


def test_a_busy_cluster_is_looked_at_a_few_times_a_minute_only() -> None:
    snapshot, settings = cluster([node_state("n")], users(3, POPULAR)), popular_settings()
    first = plan_at_pace(snapshot, PopularMemory(), settings, at(0))
    soon = plan_at_pace(snapshot, first.memory, settings, at(4))
    assert soon.memory is first.memory
    assert soon.gauges == first.gauges
    assert soon.wake_after_seconds == pytest.approx(6)
    assert pulls(plan_at_pace(snapshot, soon.memory, settings, at(10))) == [("n", POPULAR)]


# Settings


def test_popular_images_are_off_unless_asked_for() -> None:
    assert read_popular_settings(Reader(), popular_document(popularImages={"enabled": False})) is None
    assert read_popular_settings(Reader(), {}) is None


def test_all_faults_of_the_settings_are_found_at_once() -> None:
    read = Reader()
    wrong = {"perNode": -1, "diskHeadroomPercent": 101, "nodeStatusMaxImages": -2, "perNodes": 3}
    read_popular_settings(read, popular_document(popularImages=wrong, puller={"method": "magic"}))
    assert sorted(fault.key for fault in read.faults) == [
        "popularImages.diskHeadroomPercent",
        "popularImages.nodeStatusMaxImages",
        "popularImages.perNode",
        "popularImages.perNodes",
        "puller.method",
    ]


def test_the_defaults_are_those_of_the_values() -> None:
    settings = read_popular_settings(Reader(), popular_document())
    assert settings is not None
    assert (settings.per_node, settings.reported_images) == (5, 50)
    assert math.isclose(settings.disk_share, 0.7)
