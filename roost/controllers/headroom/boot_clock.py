"""Measure how long a set's nodes boot: from when the first pod waits until a new node is ready.

Only the first node after a rest is measured. Pods that are gone may have asked for the later nodes:
when the set's number changes, a placeholder that waits is replaced by another, which has waited for
less time than the node took. Pure; times are Unix time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from roost_core.objects.node import Node
from roost_core.placement.headroom_history import MOST_BOOT_SECONDS

# A rest is a time without pods that wait and without new nodes. It is as long as nodes boot, within
# these limits: then no node that was asked for before is still to come.
LEAST_REST_SECONDS: Final = 300.0
# A pod that has waited for longer waits for something that no autoscaler brings, unless it is the
# pod that is measured.
MOST_REST_SECONDS: Final = 900.0
# A pod that waits may be replaced by another. If no pod waits for this long, no node was asked for.
REPLACED_SECONDS: Final = 45.0
# If the first pod still waits so long after a node got ready, it can't have asked for that node.
SEATED_SECONDS: Final = 60.0
# If the last look was longer ago, nobody knows what happened meanwhile.
LONGEST_LOOK_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class BootClock:
    """What is measured now."""

    # The last look, and the last one at which somebody waited or a node came.
    looked_at: float
    busy_at: float
    # Since when the pod has waited that asked for the node; None: no boot is measured.
    asked_at: float | None = None
    # The nodes that were there before, and still are.
    known: frozenset[str] = frozenset()

    @classmethod
    def begun(cls, now: float) -> BootClock:
        """Return a clock that starts now. now: Unix time."""
        return cls(looked_at=now, busy_at=now)

    def after_look(
        self,
        nodes_before: Set[str],
        nodes: Mapping[str, Node],
        waiting: Sequence[float],
        boot_seconds: float,
        now: float,
    ) -> tuple[BootClock, int | None]:
        """Return the clock after a look, and the boot that ended, in seconds; None: none did.

        nodes_before: the nodes at the look before. waiting: since when each pod has waited that no
        node has room for. boot_seconds: how long nodes boot, as far as is known.
        """
        if not 0 <= now - self.looked_at <= LONGEST_LOOK_SECONDS:
            return BootClock.begun(now), None
        rest_seconds = min(MOST_REST_SECONDS, max(LEAST_REST_SECONDS, boot_seconds))
        recent = [
            since for since in waiting if now - since < MOST_REST_SECONDS or since == self.asked_at
        ]
        is_busy = bool(recent) or not nodes.keys() <= nodes_before
        clock = replace(self, looked_at=now, busy_at=now if is_busy else self.busy_at)
        if self.asked_at is None:
            if not recent or now - self.busy_at < rest_seconds:
                return clock, None
            clock = replace(clock, asked_at=min(recent), known=frozenset(nodes_before))
        clock = replace(clock, known=clock.known & nodes.keys())
        return clock.measured(nodes, waiting, now)

    def measured(
        self, nodes: Mapping[str, Node], waiting: Sequence[float], now: float
    ) -> tuple[BootClock, int | None]:
        """Return the clock, and the boot that ended, in seconds; None: none did.

        The clock is stopped if a new node is ready, or if none can be expected any more.
        """
        if self.asked_at is None:
            return self, None
        stopped = BootClock(self.looked_at, self.busy_at)
        new_ready_times = [
            node.ready_since
            for name, node in nodes.items()
            if name not in self.known and node.ready_since is not None
        ]
        if new_ready_times:
            first_ready = min(new_ready_times)
            if self.asked_at in waiting:
                may_get_seated = now - first_ready < SEATED_SECONDS
                return self if may_get_seated else stopped, None
            boot_seconds = round(first_ready - self.asked_at)
            # A node that was ready before it was asked for says nothing.
            if 0 < boot_seconds <= MOST_BOOT_SECONDS:
                return stopped, boot_seconds
            return stopped, None
        if now - self.asked_at > MOST_BOOT_SECONDS or now - self.busy_at > REPLACED_SECONDS:
            return stopped, None
        return self, None
