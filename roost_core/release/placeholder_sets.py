"""Read `placeholders` of release.json. There, each set also has what it inherits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from roost_core.objects.requests import NODE_RESOURCES
from roost_core.objects.selectors import NodeRules, read_node_rules
from roost_core.placement.headroom_windows import Window
from roost_core.placement.labels import attract_label
from roost_core.release.reader import Reader
from roost_core.release.windows import parse_windows, read_time_zone

_LEARN_KEYS: Final = ("min", "max", "timeZone")
PRICE_KEYS: Final = ("waitingHour", "nodeHour", "monthlyCeiling")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """`placeholders[].learn`, with the set's prices."""

    min: int
    max: int
    # What an hour of one person's waiting is worth. All money is of the same currency.
    waiting_hour_price: float
    # What an hour of a node costs.
    node_hour_price: float
    # What learned placeholders may cost in thirty days. None: that follows from the prices and from
    # what the set's nodes cost.
    monthly_ceiling: float | None
    # A name of the IANA database.
    time_zone: str

    @property
    def waiting_worth(self) -> float:
        """How many node-hours an hour of one person's waiting is worth."""
        return self.waiting_hour_price / self.node_hour_price


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderSet:
    """One entry of `placeholders`."""

    name: str
    # The name of its StatefulSet.
    stateful_set: str
    # The set's mark: the label of the node that attracts its pods.
    label: str
    # Which nodes its pods can use.
    rules: NodeRules
    # How many placeholders there are outside all windows.
    replicas: int
    windows: tuple[Window, ...] = ()
    # What a pod requests: resource -> quantity as written.
    requests: Mapping[str, object] = field(default_factory=dict)
    # None: the number isn't learned.
    learn: LearnSettings | None = None


def others_on_same_nodes(
    placeholder_set: PlaceholderSet, sets: Iterable[PlaceholderSet]
) -> tuple[PlaceholderSet, ...]:
    """The other sets that use the same nodes, by what the values say: they have the same node
    selector, required node affinity and tolerations, and ask for the same devices.

    The order of terms and of tolerations doesn't matter; the order of expressions in a term does. A
    set with GPUs may select the nodes that have none, but can't use them.
    """
    nodes = _nodes_used(placeholder_set)
    return tuple(
        other
        for other in sets
        if other.name != placeholder_set.name and _nodes_used(other) == nodes
    )


def _nodes_used(placeholder_set: PlaceholderSet) -> tuple[object, ...]:
    """What decides which nodes a set uses: equal for sets with the same nodes."""
    rules = placeholder_set.rules
    terms = rules.required_node_terms
    asked = {name for name, quantity in placeholder_set.requests.items() if str(quantity) != "0"}
    devices = asked - NODE_RESOURCES
    return (
        rules.node_selector,
        # No term at all isn't the same as an empty list, which matches no node.
        None if terms is None else frozenset(terms),
        frozenset(rules.tolerations),
        devices,
    )


def read_placeholder_sets(
    read: Reader, value: object, release: str, namespace: str
) -> tuple[PlaceholderSet, ...]:
    """Read `placeholders` of a release. Faults go to the reader."""
    sets = []
    for index, entry in enumerate(read.items(value, "placeholders")):
        at = f"placeholders[{index}]"
        body = read.mapping(entry, at)
        name = read.text(body.get("name"), f"{at}.name")
        if not name:
            read.fault(f"{at}.name", body.get("name"), "a name")
        terms = read.items(body.get("requiredNodeTerms"), f"{at}.requiredNodeTerms")
        rules = read_node_rules(
            read.labels(body.get("nodeSelector"), f"{at}.nodeSelector"),
            # An empty list means no rule: the template then renders no affinity.
            terms or None,
            read.items(body.get("tolerations"), f"{at}.tolerations"),
        )
        resources = read.mapping(body.get("resources"), f"{at}.resources")
        placeholder_set = PlaceholderSet(
            name=name,
            stateful_set=read.text(body.get("statefulSet"), f"{at}.statefulSet"),
            label=attract_label(release, namespace, name),
            rules=rules,
            replicas=read.integer(body.get("replicas"), f"{at}.replicas"),
            windows=parse_windows(read, body.get("windows"), f"{at}.windows"),
            # A resource that has only a limit requests as much as its limit.
            requests={
                **read.mapping(resources.get("limits"), f"{at}.resources.limits"),
                **read.mapping(resources.get("requests"), f"{at}.resources.requests"),
            },
            learn=_read_learn(read, body, at),
        )
        sets.append(placeholder_set)
    return tuple(sets)


def _read_learn(read: Reader, body: Mapping[str, object], at: str) -> LearnSettings | None:
    """Read a set's `learn` and `prices`. at: the set's own key."""
    if body.get("learn") is None:
        return None
    key = f"{at}.learn"
    learn = read.mapping(body.get("learn"), key)
    read.known(learn, key, _LEARN_KEYS)
    low = read.integer(learn.get("min"), f"{key}.min")
    high = read.integer(learn.get("max"), f"{key}.max")
    if low > high:
        read.fault(f"{key}.min", low, f"a number up to max, which is {high}")
    prices_key = f"{at}.prices"
    prices = read.mapping(body.get("prices"), prices_key)
    read.known(prices, prices_key, PRICE_KEYS)
    ceiling = prices.get("monthlyCeiling")
    return LearnSettings(
        min=low,
        max=high,
        waiting_hour_price=read.price(prices.get("waitingHour"), f"{prices_key}.waitingHour"),
        # Above 0, because `waiting_worth` divides by it.
        node_hour_price=read.price_above_0(prices.get("nodeHour"), f"{prices_key}.nodeHour"),
        monthly_ceiling=(
            None if ceiling is None else read.price(ceiling, f"{prices_key}.monthlyCeiling")
        ),
        time_zone=read_time_zone(read, learn.get("timeZone"), f"{key}.timeZone"),
    )
