"""Read how many placeholders each set should have, and when, from controllers.json."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from roost.controllers.contract.bookings import read_booking_settings
from roost.controllers.contract.placeholder_sets import read_placeholder_sets
from roost_core.placement.headroom_windows import MAX_REPLICAS, Window, parse_windows
from roost_core.placement.settings_reader import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_core.placement.nodes import NodeRules
    from roost_core.placement.settings_reader import Document


class CountBy(StrEnum):
    """`placeholders[].countBy`: what one replica is."""

    PODS = "pods"
    NODES = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomSet:
    """One entry of `placeholders`."""

    name: str
    # Name of its StatefulSet.
    stateful_set: str
    # Outside all windows.
    replicas: int
    count_by: CountBy
    windows: tuple[Window, ...]
    # Which nodes its pods can use.
    rules: NodeRules
    # `resources.requests`: used until a node shows better ones. Resource -> quantity.
    first_requests: Mapping[str, object] = field(default_factory=dict)


def read_headroom_sets(read: Reader, document: Document) -> tuple[HeadroomSet, ...]:
    """Read the sets that headroom scales or resizes: with windows, counting nodes, or any if events can be booked."""
    if document.get("placeholderBackend") == "capacityBuffer":
        return ()
    # The mover reads the same, and reports its faults.
    pools = read_placeholder_sets(Reader(), document, "", "")
    # `bookings.py` reports its faults.
    events = read_booking_settings(Reader(), document)
    sets = []
    for index, (pool, entry) in enumerate(
        zip(pools, read.items(document.get("placeholders"), "placeholders"), strict=True)
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
        )
        if events is not None or headroom_set.windows or headroom_set.count_by is CountBy.NODES:
            sets.append(headroom_set)
    return tuple(sets)


def _requests(resources: object) -> Mapping[str, object]:
    requests = resources.get("requests") if isinstance(resources, dict) else None
    return requests if isinstance(requests, dict) else {}
