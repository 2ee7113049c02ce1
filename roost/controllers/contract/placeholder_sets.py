"""Read the placeholder sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from roost_core.objects.selectors import NodeRules, read_node_rules
from roost_core.placement.headroom_windows import MAX_REPLICAS, Window
from roost_core.placement.labels import attract_label
from roost_core.release.reader import Reader
from roost_core.release.settings import ReleaseSettings
from roost_core.release.windows import parse_windows, read_time_zone

_LEARN_KEYS: Final = ("quantile", "min", "max", "costPercent", "timeZone")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """`placeholders[].learn`."""

    # The share of minutes in which the placeholders should be enough, above 0 and below 1.
    quantile: float
    min: int
    max: int
    # Of the node-hours of the set's nodes, how many only placeholders may keep; 50 if left out.
    cost_percent: int
    # A name of the IANA database.
    time_zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceholderSet:
    """One entry of `placeholders`."""

    name: str
    # Name of its StatefulSet.
    stateful_set: str
    # The mark: on the node that attracts its pods.
    label: str
    # Which nodes its pods can use.
    rules: NodeRules
    # Outside all windows.
    replicas: int
    windows: tuple[Window, ...] = ()
    # What a pod requests: resource -> quantity as written.
    requests: Mapping[str, object] = field(default_factory=dict)
    # None: the number isn't learned.
    learn: LearnSettings | None = None


def read_placeholder_sets(release: ReleaseSettings) -> tuple[PlaceholderSet, ...]:
    """Read `placeholders`. Faults go to the release's reader."""
    read = release.read
    sets = []
    for index, entry in enumerate(read.items(release.document.get("placeholders"), "placeholders")):
        at = f"placeholders[{index}]"
        body = read.mapping(entry, at)
        name = read.text(body.get("name"), f"{at}.name")
        if not name:
            read.fault(f"{at}.name", body.get("name"), "a name")
        terms = read.items(body.get("requiredNodeTerms"), f"{at}.requiredNodeTerms")
        rules = read_node_rules(
            read.labels(body.get("nodeSelector"), f"{at}.nodeSelector"),
            # The template renders no affinity for an empty list.
            terms or None,
            read.items(body.get("tolerations"), f"{at}.tolerations"),
        )
        resources = read.mapping(body.get("resources"), f"{at}.resources")
        placeholder_set = PlaceholderSet(
            name=name,
            stateful_set=read.text(body.get("statefulSet"), f"{at}.statefulSet"),
            label=attract_label(release.name, release.namespace, name),
            rules=rules,
            replicas=read.whole(body.get("replicas"), f"{at}.replicas", 0, MAX_REPLICAS),
            windows=parse_windows(read, body.get("windows"), f"{at}.windows"),
            # What only has a limit requests as much.
            requests={
                **read.mapping(resources.get("limits"), f"{at}.resources.limits"),
                **read.mapping(resources.get("requests"), f"{at}.resources.requests"),
            },
            learn=_read_learn(read, body.get("learn"), f"{at}.learn"),
        )
        sets.append(placeholder_set)
    return tuple(sets)


def _read_learn(read: Reader, value: object, key: str) -> LearnSettings | None:
    if value is None:
        return None
    body = read.mapping(value, key)
    read.known(body, key, _LEARN_KEYS)
    quantile = body.get("quantile")
    if isinstance(quantile, bool) or not isinstance(quantile, int | float) or not 0 < quantile < 1:
        read.fault(f"{key}.quantile", quantile, "a number above 0 and below 1, like 0.9")
        quantile = 0.9
    zone = read_time_zone(read, body.get("timeZone"), f"{key}.timeZone")
    low = read.whole(body.get("min"), f"{key}.min", 0, MAX_REPLICAS)
    high = read.whole(body.get("max"), f"{key}.max", 0, MAX_REPLICAS)
    if low > high:
        read.fault(f"{key}.min", low, f"a number up to max, which is {high}")
    cost = read.whole(body.get("costPercent", 50), f"{key}.costPercent", 0, 100)
    return LearnSettings(quantile=float(quantile), min=low, max=high, cost_percent=cost, time_zone=zone)
