"""Several pools of nodes: their machines, prices and limits, and which users choose which pool.

Records only; `pools_file` reads them. All are hashable, because assumptions are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roost_core.objects.selectors import Taint


class Expander(StrEnum):
    """How Cluster Autoscaler chooses among the pools that could take waiting pods (--expander)."""

    RANDOM = "random"
    LEAST_WASTE = "least-waste"
    MOST_PODS = "most-pods"
    PRICE = "price"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One pool: equal machines under one pair of limits, in one zone or several."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    # Of its machines, for people.
    machine_type: str = ""
    # Empty: its nodes have no zone.
    zones: tuple[str, ...] = ()
    # Allocatable to pods, less what daemons request.
    cpu_millicores: int
    memory_bytes: int
    pods: int = 110
    # 0: endless.
    disk_bytes: int = 0
    # Extended resources, such as nvidia.com/gpu.
    resources: tuple[tuple[str, int], ...] = ()
    # From the request of a node until it is Ready: median and sigma of a log-normal.
    boot_seconds: float
    boot_sigma: float
    # Of one node for an hour, in `Pools.currency`.
    price: float = 0.0
    # How often the cloud takes one node away, on average.
    interruptions_per_hour: float = 0.0
    # In all zones together.
    min_nodes: int = 0
    max_nodes: int = 100
    # For Expander.PRIORITY, the highest first; None: after all that have one.
    priority: int | None = None
    # The pool with other machines, which --suggest tries.
    alternatives: tuple[Pool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserProfile:
    """One entry of zero-to-jupyterhub's profileList, as far as it decides where its users fit."""

    name: str
    # Of users, relative to the others' shares.
    share: float = 1.0
    node_selector: tuple[tuple[str, str], ...] = ()
    # (key, operator, value, effect) each.
    tolerations: tuple[tuple[str, str, str, str], ...] = ()
    # None: as the assumptions say.
    cpu_millicores: int | None = None
    memory_bytes: int | None = None
    # Extended resources, such as nvidia.com/gpu.
    resources: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """What a pools file says."""

    # Its name, for messages.
    file: str
    pools: tuple[Pool, ...]
    # Lines of `profiles` in the file.
    profiles: tuple[UserProfile, ...] = ()
    profile_lines: tuple[int, ...] = ()
    expander: Expander = Expander.LEAST_WASTE
    currency: str = ""
    # Share of users who return to a volume, and so to its zone.
    claims_share: float = 0.0

    def __str__(self) -> str:
        return f"{', '.join(pool.name for pool in self.pools)} ({self.file})"
