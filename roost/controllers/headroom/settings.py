"""Read how many placeholders each set should have, and when, from release.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from roost_core.placement.headroom_windows import MAX_REPLICAS, Window, parse_windows, read_time_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from roost.controllers.contract.release import ReleaseDocument
    from roost_core.objects.pod import Pod
    from roost_core.objects.selectors import NodeRules
    from roost_core.placement.settings_reader import Reader

    # Whether a pod is a user's, by its labels and those of its namespace, as a Snapshot has them.
    IsUser = Callable[[Pod, Mapping[str, Mapping[str, str]] | None], bool]

_LEARN_KEYS: Final = ("quantile", "min", "max", "bootSeconds", "timeZone")
# As with hours of growth: a longer boot would be no boot.
_MOST_BOOT_SECONDS: Final = 3600


class CountBy(StrEnum):
    """`placeholders[].countBy`: what one replica is."""

    PODS = "pods"
    NODES = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnSettings:
    """`placeholders[].learn`."""

    # The share of hours in which the placeholders should be enough, above 0 and below 1.
    quantile: float
    min: int
    max: int
    # From the request of a node until users start there.
    boot_seconds: int
    # A name of the IANA database.
    time_zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomSet:
    """One entry of `placeholders`."""

    name: str
    # Name of its StatefulSet, or of its CapacityBuffer and PodTemplate.
    stateful_set: str
    # Outside all windows.
    replicas: int
    count_by: CountBy
    windows: tuple[Window, ...]
    # Which nodes its pods can use.
    rules: NodeRules
    # `resources.requests`: used until a node shows better ones. Resource -> quantity.
    first_requests: Mapping[str, object] = field(default_factory=dict)
    # None: the number isn't learned.
    learn: LearnSettings | None = None
    # The ConfigMap with what was learned; its keys are names of sets.
    history_name: str = ""
    # Whether a pod is a user's.
    is_user: IsUser = lambda _pod, _namespaces: False
    # An autoscaler keeps the room, without pods; their size is always the values'.
    has_buffer: bool = False

    @property
    def fills_nodes(self) -> bool:
        """Whether a replica is a whole node, of the size that nodes turn out to have."""
        return self.count_by is CountBy.NODES and not self.has_buffer


def read_headroom_sets(release: ReleaseDocument) -> tuple[HeadroomSet, ...]:
    """Read the sets that headroom scales or resizes: with windows, `learn` or nodes; all if events can be booked."""
    read, document = release.read, release.document
    sets = []
    for index, (pool, entry) in enumerate(
        zip(release.sets, read.items(document.get("placeholders"), "placeholders"), strict=True)
    ):
        at = f"placeholders[{index}]"
        body = entry if isinstance(entry, dict) else {}
        headroom_set = HeadroomSet(
            name=pool.name,
            stateful_set=pool.stateful_set,
            replicas=read.whole(body.get("replicas"), f"{at}.replicas", 0, MAX_REPLICAS),
            count_by=read.choice(body.get("countBy", CountBy.PODS.value), f"{at}.countBy", CountBy),
            windows=parse_windows(read, body.get("windows"), f"{at}.windows"),
            rules=pool.rules,
            first_requests=_requests(body.get("resources")),
            learn=read_learn(read, body.get("learn"), f"{at}.learn"),
            history_name=read.text(document.get("headroomHistory", ""), "headroomHistory"),
            is_user=release.is_users,
            has_buffer=release.has_buffers,
        )
        if headroom_set.learn is not None and headroom_set.count_by is CountBy.NODES:
            read.fault(f"{at}.learn", body.get("learn"), "countBy: pods; what is learned are placeholders, not nodes")
        has_own = headroom_set.windows or headroom_set.learn is not None or headroom_set.fills_nodes
        if release.events is not None or has_own:
            sets.append(headroom_set)
    return tuple(sets)


def read_learn(read: Reader, value: object, key: str) -> LearnSettings | None:
    """Read `learn` of a set; faults go to the reader. None: nothing is learned."""
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
    boot_seconds = read.whole(body.get("bootSeconds"), f"{key}.bootSeconds", 60, _MOST_BOOT_SECONDS)
    return LearnSettings(quantile=float(quantile), min=low, max=high, boot_seconds=boot_seconds, time_zone=zone)


def _requests(resources: object) -> Mapping[str, object]:
    requests = resources.get("requests") if isinstance(resources, dict) else None
    return requests if isinstance(requests, dict) else {}
