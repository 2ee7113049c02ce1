"""Of hubs that share nodes each counts what is there: after any changes, in any order, merged at any moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import node, settings
from webhook.rules.facts import Nodes, WarmFacts, WarmPod
from webhook.shared_pools import Labels, Loads, SharedPools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.placement.settings import Settings
    from webhook.node_feed import NodeFeed

HUBS = ("hub-a", "hub-b", "hub-c")
NODES = ("node-1", "node-2")
USERS: Labels = frozenset({("component", "singleuser-server")})
POOL = {"matchLabels": {"pool": "users"}}
CENTRAL = {"release": "roost", "namespace": "roost-system"}
RULES = {name: settings(namespace=name, central=CENTRAL, sharedNamespaces=POOL) for name in HUBS}

bound = st.builds(WarmPod, st.sampled_from(NODES), st.sampled_from([("image-1",), ("image-2",)]), st.booleans())
# On its way: it may say of its node whatever its author likes.
coming = st.builds(WarmPod, st.sampled_from((*NODES, "", "elsewhere")), st.just(()))
pods = st.dictionaries(st.sampled_from(["one", "two", "three"]), bound | coming)
# A hub's pods from now on, or a change of its namespace's label, or a merge.
steps = st.lists(
    st.tuples(st.sampled_from(HUBS), pods) | st.tuples(st.sampled_from(HUBS), st.booleans()) | st.none(), max_size=20
)


@dataclass
class Hub:
    settings: Settings
    loads: Loads = field(default_factory=dict)
    common: Mapping[Labels, WarmFacts] = field(default_factory=dict)

    @property
    def pods(self) -> Mapping[str, WarmPod]:
        return self.loads.get(USERS, {})


class Feed:
    def trusted(self) -> tuple[Nodes, bool]:
        return KNOWN, True


KNOWN = Nodes(map(node, NODES))


@given(steps)
def test_each_hub_counts_its_own_pods_and_the_bound_ones_of_the_others_in_its_pool(taken: list[Any]) -> None:
    hubs = {name: Hub(RULES[name]) for name in HUBS}
    labels: dict[str, Mapping[str, str]] = {name: {"pool": "users"} for name in HUBS}
    pools = SharedPools(cast("NodeFeed", Feed()))
    for step in (*taken, None):
        if step is None:
            pools.follow(hubs, labels)
            pools.merge()
        elif isinstance(step[1], bool):
            labels[step[0]] = {"pool": "users"} if step[1] else {}
        else:
            hubs[step[0]].loads = {USERS: {f"{step[0]}/{name}": pod for name, pod in step[1].items()}}
    members = {name for name in HUBS if labels[name]}
    for name, hub in hubs.items():
        others = [hubs[other] for other in members - {name}] if name in members else []
        own = WarmFacts(hub.pods)
        seen = hub.common[USERS].seen_by(own) if others else own
        assert bool(hub.common) is bool(others)
        wanted = Counter(pod.node for pod in hub.pods.values())
        wanted.update(pod.node for other in others for pod in other.pods.values() if pod.images)
        assert {each: seen.pods_on(each) for each in (*NODES, "", "elsewhere")} == {
            each: wanted[each] for each in (*NODES, "", "elsewhere")
        }
        for pod in (pod for other in (hub, *others) for pod in other.pods.values() if pod.images):
            assert seen.holds(pod.node, *pod.images)
        used = {image for pod in hub.pods.values() for image in pod.images}
        assert seen.uses_only(used)
        assert all(not seen.uses_only(used - {image}) for image in used)
