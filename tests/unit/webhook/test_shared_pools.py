"""Hubs of a central release that share nodes: what their warm sets count of each other, and what they don't."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from roost_core.placement.labels import CENTRAL_LABEL, NAMESPACE_NAME_LABEL
from tests.builders import node, settings
from webhook.rules.facts import MAX_IMAGES_A_NODE, Nodes, WarmFacts, WarmPod
from webhook.shared_pools import (
    MAX_IMAGES_A_POD,
    Labels,
    Loads,
    SharedPools,
    counts_for_others,
    labels_of,
    pool_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.placement.settings import Settings
    from webhook.node_feed import NodeFeed

POOL = {"matchLabels": {"pool": "users"}}
IN_POOL = {"pool": "users"}
USERS: Labels = frozenset({("component", "singleuser-server")})
IMAGE = "docker.io/team/x:latest"


def rules(namespace: str, shared: object = POOL, **more: object) -> Settings:
    central = {"release": "roost", "namespace": "roost-system"}
    return settings(namespace=namespace, central=central, sharedNamespaces=shared, **more)


def on(name: str, image: str = IMAGE) -> WarmPod:
    return WarmPod(name, (image,))


@dataclass
class Hub:
    settings: Settings
    loads: Loads = field(default_factory=dict)
    common: Mapping[Labels, WarmFacts] = field(default_factory=dict)

    def has(self, **pods: WarmPod) -> None:
        """From now on these are its users' pods."""
        keyed = {f"{self.settings.namespace}/{name}": pod for name, pod in pods.items()}
        self.loads = {USERS: keyed}

    @property
    def warm(self) -> WarmFacts:
        return self.common[USERS]


class Feed:
    """Nodes that a test sets."""

    def __init__(self) -> None:
        self.known: Nodes | None = Nodes([node("node-1"), node("node-2")])
        self.is_recent = True

    def trusted(self) -> tuple[Nodes | None, bool]:
        return self.known, self.is_recent

    def add_reader(self, on_change: Any) -> None: ...

    def remove_reader(self, on_change: Any) -> None: ...


class Site:
    def __init__(self, **hubs: Hub) -> None:
        self.feed = Feed()
        self.hubs = {name.replace("_", "-"): hub for name, hub in hubs.items()}
        self.labels: dict[str, Mapping[str, str]] = {name: dict(IN_POOL) for name in self.hubs}
        self.pools = SharedPools(cast("NodeFeed", self.feed))

    def merge(self) -> None:
        self.pools.follow(self.hubs, self.labels)
        self.pools.merge()


def two(**more: object) -> tuple[Site, Hub, Hub]:
    first, second = Hub(rules("hub-a", **more)), Hub(rules("hub-b", **more))
    return Site(hub_a=first, hub_b=second), first, second


def test_each_hub_of_a_pool_gets_the_bound_users_of_all() -> None:
    site, first, second = two()
    first.has(ada=on("node-1"))
    second.has(ben=on("node-2"), eve=on("node-2"))
    site.merge()
    assert first.warm is second.warm
    assert (first.warm.pods_on("node-1"), first.warm.pods_on("node-2")) == (1, 2)
    assert first.warm.holders(IMAGE) == {"node-1", "node-2"}
    second.has(ben=on("node-2"))
    site.pools.merge()
    assert first.warm.pods_on("node-2") == 1


def test_a_pod_that_is_not_bound_counts_for_its_own_hub_alone_wherever_it_says_it_goes() -> None:
    site, first, second = two()
    second.has(ben=WarmPod("node-1", ()))
    site.merge()
    assert first.warm.pods_on("node-1") == 0
    own = WarmFacts(second.loads[USERS])
    assert second.warm.seen_by(own).pods_on("node-1") == 1
    # Bound by now: it counts once, and for all.
    second.has(ben=on("node-2"))
    site.pools.merge()
    assert second.warm.seen_by(own).pods_on("node-1") == 0
    assert second.warm.seen_by(own).pods_on("node-2") == first.warm.pods_on("node-2") == 1


def test_whether_pullers_bring_all_images_is_asked_of_the_hubs_own_pods() -> None:
    site, first, second = two()
    first.has(ada=on("node-1", "docker.io/a/a:1"))
    second.has(ben=on("node-1", "docker.io/b/b:1"))
    site.merge()
    own = WarmFacts(first.loads[USERS])
    assert not first.warm.uses_only({"docker.io/a/a:1"})
    assert first.warm.seen_by(own).uses_only({"docker.io/a/a:1"})
    # The table of all hubs is as it was.
    assert not first.warm.uses_only({"docker.io/a/a:1"})


@pytest.mark.parametrize(
    ("other", "labels"),
    [
        (rules("hub-b", None), IN_POOL),
        (rules("hub-b", {"matchLabels": {"pool": "other"}}), {"pool": "other"}),
        (rules("hub-b", {}), IN_POOL),
        (rules("hub-b"), {}),
        (rules("hub-b"), {"pool": "other"}),
    ],
)
def test_it_takes_both_the_hubs_rules_and_its_namespaces_label(other: Settings, labels: Mapping[str, str]) -> None:
    site, first, _ = two()
    stranger = Hub(other)
    site.hubs["hub-b"], site.labels["hub-b"] = stranger, labels
    first.has(ada=on("node-1"))
    stranger.has(mallory=on("node-1"))
    site.merge()
    # With nobody to share with, each has its own pods as without a pool.
    assert first.common == stranger.common == {}


def test_selectors_that_are_written_differently_name_one_pool() -> None:
    same = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["users"]}]}
    known = {"hub-a": IN_POOL, "hub-b": IN_POOL}
    assert pool_of(rules("hub-a"), known) == pool_of(rules("hub-b", same), known) is not None


NOT_OTHERS = {"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]}
NOT_IN = {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["other"]}]}
ANY_NAME = {"matchExpressions": [{"key": NAMESPACE_NAME_LABEL, "operator": "Exists"}]}
SERVED = {"matchLabels": {CENTRAL_LABEL: "roost.roost-system"}}
EXISTS = {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
NAMES = {"matchExpressions": [{"key": NAMESPACE_NAME_LABEL, "operator": "In", "values": ["hub-a", "hub-b"]}]}


@pytest.mark.parametrize(
    ("selector", "label", "is_shared"),
    [
        ({}, {}, False),
        (NOT_OTHERS, {}, False),
        (NOT_IN, IN_POOL, False),
        (ANY_NAME, IN_POOL, False),
        (SERVED, IN_POOL, False),
        (EXISTS, IN_POOL, True),
        (POOL | NOT_IN, IN_POOL, True),
        (NAMES, {}, True),
    ],
)
def test_a_selector_that_any_served_namespace_meets_names_no_pool(
    selector: object, label: Mapping[str, str], is_shared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Hub(rules("hub-a", selector)), Hub(rules("hub-b", selector))
    site = Site(hub_a=first, hub_b=second)
    site.labels = {name: {**label, CENTRAL_LABEL: "roost.roost-system"} for name in site.hubs}
    second.has(mallory=on("node-1"))
    site.merge()
    assert bool(first.common) == is_shared
    assert ("must require a label" in caplog.text) == (not is_shared)


def test_a_class_that_one_hub_alone_has_gets_no_table() -> None:
    site, first, second = two()
    more = {"match": {"labels": {"component": "batch"}}, "warm": {"podsPerNode": 4}}
    first.settings = rules("hub-a", podClasses={"batch": more})
    first.has(ada=on("node-1"))
    site.merge()
    assert set(first.common) == set(second.common) == {USERS}


def test_one_pods_many_names_push_no_image_of_another_hub_out() -> None:
    site, first, second = two()
    first.has(ada=on("node-1"))
    site.merge()
    many = tuple(f"docker.io/mallory/x:{number}" for number in range(MAX_IMAGES_A_NODE))
    second.has(mallory=WarmPod("node-1", many))
    site.pools.merge()
    first.has()
    site.pools.merge()
    assert first.warm.holders(IMAGE) == {"node-1"}
    assert first.warm.holders(many[MAX_IMAGES_A_POD - 1]) == {"node-1"}
    assert not first.warm.holders(many[MAX_IMAGES_A_POD])
    assert first.warm.pods_on("node-1") == 1


def test_a_hub_that_leaves_takes_its_users_along() -> None:
    site, first, second = two()
    third = site.hubs["hub-c"] = Hub(rules("hub-c"))
    site.labels["hub-c"] = IN_POOL
    first.has(ada=on("node-1"))
    third.has(eve=on("node-1"))
    site.merge()
    assert first.warm.pods_on("node-1") == 2
    # The operator takes the label away.
    site.labels["hub-c"] = {}
    site.merge()
    assert second.warm.pods_on("node-1") == 1
    assert third.common == {}
    del site.hubs["hub-b"]
    site.merge()
    assert first.common == second.common == {}


def test_users_of_a_hub_without_a_warm_set_take_room_in_the_others() -> None:
    site, first, _ = two()
    cold = rules("hub-b", podClasses={"user": {"warm": None}})
    second = site.hubs["hub-b"] = Hub(cold)
    second.has(ben=on("node-1"))
    site.merge()
    assert first.warm.pods_on("node-1") == 1
    assert second.common == {}
    assert counts_for_others(cold, cold.classes["user"])
    assert not counts_for_others(cold, cold.classes["placeholder"])
    alone = rules("hub-b", None)
    assert not counts_for_others(alone, alone.classes["user"])


def test_classes_meet_by_their_labels_and_not_by_their_names() -> None:
    site, first, _ = two()
    match = {"match": {"labels": {"component": "singleuser-server"}}}
    other = rules("hub-b", podClasses={"user": None, "people": {**match, "warm": {"podsPerNode": 4}}})
    second = site.hubs["hub-b"] = Hub(other)
    assert labels_of(other.classes["people"]) == USERS
    second.has(ben=on("node-1"))
    site.merge()
    assert first.warm.pods_on("node-1") == 1
    assert set(second.common) == {USERS}


def test_images_go_with_their_node_and_come_with_its_report() -> None:
    site, first, second = two()
    second.has(ben=on("node-2"))
    site.merge()
    assert first.warm.holders(IMAGE) == {"node-2"}
    known = cast("Nodes", site.feed.known)
    site.feed.known = known.updated({"node-2": None})
    second.has()
    site.pools.merge()
    assert not first.warm.holders(IMAGE)
    reporting = replace(node("node-1"), images=("docker.io/team/y:latest",), image_count=1)
    site.feed.known = site.feed.known.updated({"node-1": reporting})
    site.feed.is_recent = False
    site.pools.merge()
    assert not first.warm.holders("docker.io/team/y:latest")
    site.feed.is_recent = True
    site.pools.merge()
    assert first.warm.holders("docker.io/team/y:latest") == {"node-1"}
    # A class that comes later learns what was reported before.
    site.pools.follow({}, {})
    site.pools.merge()
    site.merge()
    assert first.warm.holders("docker.io/team/y:latest") == {"node-1"}


def test_while_nothing_changes_it_is_the_same_table() -> None:
    site, first, second = two()
    second.has(ben=on("node-2"))
    site.merge()
    before = first.warm
    second.has(ben=on("node-2"))
    common = first.common
    site.merge()
    assert first.warm is before
    assert first.common is common


def test_a_fault_is_survived_and_its_merge_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    site, first, second = two()
    monkeypatch.setattr("webhook.shared_pools.RETRY_SECONDS", 0.01)
    monkeypatch.setattr("webhook.shared_pools.MERGE_SECONDS", 0.01)
    second.has(ben=on("node-2"))
    merges, stop, is_done = site.pools.merge, threading.Event(), threading.Event()
    tries: list[int] = []

    def faulty() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("once")
        merges()
        is_done.set()

    monkeypatch.setattr(site.pools, "merge", faulty)
    site.pools.follow(site.hubs, site.labels)
    thread = threading.Thread(target=site.pools.run, args=(stop,))
    thread.start()
    try:
        assert is_done.wait(10)
    finally:
        stop.set()
        thread.join()
    assert first.warm.pods_on("node-2") == 1


def test_a_hub_whose_selector_cannot_be_read_keeps_no_others_from_sharing() -> None:
    site, first, second = two()
    odd = replace(rules("hub-0"), shared_namespaces={"matchExpressions": [7]})
    site.hubs["hub-0"], site.labels["hub-0"] = Hub(odd), IN_POOL
    second.has(ben=on("node-1"))
    site.merge()
    assert first.warm.pods_on("node-1") == 1
    assert site.hubs["hub-0"].common == {}


def test_a_hub_that_its_own_selector_does_not_select_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    site, _, _ = two()
    site.labels["hub-b"] = {}
    site.merge()
    site.merge()
    assert caplog.text.count("hub=hub-b: its warm sets count its own pods alone") == 1
