"""The warm set: who is in it, who is named first, what is known of nodes, and what a pod gets."""

import copy
import json
import math
from dataclasses import replace
from typing import Any

import pytest

from roost_core.objects.fields import JSONObject
from roost_core.objects.node import Node, node_or_none, read_node
from roost_core.placement.beliefs import FAILED_PULL
from roost_core.placement.labels import WARM_TARGET_ANNOTATION
from roost_core.placement.nodes import Nodes
from roost_core.placement.warm_sets import Spare, slots_of
from roost_core.release.pod_classes import Warm
from roost_core.release.reader import SettingsError
from roost_core.release.release_settings import ReleaseSettings
from tests.builders import (
    Desk,
    build_pod,
    homes_of,
    node,
    node_terms,
    place,
    pod_terms,
    settings,
    user_pod,
)
from tests.recorded_data import rows
from tests.warm_rule import WarmNode, choose_warm, size_of_set
from webhook.facts.facts import Facts
from webhook.facts.placed_pod import FailedPull, PlacedPod, read_placed_pod
from webhook.facts.warm import WarmFacts
from webhook.watching.reported_images import ReportedImages

IMAGE = "registry.example/team-image:1"
WARM = {"user": {"warm": {"podsPerNode": 3, "spare": 0, "nodes": 10}}}


def on(node: str, images: tuple[str, ...] = (), is_starting: bool = False) -> PlacedPod:
    return PlacedPod("user", node, images, is_starting)


def n(
    name: str, pods: int, *, holds: bool = False, created: float = 0.0, slots: int = 4, **more: Any
) -> WarmNode:
    return WarmNode(name, pods, slots, holds, created)._replace(**more)


@pytest.mark.parametrize(("nodes", "spare", "limit", "expected"), rows("webhook/warm-orders"))
def test_the_order_of_the_nodes_that_are_named(
    nodes: list[JSONObject], spare: int, limit: int, expected: str
) -> None:
    known = [n(**one) for one in nodes]
    running = sum(one.pods for one in known)
    assert (
        "".join(name for name, _ in choose_warm(known, running=running, spare=spare, limit=limit))
        == expected
    )


def test_slots_are_what_the_scarcest_resource_takes() -> None:
    room = {"cpu": 4000, "memory": 16 * 2**30, "pods": 110}
    assert slots_of(room, [("cpu", 500), ("memory", 2**30)]) == 8
    assert slots_of(room, []) == 110
    assert slots_of(room, [("nvidia.com/gpu", 1)]) == 0
    assert slots_of({}, [("cpu", 500)]) == 0


def test_users_have_a_warm_set_by_default_and_null_takes_it_away() -> None:
    assert {
        name for name, pod_class in settings().classes.items() if pod_class.warm is not None
    } == {"user"}
    assert settings(podClasses={"user": {"warm": None}}).classes["user"].warm is None
    for written, spare in ((-5, Spare(-5)), ("-25%", Spare(percent=-25))):
        found = settings(podClasses={"user": {"warm": {"spare": written}}}).classes["user"].warm
        assert found == Warm(pods_per_node=0, spare=spare, nodes=10)


@pytest.mark.parametrize("odd", ["25", "2.5%", "+5%", "1000%", "\u0665%", "-25 %", "", True, 0.5])
def test_no_other_text_is_a_share(odd: object) -> None:
    with pytest.raises(SettingsError, match=r"podClasses\.user\.warm\.spare"):
        settings(podClasses={"user": {"warm": {"spare": odd}}})


@pytest.mark.parametrize(("slots", "pods", "percent", "size"), rows("webhook/shares"))
def test_a_share_is_one_of_the_sets_last_node(
    slots: tuple[int, ...], pods: int, percent: int, size: int
) -> None:
    assert size_of_set(slots, pods, Spare(percent=percent)) == size


def test_faults_of_warm_come_all_at_once_and_name_their_key() -> None:
    with pytest.raises(SettingsError) as raised:
        settings(
            podClasses={
                "user": {"warm": {"podsPerNode": "x", "spare": "x", "nodes": 2.5, "space": 1}}
            }
        )
    keys = [fault.key.removeprefix("podClasses.user.warm.") for fault in raised.value.faults]
    assert keys == ["space", "podsPerNode", "spare", "nodes"]


def test_of_too_many_images_on_one_node_the_oldest_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("webhook.facts.warm.MAX_IMAGES", 2)
    facts = WarmFacts({"ns/a": on("n1", ("x",))}).updated({"ns/b": on("n1", ("y",))})
    # Seen again, it is the newest.
    facts = facts.updated({"ns/c": on("n1", ("x",))}).updated({"ns/d": on("n1", ("z",))})
    assert [image for image in "xyz" if facts.holds("n1", image)] == ["x", "z"]


def test_images_since_counts_those_after_the_last_use_and_a_pod_uses_images_until_it_ends() -> None:
    facts = WarmFacts({"ns/a": on("n1", ("x",))}).updated({"ns/b": on("n1", ("y",))})
    facts = facts.updated(
        {"ns/c": on("n1", ("z",)), "ns/d": on("n1", ("y",)), "ns/e": on("n2", ("z",))}
    )
    assert [facts.images_since("n1", image) for image in "xyz?"] == [2, 0, 0, 0]
    assert facts.images_since("n9", "x") == 0
    assert facts.updated({"ns/a": None}).images_since("n1", "x") == 0
    gone = facts.without_nodes(["n1"])
    assert gone.images_since("n1", "x") == 0
    # A pod that ends there later brings nothing to the machine that has its name now.
    assert not gone.updated({"ns/a": None}).holds("n1", "x")


def test_a_node_pulls_for_a_pod_until_it_runs_if_no_pod_brought_its_images_before() -> None:
    facts = WarmFacts({"ns/a": on("n1", ("x",), is_starting=True), "ns/b": on("n1", ("x",), True)})
    assert facts.pulls.get("n1", 0) == 1
    # Its status changes while it waits.
    facts = facts.updated({"ns/a": on("n1", ("x",), True), "ns/c": on("n1", ("y",), True)})
    assert (facts.pulls.get("n1", 0), facts.pulls.get("n2", 0)) == (2, 0)
    assert facts.updated({"ns/a": on("n1", ("x",))}).pulls.get("n1", 0) == 1
    assert facts.updated({"ns/a": None, "ns/c": None}).pulls.get("n1", 0) == 0
    assert facts.pulls.get("n1", 0) == 2


def reported(*images: str, count: int | None = None) -> Node:
    return Node(
        "n", images=dict.fromkeys(images, 1), image_count=len(images) if count is None else count
    )


def held_of(facts: WarmFacts, *images: str) -> list[str]:
    """Which of these n1 holds."""
    return [image for image in images if facts.holds("n1", image)]


def test_what_a_node_reports_is_on_it_though_no_pod_brought_it() -> None:
    before = WarmFacts({"ns/a": on("n1", ("h.io/x:1",))})
    facts = before.with_reports(
        {
            "n1": (reported(), reported("h.io/x:1", "h.io/y:1")),
            "n2": (reported(), reported("h.io/y:1")),
        }
    )
    assert facts.holders("h.io/x:1") == {"n1"}
    assert facts.holders("h.io/y:1") == {"n1", "n2"}
    assert facts.images_since("n1", "h.io/y:1") == 0
    assert facts.updated({"ns/b": on("n1", ("h.io/z:1",))}).images_since("n1", "h.io/y:1") == 1
    assert not before.holds("n1", "h.io/y:1")
    assert facts.without_nodes(["n2"]).holders("h.io/y:1") == {"n1"}
    assert (
        facts.with_reports({"n1": (reported("h.io/x:1"), reported("h.io/x:1", "h.io/y:1"))})
        is facts
    )


def test_what_a_report_lacks_may_be_there_because_reports_are_cut_to_the_largest_images() -> None:
    before, after = reported("h.io/x:1", "h.io/y:1"), reported("h.io/y:1", "h.io/z:1")
    facts = WarmFacts().with_reports({"n1": (reported(), before)})
    assert facts.with_reports({"n1": (before, after)}).holds("n1", "h.io/x:1")


def test_what_a_report_that_shrank_lacks_is_gone_but_for_what_pods_need() -> None:
    images, first = (
        ("pulling", "small", "h.io/x:1", "h.io/y:1"),
        reported("h.io/x:1", "h.io/y:1", "h.io/z:1"),
    )
    facts = WarmFacts({"ns/a": on("n1", ("pulling",)), "ns/b": on("n1", ("small",))})
    facts = facts.updated({"ns/b": None}).with_reports({"n1": (reported(), first)})
    assert held_of(facts, *images) == [*images]
    after = facts.with_reports({"n1": (first, reported("h.io/y:1", "h.io/z:1"))})
    assert held_of(after, *images) == ["pulling", "h.io/y:1"]
    assert after.holders("small") == set()


def test_nodes_are_named_once_for_all_classes() -> None:
    """Each refresh follows the nodes: 5,000 names are gathered once, not for each class."""

    class Counted(Nodes):
        asked = 0

        @property
        def names(self) -> frozenset[str]:
            Counted.asked += 1
            return super().names

    facts = WarmFacts({"ns/a": on("n1", ("a",)), "ns/b": on("n2", ("b",))})
    warm = {"user": facts, "build": facts, "lab": facts}
    nodes = Counted([node("n1")])
    followed = ReportedImages().follow(warm, nodes, warm, with_reports=False)
    assert [known.nodes_with_images for known in followed.values()] == [{"n1"}] * 3
    assert Counted.asked == 1


def test_of_too_many_reported_images_some_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.facts.warm.MAX_IMAGES", 2)
    facts = WarmFacts({"ns/a": on("n1", ("a",))}).with_reports(
        {"n1": (reported(), reported("h.io/x:1", "h.io/y:1"))}
    )
    # What a pod showed comes before what only the node reports.
    assert held_of(facts, "a", "h.io/x:1", "h.io/y:1") == ["a", "h.io/y:1"]


def test_a_report_with_fewer_names_of_as_many_images_may_be_cut_and_an_empty_one_is_nothing() -> (
    None
):
    facts = WarmFacts({"ns/a": on("n1", ("small",))}).updated(
        {"ns/b": on("n1", ("s2",)), "ns/a": None}
    )
    two_names = reported("h.io/x:1", "h.io/x@sha256:1", "h.io/y:1", count=2)
    facts = facts.with_reports({"n1": (None, two_names)})
    after = facts.with_reports({"n1": (two_names, reported("h.io/y:1", "h.io/z:1", count=2))})
    assert held_of(after, "small", "h.io/x:1", "h.io/z:1") == ["small", "h.io/x:1", "h.io/z:1"]
    # So a kubelet that starts reports.
    assert after.with_reports({"n1": (two_names, reported())}) is after


def test_what_a_node_reports_first_puts_no_image_of_its_pods_in_doubt_nor_does_a_digest() -> None:
    facts = WarmFacts({"ns/a": on("n1", ("h.io/x:1",))})
    first = reported("h.io/x:1", *(f"h.io/system-{number}:1" for number in range(30)))
    facts = facts.with_reports({"n1": (None, first)})
    assert facts.images_since("n1", "h.io/x:1") == 0
    later = reported(*first.images, "h.io/x@sha256:1", "h.io/y:1", "h.io/y@sha256:2", count=33)
    assert facts.with_reports({"n1": (first, later)}).images_since("n1", "h.io/x:1") == 1


@pytest.mark.parametrize(("body", "pod_class", "expected"), rows("webhook/bound-pods"))
def test_bound_pods_tell_images_others_targets(
    body: JSONObject, pod_class: str, expected: list[Any] | None
) -> None:
    assert json.loads(json.dumps(read_placed_pod(body, pod_class))) == expected


def waiting(reason: str, container: str = "main") -> dict[str, Any]:
    return {"name": container, "state": {"waiting": {"reason": reason}}}


def test_an_image_that_cannot_be_pulled_is_not_among_the_images_of_the_pod() -> None:
    containers = [
        {"name": name, "image": image}
        for name, image in (("main", "x"), ("side", "y"), ("other", "y"))
    ]
    said: Any = [waiting("ImagePullBackOff"), waiting("ContainerCreating", "side")]
    status = {"phase": "Pending", "containerStatuses": said}
    spec = {"nodeName": "n1", "containers": containers}
    body: Any = {"metadata": {"name": "p", "annotations": {}}, "spec": spec, "status": status}
    read = PlacedPod(
        "user", "n1", ("docker.io/library/y:latest",), True, ("docker.io/library/x:latest",)
    )
    assert read_placed_pod(body, "user") == read
    body["status"]["initContainerStatuses"] = [waiting("ErrImagePull", "other")]
    found = read_placed_pod(body, "user")
    assert found is not None
    assert (found.images, len(found.failing)) == ((), 2)


def test_a_node_that_turns_out_not_to_pull_an_image_does_not_hold_it() -> None:
    started = WarmFacts({"ns/a": on("n1", ("x", "y"), True), "ns/b": on("n2", ("x",))})
    assert started.holders("x") == {"n1", "n2"}
    failing = started.updated({"ns/a": PlacedPod("user", "n1", ("y",), True, ("x",))})
    assert failing.pulls.get("n1", 0) == 1
    assert (failing.holders("x"), failing.holders("y")) == (frozenset({"n2"}), frozenset({"n1"}))
    gone = failing.updated({"ns/a": None})
    assert (gone.holders("x"), gone.holders("y")) == (frozenset({"n2"}), frozenset[str]())


def test_a_pod_that_never_started_leaves_no_image_unless_another_ran_or_the_node_reports_it() -> (
    None
):
    facts = WarmFacts({"ns/a": on("n1", (IMAGE,), True)})
    ran = facts.updated({"ns/b": on("n1", (IMAGE,))}).updated({"ns/b": None})
    told = facts.with_reports({"n1": (None, reported(IMAGE))})
    assert [one.updated({"ns/a": None}).holds("n1", IMAGE) for one in (facts, ran, told)] == [
        False,
        True,
        True,
    ]


def test_a_nodes_images_are_read_only_when_asked_for_under_each_name_and_nonsense_is_none() -> None:
    names = ["team/x:1", "quay.io/team/x@sha256:1a"]
    body = {
        "metadata": {"name": "n"},
        "status": {"images": [{"names": names, "sizeBytes": 5}, {"sizeBytes": 5}]},
    }
    read = read_node(body)
    assert (read.image_names, read.image_count) == (
        ("docker.io/team/x:1", "quay.io/team/x@sha256:1a"),
        2,
    )
    without = read_node(body, with_images=False)
    assert (without.images, without.image_count) == ({}, 0)
    body["status"] = {"images": [{"names": [None, "", 5, "x" * 2000]}, {"names": None}]}
    assert read_node(body).image_names == ()
    assert read_node({"metadata": {"name": "n"}, "status": {"images": None}}).images == {}


def test_a_nodes_room_and_age_are_read_and_of_nonsense_there_is_no_node() -> None:
    body = {
        "metadata": {"name": "n", "creationTimestamp": "1970-01-01T00:01:00Z"},
        "status": {"allocatable": {"cpu": "3920m", "memory": "2Gi", "pods": "110"}},
    }
    asked = read_node(body)
    assert (asked.allocatable, asked.created) == (
        {"cpu": 3920, "memory": 2 * 2**30, "pods": 110},
        60,
    )
    assert read_node({"metadata": {"name": "n", "creationTimestamp": "lately"}}).created == 0
    assert (
        node_or_none({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "plenty"}}})
        is None
    )


N1, N2, N3 = (node(f"n{number}") for number in (1, 2, 3))
MANAGED = "quay.io/jupyterhub/k8s-singleuser-sample:4.4.0"


def known(nodes: list[Node], *pods: tuple[str, str]) -> Facts:
    running = {
        f"jhub/{index}": on(at, (image,) if image else ()) for index, (at, image) in enumerate(pods)
    }
    return Facts(nodes=Nodes(nodes), warm={"user": WarmFacts(running)})


def with_warm(**warm: int) -> ReleaseSettings:
    return settings(podClasses={"user": {"warm": warm}})


def homes(
    facts: Facts, body: JSONObject | None = None, rules: ReleaseSettings | None = None
) -> list[tuple[int, str]]:
    """Where the user goes."""
    return homes_of(place(body or user_pod(IMAGE), facts, rules or settings(podClasses=WARM)))


def failed(*nodes: str, image: str = IMAGE) -> dict[str, dict[FailedPull, float]]:
    """Pulls of an image that failed at 990 s, and of another image everywhere."""
    others = {FailedPull(node, f"{image}-other"): 990.0 for node in ("n1", "n2")}
    return {image: {FailedPull(node, image): 990.0 for node in nodes}, f"{image}-other": others}


def test_nodes_that_could_not_pull_the_image_come_after_all_others_for_some_minutes() -> None:
    desk = Desk(
        settings(podClasses=WARM),
        replace(known([N1, N2], ("n1", IMAGE)), failed_pulls=failed("n1")),
    )
    for desk.now in (1000.0, 989.0 + FAILED_PULL.age_seconds):
        assert [name for _, name in homes_of(desk.place(user_pod(IMAGE)))] == ["n2"]
    desk.now = 990.0 + FAILED_PULL.age_seconds
    assert homes_of(desk.place(user_pod(IMAGE)))[0] == (100, "n1")
    # Also where none is preferred.
    desk.now, desk.facts = 1000.0, replace(known([N1, N2]), failed_pulls=failed("n2", "n1"))
    fields = [
        {"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in ("n1", "n2")
    ]
    placed = desk.place(user_pod(IMAGE))
    assert {"weight": 100, "preference": {"matchFields": fields}} in node_terms(placed)
    assert desk.place(placed) == placed
    # One of which a pod said so comes last.
    desk.facts = replace(desk.facts, given_up={FailedPull("n2", IMAGE)})
    terms = node_terms(desk.place(user_pod(IMAGE)))
    expected = [{"matchFields": fields}, {"matchFields": fields[:1]}]
    assert [term["preference"] for term in terms if "NotIn" in str(term)] == expected
    desk.now = 990.0 + FAILED_PULL.age_seconds
    assert "NotIn" not in str(node_terms(desk.place(user_pod(IMAGE))))


def test_what_was_refused_to_others_secrets_speaks_against_no_node() -> None:
    refused = {IMAGE: {FailedPull("n1", IMAGE, "jhub/theirs"): math.inf}}
    facts = replace(known([N1, N2], ("n1", IMAGE)), failed_pulls=refused)
    rules = settings(podClasses=WARM)
    for names, expected in (([], "n1"), (["ours"], "n1"), (["theirs"], "n2")):
        secrets = [{"name": name} for name in names]
        placed = place(user_pod(IMAGE, imagePullSecrets=secrets), facts, rules)
        assert homes_of(placed)[0] == (100, expected)
        assert ("NotIn" in str(node_terms(placed))) is (expected == "n2")
    assert homes_of(place(user_pod(IMAGE, imagePullSecrets="?"), facts, rules))[0] == (100, "n1")


def test_what_was_refused_to_several_secrets_speaks_against_the_node_for_all() -> None:
    desk = Desk(settings(podClasses=WARM), known([N1, N2], ("n1", IMAGE)))
    refused = [FailedPull("n1", IMAGE, secrets) for secrets in ("jhub/theirs", "lab/theirs")]

    def best(*times: float) -> str:
        failures = dict(zip(refused, times, strict=False))
        desk.facts = replace(desk.facts, failed_pulls={IMAGE: failures})
        return homes_of(desk.place(user_pod(IMAGE)))[0][1]

    assert best(math.inf, 990.0) == "n2"
    # One alone may lack the right to the image; and a failure that is long ago says nothing.
    assert best(math.inf) == "n1"
    # Nor does one namespace, however many secrets it tries: others' users aren't in its hands.
    for secrets in ("jhub/another", ""):
        refused[1] = FailedPull("n1", IMAGE, secrets)
        assert best(math.inf, 990.0) == ("n1" if secrets else "n2")
    refused[1] = FailedPull("n1", IMAGE, "lab/theirs")
    assert best(math.inf, 1000.0 - FAILED_PULL.age_seconds) == "n1"
    # A start that was given up may only have been slow: told is one alone.
    desk.facts = replace(desk.facts, given_up={refused[1]})
    assert best(math.inf, 990.0) == "n2"
    assert sum("NotIn" in str(term) for term in node_terms(desk.place(user_pod(IMAGE)))) == 1


def test_a_user_goes_to_the_node_that_holds_the_image_within_the_set() -> None:
    facts = known([N1, N2, N3], ("n1", "x"), ("n1", "x"), ("n2", IMAGE))
    rules = with_warm(podsPerNode=3, spare=1)
    placed = place(user_pod(IMAGE), facts, rules)
    assert homes_of(placed) == [(100, "n2"), (66, "n1"), (33, "n3")]
    assert placed["metadata"]["annotations"][WARM_TARGET_ANNOTATION] == "n2"
    note = Desk(rules, facts).answer(user_pod(IMAGE))["auditAnnotations"]["warm"]
    assert note == "n2; 1 of 3 preferred nodes hold the images; 2 nodes in the set"


def test_a_user_goes_to_the_holder_that_used_the_image_lately_though_another_is_emptier() -> None:
    facts = known([N1, N2], ("n1", IMAGE), ("n2", IMAGE), ("n2", "x"))
    many = {f"jhub/more-{index}": on("n1", (f"other-{index}",)) for index in range(16)}
    after = facts.warm["user"].updated(many).updated(dict.fromkeys(many))
    for limit, wanted in ((1, [(100, "n2")]), (2, [(100, "n2"), (50, "n1")])):
        rules = with_warm(podsPerNode=3, spare=2, nodes=limit)
        assert homes(replace(facts, warm={"user": after}), rules=rules) == wanted
        assert homes(facts, rules=rules)[0] == (100, "n1")


def test_where_nobody_holds_the_image_the_sets_emptiest_comes_first_and_a_pulling_one_last() -> (
    None
):
    rules = with_warm(podsPerNode=5, spare=5)
    facts = known([N1, N2, N3], *[("n1", "x")] * 4, *[("n2", "x")] * 2, *[("n3", "x")] * 3)
    assert homes(facts, rules=rules) == [(100, "n2"), (66, "n3"), (33, "n1")]
    facts = known([N1, N2], ("n2", "x"))
    pulling = facts.warm["user"].updated({"jhub/new": on("n1", ("y",), is_starting=True)})
    assert homes(replace(facts, warm={"user": pulling}), rules=rules) == [(100, "n2"), (50, "n1")]


def test_the_note_counts_the_preferred_nodes_that_hold_the_image() -> None:
    # Of three nodes one holds it: as many that don't would be two.
    facts = known([N1, N2, N3], ("n1", IMAGE), ("n2", "x"), ("n3", "x"))
    assert "1 of 3 preferred nodes hold the images" in note(facts)


def test_other_classes_name_no_node_nor_do_users_without_own_images() -> None:
    facts = known([N1, N2], ("n2", IMAGE))
    assert homes(facts, build_pod(), settings(podClasses={**WARM, "build": {"home": None}})) == []
    assert homes(facts, rules=settings()) == []


def test_a_label_of_the_puller_tells_of_an_image_too() -> None:
    facts = known([N1, node("n2", MANAGED)], ("n1", "x"))
    assert homes(facts, user_pod(MANAGED), with_warm(podsPerNode=3, spare=3)) == [
        (100, "n2"),
        (50, "n1"),
    ]


def test_a_class_whose_images_pullers_bring_is_left_to_the_scheduler_and_that_is_said() -> None:
    facts, body = known([N1, N2], ("n2", MANAGED)), user_pod(MANAGED)
    assert "pullers bring all images" in note(facts, body)
    assert homes(facts, body) == []
    # One user's own image is enough, whether it runs or is about to.
    assert homes(known([N1, N2], ("n2", MANAGED), ("n1", IMAGE)), body)
    assert homes(facts)
    # Where no puller runs, listed images are as others.
    rules = settings(
        podClasses={"user": {"warm": {"podsPerNode": 3, "spare": 3}}}, pullersRun=False
    )
    assert homes(facts, body, rules) == [(100, "n2"), (50, "n1")]


def test_all_images_of_the_pod_must_be_known() -> None:
    facts = known([N1, N2], ("n1", "registry.example/other:1"), ("n2", IMAGE))
    both = replace(
        facts, warm={"user": facts.warm["user"].updated({"jhub/more": on("n1", (IMAGE,))})}
    )
    # n1 is the fuller one.
    body = user_pod(IMAGE, "registry.example/other:1")
    assert homes(both, body, with_warm(podsPerNode=3, spare=1)) == [(100, "n1"), (50, "n2")]


@pytest.mark.parametrize("gone", [node("n2", ready=False), node("n2", unschedulable=True)])
def test_a_node_that_takes_nobody_is_neither_named_nor_is_its_load_counted(gone: Node) -> None:
    assert homes(known([N1, gone, N3], *[("n2", IMAGE)] * 3)) == [(100, "n1"), (50, "n3")]


def test_the_set_is_made_of_the_nodes_that_the_class_prefers_most() -> None:
    users = {"hub.jupyter.org/node-purpose": "user"}
    facts = known(
        [node("core-1"), node("user-1", labels=users), node("user-2", labels=users)],
        ("core-1", IMAGE),
    )
    # The core node would come first: it holds the image, has most users, and is first by name.
    assert homes(facts) == [(100, "user-1"), (50, "user-2")]
    assert homes(known([node("core-1")])) == [(100, "core-1")]


def note(facts: Facts, body: JSONObject | None = None) -> str:
    text: str = Desk(settings(podClasses=WARM), facts).answer(body or user_pod(IMAGE))[
        "auditAnnotations"
    ]["warm"]
    return text


def test_while_nodes_are_unknown_or_full_nothing_is_preferred_and_it_is_said() -> None:
    assert note(Facts(warm={"user": WarmFacts()})) == "nothing preferred: nodes can't be read"
    assert homes(Facts()) == []
    assert (
        note(known([N1], *[("n1", IMAGE)] * 3))
        == "nothing preferred: no node has room; 1 in the set"
    )


def test_requests_that_cannot_be_read_cost_the_warm_nodes_alone() -> None:
    body = user_pod(IMAGE)
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "plenty"}}
    facts = known([N1], ("n1", IMAGE))
    assert note(facts, body) == "nothing preferred: the pod's requests can't be read"
    placed = place(body, facts, settings(podClasses=WARM))
    assert homes_of(placed) == []
    assert placed["spec"]["schedulerName"] != user_pod(IMAGE)["spec"].get("schedulerName")


def test_slots_come_from_the_nodes_room_and_the_pods_requests_or_those_that_its_class_gives() -> (
    None
):
    small, large = (
        Node(f"n{n}", allocatable={"cpu": 4000, "memory": memory * 2**30, "pods": 110})
        for n, memory in ((1, 2), (2, 9))
    )
    # Users of 1 GiB: two slots, one taken and one for this pod.
    assert homes(known([small, large], ("n1", "")), rules=with_warm(spare=0)) == [
        (100, "n1"),
        (50, "n2"),
    ]
    assert homes(known([small, large], ("n1", ""), ("n1", "")), rules=with_warm(spare=0)) == [
        (100, "n2")
    ]
    body = user_pod(IMAGE)
    body["spec"]["containers"][0]["resources"] = {}
    two_gigabytes = settings(
        podClasses={"user": {"warm": {"spare": 0}, "resources": {"memory": "2Gi"}}}
    )
    assert homes(known([small, large], ("n1", "")), body, two_gigabytes) == [(100, "n2")]


def test_a_pod_reviewed_again_keeps_its_nodes_whatever_is_known_by_then() -> None:
    desk = Desk(settings(podClasses=WARM), known([N1, N2], ("n1", IMAGE)))
    placed = desk.place(user_pod(IMAGE))
    assert homes_of(placed) == [(100, "n1"), (50, "n2")]
    # A new pod would go to n2 alone.
    desk.facts = known([N1, N2], *[("n1", "x")] * 3)
    assert homes_of(desk.place(user_pod(IMAGE))) == [(100, "n2")]
    assert desk.place(copy.deepcopy(placed)) == placed


def test_an_annotation_alone_does_not_keep_a_pod_from_its_warm_nodes() -> None:
    body = user_pod(IMAGE)
    body["metadata"].setdefault("annotations", {})[WARM_TARGET_ANNOTATION] = "n2"
    assert homes(known([N1, N2], ("n1", IMAGE)), body)[0] == (100, "n1")


def test_the_classs_own_terms_stay_beside_those_of_the_set() -> None:
    placed = place(user_pod(IMAGE), known([N1], ("n1", IMAGE)), settings(podClasses=WARM))
    assert [term["weight"] for term in node_terms(placed)] == [100, 100]


def test_another_schedulers_join_would_outvote_the_set_so_pods_with_warm_nodes_dont_join() -> None:
    classes = {"user": {**WARM["user"], "avoid": {"build": 2}}}
    rules = settings(scheduler={"target": "none"}, podClasses=classes)
    desk = Desk(rules, known([N1, N2], ("n1", IMAGE)))
    warm = desk.place(user_pod(IMAGE))
    assert homes_of(warm) == [(100, "n1"), (50, "n2")]
    assert pod_terms(warm, "podAffinity") == []
    assert len(pod_terms(warm, "podAntiAffinity")) == 1
    # Reviewed again it has its warm nodes, though the rule chooses none.
    assert desk.place(copy.deepcopy(warm)) == warm
    # Nor if all are full: it waits for a new node, or takes one that becomes free.
    full = desk.place(user_pod(IMAGE, nodeSelector={"pool": "nowhere"}))
    assert (homes_of(full), pod_terms(full, "podAffinity")) == ([], [])
    # Where no set is used it is `join` that packs.
    cold = place(user_pod(IMAGE), Facts(), rules)
    assert homes_of(cold) == []
    assert len(pod_terms(cold, "podAffinity")) == len(pod_terms(cold, "podAntiAffinity")) == 1
    # Roost's own scheduler puts the set first.
    own = place(user_pod(IMAGE), known([N1, N2], ("n1", IMAGE)), settings(podClasses=classes))
    assert len(pod_terms(own, "podAffinity")) == 1


def test_where_the_pull_of_an_image_fails_that_pullers_bring_its_users_are_sent_elsewhere() -> None:
    facts = replace(known([N1, N2]), failed_pulls=failed("n1", image=MANAGED))
    assert homes(facts, user_pod(MANAGED)) == [(100, "n2")]


def test_a_report_with_five_names_of_an_image_may_lack_a_name_of_what_is_there() -> None:
    names = [f"h.io/x:{number}" for number in range(6)]
    first = reported("h.io/z:1", *names[1:], count=3)
    after = reported(*names[:5], count=1)
    facts = WarmFacts().with_reports({"n1": (reported(), first)})
    assert held_of(facts.with_reports({"n1": (first, after)}), names[5]) == [names[5]]
    four = reported(*names[:4], count=1)
    assert held_of(facts.with_reports({"n1": (first, four)}), names[5]) == []
