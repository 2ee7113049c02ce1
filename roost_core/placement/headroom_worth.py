"""Decide which seats are worth the nodes that only they keep: what people would wait against what
nodes cost.

A node is asked for before its users come. If they come, the node was there some minutes early: so
long it costs more than without. If they don't, it stands by until the autoscaler removes it. What
is gained is the time that its users would have waited for the same node. Seats are taken node by
node, those first that are likeliest to be used, as long as the waiting that a node is expected to
save is worth its expected cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Self

from roost_core.placement.headroom_account import Account

# How many seats were needed, and how much that counts (any weight).
Needs = Sequence[tuple[float, float]]

# For so long an autoscaler leaves a node that nobody needs, until it was seen (Cluster Autoscaler's
# --scale-down-unneeded-time).
GUESSED_IDLE_SECONDS: Final = 600.0
# A node that is used was ready so long before its users came: the time to spare, and people who
# come early.
EARLY_HOURS: Final = 4 / 60
# A node that several users share costs many times its standing by: newcomers go there, too, and
# keep it after others have left. The longer ahead it is asked for, the more newcomers. So it costs
# SHARED_COST times as much where nodes are asked for SHARED_AHEAD_MINUTES ahead, and
# MOST_SHARED_COST times where they are for MOST_SHARED_AHEAD_MINUTES. Measured by replays of terms
# (lab/benchmarks/term.py), with 18 users a node.
SHARED_COST: Final = 8.0
SHARED_AHEAD_MINUTES: Final = 4
MOST_SHARED_COST: Final = 30.0
MOST_SHARED_AHEAD_MINUTES: Final = 15
# Without `prices.monthlyCeiling`, the ceiling is this share of what the nodes would cost without
# learning. From half of the ceiling on, waiting counts less: in drawn terms and in a university of
# ten times their size, learning cost less than that (docs/decisions/0072).
CEILING_SHARE: Final = 0.15
# But never less than so many hours of waiting are worth, or than so many node-hours cost: a small
# hub has few nodes. The lesser of the two, so that one price in other money doesn't raise it.
LEAST_CEILING_WAITING_HOURS: Final = 50.0
LEAST_CEILING_NODE_HOURS: Final = 500.0
# Needs that are rarer add no seat to a node that is worth having.
_RARE: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What waiting and nodes are worth to each other, on the nodes of one set."""

    # Node-hours that an hour of waiting for one seat is worth. 0: no node stands by.
    node_hours: float
    # How many placeholders fit a node.
    per_node: int
    # How long whoever needs a new node waits, in hours.
    wait_hours: float
    # What a node costs that nobody uses, and one that is used.
    unused_hours: float
    used_hours: float
    # By how much both are dearer because users share nodes.
    shared_cost: float = 1.0

    def going_on(self) -> Worth:
        """Return it for seats that are kept all the time: then no node is removed and asked for
        again.
        """
        return replace(self, unused_hours=self.wait_hours)

    def cost_hours(self, share_used: float) -> float:
        """Return the expected node-hours of a node. share_used: how likely anybody comes there."""
        return self.shared_cost * (
            share_used * self.used_hours + (1 - share_used) * self.unused_hours
        )

    def is_worth_it(self, users: float, share_used: float) -> bool:
        """Whether a node is worth its cost. users: how many are expected on it."""
        return users * self.wait_hours * self.node_hours >= self.cost_hours(share_used)


def worth_of(
    node_hours: float,
    per_node: int,
    ahead_minutes: int,
    idle_seconds: float = GUESSED_IDLE_SECONDS,
    *,
    seats_per_person: float = 1.0,
) -> Worth:
    """Return what waiting is worth where nodes are asked for so many minutes ahead.

    node_hours: what an hour of one person's waiting is worth. idle_seconds: for so long an empty
        node stays until the autoscaler removes it. seats_per_person: who takes two seats waits
        once. Below 1 it counts as 1, because what small users add was never measured.
    """
    ahead_hours = ahead_minutes / 60
    per_node = max(1, per_node)
    shared_minutes = min(max(ahead_minutes, SHARED_AHEAD_MINUTES), MOST_SHARED_AHEAD_MINUTES)
    share_of_most = (shared_minutes - SHARED_AHEAD_MINUTES) / (
        MOST_SHARED_AHEAD_MINUTES - SHARED_AHEAD_MINUTES
    )
    shared_cost = SHARED_COST + (MOST_SHARED_COST - SHARED_COST) * share_of_most
    return Worth(
        node_hours=node_hours / max(1.0, seats_per_person),
        per_node=per_node,
        wait_hours=ahead_hours,
        unused_hours=ahead_hours + idle_seconds / 3600,
        used_hours=EARLY_HOURS,
        # A node that one user fills is nobody else's.
        shared_cost=1 + (shared_cost - 1) * (1 - 1 / per_node),
    )


def seats_worth(needs: Needs, worth: Worth, room: int = 0) -> int:
    """Return how many placeholders to keep in all. 0: no further node is worth it.

    needs: how many seats may be needed, with weights of any sum. room: seats that are free beside
    users; they cost nothing.
    """
    total = sum(weight for _, weight in needs)
    if total <= 0:
        return 0
    placeholders = 0
    # Seats without the node that is weighed next.
    had = room
    while True:
        beyond = [(need - had, weight) for need, weight in needs if need > had and weight > 0]
        if not beyond:
            return placeholders
        share_used = sum(weight for _, weight in beyond) / total
        users = sum(min(seats, worth.per_node) * weight for seats, weight in beyond) / total
        if not worth.is_worth_it(users, share_used):
            return placeholders
        placeholders = had + _most_of_node(beyond, total, worth.per_node)
        had += worth.per_node


def _most_of_node(beyond: Needs, total: float, per_node: int) -> int:
    """How many seats of a node that is worth it may be needed, at least 1. Those that are too rare
    aren't asked for.

    beyond: the needs without what is had before that node. total: the sum of all weights.
    """
    share = 0.0
    for seats, weight in sorted(beyond, reverse=True):
        share += weight / total
        if share >= _RARE:
            return max(1, round(min(seats, per_node)))
    return 1


def cost_between(needs: Needs, worth: Worth, low: int, high: int) -> float:
    """Return the expected node-hours of the nodes for the seats beyond `low`, up to `high`."""
    total = sum(weight for _, weight in needs)
    cost = 0.0
    for first_seat in range(low, high, worth.per_node):
        weight_beyond = sum(weight for need, weight in needs if need > first_seat)
        cost += worth.cost_hours(weight_beyond / total)
    return cost


def least_ceiling(waiting_hour_price: float, node_hour_price: float) -> float:
    """What learning may cost in thirty days on a hub of few nodes, without `monthlyCeiling`."""
    return min(
        LEAST_CEILING_WAITING_HOURS * waiting_hour_price, LEAST_CEILING_NODE_HOURS * node_hour_price
    )


class Ceiling(NamedTuple):
    """What learning has cost in thirty days, and the most that it may; money."""

    spent: float
    most: float

    @classmethod
    def of(
        cls,
        account: Account,
        *,
        waiting_hour_price: float,
        node_hour_price: float,
        monthly_ceiling: float | None,
    ) -> Self:
        """Compare what the node-hours of the last thirty days cost with `prices.monthlyCeiling`.

        monthly_ceiling: None where it isn't set: the ceiling follows from the other prices.
        """
        most = monthly_ceiling
        if most is None:
            nodes_cost = account.month_node_hours_without * node_hour_price
            least = least_ceiling(waiting_hour_price, node_hour_price)
            most = max(least, CEILING_SHARE * nodes_cost)
        return cls(account.month_node_hours * node_hour_price, most)

    @property
    def left(self) -> float:
        """Which share of waiting's worth counts: from 1 down to 0.

        Nothing changes up to half of the ceiling. Beyond it, what saves least for its node-hours
        goes first, a little more each day, so that no week collapses.
        """
        if self.most <= 0:
            return 0.0
        left = min(1.0, max(0.0, 2 * (1 - self.spent / self.most)))
        return left * left

    def cut(self, worth: Worth) -> Worth:
        """Return what waiting is worth under the ceiling."""
        return replace(worth, node_hours=worth.node_hours * self.left)
