"""Remember since when each node that hasn't come yet is asked for, to learn how long nodes boot.

Whoever waits first need not wait until the node is there: placeholders that wait are taken away
when people find other seats, and others wait in their place. But the autoscaler has asked by then,
and the node comes. So a request outlives those who made it, and the next node to come answers the
oldest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final, NamedTuple

# An autoscaler gives up a node that hasn't come by then (--max-node-provision-time of Cluster
# Autoscaler, and Karpenter's time to register).
GIVEN_UP_SECONDS: Final = 900.0
# Sums of sizes differ by rounding.
_ROUNDING: Final = 1e-6


class Waiter(NamedTuple):
    """A pod for which no node has room."""

    # Unix time.
    since: float
    # In placeholders.
    size: float


# Unix times, the oldest first: since when each node that hasn't come is asked for.
Requests = Sequence[float]


def requests_after(
    before: Requests,
    waited: Mapping[str, Waiter],
    waiting: Mapping[str, Waiter],
    *,
    vacant: int,
    per_node: int,
    now: float,
) -> tuple[float, ...]:
    """Return the requests with those that are new, and without those that were given up.

    waited, waiting: who waited at the last look, and who does now, by key of the pod. vacant: seats
    that nobody has, not even a placeholder: who waits while there are enough of them waits for
    something else. per_node: placeholders that fit a node; 0: not known.
    """
    new = sorted(waiter for key, waiter in waiting.items() if waited.get(key) != waiter)
    missing = sum(waiter.size for waiter in waiting.values()) - vacant
    requests = list(before)
    while len(requests) > _nodes_for(missing, per_node) and now - requests[0] > GIVEN_UP_SECONDS:
        del requests[0]
    missing -= sum(waiter.size for waiter in new)
    asked = max(len(requests), _nodes_for(missing, per_node))
    for waiter in new:
        missing += waiter.size
        more = _nodes_for(missing, per_node) - asked
        if more > 0:
            requests += [waiter.since] * more
            asked += more
    return tuple(sorted(requests))


def _nodes_for(size: float, per_node: int) -> int:
    """How many nodes hold so many placeholders."""
    if not per_node:
        return int(size > 0)
    return max(0, ceil(size / per_node - _ROUNDING))
