"""What `--suggest` searches beside the values: the machines of pools, and when the autoscaler removes nodes.

Only with a pools file: it says which machines there are to choose from.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from roost_lab.simulator.setup.assumptions import Autoscaler
from roost_lab.simulator.setup.pools_file import with_pools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roost_lab.simulator.setup.assumptions import Assumptions
    from roost_lab.simulator.setup.pools import Pool

UNNEEDED: Final = "unneeded, s"
THRESHOLD: Final = "utilisation threshold, %"
CONSOLIDATE: Final = "consolidateAfter, s"
_MACHINE: Final = "machine of "
_TIMES: Final = (120, 300, 600, 1200)
_PERCENTS: Final = (30, 50, 70)
_CONSOLIDATE_TIMES: Final = (0, 30, 300, 900)


class WorldAxis(NamedTuple):
    """One number to search, the values to try, and the one that holds now."""

    name: str
    values: tuple[int, ...]
    now: int


def world_axes(assumptions: Assumptions) -> list[WorldAxis]:
    """All that can be searched in this world, what decides most first; nothing without a pools file."""
    if assumptions.pools is None:
        return []
    axes = [
        WorldAxis(f"{_MACHINE}{pool.name}", tuple(range(len(pool.alternatives) + 1)), 0)
        for pool in assumptions.pools.pools
        if pool.alternatives
    ]
    if assumptions.autoscaler is Autoscaler.CLUSTER_AUTOSCALER:
        axes.append(_axis(UNNEEDED, _TIMES, assumptions.unneeded_seconds))
        axes.append(_axis(THRESHOLD, _PERCENTS, 100 * assumptions.unneeded_utilisation))
    elif assumptions.autoscaler is Autoscaler.KARPENTER:
        axes.append(_axis(CONSOLIDATE, _CONSOLIDATE_TIMES, assumptions.consolidate_after_seconds))
    return axes


def _axis(name: str, values: tuple[int, ...], now: float) -> WorldAxis:
    return WorldAxis(name, tuple(sorted({round(now), *values})), round(now))


def changes_of(assumptions: Assumptions, chosen: Mapping[str, int]) -> dict[str, Any]:
    """The assumptions that a candidate has otherwise. chosen: axis -> value; those of the values are ignored."""
    changed = assumptions
    if assumptions.pools is not None:
        pools = tuple(_with_machine(pool, chosen.get(f"{_MACHINE}{pool.name}", 0)) for pool in assumptions.pools.pools)
        changed = with_pools(assumptions, replace(assumptions.pools, pools=pools))
    if UNNEEDED in chosen:
        changed = replace(changed, unneeded_seconds=float(chosen[UNNEEDED]))
    if THRESHOLD in chosen:
        changed = replace(changed, unneeded_utilisation=chosen[THRESHOLD] / 100)
    if CONSOLIDATE in chosen:
        changed = replace(changed, consolidate_after_seconds=float(chosen[CONSOLIDATE]))
    names = [field.name for field in fields(changed)]
    return {name: getattr(changed, name) for name in names if getattr(changed, name) != getattr(assumptions, name)}


def _with_machine(pool: Pool, place: int) -> Pool:
    return pool if not place else replace(pool.alternatives[place - 1], alternatives=pool.alternatives)


def machine_names(assumptions: Assumptions) -> dict[tuple[str, int], str]:
    """Axis and value of a machine -> its type, for people."""
    pools = () if assumptions.pools is None else assumptions.pools.pools
    return {
        (f"{_MACHINE}{pool.name}", place): machine.machine_type
        for pool in pools
        for place, machine in enumerate((pool, *pool.alternatives))
    }


def where_to_set(assumptions: Assumptions, best: Mapping[str, int], start: Mapping[str, int]) -> list[str]:
    """A sentence for each thing to set that isn't in the values; only what differs from now."""
    said = []
    types = machine_names(assumptions)
    for name, value in best.items():
        now = start.get(name, value)
        if value == now:
            continue
        if name.startswith(_MACHINE):
            pool = name.removeprefix(_MACHINE)
            said.append(f"Node pool {pool}: machine type {types[name, value]}, now {types[name, now]}.")
        elif name == UNNEEDED:
            said.append(f"Cluster Autoscaler: --scale-down-unneeded-time={value}s, now {now}s.")
        elif name == THRESHOLD:
            said.append(f"Cluster Autoscaler: --scale-down-utilization-threshold={value / 100:g}, now {now / 100:g}.")
        elif name == CONSOLIDATE:
            said.append(f"Karpenter's NodePool: spec.disruption.consolidateAfter: {value}s, now {now}s.")
    return said
